"""What a model's session and a rung's have in common on this side: an isolated process, and a session in it.

A process that has ended while it was stopped was ended by somebody else. Then the session is opened again in
another process, and goes on as if nothing had happened; whose turn it was is told (engine.isolated.client).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from engine.isolated import pool
from engine.isolated.client import Child, unwatch
from engine.isolated.trains import IsolatedTrains
from engine.stirring import Stirring, Witness
from kernels.errors import CrashedError

T = TypeVar("T")
AGAIN = 4  # times that a session is opened again


class Reopenable:
    """A session of a child that `find` gives, and an engine.stirring.Witnessed. Whoever derives from it sets
    `_number`, once the child has given one, and `_trains`; and `_opened_again` is theirs."""

    _number: int
    _trains: IsolatedTrains

    def __init__(self, find: Callable[[], Child]) -> None:
        self._find = find
        self._child = find()
        self._closed = False
        self._ended_by: list[Child | None] = []

    def _opened_again(self) -> None:
        """In another child, which is there: open the session as it was."""
        raise NotImplementedError

    def _going_on(self, asked: Callable[[], T]) -> T:
        """What is asked of the child; once more where somebody else has ended it meanwhile."""
        while True:
            try:
                return asked()
            except CrashedError:
                if self._closed or not self._ended_by_another():
                    raise
            pool.release(self._child)
            self._child = self._find()
            self._opened_again()

    def _ended_by_another(self) -> bool:
        """One that runs what a user wrote may have ended itself, by a timer, to have it blamed on another. So
        in whose turn it has ended is held against that one the second time, and against itself where it was
        in two different ones', or in ours."""
        if not self._child.ended or len(self._ended_by) == AGAIN:
            return False
        by, before = self._child.ended_by, [*self._ended_by]
        self._ended_by.append(by)
        if not self._child.users:
            return True
        if by is None or any(other is not by for other in before):
            return False
        if before and not by.spoilt:
            by.spoilt = f"{by.what} ended the process of {self._child.what}: a kernel leaves others alone"
        return True

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
            pool.release(self._child)
