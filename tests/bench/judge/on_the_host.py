"""Simple CUDA kernels compiled for the host and launched by the stand-in: they do what their text says.

A block's threads run one after another, the first of them last: it is the one that goes on where all have
come to the end. Kernels whose threads wait for each other in between are not for this.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from kernels.includes import HEADERS
from kernels.ops import codes
from kernels.registry import Rung
from tests.standin.device import Device, Launched, Work
from tests.standin.modules.cupy import Cupy
from tests.standin.settings import Settings

COMPILER = shutil.which("g++")
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
_TYPES = {
    np.uint64: ctypes.c_uint64,
    np.int64: ctypes.c_int64,
    np.int32: ctypes.c_int32,
    np.float32: ctypes.c_float,
}
# CUDA's assembly, in C++.
_ASSEMBLY = {
    'asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));': "time = host_ns();",
    'asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(v));': "_Float16 half = v; memcpy(&bits, &half, 2);",
    'asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(bits));': "v = half;",
}
_WORDS = """
#include <math.h>
#include <string.h>
#include <time.h>
struct Three { unsigned x = 0, y = 0, z = 0; };
static Three blockIdx, blockDim, threadIdx, gridDim;
#define __device__ static
#define __forceinline__ inline
#define __global__
#define __restrict__
static void __syncthreads() {}
static int __syncthreads_or(int value) { return value; }
template <class To, class From> static To same_bits(From v) { To u; memcpy(&u, &v, sizeof u); return u; }
static unsigned __float_as_uint(float v) { return same_bits<unsigned>(v); }
static float __uint_as_float(unsigned v) { return same_bits<float>(v); }
static float __int_as_float(int v) { return same_bits<float>(v); }
template <class A, class B> static A atomicAdd(A* at, B by) { const A was = *at; *at += by; return was; }
static unsigned long long host_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}
"""


class Hosted(Cupy):
    """CuPy whose modules are kernels compiled for the host; `compiled` stands in for the compiler."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Device(Settings()))
        self._folder = folder
        self._wanted: dict[str, tuple[Rung, dict[str, Any]]] = {}
        self._found: dict[str, Any] = {}

    def compiled(self, rung: Rung, arch: str, defines: Mapping[str, Any] | None = None) -> Path:
        wanted = {**codes(), **rung.defines, **(defines or {})}
        path = self._folder / f"{rung.name}-{len(self._wanted)}.so"
        known = next((at for at, it in self._wanted.items() if it == (rung, wanted)), None)
        self._wanted[known or str(path)] = rung, wanted
        return Path(known or path)

    def RawModule(self, path: str) -> Any:
        if path not in self._found:
            rung, defines = self._wanted[path]
            self._found[path] = _built(rung.path, defines, path)
        launch = self._found[path]

        def kernel(
            grid: Sequence[int], block: Sequence[int], args: Sequence[Any], *, shared_mem: int = 0
        ) -> None:
            given = [_TYPES[type(value)](value.item()) for value in args]
            size = [ctypes.c_uint(number) for number in (*(*grid, 1)[:2], block[0])]
            work = Work(lambda: launch(*size, *given), launched=Launched(path))
            self.device.current.put(work)

        return SimpleNamespace(get_function=lambda name: kernel)


def _built(path: Path, defines: Mapping[str, Any], to: str) -> Callable[..., object]:
    text = _WORDS + _text(path, set())
    # C's own headers, not what the C++ library makes of them, which takes longer to read than the kernel.
    flags = ["-D_GLIBCXX_INCLUDE_NEXT_C_HEADERS", *(f"-D{name}={value}" for name, value in defines.items())]
    source = Path(to).with_suffix(".cpp")
    source.write_text(text)
    assert COMPILER is not None
    # As the kernel's own parameters stand behind the macros that may hold them.
    plain = subprocess.run(
        [COMPILER, "-std=c++17", "-E", "-P", *flags, str(source)], check=True, capture_output=True, text=True
    ).stdout
    matched = re.search(r'extern "C"\s+void (\w+)\s*\(([^)]*)\)', plain)
    assert matched is not None
    names = ", ".join(re.findall(r"\w+", each)[-1] for each in matched[2].split(","))
    source.write_text(f"""{text}
extern "C" void launched(unsigned x_, unsigned y_, unsigned threads_, {" ".join(matched[2].split())}) {{
    gridDim.x = x_, gridDim.y = y_, blockDim.x = threads_, blockDim.y = 1;
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y)
        for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x)
            for (unsigned i_ = blockDim.x; i_-- > 0;) {{
                threadIdx.x = i_;
                {matched[1]}({names});
            }}
}}
""")
    options = ["-std=c++17", "-O1", "-w", "-shared", "-fPIC", *flags]
    subprocess.run([COMPILER, *options, str(source), "-o", to], check=True)
    return ctypes.CDLL(to).launched


def _text(path: Path, seen: set[Path]) -> str:
    """The file with the headers that it includes in their places, each once."""
    if path in seen:
        return ""
    seen.add(path)
    text = path.read_text(encoding="utf-8").replace("#pragma once", "")
    for assembly, plain in _ASSEMBLY.items():
        text = text.replace(assembly, plain)

    def included(match: re.Match[str]) -> str:
        places = (folder / match[1] for folder in (path.parent, HEADERS))
        return _text(next(place.resolve() for place in places if place.is_file()), seen)

    return _INCLUDE.sub(included, text)
