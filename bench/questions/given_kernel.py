"""A kernel that somebody hands over, as a file or as text → a file that is a rung of a folder."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from bench.questions.ladder_plan import op_of
from bench.questions.rung_template import FIRST
from kernels import registry, tasks
from kernels.errors import InputError, KernelError, system_words
from kernels.header import parse
from kernels.registry import SUFFIXES, Rung

NAME = "mine"  # of a kernel that says no name
MOST_NBYTES = 4 << 20  # of a kernel's text
_FILE = re.compile(r"\d{2,}_[a-z][a-z0-9_]*")  # without the suffix, as kernels.registry wants it
_HAS_HEADER = re.compile(r"\A(?:\ufeff|#[^\n]*\n)*#[ \t]*(?:op|rung|name|idea|language)[ \t]*=")
_CUDA = re.compile(r"\A\s*/\*|__global__")


@dataclass(frozen=True)
class GivenKernel:
    """text: of the file, where that is not to be read; file: its path, or only its name, which tells what it
    is written in (a name that ends on nothing: what the text looks like)."""

    text: str | None = None
    file: str = ""


def placed(kernel: GivenKernel, folder: Path, op: str = "", device: str = "") -> Rung:
    """The rung that a kernel is. It stays where it lies if its file is called as a rung's, so that headers
    beside it are found; else it is written into `folder`. op, device: as asked for ("": as the kernel says).

    Raises InputError where what is asked for does not go together, KernelError where the kernel is no rung.
    """
    path = Path(kernel.file) if kernel.file else Path()
    if kernel.file and kernel.text is None:
        tasks.learn([path.absolute().parent])
    if op:
        op_of(op)
    text = kernel.text if kernel.text is not None else _read(path)
    suffix = path.suffix or (".cu" if _CUDA.search(text) else ".py")
    if suffix not in {known for suffixes in SUFFIXES.values() for known in suffixes}:
        raise InputError(f"{path.name} is no kernel: it is a .cu or a .py file")
    where = "cuda" if registry.is_rung_file("cuda", f"kernel{suffix}", text) else "cpu"
    if device not in ("", where):
        raise InputError(f"the kernel is written for {where}; leave the device {device} away")
    if suffix == ".py" and not _HAS_HEADER.match(text):
        if not op:
            raise InputError(
                "the kernel has no header that says of which operator it is; name the operator, or begin it "
                'with the lines `# op = "conv"`, `# rung = 90`, `# name = "mine"` and `# idea = "…"`'
            )
        text = f'# op = "{op}"\n# rung = {FIRST}\n# name = "{NAME}"\n# idea = "Judged alone."\n{text}'
        at = folder / f"{FIRST}_{NAME}{suffix}"
    elif kernel.text is None and _FILE.fullmatch(path.stem):
        return _found(path.absolute(), where, op)
    else:
        header = parse(Path(path.name or f"{NAME}{suffix}"), where, text)
        at = folder / f"{header['rung']:02d}_{header['name']}{suffix}"
    at.write_text(text, encoding="utf-8")
    return _found(at, where, op)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_NBYTES + 1)
        if len(data) > MOST_NBYTES:
            raise InputError(f"the kernel {path} is larger than {MOST_NBYTES:,} bytes")
        return data.decode("utf-8")
    except OSError as error:
        raise InputError(f"the kernel {path} cannot be read: {system_words(error)}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"the kernel {path} is no text in UTF-8") from error


def _found(path: Path, device: str, op: str) -> Rung:
    """The rung of a file. Raises as `placed` does."""
    header = parse(path, device, path.read_text(encoding="utf-8"))
    if op not in ("", header["op"]):
        raise InputError(f"the kernel is of {header['op']}, as its header says, and not of {op}")
    broken: list[KernelError] = []
    ladder = registry.rungs(device, header["op"], [path.parent], broken)
    for rung in ladder:
        if rung.path == path.resolve():
            return rung
    told = [error for error in broken if str(error).startswith(str(path.resolve()))]
    raise told[0] if told else KernelError(f"{path} is no rung of {header['op']} on {device}")
