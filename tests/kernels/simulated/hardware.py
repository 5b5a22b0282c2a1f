"""What the simulator counts beside what Nsight Compute does, and what compute-sanitizer finds of the planted
mistakes.

On a machine with a GPU, whose figures are kept in one file:

    python -m tests.kernels.simulated.hardware --collect counters.json     (takes ncu)
    python -m tests.kernels.simulated.hardware --sanitize found.json       (takes compute-sanitizer)

`--but FILE` leaves out what is counted, and what each tool has come to, in that file. Anywhere, without a
GPU, their figures are put into the file that the page is made of:

    python -m tests.kernels.simulated.hardware --keep docs/results/simulated-h100.json \\
        --compare counters.json --found found.json

Both sides launch the same rungs on the same shapes and inputs: cases are drawn by a seed, and a rung takes of
those that it can the one nearest to OUTPUTS outputs.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import json
import math
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from kernels import launch, nvrtc
from kernels.errors import KernelError
from kernels.registry import Rung
from tests.kernels import cuda_cases, sanitize
from tests.kernels.cuda_cases import Case
from tests.kernels.simulated import check, launched, planted
from tests.kernels.simulated.planted import Planted

OUTPUTS, MOST_FLOPS = 3000, 3_000_000
CAPABILITY, ARCH = (9, 0), "sm_90"
TOOLS = sanitize.TOOLS
PARTS = 4  # processes of each tool at once
STARTS_S, STUCK_S = 40.0, 12.0  # a process without a first kernel, and without a further one, is ended
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


def rungs(but: Collection[str] = ()) -> list[Rung]:
    """Those that take a case, without those of these labels."""
    return [rung for rung in check.RUNGS if rung.label not in but and case_of(rung) is not None]


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


def launch_all(but: Collection[str] = ()) -> None:
    """Each rung once; a line a kernel, in order."""
    from tests.kernels.cuda_device import Device

    device = Device()
    for rung in rungs(but):
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


def _compile(arch: str, label: str) -> None:
    """Into the cache. What cannot be compiled is told when it is launched."""
    rung = next(rung for rung in check.RUNGS if rung.label == label)
    case = case_of(rung)
    assert case is not None
    with contextlib.suppress(KernelError):
        nvrtc.compile_rung(rung, arch, launch.launch(case.params, rung).defines)


def _on_all_cores(work: Any, items: Sequence[Any]) -> None:
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        pool.map(work, items, chunksize=1)


def collect(path: Path, but: Collection[str] = ()) -> None:
    """Counters of each launch to a file, without the rungs of these labels."""
    import cupy

    ncu, started = _program("ncu"), time.monotonic()
    arch = f"sm_{cupy.cuda.Device().compute_capability}"
    _on_all_cores(partial(_compile, arch), [rung.label for rung in rungs(but)])
    chip = {"90": "gh100", "80": "ga100", "89": "ad102", "75": "tu102"}
    chips = chip.get(str(cupy.cuda.Device().compute_capability), "gh100")
    known = subprocess.run(
        [ncu, "--query-metrics", "--chip", chips], capture_output=True, text=True, check=True
    )
    names = [word for line in known.stdout.splitlines() if (word := line.split(" ")[0])]
    asked = [f"{name}.sum" for name in names if WANTED.fullmatch(name)]
    command = [ncu, "--csv", "--page", "raw", "--print-units", "base", "--replay-mode", "kernel"]
    # CuPy's own kernels stand between: they are not looked at.
    functions = {s.function for rung in rungs(but) for s in _stages(rung)}
    command += ["--kernel-name", f"regex:^({'|'.join(sorted(functions))})$"]
    command += ["--metrics", ",".join(asked), "--log-file", str(log := path.with_suffix(".ncu.csv"))]
    command += [sys.executable, "-m", "tests.kernels.simulated.hardware", "--launch", *but]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    lines = [json.loads(line[2:]) for line in done.stdout.splitlines() if line.startswith("@@")]
    properties = cupy.cuda.runtime.getDeviceProperties(0)
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    rows = list(csv.DictReader(io.StringIO(text[text.find('"ID"') :])))
    rows = [row for row in rows if (row.get("ID") or "").isdigit()]  # the line of units has none
    for line in lines:
        line |= {"counted": [], "device": properties["name"].decode()}
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


def named() -> dict[str, Planted]:
    """Each mistake by the name of its kernel, without the letter that says which text of it."""
    return {f"m{number:03}": mistake for number, mistake in _ordered()}


def _cubin(folder: Path, arch: str, name: str) -> None:
    """The kernel m000w, with its mistake, or m000r, without it, with lines, in a file of its name."""
    mistake = named()[name[:-1]]
    text = mistake.wrong if name.endswith("w") else mistake.right
    (own := folder / f"of-{name}").mkdir()
    rung = check.own_rung(own, text.replace(" mine(", f" {name}(", 1), name)
    with contextlib.suppress(KernelError):
        (folder / f"{name}.cubin").write_bytes(nvrtc.assembly(rung, arch)[1])


@dataclass
class Said:
    """What a tool said of kernels: found: lines by kernel. reached: those that were launched. hung: those
    that did not end. faulted: what CUDA said of those that it ended. tail: the last words of processes that
    ended before they had launched anything."""

    found: dict[str, list[str]] = field(default_factory=dict)
    reached: list[str] = field(default_factory=list)
    hung: list[str] = field(default_factory=list)
    faulted: dict[str, str] = field(default_factory=dict)
    tail: str = ""

    def read(self, output: str) -> None:
        for line in output.splitlines():
            if line.startswith("@@"):
                name, _, words = line[2:].partition(" ")
                if words:
                    self.faulted[name] = words
                else:
                    self.reached.append(name)
            elif kernel := re.search(r"\bm\d{3}[wr]\b", line):
                words = re.sub(r"0x[0-9a-f]+", "…", line.lstrip("= ")).strip()
                if words not in (kept := self.found.setdefault(kernel[0], [])) and len(kept) < 12:
                    kept.append(words)

    def add(self, other: Said) -> None:
        self.found |= other.found
        self.reached += other.reached
        self.hung += other.hung
        self.faulted |= other.faulted
        self.tail += other.tail


def _under(tool: str, folder: Path, names: Sequence[str], end: float) -> Said:
    """A tool over some kernels. One that hangs, or takes the GPU from its process, is the last of that
    process; the next one goes on behind it."""
    command = [str(sanitize.sanitizer()), "--tool", tool, "--destroy-on-device-error", "kernel"]
    command += ["--print-limit", "100000"] + ["--racecheck-report", "all"] * (tool == "racecheck")
    command += [sys.executable, "-m", "tests.kernels.simulated.launched", str(folder)]
    said, left = Said(), list(names)
    while left and time.monotonic() < end:
        with tempfile.TemporaryFile("w+", errors="replace") as log:
            process = subprocess.Popen(
                [*command, *left], stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
            size, since, hung = -1, time.monotonic(), False
            while process.poll() is None and not hung:
                time.sleep(0.2)
                if (now := os.fstat(log.fileno()).st_size) != size:
                    size, since = now, time.monotonic()
                waited = STUCK_S if size > 0 else STARTS_S
                hung = time.monotonic() > min(since + waited, end)
            if hung:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            log.seek(0)
            output = log.read()
        its = Said()
        its.read(output)
        if not its.reached:
            its.tail = output[-1500:]
        elif hung:
            its.hung.append(its.reached[-1])
        said.add(its)
        if not its.reached or (not hung and process.returncode != 3 and its.reached[-1] == left[-1]):
            break
        left = left[left.index(its.reached[-1]) + 1 :]
    return said


def before(whole: dict[str, Any]) -> dict[str, Said]:
    """What each tool has said, under the names that kernels have now."""
    numbers = {mistake.name: number for number, mistake in named().items()}
    now = {old: numbers.get(mistake, "") for old, mistake in whole["names"].items()}

    def name(old: str) -> str:
        return now[old[:-1]] + old[-1]

    return {
        tool: Said(
            {name(old): words for old, words in its["found"].items()},
            [name(old) for old in its["reached"]],
            [name(old) for old in its["hung"]],
            {name(old): words for old, words in its["faulted"].items()},
        )
        for tool, its in whole["tools"].items()
    }


def sanitized(path: Path, seconds: float, but: dict[str, Any] | None = None) -> None:
    """What each tool says of each planted mistake, within so many seconds, to a file. but: what was found
    before, which is kept."""
    import cupy

    if sanitize.sanitizer() is None:
        raise SystemExit("compute-sanitizer is not there; it comes with NVIDIA's CUDA toolkit")
    end = time.monotonic() + seconds
    known = named()
    names = [name + which for name in known for which in "wr"]
    tools = before(but) if but else {tool: Said() for tool in TOOLS}
    with tempfile.TemporaryDirectory() as made, ThreadPoolExecutor(PARTS * len(TOOLS)) as pool:
        folder = Path(made)
        sizes = {name: (known[name[:-1]].threads, known[name[:-1]].blocks) for name in names}
        (folder / launched.LAUNCHES).write_text(json.dumps(sizes), encoding="utf-8")
        _on_all_cores(partial(_cubin, folder, f"sm_{cupy.cuda.Device().compute_capability}"), names)
        print(f"{len(list(folder.glob('*.cubin')))} of {len(names)} kernels compiled", flush=True)
        pairs = [names[n : n + 2] for n in range(0, len(names), 2)]  # wrong ones, which end a process, spread
        jobs = []
        for tool in TOOLS:
            over = {*tools[tool].reached}
            left = [pair for pair in pairs if not over.issuperset(pair)]
            jobs += [(tool, [name for pair in left[n::PARTS] for name in pair]) for n in range(PARTS)]
        done = pool.map(lambda job: _under(job[0], folder, job[1], end), jobs)
        for (tool, _), said in zip(jobs, done, strict=True):
            tools[tool].add(said)
    for tool, said in tools.items():
        print(
            f"{tool}: {len(said.found)} kernels named, {len(said.reached)} of {len(names)} reached, "
            f"{len(said.hung)} hung, {len(said.faulted)} ended by CUDA {said.tail[-300:]}",
            flush=True,
        )
    whole = {
        "device": cupy.cuda.runtime.getDeviceProperties(0)["name"].decode(),
        "tools": {tool: asdict(said) for tool, said in tools.items()},
        "names": {name: mistake.name for name, mistake in known.items()},
    }
    path.write_text(json.dumps(whole, indent=1, ensure_ascii=False), encoding="utf-8")


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
    devices = " and an ".join(sorted({line.get("device", whole["device"]) for line in whole["rungs"]}))
    return [
        "## Beside Nsight Compute",
        "",
        f"Counted by ncu on an {devices}, of each rung one launch on one shape; here the same PTX",
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
        f"Launched on an {whole['device']}. Named: the tool names the kernel with the mistake. False: it",
        "names the one without. Fault: the tool is silent, and CUDA ends the kernel. Hangs: the kernel has",
        f"not ended after {STUCK_S:.0f} s. Not reached: the tool did not come to it within its time.",
        "Mistakes that only hang are not launched.",
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
            of = whole["tools"][tool]
            wrong, right = name + "w", name + "r"
            said = ["named"] * (wrong in of["found"]) + ["false"] * (right in of["found"])
            said += ["hangs"] * (wrong in of["hung"])
            said += ["fault"] * (wrong in of["faulted"] and wrong not in of["found"])
            said += [] if wrong in of["reached"] else ["not reached"]
            total[tool] += wrong in of["found"]
            cells.append(", ".join(said))
        lines.append(f"| {mistake.name} | {mistake.kind} | {' | '.join(cells)} |")
    sums = ", ".join(f"{tool} {count}" for tool, count in total.items())
    some = sum(any(known[m.name] + "w" in of["found"] for of in whole["tools"].values()) for m in ran)
    return [*lines, "", f"Of {len(ran)} mistakes they name: {sums}; {some} by one of the four.", ""]


def kept(path: Path, counters: dict[str, Any] | None, found: dict[str, Any] | None) -> None:
    """Put new figures into the file that the page is made of: rungs that are counted anew or for the first
    time, and what the tools find, which replaces what stands there."""
    whole = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if counters:
        before = whole.get("counters", {"rungs": []})
        lines = {line["rung"]: {"device": before.get("device", "")} | line for line in before["rungs"]}
        lines |= {line["rung"]: line for line in counters["rungs"] if line["counted"]}
        known = [rung.label for rung in check.RUNGS]
        whole["counters"] = counters | {"rungs": [lines[label] for label in known if label in lines]}
    if found:
        whole["found"] = found
    path.write_text(json.dumps(whole, indent=1, ensure_ascii=False), encoding="utf-8")


def tables(path: Path) -> str:
    """Both sections, of a file with "counters" and "found" as --collect and --sanitize write them."""
    whole = json.loads(path.read_text(encoding="utf-8"))
    return "\n".join([*page(whole["counters"]), *found_page(whole["found"])])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", 1)[0])
    parser.add_argument("--collect", type=Path, help="a file for what ncu counts here")
    parser.add_argument("--but", type=Path, help="a file of the page: what it has is left out")
    parser.add_argument("--sanitize", type=Path, help="a file for what compute-sanitizer finds here")
    parser.add_argument("--seconds", type=float, default=120, help="for --sanitize")
    parser.add_argument("--compare", type=Path, help="a file of --collect")
    parser.add_argument("--found", type=Path, help="a file of --sanitize")
    parser.add_argument("--keep", type=Path, help="the file of the page, into which both are put")
    parser.add_argument("--launch", nargs="*", help="what ncu looks at: all rungs but these")
    parser.add_argument(
        "--launch-planted", nargs="+", help="what compute-sanitizer looks at: folder, kernels"
    )
    asked = parser.parse_args(arguments)
    if asked.launch is not None:
        launch_all(asked.launch)
    if asked.collect:
        counted = _read(asked.but)["counters"]["rungs"] if asked.but else []
        collect(asked.collect, [line["rung"] for line in counted])
    if asked.sanitize:
        sanitized(asked.sanitize, asked.seconds, _read(asked.but)["found"] if asked.but else None)
    counters, found = (_read(path) if path else None for path in (asked.compare, asked.found))
    if asked.keep:
        kept(asked.keep, counters, found)
    elif counters or found:
        lines = (page(counters) if counters else []) + (found_page(found) if found else [])
        print("\n".join(lines))
    return 0


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    sys.exit(main())
