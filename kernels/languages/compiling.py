"""Rungs in Python compiled to cubins, each in an isolated process, and kept in the cache like those in CUDA
C++.

Beside the cubin lie the assembler's messages (in the same form as NVRTC's; `kernels.nvrtc.resources` reads
them), the PTX, and what the launch has to know of the kernel.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernels import confine, processes
from kernels.cache import atomic_file, cache_dir
from kernels.environment import for_children
from kernels.errors import KernelError, UnavailableError, system_words
from kernels.languages import child
from kernels.languages.known import Language, languages
from kernels.languages.signature import signature
from kernels.ops import codes
from kernels.registry import Rung
from kernels.tasks import record_of

if TYPE_CHECKING:
    from kernels.launch import Launch

WAIT_S = 180.0
MOST_NBYTES = 64 << 20  # of a cubin
_START = "import sys; from kernels.languages import child; sys.exit(child.main())"
# Of the facts of a kernel: bytes of shared memory and threads of a block, pointers that its compiler adds.
_MOST = {"shared_nbytes": 1 << 20, "threads": 1024, "hidden": 64}
# What is kept beside the cubin, under these endings.
_KEPT = {child.LOG: ".log", child.PTX: ".ptx", child.FACTS: ".json", child.CUBIN: ".cubin"}
_MADE_BY = ("compiling.py", "child.py", "compilers")


def compile_rung(rung: Rung, arch: str, defines: Mapping[str, Any]) -> Path:
    """As kernels.nvrtc.compile_rung, for a rung with a language."""
    language = _language(rung)
    if reason := language.unavailable():
        raise UnavailableError(f"{rung.label} {reason}")
    whole = codes() | dict(rung.defines) | dict(defines)
    path = where(rung, arch, whole)
    if not path.exists() or not path.with_suffix(".json").exists():
        files = _made(rung, language, arch, whole)
        for name, ending in _KEPT.items():  # the cubin last: where it is, the others are
            try:
                with atomic_file(path.with_suffix(ending)) as file:
                    file.write_bytes(files[name])
            except OSError as error:
                raise KernelError(
                    f"the kernel cache {path.parent} cannot be written ({system_words(error)}); "
                    "point KERNELSCOPE_CACHE at a folder that can"
                ) from error
    return path


def assembly(rung: Rung, arch: str, defines: Mapping[str, Any]) -> tuple[str, bytes]:
    """As kernels.nvrtc.assembly."""
    path = compile_rung(rung, arch, defines)
    return path.with_suffix(".ptx").read_text(encoding="utf-8", errors="replace"), path.read_bytes()


def where(rung: Rung, arch: str, defines: Mapping[str, Any]) -> Path:
    """The path of its cubin, which depends on all that goes into it."""
    language = _language(rung)
    parts = [
        rung.path.name,
        rung.source,
        arch,
        language.environment.version(),
        json.dumps(dict(defines), sort_keys=True),
    ]
    here = Path(__file__).parent
    for name in _MADE_BY:
        files = sorted((here / name).glob("*.py")) if (here / name).is_dir() else [here / name]
        parts += [file.read_text(encoding="utf-8") for file in files]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]
    return cache_dir() / "cubin" / f"{rung.op}-{rung.number:02d}-{rung.name}-{arch}-{key}.cubin"


def settled(how: Launch, rung: Rung, cubin: Path) -> Launch:
    """The launch completed by what only the compiled kernel knows. Raises KernelError where the two do not
    fit."""
    if not rung.language:
        return how
    if how.before or how.then or how.constant is not None:
        raise KernelError(
            f"{rung.path}: the launch shape {rung.launch} has several stages or constant memory, and a "
            f"rung in {_language(rung).title} is one kernel"
        )
    pointers = signature(rung.path, rung.op, rung.source).pointers
    pointer_count = record_of(rung.op).most_inputs + (1 if how.workspace_nbytes is None else 2)
    if len(pointers) != pointer_count:
        raise KernelError(
            f"{rung.path}: {rung.op} takes {pointer_count} pointers with the launch shape {rung.launch}, and "
            f"{', '.join(pointers)} stand there; what follows them is named as the scalars are"
        )
    facts = json.loads(cubin.with_suffix(".json").read_text(encoding="utf-8"))
    threads = how.block[0] * how.block[1] * how.block[2]
    if facts["threads"] not in (0, threads):
        raise KernelError(
            f"{rung.path}: its launch shape {rung.launch} starts blocks of {threads} threads, and it is "
            f"compiled for {facts['threads']}; {_language(rung).warps} is to be {threads / 32:g}"
        )
    return replace(how, shared_nbytes=how.shared_nbytes + facts["shared_nbytes"], hidden=facts["hidden"])


def _language(rung: Rung) -> Language:
    return languages()[rung.language]


def _made(rung: Rung, language: Language, arch: str, defines: Mapping[str, Any]) -> dict[str, bytes]:
    """The files of the isolated process, by name."""
    takes = signature(rung.path, rung.op, rung.source)
    if lacking := [name for name in takes.constants if name not in defines]:
        raise KernelError(
            f"{rung.path}: no define is called {lacking[0]}, which {rung.op} takes as a constant"
        )
    digits = arch.removeprefix("sm_").rstrip("a")
    with tempfile.TemporaryDirectory(prefix="kernelscope-") as name:
        folder = Path(name).resolve()
        (folder / rung.path.name).write_text(rung.source, encoding="utf-8")
        if confine.walled() and (uid := confine.stranger()):
            os.chown(folder, uid, uid)
        question = {
            "folder": str(folder),
            "file": rung.path.name,
            "function": rung.op,
            "parent": os.getpid(),
            "language": language.name.replace("-", "_"),
            "pointers": len(takes.pointers),
            "scalars": takes.scalars,
            "constants": takes.constants,
            "defines": dict(defines),
            "capability": (int(digits[:-1]), int(digits[-1])),
        }
        output = _run(rung, language, folder, json.dumps(question))
        if (failed := folder / child.FAILED).is_file():
            failure = _told(rung, failed, text=str, line=int, language=str)
            if unusable := failure["language"]:
                raise UnavailableError(
                    f"{rung.label} cannot be compiled here: {language.title} does not compile the least "
                    f"kernel there is ({unusable}); other versions of it may: {language.environment.get}"
                )
            line = f":{failure['line']}" if failure["line"] else ""
            reason = f"{rung.label} does not compile for {arch}: {failure['text']}"
            raise KernelError(f"{rung.path}{line}: {reason}")
        try:
            files = {file: _read(folder / file) for file in _KEPT}
            _told(rung, folder / child.FACTS, **dict.fromkeys(_MOST, int))
            return files
        except OSError:
            raise KernelError(
                f"{rung.path}: {rung.label} does not compile for {arch}: {language.title} said nothing"
                f"{': ' + output if output else ''}"
            ) from None


def _told(rung: Rung, path: Path, **kinds: type) -> dict[str, Any]:
    """The facts in a file of the isolated process. The rung may have written the file, so names, types and
    ranges are checked. Raises KernelError."""
    try:
        facts = json.loads(_read(path))
    except (ValueError, RecursionError):
        facts = None
    if not isinstance(facts, dict) or any(type(facts.get(name)) is not kind for name, kind in kinds.items()):
        raise KernelError(
            f"{rung.path}: {rung.label} wrote {path.name} itself: that is for its compiler to do"
        )
    for name in kinds.keys() & _MOST.keys():
        if not 0 <= facts[name] <= _MOST[name]:
            what = f"{rung.label} is said to have {name} = {facts[name]:,}"
            raise KernelError(f"{rung.path}: {what}, and {_MOST[name]:,} is the most")
    return facts


def _read(path: Path) -> bytes:
    """The content of a file that an untrusted process has written."""
    if path.is_symlink() or not path.is_file():
        raise FileNotFoundError(path)
    with path.open("rb") as stream:
        return stream.read(MOST_NBYTES)


def _run(rung: Rung, language: Language, folder: Path, asked: str) -> str:
    """Run the isolated process; the last line of its output. It ends with all that it started, except a
    process that has made a session of its own."""
    python = language.environment.interpreter()
    with subprocess.Popen(
        [python, "-P", "-c", _START],
        env=for_children() | {"PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        cwd=folder,
        start_new_session=True,
    ) as process:
        processes.OURS.add(process.pid)
        try:
            _, output = process.communicate(asked, timeout=WAIT_S)
        except subprocess.TimeoutExpired:
            raise KernelError(
                f"{rung.path}: {rung.label} was not compiled by {language.title} within {WAIT_S:.0f} s"
            ) from None
        finally:
            if process.poll() is None:
                processes.kill(process.pid)
            elif os.name == "posix":  # what it left behind in its group
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
    processes.OURS.discard(process.pid)  # another may have the number from now on
    lines = output.strip().splitlines()
    return lines[-1][:300] if lines else ""
