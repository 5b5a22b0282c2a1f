"""A class graded: each for itself, within walls, whatever the others do."""

from __future__ import annotations

import json
import shutil
import socket
import sys
from pathlib import Path

import pytest

import main
from bench.extras.course import submissions, walls
from bench.extras.course.records import KIND, Graded
from tests.bench.extras.course import classroom

pytestmark = pytest.mark.slow

CLASS = {
    "good": {"softmax": "right", "lrn": "hidden"},
    "bad": {"softmax": "crash", "lrn": "kills"},
    "curious": {"softmax": "files", "lrn": "network"},
    "hasty": {"softmax": "header", "lrn": "nothing"},
}


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Grades of a class of which each did something else, and the assignment beside."""
    base = tmp_path_factory.mktemp("class")
    (base / "assignment.toml").write_text(classroom.assignment(["softmax", "lrn"], seconds=60, budget=0.02))
    with socket.create_server(("127.0.0.1", 0)) as server:
        for student, deeds in CLASS.items():
            classroom.hand_in(base / "in" / student, deeds, server.getsockname()[1])
        command = ["course", "grade", str(base / "in"), "--assignment", str(base), "--out", str(base / "out")]
        assert main.main([*command, "--at-once", "2", *classroom.walled()]) == 0
    return base


def by_deed(base: Path) -> dict[str, Graded]:
    with KIND.open(base / "out") as folder:
        return {CLASS[g.case.student][g.case.exercise]: g for g in folder.measurements()}


@pytest.mark.sampled(4, "long")
def test_what_one_does_costs_itself_alone(graded: Path) -> None:
    found = by_deed(graded)
    assert len(found) == 8
    right = found["right"]
    assert right.disposition == "ok", right.reason
    assert 0 < right.low <= right.value <= right.high
    assert right.file == "90_mine.py"
    assert found["hidden"].disposition == "incorrect"
    assert found["hidden"].reason.startswith("its answer is wrong on a hidden shape")
    assert found["crash"].disposition == "crashed"
    assert "header" in found["header"].reason
    assert "header" in found["nothing"].reason  # it may have been for this exercise
    assert found["kills"].disposition in ("crashed", "failed")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the walls are Linux's")
def test_neither_files_nor_the_network_are_reached_from_within(graded: Path) -> None:
    if classroom.walled() == ["--no-walls"]:
        pytest.skip(str(walls.standing()))
    found = by_deed(graded)
    for deed in ("files", "network"):
        assert found[deed].disposition == "failed", deed
        assert "FileNotFoundError" in found[deed].reason or "PermissionError" in found[deed].reason
        # As its author knows it, without a path of the grader's.
        assert " in 90_mine.py:" in found[deed].reason
    assert found["right"].walls == classroom.walled()[1]


def test_a_hidden_shape_stays_hidden(graded: Path) -> None:
    for path in (graded / "out" / "gradescope").rglob("results.json"):
        text = path.read_text()
        assert not [shape for shape in ("outer 3", "3×7×5") if shape in text]
    hidden = by_deed(graded)["hidden"].finding
    assert hidden is not None
    assert (hidden.params, hidden.index, hidden.elements) == ("", (), 0)


def test_the_same_command_goes_on_and_judges_nothing_twice(graded: Path, tmp_path: Path) -> None:
    base = tmp_path / "again"
    shutil.copytree(graded, base)
    lines = (base / "out" / "results.jsonl").read_text()
    for old in ("gradescope", "grades.csv"):
        path = base / "out" / old
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    command = ["course", "grade", str(base / "in"), "--assignment", str(base), "--out", str(base / "out")]
    assert main.main([*command, *classroom.walled()]) == 0
    assert (base / "out" / "results.jsonl").read_text() == lines
    told = json.loads((base / "out" / "gradescope" / "good" / "results.json").read_text())
    assert told["score"] >= 10
    shutil.rmtree(base / "in" / "good")  # what was graded of it stands
    assert main.main([*command, *classroom.walled()]) == 0
    assert (base / "out" / "results.jsonl").read_text() == lines
    assert json.loads((base / "out" / "gradescope" / "good" / "results.json").read_text()) == told


@pytest.mark.sampled(6, "longest")
def test_a_student_checks_before_handing_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A kernel that only the hidden shape finds passes here, and is told that there are such."""
    (tmp_path / "assignment.toml").write_text(classroom.assignment(["softmax"], budget=0.02))
    (tmp_path / "90_mine.py").write_text(classroom.kernel("softmax", "hidden"))
    assert main.main(["course", "check", str(tmp_path / "90_mine.py")]) == 0
    said = capsys.readouterr().out
    assert "softmax (" in said
    assert "Hidden shapes are judged" in said
    assert "not up to date" not in said
    (tmp_path / "90_mine.py").write_text(classroom.kernel("softmax", "wrong"))
    assert main.main(["course", "check", str(tmp_path / "90_mine.py")]) == 1


@pytest.mark.sampled(4, "long")
def test_what_is_not_settled_is_measured_again_in_a_new_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench.extras.course import assignment, grading, judging

    monkeypatch.setattr(judging, "settled", lambda tried: len(tried) > 1)
    (tmp_path / "assignment.toml").write_text(classroom.assignment(["softmax"], budget=0.05))
    classroom.hand_in(tmp_path / "in" / "one", {"softmax": "right"})
    file, ran = tmp_path / "in" / "one" / "softmax" / "90_mine.py", tmp_path / "beside" / "ran"
    ran.parent.mkdir()  # in a folder above its own a kernel makes nothing
    file.write_text(f"{file.read_text()}\nimport os\nopen({str(ran)!r}, 'a').write(f'{{os.getpid()}} ')\n")
    of = grading.gather(assignment.read(tmp_path), tmp_path / "in")
    for name, text in of.handed[0].staged("softmax").items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    judge = judging.Judging(of.job, tmp_path, lambda case, stage: None, lambda: False)
    graded, again = judge.graded(of.cases[0])
    assert again is None
    assert len(set(ran.read_text().split())) == 2, graded


@pytest.mark.sampled(4, "long")
def test_a_cuda_kernel_is_compiled_where_there_is_no_gpu(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from bench.questions.ladder_plan import usable
    from kernels import nvrtc

    if nvrtc.unavailable() or "cuda" in usable():
        pytest.skip("needs the compiler, and no GPU")
    assert main.main(["course", "new", str(tmp_path / "a"), "--device", "cuda", "--op", "softmax"]) == 0
    assert main.main(["course", "handout", str(tmp_path / "a"), str(tmp_path / "out")]) == 0
    kernel = tmp_path / "out" / "90_mine.cu"
    assert main.main(["course", "check", str(kernel)]) == 1
    said = capsys.readouterr().out
    assert "registers" in said or "sectors" in said, "what was found of it is told"
    assert submissions.UNCHANGED in said
    kernel.write_text(kernel.read_text() + "\nint x = ;\n")
    assert main.main(["course", "check", str(kernel)]) == 1
    assert "90_mine.cu" in capsys.readouterr().out
