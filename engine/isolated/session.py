"""A model's session in an isolated process, as engine.backend.Session has it on this side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from engine.backend import OpTime, check_inputs
from engine.isolated import pool
from engine.isolated.memory import Spec
from engine.isolated.messages import Opened, OutputReply, Shapes
from engine.isolated.reopenable import Reopenable
from engine.isolated.slots import Slots
from engine.isolated.timed import Arena
from engine.isolated.trains import IsolatedTrains
from kernels.errors import CrashedError, KernelError
from kernels.precision import FP32


class IsolatedSession(Reopenable):
    """Session of a kind (engine.isolated.pool.KINDS), opened with these arguments. what: model, backend and
    batch, for errors; own: see pool.child; outputs: shapes that are known here, where they are; threads: how
    many it was told to take (0: not known)."""

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
    ) -> None:
        self.batch = batch
        self._what = what
        super().__init__(partial(pool.child, kind, what, own))
        self._ran = False
        self._open = partial(self._opened, kind, arguments, outputs, threads)
        try:
            opened = self._open()
        except BaseException:
            self.close()
            raise
        self.phases: Mapping[str, int] = opened.phases
        self.memory: Mapping[str, int] = opened.memory
        self._facts = opened.facts

    def _opened(
        self, kind: str, arguments: tuple[Any, ...], outputs: Mapping[str, Spec] | None, threads: int
    ) -> Opened:
        with self._in_words():
            self._number = self._child.number()
            opens = pool.KINDS[kind].opens
            opened: Opened = self._child.call("open", self._number, opens, *arguments, answers=Opened)
            self._inputs = _specs(opened.inputs)
            self._outputs = dict(outputs) if outputs is not None else _specs(opened.outputs)
            if outputs is not None and _specs(opened.outputs) != self._outputs:
                raise KernelError(f"{self._what}: its outputs are not those of the model")
            self._plain = Slots(self._inputs, self._outputs, 1)
            about = self._inputs, self._outputs, 1, False
            self._child.call("hold", self._number, *about, memory=self._plain.block)
            self._plain.close()
        self.one_thread = threads == 1
        arena = None
        if not self._child.stays:
            given, left = (
                {name: array[0, ...] for name, array in of.items()}
                for of in (self._plain.given, self._plain.left)
            )
            arena = Arena(given, left, threads or 1, threads or 1)
        self._trains = IsolatedTrains(self._child, self._number, self._inputs, self._outputs, arena, threads)
        self._stirred = False  # the session's inputs are those of a timed pass
        return opened

    def _opened_again(self) -> None:
        bound = self._lying()
        self._open()
        if bound:
            self.bind(bound)
        if self._ran:  # its answer may be what is asked for
            self._child.call("run", self._number)

    def _lying(self) -> Mapping[str, np.ndarray]:
        """What was bound; {} where nothing was."""
        return self._trains.bound

    @property
    def facts(self) -> Mapping[str, str]:
        return {**self._facts, **self._trains.facts}

    @facts.setter
    def facts(self, facts: Mapping[str, str]) -> None:
        self._facts = dict(facts)

    def bind(self, inputs: Mapping[str, np.ndarray]) -> None:
        check_inputs(inputs, {name: (it.shape, np.dtype(it.dtype)) for name, it in self._inputs.items()})
        for name, array in inputs.items():
            np.copyto(self._plain.given[name][0, ...], array, casting="same_kind")
        self._trains.bind(inputs)
        self._asked("bind")
        self._stirred = False

    def run(self) -> None:
        if self._stirred:
            for name, array in self._trains.bound.items():
                np.copyto(self._plain.given[name][0, ...], array)
            self._asked("bind")
            self._stirred = False
        self._asked("run")
        self._ran = True

    def synchronize(self) -> None:
        """Nothing to wait for: `run` returns when the pass has ended."""

    def fetch(self) -> dict[str, np.ndarray]:
        found = {}
        for answer in self._asked("fetch", answers=tuple[OutputReply, ...]):
            if answer.data:
                try:
                    array = np.frombuffer(answer.data, answer.dtype).reshape(answer.shape)
                except (ValueError, TypeError) as error:
                    raise KernelError(f"{self._what}: its answer {answer.name} is no array") from error
            elif answer.name in self._outputs:
                array = self._plain.left[answer.name][0, ...]
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

    def _timed(self, passes: Callable[[], int]) -> int:
        def timed() -> int:
            self._stirred = True
            return passes()

        with self._in_words():
            return self._going_on(timed)

    def renew(self, count: int, alike: int) -> None:
        """See engine.stirring.Renewable."""
        self._trains.renew(count, alike)

    def time_renewed(self, count: int, cold: bool = False) -> float:
        """See engine.stirring.Renewable."""

        def timed() -> float:
            self._stirred = True
            return self._trains.time_renewed(count, cold)

        with self._in_words():
            return self._going_on(timed)

    def renewed(self) -> Sequence[tuple[Mapping[str, np.ndarray], Mapping[str, np.ndarray]]]:
        return self._trains.renewed()

    @property
    def users(self) -> bool:
        """Whether it runs what a user wrote."""
        return self._child.users

    def op_times(self, seconds: float) -> tuple[OpTime, ...]:
        """(): what cannot be looked into; bench.measure.answers.layers times each group on its own."""
        return ()

    def _asked(self, do: str, *arguments: Any, memory: Any = None, answers: Any = None) -> Any:
        def call() -> Any:
            return self._child.call(do, self._number, *arguments, memory=memory, answers=answers)

        with self._in_words():
            return self._going_on(call)

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
