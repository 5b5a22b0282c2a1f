"""One kernel alone on one set of params: a session of a single step, with guard bytes around all its buffers.
The ladder checks and times kernels in such sessions.

The caller gives the values of the inputs. Weights are given once, as an engine knows them when it prepares a
model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from engine.graph.plan import Plan, Step, TensorSpec
from engine.rung_rows import Given, blocks, changed
from kernels.ops import Params
from kernels.registry import Rung

GUARD_NBYTES = 1 << 16  # of sentinels in front of and behind every buffer
# Bytes that buffers are filled with. As float32: a guard is −1.7e38, so that whoever reads one shows it; the
# first poison is a NaN, the second 1.3e36: what depends on the poison was never written.
GUARD, POISONS = 0xFE, (0xFF, 0x7B)
# Of an input that is not looked at whole: so many stretches of so many bytes, beside its two ends. Of another
# so many bytes at once.
LOOKED_AT, BLOCK_NBYTES, READ_NBYTES = 6, 1 << 16, 16 << 20

Picked = slice | Sequence[int] | np.ndarray | None  # rows of an output; None: all of it


@dataclass(frozen=True)
class Stray:
    """A write outside the output and the workspace. buffer: the nearest one ("output", "input 0",
    "workspace"). offset: bytes from its start (negative: in front of it; `size` or more: behind it). nbytes:
    how many bytes changed."""

    buffer: str
    offset: int
    nbytes: int
    size: int

    @property
    def words(self) -> str:
        """Where it wrote, in words."""
        if self.offset < 0:
            place = f"{_bytes(-self.offset)} in front of the {self.buffer}"
        elif self.offset == self.size:
            place = f"right behind the end of the {self.buffer}"
        elif self.offset > self.size:
            place = f"{_bytes(self.offset - self.size)} behind the end of the {self.buffer}"
        elif self.offset == 0:
            place = f"at the beginning of the {self.buffer}, which is only to be read"
        else:
            place = f"at byte {self.offset:,} of the {self.buffer}, which is only to be read"
        return f"wrote {place}: {_bytes(self.nbytes)} changed there"


def _bytes(count: int) -> str:
    return f"{count:,} byte{'s' if count != 1 else ''}"


class RungSession(Protocol):
    """A prepared kernel. facts: what was really used, in words. compiled: compile-time facts by name
    (registers, shared_nbytes, stack_nbytes, spill_nbytes, occupancy, threads; nothing on the CPU). moved: the
    bytes that it reads and writes at least, with weights as they are packed (engine.planning.traffic)."""

    compiled: Mapping[str, float]
    moved: int

    @property
    def facts(self) -> Mapping[str, str]: ...

    def bind(self, inputs: Mapping[str, Given]) -> None:
        """Write new values into the inputs that are no weights, "input 0", …; nobody may change them until
        others are bound."""

    def poison(self, byte: int) -> None:
        """Fill output and workspace with this byte."""

    def run(self) -> None:
        """Start one pass; on a GPU it may return before the pass has ended."""

    def synchronize(self) -> None:
        """Wait for every started pass; errors of the device surface here."""

    def output(self, rows: Picked = None) -> np.ndarray:
        """A copy of the output (params.output_shape), or only of these of its rows (params.output_rows)."""

    def strays(self, whole: bool = True) -> tuple[Stray, ...]:
        """The writes outside the output and the workspace since the session was prepared. All guard bytes are
        checked. Inputs are checked completely if `whole`, else in parts at random places."""

    def time_runs(self, count: int, cold: bool = False) -> int:
        """Nanoseconds of `count` passes in a row, as in engine.backend.Session. Inputs change and passes are
        recorded as in engine.stirring.Witnessed, for the inputs "input 0", … that are no weights, and for
        "output"."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class ArenaLayout:
    """The places of the buffers in one allocation: (offset, bytes) by name, with guards between them."""

    places: Mapping[str, tuple[int, int]]
    nbytes: int

    @property
    def guards(self) -> tuple[tuple[int, int], ...]:
        """(start, end) of every stretch of guard bytes."""
        spans, start = [], 0
        for offset, size in self.places.values():
            spans.append((start, offset))
            start = offset + size
        return (*spans, (start, self.nbytes))

    def stray(self, position: int, nbytes: int) -> Stray:
        """The changed guard bytes at this position as a Stray of the nearest buffer."""

        def distance(item: tuple[str, tuple[int, int]]) -> int:
            offset, size = item[1]
            return offset - position if position < offset else position - offset - size

        # An output is told before an input that is as near: it is what a rung means to write.
        order = sorted(self.places.items(), key=lambda item: item[0] != "output")
        name, (offset, size) = min(order, key=distance)
        return Stray(name, position - offset, nbytes, size)


