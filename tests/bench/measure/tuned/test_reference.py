"""The tuned reference: the rewriting, the sweep over real sessions, its winners and its record."""

from __future__ import annotations

import functools
from collections import Counter

import msgspec
import numpy as np
import onnx
import pytest
from onnx import helper

import engine.backends
from bench.measure import cases, timing
from bench.measure.answers import oracle
from bench.measure.loaded_model import LoadedModel
from bench.measure.net_contender import NetContender
from bench.measure.net_runner import NetRunner
from bench.measure.tuned import reference as tune_reference
from bench.measure.tuned import sweep as sweeping
from bench.measure.tuned import tuning
from bench.measure.tuned.reference import Subject
from bench.measure.tuned.sweep import DeviceLost, Looks
from bench.results import artifacts
from bench.results.messages import CaseStarted, Log, Measured, Start
from bench.results.records import Job
from bench.run.kinds.comparison import KIND as COMPARISON
from engine import options as ort_configuration
from engine.backend import Options
from engine.backends import get
from engine.backends.ort_cuda_tuned import Tuned
from engine.backends.ort_cuda_tuned import facts as tuned_facts
from engine.graph.importer import from_proto
from engine.options import OPTIMIZATION, Configuration
from engine.ort import tuning as ort_tuning
from engine.ort.fused_conv import fused
from engine.planning import choices
from engine.planning.choices import Choice
from kernels.errors import InputError, KernelError, UnsupportedError
from tests.engine.backends.nets import small_net
from tests.engine.harness import make_model, random

pytestmark = pytest.mark.slow

QUICK = functools.partial(timing.Rules, warmup_s=0.002, rewarm_s=0.001, min_s=0.005, budget_s=0.02)
LOOKS = Looks(final=QUICK(), first_s=0.001, near=1.25, default=True)
CPU = tuple(Configuration((), way, level) for way in (False, True) for level in OPTIMIZATION)


@pytest.fixture(autouse=True)
def _quick(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("bench.measure.net_runner.Rules", lambda **_: QUICK())
    monkeypatch.setattr(tune_reference, "LOOKS", LOOKS)


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "small.onnx"
    onnx.save(small_net().whole_proto(), path)
    return str(path)


def loaded(model, batch=3):
    job = Job(models=(model,), backends=("ort-cpu",), batches=(batch,), dataset="random", threads=1)
    return LoadedModel(model, job, (batch,), lambda *_: None)


def swept(model, backend, configurations, known=None, lost=lambda: False, precision="fp32"):
    """(the sweep, every state of it that was kept)."""
    kept = []
    subject = Subject(backend, loaded(model), 3, precision, Options(threads=1), lost)
    tune_reference.sweep(subject, configurations, kept.append, lambda *_: None, known)
    return kept[-1], kept


# ----------------------------------------------------------------------------------------- the rewriting


def residual(added_shape=("N", 4, 8, 8)):
    """x → conv → + z → Relu, and conv → Relu beside a conv that something else reads too."""
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w1"], ["c1"], "first", pads=[1] * 4),
        node("Add", ["z", "c1"], ["s1"], "add"),
        node("Relu", ["s1"], ["r1"], "relu1"),
        node("Conv", ["r1", "w2", "b2"], ["c2"], "second", pads=[1] * 4),
        node("Relu", ["c2"], ["r2"], "relu2"),
        node("Conv", ["r2", "w2", "b2"], ["c3"], "third", pads=[1] * 4),
        node("Relu", ["c3"], ["r3"], "relu3"),
        node("Add", ["r3", "c3"], ["y"], "sum"),
    ]
    weights = {"w1": random((4, 3, 3, 3), 1), "w2": random((4, 4, 3, 3), 2), "b2": random((4,), 3)}
    proto = make_model(nodes, {"x": ("N", 3, 8, 8), "z": added_shape}, ["y"], weights, ranks={"y": 4})
    return from_proto(proto, "residual")


