"""Which precision each product of a net gets: the fastest mix whose answer stays within the budget, on images
that it was not chosen by, too."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench.measure.answers import accuracy, oracle
from bench.measure.answers.accuracy import Placement
from bench.measure.loaded_model import ORACLE
from bench.measure.tuned import mixes
from bench.results.records import ErrorStats
from engine.backend import OpTime
from engine.graph.graph import Graph
from engine.options import Options
from engine.planning import mixed, planner
from engine.planning.mixed import Mix
from kernels import precision as precisions
from kernels.errors import KernelError
from kernels.layouts import PLAIN
from tests.bench.measure.tuned.test_layouts import on_a_gpu
from tests.engine.planning.test_layouts import network

BATCH, IMAGES, SCORES = 3, 2, 5
WITHIN = "mixed-1e-3"
NODES = ("conv1", "conv2", "conv3", "fc4")
# Of each layer, by precision: microseconds, and its share of the answer's error.
TIMES = {"fp32": 100.0, "fp32-tc": 90.0, "tf32": 50.0, "fp16": 30.0, "bf16": 31.0}
SHARES = {"fp32": 0.0, "fp32-tc": 1e-7, "tf32": 3e-4, "fp16": 6e-4, "bf16": 5e-3}
Off = Callable[[Mapping[str, str]], float]


class Backend:
    """Whose answer is off by what the precisions of the layers add up to. off: what is more on the images
    that float64 answers for, by the mix; times, shares: of a layer and a precision, where they are others."""

    name, device = "engine-cuda", "cuda"

    def __init__(self, off: Off = lambda mix: 0.0, **others: dict[tuple[str, str], float]) -> None:
        self.off, self.others, self.made = off, others, 0
        self.opened: list[dict[str, str]] = []

    def of(self, what: str, usual: dict[str, float], node: str, precision: str) -> float:
        found: float = self.others.get(what, {}).get((node, precision), usual[precision])
        return found

    def prepare(self, graph: Graph, batch: int, precision: str, how: Options) -> Any:
        mix = dict(how.mix or {})
        self.opened.append(mix)
        taken = [1e3 * self.of("times", TIMES, *each) for each in mix.items()]
        if math.isinf(sum(taken)):
            raise KernelError("it does not run")
        error = math.hypot(*(self.of("shares", SHARES, *each) for each in mix.items()))
        bound: dict[str, Any] = {}

        def fetch() -> dict[str, np.ndarray]:
            of = error + (self.off(mix) if bound["inputs"] is GOLDEN.inputs else 0.0)
            answer = np.zeros((batch, SCORES), np.float32)
            answer[:, 0], answer[:, 1] = 1.0, of
            return {"y": answer}

        return SimpleNamespace(
            bind=lambda inputs: bound.update(inputs=inputs), run=lambda: None, synchronize=lambda: None,
            fetch=fetch, time_runs=lambda count, cold=False: int(count * sum(taken)), close=lambda: None,
            op_times=lambda seconds: tuple(
                OpTime((node,), "conv", ns, "events") for node, ns in zip(mix, taken, strict=True)
            ),
        )  # fmt: skip


RIGHT = np.eye(1, SCORES).repeat(IMAGES, 0)
GOLDEN = Placement({"x": np.zeros((BATCH, 1), np.float32)}, (0, 1), (0, 1))


class Loaded:
    """A net whose right answers are known for IMAGES images. images: what their key is."""

    judge = ORACLE

    def __init__(self, images: str = "those") -> None:
        self.graph, self.images = network(), images
        rows = SimpleNamespace(rows=lambda array: array)
        self.right = SimpleNamespace(layout={"y": rows})

    def golden(self) -> Any:
        return SimpleNamespace(inputs=self.images, tensors={"y": RIGHT}, images=IMAGES)

    def unseen(self, count: int) -> dict[str, np.ndarray]:
        return {"x": np.ones((count, 1), np.float32)}

    def placement(self, batch: int, seed: int) -> Placement:
        return GOLDEN

    def judge_of(self, batch: int) -> str:
        return ORACLE

    def check(self, outputs: Mapping[str, np.ndarray], placed: Placement, precision: str) -> ErrorStats:
        return accuracy.check(outputs, {"y": RIGHT}, placed, precision)


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    on_a_gpu(monkeypatch, tmp_path)
    monkeypatch.setattr(oracle, "content_key", lambda graph, inputs: inputs)
    monkeypatch.setattr(mixes, "STEPS_S", 0.0)
    brief = mixes.Rules(warmup_s=0.0, rewarm_s=0.0, min_s=0.001, budget_s=0.01)
    monkeypatch.setattr(mixes, "LOOKS", mixes.replace(mixes.LOOKS, final=brief, first_s=0.0))


def subject(backend: Any, precision: str = WITHIN, images: str = "those") -> mixes.Subject:
    loaded: Any = Loaded(images)
    return mixes.Subject(backend, loaded, BATCH, precision, Options(), lambda text, part: None)


def found(backend: Any, precision: str = WITHIN) -> dict[str, str]:
    """What the plan of this precision has, once it was chosen."""
    of = subject(backend, precision)
    assert mixes.wanted(of)
    choice = mixes.choose(of)
    assert not mixes.wanted(of), "once is enough"
    made = planner.plan(network(), BATCH, "cuda", precision)
    planned = {step.nodes[0]: step.asked for step in made.steps if step.nodes[0] in NODES}
    assert planned == dict(choice.best or ())
    return planned


def test_each_layer_gets_what_the_budget_buys() -> None:
    """All in fp16 is off by 1.2e-3. There is room for one layer in fp16: that which gains most by it, and
    does not take the whole budget."""
    backend = Backend(
        shares={("conv2", "fp16"): 9e-4, ("conv2", "tf32"): 1e-4},
        times={("conv2", "fp16"): 5.0, ("conv3", "fp16"): 10.0},
    )
    assert found(backend) == {**dict.fromkeys(NODES, "tf32"), "conv3": "fp16"}


def test_a_whole_precision_is_taken_where_it_stays_within_and_is_the_fastest() -> None:
    backend = Backend()
    assert set(found(backend, "mixed-5e-3").values()) == {"fp16"}
    assert all(len({*mix.values()}) == 1 for mix in backend.opened), "then no layer is looked at by itself"
    made = planner.plan(network(), BATCH, "cuda", "mixed-5e-3")
    whole = planner.plan(network(), BATCH, "cuda", "fp16")
    assert (made.steps, made.precision) == (whole.steps, "fp16"), (
        "with its layouts and all that is kept of it"
    )


def test_nothing_narrower_within_the_budget_is_fp32_and_a_sentence() -> None:
    of = subject(Backend(shares={(node, "fp32-tc"): 1e-5 for node in NODES}), "mixed-1e-6")
    assert set(dict(mixes.choose(of).best or ()).values()) == {"fp32"}
    made = planner.plan(of.loaded.graph, BATCH, "cuda", "mixed-1e-6")
    told = mixed.fact(made, of.loaded.graph, "mixed-1e-6", Options())
    assert told.startswith("all in fp32: nothing narrower stays within the budget (")
    assert "all in fp16: its answer is off by 1.2e-03" in told


def test_what_is_narrower_and_slower_is_not_taken() -> None:
    slow = {(node, precision): 200.0 for node in NODES for precision in TIMES if precision != "fp32"}
    of = subject(Backend(times=slow), "mixed-5e-3")
    assert set(dict(mixes.choose(of).best or ()).values()) == {"fp32"}
    made = planner.plan(of.loaded.graph, BATCH, "cuda", "mixed-5e-3")
    told = mixed.fact(made, of.loaded.graph, "mixed-5e-3", Options())
    assert told == "all in fp32, which is the fastest within the budget"


def test_a_mix_that_is_off_on_images_it_was_not_chosen_by_is_backed_off() -> None:
    def off(mix: Mapping[str, str]) -> float:
        return 2e-3 if "fp16" in mix.values() else 0.0

    first = found(Backend())
    assert "fp16" in first.values()
    stricter = Backend(off)
    other = subject(stricter, images="others")
    assert mixes.wanted(other), "its answers were not looked at on these"
    choice = mixes.choose(other)
    assert set(dict(choice.best or ()).values()) == {"tf32"}
    refused = choice.of(tuple(first.items()))
    assert refused is not None
    assert "above 1e-03" in refused.refused
    assert not mixes.wanted(other)
    assert len(stricter.opened) < 8, "what is known is not measured again"


def test_a_precision_that_does_not_run_is_left_out() -> None:
    assert set(found(Backend(times={("conv2", "fp16"): math.inf})).values()) == {"tf32"}


def test_where_fp16_overflows_bf16_is_tried() -> None:
    """The numbers of one layer are beyond what fp16 holds: only there is bf16 worth a look, though it is no
    faster."""
    within = "mixed-1e-2"
    backend = Backend(shares={("conv2", "fp16"): math.inf})
    assert found(backend, within) == {**dict.fromkeys(NODES, "fp16"), "conv2": "bf16"}
    alone = [mix for mix in backend.opened if sorted(mix.values()) == ["bf16", "fp32", "fp32", "fp32"]]
    assert [mix["conv2"] for mix in alone] == ["bf16"]
    choice = mixes.choose(subject(Backend(shares={("conv2", "fp16"): math.inf}), within))
    (told,) = {tried.refused for tried in choice.tried if "fp16" in dict(tried.variant).get("conv2", "")}
    assert "NaN or infinity" in told


def test_what_layouts_make_of_a_mix_is_looked_at_again() -> None:
    """The layouts of a mix are timed once it is chosen: rungs that they bring may be off by more."""
    laid_out: list[Mix] = []
    choice = mixes.choose(subject(Backend()), laid_out.append)
    assert laid_out == [choice.best]
    laid_out.clear()
    spoilt = Backend(lambda mix: 2e-3 if tuple(mix.items()) in laid_out else 0.0)
    choice = mixes.choose(subject(spoilt, "mixed-1.1e-3"), laid_out.append)
    assert laid_out
    assert choice.best not in laid_out


def test_the_predicted_mix_is_the_best_of_all() -> None:
    random = np.random.default_rng(3)
    for within in (3e-4, 1e-3, 2e-3):
        parts = [
            mixes.Part(
                (f"n{i}",),
                {
                    "fp32": 100.0,
                    "tf32": float(random.integers(40, 99)),
                    "fp16": float(random.integers(20, 70)),
                },
                {"tf32": float(random.uniform(1e-4, 5e-4)), "fp16": float(random.uniform(1e-4, 1e-3))},
            )
            for i in range(5)
        ]

        def of(names: tuple[str, ...], parts: list[mixes.Part] = parts) -> tuple[float, float]:
            pairs = [*zip(parts, names, strict=True)]
            return sum(p.ns[n] for p, n in pairs), math.hypot(*(p.shares.get(n, 0.0) for p, n in pairs))

        mix, ns = mixes.fastest(parts, within)
        taken, error = of(tuple(precision for _, precision in mix))
        best = min(
            t
            for n in itertools.product(("fp32", "tf32", "fp16"), repeat=5)
            for t, e in [of(n)]
            if e <= within
        )
        assert taken == ns
        assert error <= within
        assert ns <= 1.05 * best, "but for what the buckets round up"
    alike = [mixes.Part((n,), {"fp32": 10.0, "fp16": 9.0}, {"fp16": 7e-4}) for n in "abc"]
    assert len({p for _, p in mixes.fastest(alike, 1e-3)[0]}) == 2
    assert {p for _, p in mixes.fastest(alike, 1e-3, change=0.5)[0]} == {"fp32"}, (
        "a change takes more than it gains"
    )


def test_the_images_of_one_row_count_by_themselves() -> None:
    """One image's answer may be far off where all together are not."""
    right = np.array([[100.0, 0.0], [0.1, 0.0]])
    got = right + np.array([[0.0, 0.0], [0.0, 1e-3]])
    assert mixes._largest(got, right) == pytest.approx(1e-2)
    assert mixes._largest(got * np.nan, right) == math.inf
    assert mixes._largest(np.array([[1]]), np.array([[2]])) == math.inf


