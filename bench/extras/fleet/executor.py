"""Who hands work out to devices. `local` does so to processes of this machine; a cluster's does the same by
Ray (`bench.extras.fleet.on_ray`)."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from bench.commands.measuring import Ending
from bench.extras.fleet.devices import Place, places
from bench.extras.fleet.work import Said, Work, perform
from kernels.errors import InputError

Heard = Callable[[Work, Said], None]


class Executor(Protocol):
    """Hands work out until all is done, or the user wants no more (Ctrl-C). `heard` is called in the thread
    that called `run`, and for one thing at a time."""

    words: str  # on what, for the line that says what begins

    def run(self, works: Sequence[Work], heard: Heard) -> Ending: ...
    def close(self) -> None: ...


class Local:
    """Processes of this machine: so many at once on each device. What they time they time one at a time, by
    the device's lock."""

    def __init__(self, device: str, at_once: int = 1) -> None:
        self._places = places(device)
        if not self._places:
            raise InputError(
                f"this machine has no device of kind {device}; name a cluster that has by --cluster"
            )
        self._at_once = max(1, at_once)
        names = ", ".join(place.name for place in self._places)
        self.words = f"{names} ({self._at_once} at once on each)" if self._at_once > 1 else names

    def run(self, works: Sequence[Work], heard: Heard) -> Ending:
        waiting: queue.SimpleQueue[Work] = queue.SimpleQueue()
        for work in works:
            waiting.put(work)
        said: queue.SimpleQueue[tuple[Work, Said] | None] = queue.SimpleQueue()
        stop = threading.Event()
        reasons: list[str] = []
        threads = [
            threading.Thread(
                target=self._serve, args=(place, waiting, said, stop, reasons), name=f"{place.name} {n}"
            )
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
                    stop.set()
        finally:
            stop.set()  # where `heard` could not go on, nobody does
            for thread in threads:
                thread.join()
        return Ending(cancelled, tuple(reasons))

    @staticmethod
    def _serve(
        place: Place,
        waiting: queue.SimpleQueue[Work],
        said: queue.SimpleQueue[tuple[Work, Said] | None],
        stop: threading.Event,
        reasons: list[str],
    ) -> None:
        try:
            while not stop.is_set():
                try:
                    work = waiting.get_nowait()
                except queue.Empty:
                    return
                try:
                    outcome = perform(work, place, lambda told, work=work: said.put((work, told)), stop)  # type: ignore[misc]
                    if outcome.reason and not outcome.cancelled:
                        reasons.append(f"{work.name}: {outcome.reason}")
                except Exception as error:
                    reasons.append(f"{work.name}: {type(error).__name__}: {error}")
        finally:
            said.put(None)

    def close(self) -> None:
        """Nothing is kept."""
