"""The file that a user's own kernel begins as: a header that explains itself, and a body that compiles and
passes.

The body is that of the operator's file `_template` beside its rungs, else of its first rung, so that there is
one for every operator.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bench.questions import task_template
from bench.results.store import write_atomically
from kernels import arguments, registry
from kernels.errors import InputError, KernelscopeError
from kernels.header import OF_DEVICES, needs_of, parse
from kernels.launch import SHAPES
from kernels.ops import OPS
from kernels.registry import GIVEN, SUFFIX, Rung
from kernels.tasks import FILE, TaskParams, folder_of, own_folder, record_of

FIRST = 90  # numbers from here on are the user's; the ladder's own stay below

_HEADER = """\
# Your own rung. {opening}
op = "{op}"
# Number and name are those of the file, {file}. From {first} on no number is ever one of the ladder's own.
rung = {number}
name = "{name}"
# One sentence: what this rung does that the one below it does not.
idea = "{idea}"
{launched}# What a problem must be for this rung to apply; else it is refused, in these words.
{need}
{needs}
"""
_OPENING = {
    "cuda": "This comment is its header (TOML); lines like this one are notes and may go.",
    "cpu": "The comment lines at the top are its header (TOML); behind a second # stand notes.",
}
_WIDTH = 100
_CPU_GUIDE = '''"""bind(p, inputs, output, workspace) is called once and returns a function, one pass.

{members}
inputs are NumPy arrays in this order:
{order}
The pass writes all of {output} in place and nothing else. workspace(p), where there is one, says how many
bytes of float32 scratch it wants; pack(p, inputs), where there is one, lays out the weights once.
"""
'''
_CUDA_GUIDE = (
    "The kernel is called {op}. Its arguments are one pointer per input ({order}){absent}, then "
    "{output}, then the struct {struct} with the sizes, the same for every rung of {op}: "
    "{members}. It writes all of its output and nothing else. common.cuh has activate() and index types."
)
_NEED = {"conv": "group = 1", "gemm": "trans_a = false", "pool": 'kind = ["max"]'}


def write(op: str, device: str, folder: Path, name: str = "mine") -> Path:
    """A new file NN_mine.cu or .py in `folder` (made if need be) that compiles and passes. Raises
    InputError."""
    source = _ladder(device, op)
    first = _first(device, op, source)
    folder = Path(folder).expanduser()
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; name a folder")
    taken: list[Rung] = []
    if folder.is_dir():
        try:
            taken = [rung for rung in registry.rungs(device, op, [folder]) if rung.user]
        except KernelscopeError as error:
            raise InputError(f"{folder} holds a file that is no rung: {error}") from error
    number = max([FIRST - 1, *(rung.number for rung in taken)]) + 1
    names = {rung.name for rung in source} | {rung.name for rung in taken}
    chosen, count = name, 1
    while chosen in names:
        count += 1
        chosen = f"{name}_{count}"
    while (path := folder / f"{number:02d}_{chosen}{SUFFIX[device]}").exists():
        number += 1  # of another operator, or no rung at all: it is the user's, and stays
    write_atomically(path, text(_plain(first), number, chosen, path.name).encode())
    return path


def of(rung: Rung) -> str:
    """What the file of a user's rung began as, or would have; "" where there is nothing to begin from."""
    try:
        first = _first(rung.device, rung.op, _ladder(rung.device, rung.op))
    except InputError:
        return ""
    return text(_plain(first), rung.number, rung.name, rung.path.name)


def _ladder(device: str, op: str) -> tuple[Rung, ...]:
    """The rungs of an operator or a task; those of a user's task lie in its folder."""
    own = own_folder(op)
    return registry.rungs(device, op, [] if own is None else [own], broken=[])


def _first(device: str, op: str, ladder: Sequence[Rung]) -> Rung:
    """What a kernel begins from. Raises InputError."""
    own = [rung for rung in ladder if rung.number < FIRST and not rung.language]
    if own:
        return own[0]
    record = record_of(op)
    if not issubclass(record, TaskParams):
        raise InputError(f"there is no rung of {op} on {device} to begin from")
    return task_template.first(record, device)


