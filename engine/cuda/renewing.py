"""Passes on the device over inputs that are wholly new, or alike, before each of which every value of every
input is written anew by one launch (renewing.cu): engine.witness.Renewable.

It draws from the values, and by the table, that engine.cuda.stirring has on the device.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from engine.cuda.runtime import Staging, capability_of
from engine.cuda.stirring import BLOCK, WORDS, CudaStirring
from engine.stirring import CHANGED, LOOKED_AT, VALUE, Stirred, Stirring, hashed, places
from engine.witness import SAME
from kernels import nvrtc, registry

BLOCKS = 1056  # a tensor at most: eight a multiprocessor of the largest devices
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)  # the number of the one base that all passes share


@dataclass(frozen=True)
class RebuiltInputs:
    """What passes were given, rebuilt from their numbers."""

    seed: int
    stirring: Stirring

    def inputs_of(self, number: int, alike: int) -> dict[str, np.ndarray]:
        """All inputs of this pass."""
        base = ALL if alike == SAME else number // alike
        return {
            name: self._values(tensor, number, base).reshape(tensor.shape)
            for name, tensor in self.stirring.inputs.items()
        }

    def _values(self, tensor: Stirred, number: int, base: Any) -> np.ndarray:
        def among(of: Any, purpose: int, count: int) -> np.ndarray:
            drawn = hashed(self.seed, of, tensor.index, purpose, count) % np.uint64(len(tensor.values))
            return tensor.values[drawn.astype(np.int64)]

        found = among(base, VALUE, tensor.size)
        found[places(self.seed, tensor, number, CHANGED)] = among(number, LOOKED_AT, tensor.count)
        return found


class CudaRenewing:
    """Of what `stirring` has bound; `begin` anew where that is something else."""

    def __init__(self, cupy: Any, pool: Any, stirring: CudaStirring) -> None:
        self._of = stirring
        self._mask, self._seed = secrets.randbits(64), 0
        self._memory = pool.malloc(8 * WORDS)
        digits = "".join(map(str, capability_of(cupy)))
        module = cupy.RawModule(path=str(nvrtc.compile_rung(source(), f"sm_{digits}")))
        self._kernel = module.get_function("renew")
        largest = max((tensor.size for tensor in stirring.tensors), default=1)
        self._grid = (min(BLOCKS, max(1, -(-largest // BLOCK))), max(1, len(stirring.tensors)))
        self.stirring: Stirring | None = None  # of whose values are drawn
        self.number = 0  # of the next pass
        self.cost_ns: float | None = None  # of a launch, once it was measured

    def begin(self, staging: Staging) -> None:
        self._seed, self.number, self.stirring = secrets.randbits(64), 0, self._of.stirring
        staging.upload(np.array([self._seed ^ self._mask, 0, 0, 0], np.uint64), int(self._memory.ptr))

    def renew(self, alike: int) -> None:
        """Put on the current stream: a pass follows."""
        pointers = (np.uint64(self._memory.ptr), np.uint64(self._of.table), np.uint64(self._mask))
        self._kernel(self._grid, (BLOCK,), (*pointers, np.uint64(alike)))

    def drawn(self) -> RebuiltInputs:
        assert self.stirring is not None
        return RebuiltInputs(self._seed, self.stirring)


@lru_cache(maxsize=1)
def source() -> registry.Rung:
    """The kernel, for the compiler."""
    return registry.code(Path(__file__).parent / "renewing.cu", "renewing")