def test_conv_relu_and_conv_add_relu_become_one_node_and_answer_the_same():
    graph = residual()
    made = fused(graph)
    assert [(node.name, node.op_type) for node in made.proto.graph.node] == [
        ("first", "FusedConv"),
        ("second", "FusedConv"),
        ("third", "Conv"),  # another node reads it before its Relu
        ("relu3", "Relu"),
        ("sum", "Add"),
    ]
    assert list(made.proto.graph.node[0].input) == ["x", "w1", "", "z"]
    assert made.sha256 != graph.sha256
    feeds = {"x": random((2, 3, 8, 8), 5), "z": random((2, 4, 8, 8), 6)}
    expected = oracle.run(graph, feeds, ["y"])["y"]
    # Without ONNX Runtime's own optimisation, which would fuse the plain model too.
    options = Options(threads=1, ort=Configuration(fused_conv=True, optimization="disabled"))
    session = get("ort-cpu").prepare(graph, 2, options=options)
    session.bind(feeds)
    session.run()
    np.testing.assert_allclose(session.fetch()["y"], expected, rtol=1e-4, atol=1e-5)
    assert session.facts["configuration"] == "FusedConv graph_optimization=disabled"
    session.close()


def test_what_would_have_to_be_broadcast_is_left_alone():
    names = [node.op_type for node in fused(residual(added_shape=(1, 4, 1, 1))).proto.graph.node]
    assert names[:3] == ["Conv", "Add", "Relu"]
    bare = from_proto(make_model([helper.make_node("Tanh", ["x"], ["y"])], {"x": ("N", 4)}, ["y"]), "bare")
    assert fused(bare) is bare


# --------------------------------------------------------------------------------------------- the sweep


def test_real_sessions_are_swept_checked_and_timed(model):
    sweep, kept = swept(model, get("ort-cpu"), CPU)
    assert sweep.done
    assert [tried.variant for tried in sweep.tried] == list(CPU)
    assert all(not tried.refused and tried.first_ns and tried.error < 1e-5 for tried in sweep.tried)
    timed = [tried for tried in sweep.tried if tried.time_ns]
    # On a busy machine all others may have been far slower at first: then there is nothing to time.
    found = timed or [sweep.of(CPU[0])]
    assert CPU[0] in [tried.variant for tried in found], "the way untold is the one to beat"
    best = min(found, key=lambda tried: tried.time_ns or 0.0)
    assert sweep.lenient == best.variant
    winner = sweep.of(sweep.best)
    assert winner.strict
    assert winner.layer
    assert 0 < winner.layer_error < 1e-5
    assert kept[0].trying == CPU[0], "noted before it is tried, in case it takes the process with it"


class Doctored:
    """ort-cpu whose configurations do what `deeds` says of them, at the times that `deeds` says (ns)."""

    name, device, reference, precisions, apart = "ort-cpu", "cpu", "ort-cpu", ("fp32",), "ort"

    def __init__(self, deeds):
        self.deeds = deeds
        self.prepared = []

    def prepare(self, graph, batch, precision="fp32", options=None):
        time_ns, change = self.deeds[options.ort]
        if isinstance(change, Exception):
            raise change
        self.prepared.append(options.ort)
        return Altered(get("ort-cpu").prepare(graph, batch, precision, Options(threads=1)), time_ns, change)


class Altered:
    one_thread = False  # its times are what they are, as a whole

    def __init__(self, real, time_ns, change):
        self.real, self.time_ns, self.change = real, time_ns, change

    def __getattr__(self, name):
        return getattr(self.real, name)

    def time_runs(self, count, cold=False):
        return count * self.time_ns

    def fetch(self):
        return {name: self.change(array) for name, array in self.real.fetch().items()}


def named(name):
    return Configuration((("way", name),))


def right(array):
    return array


def off(array):
    return array * np.float32(1.001)


def test_the_fastest_may_be_off_the_strict_one_not_and_faults_are_told(model):
    deeds = {
        named("plain"): (900_000, right),
        named("off"): (100_000, off),
        named("nan"): (1_000, lambda array: array * np.nan),
        named("broken"): (1_000, KernelError("cuDNN says no")),
        named("good"): (400_000, right),
        named("slow"): (2_000_000, right),
    }
    sweep, _ = swept(model, Doctored(deeds), list(deeds))
    assert (sweep.lenient, sweep.best) == (named("off"), named("good"))
    tried = {t.variant: t for t in sweep.tried}
    assert tried[named("nan")].refused.startswith("NaN at index")
    assert tried[named("broken")].refused == "cuDNN says no"
    assert tried[named("slow")].time_ns is None, "clearly slow by the first look"
    assert tried[named("plain")].time_ns == 900_000
    assert tried[named("off")].strict is False
    assert tried[named("off")].layer_error == pytest.approx(1e-3, rel=0.01)


