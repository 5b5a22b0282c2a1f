"""Machines elsewhere that measure for this one, as the window and the commands offer them.

How one is reached is known by a satellite (`bench/extras/*/offered.py`); without one there are none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from bench import modules
from bench.results.records import BackendInfo
from bench.run.client import worker_command as command_here
from bench.words.called import command_line
from kernels.errors import UnavailableError

HERE = ""
ADDING = command_line(["remote", "add", "lab", "user@host"])


@dataclass(frozen=True)
class Offered:
    """A place. gpu: the name of its GPU, "" where none is known. refused: why it cannot measure now, "" if it
    can. queued: whether a worker there may have to wait for its turn, so that none is started before there is
    something to measure. backends: what can run there, as its last doctor said it."""

    name: str
    gpu: str = ""
    refused: str = ""
    queued: bool = False
    backends: tuple[BackendInfo, ...] = ()

    @property
    def words(self) -> str:
        """As in a list: "lab: NVIDIA H100"."""
        return f"{self.name}: {self.gpu}" if self.gpu else self.name


def offered() -> tuple[Offered, ...]:
    """Every place that was added. Reads a file for each, and asks which version this program is."""
    return tuple(place for satellite in _satellites() for place in satellite.offered())


def worker_command(worker: Sequence[str], on: str = HERE) -> list[str]:
    """The command line that starts a worker on `on`, and speaks as one on this machine does. Raises
    UnavailableError where this copy of the program reaches no other machine."""
    return command_here(worker if on == HERE else [*_reaching().line(on), *worker])


def of_run(folder: Path) -> str:
    """Where the worker of a run was started last, as its folder says."""
    return next(filter(None, (satellite.of_run(folder) for satellite in _satellites())), HERE)


def arguments(on: str) -> list[str]:
    """What a command line says of it."""
    return [] if on == HERE else ["--on", on]


def _satellites() -> list[ModuleType]:
    return modules("extras/*/offered.py")


def _reaching() -> ModuleType:
    for satellite in _satellites():
        return satellite
    raise UnavailableError("--on needs bench/extras/remote, which this copy of the program lacks")
