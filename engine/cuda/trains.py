"""Time the passes of a session on a GPU (`CudaTrains`); and the base of all sessions on a GPU, of this
program and of rivals (`DeviceSession`).

A train is a row of passes on one stream. Before each pass its inputs are stirred: one small launch changes a
few of their values (engine.cuda.stirring), so that no two passes have the same inputs. Where a dtype does not
allow that, `refusal` says so and all passes have the same inputs.

A train is captured as CUDA graphs of stirring, pass, stirring, pass, …, so that the host does not slow it
down. Where capturing fails, launches go one by one. The time of as many stirrings, captured in the same way
without passes, is subtracted. What is left is the time that the passes alone would take.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np

from engine.backend import check_inputs
from engine.cuda import runtime as cuda_runtime
from engine.cuda.batch_slot import OnDevice
from engine.cuda.renewing import CudaRenewing
from engine.cuda.runtime import Staging, translated
from engine.cuda.stirring import ROUNDS, TRAIN, CudaStirring, CudaTensor, Stirs, refusal
from engine.cuda.stream import Stream, Work
from engine.rung_rows import Given, Rows
from engine.stirring import LEAST, NEW, SAME, Stirring, Witness
from kernels.errors import Translated

RENEWING = "renewing"  # and stirring, a launch after the other, without passes
SETTLING = 2  # untimed passes before a train of `time_renewed`
TAKEN_OFF = 0.9  # share of the time of renewing alone that is subtracted; all could be too much


Bound = Callable[[], Mapping[str, Given]]


class CudaTrains(Stirs):
    """Times trains of passes. launch: puts one pass on the current CUDA stream; inputs, outputs: where in
    device memory a pass reads and writes, by name; bound: gives the inputs as host arrays, equal to those on
    the device. pool: gives device memory; staging: copies between host and device. refusal: why inputs cannot
    be changed, in words, or None."""

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
        """longest: at most so many passes are captured in one CUDA graph; a longer train replays graphs.
        capturing: whether passes are captured at all."""
        self._cupy, self._pool, self._stream, self._staging = cupy, pool, stream, staging
        self._launch, self._inputs, self._outputs, self._bound = launch, inputs, outputs, bound
        self._longest, self._capturing = longest, capturing
        self._graphs: dict[tuple[str, int], Any] = {}
        self._stirring: CudaStirring | None = None
        self._renewing: CudaRenewing | None = None
        self.refusal = refusal({**inputs, **outputs})

    @property
    def on_device(self) -> OnDevice:
        """The session's pass, for code that adds work before and after it."""

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
        """Nanoseconds of `count` passes together on the device, by CUDA events; stirring is subtracted.
        Afterwards the bound inputs are restored. cold: the L2 cache is overwritten before the pass, after its
        inputs were changed. Raises ValueError for cold with another count than 1."""
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

    def time_renewed(self, count: int, alike: int, cold: bool = False) -> float:
        """Nanoseconds of one pass, in a train of `count` over inputs that are written anew before each pass.
        alike: NEW or SAME (see engine.stirring.Renewable); cold: as of `time`. Before other passes the caller
        must write the bound inputs again and call `forget`. Where `refusal` says why not, inputs stay the
        same."""
        if self.refusal is not None:  # whatever is asked for, inputs are the same
            return self._stream.elapsed_ns(self._train(count, "pass"), cold) / count
        renewing, new = self._prepared_renewing(alike == NEW), alike == NEW
        self._ready().lose()
        # Before each train passes of its kind: one over the same inputs then finds them there.
        self._stream.put(self._pieces(SETTLING, f"renewed {alike}"))
        renewing.number += SETTLING
        if cold:
            renew = self._pieces(1, f"{RENEWING} {alike}")
            elapsed = self._stream.elapsed_ns(self._train(1, "pass"), cold, before=renew)
        else:
            elapsed = self._stream.elapsed_ns(self._train(count, f"renewed {alike}"))
        renewing.number += count
        self._stream.synchronize()
        if cold:
            return elapsed
        return max(elapsed / count - TAKEN_OFF * renewing.cost_ns[new], LEAST * elapsed / count)

    def settle(self) -> None:
        """Restore the bound inputs on the device, and wait until that is done. The caller may then write
        others."""
        if self._stirring is not None and self._stirring.stirring is not None:
            self._stream.put(self._stirring.settle)
            self._stream.synchronize()

    @property
    def facts(self) -> dict[str, str]:
        """Under "undone": which settings of the CUDA context somebody changed while passes were timed, in
        words. {} where nothing was changed."""
        undone = self._stream.context.undone
        return {"undone": f"somebody changed {' and '.join(undone)}; it was put back"} if undone else {}

    @property
    def last_of_new(self) -> Callable[[], dict[str, np.ndarray]] | None:
        """A function that computes, on the host, the inputs of the last pass of `time_renewed` with NEW
        inputs: arrays by name. None where there was no such pass."""
        if self._renewing is None or self.refusal is not None:
            return None
        return partial(self._renewing.drawn().inputs_of, self._renewing.number - 1)

    def _prepared_renewing(self, new: bool) -> CudaRenewing:
        """The launch that writes all inputs anew, ready for the bound inputs and with its own cost measured.
        new: NEW."""
        stirring = self._ready()
        if self._renewing is None:
            self._renewing = CudaRenewing(self._cupy, self._pool, stirring)
        renewing, kind = self._renewing, f"{RENEWING} {NEW if new else SAME}"
        if renewing.stirring is not stirring.stirring:
            renewing.begin(self._staging)
            # The code is on the device before a capture.
            self._stream.put(self._pieces(1, f"{RENEWING} {SAME}"))
            self._stream.synchronize()
            renewing.number += 1
        if new not in renewing.cost_ns:
            trains = [self._stream.elapsed_ns(self._train(TRAIN, kind)) for _ in range(ROUNDS)]
            renewing.cost_ns[new] = min(trains) / TRAIN
            renewing.number += TRAIN * ROUNDS
        return renewing

    def _ready(self) -> CudaStirring:
        """The launch that changes a few values of all inputs, ready for the bound inputs and with its own
        cost measured."""
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
        """A function that puts a train of `count` pieces on the stream, as CUDA graphs where that works.

        of says what a piece is: "pass"; "stirring": the launch that changes a few values; "stirred": that
        and a pass; "renewing 1" or "renewing 0": stirring, and the launch that writes all inputs (1: NEW,
        0: SAME); "renewed 1" or "renewed 0": that and a pass."""
        graphs = self._graphs_for(count, of)
        if graphs is None:
            return lambda: self._stream.put(self._pieces(count, of))

        def replay() -> None:
            for graph in graphs:
                graph.launch(self._stream.on)

        return replay

    def _pieces(self, count: int, of: str) -> Work:
        """A function that launches `count` pieces one by one; of: as of `_train`."""

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

    def _graphs_for(self, count: int, of: str) -> list[Any] | None:
        """CUDA graphs whose numbers of pieces, powers of two, add up to `count`; None where capturing
        fails."""
        longest = TRAIN if of == "stirring" or of.startswith(RENEWING) else self._longest
        graphs = []
        remaining = count
        while remaining and self._capturing:
            size = min(longest, 1 << (remaining.bit_length() - 1))
            if (of, size) not in self._graphs:
                self._graphs[of, size] = self._capture(size, of)
            graphs.append(self._graphs[of, size])
            remaining -= size
        return graphs if self._capturing else None

    def _capture(self, size: int, of: str) -> Any:
        """One CUDA graph of `size` pieces; None where capturing fails, and then nothing is captured again."""
        graph, _ = self._stream.capture(self._pieces(size, of), trial=False)
        if graph is None:  # from now on launches go one by one
            self._capturing = False
            self._graphs.clear()
            self._staging.move_to(self._stream.on)
        return graph


