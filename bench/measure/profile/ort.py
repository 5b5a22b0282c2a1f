"""ONNX Runtime's own profile as intervals of nodes on the worker's clock.

The profile counts microseconds from the moment its session was made, by a clock that need not be ours. Every
run is in it as a whole ("model_run"), and every run that we started is between two readings of ours: the
offset is what puts each of the former into its span of the latter.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.results.events import HostSpan
from bench.results.profile_records import Clock
from kernels.errors import InputError, system_words

US = 1000  # ns
_NODE_END = "_kernel_time"


@dataclass(frozen=True)
class OrtNode:
    """A node's interval, in ns from the profile's beginning; whole microseconds, cut off."""

    name: str
    op_type: str
    provider: str
    thread: int
    start_ns: int
    end_ns: int


@dataclass
class OrtRun:
    """One run of the session and the nodes in it."""

    start_ns: int
    end_ns: int
    nodes: list[OrtNode] = field(default_factory=list)
    thread: int = 0


def read(file: Path) -> list[OrtRun]:
    """The runs of a profile, in order. Raises InputError where it is missing, cut short or no profile."""
    try:
        events = json.loads(file.read_bytes())
    except OSError as error:
        raise InputError(f"ONNX Runtime's profile {file} cannot be read ({system_words(error)})") from error
    except (ValueError, UnicodeDecodeError) as error:
        raise InputError(
            f"ONNX Runtime's profile {file.name} is broken or cut short ({error}): profile the case again"
        ) from error
    try:
        return _runs(events)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(
            f"{file.name} is no profile of ONNX Runtime ({type(error).__name__}: {error}): profile the case "
            "again"
        ) from error


def _runs(events: Sequence[Mapping[str, Any]]) -> list[OrtRun]:
    nodes: list[OrtNode] = []
    runs: list[OrtRun] = []
    for event in events:
        start = int(event.get("ts", 0)) * US
        end = start + int(event.get("dur", 0)) * US
        name, category = str(event["name"]), event.get("cat")
        if category == "Session" and name == "model_run":
            runs.append(OrtRun(start, end, thread=int(event.get("tid", 0))))
        elif category == "Node" and name.endswith(_NODE_END):
            arguments = event["args"]
            nodes.append(
                OrtNode(
                    name=name.removesuffix(_NODE_END),
                    op_type=str(arguments["op_name"]),
                    provider=str(arguments.get("provider", "")),
                    thread=int(event.get("tid", 0)),
                    start_ns=start,
                    end_ns=end,
                )
            )
    runs.sort(key=lambda run: run.start_ns)
    for node in sorted(nodes, key=lambda node: node.start_ns):
        home = next((run for run in reversed(runs) if run.start_ns <= node.start_ns), None)
        if home is not None:
            home.nodes.append(node)
    return runs


def align(runs: Sequence[OrtRun], spans: Sequence[tuple[int, int]], zeros: Sequence[int] = ()) -> Clock:
    """What has to be taken from the profile's readings to have ours: `spans` are the last len(spans) runs as
    we saw them. zeros: moments of ours at which the profile may have begun, of which one is taken that the
    spans allow; without one, the middle of what they leave open. Raises InputError where a run does not fit
    its span."""
    if len(runs) < len(spans) or not spans:
        raise InputError(
            f"ONNX Runtime's profile tells of {len(runs)} runs where {len(spans)} were made: profile the "
            "case again"
        )
    last = runs[len(runs) - len(spans) :]
    # start + ours ≥ span start; end + ours ≤ span end, up to the microsecond that the profile cuts off.
    low = max(span[0] - run.start_ns for run, span in zip(last, spans, strict=True)) - US
    high = min(span[1] - run.end_ns for run, span in zip(last, spans, strict=True))
    if high < low - 5 * US:
        raise InputError(
            "ONNX Runtime's profile does not fit the runs that were made, by "
            f"{(low - high) / 1000:.0f} µs: profile the case again"
        )
    for zero in zeros:
        if low - US <= zero <= high + US:
            return Clock(name="ONNX Runtime's profile", offset_ns=-zero, error_ns=2 * US)
    return Clock(
        name="ONNX Runtime's profile",
        offset_ns=-(low + high) // 2,
        error_ns=max(US, abs(high - low) // 2),
    )


def intervals(
    runs: Sequence[OrtRun],
    clock: Clock,
    numbers: Sequence[int | None],
    nodes: Mapping[str, tuple[str, ...]],
    op_type_of: Callable[[Sequence[str]], str],
) -> tuple[HostSpan, ...]:
    """The last len(numbers) runs, whole and node by node, on our clock. nodes: an optimised node → those of
    the model that it computes; op_type_of: what such nodes are called together, "" for names that the model
    has not."""
    found: list[HostSpan] = []
    for run, number in zip(runs[len(runs) - len(numbers) :], numbers, strict=True):
        # Microseconds are cut off: its last node may end behind it.
        end = max([run.end_ns, *(node.end_ns for node in run.nodes)])
        found.append(
            HostSpan(
                name="ONNX Runtime's run",
                kind="run",
                start_ns=run.start_ns - clock.offset_ns,
                end_ns=end - clock.offset_ns,
                thread=run.thread,
                run=number,
            )
        )
        for node in run.nodes:
            covered = nodes.get(node.name) or ((node.name,) if op_type_of((node.name,)) else ())
            found.append(
                HostSpan(
                    name=node.name,
                    kind="node",
                    start_ns=node.start_ns - clock.offset_ns,
                    end_ns=node.end_ns - clock.offset_ns,
                    thread=node.thread,
                    provider=node.provider,
                    nodes=covered,
                    op_type=op_type_of(covered) or node.op_type,
                    run=number,
                )
            )
    return tuple(found)
