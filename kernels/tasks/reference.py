"""What is right: the function of a task's `reference.py`, asked for answers.

    def reference(a, b, n):
        return a + b

Its parameters are inputs and sizes by their names, as many as it wants; inputs come as NumPy arrays, numbers
with a point as float64. `reference = "net.py:Name"` names a `torch.nn.Module` instead: it is made with the
sizes that it wants, in float64, its parameters are the inputs that are called as they are (`_` for `.`), and
it is called with the other inputs in their order.

Of a task of ours the function is called. One of a user's runs in a process of its own (`child`): it may read
what Python needs, write nothing, has no network and so much memory, and an answer may take so long. What it
answers is read as numbers of the shape that the task says, and as nothing else.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import math
import os
import re
import select
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from kernels.environment import NEEDED, Environment, for_children, how_to_install
from kernels.errors import KernelscopeError, UnavailableError
from kernels.tasks import child
from kernels.tasks.record import TaskParams
from kernels.tasks.spec import ROOT, Task

SECONDS_VARIABLE = "KERNELSCOPE_REFERENCE_SECONDS"
START_S, ANSWER_S = 60.0, 60.0  # that a reference may take: to be loaded (torch is large), and for an answer
MOST_KEPT = 4  # processes
HEADER_NBYTES = 1 << 16
TORCH = Environment("torch", "PyTorch", "torch", how_to_install("torch"), needs=NEEDED)
_WANTS_TORCH = re.compile(r"^[ \t]*(?:import|from)[ \t]+torch\b", re.MULTILINE)


Outputs = tuple[tuple[tuple[int, ...], bool], ...]  # of each its shape, and whether it is whole numbers
Timed = tuple[()] | tuple[int, int]  # how many answers are timed, by how many threads; (): one is asked for


AGAIN_AT_MOST = 1 << 16  # elements of an answer that is asked for twice, once of each reference
ORDER = 1e-9  # of the largest value: what sums in another order may differ by, as libraries with threads give
_the_same: set[tuple[str, str]] = set()


class NoAnswerError(KernelscopeError):
    """The reference of a task has no answer: what it raised, or why it was given up."""


def answer(p: TaskParams, inputs: Sequence[np.ndarray]) -> np.ndarray:
    """What is right for these inputs, of the output's shape: float64, or int64 where the task's output is
    whole numbers; of several types all elements of one output behind those of the other. Raises
    NoAnswerError."""
    found = _fitting(p, _found(p, given(p, inputs)))
    told = (str(p.task.file), p.task.answers)
    if told not in _the_same and found.size <= AGAIN_AT_MOST:
        again = _fitting(p, _found(p, given(p, inputs)))
        if not _alike(p, found, again):
            raise NoAnswerError(
                f"{p.task.file} gives the same inputs another answer each time ({p.words}); "
                "it has to compute from its inputs alone, without random numbers"
            )
        _the_same.add(told)
    return found


def _alike(p: TaskParams, one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two answers are of the same inputs: numbers with a point may differ by what rounds a sum."""
    if p.exact:
        return np.array_equal(one, other)
    largest = float(np.abs(one[np.isfinite(one)]).max(initial=0.0))
    return np.allclose(one, other, rtol=0.0, atol=ORDER * largest, equal_nan=True)


def time_ns(p: TaskParams, arrays: Mapping[str, np.ndarray], passes: int, threads: int = 0) -> int:
    """Nanoseconds of so many answers one after the other, where the reference is a function. arrays: see
    `given`; threads: that its library may use (0: as many as it wants). Raises NoAnswerError."""
    return int(_found(p, arrays, (passes, threads))[0])


