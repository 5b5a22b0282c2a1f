"""What the simulator counts beside what Nsight Compute does, and what compute-sanitizer finds of the planted
mistakes.

On a machine with a GPU, whose figures are kept in one file:

    python -m tests.kernels.simulated.hardware --collect counters.json     (takes ncu)
    python -m tests.kernels.simulated.hardware --sanitize found.json       (takes compute-sanitizer)

and anywhere, without a GPU:

    python -m tests.kernels.simulated.hardware --compare counters.json --found found.json --write PAGE

Both sides launch the same rungs on the same shapes and inputs: cases are drawn by a seed, and a rung takes of
those that it can the one nearest to OUTPUTS outputs.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from kernels import launch, registry
from kernels.registry import Rung
from tests.kernels import cuda_cases, sanitize
from tests.kernels.cuda_cases import Case
from tests.kernels.simulated import planted
from tests.kernels.simulated.planted import Planted

OPS = ("conv", "gemm", "pool", "softmax", "reduce", "transpose", "lrn", "unary", "binary")
OUTPUTS, MOST_FLOPS = 3000, 3_000_000
CAPABILITY, ARCH = (9, 0), "sm_90"
TOOLS = sanitize.TOOLS
# What is asked of ncu, of what it knows: its names change from version to version.
WANTED = re.compile(
    r"smsp__inst_executed"
    r"|l1tex__t_(?:sectors|requests)_pipe_lsu_mem_global_op_(?:ld|st|ldgsts_cache_access)"
    r"|l1tex__t_sectors_pipe_lsu_mem_global_op_(?:red|atom)|l1tex__t_sectors_pipe_tex_mem_texture"
    r"|l1tex__t_sectors_pipe_lsu_mem_local_op_(?:ld|st)"
    r"|l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_(?:ld|st)"
    r"|l1tex__data_pipe_lsu_wavefronts_mem_shared_op_(?:ld|st|atom)"
    r"|smsp__sass_inst_executed_op_(?:shared_ld|shared_st|ldsm|global_ld|global_st|ldgsts)"
)


def rungs() -> list[Rung]:
    found = [r for op in OPS for r in registry.rungs("cuda", op) if not (r.yardstick or r.language)]
    return [rung for rung in found if case_of(rung) is not None]


@cache
def _cases(op: str) -> tuple[Case, ...]:
    return tuple(case for case in cuda_cases.cases(op) if case.params.flops <= MOST_FLOPS)


def case_of(rung: Rung) -> Case | None:
    known = [case for case in _cases(rung.op) if cuda_cases.takes(rung, case.params, CAPABILITY)]
    return min(known, key=lambda case: abs(math.log(case.expected.size / OUTPUTS)), default=None)


def _stages(rung: Rung) -> Sequence[launch.Stage]:
    case = case_of(rung)
    assert case is not None
    return launch.launch(case.params, rung).kernels(rung.op)


# --- on a GPU ---


def launch_all() -> None:
    """Each rung once; a line a kernel, in order."""
    from tests.kernels.cuda_device import Device

    device = Device()
    for rung in rungs():
        case = case_of(rung)
        assert case is not None
        names = [stage.function for stage in _stages(rung)]
        try:
            got, _ = device.run(rung, case.params, case.inputs, case.expected.shape, case.dtype)
            wrong = cuda_cases.differs(got, case, rung.precision)
        except Exception as error:  # the others are still to be counted
            names, wrong = [], f"{type(error).__name__}: {error}"
        line = {"rung": rung.label, "shape": case.params.words, "kernels": names, "wrong": wrong}
        print("@@" + json.dumps(line), flush=True)


def _program(name: str) -> str:
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    places = [Path(home) / "bin" / name for home in homes if home]
    places += sorted(Path("/opt/nvidia/nsight-compute").glob(f"*/{name}"))
    found = shutil.which(name) or next((str(place) for place in places if place.is_file()), None)
    if found is None:
        raise SystemExit(f"{name} is not there; it comes with NVIDIA's CUDA toolkit")
    return found


def collect(path: Path) -> None:
    """Counters of each launch to a file."""
    import cupy

    ncu, started = _program("ncu"), time.monotonic()
    chip = {"90": "gh100", "80": "ga100", "89": "ad102", "75": "tu102"}
    chips = chip.get(str(cupy.cuda.Device().compute_capability), "gh100")
    known = subprocess.run(
        [ncu, "--query-metrics", "--chip", chips], capture_output=True, text=True, check=True
    )
    names = [word for line in known.stdout.splitlines() if (word := line.split(" ")[0])]
    asked = [f"{name}.sum" for name in names if WANTED.fullmatch(name)]
    command = [ncu, "--csv", "--page", "raw", "--print-units", "base", "--replay-mode", "kernel"]
    # CuPy's own kernels stand between: they are not looked at.
    functions = {s.function for rung in rungs() for s in _stages(rung)}
    command += ["--kernel-name", f"regex:^({'|'.join(sorted(functions))})$"]
    command += ["--metrics", ",".join(asked), "--log-file", str(log := path.with_suffix(".ncu.csv"))]
    command += [sys.executable, "-m", "tests.kernels.simulated.hardware", "--launch"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    lines = [json.loads(line[2:]) for line in done.stdout.splitlines() if line.startswith("@@")]
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    rows = list(csv.DictReader(io.StringIO(text[text.find('"ID"') :])))
    rows = [row for row in rows if (row.get("ID") or "").isdigit()]  # the line of units has none
    for line in lines:
        line["counted"] = []
        for name in line["kernels"]:
            while rows and rows[0]["Kernel Name"].split("(")[0] != name:
                rows.pop(0)
            if rows:
                row = rows.pop(0)
                values = {key.removesuffix(".sum"): _number(row.get(key)) for key in asked if row.get(key)}
                line["counted"].append(
                    {"kernel": name, "grid": row.get("Grid Size"), "block": row.get("Block Size")} | values
                )
    version = subprocess.run([ncu, "--version"], capture_output=True, text=True, check=False)
    properties = cupy.cuda.runtime.getDeviceProperties(0)
    whole = {
        "device": properties["name"].decode(),
        "driver": cupy.cuda.runtime.driverGetVersion(),
        "ncu": version.stdout.split()[-3:],
        "metrics": asked,
        "rungs": lines,
        "exit": done.returncode,
        "seconds": round(time.monotonic() - started),
    }
    path.write_text(json.dumps(whole, indent=1), encoding="utf-8")
    counted = sum(bool(line["counted"]) for line in lines)
    print(f"{counted} of {len(lines)} rungs counted, {len(asked)} metrics, exit {done.returncode}")


def _number(text: str | None) -> float:
    return float((text or "0").replace(",", ""))


# Kinds that never end on a GPU, or need not.
_HANG = ("stuck", "endless")
_LATE = ("divergent_barrier", "barrier_mismatch")


def _ordered() -> list[tuple[int, Planted]]:
    """What a GPU can run to its end, that which may not be the last."""
    known = [(n, mistake) for n, mistake in enumerate(planted.planted()) if mistake.kind not in _HANG]
    return sorted(known, key=lambda item: item[1].kind in _LATE)


def launch_planted() -> None:
    """Each planted mistake once, and the same without it: kernels m000w, m000r, …"""
    import cupy
    import numpy as np

    cupy.cuda.set_allocator(None)  # each allocation alone, so that memcheck knows where it ends
    for number, mistake in _ordered():
        count = mistake.threads * mistake.blocks
        for which, text in (("w", mistake.wrong), ("r", mistake.right)):
            name = f"m{number:03}{which}"
            print(f"@@{name}", flush=True)
            try:
                code = text.replace(" mine(", f" {name}(", 1)
                made = cupy.RawModule(code=code, options=("-std=c++17", "-lineinfo"), backend="nvrtc")
                x = cupy.asarray(np.arange(count, dtype=np.float32) % 17 + 1)
                z = cupy.asarray(np.zeros(count, np.float32))
                y = cupy.empty(count, np.float32)
                made.get_function(name)((mistake.blocks,), (mistake.threads,), (x, y, z, np.int32(count)))
                cupy.cuda.Device().synchronize()
            except Exception as error:
                print(f"@@{name} {type(error).__name__}: {str(error)[:200]}", flush=True)


def sanitized(path: Path) -> None:
    """What each tool says of each planted mistake, to a file."""
    program = sanitize.sanitizer()
    if program is None:
        raise SystemExit("compute-sanitizer is not there; it comes with NVIDIA's CUDA toolkit")
    found: dict[str, Any] = {}
    for tool in TOOLS:
        command = [program, "--tool", tool, "--destroy-on-device-error", "kernel", "--print-limit", "100000"]
        command += ["--racecheck-report", "all"] if tool == "racecheck" else []
        command += [sys.executable, "-m", "tests.kernels.simulated.hardware", "--launch-planted"]
        try:
            done = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=45, check=False
            )
            output, ended = done.stdout, True
        except subprocess.TimeoutExpired as error:
            raw = error.stdout or b""
            output, ended = raw.decode(errors="replace") if isinstance(raw, bytes) else raw, False
        said: dict[str, list[str]] = {}
        for line in output.splitlines():
            if (kernel := re.search(r"\bm\d{3}[wr]\b", line)) and not line.startswith("@@"):
                words = re.sub(r"0x[0-9a-f]+", "…", line.lstrip("= ")).strip()
                if words not in (kept := said.setdefault(kernel[0], [])) and len(kept) < 12:
                    kept.append(words)
        reached = re.findall(r"^@@(m\d{3}[wr])$", output, re.M)
        tail = output[-3000:] if not ended or not reached else ""
        found[tool] = {"found": said, "reached": reached, "ended": ended, "tail": tail}
        print(f"{tool}: {len(said)} kernels named, {len(reached)} reached, ended {ended}", flush=True)
    names = {f"m{n:03}": mistake.name for n, mistake in _ordered()}
    whole = {"tools": found, "names": names}
    path.write_text(json.dumps(whole, indent=1), encoding="utf-8")


# --- without one ---


def simulated(rung: Rung) -> dict[str, float]:
    """What the simulator counts of a rung, under names of its own."""
    from engine.cuda.simulated import SimulatedRungSession

    case = case_of(rung)
    assert case is not None
    given = [array for array in case.inputs if array is not None]
    session = SimulatedRungSession(rung, case.params, given, arch=ARCH)
    session.run()
    whole = session.report.total
    counts = {f"{space} {kind}": float(units) for (space, kind), units in whole.kinds.items()}
    # What is copied in the background stands among the loads there.
    counts["global ld"] = counts.get("global ld", 0.0) + counts.get("global async", 0.0)
    counts |= {f"{space} requests": float(count) for space, count in whole.requests.items()}
    return counts | {"instructions": float(whole.instructions), "wrong": float(bool(session.report.findings))}


# What stands in the table: our name, those of ncu of which the first known counts, and how near is near.
COUNTERS = {
    "global ld": (("l1tex__t_sectors_pipe_lsu_mem_global_op_ld",), 0.02),
    "global st": (("l1tex__t_sectors_pipe_lsu_mem_global_op_st",), 0.02),
    "shared ld": (("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld",), 0.05),
    "shared st": (("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st",), 0.05),
    "instructions": (("smsp__inst_executed",), 0.0),
}


# What asks for memory there: requests where ncu counts them, else instructions.
_SASS = "smsp__sass_inst_executed_op_"
EXECUTED = {
    "global": [f"l1tex__t_requests_pipe_lsu_mem_global_op_{way}" for way in ("ld", "st")],
    "shared": [f"{_SASS}shared_ld", f"{_SASS}shared_st", f"{_SASS}ldsm"],
}


def compared(
    whole: dict[str, Any], say: Any = print
) -> Iterator[tuple[str, str, dict[str, tuple[float, float]]]]:
    """(rung, shape, our and its count by name) of each rung that was counted."""
    known = {rung.label: rung for rung in rungs()}
    for line in whole["rungs"]:
        rung = known.get(line["rung"])
        case = case_of(rung) if rung is not None else None
        if rung is None or case is None or not line["counted"]:
            say(f"{line['rung']}: not counted there ({line['wrong'] or 'no line of ncu'})")
            continue
        if case.params.words != line["shape"] or len(line["counted"]) != len(line["kernels"]):
            say(f"{line['rung']}: another shape, or kernels were not counted")
            continue
        ours = simulated(rung)
        pairs = {}
        for name, (theirs, _) in COUNTERS.items():
            metric = next((m for m in theirs if m in line["counted"][0]), None)
            if metric is not None:
                pairs[name] = ours.get(name, 0.0), sum(kernel.get(metric, 0.0) for kernel in line["counted"])
        for space in ("global", "shared"):
            executed = sum(kernel.get(name, 0.0) for kernel in line["counted"] for name in EXECUTED[space])
            pairs[f"{space} requests"] = ours.get(f"{space} requests", 0.0), executed
        yield line["rung"], line["shape"], pairs


def near(ours: float, theirs: float, share: float) -> bool:
    return abs(ours - theirs) <= share * max(theirs, 1.0)


def _why(name: str, pairs: dict[str, tuple[float, float]]) -> str:
    """What a count that is far from the GPU's comes of, as far as the counts tell."""
    space = name.partition(" ")[0]
    ours, theirs = pairs[f"{space} requests"]
    if not near(ours, theirs, 0.01):
        return f"ptxas made other instructions of the PTX that access {space} memory, fewer or wider ones"
    if name == "global ld":
        return (
            "there are as many requests; lanes that copy 16 bytes in the background share sectors, and "
            "the GPU brings some of these more than once, even within the 8 lanes that it serves at once"
        )
    return f"there are as many instructions that access {space} memory; why they take more turns is not known"


