"""An assignment as the teacher writes it and students get it; what they hand in, found."""

from __future__ import annotations

import gzip
import io
import itertools
import os
import re
import shutil
import tarfile
import zipfile
from pathlib import Path

import msgspec
import pytest

import main
from bench.extras.course import assignment, exercises, files, judging, people, submissions, template
from bench.extras.course.records import NAME, NUMBER, Asked, Exercise, GradeCase, GradeJob, Student
from bench.measure.ladder.entrants import params_of
from bench.questions import rung_template
from kernels import registry
from kernels import tasks as of_ladder
from kernels.errors import InputError
from kernels.ops import OPS
from kernels.tasks import spec
from tests.bench.extras.course import classroom
from tests.kernels.test_tasks import KERNEL, SCALE, made, save_model

JOB = GradeJob(
    name="two", exercises=(Exercise(name="a", op="gemm", params={}), Exercise(name="b", op="pool", params={}))
)
QUESTIONS = (
    Asked(name="why", text="?"),
    Asked(name="n", text="?", kind="number", answer=117600.0, within=0.05),
)
ASKING = msgspec.structs.replace(JOB, questions=QUESTIONS)
GEMM, POOL = (classroom.kernel(op, "right") for op in ("gemm", "pool"))


def test_a_new_assignment_loads_for_every_operator(tmp_path: Path) -> None:
    for device, op in itertools.product(("cpu", "cuda"), (*OPS, *of_ladder.shipped())):
        (exercise,) = exercises.job_of(
            assignment.read(template.write(tmp_path / f"{op}-{device}", op, device))
        ).exercises
        first = registry.rungs(device, op)[0]
        for params in (exercise.params, *exercise.hidden):
            assert first.refusal(params_of(op, params)) is None, (op, device)
        assert exercise.hidden
        assert exercise.hidden[0] != exercise.params


def test_a_task_of_the_teacher_s_own_is_handed_out_and_stays_theirs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = made(tmp_path / "turned", secret="output[...] = (x * s[:, None]).T")
    assert main.main(["course", "new", str(tmp_path / "a"), "--task", str(own)]) == 0
    assert sorted(path.name for path in (tmp_path / "a").rglob("*")) == [
        "assignment.toml", "reference.py", "task.toml", "turned",
    ]  # fmt: skip
    shutil.rmtree(own)
    job = exercises.job_of(assignment.read(tmp_path / "a"))
    (exercise,) = job.exercises
    assert (exercise.op, exercise.params, exercise.hidden) == (
        "turned",
        {"n": 40, "m": 30},
        ({"n": 100, "m": 7},),
    )
    assert exercise.text == SCALE
    assert "x * s[:, None]" in exercise.reference
    written = template.hand_out(tmp_path / "a", tmp_path / "b")
    assert {path.name for path in written} == {
        "assignment.toml", "README.md", "task.toml", "reference.py", "90_mine.py",
    }  # fmt: skip
    assert "secret" not in "".join(path.read_text() for path in written)
    # Who judges knows the teacher's: a task that is handed in beside the kernel takes its place nowhere.
    of_ladder.know(
        spec.parsed("turned", Path(exercise.folder), exercise.text, exercise.reference), pinned=True
    )
    theirs = made(tmp_path / "student" / "turned", answer="def reference(x, s):\n    return 0 * x.T\n")
    with pytest.raises(InputError, match="two tasks called turned"):
        registry.rungs("cpu", "turned", [theirs])


OWN = {  # what a task of one's own is made of, beside its kernels, and what is timed beside these
    "function": ("reference.py",),
    "yardstick": ("reference.py", "net.onnx"),
    "model": ("net.onnx",),
}
RIGHT = KERNEL.replace("{body}", "np.multiply(x.T, s, out=output)")


def own_task(folder: Path) -> Path:
    """The task of tests.kernels.test_tasks, of one of these kinds."""
    names = OWN[folder.name]
    made(folder, SCALE.replace("n = 40, m = 30", "n = 400, m = 300"))
    for name in names:
        if name == "net.onnx":
            save_model(folder / name)
            key = "yardstick" if "reference.py" in names else "reference"
            (folder / "task.toml").write_text(f"{key} = '{name}'\n{(folder / 'task.toml').read_text()}")
    if "reference.py" not in names:
        (folder / "reference.py").unlink()
    return folder


