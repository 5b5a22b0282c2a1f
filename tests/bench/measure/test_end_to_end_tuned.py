"""From end to end a tuned reference is measured in the configuration that its sweep found, in turns with the
others and under the same checks; the sweep is not made again, and memory favours nobody."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import onnx
import pytest

import engine.backends
import engine.pipelines
from bench.measure import cases, end_to_end, timing
from bench.measure.end_to_end import Flows
from bench.measure.loaded_model import LoadedModel
from bench.measure.net_runner import NetRunner
from bench.results.messages import CaseStarted, Measured, Start
from bench.results.records import Job, Measurement
from bench.results.rows import rows
from engine import backends, pipelines
from engine.backends.ort_cuda_tuned import Tuned
from engine.end_to_end import SPARE, Pipeline, Pool
from engine.graph import importer
from engine.options import Configuration
from engine.ort import tuning as ort_tuning
from engine.planning.choices import Choice, Tried
from models import catalogue
from tests.bench.measure.test_end_to_end import BatchSlot, Behind
from tests.engine.backends.nets import small_net
from tests.engine.harness import random

DEFAULT, BASIC, FUSED = Configuration(), Configuration(optimization="basic"), Configuration(fused_conv=True)
JOB = Job(
    models=("lenet5-digits",),
    backends=("engine-cpu", "ort-cpu"),
    batches=(4,),
    images=(8,),
    threads=1,
    budget_s=0.05,
    layers=False,
    tune_reference=True,
    end_to_end=True,
)
NAMES = ("engine-cpu", "ort-cpu", "ort-cpu-tuned", "ort-cpu-tuned-strict")


@pytest.fixture(autouse=True)
def _quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if ort-cpu were what can be tuned, on a machine that tells nothing of how quiet it is."""
    rules = timing.Rules(warmup_s=0.002, rewarm_s=0.001, min_s=0.005, budget_s=0.02, sample_ns_host=500_000)
    monkeypatch.setattr(end_to_end, "rules", lambda job: rules)
    monkeypatch.setattr(end_to_end, "too_few_samples", lambda timed: [])
    monkeypatch.setattr(end_to_end.unrest, "warning", lambda timed: "")
    plain = backends.get("ort-cpu")
    found = {
        "engine-cpu": backends.get("engine-cpu"),
        "ort-cpu": plain,
        "ort-cpu-tuned": Tuned(plain, "ort-cpu-tuned", "tuned", strict=False),
        "ort-cpu-tuned-strict": Tuned(plain, "ort-cpu-tuned-strict", "tuned, strict", strict=True),
    }
    monkeypatch.setattr(engine.backends, "_found", lambda: found)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is known of this machine yet."""
    catalogue.path("lenet5-digits")
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path / "cache"))


def known(model: str, fastest: Configuration, strict: Configuration, batch: int = 4) -> None:
    """Keep a sweep with these winners, as that of a forward pass leaves it."""
    tried = tuple(Tried(variant=each, time_ns=1e5) for each in (DEFAULT, BASIC, FUSED))
    choice = Choice(
        default=DEFAULT, tried=tried, done=True, lenient=fastest, best=strict, chosen_at="2026-01-02T03:04:05"
    )
    path = Path(model) if model.endswith(".onnx") else catalogue.path(model)
    ort_tuning.write("ort-cpu", importer.load(path), batch, "fp32", choice)


def measured(job: Job) -> tuple[dict[str, Measurement], list[str]]:
    """By backend; and what was tuned for it."""
    told: list[Any] = []
    NetRunner(Start(job=job, cases=cases.plan(job)), told.append, lambda: False).run()
    tuned = [m.case.backend for m in told if isinstance(m, CaseStarted) and m.stage == "tune"]
    return {m.measurement.case.backend: m.measurement for m in told if isinstance(m, Measured)}, tuned


def opened(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[Configuration | None, str]]:
    """The configuration, and the model's name, of each pipeline's sessions, in the order they are opened."""
    real, found = pipelines.open_pipeline, {}

    def spied(backend: Any, graph: Any, precision: str, options: Any, pool: Pool, asked: Any) -> Pipeline:
        pipeline = real(backend, graph, precision, options, pool, asked)
        session = pipeline.slots[0]._session  # type: ignore[attr-defined]
        configuration = session.facts.get("configuration", "") if backend.name != "engine-cpu" else ""
        found[backend.name] = options.ort, configuration
        return pipeline

    monkeypatch.setattr(pipelines, "open_pipeline", spied)
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("images", [True, False])
def test_each_tuned_reference_runs_as_its_sweep_found_it(
    images: bool, cache: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of a model with images of its own, and of one that nobody has labels for."""
    job = JOB
    if not images:
        onnx.save(small_net().whole_proto(), tmp_path / "small.onnx")
        job = msgspec.structs.replace(JOB, models=(str(tmp_path / "small.onnx"),), dataset="random")
    known(job.models[0], FUSED, BASIC)
    lanes_of = opened(monkeypatch)
    found, tuned = measured(job)
    assert tuned == [], "what is known of its forward pass is all that is asked"
    assert set(found) == set(NAMES)
    assert {name: configuration for name, (configuration, _) in lanes_of.items()} == {
        "ort-cpu": None,
        "ort-cpu-tuned": FUSED,
        "ort-cpu-tuned-strict": BASIC,
        "engine-cpu": None,
    }
    assert list(lanes_of)[2:] == ["ort-cpu", "engine-cpu"], "memory ends for the best references last"
    assert lanes_of["ort-cpu-tuned"][1] == FUSED.words
    for one in found.values():
        assert (one.disposition, one.reason) == ("ok", "")
        flow = one.end_to_end
        assert flow is not None
        assert flow.samples_ns
        assert flow.checked >= 2
        assert (flow.lanes, flow.carries, flow.refused, flow.warnings) == (1, "uint8", "", ())
    rates = {row.case.backend: row.end_to_end for row in rows(found.values())}
    for name in NAMES:
        flow_row = rates[name]
        assert flow_row is not None
        assert (flow_row.speedup is None) == (name == "ort-cpu")


