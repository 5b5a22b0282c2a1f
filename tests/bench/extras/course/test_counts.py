"""A CUDA kernel checked on a student's machine without a GPU: right or wrong, and thresholds of counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import main
from bench import judge
from bench.extras.course import exercises, grading, judging, pages, submissions
from bench.extras.course.assignment import read
from bench.extras.course.judging import Judging
from bench.extras.course.marks import marks
from bench.extras.course.records import NAME, NUMBER, Counted, Grade, GradeCase, Graded, Student
from bench.measure.ladder import simulated
from bench.measure.ladder.entrants import params_of
from bench.results.ladder_records import RungCase, RungMeasurement
from engine import backends
from kernels import numba_support, nvrtc, registry
from kernels.errors import KernelError
from kernels.ops import Params
from kernels.registry import Rung

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable())),
    pytest.mark.skipif(numba_support.unavailable() is not None, reason=str(numba_support.unavailable())),
]

ASSIGNMENT = """name = "tiles"
device = "cuda"
[[exercise]]
name = "conv"
op = "conv"
shape = [2, 3, 12, 12, 4, 5]
points = 10
[[exercise.threshold]]
rung = "naive"
ratio = 2
points = 1
[[exercise.count]]
what = "sectors"
most = 1.25
of = "least"
points = 2
[[exercise.count]]
what = "wavefronts"
most = 1.1
of = "least"
points = 4
[[exercise.count]]
what = "instructions"
most = 0.5
of = "naive"
points = 8
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(backends.get("engine-cuda"), "unavailable", lambda: "there is no GPU", raising=True)
    rung = registry.find("cuda", "conv", "shared_image")
    text = rung.source.replace(f"rung = {rung.number}", "rung = 90").replace(f'"{rung.name}"', '"mine"')
    (tmp_path / "90_mine.cu").write_text(text)
    (tmp_path / "assignment.toml").write_text(ASSIGNMENT)
    return tmp_path


