"""What a model's session and a rung's have in common on this side: a process apart, and a session in it."""

from __future__ import annotations

from engine.apart import pool
from engine.apart.client import Child, unwatch
from engine.apart.trains import ApartTrains
from engine.stirring import Stirring
from engine.witness import Witness
from kernels.errors import CrashedError


class Held:
    """A session of a child, and an engine.witness.Witnessed. Whoever derives from it sets `_number`, once
    the child has given one, and `_trains`."""

    _number: int
    _trains: ApartTrains

    def __init__(self, child: Child) -> None:
        self._child = child
        self._closed = False

    @property
    def stirring(self) -> Stirring | None:
        return self._trains.stirring

    @property
    def stirring_ns(self) -> float:
        return self._trains.trigger_ns

    def witnesses(self) -> tuple[Witness, ...]:
        self._child.look()
        return self._trains.witnesses()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            if self._child.lost is None and hasattr(self, "_number"):
                self._child.call("close", self._number)
        except CrashedError:
            pass  # it has ended before it was asked to
        finally:
            unwatch()
            pool.done(self._child)
