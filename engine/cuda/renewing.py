"""Passes on the device over inputs that are all new (engine.stirring.Renewable).

Before each pass one launch (renewing.cu) writes every value of every input: new values, or the same ones with
the few changes of an ordinary timed pass. It follows the launch of engine.cuda.stirring, which changes a few
values and poisons the outputs.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from engine.cuda.runtime import Staging, capability_of, load_module
from engine.cuda.stirring import ALIGNMENT, BLOCK, WORDS, CudaStirring
from engine.stirring import CELL_BITS, VALUE, Cells, Stirring, hashed
from kernels import nvrtc, registry

BLOCKS = 1056  # a tensor at most: eight a multiprocessor of the largest devices
KEEP = 0xFFFFFFFFFFFFFFFF  # all bits of a value
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


@dataclass(frozen=True)
class RebuiltInputs:
    """The inputs of passes over new values, computed again from the number of the pass."""

    seed: int
    stirring: Stirring
    cells: dict[str, Cells]

    def inputs_of(self, number: int) -> dict[str, np.ndarray]:
        """All inputs of this pass."""
        inputs = {}
        for name, tensor in self.stirring.inputs.items():
            bits = self.cells[name].drawn(hashed(self.seed, number, tensor.index, VALUE, tensor.size))
            word = bits.astype(_UNSIGNED[tensor.dtype.itemsize])
            inputs[name] = word.view(tensor.dtype).reshape(tensor.shape)
        return inputs


class CudaRenewing:
    """The launches for the inputs that are bound now; call `begin` after others are bound."""

    def __init__(self, cupy: Any, pool: Any, stirring: CudaStirring) -> None:
        self._of = stirring
        self._mask, self._seed = secrets.randbits(64), 0
        self._each = 2 * 8 << CELL_BITS  # bytes of an input's cells
        self._table = -(-8 * WORDS // ALIGNMENT) * ALIGNMENT
        self._cells_at = self._table + -(-64 * max(1, len(stirring.inputs)) // ALIGNMENT) * ALIGNMENT
        self._memory = pool.malloc(self._cells_at + self._each * max(1, len(stirring.inputs)))
        digits = "".join(map(str, capability_of(cupy)))
        module = load_module(cupy, nvrtc.compile_rung(source(), f"sm_{digits}"))
        self._kernel = module.get_function("renew")
        largest = max((tensor.size for tensor in stirring.inputs.values()), default=1)
        self._grid = (min(BLOCKS, max(1, -(-largest // BLOCK))), max(1, len(stirring.inputs)))
        self.stirring: Stirring | None = None  # of whose values are drawn
        self._cells: dict[str, Cells] = {}
        self.number = 0  # of the next pass
        self.cost_ns: dict[bool, float] = {}  # of a launch and of stirring, once it was measured

    def begin(self, staging: Staging) -> None:
        assert self._of.stirring is not None
        self._seed, self.number, self.stirring = secrets.randbits(64), 0, self._of.stirring
        self._cells = {name: self.stirring.cells(name) for name in self._of.inputs}
        start, rows = int(self._memory.ptr), []
        for i, (name, tensor) in enumerate(self._of.inputs.items()):
            base = start + self._cells_at + i * self._each
            span = base + self._each // 2
            staging.upload(self._cells[name].base, base)
            staging.upload(self._cells[name].span, span)
            index = self.stirring.inputs[name].index
            rows.append((tensor.pointer, tensor.dtype.itemsize, tensor.size, index, base, span, 0, 0))
        staging.upload(np.array(rows or [(0,) * 8], np.uint64), start + self._table)
        staging.upload(np.array([self._seed ^ self._mask, 0, 0, 0], np.uint64), start)

    def renew(self, new: bool) -> None:
        """Put the launch on the current stream; a pass follows. new: write other values; else the same."""
        state = int(self._memory.ptr)
        pointers = (np.uint64(state), np.uint64(state + self._table), np.uint64(self._mask))
        self._kernel(self._grid, (BLOCK,), (*pointers, np.uint64(0 if new else KEEP)))

    def drawn(self) -> RebuiltInputs:
        assert self.stirring is not None
        return RebuiltInputs(self._seed, self.stirring, self._cells)


@lru_cache(maxsize=1)
def source() -> registry.Rung:
    """The kernel as the compiler takes it."""
    return registry.code(Path(__file__).parent / "renewing.cu", "renewing")