def test_few_are_timed_together_and_two_strict_ones_where_those_are_a_field_of_their_own(model):
    deeds = {
        named("plain"): (900_000, right),
        **{named(f"off{i}"): (100_000 + i, off) for i in range(5)},
        named("good"): (400_000, right),
        named("better"): (400_001, right),
        named("also"): (400_002, right),
    }
    sweep, _ = swept(model, Doctored(deeds), list(deeds))
    assert (sweep.lenient, sweep.best) == (named("off0"), named("good"))
    timed = [tried.variant for tried in sweep.tried if tried.time_ns]
    assert timed == [named(name) for name in ("plain", "off0", "good", "better")]
    assert sweep.of(named("also")).strict is None, "one by one, until enough are right"


def test_what_loses_clearly_is_looked_at_for_a_moment_alone(model, monkeypatch):
    looks = []
    real = sweeping.warm_up
    monkeypatch.setattr(sweeping, "warm_up", lambda session, *how: looks.append(1) or real(session, *how))
    times = {"plain": 100_000, "near": 140_000, "slow": 160_000}
    deeds = {named(name): (time_ns, right) for name, time_ns in times.items()}
    sweep, _ = swept(model, Doctored(deeds), list(deeds))
    assert len(looks) == 2
    assert sweep.of(named("slow")).first_ns == 160_000


class Layered(Doctored):
    """What `change` makes of one layer's answer in a configuration; it counts each layer's sessions."""

    def __init__(self, deeds, change=lambda layer, configuration: right):
        super().__init__(deeds)
        self.change, self.layers = change, []

    def prepare(self, graph, batch, precision="fp32", options=None):
        session = super().prepare(graph, batch, precision, options)
        if len(graph.nodes) < 4:  # not the whole model
            self.layers.append((graph.nodes[0].name, options.ort))
            session.change = self.change(graph.nodes[0].name, options.ort)
        return session


def cuda_deeds():
    """Each configuration of the CUDA provider, the later the faster; all of them off but the first."""
    every = ort_configuration.cuda()
    return {one: (100_000 * (1 - place / 1000), right) for place, one in enumerate(every)}


def test_a_layer_is_looked_at_once_for_all_configurations_that_are_the_same_for_it(model):
    deeds = cuda_deeds()
    first = next(iter(deeds))
    backend = Layered(deeds, lambda layer, one: off if layer == "prob" and one != first else right)
    sweep, _ = swept(model, backend, list(deeds))
    assert sweep.lenient == list(deeds)[-1]
    assert sweep.of(sweep.lenient).layer == "prob"
    assert sweep.of(sweep.lenient).layer_error == pytest.approx(1e-3, rel=0.01)
    looked_at = Counter(layer for layer, _ in backend.layers)
    assert looked_at["conv1"] == 24, "each search may take another algorithm"
    assert looked_at["conv2"] == 12, "no Relu: FusedConv is the same there"
    assert looked_at["prob"] == looked_at["fc3"] == 2, "once in each layout"


def test_a_layer_that_is_wrong_in_one_layout_alone_is_not_taken_for_right_in_it(model):
    deeds = cuda_deeds()

    def change(layer, configuration):
        wide = ("prefer_nhwc", "1") in configuration.provider_options
        return off if layer == "norm1" and wide else right

    sweep, _ = swept(model, Layered(deeds, change), list(deeds))
    tried = [one for one in sweep.tried if one.strict is not None]
    assert {one.strict for one in tried} == {True, False}
    assert all(one.strict is (("prefer_nhwc", "0") in one.variant.provider_options) for one in tried)
    assert ("prefer_nhwc", "0") in sweep.best.provider_options


def test_progress_says_which_layer_is_looked_at_before_it_is(model):
    said = []
    backend = Doctored({named("plain"): (900_000, right)})
    prepare = backend.prepare

    def noted(graph, *rest):
        said.append(graph.nodes[0].name)
        return prepare(graph, *rest)

    backend.prepare = noted
    subject = Subject(backend, loaded(model), 3, "fp32", Options(threads=1))
    tune_reference.sweep(subject, [named("plain")], lambda _: None, lambda text, _: said.append(text))
    place = said.index("checking conv2 of way=plain")
    assert said[place + 1] == "conv2"