class Placed(Protocol):
    """A tensor at an address in device memory; CudaTensor is one."""

    @property
    def pointer(self) -> int: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype: ...


class Waited(Protocol):
    """A CUDA stream that one can wait for: a Stream of engine.cuda, or CuPy's."""

    def synchronize(self) -> None: ...


class Timed(Protocol):
    """What a DeviceSession needs of its trains; CudaTrains and engine.ort.trains.OrtTrains have it."""

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
    """The base class of all sessions on a GPU, so that all backends are compared in the same way. It copies
    inputs in and outputs out, times passes, changes their inputs, and records some passes for a later check.
    See engine.backend.Session and engine.stirring.Witnessed.

    A subclass sets `_inputs` and `_outputs` (where tensors are in device memory, by name), `_stream`,
    `_staging`, `_facts`, and `_trains` (with `_timed_by`); it defines `_start`, which starts a pass. `_what`:
    the model in words, for errors. `_translated`: a context that turns the errors of the subclass's library
    into those of kernels.errors. All methods that run something raise RuntimeError after `close`.
    """

    _what: str
    _inputs: Mapping[str, Placed]
    _outputs: Mapping[str, Placed]
    _stream: Waited
    _staging: Staging
    _trains: Timed
    _facts: dict[str, str]
    _bound: dict[str, Given]
    _closed = False
    _translated: type[Translated] = translated

    def _start(self) -> object:
        """Start a pass, which may go on when this returns."""
        raise NotImplementedError

    def _check(self, inputs: Mapping[str, Given]) -> None:
        """Raise UnsupportedError where names or shapes are not those of the session's inputs."""
        check_inputs(inputs, {name: (it.shape, it.dtype) for name, it in self._inputs.items()})

    def _kept(self, array: Given, dtype: np.dtype) -> Given:
        """A bound input as a C-contiguous array in the type that it has on the device, or as the rows that it
        repeats; timed passes are checked against it."""
        return array if isinstance(array, Rows) else np.ascontiguousarray(array, dtype)

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("this session is closed")

    def _lying(self) -> Mapping[str, Given]:
        """The bound inputs by name, as host arrays; zeros where nothing was bound."""
        return self._bound or {name: np.zeros(it.shape, it.dtype) for name, it in self._inputs.items()}

    def _timed_by(self, trains: Timed) -> None:
        """Set what times the passes; note in `facts` where inputs cannot be changed."""
        self._trains = trains
        if trains.refusal:
            self._facts["stirring"] = f"no: {trains.refusal}"

    def bind(self, inputs: Mapping[str, Given]) -> None:
        """Copy the inputs, arrays of the full batch by name, to where a pass reads them; wait until done.
        Raises UnsupportedError for other names or shapes."""
        self._check_open()
        self._check(inputs)
        self._trains.forget()
        self._bound = {name: self._kept(array, self._inputs[name].dtype) for name, array in inputs.items()}
        with self._translated(f"the inputs of {self._what}"):
            self._copy_in()

    def _copy_in(self) -> None:
        """Copy the bound inputs to where a pass reads them."""
        for name, array in self._lying().items():
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
        """Start one forward pass; it may go on when this returns."""
        self._check_open()
        self._settle()
        with self._in_words:
            self._start()

    def synchronize(self) -> None:
        """Wait until all started passes have ended. Errors of the device are raised here."""
        self._check_open()
        with self._in_words:
            self._stream.synchronize()

    def fetch(self) -> dict[str, np.ndarray]:
        """Copies of the outputs of the last pass, by name, as float32."""
        self._check_open()
        with self._translated(f"the outputs of {self._what}"):
            outputs = self._copied_out()
        return {name: array.astype(np.float32, copy=False) for name, array in outputs.items()}

    def time_runs(self, count: int, cold: bool = False) -> int:
        """Nanoseconds of `count` passes together, each with changed inputs. The time of changing them is
        subtracted. cold (only with count 1): the L2 cache is overwritten before the pass."""
        self._check_open()
        self._settle()
        with self._translated(self._what):
            return self._trains.time(count, cold)

    @property
    def on_device(self) -> OnDevice:
        """The session's pass, for code that adds work before and after it (engine.cuda.batch_slot)."""
        return self._trains.on_device

    @property
    def stirring(self) -> Stirring | None:
        """The changes of the bound inputs; None before the first timed pass."""
        return self._trains.stirring

    @property
    def stirring_ns(self) -> float:
        """Nanoseconds a pass that changing its inputs takes; subtracted from all times."""
        return self._trains.stirring_ns

    def witnesses(self) -> tuple[Witness, ...]:
        """Records of timed passes, those of the last train among them."""
        self._check_open()
        with self._translated(f"the outputs of {self._what}"):
            return self._trains.witnesses()


