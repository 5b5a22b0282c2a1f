"""A model's session in an isolated process, as engine.backend.Session has it on this side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from engine.backend import OpTime, check_inputs
from engine.isolated import pool
from engine.isolated.client import Child, unwatch
from engine.isolated.memory import Spec
from engine.isolated.messages import Opened, OutputReply, Shapes
from engine.isolated.slots import Slots
from engine.isolated.timed import Arena
from engine.isolated.trains import IsolatedTrains
from engine.rung_rows import Given
from engine.stirring import Stirring, Witness
from kernels.errors import CrashedError, KernelError
from kernels.precision import FP32

T = TypeVar("T")
AGAIN = 4  # times that a session is opened again


class IsolatedSession:
    """Session of a kind (engine.isolated.pool.KINDS), opened with these arguments; also an
    engine.stirring.Witnessed and Renewable. what: model, backend and batch, for errors; own: see pool.child;
    outputs: shapes that are known here, where they are; threads: how many a pass takes, told: how many it was
    told that it may take (0: not known; the same where only one is given)."""

    backend = ""
    precision = FP32

    def __init__(
        self,
        kind: str,
        what: str,
        batch: int,
        arguments: tuple[Any, ...],
        own: object = None,
        outputs: Mapping[str, Spec] | None = None,
        threads: int = 0,
        told: int = 0,
    ) -> None:
        self.batch = batch
        self._what = what
        self._find = partial(pool.child, kind, what, own)
        self._child = self._find()
        self._closed = self._ran = False
        self._ended_by: list[Child | None] = []
        self._open = partial(self._opened, kind, arguments, outputs, threads, told or threads)
        try:
            opened = self._open()
        except BaseException:
            self.close()
            raise
        self.phases: Mapping[str, int] = opened.phases
        self.memory: Mapping[str, int] = opened.memory
        self._facts = opened.facts

    def _opened(
        self,
        kind: str,
        arguments: tuple[Any, ...],
        outputs: Mapping[str, Spec] | None,
        threads: int,
        told: int,
    ) -> Opened:
        with self._in_words():
            self._number = self._child.number()
            opens = pool.KINDS[kind].opens
            opened: Opened = self._child.call("open", self._number, opens, *arguments, answers=Opened)
            self._inputs = _specs(opened.inputs)
            self._outputs = dict(outputs) if outputs is not None else _specs(opened.outputs)
            if outputs is not None and _specs(opened.outputs) != self._outputs:
                raise KernelError(f"{self._what}: its outputs are not those of the model")
            self._lay(opened)
        self.one_thread = threads == 1
        arena = None if self._child.stays else Arena(self._given, self._left, threads or 1, told or 1)
        self._trains = IsolatedTrains(self._child, self._number, self._inputs, self._outputs, arena, threads)
        self._stirred = False  # the session's inputs are those of a timed pass
        return opened

    def _lay(self, opened: Opened) -> None:
        """Memory for what is bound and what a pass answers, which the child maps."""
        plain = Slots(self._inputs, self._outputs, 1)
        self._given, self._left = (
            {name: array[0, ...] for name, array in of.items()} for of in (plain.given, plain.left)
        )
        about = self._inputs, self._outputs, 1, False
        # Whether its passes read and write there themselves.
        self._in_place = self._child.call("hold", self._number, *about, memory=plain.block, answers=bool)
        plain.close()

    # ------------------------------------------------------------------------------------- opened once more

    def _going_on(self, asked: Callable[[], T]) -> T:
        """What is asked of the child; once more where somebody else has ended it meanwhile. A process that
        has ended while it was stopped was ended by somebody else. Then the session is opened again in another
        process, and goes on; whose turn it was is told (engine.isolated.client)."""
        with self._in_words():
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

    def _opened_again(self) -> None:
        """In another child, which is there: open the session as it was."""
        bound = self._trains.bound
        self._open()
        if bound:
            self.bind(bound)
        if self._ran:  # its answer may be what is asked for
            self._child.call("run", self._number)

    # ----------------------------------------------------------------------------------------------- passes

    @property
    def facts(self) -> Mapping[str, str]:
        return {**self._facts, **self._trains.facts}

    @facts.setter
    def facts(self, facts: Mapping[str, str]) -> None:
        self._facts = dict(facts)

    def bind(self, inputs: Mapping[str, Given]) -> None:
        check_inputs(inputs, {name: (it.shape, np.dtype(it.dtype)) for name, it in self._inputs.items()})
        self._trains.bind(inputs)
        self._write(inputs)

    def _write(self, inputs: Mapping[str, Given]) -> None:
        """Have a pass read these, which are bound."""
        for name, array in inputs.items():
            np.copyto(self._given[name], np.asarray(array), casting="same_kind")
        if not self._in_place:
            self._asked("bind")
        self._stirred = False

    def _settle(self) -> None:
        """After passes over other inputs: have a pass read what is bound again."""
        if self._stirred:
            self._write(self._trains.bound)

    def run(self) -> None:
        self._settle()
        self._asked("run")
        self._ran = True

    def synchronize(self) -> None:
        """Nothing to wait for: `run` returns when the pass has ended."""

    def fetch(self) -> dict[str, np.ndarray]:
        if self._in_place:
            return {name: np.array(array, np.float32) for name, array in self._left.items()}
        found = {}
        for answer in self._asked("fetch", answers=tuple[OutputReply, ...]):
            if answer.data:
                try:
                    array = np.frombuffer(answer.data, answer.dtype).reshape(answer.shape)
                except (ValueError, TypeError) as error:
                    raise KernelError(f"{self._what}: its answer {answer.name} is no array") from error
            elif answer.name in self._outputs:
                array = self._left[answer.name]
            else:
                array = np.zeros(answer.shape, answer.dtype)  # of nothing
            found[answer.name] = np.array(array, np.float32)
        return found

    def time_runs(self, count: int, cold: bool = False) -> int:
        return self._timed(lambda: self._trains.time(count, cold))

    @property
    def parts_ns(self) -> Sequence[float]:
        """See engine.backend.parts_ns."""
        return self._trains.parts_ns

    def warm_runs(self, count: int) -> int:
        return self._timed(lambda: self._trains.time(count, rough=True))

    def renew(self, count: int, alike: int) -> None:
        """See engine.stirring.Renewable."""
        self._trains.renew(count, alike)

    def time_renewed(self, count: int, cold: bool = False) -> float:
        """See engine.stirring.Renewable."""

        def timed() -> float:
            taken = self._trains.time_renewed(count, cold)
            self._stirred |= taken > 0
            return taken

        return self._going_on(timed)

    def _timed(self, passes: Callable[[], T]) -> T:
        def timed() -> T:
            self._stirred = True
            return passes()

        return self._going_on(timed)

    def renewed(self) -> Sequence[tuple[Mapping[str, np.ndarray], Mapping[str, np.ndarray]]]:
        return self._trains.renewed()

    @property
    def stirring(self) -> Stirring | None:
        return self._trains.stirring

    @property
    def stirring_ns(self) -> float:
        return self._trains.trigger_ns

    def witnesses(self) -> tuple[Witness, ...]:
        self._child.look()
        return self._trains.witnesses()

    @property
    def users(self) -> bool:
        """Whether it runs what a user wrote."""
        return self._child.users

    def op_times(self, seconds: float) -> tuple[OpTime, ...]:
        """(): what cannot be looked into; bench.measure.answers.layers times each group on its own."""
        return ()

    def _asked(self, do: str, *arguments: Any, memory: Any = None, answers: Any = None) -> Any:
        return self._going_on(
            lambda: self._child.call(do, self._number, *arguments, memory=memory, answers=answers)
        )

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

    def _in_words(self) -> _InWords:
        if self._closed:
            raise KernelError(f"the session of {self._what} is closed: prepare another")
        return _InWords(self._what)


class _InWords:
    """What was being done, where the process is lost."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, CrashedError) and not str(error).startswith(self._what):
            raise CrashedError(f"{self._what}: {error}") from error


def _specs(shapes: Shapes) -> dict[str, Spec]:
    return {name: Spec(tuple(shape), np.dtype(dtype).name) for name, (shape, dtype) in shapes.items()}
