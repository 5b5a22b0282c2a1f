"""The rate from images in host memory to answers in host memory, with several batches in flight.

It is measured beside the forward pass alone, with a clock of its own. Each batch in flight has a slot, which
copies the batch to the device, runs it and copies the answers back; while one slot computes, another copies.
A batch is a window into a pool of images, at a random offset. No two batches in flight have the same offset:
so answers that belong to another batch are found."""

from __future__ import annotations

import contextlib
import itertools
import math
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np

from engine.machine import host

# One batch is copied to the device, one is computed, one is copied back, and the host reads the answers of
# one while it sends the next. With three, a small batch waits for the host: on an H100, 100 images of LeNet-5
# took 13.7 µs with three, 10.6 µs with four, and no less with more.
MOST_IN_FLIGHT = 4
SPARE = 32  # images that a pool has more than a batch: a batch begins at any of them
CHANGED = 4  # values of an image that change from one sample to the next
FILLS = 4  # a sample has at least so many batches for each slot
EACH_NBYTES = 1 << 18  # bytes of pixels for which one more thread is worth it
KEPT = 2  # samples whose answers are kept to be checked
VALUES, PLACES = "top values", "top classes"  # the answers where only the best classes are wanted

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Affine:
    """input = factor · pixel + offset, with a factor and an offset for each channel. inner: how many values
    of one channel follow each other."""

    factors: tuple[float, ...]
    offsets: tuple[float, ...]
    inner: int

    @property
    def uniform(self) -> bool:
        return len(set(self.factors)) == len(set(self.offsets)) == 1

    @property
    def shifts(self) -> bool:
        return any(self.offsets)

    def per_channel(self, values: Sequence[float], shape: Sequence[int]) -> np.ndarray:
        """`values`, one for each channel, as float32 in a shape that broadcasts over inputs of this shape."""
        one = np.array(values, np.float32)
        if self.uniform:
            return one[0].reshape(())
        return np.tile(one, shape[-1] // len(one)) if self.inner == 1 else one.reshape(-1, 1, 1)

    def apply(self, pixels: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """uint8 pixels → float32, rounded after each of the two operations, as the kernel does."""
        out = np.empty(pixels.shape, np.float32) if out is None else out
        np.multiply(pixels, self.per_channel(self.factors, pixels.shape), out=out)
        if self.shifts:
            out += self.per_channel(self.offsets, pixels.shape)
        return out


@dataclass(frozen=True)
class Request:
    """What is sent and what is wanted back. image: the input that is sent as uint8 if `affine` is not None;
    constants: inputs that are not sent with each batch; top_k: how many of the best classes of the output
    `scores` are wanted (0: all outputs are)."""

    image: str = ""
    affine: Affine | None = None
    constants: Arrays | None = None
    scores: str = ""
    top_k: int = 0


@runtime_checkable
class EndToEndBackend(Protocol):
    """A Backend that can be measured end to end. end_to_end: what converts pixels to numbers: a "kernel" of
    ours in front of the first step, or the rewritten "model"."""

    end_to_end: str


class BatchSlot(Protocol):
    """Place of one batch in flight. answers: those of the batch that was finished last; they are valid until
    the next batch is started."""

    def start(self, offset: int) -> None:
        """Send the batch that begins at `offset` of the pool. May return long before it is computed."""

    def finish(self) -> None:
        """Wait until the answers lie on the host."""

    @property
    def answers(self) -> Arrays: ...

    def close(self) -> None: ...


class Pool:
    """The images that batches are cut out of: for each input an array of batch + SPARE rows. allocate: gives
    host memory of so many bytes (page-locked, for a GPU)."""

    def __init__(
        self, plain: Arrays, batch: int, allocate: Callable[[int], np.ndarray] | None = None
    ) -> None:
        self.batch = batch
        self.plain = {name: np.ascontiguousarray(array) for name, array in plain.items()}
        self.offsets = len(next(iter(self.plain.values()))) - batch + 1
        self.arrays: dict[str, np.ndarray] = {}
        for name, array in self.plain.items():
            if allocate is None:
                self.arrays[name] = array.copy()
            else:
                memory = allocate(max(array.nbytes, 1))[: array.nbytes].view(array.dtype)
                self.arrays[name] = memory.reshape(array.shape)
                self.arrays[name][...] = array
        self._seed = secrets.randbits(62)
        self._number = -1

    @property
    def nbytes(self) -> int:
        """Bytes of one batch."""
        return sum(array[: self.batch].nbytes for array in self.arrays.values())

    def stir(self) -> int:
        """Undo the last change, then change a few values of every image. Returns the number of the change."""
        if self._number >= 0:
            for name, (places, _) in self._changes(self._number).items():
                self.arrays[name].reshape(-1)[places] = self.plain[name].reshape(-1)[places]
        self._number += 1
        for name, (places, values) in self._changes(self._number).items():
            self.arrays[name].reshape(-1)[places] = values
        return self._number

    def changed(self, number: int, offset: int) -> dict[str, np.ndarray]:
        """By input, the batch at `offset` as it was after the change of this number."""
        changes = {}
        for name, (places, values) in self._changes(number).items():
            whole = self.plain[name].copy()
            whole.reshape(-1)[places] = values
            changes[name] = whole[offset : offset + self.batch]
        return changes

    def _changes(self, number: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        changes = {}
        random = np.random.default_rng([self._seed, number])
        for name, array in self.plain.items():
            size = math.prod(array.shape[1:])
            rows = np.arange(len(array))[:, None] * size
            places = (rows + random.integers(0, size, (len(array), min(CHANGED, size)))).reshape(-1)
            places = np.unique(places)
            changes[name] = places, array.reshape(-1)[random.integers(0, array.size, places.size)]
        return changes

    def drawn(self, count: int, apart: int) -> list[int]:
        """The offsets of `count` batches, at random; among each `apart` + 1 in a row all differ, if the pool
        is large enough."""
        apart = min(apart, self.offsets - 1)
        random = np.random.default_rng(secrets.randbits(62))
        offsets: list[int] = []
        for at in random.integers(0, self.offsets, count).tolist():
            before = offsets[-apart:] if apart else []
            while at in before:
                at = (at + 1) % self.offsets
            offsets.append(at)
        return offsets


@dataclass(frozen=True)
class CheckedBatch:
    """A batch of a timed sample that is checked later. number: of the change; offset: where it began;
    answers: what came back."""

    number: int
    offset: int
    answers: Arrays


class Pipeline:
    """The slots of one backend. It is timed as a session is (bench.measure.timing.Timeable): a pass is a
    batch."""

    def __init__(
        self, slots: Sequence[BatchSlot], pool: Pool, guard: Callable[[], Any] = contextlib.nullcontext
    ) -> None:
        """guard: a context manager that turns the errors of a library into ours."""
        self.slots = list(slots)
        self.pool = pool
        self._guard = guard
        self.kept: list[list[CheckedBatch]] = []
        self._samples = 0

    def batches(self, count: int) -> int:
        """How many batches a sample of `count` really has: the same number in each slot, and so many that
        nearly all the time all slots are full."""
        slots = len(self.slots)
        return count if slots == 1 else slots * max(FILLS, -(-count // slots))

    def time_runs(self, count: int, cold: bool = False) -> int:
        """Nanoseconds of `count` batches in a steady flow: from the end of one batch to the end of the batch
        that comes `count` later; meanwhile all slots are full."""
        with self._guard():
            return self._timed(count)

    def _timed(self, count: int) -> int:
        slots, clock = self.slots, time.perf_counter_ns
        number, size = self.pool.stir(), self.batches(count)
        many = len(slots)
        total = size if many == 1 else size + many
        offsets = self.pool.drawn(total, many)
        began = clock()
        for slot, at in zip(slots, offsets, strict=False):
            slot.start(at)
        if many > 1:
            slots[0].finish()
            began = clock()
            slots[0].start(offsets[many])
        for index in range(1 if many > 1 else 0, total - many + 1 if many > 1 else total):
            slot = slots[index % many]
            slot.finish()
            if index + many < total:
                slot.start(offsets[index + many])
        took = clock() - began
        last = range(total - many, total)
        for index in last[1:]:
            slots[index % many].finish()
        self._keep([(number, offsets[index], slots[index % many]) for index in last])
        return max(1, round(took * count / size))

    def _keep(self, last: Sequence[tuple[int, int, BatchSlot]]) -> None:
        """Keep the batches that were in flight when the clock stopped; of all samples a few are kept, drawn
        at random."""
        place = self._samples if self._samples < KEPT else secrets.randbelow(self._samples + 1)
        self._samples += 1
        if place >= KEPT:
            return
        samples = [
            CheckedBatch(number, offset, {name: np.array(array) for name, array in slot.answers.items()})
            for number, offset, slot in last
        ]
        self.kept[place : place + 1] = [samples]

    def keep(self, count: int) -> None:
        """Close all slots but `count`. Nothing may be in flight."""
        surplus, self.slots = self.slots[count:], self.slots[:count]
        with contextlib.ExitStack() as stack:
            for slot in surplus:
                stack.callback(slot.close)

    def close(self) -> None:
        self.keep(0)


class HostSlot:
    """The slot of a session whose inputs and outputs lie in host memory. affine: how pixels become numbers,
    done here by as many threads as there are cores (None: pixels are passed as they are). If the session has
    `given`, inputs are written into it; else they are bound."""

    def __init__(self, session: Any, pool: Pool, asked: Request, affine: Affine | None) -> None:
        self._session, self._pool, self._asked, self._affine = session, pool, asked, affine
        self._constants = dict(asked.constants or {})
        batches = {name: array[: pool.batch] for name, array in pool.arrays.items()}
        types = {asked.image: np.dtype(np.float32)} if affine is not None else {}
        self._lying: Arrays = {
            name: np.zeros(array.shape, types.get(name, array.dtype)) for name, array in batches.items()
        }
        self._here = hasattr(session, "given")
        session.bind({**self._constants, **self._lying})
        if self._here:
            self._lying = {name: session.given[name] for name in self._lying}
        count = max(1, min(host.physical_cores(), pool.nbytes // EACH_NBYTES))
        edges = [pool.batch * part // count for part in range(count + 1)]
        self._parts = [slice(*edge) for edge in itertools.pairwise(edges) if edge[0] < edge[1]]
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="pixels") if count > 1 else None
        self.answers: Arrays = {}

    def start(self, offset: int) -> None:
        if self._threads is None:
            self._put(offset, slice(0, self._pool.batch))
        else:
            list(self._threads.map(partial(self._put, offset), self._parts))
        if not self._here:
            self._session.bind({**self._constants, **self._lying})
        self._session.run()

    def _put(self, offset: int, part: slice) -> None:
        for name, to in self._lying.items():
            source = self._pool.arrays[name][offset + part.start : offset + part.stop]
            if self._affine is not None and name == self._asked.image:
                self._affine.apply(source, to[part])
            else:
                np.copyto(to[part], source, casting="same_kind")

    def finish(self) -> None:
        self._session.synchronize()
        outputs = self._session.fetch()
        request = self._asked
        if request.top_k and VALUES not in outputs:
            outputs = top(outputs[request.scores], request.top_k)
        self.answers = outputs

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown()
        self._session.close()


def top(scores: np.ndarray, count: int) -> dict[str, np.ndarray]:
    """The best classes of each row, the best first, and what they score."""
    rows = scores.reshape(len(scores), -1)
    some = np.argpartition(-rows, count - 1, axis=1)[:, :count]
    values = np.take_along_axis(rows, some, 1)
    order = np.argsort(-values, axis=1, kind="stable")
    places = np.take_along_axis(some, order, 1)
    return {VALUES: np.take_along_axis(rows, places, 1), PLACES: places.astype(np.float32)}
