"""How long the parts of turns took in earlier runs on this machine, kept for the estimate of the remaining
time (bench.run.pace). No measurement reads it.

An entry is for one kind of run, on one machine, with one way of asking; it keeps only the newest turns. If
two runs end at once, turns of one may be lost, but never an entry. Where the cache cannot be written nothing
is kept.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import Annotated, Any, NamedTuple

import msgspec

from bench.results.records import Environment, Record
from kernels.cache import Key, Store
from kernels.errors import KernelError

MOST_TURNS = 64  # of an entry
MOST_ENTRIES = 64
_STORE = Store("pace", 1, "what a run took", MOST_ENTRIES)
# What of a job decides how long a case of it takes, beside the case itself and the budget.
_ASKED = (
    "threads",
    "instances",
    "layers",
    "layers_of",
    "end_to_end",
    "l2",
    "tune",
    "tune_reference",
    "dataset",
    "runs",
)

Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 50)]


class Where(NamedTuple):
    """What identifies a turn, and is common to its cases."""

    model: str
    batch: Count = 1
    precision: str = ""
    images: Count = 0


class Took(Record, frozen=True):
    """The parts of a turn in seconds. nbytes: of the model's file, 0 where there is none; before: what came
    before its timing, in the model's first turn of a run (`first`) or in another; samples: of one case, at
    this budget; after: what came after them, by backend; slowed: by what factor other programs made the turn
    longer when its run began."""

    where: Where
    nbytes: Count = 0
    budget_s: Seconds | None = None
    slowed: Annotated[float, msgspec.Meta(ge=1, le=1e6)] = 1.0
    first: Seconds | None = None
    before: Seconds | None = None
    samples: Seconds | None = None
    after: dict[str, Seconds] = msgspec.field(default_factory=dict)

    def of(self, part: str) -> list[tuple[str, float]]:
        """Seconds of a part (of bench.run.turn_times.WEIGHTS), each with its backend where that is known."""
        if part == "after":
            return [*self.after.items()]
        seconds = {"first": self.first, "before": self.before, "samples": self.samples}[part]
        return [("", seconds)] if seconds is not None else []

    def on_idle_machine(self) -> Took:
        """The same on an idle machine; samples have a budget and stay as they are."""
        return msgspec.structs.replace(
            self,
            slowed=1.0,
            first=None if self.first is None else self.first / self.slowed,
            before=None if self.before is None else self.before / self.slowed,
            after={backend: seconds / self.slowed for backend, seconds in self.after.items()},
        )


class Past:
    """Earlier runs of this kind that were asked for like this job."""

    def __init__(self, kind: str, job: Any) -> None:
        self._kind = kind
        self._asked = {name: str(getattr(job, name, "")) for name in _ASKED}
        self._key: Key | None = None

    def of(self, machine: Environment) -> tuple[Took, ...]:
        """The turns known on this machine, the oldest first."""
        self._key = {
            **self._asked,
            "machine": machine.machine,
            "cpu": machine.cpu,
            "cores": str(machine.cores),
            "gpu": f"{machine.gpu} {machine.gpu_uuid}".strip(),
        }
        return _STORE.read(self._kind, self._key, tuple[Took, ...]) or ()

    def keep(self, took: Iterable[Took]) -> None:
        """Add these turns; what was known of the same turns is replaced, part by part. Turns without a model
        are not kept."""
        new = [one for one in took if one.where.model]
        if self._key is None or not new:
            return
        known = {one.where: one for one in _STORE.read(self._kind, self._key, tuple[Took, ...]) or ()}
        for one in new:
            known[one.where] = _newer(known.pop(one.where, one), one)
        with contextlib.suppress(KernelError):
            _STORE.write(self._kind, self._key, list(known.values())[-MOST_TURNS:])


def name(model: str) -> str:
    """The name under which a model is kept; a model given by path is kept by its whole path."""
    return os.path.abspath(model) if model.endswith(".onnx") else model


def _newer(old: Took, new: Took) -> Took:
    """The new turn completed by what only the old one had: a turn is its model's first or another, not both.
    Samples end as soon as a verdict is clear, which is partly chance: for the same budget the mean of the old
    and the new value is kept."""
    if old.nbytes != new.nbytes:
        return new
    old, new = old.on_idle_machine(), new.on_idle_machine()
    samples = old.samples if new.samples is None else new.samples
    if old.samples is not None and new.samples is not None and old.budget_s == new.budget_s:
        samples = (old.samples + new.samples) / 2
    return msgspec.structs.replace(
        new,
        samples=samples,
        first=old.first if new.first is None else new.first,
        before=old.before if new.before is None else new.before,
        after=old.after | new.after,
    )
