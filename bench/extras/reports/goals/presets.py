"""What is to be reached, and what has to be measured to know it: the words of data/*.toml.

Goals are what somebody wants, never what was measured; no figure of a run stands in these files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from bench.commands import toml_files

FOLDER = Path(__file__).parent / "data"
Value = Literal["speedup", "time", "launched", "end_to_end", "flow", "peak"]
# Of these less is better; they are met by what is at most so large.
AT_MOST = ("time", "launched", "peak")


class _Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A word that nobody reads is a mistake in the file."""


class Need(_Words, frozen=True, kw_only=True):
    """A comparison, as `compare` takes it; () and 0: as there. layers: also the times of our own layers, from
    which follows the step that takes most. once: of `backends`, those that are left out of the second run."""

    name: str
    models: tuple[str, ...]
    backends: tuple[str, ...]
    batches: tuple[int, ...]
    precisions: tuple[str, ...] = ("fp32",)
    images: int = 0
    tune_reference: bool = False
    end_to_end: bool = False
    layers: bool = True
    once: tuple[str, ...] = ()


class Goal(_Words, frozen=True, kw_only=True):
    """What one model is to reach in a precision at some batch sizes. need: where it is measured.

    value: "speedup", the time of `against` over ours; "time" of a pass in a train of them, s; "launched", of
    one that is launched and waited for, on the host's clock, s; "end_to_end", the rate from host images to
    host answers over that of `against`; "flow", that rate over what the slower of the bus and the forward
    pass alone would allow; "peak", bytes of device memory. wanted: one a batch size, at least (of AT_MOST at
    most) so much.
    """

    model: str
    need: str = ""
    value: Value = "speedup"
    backend: str = "engine-cuda"
    against: str = ""
    precision: str = "fp32"
    batches: tuple[int, ...] = (1,)
    wanted: tuple[float, ...]


class Goals(_Words, frozen=True, kw_only=True):
    """The goals of a kind of machine. device: what they need; machine: what its name contains, in whole words
    ("" for any). Measured on another one they are held all the same, and the report says so."""

    title: str
    device: Literal["cpu", "cuda"]
    machine: str = ""
    needs: tuple[Need, ...]
    goals: tuple[Goal, ...]
    notes: tuple[str, ...] = ()

    def need(self, name: str) -> Need:
        return next(need for need in self.needs if need.name == name)


def names() -> tuple[str, ...]:
    return toml_files.names(FOLDER)


def load(name: str) -> Goals:
    """The goals of that name. Raises InputError where there are none."""
    return toml_files.load(FOLDER, name, Goals, "set of goals")
