"""Who hands work out to devices. `Devices` does so by processes that this machine starts: on its own devices
(`local`), or on places elsewhere (`elsewhere`). `bench.extras.fleet.on_ray` does the same by Ray."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from bench.commands.measuring import Ending
from bench.extras.fleet import devices
from bench.extras.fleet.devices import Place
from bench.extras.fleet.work import Said, Work, perform
from bench.results.messages import Log
from kernels.errors import InputError

Heard = Callable[[Work, Said], None]


class Executor(Protocol):
    """Hands work out until all is done, or the user wants no more (Ctrl-C). `heard` is called in the thread
    that called `run`, and for one thing at a time."""

    words: str  # on what, for the line that says what begins

    def run(self, works: Sequence[Work], heard: Heard) -> Ending: ...
    def close(self) -> None: ...


def local(device: str, at_once: int = 1) -> Devices:
    """The devices of one kind on this machine. Raises InputError where there is none."""
    found = devices.places(device)
    if not found:
        raise InputError(f"this machine has no device of kind {device}; name a cluster that has by --cluster")
    return Devices(found, at_once)


def elsewhere(names: Sequence[str]) -> Devices:
    """Places by their names. Raises InputError for one that is not known or cannot measure."""
    return Devices(tuple(map(devices.elsewhere, names)))


class Devices:
    """Each of these has a thread here that waits for its worker: so many at once on each. What they time they
    time one at a time, by the device's lock. A piece that one of them gives up is taken by another that can
    do it, without the cases that are settled. A place elsewhere that settled none of it gets nothing more."""

    def __init__(self, places: Sequence[Place], at_once: int = 1) -> None:
        self._places = tuple(places)
        self._at_once = max(1, at_once)
        names = ", ".join(place.name for place in self._places)
        self.words = f"{names} ({self._at_once} at once on each)" if self._at_once > 1 else names

    def run(self, works: Sequence[Work], heard: Heard) -> Ending:
        said: queue.SimpleQueue[tuple[Work, Said] | None] = queue.SimpleQueue()
        shelf = _Shelf(works, self._places)
        threads = [
            threading.Thread(target=_serve, args=(place, shelf, said), name=f"{place.name} {n}")
            for place in self._places
            for n in range(self._at_once)
        ]
        for thread in threads:
            thread.start()
        left = len(threads)
        cancelled = False
        try:
            while left:
                try:
                    got = said.get()
                    if got is None:
                        left -= 1
                    else:
                        heard(*got)
                except KeyboardInterrupt:
                    cancelled = True
                    shelf.close()
        finally:
            shelf.close()  # where `heard` could not go on, nobody does
            for thread in threads:
                thread.join()
        return Ending(cancelled, (*shelf.reasons, *([] if cancelled else shelf.unserved())))

    def close(self) -> None:
        """Nothing is kept."""


def _serve(place: Place, shelf: _Shelf, said: queue.SimpleQueue[tuple[Work, Said] | None]) -> None:
    """Do one piece after the other on a device, until there is none for it."""
    try:
        while (taken := shelf.take(place)) is not None:
            work, gave_up = taken
            done: set[str] = set()

            def say(told: Said, work: Work = work, done: set[str] = done) -> None:
                if told.settled:
                    done.add(told.message.case.key)
                said.put((work, told))

            try:
                outcome = perform(work, place, say, shelf.stop)
                reason = "" if outcome.cancelled else outcome.reason
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
            left = work.left(done) if reason else None
            if place.on and left is not None and not done:
                shelf.leave(place)  # what cannot be reached now would give up all the others, too
            if shelf.back(left, gave_up | {place.name}, f"{work.name}: {reason}" if reason else ""):
                text = f"{place.name} gave up {work.name}, and another machine takes it: {reason}"
                said.put((work, Said(Log(level="warning", text=text), place=place.name)))
    finally:
        said.put(None)


class _Shelf:
    """The pieces that nobody does at the moment, each with the names of the devices that gave it up."""

    def __init__(self, works: Sequence[Work], places: Sequence[Place]) -> None:
        self.stop = threading.Event()
        self.reasons: list[str] = []  # why pieces are not done
        self._change = threading.Condition()
        self._waiting: list[tuple[Work, frozenset[str]]] = [(work, frozenset()) for work in works]
        self._in_hands = 0
        self._serving = {place.name: place for place in places}

    def take(self, place: Place) -> tuple[Work, frozenset[str]] | None:
        """The next piece for a device; None where none will come any more."""
        with self._change:
            while not self.stop.is_set() and place.name in self._serving:
                waits = False
                for at, (work, gave_up) in enumerate(self._waiting):
                    able = {other.name for other in self._able(work, gave_up)}
                    if place.name in able and (place.name == work.first or work.first not in able):
                        del self._waiting[at]
                        self._in_hands += 1
                        return work, gave_up
                    waits = waits or place.name in able  # which has some of it already may give it up
                if not (self._in_hands or waits):
                    break
                self._change.wait()  # somebody may give up what is in his hands
            return None

    def back(self, left: Work | None, gave_up: frozenset[str], reason: str) -> bool:
        """A piece is done, or given up with these cases left. Whether another device can take them."""
        with self._change:
            self._in_hands -= 1
            others = left is not None and any(self._able(left, gave_up))
            if others and left is not None:
                self._waiting.append((left, gave_up))
            elif reason:
                self.reasons.append(reason)
            self._change.notify_all()
            return others

    def _able(self, work: Work, gave_up: frozenset[str]) -> Iterator[Place]:
        """Those that can take a piece."""
        for name, place in self._serving.items():
            if name not in gave_up and place.serves(work.device, work.gpu, work.backends):
                yield place

    def leave(self, place: Place) -> None:
        """This device gets nothing any more."""
        with self._change:
            self._serving.pop(place.name, None)

    def close(self) -> None:
        with self._change:
            self.stop.set()
            self._change.notify_all()

    def unserved(self) -> list[str]:
        """What is left when all devices have come to their end."""
        return [f"{work.name}: no machine that is left can run it" for work, _ in self._waiting]
