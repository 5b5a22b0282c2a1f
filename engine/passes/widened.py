"""Half precision computed in float32 and stored as it says: float16 tensors of a file stay float16 between
its nodes, and each node that computes is fed float32 and rounds once, at its end.

What only moves elements takes them as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import numpy as np

from engine.graph.plan import TensorSpec
from engine.ops import Kernel, View
from kernels.ops.cast import Cast

HALF, WIDE = "float16", "float32"
# Operators whose kernels move float16 as it is, on every device.
MOVE = ("cast", "concat", "gather", "pad", "transpose", "where")


@dataclass
class Widened:
    """items: with casts before and behind what computes. specs and constants: of all tensors, more than were
    given."""

    specs: dict[str, TensorSpec]
    constants: dict[str, np.ndarray]

    def items(self, items: tuple[Kernel | View, ...]) -> tuple[Kernel | View, ...]:
        found: list[Kernel | View] = []
        for item in items:
            if isinstance(item, Kernel) and _computes(item):
                found.extend(self._around(item))
            else:
                found.append(item)
        return tuple(found)

    def _around(self, item: Kernel) -> list[Kernel]:
        made: list[Kernel] = []
        inputs = []
        for name in item.inputs:
            wide = f"{name}:{WIDE}"
            if self.specs[name].dtype != HALF:
                wide = name
            elif name in self.constants:
                self.constants[wide] = np.asarray(self.constants[name]).astype(HALF).astype(WIDE)
            elif wide not in self.specs:
                made.append(Kernel(_cast(self.specs[name], WIDE), (name,), wide, item.nodes))
            if wide != name:
                self.specs[wide] = TensorSpec(self.specs[name].shape, WIDE)
            inputs.append(wide)
        params = replace(item.params, dtype=WIDE)  # type: ignore[call-arg]
        if item.params.out_dtype != HALF:
            return [*made, replace(item, params=params, inputs=tuple(inputs))]
        unrounded, spec = f"{item.output}:unrounded", self.specs[item.output]
        self.specs[unrounded] = TensorSpec(spec.shape, WIDE)
        made.append(replace(item, params=params, inputs=tuple(inputs), output=unrounded))
        return [*made, Kernel(_cast(self.specs[unrounded], HALF), (unrounded,), item.output, item.nodes)]


def _computes(item: Kernel) -> bool:
    params = item.params
    told = "dtype" in {field.name for field in fields(params)}
    return params.dtype == HALF and params.op not in MOVE and told


def _cast(spec: TensorSpec, to: str) -> Cast:
    return Cast(size=math.prod(spec.shape), dtype=spec.dtype, to=to)


def widened(
    items: tuple[Kernel | View, ...], specs: Mapping[str, TensorSpec], constants: Mapping[str, np.ndarray]
) -> tuple[tuple[Kernel | View, ...], Mapping[str, TensorSpec], Mapping[str, np.ndarray]]:
    """Items, specs and constants of a program in which nothing computes in float16."""
    if not any(isinstance(item, Kernel) and _computes(item) for item in items):
        return items, specs, constants
    made = Widened(dict(specs), dict(constants))
    return made.items(items), made.specs, made.constants
