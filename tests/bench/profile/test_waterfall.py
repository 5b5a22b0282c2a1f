"""Where the time between two profiles went: one thing planted in a recorded one is the step that is named,
and what has a name explains nearly all of the change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

import main
from bench.results.event_files import write_events
from bench.results.events import Activity, HostSpan
from bench.run.kinds.profile import KIND
from bench.views.diff import profile_waterfall as waterfall
from bench.views.diff import waterfall as waterfall_chart
from bench.views.diff.between import between as diff_between
from bench.views.diff.profile_diff import NO_VERDICT, OTHER_WORK
from bench.views.sentences import diff_sentences as sentences
from tests.bench.profile.planted_changes import (
    CPU,
    H200,
    Recorded,
    alone,
    busy,
    call,
    changed,
    inserted,
    of_node,
    passes,
    recorded,
    slowed,
    stage,
    with_more,
)

MORE = 40_000  # ns a pass, of 87,552


def ours() -> Recorded:
    return recorded(H200, "engine-cuda")


def theirs() -> Recorded:
    return recorded(H200, "ort-cuda")


def on_cpu() -> Recorded:
    return recorded(CPU, "engine-cpu")


def slower_rung(of: Recorded) -> Recorded:
    made, events = of
    slow = slowed(events, [(*alone(events, step), MORE) for step in of_node(events, "conv2")])
    operators = tuple(
        msgspec.structs.replace(op, rung="naive") if "conv2" in op.nodes else op for op in made.operators
    )
    slow = changed(slow, lambda e: isinstance(e, HostSpan) and "conv2" in e.nodes, rung="naive")
    return msgspec.structs.replace(made, operators=operators), slow


def copy(of: Recorded) -> Recorded:
    made, events = of

    def make(start: int, end: int, number: int) -> list:
        copied = Activity(
            name="memcpy HtoD", kind="memcpy", copy="HtoD", start_ns=start + 2000, end_ns=end, nbytes=1 << 20,
            correlation=9000 + number, from_memory="pageable", to_memory="device", run=number,
        )  # fmt: skip
        return [call("cudaMemcpyAsync_v3020", start, start + 1900, 9000 + number), copied]

    return made, inserted(events, lambda mark: stage(events, mark.run, "run").start_ns, MORE, make)


def synchronisation(of: Recorded) -> Recorded:
    made, events = of
    return made, inserted(
        events,
        lambda mark: stage(events, mark.run, "fetch").start_ns + 1,
        MORE,
        lambda start, end, number: [call("cudaDeviceSynchronize_v3020", start, end, 9000 + number)],
    )


def allocation(of: Recorded) -> Recorded:
    made, events = of
    return made, inserted(
        events,
        lambda mark: stage(events, mark.run, "bind").start_ns + 1,
        MORE,
        lambda start, end, number: [
            call("cudaMalloc_v3020", start, start + MORE // 2),
            call("cudaFree_v3020", start + MORE // 2, end),
        ],
    )


def lower_clock(of: Recorded) -> Recorded:
    """A quarter slower while anything of the model runs on the device."""
    made, events = of
    spans = []
    for mark in passes(events):
        kernels = [
            a for a in events.activities if a.kind == "kernel" and mark.start_ns <= a.start_ns < mark.end_ns
        ]
        low, high = min(k.start_ns for k in kernels), max(k.end_ns for k in kernels)
        spans.append((low, high, (high - low) // 4))
    seen = msgspec.structs.replace(made.telemetry, sm_clock_mhz=(1584.0, 1584.0))
    return msgspec.structs.replace(made, telemetry=seen), slowed(events, spans)


def lost_graph(of: Recorded) -> Recorded:
    """Between the kernels of a pass the device waits for the next launch."""
    made, events = of

    def make(start: int, end: int, number: int) -> list:
        return [
            call("cudaLaunchKernel_v7000", start + 5000 * i, start + 5000 * i + 4999, 0) for i in range(8)
        ]

    told = {**made.facts, "profiled_cuda_graph": "no: not asked for"}
    return msgspec.structs.replace(made, facts=told), inserted(
        events, lambda mark: stage(events, mark.run, "synchronize").start_ns, MORE, make
    )


def host(of: Recorded) -> Recorded:
    made, events = of
    starts = [stage(events, mark.run, "bind").start_ns + 1 for mark in passes(events)]
    return made, busy(slowed(events, [(start, start, MORE) for start in starts]), MORE)


def unfused(of: Recorded) -> Recorded:
    """What was one kernel, pool2 with tanh2, is two, the second of its own."""
    made, events = of
    ends = [step.end_ns for step in of_node(events, "pool2")]
    split = inserted(
        changed(events, lambda e: "pool2" in e.nodes, nodes=("pool2",)),
        lambda mark: of_node(events, "prob")[mark.run].end_ns,
        MORE,
        lambda start, end, number: [
            Activity(name="tanh", kind="kernel", start_ns=start, end_ns=end, nodes=("tanh2",), op_type="Tanh",
                     run=number)
        ],
    )  # fmt: skip
    assert ends
    return made, split


def staging(of: Recorded) -> Recorded:
    made, events = of
    return made, inserted(
        events,
        lambda mark: stage(events, mark.run, "bind").start_ns + 1,
        MORE,
        lambda start, end, number: [
            HostSpan(name="into pinned memory", kind="staging", start_ns=start, end_ns=end, nbytes=1 << 20)
        ],
    )


def other_kernel(of: Recorded) -> Recorded:
    """Of a library: another algorithm for one layer."""
    made, events = of
    kernels = [e for e in of_node(events, "fc4") if isinstance(e, Activity) and e.kind == "kernel"]
    slow = slowed(events, [(k.start_ns, k.end_ns, MORE) for k in kernels[: len(kernels) // 2 or 1]])
    return made, changed(
        slow,
        lambda e: isinstance(e, Activity) and e.kind == "kernel" and "fc4" in e.nodes,
        name="another_sgemm",
    )


PLANTED: list[tuple[Callable[[Recorded], Recorded], Callable[[], Recorded], str, str, str]] = [
    (slower_rung, ours, "kernel", "conv2", "naive"),
    (slower_rung, on_cpu, "kernel", "conv2", "rung batched_im2col → naive"),
    (copy, ours, "h2d", "copy in", "1 → 2 a pass, 49.0 KiB → 1.05 MiB"),
    (synchronisation, ours, "sync", "synchronisation: cudaDeviceSynchronize", "0 → 1 a pass"),
    (synchronisation, theirs, "sync", "synchronisation: cudaDeviceSynchronize", "0 → 1 a pass"),
    (allocation, ours, "alloc", "allocation: cuda", "0 → 1 a pass"),
    (lower_clock, ours, "clock", "lower clock", "1,980 → 1,584 MHz"),
    (lost_graph, ours, "launch", "launch gaps", "1 → 9 launches a pass"),
    (host, ours, "host", "host", ""),
    (host, on_cpu, "host", "host", ""),
    (unfused, ours, "kernel", "pool2 … tanh2", "1 → 2 kernels a pass"),
    (staging, ours, "staging", "staging", "0 → 1 a pass"),
    (other_kernel, theirs, "kernel", "fc4", "another_sgemm"),
]


def fall(before: Recorded, after: Recorded):
    return waterfall.between(*before, *after)


@pytest.mark.parametrize(
    ("plant", "of", "what", "label", "note"), PLANTED, ids=lambda value: getattr(value, "__name__", None)
)
def test_what_was_planted_is_named_and_explains_the_change(plant, of, what, label, note):
    before = of()
    if what == "clock":
        seen = msgspec.structs.replace(before[0].telemetry, sm_clock_mhz=(1980.0, 1980.0))
        before = msgspec.structs.replace(before[0], telemetry=seen), before[1]
    found = fall(before, plant(before))
    assert sum(step.change_ns for step in found.steps) == pytest.approx(found.change_ns)
    own = [step for step in found.steps if step.what == what and step.label.startswith(label)]
    assert sum(step.change_ns for step in own) == pytest.approx(found.change_ns, rel=0.05)
    assert note in own[0].note
    assert found.explained >= 0.95
    assert own[0] is found.steps[0]
    assert own[0].label in sentences.waterfall(found)
    back = fall(plant(before), before)
    assert back.change_ns == pytest.approx(-found.change_ns)
    assert back.explained >= 0.95


@pytest.mark.parametrize(("folder", "backend"), [(CPU, "engine-cpu"), (CPU, "ort-cpu")])
def test_a_smaller_batch_is_named_as_it_was_recorded(folder: Path, backend: str):
    """256 images and 16 as each was profiled: what the batch asks, and what each step makes of it."""
    large, small = recorded(folder, backend, 256), recorded(folder, backend, 16)
    found = fall(large, small)
    step = next(step for step in found.steps if step.what == "batch")
    assert (step.label, step.note) == ("batch 256 → 16", "0.0625× the images")
    assert step is found.steps[0]
    assert found.explained >= 0.95
    assert sum(each.change_ns for each in found.steps) == pytest.approx(found.change_ns)


def test_two_at_once_are_told_apart():
    before = ours()
    found = fall(before, synchronisation(slower_rung(before)))
    largest = {step.label: step.change_ns for step in found.steps[:2]}
    assert largest == {
        "conv2": pytest.approx(MORE, rel=0.05),
        "synchronisation: cudaDeviceSynchronize": pytest.approx(MORE, rel=0.05),
    }


def test_what_nobody_recorded_has_no_name():
    """Time that passes between two stages: it is not given to anything."""
    made, events = before = ours()
    ends = [stage(events, mark.run, "bind").end_ns + 100 for mark in passes(events)]
    found = fall(before, (made, slowed(events, [(at, at, MORE) for at in ends])))
    assert found.steps[-1].what == "rest"
    assert found.steps[-1].change_ns == pytest.approx(MORE)
    assert found.explained < 0.05


def test_a_kernel_slower_than_its_clock_keeps_what_the_clock_does_not_explain():
    before = ours()
    seen = msgspec.structs.replace(before[0].telemetry, sm_clock_mhz=(1980.0, 1980.0))
    found = fall(
        (msgspec.structs.replace(before[0], telemetry=seen), before[1]), lower_clock(slower_rung(before))
    )
    steps = {step.label: step.change_ns for step in found.steps}
    assert steps["conv2"] == pytest.approx(1.25 * MORE, rel=0.05)
    assert 0 < steps["lower clock"] < 8000


def test_a_host_without_a_core_is_told_as_far_as_its_clock_shows_it():
    """Beyond what steps may have waited for their threads, which takes no core either."""
    made, events = before = on_cpu()
    starts = [stage(events, mark.run, "bind").start_ns + 1 for mark in passes(events)]
    found = fall(before, (made, slowed(events, [(start, start, 500 * MORE) for start in starts])))
    assert found.steps[0].label == "no core for the host's thread"
    assert found.steps[0].change_ns > 0.95 * found.change_ns
    assert found.explained >= 0.95


def test_what_did_not_change_has_no_steps():
    found = fall(ours(), ours())
    assert (found.steps, found.change_ns, found.explained) == ((), 0, None)
    assert sentences.waterfall(found) == "From 87.4 µs to 87.4 µs a pass (±0 s)."


def test_a_slow_pass_among_five_is_no_change():
    made, events = before = on_cpu()
    slowest = max(passes(events), key=lambda mark: mark.time_ns)
    step = next(s for s in of_node(events, "conv2") if slowest.start_ns <= s.start_ns < slowest.end_ns)
    found = fall(before, (made, slowed(events, [(step.start_ns, step.end_ns, 50 * MORE)])))
    assert found.change_ns == 0


@pytest.mark.parametrize(("ticks", "sure"), [(1, False), (3, True)])
def test_a_change_that_a_clock_cannot_tell_apart_is_not_sure(ticks: int, sure: bool):
    """ONNX Runtime's profile counts in µs: a tick more in every pass may be next to nothing."""
    made, events = recorded(CPU, "ort-cpu")
    spans = [span for span in of_node(events, "prob") if span.kind == "node"]

    def lasting(ns: int) -> Recorded:
        return made, slowed(events, [(span.start_ns, span.end_ns, ns - span.time_ns) for span in spans])

    step = next(s for s in fall(lasting(8_000), lasting(8_000 + 1_000 * ticks)).steps if s.label == "prob")
    assert (round(step.change_ns), step.sure) == (1_000 * ticks, sure)


