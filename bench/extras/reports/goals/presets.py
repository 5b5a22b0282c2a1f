"""What is to be reached, and what has to be measured to know it: the words of data/*.toml.

Goals are what somebody wants, never what was measured; no figure of a run stands in these files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from bench.extras.reports import presets
from bench.extras.reports.presets import Report, Words
from bench.results.records import stem

FOLDER = Path(__file__).parent / "data"
Value = Literal[
    "speedup",
    "narrowed",
    "time",
    "launched",
    "end_to_end",
    "flow",
    "peak",
    "rate",
    "reading",
    "lost",
    "elapsed",
]
# Of these less is better; they are met by what is at most so large.
AT_MOST = ("time", "launched", "peak", "reading", "lost", "elapsed")


class Goal(Words, frozen=True, kw_only=True):
    """What one model is to reach in a precision at some batch sizes, or each of several (models). need: where
    it is measured; lacks: why it cannot be measured by that alone ("": it can).

    value: "speedup", the time of `against` over ours (than: the precision that this has, "": the goal's own;
    rival: the model that it runs, "": the goal's own);
    "narrowed", of a mixed precision, the time of the fastest whole precision of the same backend whose answer
    stays within the budget, over its own; "time" of a pass in a train of them, s; "launched", of one that is
    launched and waited for, on the host's clock, s; "end_to_end", the rate from host images to host answers
    over that of `against`; "flow", that rate over what the slower of the bus and the forward pass alone would
    allow; "peak", bytes of device memory; "rate", operations a second over those that the machine's matrix
    units were measured to reach in this precision; "reading", the time of a pass over that in which the
    memory gives its weights in this precision; "lost", of the images that are labelled the share that `rival`
    answers right beyond what the model does; "elapsed", seconds from the command to the last verdict. wanted:
    one a batch size, at least (of AT_MOST at most) so much.
    """

    model: str = ""
    models: tuple[str, ...] = ()
    need: str = ""
    value: Value = "speedup"
    backend: str = "engine-cuda"
    against: str = ""
    than: str = ""
    rival: str = ""
    lacks: str = ""
    precision: str = "fp32"
    batches: tuple[int, ...] = (1,)
    wanted: tuple[float, ...]


class Goals(Report, frozen=True, kw_only=True):
    """The goals of a kind of machine. device: what they need; machine: what its name contains, in whole words
    ("" for any). Measured on another one they are held all the same, and the report says so."""

    device: Literal["cpu", "cuda"]
    machine: str = ""
    goals: tuple[Goal, ...]

    @property
    def every(self) -> tuple[Goal, ...]:
        """A goal for each model."""
        return tuple(
            goal if not goal.models else msgspec.structs.replace(goal, model=model, models=())
            for goal in self.goals
            for model in goal.models or (goal.model,)
        )


def names() -> tuple[str, ...]:
    return presets.names(FOLDER)


def load(name: str) -> Goals:
    """The goals of that name. Raises InputError where there are none."""
    return _apart(presets.load(FOLDER, name, Goals, "set of goals"))


def _apart(goals: Goals) -> Goals:
    """With a need of its own for each model of those that ask for it."""

    def named(need: str, model: str) -> str:
        return f"{need}-{stem(model)}"

    apart = {need.name for need in goals.needs if need.each}
    needs = [
        msgspec.structs.replace(need, name=named(need.name, model), models=(model,), each=False)
        if need.each
        else need
        for need in goals.needs
        for model in (need.models if need.each else (need.models or ("",))[:1])
    ]
    every = [
        msgspec.structs.replace(goal, need=named(goal.need, goal.model)) if goal.need in apart else goal
        for goal in goals.every
    ]
    return msgspec.structs.replace(goals, needs=tuple(needs), goals=tuple(every))
