"""What the window and the commands are told of places (bench.run.elsewhere)."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from bench.extras.remote import places
from bench.results.records import BackendInfo
from bench.run.elsewhere import Offered
from kernels.errors import KernelscopeError

LINE = "bench.extras.remote.line"
SESSION = "elsewhere.json"


def offered() -> list[Offered]:
    return [_offered(name) for name in places.names()]


def _offered(name: str) -> Offered:
    try:
        place = places.load(name)
    except KernelscopeError as error:
        return Offered(name, refused=str(error))
    refused = ""
    try:
        places.program(place, LINE)
    except KernelscopeError as error:
        refused = str(error)
    return Offered(name, place.gpu, refused, bool(place.launch), _backends(place))


def _backends(place: places.Place) -> tuple[BackendInfo, ...]:
    """What its last doctor said of them: "can run (fp32, tf32)", or why one cannot."""
    said = {seen.name: seen.text for seen in place.doctor if seen.topic == "backends"}
    found = []
    for name, why_not in place.refused().items():
        device = name.rpartition("-")[2]
        able = re.search(r"\((.*)\)", said[name])
        precisions = tuple(able[1].split(", ")) if able and not why_not else ()
        found.append(
            BackendInfo(
                name=name,
                device=device,
                precisions=precisions,
                reference=f"ort-{device}",
                unavailable=why_not,
            )
        )
    return tuple(found)


def line(on: str) -> list[str]:
    """What stands before a worker's own words, behind `python -m`."""
    return [LINE, on, "--"]


def of_run(folder: Path) -> str:
    """The place whose worker may hold measurements of this run that nobody has fetched."""
    try:
        return str(msgspec.json.decode((folder / SESSION).read_bytes()).get("place", ""))
    except (OSError, ValueError, AttributeError, msgspec.DecodeError):
        return ""
