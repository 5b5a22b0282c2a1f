"""What a reader must know of a profiled case, in sentences: what is missing, what a pass waits for, what is
not explained. Only from the figures of its record, which stand beside them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from bench.results import parts as profile_parts
from bench.results.profile_records import Breakdown, CaseProfile, Clock
from bench.results.rows import title
from bench.words import units
from bench.words.units import percent
from kernels.precision import MIXED

REST = 0.05  # of a pass: a larger share that nothing explains, or of staging, is put into words
HOST = 0.10  # of a pass on a GPU: a larger share of the host's own code is
BUSY = 0.90  # of a pass on a CPU: where its thread had a core for less, that is said
LARGEST = 2  # parts of a pass that a headline names
COPIES = ("h2d", "d2h", "d2d", "memset")
GAPS = ("launch", "alloc", "sync", "api", "rest")


def remarks(made: CaseProfile) -> list[str]:
    """What failed, what is missing, what a pass waits for, what the profiler cost, how clocks were joined."""
    said = [made.reason] if made.reason else []
    said += made.notes
    said += [f"layers: {made.facts[MIXED]}"] if MIXED in made.facts else []
    found = made.breakdown()
    if found is not None and found.wall_ns:
        said += waits(made)
        if made.pass_ns and made.profiled_ns:
            waited = made.device == "cpu" and _kept_waiting(found)
            medians = statistics.median(made.profiled_ns), statistics.median(made.pass_ns)
            said.append(_profilers(*medians, waited))
    said += [clock_words(clock) for clock in made.clocks]
    return said


HEADLINE = (
    "A pass is from host to host, copies included: the median without the profiler. In brackets the parts "
    "that take most of a profiled pass. `compare` says which backend is faster."
)


def headlines(profiles: Sequence[CaseProfile]) -> list[tuple[str, str]]:
    """One for each model, precision and batch size: what it is of, and what a pass takes on each backend,
    with the parts that take most of it."""
    found: dict[str, list[str]] = {}
    for made in profiles:
        parts = made.breakdown()
        if parts is None or not parts.wall_ns:
            continue
        case = made.case
        about = f"{title(case.model)}, {case.precision}, batch {case.batch:,}"
        told = statistics.median(made.pass_ns) if made.pass_ns else parts.wall
        largest = sorted(parts.parts, key=lambda share: -share.time_ns)[:LARGEST]
        named = ", ".join(
            f"{profile_parts.label(share.key)} {percent(share.time_ns / parts.wall_ns, 0)}"
            for share in largest
        )
        found.setdefault(about, []).append(f"{units.duration(told)} on {case.backend} ({named})")
    return [(about, f"a pass takes {'; '.join(times)}") for about, times in found.items()]


def _kept_waiting(found: Breakdown) -> bool:
    """Whether the host's thread had no core for much of the passes, which on a CPU are its own work."""
    return found.cpu_ns is not None and found.cpu_ns < BUSY * found.wall_ns


def _profilers(profiled: float, plain: float, waited: bool) -> str:
    told = (
        f"in the median a profiled pass took {units.duration(profiled)} and one without the profiler "
        f"{units.duration(plain)}: {units.duration(abs(profiled - plain))}"
    )
    if profiled >= plain:
        return f"{told} more, the profiler's" + (" and what its thread waited for" if waited else "")
    return f"{told} less, so passes differ by more than the profiler costs"


def clock_words(clock: Clock) -> str:
    """How a foreign clock was brought onto ours."""
    way = "ahead of" if clock.offset_ns >= 0 else "behind"
    words = (
        f"the clock of {clock.name} is {_seconds(abs(clock.offset_ns))} s {way} the profile's, "
        f"± {units.duration(clock.error_ns)}"
    )
    moved = f", and moved by {units.duration(abs(clock.drift_ns))} during the session"
    return words + (moved if clock.drift_ns else "")


def _seconds(ns: int) -> str:
    """To the nanosecond, which a float does not hold of a clock that counts from 1970."""
    return f"{ns // 10**9:,}.{ns % 10**9:09d}"


