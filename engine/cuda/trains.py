"""Passes of a session in a row on its stream, timed, no two with the same inputs; and what all sessions on a
GPU, ours and rivals', do in the same way around them.

A train is captured as CUDA graphs of stirring, pass, stirring, pass, …, so that the host does not limit it.
The time of as many stirrings in a row, captured in the same way, is subtracted: a pass's time is what it
would be in a train without them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np

from engine.backend import check_inputs
from engine.cuda.batch_slot import OnDevice
from engine.cuda.renewing import CudaRenewing
from engine.cuda.runtime import Staging, translated
from engine.cuda.stirring import ROUNDS, TRAIN, CudaStirring, CudaTensor, Stirs, refusal
from engine.cuda.stream import Stream, Work
from engine.rung_rows import Given
from engine.stirring import LEAST, NEW, SAME, Stirring, Witness
from kernels.errors import Translated

RENEWING = "renewing"  # and stirring, a launch after the other, without passes
SETTLING = 2  # passes before a train
TAKEN_OFF = 0.9  # of what renewing takes alone: no train is made shorter than its passes


Bound = Callable[[], Mapping[str, Given]]


class CudaTrains(Stirs):
    """Trains of the passes that `launch` puts on the current stream. bound: the inputs on the device."""

    def __init__(
        self,
        cupy: Any,
        pool: Any,
        stream: Stream,
        staging: Staging,
        launch: Work,
        inputs: Mapping[str, CudaTensor],
        outputs: Mapping[str, CudaTensor],
        bound: Bound,
        *,
        longest: int,
        capturing: bool = True,
    ) -> None:
        """longest: how many passes are captured in one CUDA graph; a longer train replays it. capturing:
        whether passes are captured at all."""
        self._cupy, self._pool, self._stream, self._staging = cupy, pool, stream, staging
        self._launch, self._inputs, self._outputs, self._bound = launch, inputs, outputs, bound
        self._longest, self._capturing = longest, capturing
        self._graphs: dict[tuple[str, int], Any] = {}
        self._stirring: CudaStirring | None = None
        self._renewing: CudaRenewing | None = None
        self.refusal = refusal({**inputs, **outputs})

    @property
    def on_device(self) -> OnDevice:
        def capture(work: Work) -> Any:
            graph, _ = self._stream.capture(work, trial=False)
            if graph is None:
                self._staging.move_to(self._stream.on)
            return graph

        return OnDevice(
            self._cupy, self._pool, lambda: self._stream.on, self._launch, self._inputs, self._outputs,
            capture if self._capturing else None,
        )  # fmt: skip

    def time(self, count: int, cold: bool = False) -> int:
        """Nanoseconds of `count` passes. cold: of one pass, after the L2 cache was overwritten; its inputs
        were changed before that."""
        if cold and count != 1:
            raise ValueError(f"a cold run is timed on its own, not {count} of them")
        self._stream.context.look(self._stream.on.ptr)
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

    def time_renewed(self, count: int, alike: int) -> float:
        """See engine.stirring.Renewable. Before other passes the bound inputs must be written again, and
        `forget` called."""
        if self.refusal is not None:  # whatever is asked for, inputs are the same
            return self._stream.elapsed_ns(self._train(count, "pass")) / count
        renewing, new = self._renewed(alike == NEW), alike == NEW
        self._ready().took(0)  # what the last timed train left is not kept any longer
        # Before each train passes of its kind: one over the same inputs then finds them there.
        self._stream.put(self._of(SETTLING, f"renewed {alike}"))
        renewing.number += SETTLING
        elapsed = self._stream.elapsed_ns(self._train(count, f"renewed {alike}"))
        renewing.number += count
        self._stream.synchronize()
        return max(elapsed / count - TAKEN_OFF * renewing.cost_ns[new], LEAST * elapsed / count)

    def settle(self) -> None:
        """Restore the bound inputs; the caller may then write others."""
        if self._stirring is not None and self._stirring.stirring is not None:
            self._stream.put(self._stirring.settle)
            self._stream.synchronize()

    @property
    def facts(self) -> dict[str, str]:
        """What was changed in the device's context while passes were timed, in words."""
        undone = self._stream.context.undone
        return {"undone": f"somebody changed {' and '.join(undone)}; it was put back"} if undone else {}

    @property
    def last_of_new(self) -> Callable[[], dict[str, np.ndarray]] | None:
        """A function that gives the inputs of the last pass of `time_renewed` over new inputs; None where
        there was none."""
        if self._renewing is None or self.refusal is not None:
            return None
        return partial(self._renewing.drawn().inputs_of, self._renewing.number - 1)

    def _renewed(self, new: bool) -> CudaRenewing:
        stirring = self._ready()
        if self._renewing is None:
            self._renewing = CudaRenewing(self._cupy, self._pool, stirring)
        renewing, kind = self._renewing, f"{RENEWING} {NEW if new else SAME}"
        if renewing.stirring is not stirring.stirring:
            renewing.begin(self._staging)
            self._stream.put(self._of(1, f"{RENEWING} {SAME}"))  # the code is on the device before a capture
            self._stream.synchronize()
            renewing.number += 1
        if new not in renewing.cost_ns:
            trains = [self._stream.elapsed_ns(self._train(TRAIN, kind)) for _ in range(ROUNDS)]
            renewing.cost_ns[new] = min(trains) / TRAIN
            renewing.number += TRAIN * ROUNDS
        return renewing

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
        """Work that puts `count` of these on the stream. of: "pass"; "stirring" (the launch that changes
        inputs); "stirred" (both in turn); RENEWING (the launch that writes all inputs, NEW or SAME);
        "renewed" (that and a pass)."""
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

        def renew() -> None:
            assert self._renewing is not None
            self._renewing.renew(int(of.partition(" ")[2]) == NEW)

        works = {
            "pass": (self._launch,),
            "stirring": (stir,),
            "stirred": (stir, self._launch),
            "renewing": (stir, renew),
            "renewed": (stir, renew, self._launch),
        }[of.partition(" ")[0]]

        def put() -> None:
            for _ in range(count):
                for work in works:
                    work()

        return put

    def _replayed(self, count: int, of: str) -> list[Any] | None:
        """CUDA graphs whose lengths, powers of two, add up to `count`; None where capturing fails."""
        longest = TRAIN if of == "stirring" or of.startswith(RENEWING) else self._longest
        graphs = []
        remaining = count
        while remaining and self._capturing:
            size = min(longest, 1 << (remaining.bit_length() - 1))
            if (of, size) not in self._graphs:
                self._graphs[of, size] = self._captured(size, of)
            graphs.append(self._graphs[of, size])
            remaining -= size
        return graphs if self._capturing else None

    def _captured(self, size: int, of: str) -> Any:
        graph, _ = self._stream.capture(self._of(size, of), trial=False)
        if graph is None:  # from now on launches go one by one
            self._capturing = False
            self._graphs.clear()
            self._staging.move_to(self._stream.on)
        return graph


