"""Points, bands and ranks; what they are written as."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import msgspec

from bench.extras.course import judging, told, written
from bench.extras.course.marks import marks, ranking
from bench.extras.course.records import (
    Alike,
    Asked,
    Exercise,
    Grade,
    GradeCase,
    Graded,
    GradeJob,
    Reached,
    Student,
    Threshold,
)
from bench.results.finding import Finding
from bench.results.ladder_records import RungCase, RungMeasurement

EXERCISE = Exercise(
    name="conv",
    op="conv",
    params={},
    points=10,
    thresholds=(Threshold(rung="naive", ratio=1, points=5), Threshold(rung="naive", ratio=2, points=3)),
    hints={"pad": "Look at the border.", "crashed": "It ended."},
)
JOB = GradeJob(
    name="one",
    exercises=(EXERCISE,),
    questions=(
        Asked(name="n", text="?", kind="number", answer=5.0, within=0.1, points=2),
        Asked(name="t", text="?", points=4),
    ),
)


def student(key: str, **more: object) -> Student:
    return Student(key=key, name=key, who=key, sources=(key,), **more)  # type: ignore[arg-type]


def graded(student: str, low: float, high: float, disposition: str = "ok", **more: object) -> Graded:
    value = (low + high) / 2
    reached = tuple(
        Reached(
            rung="naive", ratio=t.ratio, value=value, low=low, high=high, reached=high >= t.ratio,
            close=low <= t.ratio <= high,
        )
        for t in EXERCISE.thresholds
    )  # fmt: skip
    return Graded(
        case=GradeCase(student=student, exercise="conv"),
        disposition=disposition,  # type: ignore[arg-type]
        thresholds=reached if disposition == "ok" else (),
        value=value if disposition == "ok" else 0,
        low=low, high=high, against="naive", **more,  # type: ignore[arg-type]
    )  # fmt: skip


def test_points_are_of_bands_and_not_of_times() -> None:
    found = [graded("a", 1.1, 1.2), graded("b", 1.8, 2.1), graded("c", 0, 0, "incorrect")]
    handed = [student(name, answers={"n": 5.4, "t": "memory"}) for name in "abcd"]
    a, b, c, d = marks(JOB, handed, found)
    assert [m.points for m in (a, b, c, d)] == [17, 20, 2, 2]
    bands = [mark.exercises[0].graded and mark.exercises[0].graded.band for mark in (a, b, c, d)]
    assert (a.most, bands) == (24, [2, 3, 0, None])
    assert a.exercises[0].band == "passed, reached 1× naive"
    assert (a.questions[0].right, a.questions[1].right) == (True, None)


def test_who_lies_within_the_interval_of_the_first_shares_its_rank() -> None:
    """Not whoever lies within that of its neighbour: a chain of them would make all of a class the same."""
    found = [
        graded("a", 9, 11),
        graded("b", 8, 9.5),
        graded("c", 7, 8.5),
        graded("d", 1, 2),
        graded("e", 0, 0, "crashed"),
    ]
    assert [(p.rank, p.student, p.tied) for p in ranking(found)] == [
        (1, "a", True), (1, "b", True), (3, "c", False), (4, "d", False),
    ]  # fmt: skip


def test_gradescope_is_given_its_form_and_a_spreadsheet_no_formula(tmp_path: Path) -> None:
    finding = Finding(fault="pad", reason="wrong at the border")
    wrong = graded("=cmd()", 0, 0, "incorrect", finding=finding, reason="-1 at the border")
    people = (student("=cmd()"), student("b", answers={"n": True}, late_s=5400.0))
    found = marks(JOB, people, [wrong, graded("b", 1.9, 2.1)])
    pair = Alike(exercise="conv", student="b", other="conv 01 naive", rung=True, share=0.93)
    files = written.write(tmp_path, Grade(job=JOB, cases=(), students=people, alike=(pair,)), found)
    told = json.loads((tmp_path / "gradescope" / "=cmd()" / "results.json").read_text())
    assert (told["score"], told["tests"][0]["status"], told["tests"][0]["max_score"]) == (0, "failed", 18)
    assert "Hint: Look at the border." in told["tests"][0]["output"]
    told = json.loads((tmp_path / "gradescope" / "b" / "results.json").read_text())
    assert told["score"] == 18
    assert "which counts" in told["tests"][0]["output"]
    assert told["tests"][1]["output"] == "wrong"  # True is no number
    assert told["leaderboard"][0]["value"] == 2.0
    rows = list(csv.reader(io.StringIO(files[0].read_text())))
    assert rows[1][0] == "'=cmd()"
    assert rows[1][rows[0].index("conv why")].startswith("'-1")
    assert rows[2][rows[0].index("flags")] == (
        "late by 1 h 30 min; conv: its tokens are those of the rung conv 01 naive (93%)"
    )
    assert "| 1 | b | 2.00 | 1.90 to 2.10 |" in (tmp_path / "ranking.md").read_text()


def measured(rung: str, *samples: float) -> RungMeasurement:
    rounds = tuple(range(len(samples)))
    return RungMeasurement(case=RungCase(rung=rung), disposition="ok", samples_ns=samples, rounds=rounds)


def test_a_threshold_within_the_interval_is_reached_and_one_sample_is_no_certainty() -> None:
    case = GradeCase(student="a", exercise="conv")
    naive, mine = (
        measured("naive", 1000.0, 1010.0, 990.0, 1005.0),
        measured("submission", 500.0, 505.0, 495.0, 502.0),
    )
    made = judging._graded(case, EXERCISE, {"submission": mine, "naive": naive})
    assert [(t.reached, t.close) for t in made.thresholds] == [(True, False), (True, True)]
    assert judging._doubtful(made)
    made = judging._graded(
        case, EXERCISE, {"submission": measured("submission", 600.0), "naive": measured("naive", 1000.0)}
    )
    assert [(t.reached, t.close) for t in made.thresholds] == [(True, False), (True, True)]
    assert made.low < made.value < made.high
    made = judging._graded(
        case, EXERCISE, {"submission": measured("submission", 1.0), "naive": measured("naive", 1e6)}
    )
    assert judging._doubtful(made)  # what a busy machine loses of a short pass
    nothing = judging._graded(case, EXERCISE, {"submission": mine})
    assert [t.reached for t in nothing.thresholds] == [False, False]
    assert "nothing can be said" in nothing.notes[0]


def test_who_is_slow_now_and_then_reaches_no_more_than_is_measured() -> None:
    """The interval is then as wide as one likes: it holds all thresholds, and who is the first."""
    case = GradeCase(student="a", exercise="conv")
    naive = measured("naive", 1000.0, 1010.0, 990.0, 1005.0)
    unsteady = measured("submission", 1000.0, 20000.0, 990.0, 1005.0)
    made = judging._graded(case, EXERCISE, {"submission": unsteady, "naive": naive})
    assert made.value < 0.9 < 2 < made.high
    assert [(t.reached, t.close) for t in made.thresholds] == [(False, False), (False, False)]
    (mark,) = marks(JOB, [student("a")], [made])
    assert sum("it is fast now and then only" in line for line in told.lines(mark.exercises[0])) == 2
    first = msgspec.structs.replace(graded("b", 3, 4), value=2.0, low=1.9, high=2.1)
    assert [place.rank for place in ranking([made, first])] == [1, 2]


def test_what_is_missed_is_missed_twice_and_of_three_the_middle_counts() -> None:
    slow, fast, close = graded("a", 0.4, 0.5), graded("a", 3, 4), graded("a", 0.9, 1.1)
    assert judging.settled([fast])
    assert not judging.settled([slow])
    assert judging.settled([slow, slow])
    assert judging.decided([slow, fast]) is fast
    assert not judging.settled([close])
    assert judging.settled([graded("a", 0.1, 0.2)])  # so far below both that nothing slowed it down so much
    assert not judging.settled([graded("a", 1.2, 1.3)])  # far below neither
    assert judging.decided([slow, close, close]).band == 2
    assert judging.settled([graded("a", 0, 0, "incorrect")])


def test_that_a_kernel_remembers_its_inputs_is_found_twice_before_it_counts() -> None:
    """It is told from times, by which a busy machine has accused one that was right."""
    found = Finding(fault="remembers", reason="is faster where few of its inputs changed")
    accused = msgspec.structs.replace(graded("a", 0, 0, "incorrect"), finding=found)
    assert not judging.settled([accused])
    assert judging.decided([accused, accused]) is accused
    right = graded("a", 3, 4)
    assert judging.decided([accused, right]) is right
    assert judging.settled([accused, graded("a", 0, 0, "incorrect")])


def test_on_an_overloaded_machine_speed_is_not_decided_and_correctness_is(tmp_path: Path) -> None:
    """Never a lower band: nothing is reached, nothing missed, and nobody has a rank."""
    case = GradeCase(student="a", exercise="conv")
    naive, slow = measured("naive", 1000.0, 1010.0, 990.0, 1005.0), measured("submission", 3000.0, 3005.0)
    loaded = {"cores": 2.0, "wall_s": 1.0, "others_s": 1.7}
    for busy, other in ((naive, slow), (slow, naive)):
        busy = msgspec.structs.replace(busy, load=loaded)
        made = judging._graded(case, EXERCISE, {one.case.rung: one for one in (busy, other)})
        assert made.disposition == "ok"
        assert not made.thresholds[0].reached
        assert made.undecided == "not decided: other programs used 1.7 of 2 cores while this was measured"
        assert 0 < made.low <= made.value <= made.high < 1
    (mark,) = marks(JOB, [student("a")], [made])
    assert (mark.points, mark.exercises[0].band) == (10, f"passed; its speed is {made.undecided}")
    assert ranking([made]) == ()
    told = written.gradescope(mark)
    assert "leaderboard" not in told
    assert told["tests"][0]["output"].count("not decided") == 3
    assert "reached" not in told["tests"][0]["output"].replace("not decided", "")
    quiet = judging._graded(case, EXERCISE, {"naive": naive, "submission": slow})
    assert (quiet.undecided, judging.settled([quiet, quiet])) == ("", True)
    fast = graded("a", 3, 4)
    assert not judging.settled([made])
    assert not judging.settled([made, made])
    assert not judging.settled([made, quiet])  # missed once
    assert judging.decided([made, made, made]).undecided
    assert judging.decided([quiet, made, made]).undecided
    assert judging.decided([made, fast]) is fast
    assert judging.decided([quiet, made, quiet]) is quiet
    wrong = graded("a", 0, 0, "incorrect")
    assert judging.decided([made, wrong]) is wrong
