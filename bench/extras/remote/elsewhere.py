"""What the rest of the program asks of places (bench.run.elsewhere)."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from bench.extras.remote import places
from bench.words.option import one_of
from kernels.errors import UnavailableError

DEVICES = ("cpu", "cuda")


def worker_command(
    name: str, worker: Sequence[str], parts: Sequence[str] = (), files: bool = False
) -> list[str]:
    """The command of a line to a worker there. worker: what follows `python -m`. parts: the folders of a
    run's folder that it may write here. files: all that lies in the run's folder goes there first. Raises
    InputError, UnavailableError."""
    places.program(places.load(name), "")
    options = [f"--parts={','.join(parts)}", *(["--files"] if files else [])]
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
