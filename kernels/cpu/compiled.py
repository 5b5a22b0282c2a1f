"""Compiled CPU rungs: loops over pointers, as in C, that Numba compiles once and a file keeps.

A rung writes

    @compiled
    def step(a, low, high, scratch): ...

and its `bind` returns Call(step, arguments, …). `a` points to the arguments as 64-bit words: whole numbers,
addresses of arrays (`floats(a[2])`), numbers (`number(a[3])`); the first of them, a[0], says what `low` and
`high` count: images where it is 1, else parts of the step, of the kernel's own choosing; several threads do
different ones side by side. `scratch` are float32 of the thread's own, `workspace(p)` bytes.
kernels.cpu.simd has what such a function may call beyond what Numba compiles. An `@inlined` function can be
called from compiled ones.

What was compiled is found again by the text of the rung, of what it stands on, and by the machine: only
whoever compiles imports Numba, which takes longer than many a run.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import importlib
import importlib.metadata
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kernels import confine, numba_support
from kernels.cache import atomic_file, turn
from kernels.errors import KernelError

Array = np.ndarray[Any, np.dtype[Any]]
ENTRY = "kernelscope_entry"
DIGEST = 32  # bytes of SHA-256
MOST_FILES = 200  # in the cache's folder; the oldest go
_PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
_lock = threading.Lock()


class Compiled:
    """A function step(a, low, high, scratch), compiled when it is first asked for its address."""

    def __init__(
        self, function: Callable[..., Any], compiler: Callable[[Callable[..., Any]], bytes] | None = None
    ) -> None:
        self.function = function
        self.__doc__ = function.__doc__
        self._compiler = compiler or _compiled
        self._address = 0
        self._call: Any = None

    @property
    def address(self) -> int:
        with _lock:
            if not self._address:
                self._address = _address(self.code())
        return self._address

    def code(self) -> bytes:
        """The object file of the compiled function, which defines ENTRY for this machine."""
        source = self.function.__globals__.get("__source__")
        if source is None:
            source = Path(self.function.__code__.co_filename).read_text(encoding="utf-8")
        return object_file(digest(self.function.__name__, source), lambda: self._compiler(self.function))

    def __call__(self, a: int, low: int, high: int, scratch: int = 0) -> None:
        """Run it with these addresses; other Python threads go on meanwhile."""
        if self._call is None:
            self._call = _PROTOTYPE(self.address)
        self._call(a, low, high, scratch)


class Inlined:
    """A function that compiled functions may call."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__doc__ = function.__doc__


@functools.cache
def tiles() -> int:
    """The address of the function of all tiles, which every rung that calls `simd.tile` gets as an
    argument."""
    return _address(tiles_code())


def tiles_code() -> bytes:
    """The object file of that function, which defines ENTRY for this machine."""
    return object_file(digest("tiles", ""), _made_tiles)


def _made_tiles() -> bytes:
    machine_code: bytes = importlib.import_module("kernels.cpu.tiles").compiled(ENTRY, target())
    return machine_code


def compiled(function: Callable[..., Any]) -> Compiled:
    return Compiled(function)


def inlined(function: Callable[..., Any]) -> Any:
    return Inlined(function)


class Call:
    """A step bound to its arrays. arguments: what `a` points to, from a[1] on: whole numbers, floats, arrays
    (passed by address, and kept alive). images: the number of images, 0 for a step without images; parts: the
    number of parts of the kernel's own. Calling it does all of them in this thread."""

    def __init__(
        self,
        step: Compiled,
        arguments: Sequence[int | float | Array],
        workspace: Array,
        images: int,
        parts: int,
        weights_nbytes: int = 0,
    ) -> None:
        self.step, self.images, self.parts = step, images, parts
        self.weights_nbytes = weights_nbytes
        self.workspace, self.arguments = workspace, tuple(arguments)
        self._held = {i: of for i, of in enumerate(arguments, 1) if isinstance(of, np.ndarray)}
        words = [word(of) for of in arguments]
        self.by_parts = np.array([0, *words], np.int64)
        self.by_images = np.array([1, *words], np.int64)
        self._ready = (step, self.by_parts.ctypes.data, 0, parts, workspace.ctypes.data)
        step.address  # noqa: B018 - compiled now, not in the first pass

    def place_of(self, address: int) -> int:
        """The index of the argument that is the array at this address."""
        return next(i for i, of in self._held.items() if of.ctypes.data == address)

    def __call__(self) -> None:
        step, *rest = self._ready
        step(*rest)