class Fickle(Doctored):
    """What `later` says of a configuration is done to the answers of its sessions from that one on: (how many
    are right at first, what is then done). Sessions of layers are right and not counted."""

    def __init__(self, deeds, later):
        super().__init__(deeds)
        self.later, self.made = later, Counter()

    def prepare(self, graph, batch, precision="fp32", options=None):
        session = super().prepare(graph, batch, precision, options)
        if len(graph.nodes) >= 4:  # the whole model
            self.made[options.ort] += 1
            right_ones, change = self.later.get(options.ort, (0, session.change))
            if self.made[options.ort] > right_ones:
                session.change = change
        return session


IN_THE_SWEEP = 2  # sessions of a configuration before it is confirmed: as it is tried, and timed


def test_a_winner_that_is_wrong_in_a_second_session_is_no_winner_within_the_bound(model):
    deeds = {
        named("plain"): (900_000, right),
        named("fickle"): (100_000, right),
        named("good"): (110_000, right),
    }
    said = []
    backend = Fickle(deeds, {named("fickle"): (IN_THE_SWEEP, off)})
    subject = Subject(backend, loaded(model), 3, "fp32", Options(threads=1))
    kept = []
    sweep = tune_reference.sweep(subject, list(deeds), kept.append, lambda text, _: said.append(text))
    assert (sweep.lenient, sweep.best) == (named("fickle"), named("good"))
    doubted = sweep.of(named("fickle"))
    assert doubted.strict, "its layers were right"
    assert doubted.within, "and so was its answer, at first"
    assert doubted.doubt.startswith("in a second session: relative L2 error 1")
    assert f"way=fickle is not taken for right: {doubted.doubt}" in said
    assert not sweep.of(named("good")).doubt
    told = tuned_facts(sweep, named("good"))
    assert told["tuned_doubted"] == f"way=fickle: {doubted.doubt}"
    assert not sweep.unfinished
    assert kept[-1] == sweep


def test_what_gives_no_answer_in_a_second_session_is_refused(model):
    deeds = {named("plain"): (900_000, right), named("fickle"): (100_000, right)}
    backend = Fickle(deeds, {named("fickle"): (IN_THE_SWEEP, lambda array: array * np.nan)})
    sweep, _ = swept(model, backend, list(deeds))
    assert sweep.lenient == sweep.best == named("plain")
    assert sweep.of(named("fickle")).refused.startswith("in a second session: NaN at index")


def test_where_all_that_were_timed_are_doubted_those_that_follow_are_timed(model):
    deeds = {
        named("plain"): (900_000, right),
        **{named(f"fickle{i}"): (100_000 + i, right) for i in range(4)},
        named("good"): (400_000, right),
    }
    later = {one: (IN_THE_SWEEP, off) for one in deeds if one not in (named("plain"), named("good"))}
    later[named("plain")] = (IN_THE_SWEEP, off)
    sweep, _ = swept(model, Fickle(deeds, later), list(deeds))
    assert sweep.best == named("good"), "slower by far, and right"
    assert sweep.of(named("good")).time_ns == 400_000
    assert sweep.lenient == named("fickle0")


def test_where_all_are_wrong_in_a_second_session_there_is_none_and_the_reason_is_told(model):
    deeds = {named("plain"): (900_000, right), named("fast"): (100_000, right)}
    sweep, _ = swept(model, Fickle(deeds, dict.fromkeys(deeds, (IN_THE_SWEEP, off))), list(deeds))
    assert sweep.done
    assert sweep.best is None
    assert sweep.lenient == named("fast")
    assert all(tried.doubt for tried in sweep.tried)
    assert not sweep.unfinished, "there is nothing else to look at"


def test_an_answer_beyond_the_bound_is_not_taken_for_right_however_its_layers_are(model):
    deeds = {named("plain"): (900_000, right), named("off"): (100_000, right)}
    backend = Fickle(deeds, {named("off"): (0, off)})
    sweep, _ = swept(model, backend, list(deeds))
    assert (sweep.lenient, sweep.best) == (named("off"), named("plain"))
    assert sweep.of(named("off")).within is False