def waits(made: CaseProfile) -> list[str]:
    """What a profiled pass waits for rather than for the device's computing, and what of it is not explained:
    a sentence each, from its parts, where they are much."""
    found = made.breakdown()
    if found is None or not found.wall_ns:
        return []
    ops = [part for part in found.parts if part.key.startswith(profile_parts.OP)]
    count = sum(part.count for part in ops) / found.passes
    computing = sum(part.time_ns for part in ops) / found.passes
    said = _on_a_cpu(found, count, computing) if made.device == "cpu" else _on_a_gpu(found, count, computing)
    rest = found.part("rest") / found.wall
    if rest > REST:
        head = f"{percent(rest, 1)} of a profiled pass is explained by nothing that was recorded"
        idle = found.idle_ns / found.passes / found.wall
        if idle > rest / 2:
            head += (
                f"; for {percent(idle, 1)} of it the host's thread had no core, though it was in no call and "
                "no step in which it waits"
            )
        said.append(head if count else f"{head}: no kernel and no step of it was recorded")
    return said


def _on_a_cpu(found: Breakdown, count: float, computing: float) -> list[str]:
    said = []
    share = {key: found.part(key) / found.wall for key in ("host", "ort")}
    steps = _counted(count, "step", computing) if count else ""
    if steps and share["host"] > REST:
        said.append(
            f"{percent(share['host'], 1)} of a profiled pass is the host's own code round its {steps}: "
            "calling them, reading the clock, copying"
        )
    if steps and share["ort"] > REST:
        said.append(
            f"{percent(share['ort'], 1)} of a profiled pass is ONNX Runtime's own work round its {steps}"
        )
    if _kept_waiting(found):
        share_of_cores = (found.cpu_ns or 0) / found.wall_ns
        said.append(
            f"the host's thread had a core for {percent(share_of_cores, 0)} of the profiled passes: the "
            "times of its steps hold what it waited for, other threads or other programs"
        )
    return said


def _counted(count: float, what: str, time_ns: float) -> str:
    """ "8 steps of 3.65 µs on average", "1 kernel of 5.02 µs"."""
    each = units.duration(time_ns / count)
    return f"1 {what} of {each}" if count == 1 else f"{count:g} {what}s of {each} on average"


def _on_a_gpu(found: Breakdown, count: float, computing: float) -> list[str]:
    said = []
    share = {key: found.part(key) / found.wall for key in ("host", "ort", "staging")}
    copies, gaps, own = found.part(*COPIES), found.part(*GAPS), found.part("host", "ort")
    copying, waiting = copies + found.part("staging"), gaps + own
    told = False
    if copying > max(computing, waiting):
        words = f"a profiled pass is copy-bound: {percent(copies / found.wall, 0)} of it are copies"
        if share["staging"]:
            filling = "the host's filling and emptying of page-locked memory"
            words += f", and {percent(share['staging'], 0)} {filling}"
        said.append(words)
    elif count and waiting > max(computing, copying):
        # Kernels that take longer than what lies before each of them do not wait for their launches.
        what = "launch" if gaps >= own or computing < found.part("launch") else "host"
        words = (
            f"a profiled pass is {what}-bound: the device computes {percent(computing / found.wall, 0)} of "
            f"it, in {_counted(count, 'kernel', computing)}"
        )
        told = own > 0
        said.append(f"{words}, and {_owns(share['host'], share['ort'], 'of it')}" if told else words)
    if share["staging"] > REST:
        said.append(
            f"in {percent(share['staging'], 0)} of a profiled pass the host copies between pageable and "
            "page-locked memory while the device has nothing to do: arrays in page-locked memory would spare "
            "it that"
        )
    if not told and own > HOST * found.wall:
        said.append(_owns(share["host"], share["ort"], "of a profiled pass"))
    return said


def _owns(host: float, ort: float, of: str) -> str:
    """ "44% of it is the host's own code between calls into CUDA"."""
    between = "between calls into CUDA"
    if not ort:
        return f"{percent(host, 0)} {of} is the host's own code {between}"
    words = f"{percent(ort, 0)} {of} is ONNX Runtime's own work {between}"
    return f"{words} and {percent(host, 0)} the rest of the host's code there" if host else words
