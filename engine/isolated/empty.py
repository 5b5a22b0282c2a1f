"""What a train of passes takes where there is no kernel: of a process that runs it by itself its trigger and
copies; of one that is given its passes what having it go on, and waiting until it has stopped, takes each
time.

Measured in a process that no user's kernel was ever loaded in, and taken off the times of all sessions alike.
"""

from __future__ import annotations

import statistics
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from engine.isolated import pool
from engine.isolated.client import Child
from engine.isolated.memory import Spec
from engine.isolated.messages import Opened
from engine.isolated.slots import Slots, between, most
from engine.machine import host

TRAINS, COLD_TRAINS, ROUGH_TRAINS = 15, 5, 3
KEPT = 2  # sessions without a kernel, whose slots may be large

# Passes of no kernel that are timed: so many, over so many bytes in all; and how many go before.
WAITS, WAITS_NBYTES, COLD_WAITS, UNTIMED = 200, 64 << 20, 5, 20
SLOTS = 8
# So much longer a pass may be after a stop than right after another pass: a kernel's code is no longer in the
# nearest caches, probably (up to 5 µs by tests.engine.isolated.both_ways; docs/trust.md).
COLD_NS = 5000
# Of a process with several threads: those are still being woken while a pass of such a length goes on.
BUSY_NS = 200_000

Shape = tuple[tuple[tuple[str, Spec], ...], tuple[tuple[str, Spec], ...]]


@dataclass(frozen=True)
class Off:
    """Nanoseconds that are no pass's, and how far they may be off: the median lies so far above; and what
    else comes with a stop."""

    ns: float
    half_width_ns: float


_taken: dict[tuple[Shape, int, bool, bool], float] = {}
_waiting: dict[tuple[Shape, int, bool, bool], Off] = {}
_sessions: OrderedDict[Shape, tuple[Child, int, Slots]] = OrderedDict()


def forget() -> None:
    """Measure all anew when it is next asked for: the machine may be another by now."""
    _taken.clear()
    _waiting.clear()


def waiting_ns(
    inputs: Mapping[str, Spec], outputs: Mapping[str, Spec], threads: int, one_core: bool, cold: bool
) -> Off:
    """What having a process go on and stop takes, that has so many threads, with what is done in between for
    such arrays (the caches are then another's); measured once. The tenth percentile: what the machine does
    meanwhile makes one longer, and nobody is to have more taken off than it took; where it has all cores the
    least, since then it hangs on which core it is woken. one_core: see Child.passes."""
    shape = (tuple(inputs.items()), tuple(outputs.items()))
    key = shape, threads, one_core, cold
    if key not in _waiting:
        nbytes = sum(spec.nbytes for spec in (*inputs.values(), *outputs.values()))
        waits = COLD_WAITS if cold else max(COLD_WAITS, min(WAITS, WAITS_NBYTES // max(1, nbytes)))
        child = pool.child("empty")
        number = child.number()
        child.call("open", number, pool.KINDS["empty"].opens, {}, {}, answers=Opened)
        busy_ns = 0 if threads == 1 else BUSY_NS
        child.call("ask", number, "wait_with", threads, busy_ns)
        slots = Slots(inputs, outputs, min(SLOTS, most([*inputs.values(), *outputs.values()])), own=True)
        input_arrays, output_arrays = (
            {name: np.zeros(spec.shape, spec.dtype) for name, spec in of.items()} for of in (inputs, outputs)
        )
        slots.bind(input_arrays)
        slots.stir(1, slots.count)
        before, after = between(slots, input_arrays, output_arrays, cold)
        pass_times = child.passes(
            number,
            waits,
            UNTIMED,
            lambda k: before(k % slots.count),
            lambda k: after(k % slots.count),
            one_core,
            threads,
        )
        child.call("close", number)
        low = statistics.quantiles(pass_times, n=10)[0] if one_core else float(min(pass_times))
        _waiting[key] = Off(low - busy_ns, statistics.median(pass_times) - low + COLD_NS)
    return _waiting[key]


def train_ns(
    inputs: Mapping[str, Spec],
    outputs: Mapping[str, Spec],
    count: int,
    at_most: int,
    cold: bool,
    rough: bool = False,
) -> float:
    """Nanoseconds of a train over `count` of `at_most` slots of these arrays, of a process that stays awake:
    a low quartile, measured once. rough: for times that nobody keeps, such as those of a warm-up, whose
    trains are of many lengths: of fewer trains, where no more were measured."""
    shape = (tuple(inputs.items()), tuple(outputs.items()))
    key = (shape, count, cold, rough and (shape, count, cold, False) not in _taken)
    if key not in _taken:
        child, number, slots = _session(shape, at_most)
        samples = []
        for k in range(ROUGH_TRAINS if key[-1] else COLD_TRAINS if cold else TRAINS):
            slots.stir(1 + k * count, count)
            if cold:
                child.call("cold", number)
                host.overwrite_caches()
            samples.append(sum(child.train(number, count, 0 if cold else count)))
        # What the machine does meanwhile can only make one longer.
        _taken[key] = statistics.quantiles(samples, n=4)[0]
    return _taken[key]


def _session(shape: Shape, at_most: int) -> tuple[Child, int, Slots]:
    known = _sessions.get(shape)
    if known is None or known[0].lost is not None or known[2].count < at_most:
        inputs, outputs = dict(shape[0]), dict(shape[1])
        child = pool.child("empty awake")
        number = child.number()
        child.call("open", number, pool.KINDS["empty awake"].opens, inputs, outputs, answers=Opened)
        slots = Slots(inputs, outputs, at_most, ahead=True)
        assert slots.block is not None
        child.call("hold", number, inputs, outputs, slots.rows, True, memory=slots.block)
        slots.close()
        slots.bind({name: np.zeros(spec.shape, spec.dtype) for name, spec in inputs.items()})
        known = _sessions[shape] = (child, number, slots)
    _sessions.move_to_end(shape)
    while len(_sessions) > KEPT:
        child, number, _ = _sessions.popitem(last=False)[1]
        if child.lost is None:
            child.call("close", number)
    return known