def test_a_configuration_that_takes_the_process_with_it_is_passed_over(model):
    deeds = {named("plain"): (900_000, right), named("fatal"): (100_000, right)}
    _, kept = swept(model, Doctored(deeds), [named("plain")])
    halfway = msgspec.structs.replace(kept[-1], done=False, trying=named("fatal"), attempts=1)
    again = Doctored(deeds)
    sweep, kept = swept(model, again, list(deeds), halfway)
    assert sweep.lenient == named("fatal"), "once may have been the user's doing"
    assert max(state.attempts for state in kept) == 2
    twice = Doctored(deeds)
    sweep, _ = swept(model, twice, list(deeds), msgspec.structs.replace(halfway, attempts=2))
    assert "process ended" in sweep.of(named("fatal")).refused
    assert sweep.lenient == named("plain")
    assert named("fatal") not in twice.prepared


def test_a_lost_device_ends_the_process_and_is_told_of_the_configuration(model):
    deeds = {named("plain"): (900_000, right), named("fatal"): (100_000, KernelError("illegal access"))}
    kept = []
    subject = Subject(Doctored(deeds), loaded(model), 3, "fp32", Options(), lambda: True)
    with pytest.raises(DeviceLost, match="way=fatal broke the device's context"):
        tune_reference.sweep(subject, list(deeds), kept.append, lambda *_: None)
    assert kept[-1].of(named("fatal")).refused == "illegal access"


# ------------------------------------------------------------------------------------- in a comparison


@pytest.fixture
def tuned(monkeypatch):
    """As if ort-cpu were what can be tuned, over `CPU`."""
    plain = get("ort-cpu")
    variants = [
        Tuned(plain, "ort-cpu-tuned", "tuned", strict=False),
        Tuned(plain, "ort-cpu-tuned-strict", "tuned, strict", strict=True),
    ]
    found = {backend.name: backend for backend in (get("engine-cpu"), plain, *variants)}
    monkeypatch.setattr(engine.backends, "_found", lambda: found)
    monkeypatch.setattr(ort_configuration, "cuda", lambda: CPU[:2] + CPU[4:6])
    return variants


def go(job, folder="", messages=None):
    messages = [] if messages is None else messages
    # Planned here: another process would not know of these backends.
    NetRunner(Start(job=job, cases=cases.plan(job), folder=str(folder)), messages.append, lambda: False).run()
    return {m.measurement.case.backend: m.measurement for m in messages if isinstance(m, Measured)}, [
        m.case.backend for m in messages if isinstance(m, CaseStarted) and m.stage == "tune"
    ]


@pytest.mark.sampled(4, "long")
def test_default_and_tuned_are_rows_each_and_the_sweep_is_made_once(model, tuned):
    job = Job(
        models=(model,),
        backends=("ort-cpu",),
        batches=(3,),
        dataset="random",
        threads=1,
        budget_s=0.05,
        tune_reference=True,
    )
    found, swept_for = go(job)
    assert set(found) == {"ort-cpu", "ort-cpu-tuned", "ort-cpu-tuned-strict"}
    assert swept_for == ["ort-cpu-tuned"], "the other winner comes of the same sweep"
    for name in ("ort-cpu-tuned", "ort-cpu-tuned-strict"):
        one = found[name]
        assert (one.disposition, one.reason, one.reference) == ("ok", "", "ort-cpu")
        assert one.facts["tuned_among"] == "4 configurations"
        assert one.facts["tuned_at"].startswith("20")
        assert "onnxruntime" in one.facts["tuned_on"]
        assert "relative L2 error" in one.facts["tuned_worst_layer"]
        assert one.facts["configuration"]
        assert one.accuracy.output.rel_l2 < 1e-5
        conv = next(layer for layer in one.layers if layer.op_type == "Conv")
        assert conv.isolated is not None
        assert conv.isolated.ok
    found, swept_for = go(job)
    assert not swept_for, "kept on disk"
    plain, _ = go(msgspec.structs.replace(job, tune_reference=False, backends=()))
    assert set(plain) == {"engine-cpu", "ort-cpu"}, "only where they are asked for"


def test_without_a_sweep_it_is_refused_in_words(model, tuned):
    job = Job(models=(model,), backends=("ort-cpu-tuned",), batches=(3,), dataset="random", budget_s=0.05)
    found, _ = go(job)
    assert found["ort-cpu-tuned"].disposition == "unsupported"
    assert "compare --tune-reference does that" in found["ort-cpu-tuned"].reason


