"""A timed train: passes that nobody times, then those that the clock is about, over inputs that changed in
between."""

from __future__ import annotations

from engine.apart.client import Child
from engine.apart.slots import Slots
from engine.cpu import host


def train_ns(
    child: Child, session: int, slots: Slots, first: int, count: int, *, untimed: int, cold: bool
) -> int:
    """Nanoseconds from triggering passes `first` to `first + count - 1` until they are done.

    untimed: how many go before, over what lies in the slots: what the child answers to the timed ones it
    cannot know by then, as it is stopped while they are made. cold: caches are overwritten instead.
    """
    if untimed and not cold:
        child.train(session, untimed)
    slots.stir(first, count)
    if cold:
        child.call("cold", session)
        host.overwrite_caches()
    return child.train(session, count)
