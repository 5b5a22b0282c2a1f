"""Course reports filled in: each published figure in its place, ours beside it or why there is none; and a
contradiction is told where the intervals show one and nowhere else."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

import main
from bench.extras.reports import needs, program
from bench.extras.reports.courses import claims, page, presets, remarks, tables, values
from bench.extras.reports.courses.presets import Claim, Line
from bench.extras.reports.figures import Figure
from bench.extras.reports.needs import NEEDS_GPU, Limits, Taken
from bench.extras.reports.presets import Need
from bench.extras.reports.program import ProgramAnswer, ProgramStart
from bench.measure import environment
from bench.results.folder import Folder
from bench.results.records import Environment
from bench.run.kinds.ladder import KIND as LADDER
from bench.run.kinds.profile import KIND as PROFILE
from kernels import registry
from kernels.errors import InputError

RECORDED = Path(__file__).parents[4] / "data" / "lenet_on_two_cores"
COURSES = presets.names()
HERE = Environment(machine="here", cpu="A CPU", kernelscope="1")


@pytest.mark.parametrize("name", COURSES)
def test_what_a_file_names_is_there(name: str) -> None:
    course = presets.load(name)
    assert course.source
    known = {need.name for need in course.needs}
    assert len(known) == len(course.needs)
    for need in course.needs:
        for rung in (*need.fixed.values(), *need.swaps.values(), *need.rungs):
            assert registry.find(need.device, "conv", rung).number
    lines = [line for table in course.tables for line in table.lines]
    assert len({line.what for line in lines}) == len(lines), "claims name lines by what they are"
    for line in lines:
        if line.need:
            need = course.need(line.need)
            assert line.value in values.VALUES
            assert line.model in ("", *need.models)
            if line.rung not in ("", "fastest", "reference"):
                assert registry.find(need.device, "conv", line.rung).number
        else:
            assert line.note, line.what
        assert line.published is None or line.published >= 0
    shown: tuple[Any, ...] = (*course.ranked, *course.matrices, *course.figures, *course.remarks)
    used = {line.need for line in lines} | {one.need for one in shown}
    assert used - {""} <= known
    assert known <= used, "nothing is measured that no table or figure shows"
    for claim in course.claims:
        assert course.line(claim.first).unit == course.line(claim.second).unit
    for remark in course.remarks:
        assert remark.of in remarks.REMARKS
        assert course.need(remark.need).kind == "profile"
    for matrix in course.matrices:
        assert all(len(row) == 1 + len(matrix.columns) for row in matrix.rows)


def nothing(course: presets.Course) -> Taken:
    why = {n.name: NEEDS_GPU if n.device == "cuda" else "not measured" for n in course.needs}
    return Taken(why=why, environment=HERE)


@pytest.mark.parametrize("name", COURSES)
def test_every_published_figure_is_told_even_where_nothing_was_measured(name: str, tmp_path: Path) -> None:
    course = presets.load(name)
    for ending in ("html", "md"):
        (out,) = page.write(course, nothing(course), tmp_path / f"it.{ending}")
        text = re.sub(r"\\(.)", r"\1", out.read_text("utf-8"))
        for table in course.tables:
            for line in table.lines:
                beside = tables.Beside(line, Figure(why="x"))
                assert line.what in text
                assert beside.published in text
        for ranked in course.ranked:
            assert all(row.name in text for row in ranked.rows)
        assert NEEDS_GPU in text
        assert course.title in text
    assert "Ours contradicts it" not in text


def test_the_big_table_holds_what_was_published_and_ours_below_it() -> None:
    """Digit by digit of a line that is known, and a recorded CPU profile beside it."""
    course = presets.load("alexnet")
    folder = PROFILE.open(RECORDED)
    taken = Taken(runs=({"table-cpu": folder}, {}), why={"table-cuda": NEEDS_GPU}, environment=HERE)
    gpu, cpu = (tables.of_matrix(course, matrix, taken) for matrix in course.matrices)
    cells = {(row.batch, row.whose): [column.shown(row) for column in gpu.columns] for row in gpu.rows}
    assert cells[1024, "published"][2:5] == ["883.6 ms", "5.470 s", "425.9 ms"]
    assert cells[64, "published"][7:9] == ["387.8 ms", "314.3 ms"]
    assert cells[1, "here"][2:] == [NEEDS_GPU, *[""] * (len(cells[1, "here"]) - 3)]
    own = {row.batch: row for row in cpu.rows if row.whose == "here"}
    found = [made for made in folder.measurements() if made.case.backend == "engine-cpu"]
    batch = found[0].case.batch
    assert (own[batch].seconds["conv"] or 0) > 0
    assert cpu.columns[2].shown(own[batch]).endswith("s")
    assert "left out; --largest 1024 takes it" in cpu.columns[2].shown(own[1024])


MOVED = "the machine was unquiet: between rounds the median moved by up to 9%"


def claimed(
    first: Figure,
    second: Figure,
    monkeypatch: pytest.MonkeyPatch,
    same: bool = False,
    unit: str = "s",
    theirs: float = 3.0,
) -> str:
    published = {"a": 2.0 * theirs, "b": 2.0}
    line = {
        name: Line(what=name, published=published[name], unit=unit, need="n", value="time") for name in "ab"
    }  # type: ignore[arg-type]
    course = presets.Course(
        title="t",
        source="s",
        needs=(),
        tables=(presets.PublishedTable(title="t", hardware="h", lines=tuple(line.values())),),
    )
    answers = {"a": first, "b": second}
    monkeypatch.setattr(claims, "ours", lambda course, line, taken: answers[line.what])
    return claims.held(course, Claim(says="it", first="a", second="b", same=same), Taken()).kind


@pytest.mark.parametrize(
    ("first", "second", "same", "kind"),
    [
        (Figure(2.0, 1.9, 2.1), Figure(1.0, 0.9, 1.1), False, "agrees"),
        (Figure(1.0, 0.9, 1.1), Figure(2.0, 1.9, 2.1), False, "contradicts"),
        (Figure(1.0, 0.5, 1.5), Figure(1.1, 0.6, 1.6), False, "open"),
        (Figure(1.0), Figure(3.0), False, "open"),  # without intervals
        (Figure(3.0, 2.9, 3.1), Figure(1.0), False, "open"),
        (Figure(1.0, 0.9, 1.1, doubts=("the machine was unquiet: x",)), Figure(2.0, 1.9, 2.1), False, "open"),
        (Figure(2.0, 1.5, 2.5, unsteady=("x",)), Figure(1.0, 0.9, 1.1), False, "open"),  # one after the other
        (Figure(2.0, 1.98, 2.02, unsteady=("x",)), Figure(1.0, 0.99, 1.01), False, "agrees"),
        (Figure(3.4, 3.2, 3.6, unsteady=(MOVED,)), Figure(1.0, 0.9, 1.1), False, "agrees"),  # far apart
        (Figure(0.3, 0.27, 0.33, unsteady=(MOVED,)), Figure(1.0, 0.9, 1.1), False, "contradicts"),
        (Figure(1.4, 1.3, 1.5, unsteady=(MOVED,)), Figure(1.0, 0.9, 1.1), False, "open"),
        (Figure(3.4, 3.2, 3.6, unsteady=(MOVED, "busy")), Figure(1.0, 0.9, 1.1), False, "open"),
        (Figure(2.0, 1.9, 2.1), Figure(1.0, 0.9, 1.1), True, "contradicts"),
        (Figure(1.0, 0.998, 1.002), Figure(1.0, 0.998, 1.002), True, "agrees"),
        (Figure(1.0, 0.998, 1.002), Figure(1.0, 0.998, 1.002), False, "contradicts"),  # neither is faster
        (Figure(1.0, 0.9, 1.1), Figure(1.0, 0.9, 1.1), True, "open"),
        (Figure(why=NEEDS_GPU), Figure(1.0), True, "open"),
    ],
)
def test_a_contradiction_is_what_the_intervals_show(
    first: Figure, second: Figure, same: bool, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert claimed(first, second, monkeypatch, same) == kind
    if kind == "contradicts" and first.value == second.value and not same:
        assert claimed(first, second, monkeypatch, theirs=1.01) == "open"  # theirs are as near to each other


def test_accuracies_differ_where_their_intervals_are_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    far, near = Figure(0.6, 0.59, 0.61), Figure(0.9, 0.89, 0.91)
    assert claimed(near, far, monkeypatch, unit="fraction") == "agrees"
    assert claimed(far, near, monkeypatch, unit="fraction") == "contradicts"
    assert claimed(far, near, monkeypatch, same=True, unit="fraction") == "contradicts"
    assert claimed(near, Figure(0.89, 0.88, 0.9), monkeypatch, same=True, unit="fraction") == "open"
    assert claimed(near, near, monkeypatch, same=True, unit="fraction") == "agrees"


def test_a_program_that_was_timed_once_decides_nothing() -> None:
    course = presets.load("ece408-milestone1")
    start = ProgramStart(model="ece408-2conv", backend="ort-cpu", batch=10_000, images=10_000)
    slow = program.ProgramUse(start=start, answer=ProgramAnswer(top1=0.9, images=10_000), real_s=9.0)
    fast = msgspec.structs.replace(slow, real_s=3.0)
    taken = Taken(programs={"framework-program-cpu": slow, "framework-program-cuda": fast}, environment=HERE)
    accuracy, elapsed = (claims.held(course, claim, taken) for claim in course.claims)
    assert accuracy.kind == "agrees"
    assert elapsed.kind == "open"
    assert elapsed.sentence == (
        "By their figures (4.13×) the framework's whole program takes longer on the CPU than on the GPU. "
        "Ours does not decide it: “CPU: elapsed” has no interval, as it was taken once "
        "(here 9.000 s and 3.000 s)."
    )
    alone = Taken(
        programs={"framework-program-cpu": slow},
        why={"framework-program-cuda": NEEDS_GPU},
        environment=HERE,
    )
    (_, without) = course.claims
    assert claims.held(course, without, alone).sentence.endswith("it needs a GPU, and none was there.")


def test_what_is_to_be_doubted_claims_nothing_and_shows_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"GPU baseline, model low": Figure(4.49, 4.4, 4.6, doubts=("only 3 samples fit the budget",))}
    monkeypatch.setattr(
        claims, "ours", lambda course, line, taken: answers.get(line.what, Figure(1.0, 0.9, 1.1))
    )
    course = presets.load("ece408-final")
    (claim,) = (claim for claim in course.claims if claim.first in answers)
    found = claims.held(course, claim, Taken())
    assert found.kind == "open"
    assert "4.49" not in found.sentence
    assert found.sentence.endswith(
        "Ours does not decide it: “GPU baseline, model low” is to be doubted: only 3 samples fit the budget."
    )


@pytest.mark.parametrize("name", COURSES)
def test_what_a_report_does_not_say_is_not_put_into_its_mouth(name: str) -> None:
    course = presets.load(name)
    for claim in course.claims:
        said = claims.held(course, claim, nothing(course)).sentence
        assert said.startswith("They say that ") == bool(claim.quote)
        assert said.startswith("By their figures") != bool(claim.quote)
        first, second = (course.line(what).published for what in (claim.first, claim.second))
        assert claim.quote or (first and second)
        if not (first and second):
            continue
        # What their figures are said to say, they do say.
        assert abs(first / second - 1) < 0.02 if claim.same else first > second, claim.says


@pytest.mark.sampled(4, "long")
def test_a_whole_program_is_measured_from_outside(tmp_path: Path) -> None:
    """Once for real: loading, images, passes, accuracy, and what the system says of it."""
    start = ProgramStart(model="lenet5-digits", backend="ort-cpu", batch=50, images=50)
    found = program.run(start, HERE)
    assert found.error == ""
    assert found.answer.images == 50
    assert found.answer.top1 is not None
    assert found.answer.top1 > 0.9
    assert found.real_s > found.answer.forward_ns * 1e-9 > 0
    assert 0.05 < found.cpu < 64
    assert found.max_rss_nbytes > 30 << 20
    assert found.minor_faults > 1000
    program.keep(tmp_path, [found])
    assert program.kept(tmp_path) == [found]
    broken = program.run(msgspec.structs.replace(start, model="no-such-model"), HERE)
    assert "no-such-model" in broken.error
    late = program.run(start, HERE, limit_s=0.01)
    assert "given up after" in late.error


def test_a_run_that_fits_is_used_and_no_other(tmp_path: Path) -> None:
    folder = PROFILE.open(RECORDED)
    machine, job = folder.header.environment.machine, folder.header.job
    shutil.copytree(RECORDED, tmp_path / "one")
    header = tmp_path / "one" / "profile.json"
    told = json.loads(header.read_text("utf-8"))
    told["job"]["runs"] = 1
    header.write_text(json.dumps(told), "utf-8")
    need = Need(name="n", kind="profile", device="cpu", models=(Path(job.model).stem,), batches=job.batches)

    def found_for(need: Need, machine: str = machine) -> object:
        return needs.there(need, needs.asked_of(need, need.batches, Limits()), places, machine)

    places = [RECORDED]
    assert found_for(need) is None, "its calls and times are of several passes, and theirs of one"
    places = [tmp_path / "one", tmp_path]
    found = found_for(need)
    assert isinstance(found, Folder)
    assert found.path == tmp_path / "one"
    for other in (
        msgspec.structs.replace(need, models=("alexnet",)),
        msgspec.structs.replace(need, device="cuda"),
        msgspec.structs.replace(need, all_calls=True),
        msgspec.structs.replace(need, batches=(*job.batches, 7)),
    ):
        assert found_for(other) is None, other
    assert found_for(need, "another machine") is None
    assert LADDER.name != need.kind


def test_the_command_fills_in_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main.main(["report", "course"]) == 0
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == list(COURSES)
    assert main.main(["report", "course", "ece408-checkpoint"]) == 2
    assert "did you mean" in capsys.readouterr().err
    assert main.main(["report", "course", "alexnet", "--out", "it.doc"]) == 2
    assert "one ends in .md" in capsys.readouterr().err
    assert main.main(["report", "course", "alexnet", "--no-measure", "--out", "it.md"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "it.md"
    assert "table-cpu: not measured" in Path("it.md").read_text("utf-8").replace("\\", "")
    with pytest.raises(InputError):
        presets.load("../presets")


def test_fewer_images_are_told_and_held_against_nothing() -> None:
    course = presets.load("ece408-milestone1")
    start = ProgramStart(model="ece408-2conv", backend="ort-cpu", batch=100, images=100)
    used = program.ProgramUse(start=start, answer=ProgramAnswer(top1=0.9, images=100), real_s=9.0)
    for images, told, ratio in ((100, "9.000 s, of 100 images", ""), (10_000, "9.000 s", "1.30× faster")):
        taken = Taken(programs={"framework-program-cpu": used}, why={}, environment=HERE, images=images)
        line = course.line("CPU: elapsed")
        beside = tables.Beside(line, values.ours(course, line, taken))
        assert (beside.own, beside.times) == (told, ratio)


def test_what_no_two_figures_decide_is_answered_with_ours() -> None:
    """A recorded CPU profile beside what the report says; what needs a GPU says so."""
    course = presets.load("alexnet")
    recorded = PROFILE.open(RECORDED)
    taken = Taken(
        runs=({"table-cpu": recorded}, {}),
        why={"table-cuda": NEEDS_GPU},
        environment=recorded.header.environment,
    )
    said = {(one.of, one.need): remarks.sentence(course, one, taken) for one in course.remarks}
    assert "needs a GPU" in said["free_host", "table-cuda"]
    assert "Ours, recorded once: from batch " in said["growth", "table-cpu"]
    assert re.search(
        r"the time here is \d+\.\d times as long, the published one \d", said["growth", "table-cpu"]
    )
    assert "steady state" in said["cold", "table-cpu"]
    own = presets.Remark(says="s", quote="q", of="share", need="table-cpu")
    line = Line(what="w", need="table-cpu", value="recorded", layer="conv2")
    assert 0 < (values.ours(course, line, taken).value or 0) < 1
    share = re.search(r"convolutions take ([\d.]+) %", remarks.sentence(course, own, taken))
    assert share is not None
    assert 0 < float(share[1]) < 100


def test_the_checklist_tells_each_item_and_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main.main(["report", "course", "--checklist", "it.md"]) == 0
    lines = [line.split(" | ") for line in Path("it.md").read_text("utf-8").splitlines() if line[:2] == "| "]
    told = [(line[0].lstrip("| "), line[1]) for line in lines[2:]]
    assert len(told) == len(set(told)), "two items of one report have one name"
    for name in COURSES:
        course = presets.load(name)
        kinds = ("tables", "ranked", "matrices", "figures", "claims", "remarks")
        assert sum(report == name for report, _ in told) == sum(len(getattr(course, kind)) for kind in kinds)
    assert all("no" in line for line in lines[2:])


def test_what_another_report_has_measured_is_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    course = presets.load("ece408-milestone1")
    start = ProgramStart(model="ece408-2conv", backend="ort-cpu", batch=100, images=100)
    here = environment.collect()
    other, own = tmp_path / "course-other", tmp_path / "course-own"
    other.mkdir()

    def found(start: ProgramStart, on: Environment) -> Taken:
        program.keep(other, [program.ProgramUse(start=start, real_s=2.0, environment=on)])
        return needs.take(course, own, Limits(images=100), measures=False, among=tmp_path)

    assert found(start, here).programs["framework-program-cpu"].real_s == 2.0
    plain = msgspec.structs.replace(start, rungs={"conv1": "shift_and_add"})
    elsewhere = msgspec.structs.replace(here, machine="another")
    for wrong in (found(plain, here), found(start, elsewhere)):
        assert wrong.why["framework-program-cpu"] == "not measured"
    # One that came to nothing is told, and where anything is measured taken again.
    lost = program.ProgramUse(start=start, error="it was given up", environment=here)
    program.keep(other, [lost])
    of_it = msgspec.structs.replace(course, needs=(course.need("framework-program-cpu"),))
    monkeypatch.setattr(program, "run", lambda *_: msgspec.structs.replace(lost, error="", real_s=3.0))
    for measures, told in ((False, {"framework-program-cpu": "it was given up"}), (True, {})):
        assert needs.take(of_it, own, Limits(images=100), measures, among=tmp_path).why == told
    # A folder that was made, and cut before its first line, is none that is another's.
    (own / "n").mkdir(parents=True)
    assert needs._free(PROFILE, own / "n", None, Taken()) == own / "n"
    (own / "n" / "it").write_text("")
    assert needs._free(PROFILE, own / "n", None, Taken()) == own / "n-2"


def test_records_of_programs_are_json_a_line(tmp_path: Path) -> None:
    start = ProgramStart(model="m", backend="ort-cpu", batch=1, images=1)
    program.keep(tmp_path, [program.ProgramUse(start=start, real_s=2.0, user_s=1.0, system_s=0.5)])
    (line,) = (tmp_path / program.FILE).read_text().splitlines()
    assert json.loads(line)["real_s"] == 2.0
    assert program.kept(tmp_path)[0].cpu == 0.75
    (tmp_path / program.FILE).write_text("{")
    assert program.kept(tmp_path) == []
