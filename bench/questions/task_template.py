"""What a kernel of a task begins as where the task's folder has no rung to begin from: made of its file and
its reference."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kernels import arguments
from kernels.errors import InputError
from kernels.registry import GIVEN, SUFFIX, Rung
from kernels.tasks import TaskParams, reference
from kernels.tasks.spec import TYPES, Tensor

_CPU = """{text}


def bind(p, inputs, output, workspace):
    def run():
        # The reference itself, in float64: right, and slow. Begin here.
        {names} = (
            array.reshape(shape).astype(np.float64 if array.dtype.kind == "f" else array.dtype)
            for array, shape in zip(inputs, p.input_shapes)
        )
        {written}

    return run
"""
_CPU_FRAME = """import numpy as np


def bind(p, inputs, output, workspace):
    {names} = (array.reshape(shape) for array, shape in zip(inputs, p.input_shapes))

    def run():
        output[...] = 0{here}

    return run
"""
_HERE = "  {mark} the answer comes here: this one {how}, and is wrong"
_CUDA = """extern "C" __global__ void {op}({pointers}, {struct}) {{
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;  // a thread an element
{written}}}
"""


def first(record: type[TaskParams], device: str) -> Rung:
    """A rung that was never in a file: the reference on the CPU, where that is a function, else a frame.
    Raises InputError."""
    task = record.task
    nothing = MappingProxyType[str, Any]({})
    stages: tuple[Mapping[str, Any], ...] = ()
    if device == "cpu":
        source = _of_reference(record)
    else:
        source = "/**/\n" + _frame(record)
        stages = (MappingProxyType({"grid": "ceil(outputs, 256)", "block": 256}),)
    path = Path(task.folder) / f"01_first{SUFFIX[device]}"
    launch = GIVEN if device == "cuda" else ""
    return Rung(device, record.op, 1, "first", "", launch, nothing, nothing, path, source, stages=stages)


def _of_reference(record: type[TaskParams]) -> str:
    task, name = record.task, reference.called(record.task)
    text = task.answers
    try:
        tree = ast.parse(text)
    except (ValueError, SyntaxError) as error:
        raise InputError(f"the reference {task.file} cannot be read: {error}") from error
    functions = [it for it in tree.body if isinstance(it, ast.FunctionDef) and it.name == name]
    names = [given.name for given in task.spec.input]
    listed = f"{', '.join(names)}{',' * (len(names) == 1)}"
    if reference.is_model(task) or not functions:
        return _CPU_FRAME.format(names=f"({listed})", here=_HERE.format(mark="#", how="runs"))
    wanted = [argument.arg for argument in functions[-1].args.args]
    given = ", ".join(f"{one}={one}" if one in names else f"{one}=p.{one}" for one in wanted)
    body = "" if "import numpy as np" in text else "import numpy as np\n\n\n"
    call = f"{name}({given})"
    written = f"output[...] = np.reshape({call}, output.shape)"
    if len(task.spec.output) > 1:
        written = f"for own, right in zip(p.split(output), {call}):\n            own[...] = right"
    return _CPU.format(
        text=body + text.rstrip("\n"),
        names=f"({listed})",
        written=written,
    )


def _frame(record: type[TaskParams]) -> str:
    spec = record.task.spec

    def pointer(tensor: Tensor, const: str) -> str:
        return f"{const}{TYPES[tensor.type]}* __restrict__ {tensor.name}"

    def count(tensor: Tensor) -> str:
        sides = [_of_struct(str(side), spec.symbols) for side in tensor.shape if side != 1] or ["1"]
        if len(sides) == 1:
            return sides[0]
        factors = [side if re.fullmatch(r"[\w.]+", side) else f"({side})" for side in sides]
        return f"(long long){' * '.join(factors)}"

    pointers = [pointer(given, "const ") for given in spec.input]
    pointers += [pointer(output, "") for output in spec.output]
    told = _HERE.format(mark="//", how="compiles")
    written = [f"    if (i < {count(output)}) {output.name}[i] = 0;" for output in spec.output]
    return _CUDA.format(
        op=record.op,
        pointers=", ".join(pointers),
        struct=arguments.parameter(record),
        written="\n".join([written[0] + told, *written[1:], ""]),
    )


def _of_struct(side: str, symbols: tuple[str, ...]) -> str:
    """An expression of sizes as C++ has it."""

    class Named(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            return ast.Name(f"p.{node.id}") if node.id in symbols else node

    text = ast.unparse(Named().visit(ast.parse(side, mode="eval")))
    return text.replace("//", "/")