def page(whole: dict[str, Any]) -> list[str]:
    """The section of docs/results/simulated.md."""
    rows, within = [], dict.fromkeys(COUNTERS, 0)
    beyond: dict[str, list[str]] = {}
    for label, _, pairs in compared(whole):
        cells = []
        for name, (_, share) in COUNTERS.items():
            ours, theirs = pairs.get(name, (0.0, 0.0))
            within[name] += near(ours, theirs, share)
            if share and not near(ours, theirs, share):
                beyond.setdefault(_why(name, pairs), []).append(f"{label} ({name})")
            cells.append(f"{ours:,.0f} / {theirs:,.0f}")
        rows.append(f"| {label} | {' | '.join(cells)} |")
    shares = [
        f"- {name}: {within[name]} of {len(rows)} rungs within {share:.0%}"
        for name, (_, share) in COUNTERS.items()
        if share
    ]
    return [
        "## Beside Nsight Compute",
        "",
        f"Counted by ncu on an {whole['device']}, of each rung one launch on one shape; here the same PTX",
        "was run. Sectors of 32 bytes of global memory, wavefronts of shared memory, and warp instructions",
        "(of PTX here, of the machine's there), each ours / the GPU's:",
        "",
        *shares,
        "",
        "Those beyond:",
        "",
        *(f"- {', '.join(which)}: {why}." for why, which in beyond.items()),
        "",
        f"| rung | {' | '.join(COUNTERS)} |",
        f"|---|{'---|' * len(COUNTERS)}",
        *rows,
        "",
    ]