def test_a_step_is_as_uncertain_as_in_the_passes_that_its_mean_is_of():
    """Passes are chosen by their walls: where one of those in the middle has a step that is longer, it is not
    left out as the longest of that step's own times would be."""
    made, events = on_cpu()
    ordered = sorted(passes(events), key=lambda mark: mark.time_ns)

    def longer(node: str, number: int, more: int) -> list[tuple[int, int, int]]:
        mark = ordered[number]
        found = [step for step in of_node(events, node) if mark.start_ns <= step.start_ns < mark.end_ns]
        return [(step.start_ns, step.end_ns, more) for step in found]

    slow = longer("fc3", -1, 900_000)
    before, after = (slowed(events, [*slow, *more]) for more in ([], longer("conv2", 2, 300_000)))
    found = fall((made, before), (made, after))
    step = next(step for step in found.steps if step.label.startswith("conv2"))
    assert round(step.change_ns) == 100_000
    assert not step.sure


def test_one_engine_against_another_by_nodes():
    """Ours runs a layer as one step, ONNX Runtime as several: they stand in one line."""
    found = fall(theirs(), ours())
    labels = [step.label for step in found.steps if step.what == "kernel"]
    assert any(label.startswith("pool1") or "tanh1" in label for label in labels)
    nodes = [label for label in labels if "conv2" in label]
    assert len(nodes) == 1
    assert found.explained >= 0.8


