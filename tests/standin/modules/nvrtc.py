"""`cuda.bindings.nvrtc` for a stand-in device: what it makes of a file is its kernels' names and arguments.
As PTX it gives their names, and whether the file waits for the kernel in front.

Compiling hundreds of rungs for real takes minutes; whether they compile is what tests.kernels asks. Its
version is its own, so that nothing of it is taken for a real compiler's in a cache that both use.
"""

from __future__ import annotations

import ctypes
import enum
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernels.precision import defines as type_defines
from kernels.precision import narrow
from tests.standin import code, net
from tests.standin.code import Module

VERSION = (13, 9999)
TWINS = Path(__file__).parents[1] / "twins"
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
ARCHITECTURES = [75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121]


class nvrtcResult(enum.IntEnum):
    NVRTC_SUCCESS = 0
    NVRTC_ERROR_COMPILATION = 6


_OK = nvrtcResult.NVRTC_SUCCESS


@dataclass
class _Program:
    source: str
    name: str
    headers: dict[str, str]
    cubin: bytes = b""
    ptx: bytes = b""
    log: bytes = b"\0"


def nvrtcVersion() -> tuple[nvrtcResult, int, int]:
    return (_OK, *VERSION)


def nvrtcGetSupportedArchs() -> tuple[nvrtcResult, list[int]]:
    return _OK, ARCHITECTURES


def nvrtcCreateProgram(
    source: bytes, name: bytes, count: int = 0, headers: Sequence[bytes] = (), names: Sequence[bytes] = ()
) -> tuple[nvrtcResult, _Program]:
    assert count == len(headers) == len(names)
    given = {to.decode(): text.decode() for to, text in zip(names, headers, strict=True)}
    return _OK, _Program(source.decode(), name.decode(), given)


def _precision(said: str | list[str], defines: Mapping[str, str]) -> str:
    """Of several the one whose type the defines give."""
    told = {name: str(value) for name, value in type_defines("bfloat16").items()}
    if isinstance(said, str):
        return said
    brief = told.items() <= defines.items()
    return next(name for name in said if (narrow(name) == "bfloat16") == brief)


def nvrtcCompileProgram(program: _Program, count: int, flags: list[bytes]) -> tuple[nvrtcResult]:
    words = [flag.decode() for flag in flags]
    arch = next(word.removeprefix("-arch=") for word in words if word.startswith("-arch="))
    folders = [Path(word.removeprefix("-I")) for word in words if word.startswith("-I")]
    defines = dict(word.removeprefix("-D").split("=", 1) for word in words if word.startswith("-D"))
    header = _header(program.source)
    texts, missing = _texts(program.source, folders)
    needed = header.get("needs", {}).get("compute_capability", "0.0")
    if missing:
        line = next(i for i, text in enumerate(program.source.splitlines(), 1) if missing in text)
        return _failed(program, line, f'cannot open source file "{missing}"')
    if int(arch.removeprefix("sm_").rstrip("a")) < int(needed.replace(".", "")):
        return _failed(program, 1, f"Feature requires .target sm_{needed.replace('.', '')} or higher")
    first = [word.removeprefix("--pre-include=") for word in words if word.startswith("--pre-include=")]
    texts = [*(program.headers[name] for name in first), *texts]
    module = Module(
        file=program.name,
        arch=arch,
        op=header.get("op", "net" if program.name == net.FILE else "probe"),
        precision=_precision(header.get("precision", "fp32"), defines),
        launch=header.get("launch", ""),
        packs=header.get("packs", False),
        twin=_twin(program.name, folders),
        known=True,
        functions=code.functions(texts),
        constants=code.constants(texts, defines),
        defines=defines,
    )
    lines = []
    for name in module.functions:
        lines += [
            f"ptxas info    : Compiling entry function '{name}' for '{arch}'",
            f"ptxas info    : Function properties for {name}",
            "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads",
            "ptxas info    : Used 32 registers, used 1 barriers, 4096 bytes smem",
        ]
    program.log, program.cubin = "\n".join(lines).encode() + b"\0", module.to_bytes()
    wait = "griddepcontrol.wait;" if any("wait_for_previous();" in text for text in texts) else "ret;"
    program.ptx = "".join(f".entry {name}()\n{{\n{wait}\n}}\n" for name in module.functions).encode() + b"\0"
    return (_OK,)


def _twin(name: str, folders: list[Path]) -> str:
    """What a file does that does something else than its operator: a rung of the CPU's of the same name."""
    found = (folder / name.replace(".cu", ".py") for folder in (*folders, TWINS))
    return next((str(path) for path in found if path.is_file()), "")


def _failed(program: _Program, line: int, text: str) -> tuple[nvrtcResult]:
    program.log = f"{program.name}({line}): error: {text}\n\0".encode()
    return (nvrtcResult.NVRTC_ERROR_COMPILATION,)


def _header(source: str) -> dict[str, Any]:
    text = source.lstrip("\ufeff \t\r\n")
    if not text.startswith("/*") or "idea" not in text:  # a probe, which has none
        return {}
    return tomllib.loads(text[2 : text.index("*/")].replace("\r\n", "\n"))


def _texts(source: str, folders: list[Path]) -> tuple[list[str], str]:
    """The file and all that it includes of ours; and what is not to be found."""
    texts, seen = [source], set[str]()
    for text in texts:
        for name in _INCLUDE.findall(text):
            found = next((folder / name for folder in folders if (folder / name).is_file()), None)
            if found is None:
                return texts, name
            if name not in seen:
                seen.add(name)
                texts.append(found.read_text(encoding="utf-8"))
    return texts, ""


def nvrtcGetProgramLogSize(program: _Program) -> tuple[nvrtcResult, int]:
    return _OK, len(program.log)


def nvrtcGetProgramLog(program: _Program, buffer: bytes) -> tuple[nvrtcResult]:
    return _fill(buffer, program.log)


def nvrtcGetCUBINSize(program: _Program) -> tuple[nvrtcResult, int]:
    return _OK, len(program.cubin)


def nvrtcGetCUBIN(program: _Program, buffer: bytes) -> tuple[nvrtcResult]:
    return _fill(buffer, program.cubin)


def nvrtcGetPTXSize(program: _Program) -> tuple[nvrtcResult, int]:
    return _OK, len(program.ptx)


def nvrtcGetPTX(program: _Program, buffer: bytes) -> tuple[nvrtcResult]:
    return _fill(buffer, program.ptx)


def nvrtcDestroyProgram(program: _Program) -> tuple[nvrtcResult]:
    return (_OK,)


def _fill(buffer: bytes, content: bytes) -> tuple[nvrtcResult]:
    """Into the caller's bytes, as the bindings do it."""
    ctypes.memmove(buffer, content, len(content))
    return (_OK,)