def chosen(monkeypatch, model, deeds, doctored=None):
    """Two variants of a doctored ort-cpu that was swept over `deeds`; a job of them."""
    doctored, real = doctored or Doctored(deeds), get("ort-cpu")
    doctored.supports, doctored.unavailable = real.supports, real.unavailable
    variants = [Tuned(doctored, "lenient", "", strict=False), Tuned(doctored, "strict", "", strict=True)]
    listed = {b.name: b for b in variants} | {"ort-cpu": real}
    sweep, _ = swept(model, doctored, list(deeds))
    ort_tuning.write("ort-cpu", loaded(model).graph, 3, "fp32", sweep)
    monkeypatch.setattr(engine.backends, "_found", lambda: listed)
    return Job(
        models=(model,),
        backends=("ort-cpu", "lenient", "strict"),
        batches=(3,),
        dataset="random",
        threads=1,
        budget_s=0.02,
    )


def test_what_is_the_same_is_measured_once(model, monkeypatch, tmp_path):
    deeds = {named("plain"): (900_000, right), named("good"): (400_000, right)}
    job, messages = chosen(monkeypatch, model, deeds), []
    found, _ = go(job, tmp_path, messages)
    begun = {m.case.backend for m in messages if isinstance(m, CaseStarted)}
    assert begun == {"ort-cpu", "strict"}
    assert set(found) == {"ort-cpu", "strict", "lenient"}
    own, other = found["strict"], found["lenient"]
    assert other.facts["measured_as"] == "strict: the same configuration"
    assert "measured_as" not in own.facts
    assert "measured_as" not in found["ort-cpu"].facts
    assert own.samples_ns
    assert own.layers
    case, facts = other.case, {**own.facts, "measured_as": other.facts["measured_as"]}
    assert other == msgspec.structs.replace(own, case=case, facts=facts)
    for kind in COMPARISON.parts:
        one, copy = (artifacts.path(tmp_path, kind, m.case) for m in (own, other))
        assert one.read_bytes() == copy.read_bytes()


def test_what_differs_is_measured_each(model, monkeypatch):
    deeds = {named("plain"): (900_000, right), named("off"): (100_000, off), named("good"): (400_000, right)}
    found, _ = go(chosen(monkeypatch, model, deeds))
    assert {one.facts.get("measured_as") for one in found.values()} == {None}
    assert {one.disposition for one in found.values()} == {"ok"}
    assert found["strict"].facts["tuned_worst_layer"] != found["lenient"].facts["tuned_worst_layer"]


def test_a_kept_winner_that_comes_wrong_later_makes_room_for_the_next_best(model, monkeypatch):
    """Wrong at once, in the session that is to be timed; and only in another instance of it."""
    for instances in (1, 2):
        deeds = {
            named("plain"): (900_000, right),
            named("fickle"): (100_000, right),
            named("good"): (110_000, right),
        }
        later = {named("fickle"): (IN_THE_SWEEP + instances, off)}
        job, messages = chosen(monkeypatch, model, deeds, Fickle(deeds, later)), []
        job = msgspec.structs.replace(job, backends=("ort-cpu", "strict"), instances=instances)
        found, _ = go(job, messages=messages)
        kept = ort_tuning.read("ort-cpu", loaded(model).graph, 3, "fp32")
        assert kept.best == named("good")
        assert kept.lenient == named("fickle"), "by the loosest bound it is right"
        assert "relative L2 error 1" in kept.of(named("fickle")).doubt
        told = [m.text for m in messages if isinstance(m, Log)]
        assert len(told) == 1
        assert "way=fickle came wrong where it was right when tuned; way=good is taken instead" in told[0]
        if instances > 1:  # too late for this run
            assert found["strict"].disposition == "incorrect"
            found, _ = go(job)
        assert (found["strict"].disposition, found["strict"].reason) == ("ok", "")
        assert found["strict"].facts["tuned_doubted"].startswith("way=fickle: ")


def test_who_was_to_be_spoken_for_by_a_winner_that_came_wrong_is_measured(model, monkeypatch):
    deeds = {named("plain"): (900_000, right), named("fickle"): (100_000, right)}
    job = chosen(monkeypatch, model, deeds, Fickle(deeds, {named("fickle"): (IN_THE_SWEEP + 1, off)}))
    found, _ = go(job)
    assert {name: one.disposition for name, one in found.items()} == {
        "ort-cpu": "ok",
        "lenient": "ok",
        "strict": "ok",
    }
    assert "measured_as" not in found["lenient"].facts
    assert found["lenient"].accuracy.output.rel_l2 == pytest.approx(1e-3, rel=0.01)
    assert found["strict"].accuracy.output.rel_l2 < 1e-5