# ------------------------------------------------------------------------------------- on the disk and drawn


def saved(folder: Path, of: Recorded, name: str = "") -> Path:
    """A profile of the one case."""
    held = KIND.open(H200)
    made, events = of
    header = msgspec.structs.replace(held.header, cases=(made.case,))
    kept = KIND.create(folder, header)
    with kept:
        file = write_events(folder, made.case.key, events)
        kept.append(msgspec.structs.replace(made, file=file))
    return folder


def test_the_command_tells_draws_and_gates(tmp_path, capsys):
    a, b = saved(tmp_path / "a", ours()), saved(tmp_path / "b", copy(slower_rung(ours())))
    assert main.main(["runs", "diff", str(a), str(b), "--charts", "svg", "--out", str(tmp_path)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "From 87.4 µs to 167 µs a pass" in out
    assert "% of the change has a name" in out
    assert "no verdict follows" in out
    drawn = (tmp_path / "diff-waterfall.svg").read_text()
    for text in ("conv2", "copy in", "takes longer in B"):
        assert text in drawn
    assert main.main(["runs", "diff", str(a), str(b), "--fail-on", "slower"]) == 2, "nothing to go by"
    assert main.main(["runs", "diff", str(a), str(b), "--fail-on", "wrong"]) == 0


def test_the_charts_steps_lead_from_a_to_b(tmp_path):
    diff = diff_between(saved(tmp_path / "a", ours()), saved(tmp_path / "b", copy(slower_rung(ours()))))
    (chart,) = waterfall_chart.charts(diff)
    bars = chart.panels[0].bars
    level = bars[0].parts[0].value
    for bar in bars[1:-1]:
        lift, step = (part.value for part in bar.parts)
        assert level == pytest.approx(lift if bar.total.startswith("+") else lift + step)
        level = lift + step if bar.total.startswith("+") else lift
    assert level == pytest.approx(bars[-1].parts[0].value)
    assert chart.finding == sentences.waterfall(diff.waterfalls[0])


def test_a_small_change_of_a_long_pass_is_seen_above_a_floor(tmp_path):
    before = on_cpu()
    diff = diff_between(saved(tmp_path / "a", before), saved(tmp_path / "b", slower_rung(before)))
    (chart,) = waterfall_chart.charts(diff)
    assert chart.panels[0].y.label.startswith("a profiled pass, above ")
    assert chart.panels[0].bars[0].total.endswith("µs")
    assert max(part.value for bar in chart.panels[0].bars for part in bar.parts) < 3e-4


def test_more_is_none_of_it():
    assert with_more(ours()[1], []) == ours()[1]


def in_rounds(of: Recorded, median_ns: float, rounds: int = 5, unrest: str = "") -> Recorded:
    """The same with its passes timed in several rounds."""
    made, events = of
    passes = [median_ns * (1 + 0.002 * (i % 4)) for i in range(8 * rounds)]
    starts = tuple(range(0, len(passes), 8))
    return msgspec.structs.replace(made, pass_ns=tuple(passes), pass_rounds=starts, unrest=unrest), events


@pytest.mark.parametrize(
    ("ns", "verdict", "code"), [(100e3, "SAME", 0), (150e3, "SLOWER", 1), (60e3, "FASTER", 0)]
)
def test_profiles_in_rounds_have_a_verdict_and_a_gate(tmp_path, capsys, ns, verdict, code):
    a = saved(tmp_path / "a", in_rounds(ours(), 100e3))
    b = saved(tmp_path / "b", in_rounds(ours(), ns))
    diff = diff_between(a, b)
    (change,) = diff.changes
    assert (change.verdict, change.by, diff.no_verdict) == (verdict, "time", "")
    assert change.ratio is not None
    assert change.ratio.known
    assert main.main(["runs", "diff", str(a), str(b), "--fail-on", "slower", "--bound", "5%"]) == code
    assert "by its time alone" in " ".join(capsys.readouterr().out.split())


def test_no_verdict_follows_from_one_round_another_batch_or_an_unquiet_machine(tmp_path):
    rounds, slow = in_rounds(ours(), 100e3), in_rounds(ours(), 200e3)
    loud = in_rounds(
        ours(), 200e3, unrest="the machine was unquiet: between rounds the median moved by up to 9%"
    )
    alone = in_rounds(ours(), 200e3, rounds=1)
    made, events = slow
    half = (
        msgspec.structs.replace(made, case=msgspec.structs.replace(made.case, batch=2 * made.case.batch)),
        events,
    )
    kept = saved(tmp_path / "a", rounds)
    told = {}
    for name, other in (("loud", loud), ("alone", alone), ("half", half)):
        diff = diff_between(kept, saved(tmp_path / name, other))
        told[name] = [change.verdict for change in diff.changes], diff.no_verdict
    assert told == {"loud": (["UNCLEAR"], ""), "alone": ([""], NO_VERDICT), "half": ([""], OTHER_WORK)}