def text(first: Rung, number: int, name: str, file: str) -> str:
    """The template made from a rung of the operator."""
    op = first.op
    launched = ""
    if first.device == "cuda":
        launched = _note(
            f"How it is launched, one of kernels/launch: {', '.join(_shapes(op))}; or [[launch]] tables, one "
            "a kernel."
        )
        launched += "\n" if first.launch == GIVEN else f'\nlaunch = "{first.launch}"\n'
        if first.workspace:
            launched += "# Bytes that its kernels share, whose pointer they take behind the output's.\n"
            launched += f"workspace = {_toml(first.workspace)}\n"
        for stage in first.stages:
            launched += "[[launch]]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in stage.items())
    if first.defines:
        launched += "[defines]\n" + "".join(
            f"{key} = {_toml(value)}\n" for key, value in first.defines.items()
        )
    filled = _HEADER.format(
        opening=_OPENING[first.device],
        op=op,
        file=file,
        first=FIRST,
        number=number,
        name=name,
        idea="Mine: as the rung it began from, for now.",
        launched=launched,
        need=_need(first),
        needs=_note(f"All that may stand there for {op}: {', '.join(_needs(op, first.device))}."),
    )
    record = record_of(op).__name__
    order = _order(op)
    if first.device == "cuda":
        body = first.source[first.source.index("*/") + 2 :].lstrip("\n")
        guide = _guide(op, order.replace(" // ", " / "))
        return f"/*\n{filled}*/\n{guide}\n{body}"
    header = "".join(f"# {line}\n" for line in filled.splitlines())
    lines = first.source.splitlines(keepends=True)
    while lines and lines[0].startswith("#"):
        lines.pop(0)
    body = re.sub(r'\A\s*""".*?"""\n', "", "".join(lines), count=1, flags=re.DOTALL)
    folder = folder_of(op)
    where = f"kernels/ops/{op}.py" if folder is None else f"the task's {FILE}"
    told = f"p is the record {record} of {where}. It has {members(op)}."
    return header + _CPU_GUIDE.format(members=_note(told, ""), order=order, output=_output(op, "cpu")) + body


def members(op: str) -> str:
    """What a Python kernel finds in its `p`, with the types: "n, c (int), bias (bool)"; and the shapes."""
    told: list[str] = []
    for kind, of in itertools.groupby(dataclasses.fields(record_of(op)), lambda field: field.type):
        told.append(f"{', '.join(field.name for field in of)} ({kind})")
    return ", ".join([*told, "input_shapes and output_shape"])


def _plain(first: Rung) -> Rung:
    """What the template is made from: `_template` in the folder of the rungs, else the first of them."""
    path = first.path.with_name(f"_template{first.path.suffix}")
    if not path.is_file():
        return first
    source = path.read_text(encoding="utf-8")
    header = parse(path, first.device, source)
    return replace(
        first, path=path, source=source, launch=header.get("launch", ""), defines=header["defines"]
    )


def _need(first: Rung) -> str:
    """An example behind its mark; where the operator has no float32, which is what is taken where nothing is
    said, the types themselves."""
    if folder_of(first.op) is not None:
        symbol = dataclasses.fields(record_of(first.op))[0].name
        return f'# [needs]\n# require = ["{symbol} <= 1024"]'
    if "float32" in first.needs.get("dtype", ["float32"]):
        return "# [needs]\n# " + _NEED.get(first.op, 'dtype = ["float32"]')
    types = {key: first.needs[key] for key in ("dtype", "to") if key in first.needs}
    return "[needs]\n" + "\n".join(f"{key} = {json.dumps(value)}" for key, value in types.items())


def _note(text: str, mark: str = "# ") -> str:
    return textwrap.fill(text, _WIDTH, initial_indent=mark, subsequent_indent=mark, break_on_hyphens=False)


def _guide(op: str, order: str) -> str:
    """What a CUDA kernel is told, with what the struct holds: it is in no file that one could look up."""
    record = record_of(op)
    told = _CUDA_GUIDE.format(
        output=_output(op, "cuda"),
        op=op,
        order=order,
        absent="" if issubclass(record, TaskParams) else ", null for one that is absent",
        struct=arguments.struct_name(record),
        members=arguments.listed(record),
    )
    return _note(told, "// ")


def _order(op: str) -> str:
    """The order of the inputs: of a task as its file has it, else as the params' docstring has that of the
    tensors."""
    record = record_of(op)
    if issubclass(record, TaskParams):
        return ", ".join(tensor.words for tensor in record.task.spec.input)
    found = re.search(
        r"Tensors in order: (.*?)(?:\. |\.\Z|\n\s*\n|; y)", record_of(op).__doc__ or "", re.DOTALL
    )
    return " ".join(found[1].split()) if found else "its input"


def _output(op: str, device: str) -> str:
    """What a kernel writes to, in words; of a task with its type and shape."""
    record = record_of(op)
    if not issubclass(record, TaskParams):
        return "the output's" if device == "cuda" else "`output`"
    outputs = record.task.spec.output
    told = ", ".join(tensor.words for tensor in outputs)
    if device == "cuda":
        return f"the output's ({told})" if len(outputs) == 1 else f"one per output ({told})"
    if len(outputs) == 1:
        return f"`output` ({told})"
    names = ", ".join(tensor.name for tensor in outputs)
    return f"`output` ({told}:\n`{names} = p.split(output)`)"


def _shapes(op: str) -> list[str]:
    """Launch shapes for this operator: its own, and those for any."""

    def owner(name: str) -> str:
        return max((known for known in OPS if name.startswith(f"{known}_")), key=len, default="")

    if folder_of(op) is not None:
        return ["one_thread_an_input", "one_thread_an_output"]
    return sorted(name for name in SHAPES if owner(name) == op or name.startswith("one_"))


def _needs(op: str, device: str) -> list[str]:
    """What a header may ask for; of a compute capability only on CUDA."""
    return [key for key in needs_of(op) if device == "cuda" or key not in OF_DEVICES]


def _toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)