def found_page(whole: dict[str, Any]) -> list[str]:
    """What the tools of compute-sanitizer find of the planted mistakes."""
    lines = ["## Planted mistakes under compute-sanitizer", ""]
    lines += [
        "Named: the tool names the kernel with the mistake. False: it names the one without. Not reached:",
        "the tool did not end within its time.",
        "",
        f"| mistake | kind | {' | '.join(TOOLS)} |",
        f"|---|---|{'---|' * len(TOOLS)}",
    ]
    total = dict.fromkeys(TOOLS, 0)
    known = {mistake: number for number, mistake in whole["names"].items()}
    ran = [mistake for _, mistake in _ordered() if mistake.name in known]
    for mistake in ran:
        name, cells = known[mistake.name], []
        for tool in TOOLS:
            of = whole["tools"].get(tool, {"found": {}, "reached": []})
            said = ["named"] * (name + "w" in of["found"]) + ["false"] * (name + "r" in of["found"])
            total[tool] += name + "w" in of["found"]
            cells.append(", ".join(said) or ("" if name + "w" in of["reached"] else "not reached"))
        lines.append(f"| {mistake.name} | {mistake.kind} | {' | '.join(cells)} |")
    sums = ", ".join(f"{tool} {count}" for tool, count in total.items())
    return [*lines, "", f"Of {len(ran)} mistakes they name: {sums}.", ""]