def test_where_nothing_kept_is_right_the_case_says_so_and_the_sweep_may_go_on(model, monkeypatch):
    deeds = {named("plain"): (900_000, right), named("fast"): (100_000, right)}
    wrong = {named("plain"): (IN_THE_SWEEP, off), named("fast"): (IN_THE_SWEEP + 1, off)}
    job = chosen(monkeypatch, model, deeds, Fickle(deeds, wrong))
    job, messages = msgspec.structs.replace(job, backends=("strict",)), []
    found, _ = go(job, messages=messages)
    assert found["strict"].disposition == "incorrect"
    assert found["strict"].reason.startswith("before timing: relative L2 error 1")
    told = [m.text for m in messages if isinstance(m, Log)]
    assert ["way=plain is taken instead" in text for text in told] == [True, False]
    assert "nothing else that is known to be right is taken" in told[1]
    found, _ = go(job)
    assert found["strict"].disposition == "unsupported"
    assert "no configuration of ort-cpu runs small" in found["strict"].reason
    assert "way=plain, before timing: relative L2" in found["strict"].reason
    kept = ort_tuning.read("ort-cpu", loaded(model).graph, 3, "fp32")
    assert all(tried.doubt for tried in kept.tried)
    assert not kept.unfinished
    untried = msgspec.structs.replace(kept.of(named("fast")), doubt="", strict=None)
    more = msgspec.structs.replace(kept, tried=(*kept.tried, untried))
    assert more.unfinished, "one that was not looked at may be right"


def test_a_record_that_cannot_be_changed_costs_no_more_than_the_case(model, monkeypatch):
    deeds = {named("plain"): (900_000, right), named("fast"): (100_000, right)}
    job = chosen(monkeypatch, model, deeds, Fickle(deeds, {named("fast"): (IN_THE_SWEEP + 1, off)}))

    def full(*_):
        raise KernelError("what was tuned cannot be kept: no space left on device")

    monkeypatch.setattr(ort_tuning, "write", full)
    found, _ = go(msgspec.structs.replace(job, backends=("strict",)))
    assert found["strict"].disposition == "incorrect"
    assert found["strict"].reason.startswith("before timing: relative L2 error 1")


def test_where_the_one_that_speaks_for_the_other_fails_both_are_measured(model, monkeypatch):
    """Before it is timed, and after."""
    for late in (False, True):
        deeds = {named("plain"): (900_000, right), named("good"): (400_000, right)}
        job, messages = chosen(monkeypatch, model, deeds), []
        stage = "check_again" if late else "prepare"
        real = getattr(NetContender, stage)

        def failing(self, *given, real=real):
            if self.case.backend == "strict":
                raise KernelError("cuDNN says no")
            return real(self, *given)

        with monkeypatch.context() as patched:
            patched.setattr(NetContender, stage, failing)
            found, _ = go(job, messages=messages)
        assert {name: one.disposition for name, one in found.items()} == {
            "ort-cpu": "ok",
            "lenient": "ok",
            "strict": "failed",
        }
        assert "measured_as" not in found["lenient"].facts
        timed = [m.case.backend for m in messages if isinstance(m, CaseStarted) and m.stage == "time"]
        assert "lenient" in timed
        assert sum(isinstance(m, Measured) for m in messages) == 3, "each is settled once"


def test_a_lenient_answer_counts_and_shows_how_far_off_it_is(model, tuned, monkeypatch):
    deeds = {named("plain"): (900_000, right), named("off"): (100_000, off)}
    doctored = Doctored(deeds)
    real = get("ort-cpu")
    doctored.supports, doctored.unavailable = real.supports, real.unavailable
    variants = [Tuned(doctored, "off", "", strict=False), Tuned(doctored, "strict", "", strict=True)]
    monkeypatch.setattr(
        engine.backends, "_found", lambda: {b.name: b for b in (doctored, *variants)} | {"ort-cpu": real}
    )
    graph = loaded(model).graph
    sweep, _ = swept(model, doctored, list(deeds))
    ort_tuning.write("ort-cpu", graph, 3, "fp32", sweep)
    job = Job(models=(model,), backends=("off", "strict"), batches=(3,), dataset="random", budget_s=0.02)
    found, _ = go(job)
    assert {name: one.disposition for name, one in found.items()} == {"off": "ok", "strict": "ok"}
    assert found["off"].accuracy.output.rel_l2 == pytest.approx(1e-3, rel=0.01)
    layer = next(layer for layer in found["off"].layers if layer.op_type == "Conv")
    assert not layer.isolated.ok
    assert "1e-05" in layer.isolated.reason


