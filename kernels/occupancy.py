"""Theoretical occupancy: the share of a multiprocessor's warps that blocks of one kernel can fill at once.

After the formulas of NVIDIA's occupancy calculator and the tables of the CUDA C++ Programming Guide,
"Technical Specifications per Compute Capability": what a block takes is rounded up to the units in which
registers (256 a warp) and shared memory are handed out, and from compute capability 8.0 on the system keeps
1 KiB of shared memory a block.
"""

from __future__ import annotations

from dataclasses import dataclass

WARP = 32
REGISTERS = 65536  # of a multiprocessor, on every compute capability below
REGISTER_UNIT = 256  # a warp
MOST_REGISTERS_A_THREAD = 255
SHARED_NBYTES = 48 << 10  # of a block, without asking the device for more


@dataclass(frozen=True)
class Multiprocessor:
    """warps, blocks: at most so many at once; shared_nbytes: for all blocks together."""

    warps: int
    blocks: int
    shared_nbytes: int
    shared_unit: int = 128
    shared_reserved: int = 1024  # a block


MULTIPROCESSORS: dict[tuple[int, int], Multiprocessor] = {
    (7, 0): Multiprocessor(64, 32, 96 << 10, 256, 0),
    (7, 5): Multiprocessor(32, 16, 64 << 10, 256, 0),
    (8, 0): Multiprocessor(64, 32, 164 << 10),
    (8, 6): Multiprocessor(48, 16, 100 << 10),
    (8, 7): Multiprocessor(48, 16, 164 << 10),
    (8, 9): Multiprocessor(48, 24, 100 << 10),
    (9, 0): Multiprocessor(64, 32, 228 << 10),
    (10, 0): Multiprocessor(64, 32, 228 << 10),
    (12, 0): Multiprocessor(48, 24, 100 << 10),
}


def theoretical(
    capability: tuple[int, int], threads: int, registers: int, shared_nbytes: int
) -> float | None:
    """Share (0 to 1) of the warps of one multiprocessor that are busy with blocks of `threads` threads,
    each with so many registers, and so much shared memory a block; None for a compute capability that is
    not known."""
    machine = MULTIPROCESSORS.get(capability)
    if machine is None or threads < 1 or registers > MOST_REGISTERS_A_THREAD:
        return None
    warps = -(-threads // WARP)
    blocks = min(machine.blocks, machine.warps // warps)
    if registers:
        a_warp = _up(registers * WARP, REGISTER_UNIT)
        # Registers lie in four parts, one a scheduler; a warp has all of its own in one of them.
        blocks = min(blocks, 4 * (REGISTERS // 4 // a_warp) // warps)
    shared = _up(shared_nbytes + machine.shared_reserved, machine.shared_unit)
    if shared:
        blocks = min(blocks, machine.shared_nbytes // shared)
    return min(1.0, blocks * warps / machine.warps)


def ceil(a: int, b: int) -> int:
    """a / b, rounded up."""
    return -(-a // b)


def _up(value: int, unit: int) -> int:
    return ceil(value, unit) * unit
