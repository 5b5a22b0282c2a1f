"""Rungs compiled to cubins by NVRTC, through `cuda.bindings.nvrtc`: no GPU and no driver is needed for it.

A cubin is machine code for exactly one architecture ("sm_90"), so that nothing is compiled at load time. It
is kept in the user's cache under a hash of everything that went into it: the rung's source, every header of
ours that it includes, the struct of its operator, the defines, the options, the architecture and NVRTC's
version. No fast-math and no flush to zero: what a rung computes is what its source says in strict float32.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from kernels import arguments, compilers, confine, overlaps, registry
from kernels.cache import atomic_file, cache_dir
from kernels.errors import KernelError, UnavailableError
from kernels.header import Define
from kernels.languages import compiling
from kernels.ops import codes
from kernels.registry import HEADERS, headers
from kernels.spans import span
from kernels.tasks import record_of

APART, A_PROCESS = 4, 3  # from so many processes with so many kernels each they are taken (kernels.compilers)
OPTIONS = ("-std=c++17", "-default-device", "--ptxas-options=-v")

COMPILE = "NVRTC compile"  # the name of its spans
TARGET = "nv/target"  # a header that others of CUDA include
# NVRTC knows what it defines; it comes with CCCL, of which cooperative groups use more where that is there.
_TARGET = "#pragma once\n#define _CG_LIMIT_INCLUDED_DEPENDENCIES\n"
_ERROR = re.compile(
    r"^(?P<file>.+?)\((?P<line>\d+)\): (?:catastrophic )?error(?: #[\w-]+)?: (?P<text>.+)$", re.M
)
# What the assembler says of a whole kernel, between lines of figures.
_ASSEMBLER_ERROR = re.compile(r"ptxas (?:error|fatal) *: *(?P<text>.+)$", re.M)
_ENTRY = "Compiling entry function '"
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_STACK = re.compile(r"(\d+) bytes cumulative stack size")
_ARCH = re.compile(r"sm_\d{2,3}a?")


@dataclass(frozen=True)
class Resources:
    """What one thread or block of a kernel uses, as ptxas reports: registers of a thread, and bytes of static
    shared memory of a block.

    stack_nbytes: local memory of a thread, with the functions that it calls: arrays that are indexed at run
    time, and room for spilled registers. spill_nbytes: bytes that instructions store and load because
    registers are too few; each instruction counts once, however often it runs. Arrays do not count here.
    """

    registers: int
    shared_nbytes: int
    stack_nbytes: int
    spill_nbytes: int


def unavailable() -> str | None:
    """Why NVRTC cannot be used here and what would help, or None."""
    try:
        spec = importlib.util.find_spec("cuda.bindings.nvrtc")
    except ModuleNotFoundError:
        spec = None
    if spec is None:
        return "the package cuda-bindings is not installed; the extras cuda, cuda12 and nvrtc bring it"
    try:
        _version()
    except Exception as error:  # the shared library behind the bindings: several exception types
        return f"NVRTC cannot be loaded ({error}); the extras cuda, cuda12 and nvrtc bring its library"
    return None


def architectures() -> tuple[str, ...]:
    """The architectures that this NVRTC compiles for, the oldest first: "sm_75", … Raises UnavailableError
    where it is not installed."""
    if reason := unavailable():
        raise UnavailableError(f"nothing can be compiled: {reason}")
    from cuda.bindings import nvrtc

    result, numbers = nvrtc.nvrtcGetSupportedArchs()
    _check(nvrtc, result, "asking NVRTC what it compiles for")
    return tuple(f"sm_{number}" for number in sorted(numbers))


@span(COMPILE)
def compile_rung(rung: registry.Rung, arch: str, defines: Mapping[str, Define] | None = None) -> Path:
    """The cubin of `rung` for `arch` ("sm_90"), from the cache or compiled now.

    `defines` are added to the header's own and win over them. Raises KernelError with the compiler's message
    and the line of the rung's file, or with what a rung that `overlaps` touches too early (kernels.overlaps);
    UnavailableError where NVRTC is not installed.
    """
    if not _ARCH.fullmatch(arch):
        raise KernelError(f"{arch!r} is no CUDA architecture; one is written like sm_90")
    if rung.language:
        return compiling.compile_rung(rung, arch, defines or {})
    if reason := unavailable():
        raise UnavailableError(f"{rung.label} cannot be compiled: {reason}")
    path, options = _cubin(rung, arch, defines or {})
    if not path.exists():
        cubin, log = _compile(rung, arch, options)
        _write(path.with_suffix(".log"), log.encode())
        _write(path, cubin)
    return path


def assembly(
    rung: registry.Rung, arch: str, defines: Mapping[str, Define] | None = None
) -> tuple[str, bytes]:
    """The PTX of `rung` for `arch` and the cubin made of it, both with source lines of the instructions.
    Compiled now; the same code as `compile_rung`'s. Raises as that does."""
    if rung.language:
        return compiling.assembly(rung, arch, defines or {})
    if reason := unavailable():
        raise UnavailableError(f"{rung.label} cannot be compiled: {reason}")
    _, options = _cubin(rung, arch, defines or {})
    with _compiled(rung, arch, [*options, "-lineinfo"], _included(rung)) as (nvrtc, program, _):
        ptx = _text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program)
        cubin = _text(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
        return ptx.decode(errors="replace").rstrip("\0"), cubin


def ptx(rung: registry.Rung, arch: str, defines: Mapping[str, Define] | None = None) -> str:
    """The PTX of `rung` for `arch`, with source lines, from the cache or compiled now; nothing assembles it.
    Raises as `compile_rung`."""
    if rung.language:
        return compiling.assembly(rung, arch, defines or {})[0]
    if reason := unavailable():
        raise UnavailableError(f"{rung.label} cannot be compiled: {reason}")
    cubin, options = _cubin(rung, arch, defines or {})
    path = cubin.with_suffix(".lines.ptx")
    if not path.exists():
        if rung.user and confine.walled():
            text = _of_a_stranger(rung, arch, [*options, "-lineinfo"]).ptx.encode()
        else:
            virtual = [o.replace("-arch=sm_", "-arch=compute_") for o in options]
            with _compiled(rung, arch, [*virtual, "-lineinfo"], _included(rung)) as (nvrtc, program, _):
                text = _text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program)
        text = text.rstrip(b"\0")
        arguments.check_compiled(rung, text.decode(errors="replace"))
        _write(path, text)
    return path.read_text(encoding="utf-8", errors="replace")


