"""CUDA kernels compiled for the host and launched by the stand-in: they do what their text says.

A block's threads run one after another, the first of them last: it is the one that goes on where all have
come to the end. Where a file's threads wait for each other or exchange values, each has a stack of its own
and they take turns at every wait; a block has its shared memory to itself, for blocks run one after another,
and finds NaN in it. Copies that go on by themselves are done when they are waited for, and their places hold
NaN until then. The blocks of a cluster, of which a define RANKS tells how many, take turns with each other.

Why not as PTX (kernels.ptx), which also watches every access: these tests compile many kernels, and run each
for milliseconds. To compile one takes .10 s of a processor here, and .5 s as PTX, .16 s of them by NVRTC
alone (19 rungs, quickly optimized); to run it without watching would gain nothing. So each rung runs as PTX
on one case (tests.kernels.simulated), and its many shapes here.
"""

from __future__ import annotations

import ctypes
import mmap
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from kernels import arguments
from kernels.ops import OPS, codes
from kernels.registry import HEADERS, Rung
from tests import keeping
from tests.standin.code import constants
from tests.standin.device import Device, Launched, Work
from tests.standin.modules.cupy import Cupy
from tests.standin.settings import Settings

COMPILER = shutil.which("g++")
_CPU = Path("/proc/cpuinfo")
# Halves by the processor's own instructions where it has them: calls instead take most of a product's time.
_HALVES = ["-mf16c"] if _CPU.is_file() and re.search(r"\bf16c\b", _CPU.read_text()) else []
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
_TYPES = {
    np.uint64: ctypes.c_uint64,
    np.int64: ctypes.c_int64,
    np.int32: ctypes.c_int32,
    np.float32: ctypes.c_float,
}
# CUDA's assembly, in the words of on_the_host.h.
_ASSEMBLY = {
    "extern __shared__ float4 dynamic[];":
        "alignas(128) __shared__ float4 of_blocks[CLUSTER][227 * 64];\n#define dynamic of_blocks[rank_()]",
    'asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));': "rank = rank_();",
    r'asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");':
        "wait_for_all_();",
    'asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(signal(step)) : "memory");': "",
    'asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");': "",
    'asm volatile("barrier.cluster.arrive.release;" ::: "memory");': ";",
    'asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");': ";",
    'asm volatile("barrier.cluster.wait.acquire;" ::: "memory");': "wait_for_all_();",
    "extern __shared__ __align__(1024) uint4 slabs[];": "alignas(1024) __shared__ uint4 slabs[227 * 64];",
    "extern __shared__ __align__(128) uint4 kept[];":
        "alignas(128) __shared__ uint4 of_blocks[CLUSTER][227 * 64];\n#define kept of_blocks[rank_()]",
    'asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");': "",
    'asm volatile("barrier.cluster.wait.aligned;" ::: "memory");': "wait_for_all_();",
    'asm volatile("fence.proxy.async.shared::cta;" ::: "memory");': "",
    'asm volatile("wgmma.fence.sync.aligned;" ::: "memory");': "",
    'asm volatile("" : "+f"(part[j][s])::"memory");': "",
    'asm volatile("" : "+l"(pointer)::"memory");': "",
    'asm volatile("prefetch.global.L2 [%0];" ::"l"(weights + at));': "",
    'asm volatile("" : "+r"(number));': "",
    'asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");': "close_products_();",
    'asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));': "time = host_ns();",
    'asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(v));': "_Float16 half = v; memcpy(&bits, &half, 2);",
    'asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(bits));':
        "{ _Float16 half; memcpy(&half, &bits, 2); v = half; }",
    'asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(v));': "_Float16 half = v; memcpy(&bits, &half, 2);",
    'asm("cvt.rn" HALF_TYPE "x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(second), "f"(first));':
        "bits = to_short_<BF16>(second) << 16 | to_short_<BF16>(first);",
    'asm("tanh.approx.f32 %0, %0;" : "+f"(v));': "v = tanhf(v);",
    'asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(v));': "y = exp2f(v);",
    'asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(s));': "root = 1 / sqrtf(s);",
    'asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(its_own) : "f"(root));': "its_own = sqrtf(root);",
    'asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(v));':
        "bits = (same_bits<unsigned>(v) + 0x1000u) & 0xffffe000u;",
}  # fmt: skip
# Longer pieces of it.
_PIECES = {
    r'asm volatile\("cp\.async\.c[ag]\.shared\.global \[%0\], \[%1\], (\d+), %2;".*?\);':
        r"copy_later_(to, from, \1, inside);",
    r'asm volatile\("cp\.async\.cg\.shared\.global \[%0\], \[%1\], 16;".*?\);':
        "copy_later_(to, from, 16, true);",
    r'asm volatile\("cp\.async\.commit_group.*?\);': "close_();",
    r'asm volatile\("cp\.async\.wait_group %0;" ::"n"\((\w+)\).*?\);': r"arrived_(\1);",
    r'asm volatile\("wgmma\.wait_group\.sync\.aligned %0;" ::"n"\((\w+)\).*?\);': r"products_(\1);",
    r'(?s)asm volatile\("\{\\n\\t\.reg \.pred p;.*?wgmma\.mma_async.*?"l"\(operand\(columns\)\)\);':
        "multiply_later_<Kind::CHUNK + BF16>(sum, rows, columns, more);",
    r'asm volatile\(\s*"\{\\n\\t\.reg \.u32 there, its;.*?: "memory"\);':
        "tell_later_(place, rank, v, Step);",
    r'asm volatile\(\s*"\{\\n\\t\.reg \.pred told;.*?: "memory"\);': "wait_for_signal_(step);",
    r'asm volatile\("\{\\n\\t\.reg \.b64 state;[^;]*mbarrier\.arrive\.expect_tx.*?: "memory"\);':
        "expect_(step, nbytes);",
    r'asm volatile\(\s*"\{\\n\\t\.reg \.u32 there;[^;]*mapa[^;]*; *\\n\\t"\s*"st\.shared::cluster\.f32.*?\);':
        "*(float*)of_rank_(place, rank) = v;",
    r'asm volatile\(\s*"\{\\n\\t\.reg \.u32 there;[^;]*mapa[^;]*; *\\n\\t"\s*"st\.shared::cluster\.v4.*?\);':
        "*(float4*)of_rank_(place, rank) = v;",
    r'asm volatile\("ldmatrix\.sync.*?\);': "load_matrices_(to, from + chunks);",
    r'asm\("mma\.sync\.aligned\.m16n8k8\..*?\);': "multiply_<8>(sum, columns, row0, row1);",
    r'asm\("mma\.sync\.aligned\.m16n8k16\..*?\);': "multiply_<16 + BF16>(sum, columns, row0, row1);",
}  # fmt: skip
_WORDS = Path(__file__).with_name("on_the_host.h").read_text(encoding="utf-8")
_MACHINE = Path(__file__).with_name("on_the_host.cpp")
# One thread alone runs kernels: what is static needs no guard of the C++ library.
_OPTIONS = [
    *_HALVES,
    "-w",
    "-std=c++17",
    "-fno-exceptions",
    "-fno-threadsafe-statics",
    "-fno-gnu-unique",
    "-fPIC",
]

