"""The cold start of a case told apart: from the start of its process to the steady state.

Phases follow each other without a gap. What happens inside `prepare` is told by the session's own phases and
by the spans inside it; those come in turns there (compile, load, compile, …), and are laid one after
the other with what each took in all.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from time import perf_counter_ns

from bench.results.events import Mark
from engine.cuda import runtime as cuda_runtime
from engine.ort import cuda_session
from engine.ort import sessions as ort_sessions
from kernels import nvrtc
from kernels.spans import Span

# A session's phases in words, where the device's own way to them has no spans.
PHASES = {
    "load": "graph and planning",
    "alloc": "allocation",
    "upload": "weights",
    "compile": "kernels made ready",
}
# The spans that preparing a session spends its time on, by who runs it.
PREPARING = {
    "engine-cuda": (nvrtc.COMPILE, cuda_runtime.LOAD),
    "ort": (cuda_session.LOAD, ort_sessions.CREATE),
}
ORT_PHASES = PHASES | {"load": "session creation", "compile": "first runs, algorithms searched"}


class ColdStart:
    """Collects the phases; each begins where the one before it ended. Times are taken from `origin` on
    (perf_counter_ns)."""

    def __init__(self, origin_ns: int, entered_ns: int, imported_ns: int) -> None:
        self.origin = origin_ns
        self._now = origin_ns
        self.marks: list[Mark] = []
        self.until("interpreter", entered_ns)
        self.until("program", imported_ns)

    def until(self, name: str, end_ns: int | None = None, text: str = "") -> None:
        """A phase that began where the last one ended, up to a reading of perf_counter_ns (None: now)."""
        end = max(self._now, perf_counter_ns() if end_ns is None else end_ns)
        start, self._now = self._now, end
        self.marks.append(
            Mark(name=name, kind="cold", start_ns=start - self.origin, end_ns=end - self.origin, text=text)
        )

    def steady(self, passes_ns: Sequence[float]) -> None:
        """One pass in the steady state, after the last phase: what a pass took in the median."""
        self.until("steady state", self._now + round(statistics.median(passes_ns)), "one pass")

    def prepared(self, phases: Mapping[str, int], spans: Sequence[Span], ort: bool) -> None:
        """What `prepare`, which has just ended, did since the last phase: from the session's phases and the
        spans."""
        for name, lasted, text in divided(perf_counter_ns() - self._now, phases, spans, ort):
            self.until(name, self._now + lasted, text)


def divided(
    total_ns: int, phases: Mapping[str, int], spans: Sequence[Span], ort: bool
) -> list[tuple[str, int, str]]:
    """(name, ns, text) that sum to total_ns, in order."""
    words = ORT_PHASES if ort else PHASES
    left = {words.get(key, key): int(ns) for key, ns in phases.items()}
    by_name: dict[str, list[Span]] = {}
    for call in spans:
        by_name.setdefault(call.name, []).append(call)
    lasted_ns = {name: sum(call.end_ns - call.start_ns for call in calls) for name, calls in by_name.items()}
    found: list[tuple[str, int, str]] = []
    inside = {nvrtc.COMPILE: PHASES["compile"], cuda_runtime.LOAD: PHASES["compile"]}
    if loaded := lasted_ns.pop(cuda_session.LOAD, 0):
        found.append((cuda_session.LOAD, loaded, ""))
    for name, lasted in left.items():
        own = [part for part, home in inside.items() if home == name and part in lasted_ns]
        spent = sum(lasted_ns[part] for part in own)
        found += [(part, lasted_ns[part], _cached(by_name[part])) for part in own]
        if own:
            name = "first launches, graph capture"
        found.append((name, max(0, lasted - spent), ""))
    rest = total_ns - sum(lasted for _, lasted, _ in found)
    if rest < 0:  # clocks read at other moments: the largest gives way
        place = max(range(len(found)), key=lambda i: found[i][1])
        name, lasted, text = found[place]
        found[place] = (name, max(0, lasted + rest), text)
        rest = total_ns - sum(lasted for _, lasted, _ in found)
    if rest > 0:
        found.append(("rest of preparing", rest, ""))
    return [part for part in found if part[1] > 0]


def _cached(calls: Sequence[Span]) -> str:
    """How many of the compiled files lay in the cache before: they are older than the call that asked."""
    files = [call for call in calls if hasattr(call.result, "stat")]
    if not files:
        return ""
    quick = sum(1 for call in files if call.end_ns - call.start_ns < COMPILING_NS)
    return f"{quick} of {len(files)} from the cache"


COMPILING_NS = 5_000_000  # NVRTC takes longer than this for any kernel, and reading a cached one less
