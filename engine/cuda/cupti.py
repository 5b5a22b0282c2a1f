"""CUPTI by cupti-python: every kernel, copy, memset and call into CUDA between `start` and `stop`.

Only this module imports cupti, and only when a recording starts: a process that never records never loads it.
Kernels inside CUDA graphs are recorded one by one (tracing of whole graphs stays off). Times are on
perf_counter_ns; CUPTI's own clock is read beside it at both ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any

from engine.cuda.runtime import import_cupy
from kernels.errors import KernelError, UnavailableError

BUFFER_NBYTES = 8 << 20
KINDS = (
    "CONCURRENT_KERNEL",
    "MEMCPY",
    "MEMSET",
    "RUNTIME",
    "DRIVER",
    "OVERHEAD",
    "SYNCHRONIZATION",
    "MEMORY2",
)
# What a profile does without where CUPTI does not offer it.
DISPENSABLE = frozenset({"OVERHEAD", "SYNCHRONIZATION", "MEMORY2"})
_FORCED = 1  # CUPTI_ACTIVITY_FLAG_FLUSH_FORCED
_READINGS = 50
_COPIES = {"HTOD": "HtoD", "DTOH": "DtoH", "DTOD": "DtoD", "HTOH": "HtoH", "PTOP": "PtoP"}
_MEMORY = {"DEVICE_STATIC": "device", "MANAGED_STATIC": "managed", "UNKNOWN": ""}


@dataclass(frozen=True)
class Recording:
    """What was recorded. activities, calls, overheads: fields of bench.results.events' Activity, ApiCall and
    Interval, times on perf_counter_ns, in no order. offset_ns: CUPTI's clock minus ours, known to ± error_ns;
    drift_ns: how far it had moved at the end. dropped: records that found no room, None where CUPTI does not
    say."""

    activities: Sequence[Mapping[str, Any]]
    calls: Sequence[Mapping[str, Any]]
    overheads: Sequence[Mapping[str, Any]]
    offset_ns: int
    error_ns: int
    drift_ns: int
    dropped: int | None
    device: Mapping[str, Any]
    facts: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def unavailable() -> str | None:
    """Why nothing can be recorded here, in a sentence; None if nothing speaks against it without trying."""
    try:
        importlib.import_module("cupti.cupti")
    except Exception as error:  # it raises errors of its own where a library is missing
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        return (
            f"CUPTI, which records what a GPU does, cannot be loaded ({reason}): install the extra cuda "
            "(cuda12 for drivers older than 580)"
        )
    return None


class Recorder:
    """One recording of the current process; `stop` ends it whatever happened. Not reusable."""

    def __init__(self) -> None:
        self._cupti: Any = None
        self._enabled: list[Any] = []
        self._activities: list[dict[str, Any]] = []
        self._calls: list[dict[str, Any]] = []
        self._overheads: list[dict[str, Any]] = []
        self._details: list[dict[str, Any]] = []  # of calls, by their correlation
        self._timeless = 0
        self._fault: Exception | None = None
        self._readers: dict[int, tuple[Callable[[Any], dict[str, Any]], list[dict[str, Any]]]] = {}
        self._offset = self._error = self._began = 0
        self._names: dict[tuple[int, int], str] = {}

    def start(self) -> None:
        """Start recording. Raises UnavailableError where CUPTI is missing or refuses."""
        if reason := unavailable():
            raise UnavailableError(reason)
        self._cupti = cupti = importlib.import_module("cupti.cupti")
        try:
            with self._in_words("starts"):
                self._readers = self._all_readers()
                cupti.activity_register_callbacks(lambda: (BUFFER_NBYTES, 0), self._take)
                self._offset, self._error = self._clock()
                self._began = perf_counter_ns()
                with contextlib.suppress(Exception):  # without it, threads are not told apart as well
                    # As the system numbers threads, and as ONNX Runtime's profile and Python do.
                    cupti.set_thread_id_type(int(cupti.ActivityThreadIdType.SYSTEM))
                for name in KINDS:
                    try:
                        kind = getattr(cupti.ActivityKind, name)
                        cupti.activity_enable(int(kind))
                    except Exception:
                        if name not in DISPENSABLE:
                            raise
                        continue
                    self._enabled.append(kind)
        except BaseException:
            self._disable()
            raise

    def stop(self) -> Recording:
        """End the recording. The caller must have synchronised before. Raises KernelError where CUPTI
        fails."""
        with self._in_words("hands over its records"):
            later, _ = self._clock()
            ended = perf_counter_ns()
            self._cupti.activity_flush_all(_FORCED)
            dropped = self._dropped()
        self._disable()
        with self._in_words("hands over its last records"):
            self._cupti.activity_flush_all(_FORCED)
        if self._fault is not None:
            raise KernelError(f"a record of CUPTI cannot be read ({self._fault})") from self._fault
        self._on_our_clock(ended, later - self._offset)
        add_details(self._calls, self._details)
        return self._told(later - self._offset, dropped)

    # ------------------------------------------------------------------------------------------- the inside

    def _disable(self) -> None:
        for kind in reversed(self._enabled):
            with contextlib.suppress(Exception):
                self._cupti.activity_disable(int(kind))
        self._enabled.clear()

    def _all_readers(self) -> dict[int, tuple[Callable[[Any], dict[str, Any]], list[dict[str, Any]]]]:
        """By kind of record: the function that reads it, and the list for the result."""
        kinds = self._cupti.ActivityKind
        details = {"SYNCHRONIZATION": self._wait, "MEMORY2": self._allocation}
        return {
            **{
                int(getattr(kinds, name)): (read, self._details)
                for name, read in details.items()
                if hasattr(kinds, name)
            },
            int(kinds.CONCURRENT_KERNEL): (self._kernel, self._activities),
            int(kinds.KERNEL): (self._kernel, self._activities),
            int(kinds.MEMCPY): (self._memcpy, self._activities),
            int(kinds.MEMSET): (self._memset, self._activities),
            int(kinds.RUNTIME): (self._call, self._calls),
            int(kinds.DRIVER): (self._call, self._calls),
            int(kinds.OVERHEAD): (self._overhead, self._overheads),
        }

    def _take(self, records: Sequence[Any]) -> None:
        """CUPTI calls this with the records of a buffer, from any thread. A kernel's name is valid only until
        this returns. It must not raise."""
        try:
            for record in records:
                reader = self._readers.get(int(record.kind))
                if reader is None:
                    continue
                read, into = reader
                if into is self._details:
                    with contextlib.suppress(Exception):  # what only adds to a call costs no profile
                        into.append(read(record))
                    continue
                if not record.start or not record.end:
                    self._timeless += 1
                    continue
                into.append(read(record))
        except Exception as error:
            self._fault = error

    def _clock(self) -> tuple[int, int]:
        """CUPTI's clock minus ours, and the uncertainty: of several readings the one that took the least
        time."""
        best = (0, 1 << 62)
        for _ in range(_READINGS):
            before = perf_counter_ns()
            theirs = int(self._cupti.get_timestamp())
            after = perf_counter_ns()
            if after - before < 2 * best[1]:
                best = (theirs - (before + after) // 2, (after - before + 1) // 2)
        return best

    def _dropped(self) -> int | None:
        count = ctypes.c_size_t(0)
        try:
            self._cupti.activity_get_num_dropped_records(0, 0, ctypes.addressof(count))
        except Exception:
            return None
        return count.value

    def _told(self, drift: int, dropped: int | None) -> Recording:
        timeless = self._timeless
        notes = [f"{timeless} records came without times and are left out"] if timeless else []
        return Recording(
            activities=self._activities,
            calls=self._calls,
            overheads=self._overheads,
            offset_ns=self._offset,
            error_ns=self._error,
            drift_ns=drift,
            dropped=dropped,
            device=device(),
            facts={"cupti": _version()},
            notes=tuple(notes),
        )

    def _span(self, record: Any) -> dict[str, Any]:
        return {
            "start_ns": int(record.start),
            "end_ns": int(record.end),
        }  # on CUPTI's clock, until all is over

    def _on_our_clock(self, ended: int, drift: int) -> None:
        """Convert the records' times to perf_counter_ns, by a line through the two readings of both
        clocks."""
        lasted = max(1, ended - self._began)
        for fields in (*self._activities, *self._calls, *self._overheads):
            for name in ("start_ns", "end_ns"):
                theirs = fields[name]
                passed = min(max(theirs - self._offset - self._began, 0), lasted)
                fields[name] = theirs - self._offset - drift * passed // lasted

    def _place(self, record: Any) -> dict[str, Any]:
        return {
            **self._span(record),
            "stream": int(record.stream_id),
            "device": int(record.device_id),
            "context": int(record.context_id),
            "correlation": int(record.correlation_id),
            "graph": int(record.graph_id),
            "graph_node": int(record.graph_node_id),
        }

    def _kernel(self, record: Any) -> dict[str, Any]:
        return {
            **self._place(record),
            "kind": "kernel",
            "name": str(record.name or "(no name)"),
            "grid": (int(record.grid_x), int(record.grid_y), int(record.grid_z)),
            "block": (int(record.block_x), int(record.block_y), int(record.block_z)),
            "registers": int(record.registers_per_thread),
            "static_shared_nbytes": int(record.static_shared_memory),
            "dynamic_shared_nbytes": int(record.dynamic_shared_memory),
        }

    def _memcpy(self, record: Any) -> dict[str, Any]:
        way = _COPIES.get(self._word("ActivityMemcpyKind", record.copy_kind), "other")
        return {
            **self._place(record),
            "kind": "memcpy",
            "name": f"memcpy {way}",
            "copy": way,
            "nbytes": int(record.bytes),
            "from_memory": self._memory(record.src_kind),
            "to_memory": self._memory(record.dst_kind),
        }

    def _memset(self, record: Any) -> dict[str, Any]:
        return {
            **self._place(record),
            "kind": "memset",
            "name": "memset",
            "nbytes": int(record.bytes),
            "to_memory": self._memory(record.memory_kind),
        }

    def _call(self, record: Any) -> dict[str, Any]:
        runtime = int(record.kind) == int(self._cupti.ActivityKind.RUNTIME)
        return {
            **self._span(record),
            "name": self._call_name(runtime, int(record.cbid)),
            "domain": "runtime" if runtime else "driver",
            "thread": int(record.thread_id),
            "correlation": int(record.correlation_id),
            "code": int(record.return_value),
        }

    def _call_name(self, runtime: bool, number: int) -> str:
        key = (int(runtime), number)
        if key not in self._names:
            domains = self._cupti.CallbackDomain
            domain = domains.RUNTIME_API if runtime else domains.DRIVER_API
            try:
                name = str(self._cupti.get_callback_name(int(domain), number))
            except Exception:
                name = ""
            self._names[key] = name or f"{'cuda' if runtime else 'cu'}Call{number}"
        return self._names[key]

    def _overhead(self, record: Any) -> dict[str, Any]:
        word = self._word("ActivityOverheadKind", record.overhead_kind)
        return {
            **self._span(record),
            "kind": "overhead",
            "name": word.replace("_", " ").lower() or "profiler",
            "thread": _thread_of(record),
        }

    def _wait(self, record: Any) -> dict[str, Any]:
        kind = self._word("ActivitySynchronizationType", record.type)
        return wait(kind, int(record.stream_id), int(record.correlation_id))

    def _allocation(self, record: Any) -> dict[str, Any]:
        return {
            "correlation": int(record.correlation_id),
            "nbytes": int(record.bytes),
            "memory": self._memory(record.memory_kind),
        }

    def _memory(self, value: int) -> str:
        word = self._word("ActivityMemoryKind", value)
        return _MEMORY.get(word, word.lower())

    def _word(self, enum: str, value: int) -> str:
        """The name of an enum's value, "" for one that this version does not know."""
        try:
            return str(getattr(self._cupti, enum)(int(value)).name)
        except ValueError:
            return ""

    @contextlib.contextmanager
    def _in_words(self, what: str) -> Iterator[None]:
        """CUPTI's errors as one sentence."""
        try:
            yield
        except (UnavailableError, KernelError):
            raise
        except Exception as error:
            text = (str(error).strip() or type(error).__name__).splitlines()[0]
            name = self._word("Result", getattr(error, "status", -1)) or text
            for mark, words in REFUSALS.items():
                if mark in name or mark in text:
                    raise UnavailableError(f"the GPU cannot be profiled: {words}") from error
            raise KernelError(f"CUPTI fails where it {what}: {text}") from error


