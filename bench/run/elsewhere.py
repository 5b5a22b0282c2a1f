"""Workers on machines elsewhere: the command that starts one. It is the satellite's that reaches them
(bench/extras/remote), which is found by its folder."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from bench import modules
from bench.results.kinds import Kind
from kernels.errors import UnavailableError


def worker_command(place: str, kind: Kind[Any, Any]) -> list[str]:
    """What starts a worker of this kind at a place, by its name, in place of `client.worker_command`. Raises
    InputError and UnavailableError, in words, where there is no such place or nothing can run there."""
    command: list[str] = satellite().worker_command(place, kind.worker, kind.parts)
    return command


def device(place: str, asked: str) -> str:
    """The device of a ladder there: the one asked for, else the GPU where its last doctor saw one. Raises as
    `worker_command`."""
    found: str = satellite().device(place, asked)
    return found


def satellite() -> ModuleType:
    """Raises UnavailableError where this copy of the program has none."""
    for found in modules("extras/*/elsewhere.py"):
        return found
    raise UnavailableError("--on needs bench/extras/remote, which this copy of the program lacks")