def given(p: TaskParams, inputs: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Inputs by name as a reference gets them, numbers with a point as float64."""
    names = [tensor.name for tensor in p.task.spec.input]
    return {
        name: np.ascontiguousarray(array.astype(np.float64) if array.dtype.kind == "f" else array)
        for name, array in zip(names, inputs, strict=True)
    }


def _found(p: TaskParams, arrays: Mapping[str, np.ndarray], timed: Timed = ()) -> np.ndarray:
    task = p.task
    outputs = tuple((shape, of.exact) for shape, of in zip(p.output_shapes, task.spec.output, strict=True))
    return (_ours if _trusted(task) else _asked)(task, arrays, p.sizes, outputs, timed)


def _fitting(p: TaskParams, found: np.ndarray) -> np.ndarray:
    where = str(p.task.file)
    wanted = (sum(map(math.prod, p.output_shapes)),) if p.mixed else p.output_shape
    if found.shape != wanted and found.size == math.prod(wanted) and found.ndim < 2:
        found = found.reshape(wanted)
    if found.shape != wanted:
        raise NoAnswerError(
            f"{where} answers the shape {found.shape}, and the task says {wanted} ({p.words})"
        )
    kinds = "iub" if p.exact else "fiub"
    if found.dtype.kind not in kinds:
        raise NoAnswerError(f"{where} answers {found.dtype}, and the task says {p.task.spec.output[0].type}")
    return found.astype(np.int64 if p.exact else np.float64, copy=False)


def held(p: TaskParams, answer: np.ndarray) -> np.ndarray:
    """An answer that a kernel can be held against. Raises NoAnswerError for one that is no number somewhere,
    or that the output's type does not hold: every kernel would be wrong there, or none."""
    at, flat = 0, answer.reshape(-1)
    for output, shape in zip(p.task.spec.output, p.output_shapes, strict=True):
        own = flat[at : at + math.prod(shape)]
        where = f"{p.task.file} answers {{}} for an element of {output.name} ({p.words})"
        at += own.size
        if not np.isfinite(own).all():
            first = own[~np.isfinite(own)][0]
            raise NoAnswerError(f"{where.format(first)}; draw inputs for which it has a number")
        for value in (own.min(), own.max()) if own.size else ():
            if output.exact:
                fits = np.iinfo(output.type).min <= value <= np.iinfo(output.type).max
            else:
                with np.errstate(over="ignore"):
                    fits = bool(np.isfinite(np.asarray(value).astype(output.type)))
            if not fits:
                told = int(value) if output.exact else f"{value:.6g}"
                raise NoAnswerError(
                    f"{where.format(told)}, which {output.type} does not hold; "
                    "draw smaller inputs, or give the output a wider type"
                )
    return answer


def is_model(task: Task) -> bool:
    """Whether the reference is an ONNX file, which runs like any model."""
    return task.spec.reference.endswith(".onnx")


def library(task: Task) -> str:
    """What a reference that is no model computes with: NumPy or PyTorch."""
    return TORCH.title if _WANTS_TORCH.search(task.answers) else "NumPy"


def _trusted(task: Task) -> bool:
    return task.folder.parent == ROOT


def called(task: Task) -> str:
    """What the reference is called in its file."""
    return task.spec.reference.partition(":")[2] or child.FUNCTION


# ------------------------------------------------------------------------------------------------------ ours

_loaded: dict[Path, Callable[..., Any]] = {}


def _ours(
    task: Task, arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int], outputs: Outputs, timed: Timed
) -> np.ndarray:
    if task.file not in _loaded:
        _loaded[task.file] = child.loaded(task.file, task.answers, called(task))
    with np.errstate(all="ignore"):
        if timed:
            return child.timed(_loaded[task.file], arrays, sizes, outputs, *timed)
        return np.asarray(child.called(_loaded[task.file], arrays, sizes, outputs))


# ------------------------------------------------------------------------------------------------- a process


