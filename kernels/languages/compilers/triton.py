"""Triton: a program a block, on tiles; compiled for a device by name, so that none is needed."""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import re
import warnings
from typing import TYPE_CHECKING, Any

from kernels.languages.known import Language

if TYPE_CHECKING:
    from kernels.languages.child import Asked, Compiled

LANGUAGE = Language("triton", "Triton", "triton", "triton", warps="WARPS")
TRIAL = "import triton.language as tl\n\n\ndef trial(x):\n    tl.store(x, 0.0)\n"
STAGES = "STAGES"  # of the pipeline that loads ahead
_TYPES = {"int32": "i32", "int64": "i64", "float32": "fp32"}
_ALIGNED = 16  # bytes: all buffers begin on more (engine.rung_session.layout)


def compiled(asked: Asked) -> Compiled:
    from kernels.languages.child import Compiled, loaded

    os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"  # as in CUDA C++
    os.environ["TRITON_DUMP_PTXAS_LOG"] = "1"  # what a thread takes
    warnings.simplefilter("ignore")
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    function = loaded(asked)
    kernel = function if isinstance(function, triton.JITFunction) else triton.jit(function)
    signature = dict.fromkeys(_names(asked)[: asked.pointers], "*fp32")
    signature |= {name: _TYPES[kind] for name, kind in asked.scalars}
    signature |= dict.fromkeys(asked.constants, "constexpr")
    constants = {name: asked.defines[name] for name in asked.constants}
    places = [(i,) for i in range(asked.pointers)]
    major, minor = asked.capability
    source = ASTSource(
        fn=kernel,
        signature=signature,
        constexprs=constants,
        attrs={at: [["tt.divisibility", _ALIGNED]] for at in places},
    )
    options = {
        "num_warps": int(asked.defines.get(LANGUAGE.warps, 4)),
        "num_stages": int(asked.defines.get(STAGES, 3)),
    }
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        result: Any = triton.compile(
            source, target=GPUTarget("cuda", 10 * major + minor, 32), options=options
        )
    ptx = result.asm["ptx"]
    parameters = re.search(r"\.entry\s+\w+\(([^)]*)\)", ptx)
    count = parameters[1].count(".param") if parameters else 0
    hidden = count - asked.pointers - len(asked.scalars)
    if (
        result.metadata.name != asked.function
        or hidden < 0
        or getattr(result.metadata, "global_scratch_size", 0)
    ):
        raise ValueError("this Triton compiles it into a kernel that only its own launcher can start")
    return Compiled(
        result.asm["cubin"],
        ptx,
        output.getvalue(),
        shared_nbytes=result.metadata.shared,
        threads=32 * result.metadata.num_warps,
        hidden=hidden,
    )


def _names(asked: Asked) -> list[str]:
    from kernels.languages.child import loaded

    function = loaded(asked)
    return list(inspect.signature(getattr(function, "fn", function)).parameters)
