"""Passes of a session in a row on its stream, timed, no two of them given the same.

A train is captured as CUDA graphs of stirring, pass, stirring, pass, …, so that neither is bound by the
host. What stirrings in a row take, captured alike, is taken off: a pass's time is what it would be in a train
of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from engine.cuda_runtime import Staging
from engine.cuda_stirring import TRAIN, CudaStirring, Placed, refusal
from engine.cuda_stream import Stream, Work
from engine.rung_rows import Given
from engine.stirring import Stirring
from engine.witness import Witness

Bound = Callable[[], Mapping[str, Given]]


class Trains:
    """Of passes that `launch` puts on the current stream. bound: the inputs, as they lie on the device."""

    def __init__(
        self,
        cupy: Any,
        pool: Any,
        stream: Stream,
        staging: Staging,
        launch: Work,
        inputs: Mapping[str, Placed],
        outputs: Mapping[str, Placed],
        bound: Bound,
        *,
        longest: int,
        capturing: bool = True,
    ) -> None:
        """longest: how many passes are captured as one; longer trains replay it. capturing: whether passes
        are captured at all."""
        self._cupy, self._pool, self._stream, self._staging = cupy, pool, stream, staging
        self._launch, self._inputs, self._outputs, self._bound = launch, inputs, outputs, bound
        self._longest, self._capturing = longest, capturing
        self._graphs: dict[tuple[str, int], Any] = {}
        self._stirring: CudaStirring | None = None
        self.refusal = refusal({**inputs, **outputs})

    def time(self, count: int, cold: bool = False) -> int:
        """Nanoseconds of so many passes; cold: of one, after the L2 cache was overwritten, and what is
        stirred was stirred before."""
        if cold and count != 1:
            raise ValueError(f"a cold run is timed on its own, not {count} of them")
        if self.refusal is not None:
            return round(self._stream.elapsed_ns(self._train(count, "pass"), cold))
        stirring = self._ready()
        stirring.took(count)
        if cold:
            elapsed = self._stream.elapsed_ns(self._train(1, "pass"), cold, before=stirring.stir)
        else:
            elapsed = self._stream.elapsed_ns(self._train(count, "stirred"))
        self._stream.put(stirring.settle)
        self._stream.synchronize()
        return stirring.own_ns(elapsed, count, 0.0 if cold else None)

    def forget(self) -> None:
        """Other inputs are bound."""
        if self._stirring is not None:
            self._stirring.forget()

    @property
    def stirring(self) -> Stirring | None:
        return self._stirring.stirring if self._stirring is not None else None

    @property
    def stirring_ns(self) -> float:
        """What is taken off a pass; 0 before the first was timed."""
        return (self._stirring.cost_ns or 0.0) if self._stirring is not None else 0.0

    def witnesses(self) -> tuple[Witness, ...]:
        return self._stirring.witnesses(self._staging) if self._stirring is not None else ()

    def _ready(self) -> CudaStirring:
        if self._stirring is None:
            self._stirring = CudaStirring(self._cupy, self._pool, self._inputs, self._outputs)
        if self._stirring.stirring is None:
            self._stirring.begin(self._bound(), self._staging)
            self._stream.put(self._stirring.settle)  # of nothing: the code is on the device before a capture
            self._stream.synchronize()
            if self._stirring.cost_ns is None:
                self._stirring.measure(lambda: self._stream.elapsed_ns(self._train(TRAIN, "stirring")))
                self._stream.put(self._stirring.settle)
                self._stirring.begin(self._bound(), self._staging)  # so that the first pass is number 0
                self._stream.synchronize()
        return self._stirring

    # ------------------------------------------------------------------------------------------- trains

    def _train(self, count: int, of: str) -> Work:
        """What puts so many on the stream: "pass", "stirring", or both in turn, "stirred"."""
        graphs = self._replayed(count, of)
        if graphs is None:
            return lambda: self._stream.put(self._of(count, of))

        def replay() -> None:
            for graph in graphs:
                graph.launch(self._stream.on)

        return replay

    def _of(self, count: int, of: str) -> Work:
        def stir() -> None:
            assert self._stirring is not None
            self._stirring.stir()

        works = {"pass": (self._launch,), "stirring": (stir,), "stirred": (stir, self._launch)}[of]

        def put() -> None:
            for _ in range(count):
                for work in works:
                    work()

        return put

    def _replayed(self, count: int, of: str) -> list[Any] | None:
        """CUDA graphs of powers of two that make up `count`; None where capturing does not work."""
        longest = TRAIN if of == "stirring" else self._longest
        graphs = []
        left = count
        while left and self._capturing:
            size = min(longest, 1 << (left.bit_length() - 1))
            if (of, size) not in self._graphs:
                self._graphs[of, size] = self._captured(size, of)
            graphs.append(self._graphs[of, size])
            left -= size
        return graphs if self._capturing else None

    def _captured(self, size: int, of: str) -> Any:
        graph, _ = self._stream.capture(self._of(size, of), trial=False)
        if graph is None:  # from now on launches go one by one
            self._capturing = False
            self._graphs.clear()
            self._staging.move_to(self._stream.on)
        return graph
