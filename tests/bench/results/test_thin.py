"""A run that was made small says what the run said, byte for byte, and what it cannot say any more."""

from __future__ import annotations

import base64
import contextlib
import shutil
import zlib
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import main
from bench.results import gallery, reading, results_file
from bench.results.folders import open_folder
from bench.results.messages import ModelLoaded
from bench.results.records import Measurement, Run
from bench.results.rows import rows
from bench.results.thin import thin
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.run.kinds.comparison import RunFolder
from bench.views.charts import breakdown
from bench.views.comparison import thin_measurement
from kernels.errors import InputError
from tests.bench import synthetic
from tests.bench.results.test_recorded import RECORDED


def saved(path: Path, run: Run, measurements: list[Measurement]) -> RunFolder:
    folder = COMPARISON.create(path, run)
    for measurement in measurements:
        folder.append(measurement)
    folder.close()
    return folder


def many(measurement: Measurement) -> Measurement:
    """The same with as many samples as a real case has at most."""
    rng = np.random.default_rng(len(measurement.case.key))
    drawn = rng.choice(measurement.samples_ns, 450) * rng.normal(1, 0.01, 450)
    samples = tuple(round(float(v), 1) for v in drawn)  # as a worker rounds them
    return msgspec.structs.replace(measurement, samples_ns=samples, rounds=(0, 150, 300))


def test_a_thinned_run_shows_the_same_and_fits(tmp_path: Path) -> None:
    run, measurements = synthetic.run(images=(360,))
    measurements = [many(m) for m in measurements]
    source = saved(tmp_path / "source", run, measurements)
    info = msgspec.structs.replace(run.models[0], dataset="digits")
    source.take_message(ModelLoaded(model=info))
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
    assert (source.path / "results.jsonl").stat().st_size > 300_000

    assert main.main(["runs", "thin", str(source.path), str(tmp_path / "small")]) == 0

    small = COMPARISON.open(tmp_path / "small")
    assert sum(f.stat().st_size for f in small.path.rglob("*") if f.is_file()) <= 300_000
    thinned = small.measurements()
    assert [m.case for m in thinned] == [m.case for m in measurements]
    assert [m.samples_ns for m in thinned] == [m.samples_ns for m in measurements], "to the last bit"
    for one, other in zip(rows(measurements), rows(thinned), strict=True):
        assert breakdown.split(other.measurement) == breakdown.split(one.measurement)
    whole = [m for m in thinned if m.layers[0].isolated]
    assert {m.case.backend for m in whole} == set(synthetic.BACKENDS)
    assert all(m in whole or "errors" in m.facts["left out"] for m in thinned)
    assert len(gallery.load_images(gallery.images_path(small.path, "digits", case))) >= 100
    assert (
        gallery.load_answers(gallery.answers_path(small.path, case)).predicted == answers["predicted"]
    ).all()


def test_layers_that_were_not_timed_go_with_their_errors() -> None:
    (one,) = synthetic.run(backends=("engine-cpu",), batches=(2,))[1]
    layers = tuple(msgspec.structs.replace(layer, time_ns=None, clock="") for layer in one.layers)
    untimed = msgspec.structs.replace(one, layers=layers)
    kept = thin_measurement(untimed, errors=True, shapes=False).layers
    assert [layer.isolated is None for layer in kept] == [layer.isolated is None for layer in layers]
    assert thin_measurement(untimed, errors=False, shapes=False).layers == ()
    assert len(thin_measurement(one, errors=False, shapes=False).layers) == len(layers)


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


# ----------------------------------------------------------------------------------------- every figure again


def drawn(rng: np.random.Generator, whole: bool) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Samples as a machine gives them: skewed, with outliers, rounds of unequal length that differ much, so
    that what is decided of all of them need not be of some."""
    counts = rng.integers(1, 60, int(rng.integers(1, 9)))
    parts = [
        1e5
        * rng.lognormal(0, 0.3)
        * (1 + rng.lognormal(-4, 1.5, count))
        * rng.choice([1, 2.5], count, p=[0.9, 0.1])
        for count in counts
    ]
    samples = np.concatenate(parts)
    made = tuple(round(float(value), 1) if whole else float(value) for value in samples)
    return made, tuple(int(start) for start in np.cumsum([0, *counts[:-1]]))


def redrawn(kind: str, seed: int, path: Path) -> Path:
    """A recorded folder with other samples in it."""
    rng = np.random.default_rng(seed)
    shutil.copytree(RECORDED / kind, path)
    folder = open_folder(path)
    lines = []
    for m in folder.measurements():
        samples, rounds = drawn(rng, bool(seed % 3))
        changed: dict[str, object] = {}
        if m.samples_ns:
            changed["samples_ns"] = samples
        if kind == "profile":
            passes, starts = drawn(rng, bool(seed % 3))
            changed |= {"pass_ns": passes, "pass_rounds": starts}
        elif m.samples_ns:
            changed |= {"rounds": rounds, "instances": tuple(int(i) for i in rng.integers(0, 3, len(rounds)))}
        lines.append(results_file.line_of(msgspec.structs.replace(m, **changed)))
    (path / "results.jsonl").write_bytes(b"".join(lines))
    return path


def shown(path: Path, form: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main.main(["runs", "show", str(path), "--format", form]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("kind", ["comparison", "ladder", "profile"])
def test_the_table_of_a_copy_is_that_of_the_run_byte_for_byte(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in range(3):
        run = redrawn(kind, seed, tmp_path / f"run{seed}" / kind)
        thin(run, tmp_path / f"small{seed}" / kind)
        assert open_folder(tmp_path / f"small{seed}" / kind).measurements() == open_folder(run).measurements()
        for form in ("csv", "md", "table") if seed < 2 else ("csv",):
            there = shown(run, form, capsys)
            assert there.count("\n") > 3
            assert shown(tmp_path / f"small{seed}" / kind, form, capsys) == there


numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**56), 2**56).map(lambda n: n / 10),
    st.floats(1, 1e9).map(lambda value: round(value, 1)),
)


@settings(deadline=None, max_examples=60)
@given(st.lists(numbers, min_size=1, max_size=80))
def test_a_packed_list_is_the_list_to_the_last_bit(values: list[float]) -> None:
    line = results_file.packed_line_of({"of": values, "text": '{"packed":"x"}', "few": [1.5]})
    assert results_file.sound(line.rstrip(b"\n"))
    again = msgspec.json.decode(results_file.whole(line))
    assert [value.hex() for value in map(float, again["of"])] == [value.hex() for value in values]
    assert (again["text"], again["few"]) == ('{"packed":"x"}', [1.5])


@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=60), st.integers(0, 40), st.integers(0, 255))
def test_a_broken_packed_list_is_told_and_fills_no_memory(noise: bytes, place: int, byte: int) -> None:
    line = results_file.packed_line_of({"of": [float(n) for n in range(40)]})
    start = line.index(b'"packed":"') + 10
    changed = bytearray(line)
    changed[start + place % 30] = byte
    bomb = results_file._HEAD.pack(b"f", 8, 0, 2**31) + zlib.compress(bytes(2**20))
    for broken in (bytes(changed), *(b'{"packed":"%s"}' % base64.b85encode(b) for b in (noise, bomb))):
        with contextlib.suppress(reading.Unreadable):
            assert len(results_file.whole(broken)) < 10_000
    with pytest.raises(reading.Unreadable):
        results_file.whole(b'{"packed":"%s"}' % base64.b85encode(bomb))
