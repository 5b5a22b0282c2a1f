"""A run's missing cases as pieces of work for a cluster, and what comes back into its one folder.

Cases that are compared with each other stay together, on one device of one machine: what is spread are
models, batch sizes and image counts. Each measurement says on which machine it was taken (`facts`), and each
machine's environment lies in `machines/` of the folder.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from bench.commands.measuring import Ending
from bench.extras.fleet.executor import Executor, Heard
from bench.extras.fleet.work import Said, Work
from bench.results.folder import Folder
from bench.results.inside import inside
from bench.results.messages import Hello
from bench.results.records import MACHINE, Environment
from bench.results.store import PIECES, write_atomically
from bench.run import elsewhere

MACHINES = "machines"


def works(folder: Folder[Any, Any], missing: Sequence[Any], gpu: str = "") -> list[Work]:
    """One for each group of cases that belong together, those that take most first: what ends last is then
    short. gpu: the kind of GPU that is wanted, as Ray calls it ("": any)."""
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for case in missing:
        groups.setdefault(_together(folder, case), []).append(case)
    made = []
    for key, cases in groups.items():
        device = key[0]
        name = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        kept = (folder.path / PIECES / name).absolute()
        named = cases[0].words if len(cases) == 1 else f"{len(cases)} cases such as {cases[0].words}"
        made.append(
            Work(
                named,
                folder.kind.name,
                folder.job,
                tuple(cases),
                device,
                gpu=gpu if device == "cuda" else "",
                keeps=True,
                alone=True,
                kept=str(kept),
                first=elsewhere.of_run(kept),
            )
        )
    return sorted(made, key=lambda work: -max(getattr(case, "batch", 0) for case in work.cases))


def _together(folder: Folder[Any, Any], case: Any) -> tuple[Any, ...]:
    """The device of a case, and what it has in common with those that it is timed beside: all of a ladder."""
    if not hasattr(case, "backend"):
        return (folder.job.device,)
    from engine import backends

    return backends.get(case.backend).device, case.model, case.batch, getattr(case, "images", 0)


def measure(
    folder: Folder[Any, Any],
    missing: Sequence[Any],
    executor: Executor,
    on_event: Callable[[Any], None],
    gpu: str = "",
    places: Sequence[str] = (),
) -> Ending:
    """Run these cases on a cluster; each measurement is on the disk before it is told. places: those that the
    cluster is made of. What one of them measured when the run was its alone is fetched first."""
    if places:
        missing, cancelled = elsewhere.fetched(folder, missing, places, on_event)
        if cancelled or not missing:
            return Ending(cancelled)
    folder.claim()
    try:
        ending = executor.run(works(folder, missing, gpu), receiver(folder, on_event))
        folder.check()
        return ending
    finally:
        folder.close()


def receiver(folder: Folder[Any, Any], on_event: Callable[[Any], None]) -> Heard:
    """What takes all that is said of a folder's cases there."""
    seen: set[str] = set()

    def heard(work: Work, said: Said) -> None:
        if said.file is not None:
            name, data = said.file
            write_atomically(inside(folder.path, name), data)
            return
        message = said.message
        if said.settled:
            if message.disposition != "cancelled":
                message = msgspec.structs.replace(message, facts={**message.facts, MACHINE: said.place})
                folder.append(message)
        else:
            if isinstance(message, Hello) and said.place not in seen:
                seen.add(said.place)
                _keep(folder, said.place, message.environment)
            folder.take_message(message)
        on_event(message)

    return heard


def _keep(folder: Folder[Any, Any], place: str, environment: Environment) -> None:
    name = re.sub(r"[^\w.-]+", "_", place)[:80] or "machine"
    data = msgspec.json.format(msgspec.json.encode(environment), indent=2)
    write_atomically(inside(folder.path, f"{MACHINES}/{name}.json"), data)