_LAUNCHER = """
extern "C" int launched_{name}(
    unsigned gx_, unsigned gy_, unsigned gz_, unsigned bx_, unsigned by_, unsigned bz_, {taken}) {{
    return run_({{gx_, gy_, gz_, bx_, by_, bz_}}, {turns}, {cluster}, [&] {{ {name}({given}); }});
}}
"""
_KERNEL = re.compile(r'extern "C"\s+void\s+(\w+)\s*\(([^)]*)\)')
_TURNS = re.compile(r"__shared__|__sync|_sync\(")


class Hosted(Cupy):
    """CuPy whose modules are kernels compiled for the host; `compiled` stands in for the compiler. turns: the
    threads of a block that wait for each other take turns."""

    def __init__(self, folder: Path, turns: bool = False) -> None:
        super().__init__(Device(Settings()))
        self._folder, self._turns = folder, turns
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
            self._found[path] = _built(rung, defines, path, self._turns)
        library = self._found[path]
        rung, defines = self._wanted[path]
        sizes = constants([rung.source], {name: str(value) for name, value in defines.items()})
        held = {name: self.cuda.alloc(nbytes) for name, nbytes in sizes.items()}

        def get_function(name: str) -> Any:
            launch = getattr(library, f"launched_{name}")

            def kernel(
                grid: Sequence[int], block: Sequence[int], args: Sequence[Any], *, shared_mem: int = 0
            ) -> None:
                size = [ctypes.c_uint(number) for number in (*(*grid, 1, 1)[:3], *(*block, 1, 1)[:3])]

                def do() -> None:
                    for constant, memory in held.items():
                        there = ctypes.c_char.in_dll(library, constant)
                        ctypes.memmove(ctypes.addressof(there), memory.ptr, sizes[constant])
                    stuck = launch(*size, *map(_given, args))
                    assert stuck != 1, f"{name}: threads wait, and nobody lets them go on"
                    assert stuck != 2, f"{name}: touches memory that is not its own"

                self.device.current.put(Work(do, launched=Launched(path)))

            return kernel

        return SimpleNamespace(get_function=get_function, get_global=held.__getitem__)