def compile_ahead(
    wanted: Iterable[tuple[registry.Rung, Mapping[str, Define]]],
    arch: str,
    threads: int,
    told: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Compile all of these rungs that are not in the cache, in parallel. told: called with (done, total); it
    may raise to end the work. A rung that does not compile is skipped: whoever needs it gets the error."""
    with begin(wanted, arch, threads) as begun:
        begun.wait(told)


def begin(
    wanted: Iterable[tuple[registry.Rung, Mapping[str, Define]]], arch: str, threads: int
) -> compilers.InParallel:
    """Begin with it, and go on: as `compile_ahead`, for whoever waits for one rung at a time."""
    distinct: dict[str, tuple[registry.Rung, Mapping[str, Define]]] = {}
    for rung, defines in wanted:
        distinct.setdefault(repr((rung.path, rung.name, sorted(defines.items()))), (rung, defines))
    texts: dict[tuple[Path, str], list[str]] = {}  # read once a rung, whatever its defines
    missing = []
    for rung, defines in () if unavailable() else distinct.values():
        with contextlib.suppress(KernelError):  # whoever needs it gets the error
            if (of_it := (rung.path, rung.name)) not in texts and not rung.language:
                texts[of_it] = _sources(rung)
            if not _cubin(rung, arch, defines, texts.get(of_it))[0].exists():
                missing.append((rung, defines))
    # To start a process takes as long as one or two kernels. What strangers wrote has one of its own.
    processes = min(threads, -(-len(missing) // A_PROCESS))
    apart = processes >= APART and not confine.walled()
    return compilers.InParallel(compile_rung, missing, arch, processes if apart else threads, apart)


def resources(cubin: Path, function: str = "") -> Resources | None:
    """Registers, shared memory, stack and spills of a kernel of a cubin from `compile_rung`; with "" the
    maximum over its kernels. None: its log is gone, or has no such kernel."""
    try:
        log = cubin.with_suffix(".log").read_text(encoding="utf-8")
    except OSError:
        return None
    parts = {part.split("'", 1)[0]: part for part in log.split(_ENTRY)[1:]}
    if function:
        parts = {name: part for name, part in parts.items() if name == function}
    per_kernel = [used for part in parts.values() if (used := _resources(part))]
    if not per_kernel:
        return None
    return Resources(*(max(values) for values in zip(*map(astuple, per_kernel), strict=True)))


def _resources(log: str) -> Resources | None:
    """What ptxas reports of one kernel and of the functions that it calls."""
    registers = [int(m) for m in _REGISTERS.findall(log)]
    if not registers:
        return None
    spills = [tuple(map(int, m)) for m in _SPILLS.findall(log)]
    frames = [s[0] for s in spills] + [int(m) for m in _STACK.findall(log)]
    return Resources(
        registers=max(registers),
        shared_nbytes=max((int(m) for m in _SHARED.findall(log)), default=0),
        stack_nbytes=max(frames, default=0),
        spill_nbytes=sum(s[1] + s[2] for s in spills),
    )


def _cubin(
    rung: registry.Rung, arch: str, defines: Mapping[str, Define], sources: Sequence[str] | None = None
) -> tuple[Path, list[str]]:
    """The path of the cubin, and the options that it is compiled with. sources: `_sources`, where they are
    known."""
    if rung.needs.get("architecture") == _capability(arch) and not arch.endswith("a"):
        arch += "a"  # with what this architecture alone has
    if rung.language:
        return compiling.where(rung, arch, codes() | dict(rung.defines) | dict(defines)), []
    options = [f"-arch={arch}", *OPTIONS]
    options += [_define(k, v) for k, v in sorted((codes() | dict(rung.defines) | dict(defines)).items())]
    key = hashlib.sha256()
    # To what is asked of those, and of a user's, which were kept without being asked.
    held = "overlaps" * rung.overlaps + "arguments" * (registry.ROOT not in rung.path.parents)
    for part in (repr(_version()), *options, held, rung.path.name, *(sources or _sources(rung))):
        key.update(part.encode() + b"\0")
    name = f"{rung.op}-{rung.number:02d}-{rung.name}-{arch}-{key.hexdigest()[:24]}.cubin"
    return cache_dir() / "cubin" / name, options


def _capability(arch: str) -> tuple[int, int]:
    digits = arch.removeprefix("sm_").rstrip("a")
    return int(digits[:-1]), int(digits[-1])


def _define(name: str, value: Define) -> str:
    if isinstance(value, bool):
        value = int(value)
    return f"-D{name}={value}"


def _version() -> tuple[int, int]:
    """NVRTC's version; loads the library, whose bindings raise exceptions of their own."""
    from cuda.bindings import nvrtc

    result, major, minor = nvrtc.nvrtcVersion()
    _check(nvrtc, result, "asking NVRTC its version")
    return int(major), int(minor)


def _sources(rung: registry.Rung) -> list[str]:
    """The rung's text, the struct of its arguments, and every header of ours that it includes, in a fixed
    order."""
    return [
        rung.source,
        arguments.preamble(rung),
        *(part for header in headers(rung) for part in (header.name, header.text)),
    ]


def _include_dirs(rung: registry.Rung) -> list[Path]:
    """Our headers, then CUDA's as installed by pip (nvidia/*/include), then those of an installed toolkit."""
    dirs = [rung.path.parent, HEADERS]
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec else ():
        dirs += sorted(Path(root).glob("*/include"))
    dirs += [Path(os.environ[n]) / "include" for n in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(n)]
    return [d for found in dirs for d in (found, found / "cccl") if d.is_dir()]


def _compile(rung: registry.Rung, arch: str, options: list[str]) -> tuple[bytes, str]:
    """The cubin and the compiler's log."""
    if rung.user and confine.walled():
        answer = _of_a_stranger(rung, arch, options)
        cubin, ptx, log = answer.cubin, answer.ptx, answer.log
    else:
        cubin, ptx, log = compiled(rung, arch, options, _included(rung))
    arguments.check_compiled(rung, ptx)
    early = rung.overlaps and _capability(arch) >= overlaps.CAPABILITY
    if early and (fault := overlaps.fault(ptx, record_of(rung.op).weight_inputs)):
        raise KernelError(f"{rung.path}: {rung.label} may not overlap the kernel in front: {fault}")
    return cubin, log


def _of_a_stranger(rung: registry.Rung, arch: str, options: list[str]) -> compilers.Answer:
    """As `compiled`, in a process that reads nothing of this user's. Raises KernelError."""
    beside = {header.name: header.text for header in headers(rung)}
    answer = compilers.of_a_stranger(rung, arch, options, _included(rung) | beside)
    if answer.error:
        raise KernelError(answer.error)
    return answer


def _included(rung: registry.Rung) -> dict[str, str]:
    """Headers that are no files, by name. The first is read before the rung's text and not put in front of
    it, so that lines keep their numbers."""
    held = {arguments.FILE: arguments.preamble(rung)}
    return held if any((d / TARGET).is_file() for d in _include_dirs(rung)) else held | {TARGET: _TARGET}


def compiled(
    rung: registry.Rung, arch: str, options: list[str], included: Mapping[str, str]
) -> tuple[bytes, str, str]:
    """The cubin, the PTX and the compiler's log. included: see `_included`. Raises KernelError."""
    with _compiled(rung, arch, options, included) as (nvrtc, program, log):
        ptx = _text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program).decode(errors="replace")
        return _text(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program), ptx, log