def test_a_plan_follows_its_mix() -> None:
    graph = network()
    assert mixed.products(graph, BATCH) == NODES
    mix = {"conv1": "fp16", "conv2": "fp16", "conv3": "tf32", "fc4": "fp32"}
    made = planner.plan(graph, BATCH, "cuda", WITHIN, Options(mix=mix))
    assert made.mixed
    assert made.precision == WITHIN
    steps = {step.name: step for step in made.steps}
    assert {node: steps[node].asked for node in NODES} == mix
    assert {node: steps[node].precision for node in NODES} == mix
    assert steps["conv1"].writes != PLAIN, "between two layers of fp16 it is float16 that travels"
    assert (
        mixed.fact(made, graph, WITHIN, Options(mix=mix))
        == "conv1 to conv2 in fp16, conv3 in tf32, fc4 in fp32"
    )
    unknown = planner.plan(graph, BATCH, "cuda", WITHIN)
    assert {step.asked for step in unknown.steps} == {"fp32"}
    assert "was not measured" in mixed.fact(unknown, graph, WITHIN, Options())
    apart = planner.plan(graph, BATCH, "cuda", WITHIN, Options(mix=dict.fromkeys(NODES, "fp16")))
    assert apart.steps == planner.plan(graph, BATCH, "cuda", "fp16").steps


def test_a_kernel_that_is_named_brings_its_precision() -> None:
    graph = network()
    how = Options(rungs={"conv2": "wgmma_tf32"}, mix=dict.fromkeys(NODES, "fp16"))
    made = planner.plan(graph, BATCH, "cuda", WITHIN, how)
    assert {step.name: step.precision for step in made.steps if step.name in NODES} == {
        **dict.fromkeys(NODES, "fp16"), "conv2": "tf32",
    }  # fmt: skip


def test_a_budget_has_one_name() -> None:
    assert precisions.asked("mixed") == precisions.asked("mixed", 1e-3) == "mixed-1e-3"
    assert precisions.asked("fp16", 1e-3) == "fp16"
    assert precisions.budget("mixed-2.5e-4") == 2.5e-4
    assert not any(map(precisions.budget, ("mixed-0.001", "mixed-2", "mixed-", "mixed", "fp16")))
    assert precisions.PROPAGATED_FACTOR * precisions.of("mixed-1e-3").bound == pytest.approx(1e-3)
    assert precisions.known("mixed-1e-3")
    assert not precisions.known("mixed")
