"""What would end a mistake that was seen in a kernel's accesses to memory, as a sentence."""

from __future__ import annotations

import re

from kernels.ptx.program import Finding

_ELEMENT = re.compile(r"element (-?\d+) of .*?, which has (\d+)")
_IN_FRONT = re.compile(r"element -\d+ of .*?, (\d+) in front of it")

_ADDRESS = re.compile(r"the address 0x([0-9a-f]+), which is in no buffer")
NEAR_NULL = 1 << 16  # an address below it is a null pointer's with an index


def remedy(found: Finding, source: str) -> str:
    """ "" where nothing is known that would help. source: of the kernel's file."""
    if found.kind == "outside":
        return _outside(found.words)
    if "may have ended by then" in found.words:
        return "put a barrier of the cluster, as cluster.sync(), between this line and the kernel's end"
    if found.kind == "race":
        return _race(found, source)
    if found.kind == "uninitialised" and "(shared memory)" in found.words:
        return (
            "each element of a tile has to be written before the barrier, also at the edge, where the tile "
            "is not full: write 0 there"
        )
    if found.kind in ("divergent_barrier", "stuck", "barrier_mismatch"):
        return (
            "each thread of the block has to reach the same __syncthreads(): take it out of the `if`, and "
            "let no thread return before it"
        )
    if found.kind == "endless" and "stack is full" not in found.words:
        return (
            "look at the condition of this loop: what it reads has to change in the loop, or be written by a "
            "thread that runs at the same time"
        )
    if found.kind == "uninitialised" and "local memory" in found.words:
        return "write each element of a thread's own array before it is read, as in `float sum[4] = {}`"
    return ""


def _outside(words: str) -> str:
    if "calls a function at" in words:
        return "give the pointer the address of a function in the kernel, and not of one on the host"
    if (at := _ADDRESS.search(words)) and int(at[1], 16) < NEAR_NULL:
        return (
            "this pointer is null, as that of an input that is absent; ask for it before the access, as in "
            "`if (bias)`"
        )
    if (at := _ELEMENT.search(words)) and int(at[1]) == int(at[2]):
        return (
            f"this is one beyond the end: indices go from 0 to {int(at[2]) - 1}; look for `<=` where `<` is "
            "meant, and at the edge of the last tile"
        )
    if (at := _IN_FRONT.search(words)) and at[1] == "1":
        return "this is one in front of the beginning: look at the first index, and at what is taken from it"
    return "ask before the access whether the index is inside, as in `if (i < n)`"


def _race(found: Finding, source: str) -> str:
    if "blocks of a launch do not wait" in found.words:
        return "let each block write elements of its own, use atomicAdd, or begin another launch"
    if "no __syncthreads()" not in found.words or found.place is None or found.other is None:
        return ""
    first, second = sorted((found.place.line, found.other.line))
    if first == second:
        return f"let one thread alone use this element in line {first}, or put __syncthreads() in between"
    between = source.splitlines()[first - 1 : second]
    if any("__syncthreads()" in line.partition("//")[0] for line in between):
        return f"put __syncthreads() behind line {second}, before a loop goes back to line {first}"
    return f"put __syncthreads() between lines {first} and {second}"