Arrays = Mapping[str, np.ndarray]


class KernelSession(DeviceSession):
    """The base class of sessions that launch kernels of ours, of a net or of one step. Their passes are also
    timed over inputs that are all new (engine.stirring.Renewable).

    A subclass sets `_cupy`, `_pool`, which all of its device memory is from, and as `_trains` CudaTrains.
    `_held`: its members that hold such memory.
    """

    _cupy: Any
    _pool: Any = None
    _stream: Stream
    _inputs: dict[str, CudaTensor]
    _outputs: dict[str, CudaTensor]
    _trains: CudaTrains
    _held: tuple[str, ...] = ()
    _elsewhere = _new = False  # whether other inputs than the bound ones lie there, and whether all are new
    _last: tuple[Callable[[], Arrays], Arrays] | None = None
    _made: tuple[int, int] = 0, SAME  # for at most how many passes inputs are renewed, and of which kind

    def _copy_in(self) -> None:
        super()._copy_in()
        self._elsewhere = self._new = False

    def _settle(self) -> None:
        if self._elsewhere:
            self.bind(self._lying())

    def _answer(self) -> Arrays | None:
        """The outputs of a pass over new inputs; None where to fetch them would take long."""
        return self.fetch()

    def renew(self, count: int, alike: int) -> None:
        """See engine.stirring.Renewable. The device makes the inputs of each pass right before it."""
        self._made = count, alike

    def time_renewed(self, count: int, cold: bool = False) -> float:
        """See engine.stirring.Renewable."""
        self._check_open()
        (most, alike), self._made = self._made, (0, SAME)
        if count > most:
            return 0.0
        with self._in_words:
            if alike == SAME and self._new:  # what was bound is to lie there, as in a timed pass
                self._trains.settle()
                super()._copy_in()
            self._elsewhere, self._new = True, alike == NEW
            elapsed_ns = self._trains.time_renewed(count, alike, cold)
            inputs = self._trains.last_of_new if alike == NEW else None
            if inputs is not None and (outputs := self._answer()) is not None:
                self._last = inputs, outputs
        return elapsed_ns

    def renewed(self) -> Sequence[tuple[Arrays, Arrays]]:
        """Inputs and outputs of a pass over new inputs, since this was asked."""
        last, self._last = self._last, None
        return () if last is None else [(last[0](), last[1])]

    def close(self) -> None:
        """Wait for what still runs, then free all memory, graphs and the stream. On a device that has failed
        nothing is freed."""
        if self._closed:
            return
        self._closed = True
        if cuda_runtime.lost(self._cupy):
            cuda_runtime.keep(self)
            return
        with contextlib.suppress(RuntimeError, AttributeError):  # it may not have come to be
            self._stream.synchronize()
        for name in self._held:
            self.__dict__.pop(name, None)
        if self._pool is not None:
            with contextlib.suppress(RuntimeError):
                self._pool.free_all_blocks()
            self._pool = None
