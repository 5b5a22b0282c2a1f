"""A thinned run says what the run said: medians to the last bit, intervals and verdicts nearly so."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import main
from bench.charts import breakdown
from bench.comparison.kind import KIND as COMPARISON
from bench.comparison.kind import RunFolder
from bench.comparison.thin import thin_measurement
from bench.kinds.samples import keep
from bench.kinds.thin import thin
from bench.results import gallery, stats
from bench.results.messages import ModelLoaded
from bench.results.records import Measurement, Run
from bench.results.rows import rows
from kernels.errors import InputError
from tests.bench import synthetic


def drawn(seed: int, rounds: int, count: int, drift: float) -> tuple[list[float], list[int]]:
    """Samples as a machine gives them: skewed, with outliers, drifting from round to round."""
    rng = np.random.default_rng(seed)
    parts = [
        1e5 * (1 + drift * rng.standard_normal()) * (1 + 0.02 * rng.standard_normal(count) ** 2)
        for _ in range(rounds)
    ]
    samples = np.concatenate(parts)
    samples[rng.integers(0, len(samples), len(samples) // 50)] *= 40
    return samples.tolist(), [i * count for i in range(rounds)]


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 999),
    st.integers(1, 6),
    st.integers(3, 900),
    st.sampled_from((0.0, 1e-3, 0.3)),
    st.integers(12, 60),
)
def test_medians_stay_to_the_last_bit_and_few_are_kept(
    seed: int, rounds: int, count: int, drift: float, most: int
) -> None:
    samples, starts = drawn(seed, rounds, count, drift)
    kept, new = keep(samples, starts, most)
    assert float(np.median(kept)) == float(np.median(samples))
    assert len(kept) <= max(most, 1.6 * most + rounds + 2)
    assert set(kept) <= set(samples)
    parts = stats.split_rounds(kept, new)
    assert len(parts) == rounds
    for own, start in zip(parts, starts, strict=True):
        assert set(own.tolist()) <= set(samples[start : start + count])


@pytest.mark.parametrize("drift", [0.0, 0.002, 0.05])
@pytest.mark.parametrize("rounds", [1, 3, 5])
def test_intervals_and_verdicts_stay(rounds: int, drift: float) -> None:
    for seed in range(4):
        samples, starts = drawn(seed, rounds, 600, drift)
        kept, new = keep(samples, starts, 48)
        whole, few = stats.median_interval(samples, starts), stats.median_interval(kept, new)
        width = whole.high - whole.low
        # A bootstrap's own ends vary by some per cent of the interval from seed to seed.
        assert abs(few.low - whole.low) < 0.25 * width
        assert abs(few.high - whole.high) < 0.25 * width


def saved(path: Path, run: Run, measurements: list[Measurement]) -> RunFolder:
    folder = COMPARISON.create(path, run)
    for measurement in measurements:
        folder.append(measurement)
    folder.close()
    return folder


def many(measurement: Measurement) -> Measurement:
    """The same with the thousands of samples of a real case."""
    rng = np.random.default_rng(len(measurement.case.key))
    samples = tuple(float(v) for v in rng.choice(measurement.samples_ns, 2400) * rng.normal(1, 0.01, 2400))
    return msgspec.structs.replace(measurement, samples_ns=samples, rounds=(0, 800, 1600))


def test_a_thinned_run_shows_the_same_and_fits(tmp_path: Path) -> None:
    run, measurements = synthetic.run(images=(360,))
    measurements = [many(m) for m in measurements]
    source = saved(tmp_path / "source", run, measurements)
    info = msgspec.structs.replace(run.models[0], dataset="digits")
    source.heard(ModelLoaded(model=info))
    case = next(m.case for m in measurements if m.case.backend == "ort-cpu" and m.case.batch == 2048)
    pixels = np.random.default_rng(0).integers(0, 255, (360, 28, 28), dtype=np.uint8)
    gallery.keep_images(gallery.images_path(source.path, "digits", case), pixels, tuple("0123456789"), 360)
    answers = {"label": np.arange(360) % 10, "predicted": np.arange(360) % 9, "top5": np.ones(360, bool)}
    np.savez(
        gallery.answers_path(source.path, case),
        confidence=np.linspace(0, 1, 360, dtype=np.float32),
        ns=np.zeros(2, np.int64),
        **answers,
    )
    assert (source.path / "results.jsonl").stat().st_size > 2_000_000

    assert main.main(["runs", "thin", str(source.path), str(tmp_path / "small")]) == 0

    small = COMPARISON.open(tmp_path / "small")
    assert sum(f.stat().st_size for f in small.path.rglob("*") if f.is_file()) <= 300_000
    thinned = small.measurements()
    assert [m.case for m in thinned] == [m.case for m in measurements]
    for one, other in zip(rows(measurements), rows(thinned), strict=True):
        assert other.median_ns == pytest.approx(one.median_ns, rel=1e-5)
        assert other.verdict == one.verdict
        assert breakdown.split(other.measurement).total_ns == pytest.approx(
            breakdown.split(one.measurement).total_ns, rel=1e-4
        )
    whole = [m for m in thinned if m.layers[0].isolated]
    assert {m.case.backend for m in whole} == set(synthetic.BACKENDS)
    assert len(gallery.load_images(gallery.images_path(small.path, "digits", case))) == 360
    assert (
        gallery.load_answers(gallery.answers_path(small.path, case)).predicted == answers["predicted"]
    ).all()


def test_layers_that_were_not_timed_go_with_their_errors() -> None:
    (one,) = synthetic.run(backends=("engine-cpu",), batches=(2,))[1]
    layers = tuple(msgspec.structs.replace(layer, time_ns=None, clock="") for layer in one.layers)
    untimed = msgspec.structs.replace(one, layers=layers)
    kept = thin_measurement(untimed, 24, errors=True, shapes=False).layers
    assert [layer.isolated is None for layer in kept] == [layer.isolated is None for layer in layers]
    assert thin_measurement(untimed, 24, errors=False, shapes=False).layers == ()
    assert len(thin_measurement(one, 24, errors=False, shapes=False).layers) == len(layers)


def test_what_cannot_be_thinned_says_why(tmp_path: Path) -> None:
    run, measurements = synthetic.run(batches=(1, 2))
    source = saved(tmp_path / "source", run, measurements)
    with pytest.raises(InputError, match="run fewer batch sizes"):
        thin(source.path, tmp_path / "small", 1000)
    assert not (tmp_path / "small").exists()
    with pytest.raises(InputError, match="exists already"):
        thin(source.path, source.path)
    with pytest.raises(InputError, match="holds no measurement"):
        thin(saved(tmp_path / "empty", run, []).path, tmp_path / "small")