@pytest.mark.sampled(6, "longest")
def test_counts_are_thresholds_and_a_race_is_found(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its rows of 12 words of shared memory make two-way conflicts; all its loads are coalesced."""
    assert main.main(["course", "check", str(own)]) == 0
    said = capsys.readouterr().out
    assert "20 of 25 points" in said
    assert "at most 1.25× the least sectors: reached" in said
    assert "at most 1.1× the least wavefronts: not reached" in said
    assert "at most 0.5× the instructions of naive: reached" in said
    assert "its speed is not judged without a GPU" in said
    assert "µs" not in said
    kernel = own / "90_mine.cu"
    kernel.write_text(kernel.read_text().replace("__syncthreads();", ""))
    assert main.main(["course", "check", str(own)]) == 1
    said = capsys.readouterr().out
    assert "90_mine.cu:" in said
    assert "at most" not in said


def test_a_class_is_graded_without_a_gpu_but_for_its_times(own: Path) -> None:
    job = exercises.job_of(read(own))
    of = grading.without_gpu(grading.Class(job, ()))
    assert (of.job.simulated, of.job.runs_on) == (True, "cpu")
    assert of.job.asked(job.exercises[0]) != job.asked(job.exercises[0]), "on a GPU it is graded anew"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulated, "missing", lambda: "there is no compiler")
        assert grading.without_gpu(grading.Class(job, ())).job == job


def test_without_a_gpu_nobody_waits_for_it_and_a_large_hidden_shape_is_tried_as_a_small_one(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Lock:
        def give_way(self) -> bool:
            return False

        def alone(self) -> None:
            raise AssertionError("others are judged meanwhile")

    given = exercises.job_of(read(own))
    job = msgspec.structs.replace(given, simulated=True)
    exercise = msgspec.structs.replace(
        job.exercises[0], hidden=({**job.exercises[0].params, "n": 1024},), quick=True
    )
    assert params_of(exercise.op, exercise.hidden[0]).flops > simulated.MOST_FLOPS
    seen: list[Params] = []

    def tried(rung: Rung, params: Params, *_: object, **__: object) -> None:
        seen.append(params)
        raise KernelError("its params are seen")

    monkeypatch.setattr(judge, "Trial", tried)
    monkeypatch.setattr(simulated, "judged", lambda rung, params, measured, *_: measured)
    folder = own / "handed" / exercise.name
    folder.mkdir(parents=True)
    mine = (own / "90_mine.cu").read_text()
    (folder / f"{NUMBER}_{NAME}.cu").write_text(
        mine.replace("rung = 90", f"rung = {NUMBER}").replace('"mine"', f'"{NAME}"')
    )
    lock: Any = Lock()
    judged = Judging(
        msgspec.structs.replace(job, exercises=(exercise,)),
        folder.parent,
        lambda *_: None,
        lambda: False,
        lock,
    )
    made, _ = judged.graded(GradeCase(student="ada", exercise=exercise.name))
    assert made.disposition == "failed"
    assert "on a hidden shape" in made.reason
    assert [params.flops <= simulated.MOST_FLOPS for params in seen] == [True]


def test_counts_are_of_a_kernel_that_is_right_where_it_is_counted(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It can tell that no GPU runs it, and would cost least by doing nothing. That costs it its counts and no
    more, as all else does that goes wrong with counting."""
    job = exercises.job_of(read(own))
    exercise = msgspec.structs.replace(job.exercises[0], thresholds=(), counts=job.exercises[0].counts[:1])
    case = GradeCase(student="ada", exercise=exercise.name)
    right = RungMeasurement(case=RungCase(rung=NAME, precision="fp32"), disposition="ok")
    monkeypatch.setattr(Judging, "_ladder", lambda *_, **__: ({NAME: right}, None))
    monkeypatch.setattr(judging, "settled", lambda tried: True)

    def made(text: str) -> Graded:
        (own / exercise.name).mkdir(exist_ok=True)
        (own / exercise.name / f"{NUMBER}_{NAME}.cu").write_text(submissions.renamed(text))
        judge = Judging(
            msgspec.structs.replace(job, exercises=(exercise,)), own, lambda *_: None, lambda: False
        )
        return judge.graded(case)[0]

    text = (own / "90_mine.cu").read_text()
    assert [count.reached for count in made(text).counts] == [True]
    at = text.index("{", text.index("__global__")) + 1
    idle = made(f"{text[:at]}\n    return;{text[at:]}")
    assert (idle.disposition, idle.counts) == ("ok", ())
    assert idle.notes == (
        "its counts are not known: without a GPU, where it is counted, its answer is wrong (unwritten)",
    )

    def counted(*_: object) -> dict[str, int]:
        raise IndexError("what a file of a student's does to us")

    monkeypatch.setattr(simulated, "counted", counted)
    odd = made(text)
    assert (odd.disposition, odd.counts) == ("ok", ())
    assert odd.notes == ("its counts are not known: a fault of the judge (IndexError)",)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('what = "sectors"', 'what = "sector"', "sectors"),
        ('of = "naive"', 'of = "least"', "no least number of instructions"),
        ('of = "naive"', 'of = "nosuch"', "nosuch"),
        ('device = "cuda"', 'device = "cpu"', "a count is of CUDA kernels"),
    ],
)
def test_a_count_that_there_is_not_is_a_sentence(
    old: str, new: str, told: str, own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (own / "assignment.toml").write_text(ASSIGNMENT.replace(old, new))
    assert main.main(["course", "check", str(own)]) == 2
    said = capsys.readouterr().err
    assert told in said
    assert len(said.strip().splitlines()) == 1


def test_counts_are_points_and_stand_on_the_student_s_page(own: Path) -> None:
    job = exercises.job_of(read(own))
    one = Student(key="ada", name="Ada", who="ada")
    made = Graded(
        case=GradeCase(student="ada", exercise="conv"),
        disposition="ok",
        undecided="not judged without a GPU",
        counts=(
            Counted("sectors", 100, 110.0, True),
            Counted("wavefronts", 200, 110.0, False),
            Counted("instructions", 5, 10.0, True),
        ),
    )
    (mark,) = marks(job, [one], [made])
    assert (mark.points, mark.most) == (20, 25)
    assert mark.exercises[0].band.endswith("instructions of naive; its speed is not judged without a GPU")
    header = Grade(job=job, cases=(made.case,), students=(one,))
    pages.write(own, header, [mark])
    page = (own / "students" / "ada.html").read_text()
    assert "at most 1.1× the least wavefronts" in page
    assert "0 of 4" in page
    changed = msgspec.structs.replace(job.exercises[0], counts=())
    assert job.asked(changed) != job.asked(job.exercises[0]), "what was graded by other limits is graded anew"
