"""No two timed passes on the device get the same inputs: the changes of engine.stirring, made by one launch
before each pass (stirring.cu), and the outputs of the last passes where they are looked at.

Everything has fixed addresses, so that CUDA graphs with this launch stay valid when other inputs are bound.
The time of the launch is not part of a pass: `CudaStirring.own_ns` is subtracted.
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
from engine.stirring import LEAST, LOOKED_AT, POISONED, VALUES, Stirring, Witness, places_of
from kernels import nvrtc, registry

RING = 64  # passes whose answers are kept where they are looked at
TRAIN = 64  # stirrings that their cost is measured on
ROUNDS = 5
BLOCK = 256
WORDS = 4  # u64 of stirring.cu's State
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
    """Why these cannot be stirred, or None."""
    for name, tensor in tensors.items():
        if tensor.dtype.kind not in "fiub" or tensor.dtype.itemsize > 8:
            return f"{name} is {tensor.dtype}, of which no values can be changed"
    return None


class CudaStirring:
    """Of a session's inputs and outputs. `stirring`: of what is bound (None before `begin`, and after
    `forget`)."""

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
        self._number, self._train, self._first = 0, range(0), False

    def _lay_out(self, pool: Any) -> None:
        """Room for state, table, values and what is kept, in one allocation."""
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
        """Anew, over these inputs, which lie on the device; the stream has what was put there once it is
        waited for."""
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
        staging.upload(np.array([stirring.seed ^ self._mask, 0, 0, 0], np.uint64), self._at("state"))
        self.stirring, self._number, self._train, self._first = stirring, 0, range(0), False

    def forget(self) -> None:
        """Something else is bound."""
        self.stirring, self._train = None, range(0)

    # ---------------------------------------------------------------------------------------- launching

    def stir(self) -> None:
        """Put on the current stream: a pass follows."""
        self._launch(1)

    def settle(self) -> None:
        """Put on the current stream: keep what the last pass left; the inputs are as they were bound."""
        self._launch(0)

    def _launch(self, going_on: int) -> None:
        self._kernel(self._grid, (BLOCK,), self._arguments[going_on])

    def took(self, count: int) -> None:
        """So many stirrings are put on the stream, each before a timed pass of one train."""
        self._train = range(self._number, self._number + count)
        self._first |= 0 in self._train
        self._number += count

    # ------------------------------------------------------------------------------------ their own cost

    def measure(self, train: Callable[[], float]) -> None:
        """`train` puts TRAIN stirrings on the device, as a train of passes has them, and says how many
        nanoseconds they took there. What was begun has to be settled, and begun again, before passes."""
        self.cost_ns = min(train() / TRAIN for _ in range(ROUNDS))

    def own_ns(self, measured_ns: float, count: int, each_ns: float | None = None) -> int:
        """What passes took of themselves; never nothing. each_ns: what is taken off for each (None: what
        stirring takes the device)."""
        each_ns = (self.cost_ns or 0.0) if each_ns is None else each_ns
        return max(1, round(max(measured_ns - count * each_ns, LEAST * measured_ns)))

    # ---------------------------------------------------------------------------------------- witnesses

    def witnesses(self, staging: Staging) -> tuple[Witness, ...]:
        """Of the last timed train, every pass that is still kept; in front of them the first since inputs
        were bound, whose whole answer was not there before. Call when the stream was waited for."""
        if self.stirring is None or not self._train:
            return ()
        rings = {}
        for name, tensor in self.stirring.outputs.items():
            rings[name] = np.empty((RING + 1, 2 * tensor.count), tensor.dtype)
            staging.download(self._at(f"kept of {name}"), rings[name])
        return tuple(
            Witness(number, {name: self._seen(name, number, ring) for name, ring in rings.items()})
            for number in (*([0] if self._first else []), *(n for n in self._train[-RING:] if n))
        )

    def _seen(self, name: str, number: int, ring: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Places and values of one output of a pass, in the places' order."""
        assert self.stirring is not None
        tensor = self.stirring.outputs[name]
        both = [self.stirring.places(tensor, number, purpose) for purpose in (LOOKED_AT, POISONED)]
        places, first = np.unique(np.concatenate(both), return_index=True)
        return places, ring[number % RING if number else RING][first]


class Stirs:
    """Whatever has passes stirred, from the first timed one on, and kept to be looked at."""

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
        """What the device takes for stirring one pass, which is taken off; 0 before the first was timed."""
        return (self._stirring.cost_ns or 0.0) if self._stirring is not None else 0.0

    def witnesses(self) -> tuple[Witness, ...]:
        return self._stirring.witnesses(self._staging) if self._stirring is not None else ()


@lru_cache(maxsize=1)
def source() -> registry.Rung:
    """The kernel, for the compiler."""
    return registry.code(Path(__file__).parent / "stirring.cu", "stirring", RING=RING)


def _places(stirred: Any) -> tuple[int, int, int]:
    return stirred.size, stirred.count, stirred.index