def test_where_no_configuration_is_strict_that_is_said(model, tuned):
    graph = loaded(model).graph
    sweep, _ = swept(model, Doctored({named("off"): (100_000, off)}), [named("off")])
    ort_tuning.write("ort-cpu", graph, 3, "fp32", sweep)
    strict = tuned[1]
    assert "with every layer and its answer within the bound" in strict.supports(graph, 3, "fp32")
    with pytest.raises(UnsupportedError):
        strict.prepare(graph, 3)


def test_the_cuda_sweep_leaves_out_what_is_the_same_model():
    assert len(tuning.configurations(small_net())) == 24
    plain = from_proto(make_model([helper.make_node("Tanh", ["x"], ["y"])], {"x": ("N", 4)}, ["y"]), "bare")
    assert len(tuning.configurations(plain)) == 12
    assert ort_configuration.cuda()[0].words == (
        "cudnn_conv_algo_search=EXHAUSTIVE prefer_nhwc=0 fuse_conv_bias=0"
    )


def test_a_machine_without_the_reference_is_told_so(model):
    if get("ort-cuda").unavailable() is None:
        pytest.skip("ort-cuda can run here")
    from bench.measure import cases

    with pytest.raises(InputError, match=r"no reference to tune here.*ort-cpu does not have"):
        cases.plan(Job(models=(model,), backends=(), tune_reference=True))


def test_an_entry_is_found_by_its_very_case_and_what_it_stands_on_and_a_broken_file_is_none():
    case, on = {"gpu": "H", "batch": "1"}, {"sources": "a"}
    part = choices.Part("reference", Choice[Configuration])
    found = Choice(default=named("a"), best=named("b"), done=True)
    part.write(case, on, found)
    assert part.read(case, on) == found
    assert part.read(case | {"batch": "2"}, on) is None
    assert part.read(case, {"sources": "b"}) is None
    choices.Part("other", bool).write(case, {}, True)
    part.write(case, {"sources": "b"}, Choice(default=named("a")))
    assert part.read(case, on) == found, "what else is written to the file stands beside it"
    (file,) = (choices.STORE.folder() / choices.CASES).glob("*.json")
    assert choices.Part("other", int).read(case, {}) is None
    part.forget(case, on)
    assert part.read(case, on) is None
    assert part.read(case, {"sources": "b"}) is not None
    for number in range(choices.MOST_ENTRIES):
        part.write(case, {"sources": str(number)}, found)
    assert part.read(case, {"sources": "b"}) is None, "the oldest goes"
    for broken in (b'{"version": 1, "key"', b"[]", file.read_bytes().replace(b'"on"', b'"of"')):
        file.write_bytes(broken)
        assert part.read(case, {"sources": "1"}) is None
    part.write(case, on, found)
    assert part.read(case, on) == found


@pytest.mark.sampled(2)
@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # CuPy may be behind NumPy's newest
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_on_a_gpu_the_providers_options_are_swept(model, precision):
    if reason := get("ort-cuda").unavailable():
        pytest.skip(reason)
    job = Job(
        models=(model,),
        backends=("ort-cuda",),
        precisions=(precision,),
        batches=(3,),
        dataset="random",
        budget_s=0.05,
        tune_reference=True,
    )
    found, _ = go(job)
    assert sorted(found) == ["ort-cuda", "ort-cuda-tuned", "ort-cuda-tuned-strict"]
    assert {one.disposition for one in found.values()} == {"ok"}
    sweep = ort_tuning.read("ort-cuda", loaded(model).graph, 3, precision)
    assert len(sweep.tried) == 24
    assert sum(tried.first_ns is not None for tried in sweep.tried) >= 6
    assert all(tried.first_ns or tried.refused for tried in sweep.tried), "each was run, or says why not"
    assert found["ort-cuda-tuned"].facts["cudnn_conv_algo_search"]
    assert found["ort-cuda-tuned-strict"].accuracy.output.ok
