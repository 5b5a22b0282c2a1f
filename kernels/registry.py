"""The ladder read from its folders: every rung of every operator, described by the header of its own file.

A rung is one file, `<device>/<op>/NN_name.cu` or `.py`; `ls` is the table of contents. Its header is TOML:
in a `.cu` file the text of the first comment `/* … */`, in a `.py` file the leading lines behind `#`:

    op = "conv"                  # one of kernels.params.OPS, the folder's name
    rung = 4                     # the number in the file's name
    name = "shared_tiles"        # the name in the file's name
    idea = "One sentence: what this rung does that the one below does not."
    launch = "conv_tiles"        # .cu only, required: the name of a launch shape in kernels/launch.py
    [defines]                    # .cu only: compile-time defines, NAME = number, string or boolean
    TILE = 16
    [needs]                      # what params must be for the rung to apply; absent: anything
    group = 1

The keys of `needs` (NEEDS lists those that fit an operator; a key that fits no field of the op's params is an
error, and so is any key that is not here):

    dtype = ["float32"]          element types it takes; float32 alone where absent
    to = ["float32"]             cast: the target types it takes
    kind = ["max"]               pool, unary, binary: the kinds it takes
    mode = ["constant"]          pad: the modes it takes
    activation = ["none"]        the fused activations it takes, "none" for no activation
    group = 1, dilation = 1, stride = 1, pad = 0, batch = 1
                                 exactly this value, on both axes (pad: on all four sides)
    kernel = 3                   exactly this kernel size on both axes; kernel_max = 7: at most
    bias = false, trans_a = false, trans_b = false, log = false
                                 exactly this flag
    rank_max = 6                 binary, transpose, pad: at most so many axes
    m_max = 8                    gemm, conv: at most so many rows or channels of y
    axis_max = 1024              softmax: at most so many elements along the axis
    size_max = 9                 lrn: at most so many channels in the sum
    multiple_of = {n = 4}        these fields of params must be multiples
    compute_capability = "8.0"   .cu only: the least device that can run it

Helpers that are no rungs begin with `_` (or are `.cuh`). A header outside this vocabulary, a name that does
not agree with its file, or two files with one number or one name raise KernelError naming the file.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kernels.errors import InputError, KernelError
from kernels.params import ACTIVATIONS, BINARY_KINDS, ITEMSIZE, OPS, PAD_MODES, UNARY_KINDS, Params

ROOT = Path(__file__).parent
SUFFIX = {"cuda": ".cu", "cpu": ".py"}
_FILE = re.compile(r"(\d{2,})_([a-z][a-z0-9_]*)")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CAPABILITY = re.compile(r"(\d+)\.(\d+)")
_HEADER_KEYS = {
    "op": str,
    "rung": int,
    "name": str,
    "idea": str,
    "launch": str,
    "defines": dict,
    "needs": dict,
}

_ONE_OF: dict[str, tuple[str, ...]] = {
    "dtype": tuple(ITEMSIZE),
    "to": tuple(ITEMSIZE),
    "kind": ("max", "average", *UNARY_KINDS, *BINARY_KINDS),
    "mode": PAD_MODES,
    "activation": ("none", *ACTIVATIONS),
}
_EXACTLY: dict[str, tuple[str, ...]] = {
    "group": ("group",),
    "dilation": ("dilation_h", "dilation_w"),
    "stride": ("stride_h", "stride_w"),
    "pad": ("pad_top", "pad_left", "pad_bottom", "pad_right"),
    "batch": ("batch",),
    "kernel": ("kh", "kw"),
}
_FLAGS = ("bias", "trans_a", "trans_b", "log")
_AT_MOST: dict[str, tuple[str, ...]] = {
    "kernel_max": ("kh", "kw"),
    "axis_max": ("axis",),
    "size_max": ("size",),
    "rank_max": ("shape",),
    "m_max": ("m",),
}


def _field_names(op: str) -> frozenset[str]:
    return frozenset(f.name for f in fields(OPS[op]))


def _needs_of(op: str) -> tuple[str, ...]:
    """The keys of `needs` that mean something for this operator."""
    types = {f.name: str(f.type) for f in fields(OPS[op])}
    keys = [key for key in _ONE_OF if key in types]
    keys += [key for key, touches in (_EXACTLY | _AT_MOST).items() if set(types).issuperset(touches)]
    keys += [key for key in _FLAGS if types.get(key) == "bool"]
    if "axis" not in types and "inner" not in types and "size_max" in keys:
        keys.remove("size_max")  # the size of an element-wise op is its grid, not what a rung is built for
    return (*keys, "multiple_of", "compute_capability")


NEEDS: Mapping[str, tuple[str, ...]] = MappingProxyType({op: _needs_of(op) for op in OPS})


@dataclass(frozen=True)
class Rung:
    """One kernel file. `source` is its whole text, `number` and `name` those of the file's name; `launch`
    names a launch shape of kernels.launch ("" on the CPU). `user`: it comes from the user's own folder."""

    device: str
    op: str
    number: int
    name: str
    idea: str
    launch: str
    defines: Mapping[str, int | float | str | bool] = field(hash=False)
    needs: Mapping[str, Any] = field(hash=False)
    path: Path
    source: str = field(repr=False)
    user: bool = False

    @property
    def label(self) -> str:
        """The rung in words: "conv 04 shared_tiles"."""
        return f"{self.op} {self.number:02d} {self.name}"

    def refusal(self, params: Params, capability: tuple[int, int] | None = None) -> str | None:
        """Why this rung cannot run `params` (on a device of compute `capability`, if given), or None."""
        if params.op != self.op:
            return f"{self.label} is no kernel for {params.op}"
        for key, value in ({"dtype": ["float32"]} | dict(self.needs)).items():
            if reason := _unmet(key, value, params, capability):
                return f"{self.label} {reason}"
        return None