def _thread_of(record: Any) -> int:
    """The thread of an overhead record, 0 where the record does not say."""
    try:
        return int(record.object_id.pt.thread_id)
    except AttributeError:
        return 0


def device() -> dict[str, Any]:
    """Fields of bench.results.profile_records.DeviceFacts for the current device."""
    cupy = import_cupy()
    gpu = cupy.cuda.Device()
    name = cupy.cuda.runtime.getDeviceProperties(gpu.id)["name"]
    return {
        "name": name.decode() if isinstance(name, bytes) else str(name),
        "multiprocessors": int(gpu.attributes["MultiProcessorCount"]),
        "warp": int(gpu.attributes["WarpSize"]),
    }


def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version("cupti-python")
    except metadata.PackageNotFoundError:
        return "unknown"


# ---------------------------------------------------------------------------------------------- cupti words

# What CUPTI's refusals mean, and what its records of waiting and of memory say of the calls they are of.


# What CUPTI's refusals mean to whoever reads them.
REFUSALS = {
    "MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED": "another profiler (nsys, ncu, a debugger) is attached to this "
    "process, and CUDA allows one: run without it",
    "INSUFFICIENT_PRIVILEGES": "the driver allows profiling to administrators alone: set "
    "NVreg_RestrictProfilingToAdminUsers=0 for the kernel module nvidia, or run as root",
    "NOT_INITIALIZED": "CUPTI does not start: the installed cupti-python is for a newer CUDA than the driver "
    "speaks",
    "NOT_COMPATIBLE": "the installed cupti-python does not fit the driver",
    "VIRTUALIZED_DEVICE_NOT_SUPPORTED": "this virtual GPU does not allow profiling",
    "CMP_DEVICE_NOT_SUPPORTED": "this GPU does not allow profiling",
}
_WAITS = {
    "EVENT_SYNCHRONIZE": "an event",
    "STREAM_WAIT_EVENT": "an event, on the device",
    "STREAM_SYNCHRONIZE": "stream {stream}",
    "CONTEXT_SYNCHRONIZE": "all streams",
}


def wait(kind: str, stream: int, correlation: int) -> dict[str, Any]:
    """What a call waited for. kind: CUPTI's ActivitySynchronizationType."""
    return {"correlation": correlation, "waited_for": _WAITS.get(kind, "").format(stream=stream)}


def add_details(calls: Sequence[dict[str, Any]], details: Sequence[Mapping[str, Any]]) -> None:
    """Add the details of further records to the calls that they belong to: those of the same correlation, and
    the call of the same thread during which they were made."""
    by_correlation: dict[int, dict[str, Any]] = {}
    for detail in details:
        by_correlation.setdefault(detail["correlation"], {}).update(detail)
    within: dict[int, dict[str, Any]] = {}
    for call in sorted(calls, key=lambda call: (call["start_ns"], -call["end_ns"])):
        call_details = by_correlation.get(call["correlation"], {})
        outer = within.get(call["thread"])
        if outer is None or outer["end_ns"] < call["end_ns"]:
            outer = within[call["thread"]] = call
        for each in (call, outer):
            for name, value in call_details.items():
                if value and name != "correlation":
                    each.setdefault(name, value)
