"""A class that hands in CUDA, graded on a GPU behind each wall that is to be had: what one kernel takes, or
does without end, costs its author alone."""

from __future__ import annotations

from pathlib import Path

import pytest

import main
from bench.extras.course import walls
from bench.extras.course.records import KIND
from tests.bench.extras.course import classroom

pytestmark = [pytest.mark.gpu, pytest.mark.real_gpu]

# What stands before the kernel, and at its beginning; how it ends, and what its author reads.
HANDED_IN = {
    "a-right-one": ("", "", ("ok",), ""),
    "a-file-of-others": ('#include "/etc/passwd"\n', "", ("failed",), "/etc/passwd"),
    "large-variables": (
        "__device__ char large[3ull << 30];\n",
        "if (large[threadIdx.x]) return;",
        ("out_of_memory",),
        "3,072 MiB of variables",
    ),
    "large-stacks": (
        "",
        "volatile char large[200000]; for (int i = threadIdx.x; i < 200000; i += 999) large[i] = i;",
        ("out_of_memory",),
        "bytes each",
    ),
    # Each gets no memory: all together have the 8 MiB of the heap.
    "takes-the-heap": ("", "if (malloc(64 << 20) != nullptr) return;", ("ok",), ""),
    # What it says would fill a disk: it goes nowhere.
    "prints": (
        "",
        'if (threadIdx.x == 0) for (int i = 0; i < 20; ++i) printf("axis 70001, block %d\\n", blockIdx.x);',
        ("ok",),
        "",
    ),
    "never-ends": ("", "while (true) __nanosleep(100);", ("timed_out",), ""),
    "another-right-one": ("", "", ("ok",), ""),
}


def text(before: str, within: str) -> str:
    source = classroom.cuda_kernel("softmax", "right")
    at = source.index("{", source.index("__global__")) + 1
    source = f"{source[:at]}\n    {within}{source[at:]}"
    return source.replace('extern "C" __global__', f'{before}extern "C" __global__', 1)


@pytest.mark.parametrize("wall", walls.WALLS)
def test_what_a_kernel_takes_of_a_gpu_costs_its_author_alone(
    tmp_path: Path, wall: str, capfd: pytest.CaptureFixture[str]
) -> None:
    if lacking := walls.standing()[wall]:
        pytest.skip(lacking)
    (tmp_path / "assignment.toml").write_text(
        classroom.assignment(["softmax"], seconds=8.0, budget=0.1, device="cuda")
    )
    for name, (before, within, _, _) in HANDED_IN.items():
        (tmp_path / "in" / name).mkdir(parents=True)
        (tmp_path / "in" / name / "90_mine.cu").write_text(text(before, within))
    out = tmp_path / "out"
    command = ["course", "grade", str(tmp_path / "in"), "--assignment", str(tmp_path), "--out", str(out)]
    assert main.main([*command, "--walls", wall]) == 0
    with KIND.open(out) as folder:
        came = {graded.case.student: graded for graded in folder.measurements()}
    assert {name: came[name].disposition in HANDED_IN[name][2] for name in HANDED_IN} == dict.fromkeys(
        HANDED_IN, True
    ), {name: (one.disposition, one.reason) for name, one in came.items()}
    for name, (_, _, _, words) in HANDED_IN.items():
        assert words in came[name].reason
    of_others = came["a-file-of-others"].reason
    assert "could not open" in of_others or "cannot open" in of_others
    assert "root:" not in of_others
    assert "70001" not in capfd.readouterr().err
    assert not [path for path in out.rglob("*") if path.is_file() and b"70001, block 0" in path.read_bytes()]