class Placed(Protocol):
    """A tensor on the device; CudaTensor is one."""

    @property
    def pointer(self) -> int: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype: ...


class Waited(Protocol):
    """A stream, of ours or of CuPy."""

    def synchronize(self) -> None: ...


class Timed(Protocol):
    """What a session needs of its trains."""

    refusal: str | None

    @property
    def on_device(self) -> OnDevice: ...
    def forget(self) -> None: ...
    def time(self, count: int, cold: bool = False) -> int: ...
    @property
    def stirring(self) -> Stirring | None: ...
    @property
    def stirring_ns(self) -> float: ...
    def witnesses(self) -> tuple[Witness, ...]: ...


class DeviceSession:
    """The base of all sessions on a GPU, so that all backends that are compared are treated in the same way:
    inputs are copied in and answers out, passes are timed, their inputs changed, and some passes recorded.
    See engine.backend.Session and engine.stirring.Witnessed.

    A subclass says where inputs and outputs lie, on which stream it runs, what its trains are, and how a pass
    is started (`_start`). `_what`: the model, for errors; `_translated`: turns the errors of its library into
    ours.
    """

    _what: str
    _inputs: Mapping[str, Placed]
    _outputs: Mapping[str, Placed]
    _stream: Waited
    _staging: Staging
    _trains: Timed
    _facts: dict[str, str]
    _bound: dict[str, np.ndarray]
    _closed = False
    _translated: type[Translated] = translated

    def _start(self) -> object:
        """Start a pass, which may go on when this returns."""
        raise NotImplementedError

    def _check(self, inputs: Mapping[str, np.ndarray]) -> None:
        """Raise where these inputs cannot be bound."""
        check_inputs(inputs, {name: (it.shape, it.dtype) for name, it in self._inputs.items()})

    def _kept(self, array: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """A bound input as a C-contiguous array in the type that it has on the device; timed passes are
        checked against it."""
        return np.ascontiguousarray(array, dtype)

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("this session is closed")

    def _lying(self) -> dict[str, np.ndarray]:
        """The inputs as they are on the device; zeros where nothing was bound."""
        return self._bound or {name: np.zeros(it.shape, it.dtype) for name, it in self._inputs.items()}

    def _timed_by(self, trains: Timed) -> None:
        self._trains = trains
        if trains.refusal:
            self._facts["stirring"] = f"no: {trains.refusal}"

    def bind(self, inputs: Mapping[str, np.ndarray]) -> None:
        self._check_open()
        self._check(inputs)
        self._trains.forget()
        self._bound = {name: self._kept(array, self._inputs[name].dtype) for name, array in inputs.items()}
        with self._translated(f"the inputs of {self._what}"):
            self._copy_in()

    def _copy_in(self) -> None:
        """Copy the bound inputs to where a pass reads them."""
        for name, array in self._bound.items():
            self._staging.upload(array, self._inputs[name].pointer)
        self._stream.synchronize()

    def _copied_out(self) -> dict[str, np.ndarray]:
        """Copies of the outputs of the last pass, as they are on the device."""
        outputs = {}
        for name, placed in self._outputs.items():
            outputs[name] = np.empty(placed.shape, placed.dtype)
            self._staging.download(placed.pointer, outputs[name])
        return outputs

    @cached_property
    def _in_words(self) -> Translated:
        """The error translation around a pass; made once, because a pass may take microseconds."""
        return self._translated(self._what)

    def _settle(self) -> None:
        """Restore the bound inputs where something else was written there."""

    def run(self) -> None:
        self._check_open()
        self._settle()
        with self._in_words:
            self._start()

    def synchronize(self) -> None:
        self._check_open()
        with self._in_words:
            self._stream.synchronize()

    def fetch(self) -> dict[str, np.ndarray]:
        self._check_open()
        with self._translated(f"the outputs of {self._what}"):
            outputs = self._copied_out()
        return {name: array.astype(np.float32, copy=False) for name, array in outputs.items()}

    def time_runs(self, count: int, cold: bool = False) -> int:
        """The time that changing inputs takes on the device is subtracted; see the session's trains."""
        self._check_open()
        self._settle()
        with self._translated(self._what):
            return self._trains.time(count, cold)

    @property
    def on_device(self) -> OnDevice:
        """See engine.cuda.batch_slot."""
        return self._trains.on_device

    @property
    def stirring(self) -> Stirring | None:
        return self._trains.stirring

    @property
    def stirring_ns(self) -> float:
        return self._trains.stirring_ns

    def witnesses(self) -> tuple[Witness, ...]:
        self._check_open()
        with self._translated(f"the outputs of {self._what}"):
            return self._trains.witnesses()
