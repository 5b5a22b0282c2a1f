"""What a kernel of a task begins as where the task's folder has no rung to begin from: made of its file and
its reference."""

from __future__ import annotations

import ast
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
_CUDA = """extern "C" __global__ void {op}({pointers}, {struct}) {{
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;  // a thread an element
{written}}}
"""


def first(record: type[TaskParams], device: str) -> Rung:
    """A rung that was never in a file: the reference on the CPU, a frame on CUDA. Raises InputError."""
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
    if reference.is_model(task) or not functions:
        raise InputError(
            f"there is no kernel of {record.op} on cpu to begin from, and its reference is no function in "
            "Python; docs/tasks.md says what a kernel is"
        )
    wanted = [argument.arg for argument in functions[-1].args.args]
    names = [given.name for given in task.spec.input]
    given = ", ".join(f"{one}={one}" if one in names else f"{one}=p.{one}" for one in wanted)
    body = "" if "import numpy as np" in text else "import numpy as np\n\n\n"
    call = f"{name}({given})"
    written = f"output[...] = np.reshape({call}, output.shape)"
    if len(task.spec.output) > 1:
        written = f"for own, right in zip(p.split(output), {call}):\n            own[...] = right"
    return _CPU.format(
        text=body + text.rstrip("\n"),
        names=f"{', '.join(names)}{',' * (len(names) == 1)}",
        written=written,
    )


def _frame(record: type[TaskParams]) -> str:
    spec = record.task.spec

    def pointer(tensor: Tensor, const: str) -> str:
        return f"{const}{TYPES[tensor.type]}* __restrict__ {tensor.name}"

    def count(tensor: Tensor) -> str:
        sides = (_of_struct(str(side), spec.symbols) for side in tensor.shape)
        return " * ".join(side if side.isdecimal() else f"(long long)({side})" for side in sides)

    pointers = [pointer(given, "const ") for given in spec.input]
    pointers += [pointer(output, "") for output in spec.output]
    told = "  // the answer comes here: this one compiles, and is wrong"
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
