"""What is to be reached, and what has to be measured to know it: the words of data/*.toml.

Goals are what somebody wants, never what was measured; no figure of a run stands in these files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from bench.extras.reports import presets
from bench.extras.reports.presets import Report, Words

FOLDER = Path(__file__).parent / "data"
Value = Literal["speedup", "narrowed", "time", "launched", "end_to_end", "flow", "peak"]
# Of these less is better; they are met by what is at most so large.
AT_MOST = ("time", "launched", "peak")


class Goal(Words, frozen=True, kw_only=True):
    """What one model is to reach in a precision at some batch sizes. need: where it is measured.

    value: "speedup", the time of `against` over ours (than: the precision that this has, "": the goal's own);
    "narrowed", of a mixed precision, the time of the fastest whole precision of the same backend whose answer
    stays within the budget, over its own; "time" of a pass in a train of them, s; "launched", of one that is
    launched and waited for, on the host's clock, s; "end_to_end", the rate from host images to host answers
    over that of `against`; "flow", that rate over what the slower of the bus and the forward pass alone would
    allow; "peak", bytes of device memory. wanted: one a batch size, at least (of AT_MOST at most) so much.
    """

    model: str
    need: str = ""
    value: Value = "speedup"
    backend: str = "engine-cuda"
    against: str = ""
    than: str = ""
    precision: str = "fp32"
    batches: tuple[int, ...] = (1,)
    wanted: tuple[float, ...]


class Goals(Report, frozen=True, kw_only=True):
    """The goals of a kind of machine. device: what they need; machine: what its name contains, in whole words
    ("" for any). Measured on another one they are held all the same, and the report says so."""

    device: Literal["cpu", "cuda"]
    machine: str = ""
    goals: tuple[Goal, ...]


def names() -> tuple[str, ...]:
    return presets.names(FOLDER)


def load(name: str) -> Goals:
    """The goals of that name. Raises InputError where there are none."""
    return presets.load(FOLDER, name, Goals, "set of goals")