class Guarded:
    """Bytes on whole pages of their own, between two that nobody may touch, as near as 16 bytes allow to the
    one behind them (at_end) or in front."""

    def __init__(self, held: np.ndarray, at_end: bool = True) -> None:
        page, libc = mmap.PAGESIZE, ctypes.CDLL(None, use_errno=True)
        whole = -(-max(1, held.nbytes) // page) * page
        self._pages = mmap.mmap(-1, whole + 2 * page)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._pages))
        for edge in (start, start + page + whole):
            if libc.mprotect(ctypes.c_void_p(edge), ctypes.c_size_t(page), 0):
                raise OSError(ctypes.get_errno(), "mprotect")
        offset = page + (whole - -(-held.nbytes // 16) * 16 if at_end else 0)
        self.address = start + offset
        self.bytes = np.frombuffer(self._pages, np.uint8, held.nbytes, offset)
        self.bytes[:] = np.ascontiguousarray(held).reshape(-1).view(np.uint8)


def _given(value: Any) -> Any:
    """A struct travels by its address."""
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    return _TYPES[type(value)](value.item())


def _built(rung: Rung, defines: Mapping[str, Any], to: str, turns: bool) -> ctypes.CDLL:
    its = _text(rung.path, set())
    turns = turns and bool(_TURNS.search(its))
    text = arguments.preamble(rung) + its
    # Of this file alone: what the linker shares between files cannot lie in a section of ours.
    text = _WORDS + (text if "__constant__" in its else f"namespace {{\n{text}\n}}\n")
    flags = [f"-D{name}={value}" for name, value in defines.items()]
    cluster = int(defines.get("RANKS", 1))
    flags.append(f"-DCLUSTER={cluster}")
    name = f"{rung.name}-{keeping.digest(_compiler(), text, repr((flags, turns, rung.op)))}.so"
    # A file of its own: of one that is opened twice there is one memory.
    Path(to).write_bytes(keeping.kept(name, lambda: _build(rung.op, text, flags, turns, cluster)))
    return ctypes.CDLL(to)


def _build(op: str, text: str, flags: Sequence[str], turns: bool, cluster: int) -> bytes:
    assert COMPILER is not None
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.cpp"
        source.write_text(text)
        # As the kernel's own parameters stand behind the macros that may hold them.
        plain = subprocess.run(
            [COMPILER, "-std=c++17", "-E", "-P", *flags, str(source)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        kernels = _KERNEL.findall(plain)
        assert kernels
        record = OPS.get(op)
        struct = arguments.struct_name(record) if record else "no"
        # What is read already need not be read again, and has no more defines to know.
        read = source.with_suffix(".ii")
        starts = "".join(_launcher(name, told, struct, turns, cluster) for name, told in kernels)
        read.write_text(plain + starts)
        machine, its, to = (Path(folder) / name for name in ("machine.o", "its.o", "its.so"))
        machine.write_bytes(_machine())
        # With little optimization: most kernels take longer to compile than to run.
        subprocess.run([COMPILER, *_OPTIONS, "-Og", "-c", str(read), "-o", str(its)], check=True)
        # By the linker itself: what the compiler asks it for beside takes twice as long as to link. What a
        # kernel calls of C's library is in this process.
        linker, helpers = _linker()
        subprocess.run(
            [linker, "-shared", "-Bsymbolic", str(its), str(machine), helpers, "-o", str(to)], check=True
        )
        return to.read_bytes()


@cache
def _linker() -> tuple[str, str]:
    """The compiler's own, and the library of what it calls where a processor has no instruction."""
    assert COMPILER is not None
    asked = ("-print-prog-name=ld", "-print-libgcc-file-name")
    told = [subprocess.run([COMPILER, ask], check=True, capture_output=True, text=True) for ask in asked]
    linker, helpers = (one.stdout.strip() for one in told)
    return linker, helpers


@cache
def _compiler() -> str:
    """All that a build rests on beside the kernel."""
    assert COMPILER is not None
    told = subprocess.run([COMPILER, "--version"], check=True, capture_output=True, text=True).stdout
    return keeping.digest(told, repr(_OPTIONS), Path(__file__).read_bytes(), _MACHINE.read_bytes())


@cache
def _machine() -> bytes:
    """What is linked with every kernel. Of what kernels take on the host most is here, so that this is worth
    a longer look of the compiler."""
    assert COMPILER is not None
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "machine.o"
        options = [*_OPTIONS, "-O2", "-U_FORTIFY_SOURCE"]
        subprocess.run([COMPILER, *options, "-c", str(_MACHINE), "-o", str(built)], check=True)
        return built.read_bytes()


def _launcher(name: str, told: str, struct: str, turns: bool, cluster: int) -> str:
    """What starts a kernel."""
    taken, given = [], []
    for each in told.split(","):
        parameter = re.findall(r"\w+", each)[-1]
        apart = struct in each.split()
        taken.append(f"const {struct}* {parameter}" if apart else " ".join(each.split()))
        given.append(f"*{parameter}" if apart else parameter)
    return _LAUNCHER.format(
        name=name, taken=", ".join(taken), given=", ".join(given), turns=str(turns).lower(), cluster=cluster
    )


def _text(path: Path, seen: set[Path]) -> str:
    """The file with the headers that it includes in their places, each once."""
    if path in seen:
        return ""
    seen.add(path)
    text = path.read_text(encoding="utf-8").replace("#pragma once", "")
    for assembly, plain in _ASSEMBLY.items():
        text = text.replace(assembly, plain)
    for assembly, plain in _PIECES.items():
        text = re.sub(assembly, plain, text, flags=re.DOTALL)

    def included(match: re.Match[str]) -> str:
        places = (folder / match[1] for folder in (path.parent, HEADERS))
        return _text(next(place.resolve() for place in places if place.is_file()), seen)

    return _INCLUDE.sub(included, text)
