"""Host images to host answers: what is timed is checked; who hands out another batch's answers is found."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import pytest
from onnx import TensorProto, helper

import engine.pipelines
from bench.measure import end_to_end, possible, timing
from bench.measure.end_to_end import Flows
from bench.measure.net_runner import NetRunner
from bench.results import doubt
from bench.results.messages import Measured, Start
from bench.results.records import Job, Measurement
from bench.results.rows import rows
from engine import backends
from engine.backend import Options
from engine.end_to_end import PLACES, SPARE, VALUES, Affine, HostSlot, Pipeline, Pool, Request, top
from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from engine.ort.uint8 import rewritten
from models.preprocessing import Preprocessing
from tests.engine.harness import make_model, random

JOB = Job(
    models=("lenet5-digits",),
    backends=("engine-cpu", "ort-cpu"),
    batches=(4,),
    images=(8,),
    budget_s=0.05,
    layers=False,
    end_to_end=True,
)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = timing.Rules(warmup_s=0.002, rewarm_s=0.001, min_s=0.005, budget_s=0.02, sample_ns_host=500_000)
    monkeypatch.setattr(end_to_end, "rules", lambda job: rules)
    # How quiet this machine is, is no matter of these tests.
    monkeypatch.setattr(end_to_end, "too_few_samples", lambda timed: [])
    monkeypatch.setattr(end_to_end.unrest, "warning", lambda timed: "")


def measured(job: Job) -> dict[str, Measurement]:
    told: list[Any] = []
    NetRunner(Start(job=job), told.append, lambda: False).run()
    return {m.measurement.case.backend: m.measurement for m in told if isinstance(m, Measured)}


def test_both_sides_are_measured_by_both_clocks() -> None:
    found = measured(JOB)
    for one in found.values():
        assert (one.disposition, one.reason) == ("ok", "")
        sent = one.end_to_end
        assert sent is not None
        assert (sent.carries, sent.nbytes_in, sent.lanes, sent.refused) == ("uint8", 4 * 784, 1, "")
        assert sent.samples_ns
        assert sent.checked >= 2
        assert sent.warnings == ()
        assert one.samples_ns, "the forward pass alone is timed as ever"
    row = next(row for row in rows(found.values()) if row.case.backend == "engine-cpu")
    assert row.end_to_end is not None
    assert row.end_to_end.speedup is not None
    assert row.end_to_end.speedup != row.speedup, "each clock has a ratio of its own"


def test_without_the_option_nothing_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Flows, "measure", lambda *_: pytest.fail("it was not asked for"))
    job = msgspec.structs.replace(JOB, end_to_end=False, backends=("ort-cpu",))
    assert [one.end_to_end for one in measured(job).values()] == [None]


class Behind(HostSlot):
    """Hands out the answers of the batch before, as a pipeline does that waits for the wrong event."""

    _before: Mapping[str, np.ndarray] | None = None

    def finish(self) -> None:
        super().finish()
        now, self.answers = self.answers, self._before or self.answers
        self._before = now


class Once(HostSlot):
    """Computes its first batch alone."""

    def start(self, offset: int) -> None:
        if not self.answers:
            super().start(offset)

    def finish(self) -> None:
        if not self.answers:
            super().finish()


class Black(HostSlot):
    """Makes no numbers of pixels."""

    def __init__(self, session: Any, pool: Pool, asked: Request, affine: Affine | None) -> None:
        wrong = None if affine is None else Affine(tuple(0 * f for f in affine.factors), affine.offsets, 1)
        super().__init__(session, pool, asked, wrong)


@pytest.mark.parametrize("slot", [Behind, Once, Black])
def test_wrong_answers_in_flight_are_found(slot: type[HostSlot], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.pipelines, "HostSlot", slot)
    job = msgspec.structs.replace(JOB, backends=("engine-cpu",))
    (found,) = measured(job).values()
    assert found.disposition == "incorrect"
    assert "from end to end: a batch in flight got other answers" in found.reason


def test_batches_that_begin_alike_by_chance_are_no_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pool, "drawn", lambda self, count, apart: [3] * count)
    (found,) = measured(msgspec.structs.replace(JOB, backends=("engine-cpu",))).values()
    assert found.end_to_end is not None
    assert found.end_to_end.warnings == ()


def test_a_rate_that_moved_or_rests_on_little_is_doubted(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a forward pass is: a verdict between two runs follows from neither."""
    monkeypatch.setattr(
        end_to_end, "too_few_samples", lambda timed: [f"only {len(timed.samples_ns)} samples"]
    )
    monkeypatch.setattr(end_to_end.unrest, "warning", lambda timed: f"{doubt.UNQUIET}: {len(timed.rounds)}")
    found = measured(JOB)
    for one in found.values():
        assert one.end_to_end is not None
        few, moved = one.end_to_end.warnings
        assert few.startswith("only ")
        assert moved.startswith(doubt.UNQUIET)


