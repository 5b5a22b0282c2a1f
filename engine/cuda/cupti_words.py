"""What CUPTI's errors mean, and what its records of waiting and of memory say about the calls that caused
them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
    """What a call waited for. kind: of CUPTI's ActivitySynchronizationType."""
    return {"correlation": correlation, "waited_for": _WAITS.get(kind, "").format(stream=stream)}


def add_details(calls: Sequence[dict[str, Any]], details: Sequence[Mapping[str, Any]]) -> None:
    """Give calls what further records tell of them: those that have the same correlation, and the call of
    the same thread inside which they were made."""
    found: dict[int, dict[str, Any]] = {}
    for detail in details:
        found.setdefault(detail["correlation"], {}).update(detail)
    within: dict[int, dict[str, Any]] = {}
    for call in sorted(calls, key=lambda call: (call["start_ns"], -call["end_ns"])):
        told = found.get(call["correlation"], {})
        outer = within.get(call["thread"])
        if outer is None or outer["end_ns"] < call["end_ns"]:
            outer = within[call["thread"]] = call
        for each in (call, outer):
            for name, value in told.items():
                if value and name != "correlation":
                    each.setdefault(name, value)
