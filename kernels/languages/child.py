"""The isolated process that runs a rung's file and the compiler of its language. It reads one question from
standard input and answers by files.

It may write only its own folder, and has no network (kernels.confine, where the system offers it). It knows
the rung's text, the types of its arguments and the device's compute capability, but no input, no answer and
no clock.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernels import confine, processes

if TYPE_CHECKING:
    pass

CUBIN, PTX, LOG, FACTS, FAILED = "rung.cubin", "rung.ptx", "rung.log", "facts.json", "failed.json"


@dataclass(frozen=True)
class Asked:
    """The question. folder: where all files are written; file: the rung's file there; function: name of its
    kernel. pointers: how many it takes; scalars: (name, type) of each; constants: names of the defines that
    it takes; capability: of the device."""

    folder: Path
    file: Path
    function: str
    language: str
    pointers: int
    scalars: tuple[tuple[str, str], ...]
    constants: tuple[str, ...]
    defines: dict[str, Any]
    capability: tuple[int, int]

    @property
    def arch(self) -> str:
        return f"sm_{self.capability[0]}{self.capability[1]}"


@dataclass(frozen=True)
class Compiled:
    """The result. shared_nbytes: dynamic shared memory; threads: of a block, 0 where the launch may choose;
    hidden: how many more pointers the kernel takes, all null."""

    cubin: bytes
    ptx: str
    log: str
    shared_nbytes: int = 0
    threads: int = 0
    hidden: int = 0


def main() -> int:
    question = json.loads(sys.stdin.read())
    processes.die_with_parent(question.pop("parent"))
    folder = Path(question["folder"])
    request = Asked(**{
        **question, "folder": folder, "file": folder / question["file"],
        "capability": tuple(question["capability"]), "constants": tuple(question["constants"]),
        "scalars": tuple(map(tuple, question["scalars"])),
    })  # fmt: skip
    compiler = importlib.import_module(f"kernels.languages.compilers.{request.language}")
    for name in ("HOME", "TMPDIR", "TRITON_CACHE_DIR", "NUMBA_CACHE_DIR", "CUDA_CACHE_PATH"):
        os.environ[name] = str(folder)
    confine.isolate_network()
    confine.restrict(writable=[str(folder)])
    if confine.walled():
        confine.become_stranger()
    try:
        result: Compiled = compiler.compiled(request)
    except BaseException as error:  # of the rung's own file, too
        question = {
            "text": words(error),
            "line": line_of(error, request.file),
            "language": _trial(compiler, request),
        }
        _write(folder / FAILED, json.dumps(question))
        return 1
    (folder / CUBIN).write_bytes(result.cubin)
    _write(folder / PTX, result.ptx)
    _write(folder / LOG, result.log)
    facts = {"shared_nbytes": result.shared_nbytes, "threads": result.threads, "hidden": result.hidden}
    _write(folder / FACTS, json.dumps(facts))
    return 0


def _trial(compiler: Any, asked: Asked) -> str:
    """Why the language cannot compile even the smallest kernel; "" where it can, and then the error is the
    rung's."""
    file = asked.folder / "trial.py"
    _write(file, compiler.TRIAL)
    try:
        compiler.compiled(replace(asked, file=file, function="trial", pointers=1, scalars=(), constants=()))
    except BaseException as error:
        return words(error)
    return ""


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def loaded(asked: Asked, globals_too: bool = False) -> Any:
    """The function of the rung's file. globals_too: the defines become globals of it."""
    import linecache

    text = asked.file.read_text(encoding="utf-8")
    linecache.checkcache(str(asked.file))
    names: dict[str, Any] = {"__name__": "rung", "__file__": str(asked.file)}
    if globals_too:
        names |= asked.defines
    exec(compile(text, str(asked.file), "exec"), names)
    return names[asked.function]


def words(error: BaseException) -> str:
    """What a compiler says, on one line, without the source that it quotes."""
    text = getattr(error, "error_message", None) or str(error) or type(error).__name__
    lines = [line.strip() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()]
    shortened = [
        line for line in lines if line and not set(line) <= set("^~ ") and not line.startswith("File ")
    ]
    return " ".join(shortened)[:400]


def line_of(error: BaseException, file: Path) -> int:
    """The line of the rung's file that an error is about, 0 where it does not say."""
    if isinstance(error, SyntaxError) and error.lineno:
        return error.lineno
    chain: BaseException | None = error
    while chain is not None:
        node, begins = getattr(chain, "node", None), getattr(chain, "begin_line", None)
        if node is not None and hasattr(node, "lineno"):
            return int(node.lineno) + (int(begins) if begins else 0)
        chain = chain.__cause__
    if numbers := re.findall(rf'{re.escape(file.name)}["\']?[,:] line (\d+)', str(error)):
        return int(numbers[-1])
    if numbers := re.findall(rf"{re.escape(file.name)}[:(](\d+)", str(error)):
        return int(numbers[-1])
    frames = [f.lineno for f in traceback.extract_tb(error.__traceback__) if Path(f.filename) == file]
    return int(frames[-1] or 0) if frames else 0


if __name__ == "__main__":
    sys.exit(main())


def named(asked: Asked, ptx: str, title: str) -> str:
    """The PTX with its one kernel renamed to the rung's function. Raises ValueError where it has no
    kernel."""
    entry = re.search(r"\.entry\s+([\w$]+)\s*\(", ptx)
    if entry is None:
        raise ValueError(f"{title} made no kernel of it")
    ptx = re.sub(rf"(?<![\w$]){re.escape(entry[1])}(?=\W)", asked.function, ptx)
    return ptx.replace(f"{entry[1]}_param_", f"{asked.function}_param_")


def linked(asked: Asked, ptx: str, arch: str) -> tuple[bytes, str]:
    """The cubin, made by nvJitLink without a device, and the assembler's messages. Raises ValueError."""
    from cuda.bindings import nvjitlink as link

    handle = link.create(3, [f"-arch={arch}", "-Xptxas=-v", "-verbose"])
    text = ptx.encode()

    def said(size: Any, get: Any) -> str:
        log = bytearray(size(handle))
        get(handle, log)
        return bytes(log).decode(errors="replace").rstrip("\0")

    try:
        link.add_data(handle, link.InputType.PTX, text, len(text), asked.function)
        link.complete(handle)
    except link.nvJitLinkError as error:
        raise ValueError(said(link.get_error_log_size, link.get_error_log) or str(error)) from None
    cubin = bytearray(link.get_linked_cubin_size(handle))
    link.get_linked_cubin(handle, cubin)
    log = said(link.get_info_log_size, link.get_info_log)
    link.destroy(handle)
    return bytes(cubin), log
