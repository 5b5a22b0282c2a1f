"""An assignment as the teacher writes it and students get it; what they hand in, found."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.extras.course import assignment, submissions, tasks, template
from bench.extras.course.records import GradeCase, GradeJob, Task
from kernels import registry
from kernels.errors import InputError
from tests.bench.extras.course import classroom

JOB = GradeJob(name="two", tasks=(Task(name="a", op="gemm", params={}), Task(name="b", op="pool", params={})))


@pytest.mark.parametrize(("op", "device"), [("conv", "cpu"), ("gemm", "cuda")])
def test_a_new_assignment_can_be_read_and_says_its_problems(op: str, device: str, tmp_path: Path) -> None:
    made = assignment.read(template.write(tmp_path / "first", op, device))
    job = tasks.job_of(made)
    (task,) = job.tasks
    assert (made.name, task.op, job.device, len(task.hidden), len(task.thresholds)) == (
        "first",
        op,
        device,
        1,
        2,
    )
    assert task.hidden[0] != task.params
    assert tasks.job_of(made, hidden=False).tasks[0].hidden == ()
    with pytest.raises(InputError, match="is there already"):
        template.write(tmp_path / "first")


def test_what_is_handed_out_has_no_secret_and_a_kernel_that_counts(tmp_path: Path) -> None:
    (tmp_path / "assignment.toml").write_text(
        classroom.assignment(["gemm"])
        + '[[question]]\nname = "q"\ntext = "How many?"\nkind = "number"\nanswer = 42\nwithin = 1\n'
    )
    files = template.hand_out(tmp_path, tmp_path / "out")
    text = files[0].read_text()
    assert not [secret for secret in ("42", "hidden", "n = 9") if secret in text]
    told = assignment.read(files[0])
    assert (told.task[0].hidden, told.question[0].answer) == ((), None)
    assert told.task[0].threshold == assignment.read(tmp_path).task[0].threshold
    assert submissions.of_files("s", files, tasks.job_of(told)).files


def test_an_assignment_whose_secrets_cannot_be_told_apart_is_not_handed_out(tmp_path: Path) -> None:
    text = 'name = "x"\n[[task]]\nname = "g"\nop = "gemm"\nparams = {m = 2, n = 3, k = 4}\n'
    text += "hidden = [{params = {m = 9}}]\n"
    (tmp_path / "assignment.toml").write_text(text)
    with pytest.raises(InputError, match="cannot be left out"):
        template.hand_out(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out" / "assignment.toml").exists()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("ratoi = 1", "ratoi"),
        ('[[task]]\nname = "gemm"\nop = "gemm"', "two of task 'gemm'"),
        ('[[task]]\nname = "x"\nop = "gem"', "operator 'gem' is not known"),
        ('[[task]]\nname = "x"\nop = "gemm"\nparams = {m = 1, n = 1}', "task 'x': its params"),
        ('[[task]]\nname = "x"\nop = "gemm"\nparams = {m = 1, n = 1, q = 1}', "gemm has no 'q'"),
        ('[[task]]\nname = "x"\nop = "conv"', "it says no problem"),
        ('[[task]]\nname = "x"\nop = "pool"\nshape = [1]', "shape is of a conv"),
        ('[[task.threshold]]\nrung = "blass"\nratio = 1.0', "no rung 'blass'"),
        ('[[task.threshold]]\nrung = "blas"\nratio = 0.0', "ratio is above 0"),
        ("x = ", "is no TOML"),
    ],
)
def test_what_is_wrong_with_an_assignment_is_told_in_a_sentence(
    wrong: str, told: str, tmp_path: Path
) -> None:
    (tmp_path / "assignment.toml").write_text(classroom.assignment(["gemm"]) + wrong + "\n")
    with pytest.raises(InputError, match=told) as caught:
        tasks.job_of(assignment.read(tmp_path))
    assert "\n" not in str(caught.value)


def test_every_students_kernel_is_found_and_what_cannot_be_read_is_its_authors(tmp_path: Path) -> None:
    gemm, pool = (classroom.kernel(op, "right") for op in ("gemm", "pool"))
    for name in ("anna", "bert"):  # both call it 90_mine
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "90_mine.py").write_text(gemm)
    (tmp_path / "anna" / "deep" / "90_mine.py").write_text(pool)
    (tmp_path / "bert" / "91_pool.py").write_bytes(b"\xff\xfe")
    (tmp_path / "carla").mkdir()
    (tmp_path / "carla" / "90_mine.py").write_text("no header at all")
    (tmp_path / "carla" / "answers.toml").write_text('why = "memory"\n')
    (tmp_path / "Dora O'Neil_1234.py").write_text(gemm)
    (tmp_path / "readme.txt").write_text("not a submission")
    (tmp_path / "emil").mkdir()
    (tmp_path / "emil" / "90_mine.py").symlink_to(tmp_path / "anna" / "90_mine.py")
    found = {one.student: one for one in submissions.students(tmp_path, JOB)}
    assert sorted(found) == ["Dora_O_Neil_1234", "anna", "bert", "carla", "emil"]
    assert sorted(found["anna"].files) == ["a", "b"]
    assert (sorted(found["bert"].files), found["bert"].problems) == (
        ["a"],
        {"b": "91_pool.py: it is no UTF-8 text"},
    )
    assert "header" in found["carla"].problems["a"]
    assert found["carla"].answers == {"why": "memory"}
    assert "no .py file" in found["emil"].problems["a"]  # a link may lead to another's


def test_a_kernel_is_judged_under_a_free_name_each_line_where_it_was(tmp_path: Path) -> None:
    """As the ladder's own is called, too: "blas" is rung 1 of gemm."""
    source = registry.find("cpu", "gemm", "blas").source
    text = submissions.renamed(source)
    assert len(text.splitlines()) == len(source.splitlines())
    (tmp_path / "90_submission.py").write_text(text)
    rung = registry.find("cpu", "gemm", "submission", [tmp_path])
    assert (rung.number, rung.user) == (90, True)
    cuda = registry.find("cuda", "conv", 1).source
    assert 'name = "submission"' in submissions.renamed(cuda)