class _Process:
    """A reference in a process of its own."""

    def __init__(self, task: Task) -> None:
        self._file, self.text = task.file, task.answers
        python = TORCH.interpreter() if _WANTS_TORCH.search(self.text) else sys.executable
        self._process = subprocess.Popen(
            [
                python,
                "-P",
                "-m",
                "kernels.tasks.child",
                str(os.getpid()),
                str(task.file),
                called(task),
            ],
            cwd=str(ROOT.parents[1]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=for_children(),
            start_new_session=True,
        )
        self.ask({}, {}, START_S, (), self.text.encode())

    def ask(
        self,
        arrays: Mapping[str, np.ndarray],
        sizes: Mapping[str, int],
        limit_s: float,
        outputs: Outputs = (),
        text: bytes = b"",
        timed: Timed = (),
    ) -> np.ndarray:
        """Raises NoAnswerError."""
        told = {name: [array.dtype.name, list(array.shape)] for name, array in arrays.items()}
        head = json.dumps(
            {"arrays": told, "sizes": dict(sizes), "outputs": outputs, "text": len(text), "timed": timed}
        ).encode()
        until = time.monotonic() + _limit(limit_s)
        pieces = [
            len(head).to_bytes(4, "little"),
            head,
            text,
            *(array.data.cast("B") for array in arrays.values()),
        ]
        writer = threading.Thread(target=_written, args=(self._process.stdin, pieces), daemon=True)
        writer.start()
        try:
            size = int.from_bytes(self._read(4, until), "little")
            if size > HEADER_NBYTES:
                raise NoAnswerError(f"{self._file} answered what is no answer")
            try:
                told = json.loads(self._read(size, until))
                error, kind, shape = (
                    str(told["error"]),
                    str(told["dtype"]),
                    [int(side) for side in told["shape"]],
                )
            except (ValueError, KeyError, TypeError) as problem:
                raise NoAnswerError(f"{self._file} answered what is no answer") from problem
            if error:
                raise NoAnswerError(f"{self._file}: {error[:400]}")
            if kind not in child.ANSWERS or len(shape) > 8 or min(shape, default=0) < 0:
                raise NoAnswerError(f"{self._file} answers {kind} of the shape {shape}")
            nbytes = math.prod(shape) * np.dtype(kind).itemsize
            if nbytes > child.MOST_NBYTES:
                raise NoAnswerError(f"{self._file} answers {nbytes:,} bytes, too many")
            data = self._read(nbytes, until)
        except BaseException:
            self.end()
            raise
        writer.join(1.0)
        return np.frombuffer(data, kind).reshape(shape)

    def _read(self, count: int, until: float) -> bytes:
        pipe = self._process.stdout
        assert pipe is not None
        parts = bytearray()
        while len(parts) < count:
            left_s = until - time.monotonic()
            if left_s <= 0 or not select.select([pipe], [], [], left_s)[0]:
                raise NoAnswerError(
                    f"{self._file} took more than {_limit(ANSWER_S):g} s for an answer and was given up; "
                    f"{SECONDS_VARIABLE}={4 * _limit(ANSWER_S):.0f} gives it longer"
                )
            if not (some := os.read(pipe.fileno(), min(1 << 20, count - len(parts)))):
                raise NoAnswerError(f"the process of {self._file} ended without an answer")
            parts += some
        return bytes(parts)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def _written(pipe: IO[bytes], pieces: Sequence[bytes | memoryview]) -> None:
    with contextlib.suppress(OSError, ValueError):  # it has ended, which is told where its answer is read
        for piece in pieces:
            pipe.write(piece)
        pipe.flush()


def _limit(usual: float) -> float:
    with contextlib.suppress(ValueError):
        if (told := float(os.environ.get(SECONDS_VARIABLE, ""))) > 0:
            return told
    return usual


_processes: OrderedDict[tuple[str, str], _Process] = OrderedDict()
_lock = threading.Lock()


def _asked(
    task: Task, arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int], outputs: Outputs, timed: Timed
) -> np.ndarray:
    if sys.platform == "win32":  # where a process cannot be kept from files and the network
        raise UnavailableError(
            "the references of tasks of your own do not run on Windows; take Linux or macOS"
        )
    key = (str(task.file), called(task))
    with _lock:
        running = _processes.pop(key, None)
        if running is not None and (not running.alive or running.text != task.answers):
            running.end()
            running = None
        running = running or _Process(task)
        found = running.ask(arrays, sizes, ANSWER_S, outputs, timed=timed)
        _processes[key] = running
        while len(_processes) > MOST_KEPT:
            _processes.popitem(last=False)[1].end()
    return found


@atexit.register
def close_all() -> None:
    """End the processes of all references."""
    while _processes:
        _processes.popitem()[1].end()
