"""CuTe DSL: a thread at a time, on tensors of CUTLASS's layouts; its compiler makes PTX for a device by name,
so that none is needed, and nvJitLink a cubin."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from kernels.languages.child import linked, named
from kernels.languages.known import Language

if TYPE_CHECKING:
    from kernels.languages.child import Asked, Compiled

LANGUAGE = Language("cute-dsl", "CuTe DSL", "nvidia_cutlass_dsl", "nvidia-cutlass-dsl nvidia-nvjitlink")
TRIAL = """import cutlass.cute as cute


def trial(x):
    cute.make_tensor(x, cute.make_layout(1))[0] = 0.0
"""
_ALIGNED = 16  # bytes: all buffers begin on more (engine.rung_session.layout)
_TYPES = {"int32": "Int32", "int64": "Int64", "float32": "Float32"}
# Its compiler takes a kernel by way of the function that launches it; how large a block is stays open there,
# so that nothing is compiled for one size.
_HOST = """import cutlass
import cutlass.cute as cute


@cute.jit
def host({taken}, threads: cutlass.Int32):
    kernel({given}).launch(grid=[1, 1, 1], block=[threads, 1, 1])
"""


def compiled(asked: Asked) -> Compiled:
    from kernels.languages.child import Compiled, loaded

    major, minor = asked.capability
    arch = f"sm_{major}{minor}{'a' if major >= 9 else ''}"  # with what this device alone has
    for name in ("CUTE_DSL_DUMP_DIR", "CUTE_DSL_CACHE_DIR"):
        os.environ[name] = str(asked.folder)
    os.environ["CUTE_DSL_ARCH"] = arch
    import cutlass
    from cutlass import cute
    from cutlass.cute.runtime import make_ptr

    function = loaded(asked, globals_too=True)
    kernel = cute.kernel(function) if _plain(function) else function
    pointer = make_ptr(cutlass.Float32, _ALIGNED, cute.AddressSpace.gmem, assumed_align=_ALIGNED)
    scalars = [getattr(cutlass, _TYPES[kind])(1) for _, kind in asked.scalars]
    host = _host(asked, kernel)
    result: Any = cute.compile(
        host, *[pointer] * asked.pointers, *scalars, cutlass.Int32(32), options="--keep-ptx"
    )
    ptx = named(asked, result.__ptx__, LANGUAGE.title)
    if ".extern .shared" in ptx:
        raise ValueError(
            "it asks its launcher for shared memory (SmemAllocator); "
            "cute.arch.alloc_smem has it in the kernel"
        )
    cubin, log = linked(asked, ptx, arch)
    return Compiled(cubin, ptx, log)


def _plain(found: Any) -> bool:
    """Whether the rung's function is one of Python's, without `@cute.kernel`."""
    return not hasattr(found, "__wrapped__")


def _host(asked: Asked, kernel: Any) -> Any:
    """The function that launches it, in a file of its own: its text is what the compiler reads."""
    names = [f"pointer_{i}" for i in range(asked.pointers)], [name for name, _ in asked.scalars]
    parameters = [f"{name}: cute.Pointer" for name in names[0]]
    parameters += [f"{name}: cutlass.{_TYPES[kind]}" for name, kind in asked.scalars]
    text = _HOST.format(taken=", ".join(parameters), given=", ".join([*names[0], *names[1]]))
    file = asked.folder / f"host_{asked.function}.py"
    file.write_text(text, encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": "host", "__file__": str(file), "kernel": kernel}
    exec(compile(text, str(file), "exec"), namespace)
    return namespace["host"]
