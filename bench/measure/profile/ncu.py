"""Nsight Compute's command line, `ncu`: whether it is here, a child process under it, and what it counted.

It runs every kernel of a marked range several times, once for each group of counters that fit together, with
caches emptied before; times taken under it mean nothing, and none is read. Its table (`--csv --page raw`) has
a line of names, a line of units, and a line a kernel in the order of their launches.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
import psutil

from bench.measure.profile import counters_pass
from bench.measure.profile.counters import Counted
from bench.results.events import Counters
from bench.results.messages import Start
from bench.results.profile_records import ProfileJob
from bench.results.records import Case
from kernels.errors import KernelError, UnavailableError, system_words

# What is counted, by the field it goes to.
METRICS = {
    "dram_read_nbytes": "dram__bytes_read.sum",
    "dram_write_nbytes": "dram__bytes_write.sum",
    "l2_nbytes": "lts__t_bytes.sum",
    "load_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "load_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "store_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "store_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "global_sectors": "memory_l2_theoretical_sectors_global",
    "ideal_sectors": "memory_l2_theoretical_sectors_global_ideal",
    "compute_share": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "warps_share": "sm__warps_active.avg.pct_of_peak_sustained_active",
}
# What a unit is in the fields' own (bytes, pieces, shares); without --print-units base they are scaled.
UNITS = {
    "byte": 1.0, "kbyte": 1e3, "mbyte": 1e6, "gbyte": 1e9, "tbyte": 1e12,
    "%": 0.01, "": 1.0, "sector": 1.0, "request": 1.0,
}  # fmt: skip
# Where installers put it without putting it on the path.
PLACES = ("/usr/local/cuda/bin/ncu", "/usr/local/cuda-*/bin/ncu", "/opt/nvidia/nsight-compute/*/ncu")
INSTALL = (
    "install Nsight Compute (it comes with the CUDA toolkit, or alone as NVIDIA's package nsight-compute), "
    "with `ncu` on the PATH"
)
# What ncu's refusals mean to whoever reads them.
REFUSALS = {
    "ERR_NVGPUCTRPERM": "the driver lets administrators alone read them: set "
    "NVreg_RestrictProfilingToAdminUsers=0 for the kernel module nvidia, run as root, or give a container "
    "the capability SYS_ADMIN",
    "Profiling is not supported on": "this `ncu` does not know this GPU: install a newer Nsight Compute",
    "Cuda driver is not compatible": "this `ncu` does not fit the driver: install a newer driver or an older "
    "Nsight Compute",
    "driver resource was unavailable": "another profiler (ncu, DCGM) holds the counters: end it first",
    "InterprocessLockFailed": "another `ncu` is at work on this machine: wait until it has ended",
}
_MISSING = re.compile(r"Failed to find metrics?\s+(?:regex:)?\^?([\w.]+)")
_PERIOD_S = 0.1


def find() -> Path | None:
    """Where `ncu` is; None where it is not."""
    if on_path := shutil.which("ncu"):
        return Path(on_path)
    found = [path for place in PLACES for path in sorted(Path("/").glob(place[1:]))]
    return next((path for path in reversed(found) if os.access(path, os.X_OK)), None)


def take(job: ProfileJob, case: Case, stopped: Callable[[], bool] = lambda: False) -> tuple[Counted, ...]:
    """The kernels of one pass of a case, in order, with what was counted. Raises UnavailableError where ncu
    is not there or not permitted, KernelError where it or the pass fails."""
    with tempfile.TemporaryDirectory(prefix="kernelscope-") as name:
        folder = Path(name)
        start = Start(job=job, cases=(case,))
        (folder / counters_pass.JOB).write_bytes(msgspec.json.encode(start))
        target = [sys.executable, "-P", "-m", counters_pass.__name__, str(folder)]
        try:
            return run(target, folder, stopped)
        except KernelError as error:
            failed = folder / counters_pass.ERROR
            if failed.is_file():
                raise KernelError(
                    f"hardware counters are not read: the pass under `ncu` failed: {failed.read_text()}"
                ) from error
            raise


def run(
    target: Sequence[str], folder: Path, stopped: Callable[[], bool] = lambda: False
) -> tuple[Counted, ...]:
    """The kernels that `target` starts between cudaProfilerStart and cudaProfilerStop, in order. folder: for
    what is written meanwhile. A counter that this ncu does not know is left out. Raises UnavailableError
    where ncu is not there or not permitted, KernelError where it fails, each a sentence."""
    program = find()
    if program is None:
        raise UnavailableError(f"hardware counters are not read: there is no `ncu` here; {INSTALL}")
    metrics = dict(METRICS)
    while True:
        said, table, status = _started(program, metrics, target, folder, stopped)
        unknown = {name for name in _MISSING.findall(said) if name in metrics.values()}
        if not unknown:
            break
        metrics = {field: name for field, name in metrics.items() if name not in unknown}
        if not metrics:
            raise UnavailableError(
                "hardware counters are not read: this `ncu` knows none of them on this GPU"
            )
    for mark, words in REFUSALS.items():
        if mark in said:
            raise UnavailableError(f"hardware counters are not read: {words}")
    found = parse(table)
    if not found:
        errors = [line for line in said.splitlines() if line.startswith("==ERROR==")]
        reason = errors[0].removeprefix("==ERROR==").strip() if errors else "it saw no kernel"
        raise KernelError(f"hardware counters are not read: `ncu` ended with status {status}: {reason}")
    return found


def command(program: Path, metrics: Mapping[str, str], target: Sequence[str], log: Path) -> list[str]:
    """How ncu is told to count in a target."""
    return [
        str(program),
        *("--metrics", ",".join(metrics.values())),
        *("--profile-from-start", "off"),  # from cudaProfilerStart on
        *("--target-processes", "all"),
        *("--clock-control", "none"),  # what is counted does not depend on the clock, which others see
        *("--print-kernel-base", "mangled"),
        *("--print-units", "base"),
        *("--page", "raw", "--csv"),
        *("--log-file", str(log)),
        *target,
    ]


def _started(
    program: Path,
    metrics: Mapping[str, str],
    target: Sequence[str],
    folder: Path,
    stopped: Callable[[], bool],
) -> tuple[str, str, int]:
    """All that ncu and its target said, its table, and the exit status."""
    log, output = folder / "ncu.csv", folder / "ncu.txt"
    log.unlink(missing_ok=True)
    # Its lock lies in the folder for temporary files, where another user's would be in the way.
    environment = {**os.environ, "TMPDIR": str(folder)}
    try:
        with output.open("wb") as stream:
            process = subprocess.Popen(
                command(program, metrics, target, log),
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                env=environment,
            )
            try:
                while process.poll() is None and not stopped():
                    time.sleep(_PERIOD_S)
            finally:
                _end(process)
    except OSError as error:
        raise UnavailableError(
            f"hardware counters are not read: {program} does not start ({system_words(error)})"
        ) from error
    table = log.read_text("utf-8", "replace") if log.is_file() else ""
    return output.read_text("utf-8", "replace") + table, table, process.returncode


def _end(process: subprocess.Popen[bytes]) -> None:
    """End ncu and what it started, if they still run."""
    if process.poll() is None:
        try:
            ours = psutil.Process(process.pid).children(recursive=True)
        except psutil.Error:
            ours = []
        process.kill()
        for child in ours:
            try:
                child.kill()
            except psutil.Error:
                continue
    process.wait()


def parse(text: str) -> tuple[Counted, ...]:
    """The kernels in ncu's table, () where there is none. Raises KernelError where the table is broken."""
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith('"ID",')), None)
    if first is None:
        return ()
    # Its own messages may stand between the lines.
    rows = list(csv.reader(line for line in lines[first:] if line.startswith('"')))
    names, units = rows[0], rows[1] if len(rows) > 1 else []
    if "Kernel Name" not in names or len(units) != len(names):
        raise KernelError("the table of `ncu` is broken: it has no kernels' names, or no units")
    fields = {name: field for field, name in METRICS.items()}
    found = []
    for number, row in enumerate(rows[2:], 1):
        if len(row) != len(names):
            raise KernelError(f"the table of `ncu` is cut short in its line {number}")
        cells = dict(zip(names, row, strict=True))
        told = {
            fields[name]: _number(row[place], units[place])
            for place, name in enumerate(names)
            if name in fields
        }
        found.append(Counted(cells["Kernel Name"], _grid(cells.get("Grid Size", "")), Counters(**told)))
    return tuple(found)


def _number(cell: str, unit: str) -> float | None:
    """A value in base units; None where there is none ("n/a") or its unit is none that is known."""
    factor = UNITS.get(unit.strip().lower().removesuffix("s"))
    try:
        return None if factor is None else float(cell.replace(",", "")) * factor
    except ValueError:
        return None


def _grid(cell: str) -> tuple[int, ...] | None:
    found = tuple(int(number) for number in re.findall(r"\d+", cell))
    return found if len(found) == 3 else None
