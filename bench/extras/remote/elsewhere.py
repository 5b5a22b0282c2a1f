"""What the rest of the program asks of places (bench.run.elsewhere)."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.extras.remote import places
from bench.results.folder import Folder
from bench.results.messages import Log
from bench.results.records import BackendInfo
from bench.results.store import PIECES
from bench.run import client
from bench.run.elsewhere import Offered
from bench.words.called import CALLED
from bench.words.option import one_of
from kernels.errors import InputError, KernelscopeError, UnavailableError

DEVICES = ("cpu", "cuda")


def worker_command(
    name: str, worker: Sequence[str], parts: Sequence[str] = (), files: bool = False, fetch: bool = False
) -> list[str]:
    """The command of a line to a worker there. worker: what follows `python -m`. parts: the folders of a
    run's folder that it may write here. files: all that lies in the run's folder goes there first. fetch:
    only what a session before has measured is taken. Raises InputError, UnavailableError."""
    if "," in name:
        raise InputError(f"several places share a run on the command line alone: --on {name} goes on there")
    places.program(places.load(name), "")
    options = [f"--parts={','.join(parts)}", *(["--files"] if files else []), *(["--fetch"] if fetch else [])]
    return [sys.executable, "-P", "-m", "bench.extras.remote.line", name, *options, "--", *worker]


def device(name: str, asked: str) -> str:
    """See bench.run.elsewhere.device."""
    place = places.load(name)
    if not asked:
        return "cuda" if place.gpu else "cpu"
    if one_of(asked, DEVICES, "device") == "cuda" and place.doctor and not place.gpu:
        raise UnavailableError(
            f"{name} has no GPU, as its doctor saw it; --device cpu runs there, or another place"
        )
    return asked


def offered() -> list[Offered]:
    """See bench.run.elsewhere."""
    return [_offered(name) for name in places.names()]


def _offered(name: str) -> Offered:
    try:
        place = places.load(name)
    except KernelscopeError as error:
        return Offered(name, refused=str(error))
    refused = ""
    try:
        places.program(place, "")
    except KernelscopeError as error:
        refused = str(error)
    queued = bool(place.launch) and place.shared  # else it is a container's, say, and there at once
    return Offered(name, place.gpu, refused, queued, _backends(place))


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


def backends(names: Sequence[str]) -> tuple[str, ...]:
    """See bench.run.elsewhere."""
    from engine import backends as known
    from engine.backend import by_default

    usual = [b.name for b in known.all_backends().values() if by_default(b)]
    able = {name for place in names for name, why_not in places.load(place).refused().items() if not why_not}
    if not able:
        raise InputError(
            f"it is not known what can run on {' and '.join(names)}: `{CALLED} remote doctor {names[0]}` asks"
        )
    return tuple(name for name in usual if name in able)


def fetched(
    folder: Folder[Any, Any], cases: Sequence[Any], names: Sequence[str], on_event: Callable[[Any], None]
) -> tuple[tuple[Any, ...], bool]:
    """See bench.run.elsewhere."""
    from bench.extras.remote import line

    note = line.note_of(folder.path)
    if note is None or note.place not in names or not cases:
        return tuple(cases), False

    def heard(event: Any) -> None:
        if getattr(event, "disposition", "") != "cancelled":  # of what is left for others to measure
            on_event(event)

    command = worker_command(note.place, folder.kind.worker, folder.kind.parts, fetch=True)
    outcome = client.run(folder.job, cases, folder, heard, command=command)
    settled = {m.case.key for m in outcome.measurements if m.disposition != "cancelled"}
    left = tuple(case for case in cases if case.key not in settled)
    held = line.note_of(folder.path)
    if held is not None and held.done:  # and all of it is written
        (folder.path / line.NOTE).unlink(missing_ok=True)
    elif outcome.reason:
        text = f"what {note.place} measured before is not fetched, and is measured again: {outcome.reason}"
        on_event(Log(level="warning", text=text))
    return left, outcome.cancelled


def of_run(folder: Path) -> str:
    """See bench.run.elsewhere."""
    from bench.extras.remote import line

    shared = (folder / PIECES).glob("*")
    notes = [note for path in (folder, *shared) if (note := line.note_of(path)) is not None]
    return ",".join(sorted({note.place for note in notes}))
