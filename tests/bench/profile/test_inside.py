"""A kernel that does several steps: they are told apart inside it, in what is kept and what is shown."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import msgspec
import pytest

from bench.extras.reports.courses.values import layer_ns
from bench.results import doubt
from bench.results import events as profile_events
from bench.results import parts as profile_parts
from bench.results.event_files import read_events, write_events
from bench.results.machine_limits import MachineLimits
from bench.results.profile_records import CaseProfile, Operator
from bench.results.records import Case
from bench.views import trace
from bench.views.diff.profile_waterfall import _divided
from bench.views.drawing import draw_timeline
from bench.views.sentences import profile_findings as findings
from bench.views.tables import profile_tables as tables
from engine.backend import Part
from engine.cuda.replays.one_kernel import READING
from engine.graph.plan import Step
from gui.pages.timeline import timeline_view
from gui.sessions import profile_session
from tests.bench.profile import test_session
from tests.bench.profile.test_session import BATCH, Session, gpu, graph, recorded

__all__ = ["gpu", "graph"]  # fixtures
LAUNCH_NS = 5000  # of every kernel of that device
CASE = Case(model="lenet5-digits", backend="engine-cuda", precision="fp32", batch=BATCH)
LIMITS = MachineLimits(
    device="cuda", bytes_per_s=1e12, flops_per_s=1e13, copied_by="", multiplied_by="", measured_on="",
    measured_at="",
)  # fmt: skip


class Joined(Session):
    """With one kernel for all steps."""

    def __init__(self, gpu, order) -> None:
        steps = apart(order)
        nodes = tuple(node for step in steps for node in step.nodes)
        super().__init__(gpu, ((replace(steps[0], nodes=nodes), "net"),))


def apart(order) -> list[Step]:
    return list({step.name: step for step, name in order if name != "memcpy"}.values())


def parts(order, share: float) -> tuple[Part, ...]:
    """The steps take `share` of a launch."""
    first, *rest = apart(order)
    each = share * LAUNCH_NS / (len(rest) + 2)
    return (Part(READING, first, each), *(Part(step.name, step, each) for step in (first, *rest)))


@pytest.fixture(params=[0.8, 1.0, 1.3])
def share(request) -> float:
    return request.param


@pytest.fixture
def found(gpu, graph, monkeypatch, share):
    monkeypatch.setattr(test_session, "Session", Joined)
    made, order = recorded(gpu, graph, lambda order: parts(order, share))
    return made, apart(order)


def launches(events: profile_events.Events) -> list[profile_events.Activity]:
    return [a for a in events.activities if a.name == "net" and a.run is not None]


def profiled(made, **fields: object) -> CaseProfile:
    return CaseProfile(case=CASE, disposition="ok", operators=made.operators, **fields)


def test_its_steps_lie_in_each_of_its_launches_one_behind_the_other(found, share) -> None:
    made, steps = found
    in_passes = launches(made.events)
    assert len(in_passes) == 2
    for launch in in_passes:
        inside = [
            i for i in made.events.intervals if i.kind == "inside" and i.correlation == launch.correlation
        ]
        assert [i.name for i in inside] == [READING, *(step.name for step in steps)]
        assert [i.nodes for i in inside] == [step.nodes for step in (steps[0], *steps)]
        assert inside[0].start_ns == launch.start_ns
        assert [i.end_ns for i in inside[:-1]] == [i.start_ns for i in inside[1:]]
        assert inside[-1].end_ns <= launch.end_ns
        assert {i.run for i in inside} == {launch.run}
        total = sum(i.time_ns for i in inside)
        assert total == pytest.approx(min(1.0, share) * launch.time_ns, abs=len(inside))
    assert made.attributed == 1
    assert {operator.nodes for operator in made.operators} == {step.nodes for step in steps}


def test_apart_they_and_the_rest_are_all_of_the_device_s_time(found, share) -> None:
    made, _ = found
    apart = profile_events.steps_apart(made.events)
    assert sum(e.time_ns for e in apart) == sum(a.time_ns for a in made.events.activities)
    # Of a kernel that nothing was told of, as those of the warm-up would be, nothing is made up.
    none = profile_events.Events(activities=made.events.activities)
    assert profile_events.steps_apart(none) == made.events.activities


def test_a_course_report_finds_a_layer_inside_the_one_kernel(found) -> None:
    made, steps = found
    inside = [i for i in made.events.intervals if i.kind == "inside" and i.run is not None]
    for step in steps:
        its = sum(i.time_ns for i in inside if i.nodes == step.nodes)
        assert {layer_ns(made.events, node) for node in step.nodes} == {its / 2}  # two passes
    assert layer_ns(made.events, "conv99") == 0


def test_the_breakdown_has_each_operator_s_time_and_still_adds_up(found) -> None:
    made, _ = found
    for part in profile_parts.breakdowns(made.events):
        assert sum(each.time_ns for each in part.parts) == part.wall_ns
        keys = {each.key for each in part.parts if each.time_ns}
        assert part.window != "pass" or {"op:Gemm", "op:Softmax"} <= keys
        kernels = sum(each.count for each in part.parts if each.key.startswith("op:"))
        assert part.window != "pass" or kernels == part.passes, "one launch a pass, whatever is in it"


def test_tables_and_findings_tell_them_apart_and_count_one_launch(found, share) -> None:
    made, steps = found
    case = profiled(made)
    by_name = {row["name"]: row for row in tables.activities(case, made.events, "name").rows}
    assert by_name["net"]["calls"] == 2
    assert by_name["net"]["time_ns"] == 2 * LAUNCH_NS
    by_node = {row["name"]: row for row in tables.activities(case, made.events, "node").rows}
    assert {" + ".join(step.nodes) for step in steps} <= set(by_node)
    found_ = {f.nodes: f for f in findings.findings(case, made.events, LIMITS)}
    assert {step.nodes for step in steps} <= set(found_)
    assert all(found_[step.nodes].launches == 1 for step in steps)
    assert any("clock stamps" in note for note in tables.activities(case, made.events, "node").notes)
    assert not any("clock stamps" in note for note in tables.activities(case, made.events, "name").notes)
    assert _divided(case, made.events).counts


def test_a_share_of_a_kernel_is_not_said_to_be_faster_than_memory(found) -> None:
    """An operator of its own is, where no cache explains its rate; bytes that are not known have none."""
    made, steps = found
    tight = msgspec.structs.replace(LIMITS, bytes_per_s=1.0, cache_nbytes=1)
    shares = findings.findings(profiled(made), made.events, tight)
    assert not any(f.beyond for f in shares if f.nodes in {step.nodes for step in steps})
    alone = findings.OpFinding(("a",), "Gemm", ("k",), 1.0, 1e3)
    cost = Operator(nodes=("a",), op_type="Gemm", flops=8, nbytes=400)
    judged = findings._judged(alone, cost, tight, profiled(made), inside=False)
    assert judged.beyond == "impossible"
    assert doubt.IMPOSSIBLE in findings.sentence(judged, None)
    unread = msgspec.structs.replace(cost, unread=400)
    assert findings._judged(alone, unread, tight, profiled(made), inside=False).beyond == ""
    unknown = findings._judged(
        alone, msgspec.structs.replace(cost, nbytes=0), tight, profiled(made), inside=False
    )
    assert (unknown.bytes_per_s, unknown.roof) == (None, None)
    assert unknown.flops_per_s == pytest.approx(8e6)


def test_they_are_kept_and_read_back_and_drawn_below_their_kernel(found, tmp_path) -> None:
    made, steps = found
    name = write_events(tmp_path, "case", made.events)
    assert read_events(tmp_path / name) == made.events
    case = profiled(made)
    trace.write(tmp_path / "trace.json", [(case, made.events)])
    assert trace.read(tmp_path / "trace.json")[0].intervals == made.events.intervals
    tracks = [track.title for track in profile_session.group(case, made.events, "").tracks]
    at = next(i for i, title in enumerate(tracks) if title.startswith("kernels, stream"))
    assert tracks[at + 1].startswith("steps in them, stream")
    inside = next(i for i in made.events.intervals if i.kind == "inside")
    assert ("told by", "clock stamps inside the kernel that does it") in timeline_view.facts(inside, 0)
    drawn = dict(draw_timeline.rows(made.events, defaultdict(lambda: "#123456")))
    ((title, spans),) = [(t, s) for t, s in drawn.items() if t.startswith("steps in them")]
    assert title
    assert len(spans) == len(steps) + 1
