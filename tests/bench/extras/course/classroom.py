"""A class that nobody taught: five exercises, and what students hand in: right, slow, wrong, and worse.

`python -m tests.bench.extras.course.classroom DIR --students 300` writes the assignment and the submissions
of a class; what each student did stands in `class.json` beside them, and `surprises` tells what was judged
otherwise than that asks for.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Sequence
from pathlib import Path

from bench.extras.course import walls
from kernels import registry
from kernels.errors import UnavailableError

ASSIGNMENT = """\
name = "five-kernels"
title = "Five kernels"
device = "{device}"
[limits]
seconds = {seconds}
budget = {budget}
memory_mib = 2048
[hints]
crashed = "Something ends the process."
"""
EXERCISE = """\
[[exercise]]
name = "{op}"
op = "{op}"
{problem}
points = 10
checks = "quick"
[[exercise.threshold]]
rung = "{rung}"
ratio = 0.4
points = 5
[[exercise.hidden]]
{hidden}
"""
PROBLEMS = {  # of some tenths of a millisecond a pass: what is much shorter a busy machine cannot time
    "conv": ("shape = [4, 3, 32, 32, 8, 3]\npad = 1", "shape = [2, 2, 9, 7, 3, 3]"),
    "gemm": ("params = {m = 128, n = 256, k = 256, bias = true}", "params = {m = 5, n = 9, k = 17}"),
    "pool": (
        'params = {kind = "max", n = 4, c = 16, h = 32, w = 32, kh = 3, kw = 3, stride_h = 2, stride_w = 2}',
        "params = {n = 1, c = 7, h = 11, w = 9}",
    ),
    "softmax": ("params = {outer = 400, axis = 100, inner = 1}", "params = {outer = 3, axis = 7, inner = 5}"),
    "lrn": (
        "params = {n = 2, c = 16, inner = 256, size = 5}",
        "params = {n = 1, c = 3, inner = 10, size = 3}",
    ),
}
# How large the answers on the hidden shapes are.
HIDDEN = {"conv": 2 * 3 * 7 * 5, "gemm": 5 * 9, "pool": 7 * 5 * 4, "softmax": 3 * 7 * 5, "lrn": 30}

# Seconds that an exercise may take. A GPU is had alone, and whoever never ends has it for all of them; a
# right kernel took 4 s there at most, compiled for the first time.
SECONDS = {"cpu": 20.0, "cuda": 10.0}

# What a kernel does beside its work: `again()` is the work itself.
DEEDS = {
    "right": "again()",
    "slow": "[again() for _ in range(12)]",
    "wrong": "again(); np.multiply(output, 1.25, out=output)",
    "hidden": "again(); output.reshape(-1)[-1:] += 1000 * (output.size == HIDDEN)",
    "unwritten": "kept = output.reshape(-1)[-1].copy(); again(); output.reshape(-1)[-1] = kept",
    "remembers": "output.shape in SEEN or (again(), SEEN.update({output.shape: output.copy()})); "
    "np.copyto(output, SEEN[output.shape])",
    "crash": "import ctypes; ctypes.string_at(0)",
    "exits": "import os; os._exit(0)",
    "kills": "import os, signal; os.kill(os.getppid(), signal.SIGKILL)",
    "hang": "exec('while True: pass')",
    "memory": "SEEN.setdefault(0, []).extend(np.empty(1 << 27) for _ in range(64))",
    "files": "open('/etc/passwd')",
    "network": "import socket; socket.create_connection(('127.0.0.1', PORT), 1)",
}
LEFT = ("nothing", "header", "twins")  # files that are no kernel
# The disposition of what is handed in; what is not here passes.
JUDGED_AS = {
    **dict.fromkeys(("wrong", "hidden", "unwritten", "remembers"), ("incorrect",)),
    **dict.fromkeys(("crash", "exits"), ("crashed",)),
    "kills": ("crashed", "failed"),
    "hang": ("timed_out",),
    "memory": ("out_of_memory",),
    **dict.fromkeys(("files", "network", *LEFT), ("failed",)),
}


# The same on a GPU: what a kernel does before its work, which `{` is followed by.
CUDA_DEEDS = {
    "right": ";",
    "slow": "for (int i = 0; i < 200; ++i) __nanosleep(1000);",
    "unwritten": "if (blockIdx.x == 0) return;",
    "crash": "*(volatile int*)8 = 1;",
    "traps": 'asm("trap;");',
    "hang": "while (true) __nanosleep(100);",
    "broken": "int x = ;",
    "memory": "if (huge[threadIdx.x]) return;",
    "remembers": "__shared__ int done; if (threadIdx.x == 0) done = atomicAdd(&passes, 1) > 4000; "
    "__syncthreads(); if (done) return;",
}
BEFORE = {"remembers": "__device__ int passes;\n", "memory": "__device__ char huge[300ull << 30];\n"}
CUDA_JUDGED_AS = {
    **dict.fromkeys(("unwritten", "remembers"), ("incorrect",)),
    **dict.fromkeys(("crash", "traps"), ("crashed", "failed")),
    "hang": ("timed_out",),
    "memory": ("out_of_memory", "failed"),
    "broken": ("failed",),
}


def assignment(
    exercises: Sequence[str] = tuple(PROBLEMS),
    seconds: float = 20.0,
    budget: float = 0.25,
    device: str = "cpu",
) -> str:
    text = ASSIGNMENT.format(seconds=seconds, budget=budget, device=device)
    for op in exercises:
        problem, hidden = PROBLEMS[op]
        rung = registry.rungs(device, op)[0].name
        text += EXERCISE.format(op=op, problem=problem, hidden=hidden, rung=rung)
    return text


def kernel(op: str, deed: str, port: int = 9, rung: int = 1) -> str:
    """The text of a submission: a rung of ours that does `deed` in each pass."""
    source = registry.find("cpu", op, rung).source
    source = re.sub(r"# rung = \d+", "# rung = 90", source, count=1)
    source = re.sub(r'# name = "\w+"', '# name = "mine"', source, count=1)
    return source + (
        f"\n\n_bind, SEEN, PORT, HIDDEN = bind, {{}}, {port}, {HIDDEN[op]}\n\n\n"
        "def bind(p, inputs, output, workspace):\n"
        "    again = _bind(p, inputs, output, workspace)\n\n"
        f"    def run():\n        {DEEDS[deed]}\n\n    return run\n"
    )


def cuda_kernel(op: str, deed: str) -> str:
    """The same in CUDA C++."""
    source = registry.find("cuda", op, 1).source
    source = re.sub(r"^rung = \d+", "rung = 90", source, count=1, flags=re.MULTILINE)
    source = re.sub(r'^name = "\w+"', 'name = "mine"', source, count=1, flags=re.MULTILINE)
    at = source.index("{", source.index("__global__")) + 1
    source = f"{source[:at]}\n    {CUDA_DEEDS[deed]}{source[at:]}"
    return source.replace('extern "C" __global__', f'{BEFORE.get(deed, "")}extern "C" __global__', 1)


def hand_in(folder: Path, deeds: dict[str, str], port: int = 9, device: str = "cpu") -> None:
    """One student's folder: by exercise what is done."""
    folder.mkdir(parents=True)
    for op, deed in deeds.items():
        own = folder / op
        own.mkdir()
        if deed == "nothing":
            continue
        if device == "cuda":
            left = "no header" if deed == "header" else cuda_kernel(op, deed)
            (own / "90_mine.cu").write_text(left)
            continue
        if deed == "header":
            (own / "90_mine.py").write_text("def bind(p, inputs, output, workspace):\n    pass\n")
            continue
        text = kernel(op, "right" if deed == "twins" else deed, port)
        (own / "90_mine.py").write_text(text)
        if deed == "twins":
            (own / "91_other.py").write_text(f"{text}\n# another\n")