def test_two_kernels_for_one_task_are_no_guess_but_a_pattern_tells_them_apart(tmp_path: Path) -> None:
    for name in ("90_small.py", "91_large.py"):
        (tmp_path / name).write_text(classroom.kernel("gemm", "right"))
    files = sorted(tmp_path.iterdir())
    job = GradeJob(
        name="x",
        tasks=(
            Task(name="any", op="gemm", params={}),
            Task(name="large", op="gemm", params={}, file="*large*"),
        ),
    )
    handed = submissions.of_files("s", files, job)
    assert "2 kernels for gemm" in handed.problems["any"]
    assert handed.files["large"][0] == "91_large.py"


def test_names_that_would_lie_elsewhere_are_no_names() -> None:
    with pytest.raises(ValueError, match="is no name"):
        GradeCase(student="../up", task="a")


def test_no_submission_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no submission"):
        submissions.students(tmp_path, JOB)


def test_a_class_on_a_gpu_may_hand_in_python_that_names_its_language(tmp_path: Path) -> None:
    job = GradeJob(name="x", device="cuda", tasks=(Task(name="a", op="softmax", params={}),))
    (mine := tmp_path / "90_mine.py").write_text(
        '# op = "softmax"\n# rung = 90\n# name = "mine"\n# idea = "Mine."\n# language = "triton"\n'
        '# launch = "softmax_programs"\ndef softmax(x, y): pass\n'
    )
    (other := tmp_path / "91_cpu.py").write_text(classroom.kernel("gemm", "right"))
    handed = submissions.of_files("s", [mine, other], job)
    assert (list(handed.files), handed.problems) == (["a"], {})
    (name,) = handed.staged(job)
    assert name.startswith("a/")
    assert name.endswith(".py"), "its ending says how it is read"
    alone = submissions.of_files("s", [other], job)
    assert alone.problems["a"] == (
        "no .cu file for softmax was handed in; 91_cpu.py is no kernel for this device: for CUDA the header "
        "of a .py names its language"
    )