def tables(path: Path) -> str:
    """Both sections, of a file with "counters" and "found" as --collect and --sanitize write them."""
    whole = json.loads(path.read_text(encoding="utf-8"))
    return "\n".join([*page(whole["counters"]), *found_page(whole["found"])])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", 1)[0])
    parser.add_argument("--collect", type=Path, help="a file for what ncu counts here")
    parser.add_argument("--sanitize", type=Path, help="a file for what compute-sanitizer finds here")
    parser.add_argument("--compare", type=Path, help="a file of --collect")
    parser.add_argument("--found", type=Path, help="a file of --sanitize")
    parser.add_argument("--write", type=Path, help="a file for the tables, else they are printed")
    parser.add_argument("--launch", action="store_true", help="what ncu looks at")
    parser.add_argument("--launch-planted", action="store_true", help="what compute-sanitizer looks at")
    asked = parser.parse_args(arguments)
    if asked.launch:
        launch_all()
    if asked.launch_planted:
        launch_planted()
    if asked.collect:
        collect(asked.collect)
    if asked.sanitize:
        sanitized(asked.sanitize)
    lines: list[str] = []
    if asked.compare:
        lines += page(json.loads(asked.compare.read_text(encoding="utf-8")))
    if asked.found:
        lines += found_page(json.loads(asked.found.read_text(encoding="utf-8")))
    if asked.write:
        asked.write.write_text("\n".join(lines), encoding="utf-8")
    elif lines:
        print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