@contextlib.contextmanager
def _compiled(
    rung: registry.Rung, arch: str, options: list[str], included: Mapping[str, str]
) -> Iterator[tuple[Any, Any, str]]:
    """(NVRTC, the compiled program, the compiler's log)."""
    from cuda.bindings import nvrtc

    flags = [o.encode() for o in options] + [f"-I{d}".encode() for d in _include_dirs(rung)]
    flags.append(f"--pre-include={arguments.FILE}".encode())
    result, program = nvrtc.nvrtcCreateProgram(
        rung.source.encode(),
        rung.path.name.encode(),
        len(included),
        [text.encode() for text in included.values()],
        [name.encode() for name in included],
    )
    _check(nvrtc, result, f"starting to compile {rung.label}")
    try:
        (result,) = nvrtc.nvrtcCompileProgram(program, len(flags), flags)
        log = _text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program).decode(errors="replace")
        log = log.rstrip("\0 \n")
        if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise KernelError(_failure(rung, arch, log or result.name))
        yield nvrtc, program, log
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _text(size: Any, get: Any, program: Any) -> bytes:
    """The result of a pair of NVRTC calls: one gives the length, the other the bytes."""
    _, nbytes = size(program)
    buffer = bytes(nbytes + 16)  # the bindings write into it; longer than any bytes object Python shares
    get(program, buffer)
    return buffer[:nbytes]


