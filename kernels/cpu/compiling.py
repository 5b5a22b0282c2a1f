"""Numba's compiler, made to give bytes: a function step(a, low, high, scratch) as an object file for this
machine."""

from __future__ import annotations

import contextlib
import functools
import re
import types
from collections.abc import Callable, Iterator
from typing import Any

import llvmlite.binding as llvm
import numba
from numba.core import codegen, compiler, compiler_lock
from numba.core.cpu_options import FastMathOptions
from numba.core.errors import NumbaError
from numba.core.registry import cpu_target

from kernels.cpu.compiled import ENTRY, Inlined
from kernels.cpu.intrinsics import STEP, is_x86
from kernels.errors import KernelError

_PAINT = re.compile(r"\x1b\[[0-9;]*m")
# What the loader finds in every process: C's own library.
FROM_C = frozenset(
    {
        "memcpy",
        "memmove",
        "memset",
        "exp",
        "expf",
        "log",
        "logf",
        "pow",
        "powf",
        "tanhf",
        "sin",
        "cos",
        "sqrtf",
        "fmaf",
        "sched_yield",
        "syscall",
    }
)
# Products and sums may be fused, and sums be added up in the order of vectors: the same in every run. NaN and
# infinity stay what they are.
FASTMATH = {"contract", "reassoc", "nsz"}


class _Unrun(codegen.JITCodeLibrary):
    """Code that no call in this process will run: Numba would optimize each function by itself and make
    machine code of it, and again of all that it calls, as soon as it is compiled. It is done once, with all
    that it calls (`optimize`)."""

    def optimize(self) -> None:
        super()._optimize_final_module()

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


class _Files(codegen.JITCPUCodegen):
    _library_class = _Unrun

    def set_env(self, env_name: str, env: object) -> None:
        """There is no machine code to be told of it."""

    def _customize_tm_features(self) -> str:
        """Loops become vectors as wide as the machine's, as tiles are; LLVM would halve them on some."""
        features: str = super()._customize_tm_features()
        return f"{features},-prefer-256-bit" if is_x86() else features


@functools.cache
def _files() -> _Files:
    return _Files("kernelscope")


@contextlib.contextmanager
def _for_a_file() -> Iterator[_Files]:
    """Numba, which has one place for all that a process compiles, compiles for a file meanwhile. Who has
    functions of Numba's own compiled beside, as a student's kernel may, waits for Numba's lock."""
    context = cpu_target.target_context
    with compiler_lock.global_compiler_lock:
        before, context._internal_codegen = context._internal_codegen, _files()
        try:
            yield _files()
        finally:
            context._internal_codegen = before


def compiled(function: Callable[..., None]) -> bytes:
    """Raises KernelError naming file and line."""
    flags: Any = compiler.Flags()
    flags.no_cpython_wrapper = True
    flags.no_cfunc_wrapper = True
    flags.error_model = "numpy"
    flags.nrt = False
    flags.fastmath = FastMathOptions(FASTMATH)
    file = function.__code__.co_filename
    try:
        with _for_a_file() as files:
            result = compiler.compile_extra(
                cpu_target.typing_context,
                cpu_target.target_context,
                _with_inlined(function),
                STEP.args,
                STEP.return_type,
                flags,
                {},
            )
    except NumbaError as error:
        line = getattr(getattr(error, "loc", None), "line", function.__code__.co_firstlineno)
        lines = [_PAINT.sub("", s).strip() for s in str(error).splitlines()]
        lines = [s for s in lines if s and not s.startswith(("Failed in", "File ", "During:"))]
        reason = lines[0] if lines else type(error).__name__
        raise KernelError(f"{file}:{line}: {function.__name__} does not compile: {reason}") from None
    result.library.optimize()
    module = llvm.parse_assembly(result.library.get_llvm_str())
    module.link_in(llvm.parse_assembly(_entry(result.fndesc.llvm_func_name)))
    for f in module.functions:
        if f.is_declaration and not f.name.startswith("llvm.") and f.name not in FROM_C:
            raise KernelError(
                f"{file}:{function.__code__.co_firstlineno}: {function.__name__} calls {f.name}, which a "
                "compiled rung cannot: it may use numbers and pointers, and what kernels.cpu.simd has"
            )
    return bytes(files._tm.emit_object(module))


@functools.cache
def _inlined(of: Inlined) -> Any:
    options = {"error_model": "numpy", "fastmath": FASTMATH, "inline": "never"}
    unwrapped = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # Python never calls it
    return numba.njit(**options, **unwrapped)(_with_inlined(of.function))


def _with_inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, whose names of `@inlined` functions mean what Numba makes of those."""
    assert isinstance(function, types.FunctionType)
    used = {name: function.__globals__.get(name) for name in function.__code__.co_names}
    names = {name: _inlined(of) for name, of in used.items() if isinstance(of, Inlined)}
    return types.FunctionType(
        function.__code__,
        {**function.__globals__, **names},
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )


def _entry(inner: str) -> str:
    """A function of C's own arguments around Numba's, which also says of errors what nobody asks."""
    name = f'@"{inner}"'
    return f"""
declare i32 {name}(ptr, ptr, ptr, i64, i64, ptr)
define void @{ENTRY}(ptr %a, i64 %low, i64 %high, ptr %scratch) {{
  %result = alloca ptr
  %error = alloca ptr
  %said = call i32 {name}(ptr %result, ptr %error, ptr %a, i64 %low, i64 %high, ptr %scratch)
  ret void
}}
"""
