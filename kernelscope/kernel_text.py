"""A kernel as somebody has it (a file, its text, a Python function) → what the judge is told of it."""

from __future__ import annotations

import dis
import inspect
import os
import textwrap
import types
from pathlib import Path
from typing import Any

from kernelscope.running import KernelscopeError

PARAMETERS = ("p", "inputs", "output", "workspace")
FORM = "def bind(p, inputs, output, workspace), which returns a function that computes one pass"


def given(kernel: Any) -> dict[str, str]:
    """The fields `file` and `text` of a request. Raises KernelscopeError where it is neither a path nor a
    text, nor a function that can be taken."""
    if isinstance(kernel, os.PathLike) or (isinstance(kernel, str) and is_path(kernel)):
        return {"file": str(Path(kernel).expanduser().absolute())}
    if isinstance(kernel, str):
        return {"text": kernel}
    if isinstance(kernel, types.FunctionType):
        return {"text": source(kernel), "file": f"{kernel.__name__}.py"}
    raise KernelscopeError(
        f"a kernel is the path of a file, its text, or a Python function, and not of type "
        f"{type(kernel).__name__}; of a compiled or decorated function give the file",
        2,
    )


def is_path(kernel: str) -> bool:
    """Whether a text is the path of a kernel, and not the kernel: it is one line that calls nothing, or ends
    as a kernel's file does."""
    return "\n" not in kernel and ("(" not in kernel or kernel.endswith((".py", ".cu")))


def source(function: types.FunctionType) -> str:
    """The text of a module that has this function as its `bind`. It is taken by its source: what it uses of
    the outside must be modules, which are imported again. Raises KernelscopeError, with the reason, for one
    that cannot be taken alone."""
    name = function.__name__

    def refused(why: str) -> KernelscopeError:
        return KernelscopeError(f"the function {name} cannot be taken by its source: {why}", 2)

    if name == "<lambda>":
        raise refused("it is a lambda; write it with def")
    if "." in function.__qualname__.replace(".<locals>.", ""):
        raise refused("it is a method; write it as a function of its own")
    if function.__closure__:
        held = ", ".join(function.__code__.co_freevars)
        raise refused(f"it uses {held} of the function around it; give it that inside, or write a file")
    if function.__defaults__ or function.__kwdefaults__:
        raise refused("its parameters have default values, whose source is not its own")
    if len(inspect.signature(function).parameters) != len(PARAMETERS):
        raise refused(f"a kernel is {FORM}")
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError) as error:
        raise refused(f"its source is not to be had ({error}); give its text") from error
    if not text.lstrip().startswith("def "):
        raise refused("it is decorated; give the file")
    imports = [_import(used, function.__globals__, refused) for used in sorted(_globals(function.__code__))]
    bound = "" if name == "bind" else f"\n\nbind = {name}\n"
    # What its annotations name is not imported.
    return "".join(["from __future__ import annotations\n\n", *imports, "\n\n", text, bound])


def _globals(code: types.CodeType) -> set[str]:
    """The global names that a function and those in it read."""
    found = {
        str(instruction.argval)
        for instruction in dis.get_instructions(code)
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _globals(constant)
    return found


def _import(name: str, around: dict[str, Any], refused: Any) -> str:
    """The line that brings a global name; "" for one of Python's own."""
    if name not in around:
        return ""  # a builtin, or a mistake that the judge tells
    value = around[name]
    if isinstance(value, types.ModuleType):
        return f"import {value.__name__} as {name}\n"
    raise refused(
        f"it uses {name}, which is defined outside of it; define it inside the function, or write a file"
    )