def write(
    folder: Path,
    students: int,
    seed: int = 0,
    bad: float = 0.15,
    seconds: float | None = None,
    device: str = "cpu",
) -> None:
    """A class: of its kernels the part `bad` does something worse than being right or slow."""
    draw = random.Random(seed)
    (folder / "assignment.toml").parent.mkdir(parents=True, exist_ok=True)
    limit = SECONDS[device] if seconds is None else seconds
    (folder / "assignment.toml").write_text(assignment(seconds=limit, device=device))
    known = (*DEEDS, *LEFT) if device == "cpu" else (*CUDA_DEEDS, "nothing", "header")
    worse = [deed for deed in known if deed not in ("right", "slow")]
    did = {}
    for number in range(students):
        deeds = {
            op: draw.choice(worse) if draw.random() < bad else draw.choice(("right", "right", "slow"))
            for op in PROBLEMS
        }
        name = f"student-{number:03d}"
        hand_in(folder / "submissions" / name, deeds, device=device)
        did[name] = deeds
    (folder / "class.json").write_text(json.dumps(did, indent=1))


def surprises(folder: Path, grades: Path) -> list[str]:
    """What was judged otherwise than what each student did asks for."""
    from bench.extras.course.records import KIND

    did = json.loads((folder / "class.json").read_text())
    found = KIND.open(grades)
    judged_as = JUDGED_AS if found.job.device == "cpu" else CUDA_JUDGED_AS | dict.fromkeys(LEFT, ("failed",))
    told = []
    for graded in found.measurements():
        deed = did[graded.case.student][graded.case.exercise]
        if graded.disposition not in judged_as.get(deed, ("ok",)):
            told.append(f"{graded.case.words}: {deed} is {graded.disposition} ({graded.reason})")
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--students", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bad", type=float, default=0.15)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    write(given.folder, given.students, given.seed, given.bad, device=given.device)


if __name__ == "__main__":
    main()


def walled() -> list[str]:
    """Behind what this machine has."""
    try:
        return ["--walls", walls.chosen()]
    except UnavailableError:
        return ["--no-walls"]
