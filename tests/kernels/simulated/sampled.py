"""Where a simulated pass takes its time: of each function of the machine (kernels.ptx.machine) its share.

A timer of the process interrupts it, and what it was at is kept: Linux on x86-64, where the context of a
signal has that address (`ucontext_t`). Functions of the machine are found by their object files.
"""

from __future__ import annotations

import bisect
import collections
import ctypes
import platform
import signal
import struct
import sys
from collections.abc import Callable

import llvmlite.binding as llvm
import numpy as np

from kernels.cpu import compiled
from kernels.ptx import machine, products

EVERY_S, MOST = 0.001, 1 << 16
ABLE = sys.platform == "linux" and platform.machine() == "x86_64"
ELSEWHERE = "the kernel itself and Python"
# In words: what takes part in what.
PARTS = {
    "products": ("multiply", "multiply_whole", "multiply_square", "multiply_wide", "products"),
    "copies in the background": ("copy_later", "arrive", "bulk", "signal", "load_matrices", "store_matrices"),
    "loads, stores and atomics, watched": ("read", "write", "atomic", "texture"),
    "functions": ("function", "divide", "shuffle", "match"),
    "turns of warps and barriers": ("run", "barrier", "synced", "fence", "alone"),
}
_HANDLER = """
define void @sampled(i32 %signal, ptr %information, ptr %context) {{
  %place = getelementptr i8, ptr %context, i64 168
  %at = load i64, ptr %place
  %counter = inttoptr i64 {counter} to ptr
  %count = load i64, ptr %counter
  %next = add i64 %count, 1
  store i64 %next, ptr %counter
  %slot = urem i64 %next, {most}
  %kept = getelementptr i64, ptr %counter, i64 %slot
  store i64 %at, ptr %kept
  ret void
}}
"""


class _Action(ctypes.Structure):
    """struct sigaction of the C library."""

    _fields_ = [
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_ubyte * 128),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    ]


_INFORMATION, _RESTART = 4, 0x10000000  # SA_SIGINFO, SA_RESTART


def shares(work: Callable[[], None]) -> dict[str, float]:
    """Of the time of `work`, which has run before, each part's share, the largest first."""
    kept = np.zeros(MOST, np.int64)
    module = llvm.parse_assembly(_HANDLER.format(counter=kept.ctypes.data, most=MOST))
    engine = llvm.create_mcjit_compiler(module, compiled.target())
    engine.finalize_object()
    own, before = _Action(), _Action()
    own.handler, own.flags = engine.get_function_address("sampled"), _INFORMATION | _RESTART
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.sigaction(int(signal.SIGPROF), ctypes.byref(own), ctypes.byref(before)):
        raise OSError(ctypes.get_errno(), "sigaction")
    signal.setitimer(signal.ITIMER_PROF, EVERY_S, EVERY_S)
    try:
        work()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        libc.sigaction(int(signal.SIGPROF), ctypes.byref(before), None)
    places = _places()
    begins = [place[0] for place in places]
    found: collections.Counter[str] = collections.Counter()
    for at in kept[1 : min(int(kept[0]) + 1, MOST)].tolist():
        begin, end, part = places[max(0, bisect.bisect(begins, at) - 1)]
        found[part if begin <= at < end else ELSEWHERE] += 1
    return {part: count / found.total() for part, count in found.most_common()}


def _places() -> list[tuple[int, int, str]]:
    """(begins, ends, part) of the machine's functions that are loaded, in order."""
    found = []
    for part, names in PARTS.items():
        for name in names:
            function = getattr(products, name, None) or getattr(machine, name)
            entry, size = _entry(function.code())
            found.append((function.address - entry, function.address - entry + size, part))
    return sorted(found)


def _entry(data: bytes) -> tuple[int, int]:
    """Of an ELF object file how far the entry is behind the beginning of its section, and that one's size."""
    (headers,) = struct.unpack_from("<Q", data, 0x28)
    (count,) = struct.unpack_from("<H", data, 0x3C)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, headers + 64 * i) for i in range(count)]
    symbols = next(section for section in sections if section[1] == 2)  # SHT_SYMTAB
    names = sections[symbols[6]][4]
    for place in range(symbols[4], symbols[4] + symbols[5], 24):
        name, _, _, section, value, _ = struct.unpack_from("<IBBHQQ", data, place)
        if data[names + name :].split(b"\0", 1)[0] == compiled.ENTRY.encode():
            return value, sections[section][5]
    raise ValueError(f"the object file has no {compiled.ENTRY}")