@pytest.mark.sampled(6, "longest")
@pytest.mark.parametrize("kind", OWN)
def test_a_time_to_reach_may_be_that_of_one_s_own_reference(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written, handed out, and judged where its files are not: as on another machine, behind a wall."""
    folder = own_task(tmp_path / kind)
    record = of_ladder.find(folder)
    path = template.write(tmp_path / "a", record.op, "cpu")
    assert path.read_text().count('rung = "reference"') == 2
    shutil.rmtree(folder)
    handed = template.hand_out(tmp_path / "a", tmp_path / "b")
    assert {file.name for file in handed} >= {"task.toml", *OWN[kind]}
    job = exercises.job_of(assignment.read(tmp_path / "a"))
    job = msgspec.structs.replace(job, budget_s=0.1)
    monkeypatch.setattr(judging, "settled", lambda tried: True)  # what it reaches is nobody's matter here
    job = msgspec.json.decode(msgspec.json.encode(job), type=GradeJob)
    shutil.rmtree(tmp_path / "a")
    shutil.rmtree(tmp_path / "b")
    (tmp_path / "in" / kind).mkdir(parents=True)
    kernel = RIGHT.format(op=kind, number=NUMBER, name=NAME)
    (tmp_path / "in" / kind / f"{NUMBER}_{NAME}.py").write_text(kernel)
    judge = judging.Judging(job, tmp_path / "in", lambda *_: None, lambda: False)
    found, _ = judge.graded(GradeCase(student="ada", exercise=kind))
    assert (found.disposition, found.reason, found.notes) == ("ok", "", ())
    assert (found.against, [t.rung for t in found.thresholds]) == ("reference", ["reference"] * 2)
    assert all(t.value > 0 for t in found.thresholds)


def test_a_function_of_numpy_is_no_time_to_reach_on_a_gpu(tmp_path: Path) -> None:
    for kind, times in (("function", 0), ("yardstick", 2)):
        path = template.write(tmp_path / "a" / kind, of_ladder.find(own_task(tmp_path / kind)).op, "cuda")
        shutil.rmtree(tmp_path / kind)
        text = path.read_text()
        assert text.count('rung = "reference"') == times
        path.write_text(f'{text}\n[[exercise.threshold]]\nrung = "reference"\nratio = 1.0\n')
        if times:
            exercises.job_of(assignment.read(path))
        else:
            with pytest.raises(InputError, match="no reference is timed beside cuda kernels for function"):
                exercises.job_of(assignment.read(path))


def test_grades_of_earlier_versions_are_read() -> None:
    """An exercise was a task once, and is so in files."""
    old = b'{"name":"x","tasks":[{"name":"a","op":"gemm","params":{}}]}'
    job = msgspec.json.decode(old, type=GradeJob)
    assert [exercise.name for exercise in job.exercises] == ["a"]
    case = msgspec.json.decode(b'{"student":"ada","task":"a"}', type=GradeCase)
    assert msgspec.to_builtins(case) == {"student": "ada", "task": "a"}


def test_a_whole_net_is_no_assignment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["course", "new", str(tmp_path / "a"), "--op", "net"]) == 2
    assert "name one of these" in capsys.readouterr().err
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(("op", "device"), [("conv", "cpu"), ("gemm", "cuda")])
def test_a_new_assignment_can_be_read_and_says_its_problems(op: str, device: str, tmp_path: Path) -> None:
    made = assignment.read(template.write(tmp_path / "first", op, device))
    job = exercises.job_of(made)
    (exercise,) = job.exercises
    assert (made.name, exercise.op, job.device, len(exercise.hidden), len(exercise.thresholds)) == (
        "first",
        op,
        device,
        1,
        2,
    )
    assert exercise.hidden[0] != exercise.params
    assert exercises.job_of(made, hidden=False).exercises[0].hidden == ()
    with pytest.raises(InputError, match="is there already"):
        template.write(tmp_path / "first")


@pytest.mark.parametrize("called", ["exercise", "task"])  # "task": in files of earlier versions
def test_what_is_handed_out_has_no_secret_and_a_kernel_that_counts(called: str, tmp_path: Path) -> None:
    own = classroom.assignment(["gemm"])
    (tmp_path / "assignment.toml").write_text(
        own.replace("[[exercise.hidden]]", "# hidden: n = 9\n  # more\n[[exercise.hidden]]").replace(
            "[[exercise", f"[[{called}"
        )
        + '[[question]]\nname = "q"\ntext = "How many?"\nkind = "number"\nanswer = 42\nwithin = 0.1\n'
    )
    written = template.hand_out(tmp_path, tmp_path / "out")
    text = written[0].read_text()
    assert not [secret for secret in ("42", "hidden", "n = 9") if secret in text]
    told = assignment.read(written[0])
    assert (told.exercise[0].hidden, told.question[0].answer) == ((), None)
    assert told.exercise[0].threshold == assignment.read(tmp_path).exercise[0].threshold
    handed = submissions.of_files("s", written, exercises.job_of(told))
    assert (set(handed.tried.texts), handed.student.problems) == ({"gemm"}, {"gemm": submissions.UNCHANGED})


def _is_judged(path: Path, op: str, device: str, text: str) -> bool:
    """Whether a kernel of this text is judged, which else is the one that was handed out."""
    path.write_text(text)
    job = GradeJob(name="x", exercises=(Exercise(name=op, op=op, params={}),), device=device)
    one = submissions.of_files("s", [path.parent], job)
    assert bool(one.texts) != bool(one.unchanged), one.student.problems
    return bool(one.texts)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_what_was_handed_out_is_nobody_s_work(tmp_path: Path, device: str) -> None:
    """Of each operator: whatever its comments, its spaces and its words in the header are; one token more, or
    another launch, is a kernel to be judged."""
    note = "\n# mine\n" if device == "cpu" else "\n\n// mine\n/* all mine */"
    own = "\nOWN = 1\n" if device == "cpu" else "\nconstexpr int OWN = 1;\n"
    for op in OPS:
        path = rung_template.write(op, device, tmp_path / op)
        text = path.read_text()
        assert not _is_judged(path, op, device, text)
        words = text.replace("Mine: as the rung it began from, for now.", "Fast.").replace("\n\n", "\n\n\n")
        assert not _is_judged(path, op, device, words + note), op
        assert _is_judged(path, op, device, text + own), op
    assert not _is_judged(path, op, device, text + note * 40_000)
    if device == "cuda":
        assert _is_judged(path, op, device, re.sub(r"(?m)^launch = .*", 'launch = "other"', text))


def test_an_assignment_whose_secrets_cannot_be_told_apart_is_not_handed_out(tmp_path: Path) -> None:
    text = 'name = "x"\n[[exercise]]\nname = "g"\nop = "gemm"\nparams = {m = 2, n = 3, k = 4}\n'
    text += "hidden = [{params = {m = 9}}]\n"
    (tmp_path / "assignment.toml").write_text(text)
    with pytest.raises(InputError, match="cannot be left out"):
        template.hand_out(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out" / "assignment.toml").exists()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("ratoi = 1", "ratoi"),
        ('[[exercise]]\nname = "gemm"\nop = "gemm"', "two of exercise 'gemm'"),
        ('[[exercise]]\nname = "x"\nop = "gem"', "operator or task 'gem' is not known"),
        ('[[exercise]]\nname = "x"\nop = "gemm"\nparams = {m = 1, n = 1}', "exercise 'x': its params"),
        ('[[exercise]]\nname = "x"\nop = "gemm"\nparams = {m = 1, n = 1, q = 1}', "gemm has no 'q'"),
        ('[[exercise]]\nname = "x"\nop = "conv"', "it says no problem"),
        ('[[exercise]]\nname = "x"\nop = "pool"\nshape = [1]', "shape is of a conv"),
        ('[[exercise.threshold]]\nrung = "blass"\nratio = 1.0', "no rung 'blass'"),
        ('[[exercise.threshold]]\nrung = "blas"\nratio = 0.0', "ratio is above 0"),
        ("x = ", "is not valid TOML"),
        ("deadline = 2026-11-30T23:59:00", "no time zone"),
        ('[[question]]\nname = "q"\ntext = "?"\nwithin = 2', "within is a part"),
        (
            '[[exercise]]\nname = "a b"\nop = "gemm"\nparams = {m = 1, n = 1, k = 1}',
            "an exercise is called with",
        ),
    ],
)
def test_what_is_wrong_with_an_assignment_is_told_in_a_sentence(
    wrong: str, told: str, tmp_path: Path
) -> None:
    text = classroom.assignment(["gemm"])
    text = f"{wrong}\n{text}" if wrong.startswith("deadline") else f"{text}{wrong}\n"
    (tmp_path / "assignment.toml").write_text(text)
    with pytest.raises(InputError, match=told) as caught:
        exercises.job_of(assignment.read(tmp_path))
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
    found = {one.student.name: one.student for one in submissions.students(tmp_path, ASKING)}
    assert sorted(found) == ["Dora O'Neil_1234", "anna", "bert", "carla", "emil", "readme"]
    assert found["Dora O'Neil_1234"].key == "Dora_O_Neil_1234"
    assert sorted(found["anna"].files) == ["a", "b"]
    assert "readme.txt is no kernel, no folder and no archive" in found["readme"].problems["a"]
    assert (found["bert"].files, found["bert"].problems) == (
        {"a": "90_mine.py"},
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


def test_two_kernels_for_one_exercise_are_no_guess_but_a_pattern_tells_them_apart(tmp_path: Path) -> None:
    for name in ("90_small.py", "91_large.py"):
        (tmp_path / name).write_text(f"{GEMM}\n# {name}\n")
    files = sorted(tmp_path.iterdir())
    job = GradeJob(
        name="x",
        exercises=(
            Exercise(name="any", op="gemm", params={}),
            Exercise(name="large", op="gemm", params={}, file="*large*"),
        ),
    )
    handed = submissions.of_files("s", files, job).student
    assert "2 kernels for gemm" in handed.problems["any"]
    assert handed.files["large"] == "91_large.py"


def test_names_that_would_lie_elsewhere_are_no_names() -> None:
    with pytest.raises(ValueError, match="is no name"):
        GradeCase(student="../up", exercise="a")


def test_no_submission_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no submission"):
        submissions.students(tmp_path, JOB)


def test_a_class_on_a_gpu_may_hand_in_python_that_names_its_language(tmp_path: Path) -> None:
    job = GradeJob(name="x", device="cuda", exercises=(Exercise(name="a", op="softmax", params={}),))
    (mine := tmp_path / "90_mine.py").write_text(
        '# op = "softmax"\n# rung = 90\n# name = "mine"\n# idea = "Mine."\n# language = "triton"\n'
        '# launch = "softmax_programs"\ndef softmax(x, y): pass\n'
    )
    (other := tmp_path / "91_cpu.py").write_text(classroom.kernel("gemm", "right"))
    handed = submissions.of_files("s", [mine, other], job)
    assert (list(handed.texts), handed.student.problems) == (["a"], {})
    (name,) = handed.staged("a")
    assert name.startswith("a/")
    assert name.endswith(".py"), "its ending says how it is read"
    alone = submissions.of_files("s", [other], job)
    assert alone.student.problems["a"] == (
        "no .cu file for softmax was handed in; 91_cpu.py is no kernel for this device: for CUDA the header "
        "of a .py names its language"
    )


def one(folder: Path, job: GradeJob = ASKING) -> Student:
    """The only student of a class."""
    (found,) = submissions.students(folder, job)
    return found.student


def tar_gz(members: dict[str, bytes]) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return held.getvalue()


def zipped(members: dict[str, bytes], packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", packing) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return held.getvalue()


def test_archives_nested_folders_and_single_files_are_taken(tmp_path: Path) -> None:
    deep = {"work/gemm/90_mine.py": GEMM.encode(), "work/pool/90_mine.py": POOL.encode()}
    junk = {"__MACOSX/work/._90_mine.py": b"\0\1", "work/.DS_Store": b"\0"}
    (tmp_path / "anna.zip").write_bytes(zipped(deep | junk))
    (tmp_path / "bert.tar.gz").write_bytes(tar_gz(deep))
    (tmp_path / "carla" / "a" / "b").mkdir(parents=True)
    (tmp_path / "carla" / "a" / "b" / "all.tgz").write_bytes(tar_gz(deep))
    (tmp_path / "dora.py").write_text(GEMM)
    found = {one.student.name: one for one in submissions.students(tmp_path, JOB)}
    assert list(found) == ["anna", "bert", "carla", "dora"]
    for name in ("anna", "bert", "carla"):
        assert found[name].texts == {"a": GEMM, "b": POOL}, name
    assert found["dora"].texts == {"a": GEMM}


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("x.zip", b"PK\3\4 no zip", "x.zip cannot be read: it is broken"),
        (
            "x.zip",
            zipped({"90_mine.py": GEMM.encode()}, zipfile.ZIP_BZIP2),
            "packed in a way that",
        ),
        ("x.zip", zipped({"90_mine.py": b" " * (2 << 20)}), "90_mine.py: it is larger than 1 MiB"),
        ("x.zip", zipped({f"{n}.py": b"" for n in range(5100)}), "it has more than 5,000 entries"),
        (
            "x.zip",
            zipped({"y.zip": zipped({"90_mine.py": GEMM.encode()})}),
            "an archive in the archive",
        ),
        ("x.tar.gz", gzip.compress(bytes(20 << 20)), "it unpacks to more than 16 MiB"),
        ("x.tar.gz", tar_gz({"90_mine.py": GEMM.encode()})[:40], "x.tar.gz cannot be read: it is broken"),
        ("x.rar", b"Rar!", "x.rar is no kernel, no folder and no archive"),
        ("x.py", b"\xff\xfe", "x.py: it is no UTF-8 text"),
        ("x.py", b"#" * (2 << 20), "at most 1,048,576 are read"),
        ("x.py", b"# op = " + b"[" * 20000, "the header holds values that are nested too deep"),
        ("x.py", b"# rung = " + b"9" * 5000, "the header holds a number of too many digits"),
        ("x.py", b"# rung = 0x" + b"f" * 5000, "the header holds a whole number of more than 64 bits"),
        ("x.py", b"# " + b"a." * 5000 + b"a = 1", "the header has a line of more than 300 dots"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_read_is_a_row_with_the_reason(
    name: str, data: bytes, told: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(data)
    found = one(tmp_path)
    assert found.name == "x"
    assert told in found.problems["a"], found.problems
    assert "\n" not in found.problems["a"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_a_pipe_a_link_and_an_empty_folder_are_rows(tmp_path: Path) -> None:
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "90_mine.py")
    os.mkfifo(tmp_path / "bare.py")
    (tmp_path / "link").symlink_to("/etc")
    (tmp_path / "void").mkdir()
    found = {one.student.name: one.student.problems["a"] for one in submissions.students(tmp_path, JOB)}
    assert found == {
        "bare": "bare.py: it is a pipe and no file",
        "link": "no .py file for gemm was handed in; link is a link, and links are not followed",
        "pipe": "90_mine.py: it is a pipe and no file",
        "void": "nothing was handed in",
    }


@pytest.mark.parametrize(
    ("text", "given", "problem"),
    [
        ("n = 1" + "0" * 5000, {}, "holds a number of too many digits"),
        ("n = " + "[" * 20000, {}, "nested too deep"),
        ("n = nan\nwhy = 'x'", {"why": "x"}, "n is neither a text nor a number"),
        ("n = [1]", {}, "n is neither a text nor a number"),
        ("why = 'a\x1bb'", {}, "is not valid TOML"),
        ('why = "a\\u001bb"', {"why": "a\N{REPLACEMENT CHARACTER}b"}, ""),
        ("other = 1\nn = 118000", {"n": 118000}, ""),
        ("n = 9223372036854775807", {"n": 9223372036854775807}, ""),
    ],
    ids=range(8),
)
def test_answers_are_read_or_their_author_is_told(
    text: str, given: dict[str, object], problem: str, tmp_path: Path
) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "answers.toml").write_text(text)
    found = one(tmp_path)
    assert (found.answers, problem in found.answers_problem) == (given, True)
    assert bool(found.answers_problem) == bool(problem)


def test_within_is_a_part_of_the_answer() -> None:
    number = QUESTIONS[1]
    assert number.right(118000)
    assert number.right(117600 * 1.049)
    assert not number.right(117600 * 1.06)
    assert not number.right(9223372036854775807)
    assert msgspec.structs.replace(number, answer=0.0).right(0)


def test_names_that_differ_by_signs_accents_or_case_are_people_of_their_own(tmp_path: Path) -> None:
    names = ["a b", "a_b", "A_B", "Jos\u00e9", "Jose", "Jose\u0301", "\u674e\u96f7", "...", "con", "n" * 200]
    for name in names:
        (tmp_path / "in" / name).mkdir(parents=True)
    found = [one.student for one in submissions.students(tmp_path / "in", JOB)]
    assert len({people.folded(one.key) for one in found}) == len(found) == len(names) - 1  # "..." is hidden
    assert {one.name for one in found} >= {"a b", "a_b", "Jos\u00e9", "\u674e\u96f7"}
    for one in found:
        GradeCase(student=one.key, exercise="a")
        (tmp_path / "out" / one.key).mkdir(parents=True)
    (tmp_path / "in" / "A B").mkdir()  # who comes later takes nobody's name
    again = submissions.students(tmp_path / "in", JOB, known=found)
    assert {one.who: one.key for one in found}.items() <= {
        one.student.who: one.student.key for one in again
    }.items()


@pytest.mark.skipif(os.sep != "/" or os.path.supports_unicode_filenames, reason="names are texts there")
def test_a_name_that_is_no_text_is_a_row(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff\xfe")).mkdir()
    (tmp_path / os.fsdecode(b"\xff\xfe") / os.fsdecode(b"90_\xff.py")).write_text(GEMM)
    handed = one(tmp_path)
    assert "\udcff" not in handed.name + handed.files["a"]
    assert msgspec.json.encode(handed)


ROSTER = """\
Name;ID;E-Mail;Section;handed in
Doe, Jane;123;jane.doe@uni.example;A;
José Núñez;124;jn@uni.example;A;2026-11-30T22:00:00+00:00
Li Lei;125;li@uni.example;B;
Never Seen;126;never@uni.example;B;
Kim Lee;127;k1@uni.example;B;
Lee Kim;128;k2@uni.example;B;
"""


def test_platforms_names_and_the_roster_are_people(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "roster.csv").write_text(ROSTER)
    for name in (
        "doejane_123_456_90_mine-1.py",
        "doejane_123_457_90_pool.py",
        "jose nunez.py",
        "josenunez_LATE_124_7_90_mine.py",
        "li_LATE_9_8_90_mine.py",
        "stranger.py",
        "leekim.py",
    ):
        (tmp_path / "in" / name).write_text(POOL if "pool" in name else GEMM)
    of = msgspec.structs.replace(JOB, deadline="2026-11-30T20:30:00+00:00")
    roster = people.roster(tmp_path / "in" / "roster.csv")
    found = {one.student.name: one for one in submissions.students(tmp_path / "in", of, roster)}
    assert found["Doe, Jane"].texts == {"a": GEMM, "b": POOL}
    jane, jose, li = (found[name].student for name in ("Doe, Jane", "José Núñez", "Li Lei"))
    assert (jane.id, jane.email, jane.section) == ("123", "jane.doe@uni.example", "A")
    assert jane.files == {"a": "90_mine.py", "b": "90_pool.py"}
    assert (jose.late_s, jose.at_by) == (5400, "the roster")
    assert li.late_s == 0  # the platform says so, whatever the file's date
    assert found["Never Seen"].student.problems["a"] == "nothing was handed in"
    assert found["stranger"].student.remarks == ("not on the roster",)
    assert "may be one of several on the roster: 127, 128" in found["leekim"].student.remarks[0]
    assert all(one.student.called("123") == (one.student is jane) for one in found.values())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("id,email\n1,a@b\n", "has no column `name`"),
        ("name,email\nA,a@b\nB,a@b\n", "'B' twice"),
        ("name,id\n,1\n", "line 2: there is no name"),
        ("name,handed in\nA,yesterday\n", "line 2: 'yesterday' is no time"),
        ('name\n"' + "x" * 200000, "cannot be read"),
    ],
    ids=range(5),
)
def test_a_roster_that_says_something_else_is_told(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "roster.csv").write_text(text)
    with pytest.raises(InputError, match=told):
        people.roster(tmp_path / "roster.csv")


METADATA = """\
submission_304512873:
  :submitters:
  - :name: Jane Doe
    :sid: '123'
    :email: jane@uni.example
  :created_at: 2026-12-01 10:00:00.123456000 Z
submission_304512874:
  :submitters:
  - :name: "Li Lei"
"""


def test_gradescopes_folders_are_people(tmp_path: Path) -> None:
    (tmp_path / "submission_metadata.yml").write_text(METADATA)
    for number in ("304512873", "304512874", "304512875"):
        (tmp_path / f"submission_{number}").mkdir()
        (tmp_path / f"submission_{number}" / "90_mine.py").write_text(GEMM)
    job = msgspec.structs.replace(JOB, deadline="2026-12-01T09:00:00+00:00")
    found = {one.student.name: one.student for one in submissions.students(tmp_path, job)}
    assert list(found) == ["Jane Doe", "Li Lei", "submission_304512875"]
    jane = found["Jane Doe"]
    assert (jane.id, jane.email, jane.at_by) == ("123", "jane@uni.example", "Gradescope")
    assert jane.late_s == pytest.approx(3600, abs=1)


def test_a_helper_travels_with_the_kernel_beside_it(tmp_path: Path) -> None:
    job = GradeJob(name="x", device="cuda", exercises=(Exercise(name="a", op="softmax", params={}),))
    for folder, text in (("one", "#define N 1\n"), ("two", "#define N 2\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "own.cuh").write_text(text)
    (tmp_path / "two" / "90_mine.cu").write_text(classroom.cuda_kernel("softmax", "right"))
    handed = submissions.of_files("s", [tmp_path], job)
    assert handed.staged("a")["a/own.cuh"] == "#define N 2\n"
    before = handed.student.digests
    (tmp_path / "two" / "own.cuh").write_text("#define N 3\n")
    assert submissions.of_files("s", [tmp_path], job).student.digests != before


def test_no_more_is_read_of_a_hand_in_than_anybody_writes(tmp_path: Path) -> None:
    for number in range(files.MOST_FILES + 5):
        (tmp_path / f"{number}.py").write_text("")
    taken = files.taken(tmp_path, lambda name: name.endswith(".py"))
    assert len(taken.pieces) == files.MOST_FILES
    assert "there is more than is read" in taken.said[0]


def test_each_exercise_is_handed_out_a_kernel_that_is_found_again(tmp_path: Path) -> None:
    text = classroom.assignment(["gemm"])
    text += '[[exercise]]\nname = "large"\nop = "gemm"\nfile = "91_large*"\nparams = {m = 9, n = 9, k = 9}\n'
    text = text.replace('op = "gemm"\n', 'op = "gemm"\nfile = "90_*"\n', 1)
    (tmp_path / "assignment.toml").write_text(text)
    template.hand_out(tmp_path, tmp_path / "out")
    job = exercises.job_of(assignment.read(tmp_path / "out"))
    handed = submissions.of_files("s", [tmp_path / "out"], job)
    assert handed.student.files == {"gemm": "90_mine.py", "large": "91_largemine.py"}
    assert "kernelscope course check" in (tmp_path / "out" / "README.md").read_text()
    (tmp_path / "assignment.toml").write_text(text.replace("91_large*", "Large*"))
    with pytest.raises(InputError, match="no kernel can be called"):
        template.hand_out(tmp_path, tmp_path / "again")