def test_where_right_answers_move_it_is_said_that_nothing_is_known_of_batches_in_flight(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine.pipelines, "HostSlot", Behind)
    monkeypatch.setattr(end_to_end.LoadedModel, "moves", True)
    (found,) = measured(msgspec.structs.replace(JOB, backends=("engine-cpu",))).values()
    assert found.disposition == "ok"
    assert found.end_to_end is not None
    assert found.end_to_end.warnings == (end_to_end.MOVES,)


def test_an_invalid_case_has_no_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its passes are faster than possible, so nothing of it is shown as right."""

    def held(measurement: Measurement, *_: object) -> Measurement:
        if measurement.case.backend == "ort-cpu":
            return measurement
        return msgspec.structs.replace(
            measurement, disposition="invalid", reason="faster than possible", samples_ns=(), rounds=()
        )

    monkeypatch.setattr(possible, "held", held)
    found = {row.case.backend: row for row in rows(measured(JOB).values())}
    assert found["engine-cpu"].end_to_end is None
    assert found["ort-cpu"].end_to_end is not None


def test_answers_that_tell_no_batch_from_another_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(end_to_end, "unlike", lambda *_: None)
    (found,) = measured(msgspec.structs.replace(JOB, backends=("engine-cpu",))).values()
    assert found.end_to_end is not None
    assert found.end_to_end.warnings == (end_to_end.ALIKE,)


def test_the_best_classes_are_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    job = msgspec.structs.replace(JOB, top_k=3, backends=("engine-cpu", "ort-cpu"))
    for one in measured(job).values():
        assert one.disposition == "ok"
        assert one.end_to_end is not None
        assert one.end_to_end.top_k == 3
    too_many = measured(msgspec.structs.replace(job, top_k=11, backends=("ort-cpu",)))["ort-cpu"]
    assert too_many.disposition == "ok", "the forward pass is measured"
    assert too_many.end_to_end is not None
    assert too_many.end_to_end.refused.startswith("the best 11 of 10 classes cannot be had")


def test_rewritten_models_differ_where_what_they_answer_does() -> None:
    """By the name under which what is made of one is kept."""
    nodes = [helper.make_node("Relu", ["x"], ["a"], "a"), helper.make_node("Neg", ["x"], ["b"], "b")]
    graph = from_proto(make_model(nodes, {"x": ("N", 10)}, ["a", "b"], {}, opset=13), "two")
    one, other = (rewritten(graph, Request(scores=name, top_k=2)) for name in ("a", "b"))
    assert one.sha256 != other.sha256


def test_the_best_of_float16_scores_are_had() -> None:
    value = helper.make_tensor_value_info
    sides = [value(name, TensorProto.FLOAT16, ["N", 10]) for name in ("x", "y")]
    body = helper.make_graph([helper.make_node("Relu", ["x"], ["y"], "y")], "half", sides[:1], sides[1:])
    proto = helper.make_model(body, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    wanted = rewritten(from_proto(proto, "half"), Request(scores="y", top_k=2))
    session = backends.get("ort-cpu").prepare_here(wanted, 3, "fp32", Options(threads=1))  # type: ignore[attr-defined]
    x = random((3, 10), 0).astype(np.float16)
    session.bind({"x": x})
    session.run()
    found = session.fetch()
    session.close()
    assert end_to_end.unlike(found, {"y": np.maximum(x, 0)}, Request(scores="y", top_k=2), "fp16") is None


def test_best_classes_are_held_to_what_they_score_and_to_what_they_are() -> None:
    scores = np.random.default_rng(0).standard_normal((5, 10)).astype(np.float32)
    asked = Request(scores="y", top_k=2)
    right = top(scores, 2)
    assert end_to_end.unlike(right, {"y": scores}, asked, "fp32") is None
    named = {**right, PLACES: right[PLACES][:, ::-1]}
    assert end_to_end.unlike(named, {"y": scores}, asked, "fp32") is not None
    valued = {**right, VALUES: right[VALUES][::-1]}
    assert end_to_end.unlike(valued, {"y": scores}, asked, "fp32") is not None


@pytest.mark.parametrize(
    ("shape", "spec", "layout"),
    [
        ((None, 3, 6, 4), "imagenet", ""),
        ((None, 6, 4, 3), "imagenet", ""),
        ((None, 3, 6, 4), "caffe", ""),
        ((None, 1, 6, 4), "0.4,0.2", ""),
        ((None, 6, 4), "unit", ""),
        ((None, 27), 'base = "imagenet"\norder = "BGR"', ""),
    ],
)
def test_bytes_become_the_numbers_that_the_host_makes(shape: Any, spec: str, layout: str) -> None:
    make = Preprocessing(spec, shape)
    images = np.random.default_rng(0).integers(0, 256, (5, 7, 9, 3), dtype=np.uint8)
    fitted = [make.fit(image) for image in images]
    pixels = make.as_bytes(fitted)
    factors, offsets = make.affine
    affine = Affine(factors, offsets, pixels[0].size // len(factors) if make.planar else 1)
    assert pixels.dtype == np.uint8
    np.testing.assert_array_equal(affine.apply(pixels), make.fill(fitted))
    wanted = rewritten(_sums(shape), Request("x", affine))
    session = backends.get("ort-cpu").prepare_here(wanted, 5, "fp32", Options(threads=1))  # type: ignore[attr-defined]
    session.bind({"x": pixels})
    session.run()
    np.testing.assert_allclose(session.fetch()["y"], make.fill(fitted) * 2, rtol=1e-6, atol=1e-6)
    session.close()


def _sums(shape: Any) -> Graph:
    """x → 2 · x."""
    nodes = [helper.make_node("Mul", ["x", "two"], ["y"], "mul")]
    proto = make_model(nodes, {"x": ("N", *shape[1:])}, ["y"], {"two": np.full((), 2, np.float32)}, opset=13)
    return from_proto(proto, "doubling")


class BatchSlot:
    """Answers what it was started with, when it was finished."""

    def __init__(self, pool: Pool, log: list[tuple[str, int]]) -> None:
        self.pool, self.log, self.at = pool, log, -1
        self.answers: dict[str, np.ndarray] = {}

    def start(self, offset: int) -> None:
        assert self.at < 0, "one batch a slot"
        self.at = offset
        self.log.append(("start", offset))

    def finish(self) -> None:
        self.answers = {"y": self.pool.arrays["x"][self.at : self.at + self.pool.batch].copy()}
        self.log.append(("finish", self.at))
        self.at = -1

    def close(self) -> None:
        self.at = -1


@pytest.mark.parametrize("many", [1, 2, 3])
def test_all_lanes_are_full_and_all_that_was_in_flight_is_kept(many: int) -> None:
    pool = Pool({"x": random((2 + SPARE, 3), 0)}, 2)
    log: list[tuple[str, int]] = []
    pipeline = Pipeline([BatchSlot(pool, log) for _ in range(many)], pool)
    assert pipeline.time_runs(5) > 0
    flying, most = 0, []
    for what, _ in log:
        flying += 1 if what == "start" else -1
        most.append(flying)
    assert max(most) == many
    assert log.count(("start", -1)) == flying == 0
    assert [what for what, _ in log[-many:]] == ["finish"] * many
    (sample,) = pipeline.kept
    assert [kept.offset for kept in sample] == [at for what, at in log if what == "start"][-many:]
    assert len({kept.offset for kept in sample}) == many, "no two in flight are given the same"
    for kept in sample:
        np.testing.assert_array_equal(kept.answers["y"], pool.changed(kept.number, kept.offset)["x"])
    pipeline.time_runs(1)
    changed = pool.changed(0, 0)["x"] != pool.changed(1, 0)["x"]
    assert changed.any(axis=1).all(), "every image differs from sample to sample"


def test_which_samples_are_kept_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Pool({"x": random((2 + SPARE, 3), 0)}, 2)
    pipeline = Pipeline([BatchSlot(pool, [])], pool)
    monkeypatch.setattr(secrets, "randbelow", lambda count: 0)
    for _ in range(9):
        pipeline.time_runs(1)
    assert [sample[0].number for sample in pipeline.kept] == [8, 1]
