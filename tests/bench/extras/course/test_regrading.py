"""Grades gone on with: what is new or changed is judged, all else stands; what is written, and shown."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

import main
from bench.commands.measuring import Ending
from bench.extras.course import alike, grading, walls
from bench.extras.course.records import Exercise, Graded, GradeJob, Reached
from bench.extras.fleet import cluster
from bench.extras.fleet.executor import Heard
from bench.extras.fleet.work import Said, Work
from kernels import registry
from tests.bench.extras.course import classroom

EXERCISES = ("softmax", "lrn")


class Quick:
    """Judges all kernels right, and as fast as the number in the last line of each says."""

    words = "nothing"

    def __init__(self) -> None:
        self.judged: list[str] = []
        self.most = 1000

    def run(self, works: Sequence[Work], heard: Heard) -> Ending:
        for case in (case for work in works for case in work.cases):
            if len(self.judged) == self.most:
                return Ending(cancelled=True)
            work = next(work for work in works if case in work.cases)
            text = next(text for name, text in work.files.items() if name.startswith(f"{case.exercise}/"))
            value = float(text.rsplit("# speed ", 1)[1])
            reached = [
                Reached(
                    rung=t.rung, ratio=t.ratio, value=value, low=0.9 * value, high=1.1 * value,
                    reached=value >= t.ratio,
                )
                for t in work.job.exercise(case.exercise).thresholds
            ]  # fmt: skip
            self.judged.append(case.key)
            made = Graded(
                case=case, disposition="ok", thresholds=tuple(reached), against=reached[0].rung, value=value,
                low=0.9 * value, high=1.1 * value, started_at="2026-11-27T12:00:00+00:00",
            )  # fmt: skip
            heard(work, Said(made, settled=True, place="here"))
        return Ending()

    def close(self) -> None:
        """It has nothing."""


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Quick:
    made = Quick()
    monkeypatch.setattr(cluster, "executor_of", lambda *_: made)
    monkeypatch.setattr(walls, "words", lambda device: "none")
    return made


def hand_in(base: Path, student: str, speed: float, exercises: Sequence[str] = EXERCISES) -> None:
    for exercise in exercises:
        path = base / "in" / student / exercise / "90_mine.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{classroom.kernel(exercise, 'right')}\n# speed {speed}\n")


def grade(base: Path, *more: str) -> int:
    command = ["course", "grade", str(base / "in"), "--assignment", str(base), "--out", str(base / "out")]
    command += classroom.walled()
    return main.main([*command, *more])


@pytest.fixture
def base(tmp_path: Path, quick: Quick) -> Path:
    """A class of three that is graded."""
    text = classroom.assignment(EXERCISES).replace('device = "cpu"', 'device = "cpu"\nseed = 5', 1)
    text += (
        '[[question]]\nname = "n"\ntext = "?"\nkind = "number"\nanswer = 117600\nwithin = 0.05\npoints = 2\n'
    )
    (tmp_path / "assignment.toml").write_text(text)
    for student, speed in (("anna", 1.0), ("bert", 2.0), ("Carla Müller", 0.1)):
        hand_in(tmp_path, student, speed)
    (tmp_path / "in" / "bert" / "answers.toml").write_text("n = 118000\n")
    assert grade(tmp_path) == 0
    assert len(quick.judged) == 6
    quick.judged.clear()
    return tmp_path


def points(base: Path) -> dict[str, str]:
    with (base / "out" / "grades.csv").open(encoding="utf-8") as file:
        return {row["student"]: row["points"] for row in csv.DictReader(file)}


@pytest.mark.sampled(4, "long")
def test_what_is_late_or_changed_is_graded_by_itself(base: Path, quick: Quick) -> None:
    assert points(base) == {"anna": "30", "bert": "32", "Carla Müller": "20"}
    hand_in(base, "late", 1.0, ["softmax"])
    hand_in(base, "anna", 0.2, ["lrn"])
    assert grade(base) == 0
    assert quick.judged == ["anna--lrn", "late--softmax"]
    assert points(base) == {"anna": "25", "bert": "32", "Carla Müller": "20", "late": "15"}
    shutil.rmtree(base / "in")
    hand_in(base, "later", 1.0)  # in a folder of its own: everybody else stands
    quick.judged.clear()
    assert grade(base) == 0
    assert quick.judged == ["later--softmax", "later--lrn"]
    assert points(base)["bert"] == "32"


def test_some_are_graded_alone_and_some_once_more(
    base: Path, quick: Quick, capsys: pytest.CaptureFixture[str]
) -> None:
    hand_in(base, "anna", 0.2)
    hand_in(base, "bert", 0.2)
    assert grade(base, "--only", "anna") == 0
    assert quick.judged == ["anna--softmax", "anna--lrn"]
    assert points(base)["bert"] == "32"
    page = (base / "out" / "students" / "bert.html").read_text()
    assert "something else was handed in since, and is not graded yet" in page
    quick.judged.clear()
    assert grade(base, "--only", "anna", "--regrade", "carla müller") == 0
    assert quick.judged == ["Carla_Müller--softmax", "Carla_Müller--lrn"]
    quick.judged.clear()
    quick.most = 1
    assert grade(base, "--regrade", "anna") == 130
    assert "3 of 6 were not judged" in capsys.readouterr().err
    for name, told in (("annna", "did you mean 'anna'"), ("nobody", "nobody in this class")):
        assert grade(base, "--only", name) == 2
        assert told in capsys.readouterr().err
    shutil.rmtree(base / "in" / "anna")
    assert grade(base, "--regrade", "anna") == 2
    assert "what anna handed in does not lie in" in capsys.readouterr().err


def test_a_changed_assignment_says_what_it_touches_and_grades_that(
    base: Path, quick: Quick, capsys: pytest.CaptureFixture[str]
) -> None:
    file = base / "assignment.toml"
    text = file.read_text()
    file.write_text(text.replace("size = 3", "size = 5", 1).replace("points = 5\n", "points = 7\n", 1))
    assert grade(base) == 0
    said = capsys.readouterr().err
    assert "exercise lrn is graded anew: hidden changed" in said
    assert "exercise softmax is counted anew: only its points" in said
    assert quick.judged == ["anna--lrn", "bert--lrn", "Carla_Müller--lrn"]
    assert points(base) == {"anna": "32", "bert": "34", "Carla Müller": "20"}
    file.write_text(text.replace('name = "five-kernels"', 'name = "other"'))
    assert grade(base) == 2
    assert "are of the assignment 'five-kernels'" in capsys.readouterr().err


def test_grades_do_not_lie_among_the_submissions(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["course", "grade", str(base / "in"), "--assignment", str(base), *classroom.walled()]
    assert main.main([*command, "--out", str(base / "in" / "grades")]) == 2
    assert "would lie among the submissions" in capsys.readouterr().err


def test_a_reason_without_end_is_cut() -> None:
    assert len(grading.own_words("a" * 10_000_000, "90_mine.py")) < 3000
    said = "running failed in /tmp/x/90_submission.py:3: no"
    assert grading.own_words(said, "90_own.py") == "running failed in 90_own.py:3: no"
    assert grading.own_words("no\n[2/2] bob, conv: passed", "90_own.py") == "no [2/2] bob, conv: passed"


def test_everybody_on_the_roster_has_a_row_under_their_own_name(base: Path, quick: Quick) -> None:
    (base / "in" / "roster.csv").write_text("name,id,e-mail,section\nBert,7,bert@uni,A\nZoë,8,zoe@uni,B\n")
    shutil.rmtree(base / "out")
    assert grade(base) == 0
    found = points(base)
    assert (found["Bert"], found["Zoë"]) == ("32", "0")
    told = json.loads((base / "out" / "gradescope" / "Zoë" / "results.json").read_text())
    assert "nothing was handed in" in told["tests"][0]["output"]
    assert "not on the roster" in (base / "out" / "grades.csv").read_text()
    shutil.rmtree(base / "in")  # and is remembered
    quick.judged.clear()
    hand_in(base, "zoe", 2.0)
    assert grade(base) == 0
    assert quick.judged == ["Zoë--softmax", "Zoë--lrn"]
    assert points(base)["Zoë"] == "30"
    assert points(base)["Bert"] == "32"


def test_an_appeal_is_told_all_that_was_measured(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main.main(["course", "show", "BERT", "--grades", str(base / "out")]) == 0
    said = capsys.readouterr().out
    for told in (
        "bert: 32 of 32 points",
        "seed of the inputs: 5",
        "0.4× stable: reached, 2.00 times as fast as stable (95 %: 1.80 to 2.20; asked for 0.4)",
        "SHA-256 of what was judged: ",
        "given: 118000; right: 117600",
    ):
        assert told in said
    (copy,) = re.findall(r"a copy of it: (.*softmax)", said)
    assert (Path(copy) / "kernel.py").read_text().endswith("# speed 2.0\n")
    assert main.main(["course", "show", "nobody", "--grades", str(base / "out")]) == 2
    assert main.main(["course", "show", "bert", "--grades", str(base)]) == 2


def test_pages_hold_what_a_student_reads_and_nothing_that_runs(base: Path, quick: Quick) -> None:
    evil = "<script>alert(1)</script>"
    hand_in(base, evil.replace("/", ""), 1.0)
    assert grade(base) == 0
    pages = {path.stem: path.read_text() for path in (base / "out" / "students").iterdir()}
    assert len(pages) == 4
    assert "30 of 32 points" in pages["anna"]
    assert "your kernel" in pages["anna"]
    assert "bert" not in pages["anna"]  # nobody reads of others
    of_class = (base / "out" / "class.html").read_text()
    assert "students/Carla_M%C3%BCller.html" in of_class
    for text in (of_class, *pages.values()):
        assert "<script>alert" not in text
        assert not re.findall(r"(?:src|href)=\"https?:", text)


# ------------------------------------------------------------------------------------------------- similarity


def test_a_rung_and_a_classmate_under_other_names_are_flagged() -> None:
    job = GradeJob(name="x", exercises=(Exercise(name="t", op="conv", params={}),))
    rungs = {rung.name: rung for rung in registry.rungs("cpu", "conv")}
    stolen, own = rungs["im2col"].source, rungs["shift_and_add"].source
    disguised = re.sub(r"\bout\b|\boutput\b", "result", stolen.replace("# name", "# no name", 1))
    disguised = f"# another header\n{disguised}\n# and a remark\n"
    assert disguised != stolen
    texts = {
        ("eve", "t"): (disguised, ".py"),
        ("fay", "t"): (disguised + "\n\n", ".py"),
        ("gus", "t"): (own, ".py"),
        ("hal", "t"): (disguised.replace("\n\n", "\n" + "# a long remark\n" * 20_000, 1), ".py"),
    }
    found = {(one.student, one.other): one.share for one in alike.alike(job, texts)}
    thieves = {"eve", "fay", "hal"}
    assert set(found) == {
        (one, other) for one in thieves for other in {*thieves, rungs["im2col"].label} - {one}
    }
    assert min(found.values()) > 0.95
    in_a_text = f"exec({stolen!r})"
    assert "characters of it are texts" in alike.in_texts(in_a_text, ".py", "cpu", "conv")
    assert not alike.in_texts(own, ".py", "cpu", "conv")


def test_rungs_of_one_author_are_mostly_not_alike() -> None:
    """The check would else say nothing: of pairs on the ladders for CUDA few are."""
    shares = []
    for op in ("conv", "gemm", "softmax"):
        found = [alike.runs(rung.source, ".cu") for rung in registry.rungs("cuda", op)]
        shares += [alike.share(a, b) for i, a in enumerate(found) for b in found[i + 1 :]]
    assert sum(share >= alike.SHARE for share in shares) < len(shares) / 10


@pytest.mark.parametrize(
    "text", ["/*" * 50000, '"' * 100000, "'''" * 30001, "#" * 100000, "\\" * 100000, "(" * 100000]
)
def test_any_text_has_tokens(text: str) -> None:
    for suffix in (".py", ".cu"):
        assert isinstance(alike.runs(text, suffix), frozenset)