def one_step(rung: Rung, p: Params, inputs: Sequence[Given]) -> Plan:
    """The plan of this kernel alone; its tensors have no places (see `layout`). Of the inputs, "input 0", …,
    those that are weights are the plan's."""
    named = {f"input {i}": array for i, array in enumerate(inputs)}
    weights = {f"input {i}": np.asarray(array) for i, array in enumerate(inputs) if i in p.weight_inputs}
    tensors = {name: TensorSpec(tuple(array.shape), array.dtype.name) for name, array in named.items()}
    tensors["output"] = TensorSpec(p.output_shape, np.dtype(p.out_dtype).name)
    step = Step(rung.name, (rung.name,), p, tuple(named), "output", rung.name, precision=rung.precision)
    data = tuple(f"input {i}" for i in p.data_inputs)
    return Plan(
        p.rows or 1, rung.device, rung.precision, (step,), tensors, weights, {}, {}, data, ("output",), 0, 0
    )


def layout(plan: Plan, workspace_nbytes: int) -> ArenaLayout:
    """The layout for a plan's tensors and a workspace. Every buffer begins on a multiple of 256 bytes, with
    guards on both sides. The guard behind a buffer begins at the first byte after its end."""
    sizes = {name: spec.nbytes for name, spec in plan.tensors.items()}
    if workspace_nbytes:
        sizes["workspace"] = workspace_nbytes
    places, end = {}, GUARD_NBYTES
    for name, size in sizes.items():
        places[name] = (end, size)
        end = -(-(end + size + GUARD_NBYTES) // 256) * 256
    return ArenaLayout(places, end)


def strays(
    layout: ArenaLayout,
    inputs: Mapping[str, Given],
    read: Callable[[Sequence[tuple[int, int]]], np.ndarray],
    whole: bool,
    random: np.random.Generator,
) -> Iterator[Stray]:
    """What was written outside the output and the workspace: guard bytes that changed, and inputs. read:
    gives the bytes at these (offset, bytes) of the arena, one after the other; whole: see
    RungSession.strays."""
    contents = read([(start, end - start) for start, end in layout.guards])
    for start, end in layout.guards:
        wrong = np.flatnonzero(contents[: end - start] != GUARD)
        if wrong.size:
            yield layout.stray(start + int(wrong[0]), wrong.size)
        contents = contents[end - start :]
    for name, array in inputs.items():
        offset, size = layout.places[name]
        parts = blocks(size, whole, random, READ_NBYTES if whole else BLOCK_NBYTES, LOOKED_AT)
        together = 1 if whole else max(1, len(parts))
        first, count = -1, 0
        for some in (parts[i : i + together] for i in range(0, len(parts), together)):
            contents = read([(offset + part.start, part.stop - part.start) for part in some])
            for part in some:
                nbytes = part.stop - part.start
                if (there := changed(contents[:nbytes], array, part.start)) is not None:
                    first, count = there[0] if first < 0 else first, count + there[1]
                contents = contents[nbytes:]
        if count:
            yield Stray(name, first, count, size)
