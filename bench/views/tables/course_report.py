"""The big table of a course report (AlexNet, batch 1 to 1,024): copies, kernels by layer and calls into CUDA,
by batch size, from the creation of a session to its close."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.results import api_calls as profile_api
from bench.results.events import Activity, ApiCall, Events, HostSpan
from bench.results.profile_records import CaseProfile
from bench.views.tables import profile_columns as kinds
from bench.views.tables.event_lines import device_events, in_window
from bench.views.tables.profile_columns import ProfileTable
from bench.views.tables.table import Table

_KERNELS = {"conv": ("Conv",), "fc": ("Gemm", "MatMul"), "maxpool": ("MaxPool",)}
_COPIES = {"htod": "HtoD", "dtoh": "DtoH"}
_COLUMNS = ("htod", "conv", "fc", "dtoh", "maxpool", *profile_api.FAMILIES)
_TITLES = {
    "htod": "HtoD",
    "conv": "conv kernels",
    "fc": "FC kernels",
    "dtoh": "DtoH",
    "maxpool": "max-pool kernels",
}


def row(made: CaseProfile, events: Events) -> dict[str, Any]:
    """One line of the table: each column's time and number of events, from creation to close; its device, and
    what is to be said of steps of it that do two layers."""
    found = in_window(events, "all")
    picked: dict[str, Sequence[Activity | ApiCall | HostSpan]] = {}
    steps = device_events(found)
    for key in _KERNELS:
        picked[key] = [event for event in steps if event.kind != "memcpy" and _layer(event.op_type) == key]
    for key, way in _COPIES.items():
        picked[key] = [a for a in found.activities if a.copy == way]
    for family in profile_api.FAMILIES:
        picked[family] = profile_api.variants(found.calls, family)
    made_row: dict[str, Any] = {"backend": made.case.backend, "batch": made.case.batch, "device": made.device}
    made_row["fused"] = {words for event in steps if (words := _fused(event.op_type))}
    for key in _COLUMNS:
        made_row[f"{key}_ns"] = sum(event.time_ns for event in picked[key])
        made_row[f"{key}_calls"] = len(picked[key])
    return made_row


def _layer(op_type: str) -> str:
    """The column of an operator, "" for none; of one that is several, the first that has a column."""
    parts = op_type.split("+")
    return next((key for key, types in _KERNELS.items() if any(part in types for part in parts)), "")


def _fused(op_type: str) -> str:
    """Where a step stands that does two layers; "" for any other."""
    first, _, second = op_type.partition("+")
    if first == "Conv" and second.endswith("Pool"):
        return "A step that does a convolution and the pool behind it stands under conv kernels."
    if (first, second) == ("LRN", "MaxPool"):
        return "A step that does LRN and the max pool behind it stands under max-pool kernels."
    return ""


def table(rows: Sequence[dict[str, Any]], passes: int, copies: str = "") -> ProfileTable:
    """AlexNet's table of the course report: batch × (copies, kernels by layer, API calls), one line a `row`,
    backend by backend. Where no case ran on a GPU, which alone has copies and calls, their columns are left
    out."""
    gpu = any(not _on_a_cpu(line) for line in rows)
    columns = [kinds.words("backend", "backend"), kinds.count("batch", "batch")]
    for key in _COLUMNS if gpu else _KERNELS:
        title = _TITLES.get(key, key)
        columns.append(kinds.duration(f"{key}_ns", title))
        columns.append(kinds.count(f"{key}_calls", "calls"))
    names = [column.name for column in columns]
    backends = list(dict.fromkeys(line["backend"] for line in rows))
    rows = sorted(rows, key=lambda line: (backends.index(line["backend"]), line["batch"]))
    made = "forward pass" if passes == 1 else "forward passes"
    notes = []
    if gpu:
        notes.append(
            "Each column sums every variant of its call (Memcpy and MemcpyAsync, of the runtime and the "
            "driver), from the creation of the session to its close: the weights' copies, the first runs and "
            f"{passes} {made}. A call never made shows 0 calls."
        )
    if gpu and copies:
        notes.append(
            f"Behind our engine's pass every layer's output went to the host and back, over {copies} memory: "
            "copies as large as these tensors, of other data."
        )
    if any(_on_a_cpu(line) for line in rows):
        notes.append(
            f"On a CPU, a kernel is a step of the model, and its time that of {passes} {made}; there are no "
            "copies to a device and no calls into CUDA."
        )
    notes += sorted({words for line in rows for words in line["fused"]})
    if any(str(line["backend"]).startswith("ort-cuda") for line in rows):
        notes.append(
            "Of ONNX Runtime's kernels those are in it with which cuDNN's algorithms are searched, at the "
            "first run."
        )
    shown = tuple({name: line[name] for name in names} for line in rows)
    return Table(columns, shown, "Time by batch size, from creation to close", tuple(notes), "report")


def _on_a_cpu(line: dict[str, Any]) -> bool:
    return bool(line["device"] == "cpu")