def _failure(rung: registry.Rung, arch: str, log: str) -> str:
    errors = list(_ERROR.finditer(log))
    if not errors:
        if said := [error["text"].strip() for error in _ASSEMBLER_ERROR.finditer(log)]:
            words = re.sub(
                r"0x[0-9a-f]+(?= (?:bytes|max))", lambda at: f"{int(at[0], 16):,}", "; ".join(said)
            )
            return f"{rung.path}: {rung.label} does not compile for {arch}: {words}"
        return f"{rung.path} does not compile for {arch}: {' '.join(log.split())[:400]}"
    first = errors[0]
    where = str(rung.path) if first["file"] == rung.path.name else first["file"]
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    text = f"{first['text'].strip()}{_types(log[first.end() :])}{more}{_hint(first)}"
    return f"{where}:{first['line']}: {rung.label} does not compile for {arch}: {text}"


def _cccl() -> str:
    """The package with CUDA's C++ headers that fit this NVRTC."""
    major, minor = _version()
    return f"nvidia-cuda-cccl{'-cu12' if major == 12 else ''}=={major}.{minor}.*"


def _types(below: str) -> str:
    """Of what an operator or a function was given that takes no such types; "" where the error is another."""
    its = below.partition("\n\n")[0]
    found = re.search(r"^ +((?:operand|argument) types are: .+)$", its, re.M)
    return f" {found[1].strip()}" if found else ""


def _hint(error: re.Match[str]) -> str:
    if at := re.match(r'cannot open source file "(.+?)"', error["text"]):
        name = at[1].removeprefix("c").removesuffix(".h")
        needless = {
            "stdio": "printf",
            "assert": "assert",
            "math": "sqrtf, INFINITY and the like",
            "float": "FLT_MAX and the like",
            "limits": "INT_MAX and the like",
            "stdint": "uint32_t and the like",
        }
        why = f"; {needless[name]} can be used without one" if name in needless else ""
        if at[1].startswith(("cuda/", "cub/", "thrust/", "nv/")):
            return f'; `pip install "{_cccl()}"` brings it'
        return f"; headers of the C and C++ libraries are not there{why}" if "/" not in at[1] else ""
    return ""


def _check(nvrtc: Any, result: Any, doing: str) -> None:
    if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise KernelError(f"NVRTC failed ({result.name}) while {doing}")


def _write(path: Path, content: bytes) -> None:
    """Write a cache file whole or not at all, even if others write the same file."""
    try:
        with atomic_file(path) as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        raise KernelError(
            f"the kernel cache {path.parent} cannot be written ({error.strerror}); "
            "point KERNELSCOPE_CACHE at a folder that can"
        ) from error
