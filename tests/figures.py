"""Long reports of what docs/results/speed.md tells in one page, measured on this machine.

    python -m tests.figures --list
    python -m tests.figures --out figures

Each report is one HTML file with its tables, charts, intervals and commands. One that is there is not made
again, so a command that was stopped can be repeated. Exit codes: 0 every report is there; 1 one could not be
made.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from engine.backends import all_backends

ROOT = Path(__file__).resolve().parents[1]
LENETS = "lenet5-digits lenet5-fashion ece408-high ece408-low ece408-2conv"


class Report(NamedTuple):
    """name: of its file. runs: arguments of main.py, a run each. needs: the backends that have to be here."""

    name: str
    runs: tuple[str, ...]
    needs: tuple[str, ...]


CPU, CUDA = ("engine-cpu", "ort-cpu"), ("engine-cuda", "ort-cuda")
ON_CPU, ON_CUDA = (" ".join(f"--backend {name}" for name in pair) for pair in (CPU, CUDA))
REPORTS = (
    Report("goals-cpu", ("report goals speed-cpu",), CPU),
    Report("goals-cuda", ("report goals speed-h200",), CUDA),
    Report(
        "catalogue-cpu",
        (
            f"compare {LENETS} {ON_CPU} --batch 1,16,128 --images 1000",
            f"compare alexnet {ON_CPU} --batch 1,16 --images 16",
        ),
        CPU,
    ),
    Report(
        "catalogue-cuda",
        (
            f"compare {LENETS} {ON_CUDA} --batch 1..1024,10000 --images 1000 --budget 0.6",
            f"compare alexnet {ON_CUDA} --batch 1..1024 --images 200 --budget 0.8",
        ),
        CUDA,
    ),
    Report("ladder-cpu", ("ladder conv --device cpu --model ece408-high --batch 100",), CPU),
    Report(
        "ladder-cuda",
        tuple(
            f"ladder conv --device cuda --model {node} --batch {batch} --budget 0.2 --timeout 100"
            for node, batches in (
                ("ece408-high --node conv1", (10000,)),
                *((f"alexnet --node conv{number}", (1, 16, 128)) for number in (1, 2, 3)),
            )
            for batch in batches
        ),
        CUDA,
    ),
    Report("profile-cpu", (f"profile ece408-high {ON_CPU} --batch 1,16,128",), CPU),
    Report(
        "profile-cuda",
        tuple(f"profile {model} {ON_CUDA} --batch 1,16,1024" for model in ("ece408-high", "alexnet")),
        CUDA,
    ),
    Report(
        "rivals-cpu",
        (
            f"compare lenet5-digits alexnet {ON_CPU} --backend torch-cpu --backend torch-compile-cpu"
            " --backend openvino-cpu --batch 1,16,128 --batch alexnet=1,16 --images alexnet=16 --threads 1"
            " --budget 3 --instances 2 --no-layer-pass",
        ),
        (*CPU, "torch-cpu", "openvino-cpu"),
    ),
    Report(
        "rivals-cuda",
        (
            f"compare lenet5-digits alexnet {ON_CUDA} --backend torch-cuda-graph --backend torch-compile-cuda"
            " --batch 1,64,1024 --images 16 --precision fp32,tf32,fp16 --budget 0.8 --no-layer-pass"
            " --tune-reference",
        ),
        (*CUDA, "torch-cuda-graph"),
    ),
)


def lacking(report: Report) -> str:
    """Why this machine cannot make it; "" if it can."""
    known = all_backends()
    for name in report.needs:
        if name not in known:
            return f"there is no backend {name}"
        if reason := known[name].unavailable():
            return f"{name}: {reason}"
    return ""


def commands(report: Report, out: Path) -> list[list[str]]:
    """The command lines that make the report: its runs into folders below `out`, then the page."""
    page = out / f"{report.name}.html"
    if report.runs[0].startswith("report "):
        return [[*shlex.split(report.runs[0]), "--folder", str(out / report.name), "--out", str(page)]]
    folders = [out / report.name / str(number) for number in range(1, len(report.runs) + 1)]
    made = [_measured(shlex.split(run), at) for run, at in zip(report.runs, folders, strict=True)]
    return [*made, ["runs", "report", *map(str, folders), "--out", str(page)]]


def _measured(words: list[str], at: Path) -> list[str]:
    """A run into a folder; one that was stopped goes on, but for a profile, which is taken again."""
    if at.is_dir() and words[0] != "profile":
        return [words[0], "--resume", str(at), "--retry", "--charts", "none"]
    shutil.rmtree(at, ignore_errors=True)
    return [*words, "--charts", "none", "--out", str(at)]


def _run(words: list[str]) -> bool:
    """Whether the command did all that it was to do."""
    print(f"main.py {shlex.join(words)}", file=sys.stderr)
    program = [sys.executable, str(ROOT / "main.py"), *words]
    return not subprocess.run(program, stdout=subprocess.DEVNULL, check=False).returncode


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.figures", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("name", nargs="*", help="which reports (default: all that this machine can make)")
    parser.add_argument("--out", type=Path, default=Path("figures"), metavar="DIR", help="where they go")
    parser.add_argument("--list", action="store_true", help="say which reports this machine can make")
    asked = parser.parse_args(given)
    known = {report.name: report for report in REPORTS}
    if unknown := [name for name in asked.name if name not in known]:
        parser.error(f"there is no report {', '.join(unknown)}; there are {', '.join(known)}")
    failed = []
    for report in (known[name] for name in asked.name or known):
        page = asked.out / f"{report.name}.html"
        reason = lacking(report)
        if asked.list or reason:
            print(f"{report.name}: {reason or 'can be made here'}")
            failed += [report.name] if reason and report.name in asked.name and not asked.list else []
            continue
        if page.is_file() or all(_run(words) for words in commands(report, asked.out.absolute())):
            print(page)
        else:
            failed.append(report.name)
    if failed:
        print(f"not made: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
