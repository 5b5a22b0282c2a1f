"""The changes of engine.stirring on the device: one launch before each timed pass (stirring.cu) changes a few
values of every input, poisons a few of every output, and keeps what the pass before left at the places that
are looked at.

All addresses are fixed, so that CUDA graphs with this launch stay valid when other inputs are bound. The time
of the launch is not part of a pass: `CudaStirring.own_ns` subtracts it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from engine.cuda.runtime import Staging, capability_of, load_module
from engine.rung_rows import Given
from engine.stirring import LEAST, LOOKED_AT, POISONED, VALUES, Stirring, Witness, hashed, places_of
from kernels import nvrtc, registry

RING = 64  # passes whose answers are kept where they are looked at, drawn alike among all that were timed
KEEPING = 1 << 32  # in the place of a tensor's number: which passes are kept
TRAIN = 64  # stirrings that their cost is measured on
ROUNDS = 5
BLOCK = 256
WORDS, SINCE = 8, 4  # u64 of stirring.cu's State, and which of them is `since`
ALIGNMENT = 256


class CudaTensor(NamedTuple):
    """A tensor on the device."""

    pointer: int
    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


def refusal(tensors: Mapping[str, CudaTensor]) -> str | None:
    """Why these tensors cannot be changed on the device, or None."""
    for name, tensor in tensors.items():
        if tensor.dtype.kind not in "fiub" or tensor.dtype.itemsize > 8:
            return f"{name} is {tensor.dtype}, of which no values can be changed"
    return None


class CudaStirring:
    """The changes of a session's inputs and outputs. stirring: those of the bound inputs; None before `begin`
    and after `forget`."""

    def __init__(
        self, cupy: Any, pool: Any, inputs: Mapping[str, CudaTensor], outputs: Mapping[str, CudaTensor]
    ) -> None:
        self.inputs = {name: tensor for name, tensor in inputs.items() if tensor.size}
        self._outputs = {name: tensor for name, tensor in outputs.items() if tensor.size}
        self._mask = secrets.randbits(64)
        self._lay_out(pool)
        digits = "".join(map(str, capability_of(cupy)))
        module = load_module(cupy, nvrtc.compile_rung(source(), f"sm_{digits}"))
        self._kernel = module.get_function("stir")
        self.tensors = (*self.inputs.values(), *self._outputs.values())
        counts = [places_of(tensor.shape) for tensor in self.tensors]
        self._grid = (max(1, -(-max(counts, default=1) // BLOCK)), max(1, len(self.tensors)))
        # Made once: a launch is part of a train that the host may be what bounds.
        pointers = (np.uint64(self._at("state")), np.uint64(self._at("table")), np.uint64(self._mask))
        self._arguments = tuple((*pointers, np.int32(going_on)) for going_on in (0, 1))
        self.stirring: Stirring | None = None
        self.cost_ns: float | None = None  # of a stirring on the device, once it was measured
        self._timed, self._first = range(0), False  # passes since they were looked at; whether pass 0 was run

    def _lay_out(self, pool: Any) -> None:
        """One allocation for the state, the table of tensors, the values and what is kept."""
        sizes = {"state": 8 * WORDS, "table": 64 * max(1, len(self.inputs) + len(self._outputs))}
        for name, tensor in self.inputs.items():
            sizes[f"values of {name}"] = VALUES * tensor.dtype.itemsize
            sizes[f"held of {name}"] = places_of(tensor.shape) * tensor.dtype.itemsize
        for name, tensor in self._outputs.items():
            sizes[f"kept of {name}"] = (RING + 1) * 2 * places_of(tensor.shape) * tensor.dtype.itemsize
        self._offsets, end = {}, 0
        for name, size in sizes.items():
            self._offsets[name] = end
            end += -(-size // ALIGNMENT) * ALIGNMENT
        self.nbytes = end
        self._memory = pool.malloc(end)

    def _at(self, name: str) -> int:
        return int(self._memory.ptr) + self._offsets[name]

    # ------------------------------------------------------------------------------------ what is bound

    def begin(self, bound: Mapping[str, Given], staging: Staging) -> None:
        """Begin again over these inputs, which are on the device. The stream must be waited for before a
        pass."""
        stirring = Stirring(
            {name: bound[name] for name in self.inputs},
            {name: (tensor.shape, tensor.dtype) for name, tensor in self._outputs.items()},
        )
        rows = []
        for name, tensor in self.inputs.items():
            stirred = stirring.inputs[name]
            staging.upload(np.ascontiguousarray(stirred.values), self._at(f"values of {name}"))
            values = (self._at(f"values of {name}"), len(stirred.values), self._at(f"held of {name}"))
            rows.append((tensor.pointer, tensor.dtype.itemsize, *_places(stirred), *values))
        for name, tensor in self._outputs.items():
            stirred = stirring.outputs[name]
            kept_at = (0, 0, self._at(f"kept of {name}"))
            rows.append((tensor.pointer, tensor.dtype.itemsize, *_places(stirred), *kept_at))
        if rows:
            staging.upload(np.array(rows, np.uint64), self._at("table"))
        else:
            staging.upload(np.zeros(8, np.uint64), self._at("table"))
        state = np.array([stirring.seed ^ self._mask, *[0] * (WORDS - 1)], np.uint64)
        staging.upload(state, self._at("state"))
        self.stirring, self._timed, self._first = stirring, range(0), False

    def forget(self) -> None:
        """Other inputs are bound."""
        self.stirring, self._timed = None, range(0)

    # ---------------------------------------------------------------------------------------- launching

    def stir(self) -> None:
        """Put the launch on the current stream; a pass follows."""
        self._launch(1)

    def settle(self) -> None:
        """Put on the current stream: keep what the last pass left, and restore the bound inputs."""
        self._launch(0)

    def _launch(self, going_on: int) -> None:
        self._kernel(self._grid, (BLOCK,), self._arguments[going_on])

    def took(self, count: int) -> None:
        """Record that `count` of these launches were put on the stream, each before a timed pass of one
        train."""
        self._timed = range(self._timed.start, self._timed.stop + count)
        self._first |= count > 0

    def lose(self) -> None:
        """Other passes follow: what the timed ones left is not kept any longer."""
        self._timed, self._first = range(0), False

    # ------------------------------------------------------------------------------------ their own cost

    def measure(self, train: Callable[[], float]) -> None:
        """Measure the time of the launch alone. train: puts TRAIN launches on the device, in the same form as
        in a train of passes, and returns their nanoseconds. Afterwards `settle` and `begin` are needed before
        passes."""
        self.cost_ns = min(train() / TRAIN for _ in range(ROUNDS))

    def own_ns(self, measured_ns: float, count: int, each_ns: float | None = None) -> int:
        """The time of the passes alone, at least 1. each_ns: nanoseconds that are subtracted for each pass
        (None: the measured time of the launch)."""
        each_ns = (self.cost_ns or 0.0) if each_ns is None else each_ns
        return max(1, round(max(measured_ns - count * each_ns, LEAST * measured_ns)))

    # ---------------------------------------------------------------------------------------- witnesses

    def witnesses(self, staging: Staging) -> tuple[Witness, ...]:
        """RING of the timed passes since the last call, drawn alike, in their order (all, where there were no
        more); in front of them the first pass over the bound inputs, whose whole answer was new. Call it
        after waiting for the stream."""
        if self.stirring is None or not self._timed:
            return ()
        rings, places = {}, self._kept()
        for name, tensor in self.stirring.outputs.items():
            rings[name] = np.empty((RING + 1, 2 * tensor.count), tensor.dtype)
            staging.download(self._at(f"kept of {name}"), rings[name])
        self._timed = range(self._timed.stop, self._timed.stop)
        staging.upload(np.array([self._timed.start], np.uint64), self._at("state") + 8 * SINCE)
        return tuple(
            Witness(number, {name: self._seen(name, number, ring[place]) for name, ring in rings.items()})
            for number, place in ([(0, RING)] if self._first else []) + places
        )

    def _kept(self) -> list[tuple[int, int]]:
        """The passes in the ring, by number, with their places in it: as stirring.cu's `kept_at` has it. A
        later pass takes the place of an earlier one."""
        assert self.stirring is not None
        numbers = np.arange(self._timed.start, self._timed.stop, dtype=np.uint64)
        before = np.arange(len(numbers), dtype=np.uint64)
        drawn = hashed(self.stirring.seed, numbers, KEEPING, LOOKED_AT, 1)[:, 0] % (before + np.uint64(1))
        places = np.where(before < RING, before, drawn).astype(np.int64)
        held = places < RING
        last = dict(zip(places[held].tolist(), numbers[held].tolist(), strict=True))
        return sorted((number, place) for place, number in last.items() if number)

    def _seen(self, name: str, number: int, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Places and values of one output of a recorded pass, in ascending order of places."""
        assert self.stirring is not None
        tensor = self.stirring.outputs[name]
        both = [self.stirring.places(tensor, number, purpose) for purpose in (LOOKED_AT, POISONED)]
        places, first = np.unique(np.concatenate(both), return_index=True)
        return places, kept[first]


class Stirs:
    """A session that changes its inputs from the first timed pass on, and records passes."""

    _stirring: CudaStirring | None
    _staging: Staging

    def forget(self) -> None:
        """Other inputs are bound."""
        if self._stirring is not None:
            self._stirring.forget()

    @property
    def stirring(self) -> Stirring | None:
        return self._stirring.stirring if self._stirring is not None else None

    @property
    def stirring_ns(self) -> float:
        """Nanoseconds that the device takes to change the inputs of one pass; they are subtracted. 0 before
        the first timed pass."""
        return (self._stirring.cost_ns or 0.0) if self._stirring is not None else 0.0

    def witnesses(self) -> tuple[Witness, ...]:
        return self._stirring.witnesses(self._staging) if self._stirring is not None else ()


@lru_cache(maxsize=1)
def source() -> registry.Rung:
    """The kernel as the compiler takes it."""
    return registry.code(Path(__file__).parent / "stirring.cu", "stirring", RING=RING)


def _places(stirred: Any) -> tuple[int, int, int]:
    return stirred.size, stirred.count, stirred.index