def _unmet(key: str, value: Any, params: Params, capability: tuple[int, int] | None) -> str | None:
    if key in _ONE_OF:
        given = getattr(params, key) or "none"
        return None if given in value else f"takes {key} {' or '.join(value)}, not {given}"
    if key in _EXACTLY or key in _FLAGS:
        for name in _EXACTLY.get(key, (key,)):
            if getattr(params, name) != value:
                return f"needs {key} = {_words(value)}, and {name} is {_words(getattr(params, name))}"
    elif key in _AT_MOST:
        for name in _AT_MOST[key]:
            given = len(getattr(params, name)) if key == "rank_max" else getattr(params, name)
            if given > value:
                return f"takes {key.removesuffix('_max')} up to {value}, not {given}"
    elif key == "multiple_of":
        for name, divisor in value.items():
            if getattr(params, name) % divisor:
                return f"needs {name} to be a multiple of {divisor}, and it is {getattr(params, name)}"
    elif key == "compute_capability" and capability is not None:
        major, minor = value
        if tuple(capability) < (major, minor):
            have = f"{capability[0]}.{capability[1]}"
            return f"needs compute capability {major}.{minor} or newer, and this device has {have}"
    return None


def _words(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def rungs(device: str, op: str, extra_dirs: Sequence[Path] = ()) -> tuple[Rung, ...]:
    """All rungs of `op` on `device` ("cuda" or "cpu") in order of their numbers, the user's among ours.

    A folder of the user's own holds `NN_name` files of any op, or sub-folders `<op>/` or `<device>/<op>/` of
    them. Files are read again when they change. Raises KernelError naming the file that breaks a rule of this
    module, InputError for an unknown op or a folder that does not exist.
    """
    if op not in OPS:
        raise InputError(f"no operator {op!r} in the ladder{_nearest(op, OPS)}")
    found = _folder(device, op, ROOT / device / op, user=False, mixed=False)
    for extra in extra_dirs:
        folder = Path(extra)
        if not folder.is_dir():
            raise InputError(f"the folder of your own kernels {folder} does not exist")
        found += _folder(device, op, folder, user=True, mixed=True)
        found += _folder(device, op, folder / op, user=True, mixed=False)
        found += _folder(device, op, folder / device / op, user=True, mixed=False)
    found = list({rung.path: rung for rung in found}.values())
    found.sort(key=lambda rung: (rung.number, rung.user))
    _refuse_twins(found)
    return tuple(found)


def find(device: str, op: str, name_or_number: str | int, extra_dirs: Sequence[Path] = ()) -> Rung:
    """The rung called "tiled", 3 or "3". Raises InputError with the nearest name where there is none."""
    ladder = rungs(device, op, extra_dirs)
    wanted = str(name_or_number)
    for rung in ladder:
        if rung.name == wanted or (wanted.isdecimal() and rung.number == int(wanted)):
            return rung
    known = ", ".join(f"{rung.number} {rung.name}" for rung in ladder) or "none"
    hint = _nearest(wanted, [rung.name for rung in ladder])
    raise InputError(f"no rung {wanted!r} of {op} on {device}{hint}; there are: {known}")


def default(device: str, params: Params, capability: tuple[int, int] | None = None) -> Rung:
    """The highest rung of ours that applies. Raises KernelError with every rung's reason where none does."""
    reasons = []
    for rung in reversed(rungs(device, params.op)):
        reason = rung.refusal(params, capability)
        if reason is None:
            return rung
        reasons.append(reason)
    raise KernelError(
        f"no {device} kernel for this {params.op}: " + ("; ".join(reasons) or "there is no rung at all")
    )


def _folder(device: str, op: str, folder: Path, user: bool, mixed: bool) -> list[Rung]:
    """The rungs of one folder; a `mixed` one holds several ops, perhaps Python files that are no rungs."""
    if not folder.is_dir():
        return []
    found = []
    for path in sorted(folder.glob(f"*{SUFFIX[device]}")):
        strange = path.suffix == ".py" and mixed and not path.name[0].isdigit()
        if path.name.startswith("_") or strange:
            continue
        stat = path.stat()
        rung = _read(device, path.resolve(), user, stat.st_mtime_ns, stat.st_size)
        if not mixed and rung.op != op:
            raise KernelError(
                f"{path}: op is {rung.op!r} in the header, but the file lies in the folder {op}/"
            )
        if rung.op == op:
            found.append(rung)
    return found


def _refuse_twins(found: Sequence[Rung]) -> None:
    numbers: dict[int, Rung] = {}
    names: dict[str, Rung] = {}
    free = max((rung.number for rung in found), default=0) + 1
    for rung in found:
        if twin := numbers.get(rung.number):
            raise KernelError(
                f"{rung.path}: rung {rung.number} of {rung.op} is already {twin.path}; {free:02d} is free"
            )
        if twin := names.get(rung.name):
            raise KernelError(f"{rung.path}: the name {rung.name!r} is already taken by {twin.path}")
        numbers[rung.number] = names[rung.name] = rung


@lru_cache(maxsize=1024)
def _read(device: str, path: Path, user: bool, mtime_ns: int, size: int) -> Rung:
    """Parse one file; mtime_ns and size are there so that an edited file is read again."""
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise KernelError(f"{path}: cannot be read as UTF-8 text: {error}") from None
    try:
        header = tomllib.loads(_header_text(path, source))
    except tomllib.TOMLDecodeError as error:
        raise KernelError(f"{path}: the header is not valid TOML: {error}") from None
    _check_keys(path, device, header)
    stem = _FILE.fullmatch(path.stem)
    if stem is None:
        raise KernelError(
            f"{path}: a rung's file is called NN_name{path.suffix}, such as 04_tiled{path.suffix}"
        )
    if (int(stem[1]), stem[2]) != (header["rung"], header["name"]):
        raise KernelError(
            f"{path}: the header says rung {header['rung']} {header['name']!r}, "
            f"the file's name {int(stem[1])} {stem[2]!r}"
        )
    return Rung(
        device=device,
        op=header["op"],
        number=header["rung"],
        name=header["name"],
        idea=header["idea"],
        launch=header.get("launch", ""),
        defines=MappingProxyType(_checked_defines(path, header.get("defines", {}))),
        needs=MappingProxyType(_checked_needs(path, device, header["op"], header.get("needs", {}))),
        path=path,
        source=source,
        user=user,
    )


def _header_text(path: Path, source: str) -> str:
    if path.suffix == ".cu":
        text = source.lstrip("\ufeff \t\r\n")
        end = text.find("*/")
        if not text.startswith("/*") or end < 0:
            raise KernelError(f"{path}: the file must begin with its header, a comment /* … */ of TOML")
        return text[2:end].replace("\r\n", "\n")
    lines = []
    for line in source.lstrip("\ufeff").splitlines():
        if not line.startswith("#"):
            break
        lines.append(line[1:].removeprefix(" "))
    if not lines:
        raise KernelError(f"{path}: the file must begin with its header, lines of TOML behind #")
    return "\n".join(lines)


def _check_keys(path: Path, device: str, header: Mapping[str, Any]) -> None:
    for key, value in header.items():
        if key not in _HEADER_KEYS:
            raise KernelError(f"{path}: unknown key {key!r} in the header{_nearest(key, _HEADER_KEYS)}")
        if type(value) is not _HEADER_KEYS[key]:
            raise KernelError(f"{path}: {key} must be a {_type_words(_HEADER_KEYS[key])}, not {value!r}")
    required = ["op", "rung", "name", "idea"] + (["launch"] if device == "cuda" else [])
    for key in required:
        if not header.get(key) and header.get(key) != 0:
            raise KernelError(f"{path}: the header lacks {key!r}")
    for key in ("launch", "defines"):
        if device != "cuda" and key in header:
            raise KernelError(f"{path}: {key!r} means nothing for a {device} rung")
    if header["op"] not in OPS:
        raise KernelError(f"{path}: unknown op {header['op']!r}{_nearest(header['op'], OPS)}")


def _checked_defines(path: Path, defines: Mapping[str, Any]) -> dict[str, int | float | str | bool]:
    for key, value in defines.items():
        if not _IDENTIFIER.fullmatch(key) or not isinstance(value, int | float | str):
            raise KernelError(
                f"{path}: define {key} = {value!r} is not a name with a number, a string or a boolean"
            )
    return dict(defines)


def _checked_needs(path: Path, device: str, op: str, needs: Mapping[str, Any]) -> dict[str, Any]:
    checked = dict(needs)
    for key, value in needs.items():
        if key not in NEEDS[op] or (key == "compute_capability" and device != "cuda"):
            hint = _nearest(key, NEEDS[op])
            raise KernelError(f"{path}: unknown need {key!r} for {op} on {device}{hint}")
        bad = KernelError(f"{path}: need {key} = {value!r} is not {_expected(key)}")
        if key in _ONE_OF:
            if not isinstance(value, list) or not value or any(v not in _ONE_OF[key] for v in value):
                raise bad
        elif key == "multiple_of":
            names = _field_names(op)
            if not isinstance(value, dict) or any(
                name not in names or type(by) is not int or by < 1 for name, by in value.items()
            ):
                raise bad
        elif key == "compute_capability":
            match = _CAPABILITY.fullmatch(value) if isinstance(value, str) else None
            if match is None:
                raise bad
            checked[key] = (int(match[1]), int(match[2]))
        elif type(value) is not (bool if key in _FLAGS else int):
            raise bad
    return checked


def _expected(key: str) -> str:
    if key in _ONE_OF:
        return f"a list out of {', '.join(_ONE_OF[key])}"
    if key == "multiple_of":
        return "a table of fields of the op's params and the numbers that divide them"
    if key == "compute_capability":
        return 'a string such as "8.0"'
    return "true or false" if key in _FLAGS else "a whole number"


def _type_words(kind: type) -> str:
    return {str: "string", int: "whole number", dict: "table"}[kind]


def _nearest(word: str, known: Any) -> str:
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