def word(of: int | float | Array) -> int:
    """An argument as 64 bits."""
    if isinstance(of, np.ndarray):
        if not of.flags.c_contiguous:
            raise KernelError("a compiled rung takes dense arrays alone")
        return of.ctypes.data
    if isinstance(of, float | np.floating):
        return int(np.float64(of).view(np.int64))
    return int(of)


# --- object files ---


def kept(name: str, make: Callable[[], bytes], most: int = MOST_FILES) -> int:
    """The address of a compiled file of this name; see object_file. Without a name it is made anew."""
    return _address(object_file(name, make, most) if name else make())


def object_file(name: str, make: Callable[[], bytes], most: int = MOST_FILES) -> bytes:
    """The compiled file of this name, which is made if it is missing. The file begins with the digest of the
    rest: a truncated file would crash the process that loads it. most: files that the folder keeps."""
    data = _found(name)
    if not data and confine.forbidden():  # what users' kernels may lock, nobody waits for
        return _made(name, make, most)
    if not data:
        # Several processes of a run begin with the same kernels, at the same moment.
        with turn(numba_support.object_files() / ".making" / name[-1], lambda: bool(_found(name))):
            return _found(name) or _made(name, make, most)
    return data


_told: list[Callable[[], None]] = []


@contextlib.contextmanager
def told(tell: Callable[[], None]) -> Iterator[None]:
    """Meanwhile `tell` is called before each function that has to be compiled, which may take seconds."""
    _told.append(tell)
    try:
        yield
    finally:
        _told.remove(tell)


def _found(name: str) -> bytes:
    return next(filter(None, (_whole(place / f"{name}.o") for place in numba_support.places())), b"")


def _made(name: str, make: Callable[[], bytes], most: int) -> bytes:
    for tell in _told:
        tell()
    data = make()
    path = numba_support.object_files() / f"{name}.o"
    try:
        with atomic_file(path) as file:
            file.write_bytes(hashlib.sha256(data).digest() + data)
        _trim(path.parent, most)
    except OSError:
        pass  # compiled anew the next time
    return data


def _whole(path: Path) -> bytes:
    """What a file keeps; b"" where there is none, or not all of it."""
    try:
        content = path.read_bytes()
    except OSError:
        return b""
    data = content[DIGEST:]
    return data if hashlib.sha256(data).digest() == content[:DIGEST] else b""


def _compiled(function: Callable[..., Any]) -> bytes:
    if reason := numba_support.unavailable():
        raise KernelError(f"{function.__code__.co_filename} cannot be compiled: {reason}")
    machine_code: bytes = importlib.import_module("kernels.cpu.compiling").compiled(function)
    return machine_code


_engines: list[Any] = []  # what was loaded lives as long as the process


def _address(data: bytes) -> int:
    import llvmlite.binding as llvm

    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target())
    engine.add_object_file(llvm.ObjectFileRef.from_data(data))
    engine.finalize_object()
    _engines.append(engine)
    return int(engine.get_function_address(ENTRY))


def target(optimized: int = 3) -> Any:
    """LLVM's compiler for this machine."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    return llvm.Target.from_default_triple().create_target_machine(cpu=cpu, features=features, opt=optimized)


@functools.cache
def _shared() -> bytes:
    """A digest of what all compiled rungs depend on: the machine, the compiler, and the text of what they may
    call."""
    import llvmlite.binding as llvm

    digest = hashlib.sha256(f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}".encode())
    for name in ("numba", "llvmlite"):
        digest.update(importlib.metadata.version(name).encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.digest()


def digest(name: str, source: str) -> str:
    """What is compiled of this text is kept under this name."""
    its = hashlib.sha256(_shared())
    its.update(f"{name}\n{source}".encode())
    return its.hexdigest()[:32]


def _trim(folder: Path, most: int) -> None:
    """Remove the oldest files beyond so many."""
    files = sorted(folder.glob("*.o"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in files[most:]:
        os.unlink(path)
