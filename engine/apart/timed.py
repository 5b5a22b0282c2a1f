"""A timed train: passes that nobody times, then those that the clock is about, over inputs that changed in
between."""

from __future__ import annotations

from collections.abc import Mapping

from engine.apart.client import Child
from engine.apart.memory import Spec
from engine.apart.slots import Slots
from engine.machine import host


def held(
    child: Child, session: int, inputs: Mapping[str, Spec], outputs: Mapping[str, Spec], count: int
) -> Slots:
    """Slots for trains of at most `count` passes, which the child has from now on."""
    slots = Slots(inputs, outputs, count, ahead=child.stays)
    child.call("hold", session, inputs, outputs, slots.rows, True, memory=slots.block)
    slots.close()
    return slots


def train_ns(
    child: Child, session: int, slots: Slots, first: int, count: int, *, untimed: int, cold: bool
) -> int:
    """Nanoseconds from triggering passes `first` to `first + count - 1` until they are done.

    untimed: how many go before, over what lies in the slots: what the child answers to the timed ones it
    cannot know by then, as it is stopped while they are made. In a process that stays awake they go right
    before the timed ones, over a slot of their own, and its threads do not sleep in between. cold: caches are
    overwritten instead.
    """
    if untimed and not cold and not child.stays:
        child.train(session, untimed)
    slots.stir(first, count)
    if cold:
        child.call("cold", session)
        host.overwrite_caches()
    return child.train(session, count, untimed if child.stays and not cold else 0)
