"""The words of a profile, as frozen records: where the time of one model on one backend goes.

ProfileJob (what to run) → bench.results.records.Case (one model, backend, precision, batch) → CaseProfile
(what came of it: times, parts, what the process used) with its events (bench.results.events), which lie in a
file of their own. All times are nanoseconds of one clock, the worker's perf_counter, from the moment at which
the worker's process was started: 0 is the same moment for every case, so that two backends can be laid one
over the other. Like bench.results.records this module reaches nothing but msgspec and that.
"""

from __future__ import annotations

import sys
from typing import Any, Literal

import msgspec

from bench.results.events import Mark
from bench.results.records import Asked, Case, CaseResult, Header, Record, Telemetry
from kernels.precision import asked

TIMELINE = "timeline"  # the picture of a pass, where one of several is named


class ProfileJob(Asked, frozen=True):
    """What the user asked for: a model on backends × batches. runs: how many forward passes are profiled;
    warm_up: how many go before them in the profiled session. budget_s: the most seconds of unprofiled
    samples a case. cuda_graph: replay as one graph, where
    the backend's profile allows it. apart: in the profiled session each operator has a step of its own, where
    our engine would do two in one. copies: behind each profiled pass of our engine on a GPU every layer's
    output is copied to the host and back, over such memory ("": none is). counters: one more pass, in which
    the GPU's hardware counts. The others as in bench.results.records.Job."""

    model: str
    backends: tuple[str, ...]
    batches: tuple[int, ...] = (1,)
    precision: str = "fp32"
    runs: int = 5
    warm_up: int = 3
    dataset: str | None = None
    preprocess: str | None = None
    cuda_graph: bool = True
    rungs: dict[str, str] = msgspec.field(default_factory=dict)
    budget_s: float = 2.0
    counters: bool = False
    apart: bool = False
    copies: Literal["", "pageable", "pinned", "managed"] = ""
    max_error: float | None = None


# ------------------------------------------------------------------------------------------------ the results


class Operator(Record, frozen=True):
    """A step of the model at this batch size: the nodes that run as one, and what they cost at least, bytes
    as the backend keeps weights and tensors (engine.planning.traffic; 0 where not known). unread: of these,
    what a kernel may do without. precision: what the rung computes in ("": not known)."""

    nodes: tuple[str, ...]
    op_type: str
    rung: str = ""
    flops: int = 0
    nbytes: int = 0
    unread: int = 0
    precision: str = ""


class Clock(Record, frozen=True):
    """A foreign clock against the worker's: its reading minus ours was offset_ns, known to ± error_ns;
    drift_ns: by how much that had changed at the end."""

    name: str
    offset_ns: int
    error_ns: int = 0
    drift_ns: int = 0


class ProcessUse(Record, frozen=True):
    """What the worker's process used from its start to the end of its case, as /usr/bin/time -v tells
    it. inputs, outputs: blocks read from and written to disks; swaps: where the system counts them (None: not
    known)."""

    real_s: float
    user_s: float
    system_s: float
    max_rss_nbytes: int
    minor_faults: int = 0
    major_faults: int = 0
    inputs: int | None = None
    outputs: int | None = None
    swaps: int | None = None
    voluntary_switches: int | None = None
    involuntary_switches: int | None = None
    gpu_peak_nbytes: int | None = None


def of_rusage(used: Any) -> dict[str, Any]:
    """What the system tells of a process that ended, or of this one (resource.struct_rusage), as fields of a
    ProcessUse."""
    return {
        "user_s": used.ru_utime,
        "system_s": used.ru_stime,
        "max_rss_nbytes": used.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        "minor_faults": used.ru_minflt,
        "major_faults": used.ru_majflt,
        "inputs": used.ru_inblock,
        "outputs": used.ru_oublock,
        "swaps": used.ru_nswap,
        "voluntary_switches": used.ru_nvcsw,
        "involuntary_switches": used.ru_nivcsw,
    }


class DeviceFacts(Record, frozen=True):
    """What of a GPU a diagnosis needs."""

    name: str = ""
    multiprocessors: int = 0
    warp: int = 32


class Share(Record, frozen=True):
    """A part of a breakdown (bench.results.parts names the keys): ns over all its passes, and how many events
    had some of it."""

    key: str
    time_ns: int
    count: int = 0


class Breakdown(Record, frozen=True):
    """A window of the profiled session divided: the parts' times add up to wall_ns exactly. window: "pass"
    (all profiled passes together, `passes` of them), "create", "close" or "all" (from creation to close).
    idle_ns: of "rest", how long the host's thread had no core though it waited for nothing; cpu_ns: how long
    it had one in all (None: not known)."""

    window: str
    wall_ns: int
    parts: tuple[Share, ...]
    passes: int = 1
    idle_ns: int = 0
    cpu_ns: int | None = None

    @property
    def wall(self) -> float:
        """Nanoseconds a pass."""
        return self.wall_ns / self.passes

    def part(self, *keys: str) -> float:
        """Nanoseconds a pass of these parts together, 0 where there is none."""
        return sum(share.time_ns for share in self.parts if share.key in keys) / self.passes


class CaseProfile(CaseResult[Case], frozen=True):
    """What came of one case of a profile.

    samples_ns: unprofiled passes on the device's own clock, at the backend's best. pass_ns: unprofiled
    host-to-host passes (bind, run, wait, fetch) of a session just like the profiled one, and as warm;
    pass_rounds: where rounds of them start (none: they are one round, as the first passes of a session are);
    unrest: what speaks against their median, where the rounds differ ("" where they do not);
    profiled_ns: those of the profiled session. cold: the phases from the start of the process to the steady
    state. attributed: the share of kernel time in the passes that is attributed to nodes (None: there is
    none). dropped: records that the profiler had no room for (None: not known). events: how many of each
    kind; file: where they lie, in the profile's folder."""

    device: str = ""
    samples_ns: tuple[float, ...] = ()
    pass_ns: tuple[float, ...] = ()
    pass_rounds: tuple[int, ...] = ()
    unrest: str = ""
    profiled_ns: tuple[float, ...] = ()
    cold: tuple[Mark, ...] = ()
    breakdowns: tuple[Breakdown, ...] = ()
    operators: tuple[Operator, ...] = ()
    attributed: float | None = None
    dropped: int | None = None
    clocks: tuple[Clock, ...] = ()
    process: ProcessUse | None = None
    gpu: DeviceFacts | None = None
    telemetry: Telemetry = Telemetry()
    events: dict[str, int] = msgspec.field(default_factory=dict)
    file: str = ""

    def breakdown(self, window: str = "pass") -> Breakdown | None:
        return next((found for found in self.breakdowns if found.window == window), None)


class Profile(Header[ProfileJob, Case], frozen=True):
    """`profile.json`: a profile."""


def planned(job: ProfileJob) -> tuple[Case, ...]:
    """The cases of a job: batch by batch, the backends next to each other."""
    return tuple(
        Case(model=job.model, backend=backend, precision=asked(job.precision, job.max_error), batch=batch)
        for batch in job.batches
        for backend in job.backends
    )
