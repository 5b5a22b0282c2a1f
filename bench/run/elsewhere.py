"""Machines elsewhere that measure for this one: which there are, and the command that starts a worker on one.
It is the satellite's that reaches them (bench/extras/remote), which is found by its folder."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from bench import modules
from bench.results import reading
from bench.results.folder import Folder
from bench.results.kinds import Kind
from bench.results.messages import Done, Start
from bench.results.records import BackendInfo
from bench.run import client, settings
from bench.words.called import command_line
from kernels.errors import InputError, KernelscopeError, UnavailableError
from kernels.processes import exit_words

LAST_S = 12.0  # that a worker may take to end
HERE = ""  # the name of this machine among places
ADDING = command_line(["remote", "add", "lab", "user@host"])


@dataclass(frozen=True)
class Offered:
    """A place, as it is offered. gpu: the name of its GPU, "" where none is known. refused: why it cannot
    measure now, "" if it can. queued: whether a worker there may have to wait for its turn, so that none is
    started before there is something to measure. backends: what can run there, as its last doctor said it."""

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
    """Every place that was added, by name."""
    return tuple(place for found in modules("extras/*/elsewhere.py") for place in found.offered())


def preset(offered: Sequence[Offered]) -> str:
    """The place of these that the settings name, as a form begins; of several the first. HERE where they name
    none, or cannot be taken, which is told where a job is made of them."""
    with contextlib.suppress(InputError):
        wanted = settings.values([settings.LASTING["on"]]).get("on", ())
        return next((name for name in wanted if any(name == place.name for place in offered)), HERE)
    return HERE


def worker_command(place: str, kind: Kind[Any, Any], files: bool = False) -> list[str]:
    """What starts a worker of this kind at a place, by its name, in place of `client.worker_command`. files:
    all that lies in the run's folder goes there first. Raises InputError and UnavailableError, in words,
    where there is no such place or nothing can run there."""
    command: list[str] = satellite().worker_command(place, kind.worker, kind.parts, files)
    return command


def said(place: str, worker: Sequence[str], job: Any, files: Mapping[str, bytes], of: Any) -> Iterator[Any]:
    """What a worker says that no run's folder is kept of. worker: what follows `python -m`; files: lie in its
    folder; of: the type of its messages. Its input closes when the generator does, which ends it. Raises as
    `worker_command`, and KernelscopeError where it ends without having said that it is done."""
    with tempfile.TemporaryDirectory(prefix="kernelscope-", ignore_cleanup_errors=True) as folder:
        for name, data in files.items():
            Path(folder, name).write_bytes(data)
        command = satellite().worker_command(place, worker, (), True)
        process = client.start_worker(command, None)
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with contextlib.suppress(OSError):  # its end says why
                process.stdin.write(msgspec.json.encode(Start(job=job, folder=folder)) + b"\n")
                process.stdin.flush()
            done = False
            for line in process.stdout:
                with contextlib.suppress(reading.Unreadable):
                    message = reading.decoded(line, of)
                    done = done or isinstance(message, Done)
                    yield message
            if not done:
                raise KernelscopeError(f"the worker on {place} {exit_words(process.wait())}")
        finally:
            with contextlib.suppress(OSError):
                process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(LAST_S)
            client.end_worker(process.pid)
            process.wait()
            process.stdout.close()


def device(place: str, asked: str) -> str:
    """The device of a ladder there: the one asked for, else the GPU where its last doctor saw one. Raises as
    `worker_command`."""
    found: str = satellite().device(place, asked)
    return found


def backends(places: Sequence[str]) -> tuple[str, ...]:
    """Those that can run at one of these places, as their last doctors said. Raises as `worker_command`, and
    where nothing can."""
    found: tuple[str, ...] = satellite().backends(places)
    return found


def fetched(
    folder: Folder[Any, Any], cases: Sequence[Any], places: Sequence[str], on_event: Callable[[Any], None]
) -> tuple[tuple[Any, ...], bool]:
    """Of a run that one of these places began by itself, and that several are to go on with: take what was
    measured there meanwhile into the folder, and end its worker. The cases that are left, and whether the
    user cancelled it."""
    left: tuple[tuple[Any, ...], bool] = satellite().fetched(folder, cases, places, on_event)
    return left


def of_run(folder: Path) -> str:
    """The place where a run was measured, which may have what nobody has fetched yet; HERE for none. Where
    several shared it, as `--on` names them ("lab,farm")."""
    return next(filter(None, (found.of_run(folder) for found in modules("extras/*/elsewhere.py"))), HERE)


def arguments(place: str) -> list[str]:
    """What a command line says of it."""
    return ["--on", place] if place else []


def satellite() -> ModuleType:
    """Raises UnavailableError where this copy of the program has none."""
    for found in modules("extras/*/elsewhere.py"):
        return found
    raise UnavailableError("--on needs bench/extras/remote, which this copy of the program lacks")