def test_what_is_one_configuration_is_measured_once_and_both_have_the_rate(cache: None) -> None:
    known("lenet5-digits", BASIC, BASIC)
    found, _ = measured(JOB)
    one, other = (found[name] for name in NAMES[2:])
    assert one.facts["measured_as"] == "ort-cpu-tuned-strict: the same configuration"
    assert one.end_to_end is not None
    assert one.end_to_end == other.end_to_end
    assert one.end_to_end.samples_ns


def test_wrong_answers_of_the_tuned_reference_are_found(cache: None, monkeypatch: pytest.MonkeyPatch) -> None:
    known("lenet5-digits", FUSED, BASIC)

    class Wrong(Behind):
        def finish(self) -> None:
            if self._session.backend == "ort-cpu-tuned":
                super().finish()
            else:
                super(Behind, self).finish()

    monkeypatch.setattr(engine.pipelines, "HostSlot", Wrong)
    found, _ = measured(JOB)
    assert found["ort-cpu-tuned"].disposition == "incorrect"
    assert "a batch in flight got other answers" in found["ort-cpu-tuned"].reason
    assert {found[name].disposition for name in NAMES if name != "ort-cpu-tuned"} == {"ok"}


def test_without_a_configuration_the_others_are_measured_and_the_reason_is_told(cache: None) -> None:
    known("lenet5-digits", BASIC, BASIC, batch=5)
    job = msgspec.structs.replace(JOB, tune_reference=False, backends=("ort-cpu", "ort-cpu-tuned"))
    found, _ = measured(job)
    assert found["ort-cpu-tuned"].disposition == "unsupported"
    assert "was not tuned" in found["ort-cpu-tuned"].reason
    assert found["ort-cpu"].end_to_end is not None


class Closing(BatchSlot):
    closed = False

    def close(self) -> None:
        self.closed = True


def test_nobody_has_more_batches_in_flight_than_another_on_its_device_has_memory_for() -> None:
    pool = Pool({"x": random((2 + SPARE, 3), 0)}, 2)
    ready: dict[str, Any] = {
        name: SimpleNamespace(backend=SimpleNamespace(name=name, device="cuda" if "cuda" in name else "cpu"))
        for name in ("engine-cuda", "ort-cuda", "ort-cuda-tuned", "ort-cpu")
    }
    counts = {"engine-cuda": 3, "ort-cuda": 3, "ort-cuda-tuned": 2, "ort-cpu": 1}
    made = {name: [Closing(pool, []) for _ in range(count)] for name, count in counts.items()}
    pipelines = {name: Pipeline(made[name], pool) for name in counts}
    loaded: Any = LoadedModel
    flows = Flows(loaded, JOB, ready)
    flows._even(pipelines)
    assert {name: len(flow.slots) for name, flow in pipelines.items()} == {
        "engine-cuda": 2,
        "ort-cuda": 2,
        "ort-cuda-tuned": 2,
        "ort-cpu": 1,
    }
    assert [slot.closed for slot in made["engine-cuda"]] == [False, False, True]
    assert flows._fewer == {
        "cuda": "memory had room for 2 in flight of ort-cuda-tuned, so that no other has more"
    }
    even = {name: Pipeline([Closing(pool, [])], pool) for name in counts}
    unmoved = Flows(loaded, JOB, ready)
    unmoved._even(even)
    assert unmoved._fewer == {}
