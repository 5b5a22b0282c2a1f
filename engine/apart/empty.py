"""What a train of passes takes where there is no kernel: trigger, copies, answer.

Measured in a process that no user's kernel was ever loaded in, with slots of the same sizes, and taken off
the times of all sessions alike.
"""

from __future__ import annotations

import statistics
from collections import OrderedDict
from collections.abc import Mapping

import numpy as np

from engine.apart import pool, timed
from engine.apart.client import Child
from engine.apart.memory import Spec
from engine.apart.messages import Opened
from engine.apart.slots import Slots

TRAINS, COLD_TRAINS, ROUGH_TRAINS = 15, 5, 3
KEPT = 2  # sessions without a kernel, whose slots may be large

# Inputs, outputs, and whether it is of a process that stays awake: what such a one takes is less.
Shape = tuple[tuple[tuple[str, Spec], ...], tuple[tuple[str, Spec], ...], bool]

_taken: dict[tuple[Shape, int, bool, bool], float] = {}
_sessions: OrderedDict[Shape, tuple[Child, int, Slots]] = OrderedDict()


def train_ns(
    inputs: Mapping[str, Spec],
    outputs: Mapping[str, Spec],
    count: int,
    most: int,
    cold: bool,
    awake: bool = False,
    rough: bool = False,
) -> float:
    """Nanoseconds of a train over `count` of `most` slots of these arrays: a low quartile, measured once.
    awake: of a process that is not stopped between two trains. rough: for times that nobody keeps, such as
    those of a warm-up, whose trains are of many lengths: of fewer trains, where no more were measured."""
    shape = (tuple(inputs.items()), tuple(outputs.items()), awake)
    key = (shape, count, cold, rough and (shape, count, cold, False) not in _taken)
    if key not in _taken:
        child, number, slots = _session(shape, most)
        samples = [
            timed.train_ns(child, number, slots, 1 + k * count, count, untimed=count, cold=cold)
            for k in range(ROUGH_TRAINS if key[-1] else COLD_TRAINS if cold else TRAINS)
        ]
        # What the machine does meanwhile can only make one longer.
        _taken[key] = statistics.quantiles(samples, n=4)[0]
    return _taken[key]


def _session(shape: Shape, most: int) -> tuple[Child, int, Slots]:
    held = _sessions.get(shape)
    if held is None or held[0].lost is not None or held[2].count < most:
        inputs, outputs = dict(shape[0]), dict(shape[1])
        kind = "empty awake" if shape[2] else "empty"
        child = pool.child(kind)
        number = child.number()
        child.call("open", number, pool.KINDS[kind].opens, inputs, outputs, answers=Opened)
        slots = timed.held(child, number, inputs, outputs, most)
        slots.bind({name: np.zeros(spec.shape, spec.dtype) for name, spec in inputs.items()})
        held = _sessions[shape] = (child, number, slots)
    _sessions.move_to_end(shape)
    while len(_sessions) > KEPT:
        child, number, _ = _sessions.popitem(last=False)[1]
        if child.lost is None:
            child.call("close", number)
    return held
