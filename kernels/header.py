"""What a rung's header may say, and whether what it says holds for given params.

kernels.registry shows a whole header. Its table `tune` names defines that may be other numbers, and which:
`ladder --tune` looks for the fastest. Its table `prefers` has the keys of `needs`: where they do not hold, an
engine takes the rung only if it was timed to be the fastest, or named. The keys of its table `needs`
(needs_of has those that fit an operator; a key that fits no field of the op's params is an error, and so is
any key that is not here):

    dtype = ["float32"]          element types it takes; float32 alone where absent
    to = ["float32"]             cast: the target types it takes
    kind = ["max"]               pool, lrn_pool, conv_pool, unary, binary, compare, reduce: the kinds it takes
    mode = ["constant"]          pad: the modes it takes
    activation = ["none"]        the fused activations it takes, "none" for no activation
    group = 1, dilation = 1, stride = 1, pad = 0, batch = 1
                                 exactly this value, on both axes (pad: on all four sides)
    side_by_side = 2             pool: windows of so many columns lie side by side and cover whole rows
    kernel = 3                   exactly this kernel size on both axes; kernel_max = 7: at most; conv_pool:
                                 the convolution's
    bias = false, trans_a = false, trans_b = false, log = false
                                 exactly this flag
    stride_max = 4               conv, qconv: at most this stride on both axes
    depthwise = true             conv, qconv: whether each of several channels is a group of its own
    rank_max = 6                 binary, compare, where, transpose, pad: at most so many axes
    m_max = 8                    gemm, conv, conv_pool: at most so many rows or channels of y
    m_min = 9                    gemm, conv, conv_pool: at least so many
    outputs_min = 65536          at least so many elements of y
    weights_max = 16384          conv, conv_pool, gemm: at most so many elements of the weights
    image_max = 16384            conv, conv_pool: at most so many elements of one image
    row_max = 64                 conv: at most so many elements of a row of the window, in all channels of it
    axis_max = 1024              softmax, reduce: at most so many elements along the axis
    size_max = 9                 lrn, lrn_pool: at most so many channels in the sum
    multiple_of = {n = 4}        these fields of params must be multiples
    require = ["n <= 1024"]      comparisons of fields that must hold (kernels.expressions)
    compute_capability = "8.0"   CUDA only: the least device that can run it
    architecture = "9.0"         CUDA only: the one that can, whose own instructions it uses (sm_90a)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from kernels import expressions, layouts, toml
from kernels.errors import KernelError
from kernels.languages.known import languages
from kernels.nearest import did_you_mean
from kernels.ops import ACTIVATIONS, GELUS, ITEMSIZE, METHODS, OPS, Params
from kernels.precision import FP32, NAMES, narrow
from kernels.tasks import is_known, record_of, shipped

Define = int | float | str | bool
LAYOUT_KEYS = ("reads", "writes")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CAPABILITY = re.compile(r"(\d+)\.(\d+)")
_HEADER_KEYS: dict[str, type | tuple[type, ...]] = {
    "op": str,
    "rung": int,
    "name": str,
    "idea": str,
    "launch": (str, list),
    "workspace": (int, str),
    "language": str,
    "priority": int,
    "side": bool,
    "yardstick": bool,
    "precision": (str, list),
    "also": list,
    "method": str,
    "packs": bool,
    "overlaps": bool,
    "reads": list,
    "writes": list,
    "compiled": bool,
    "defines": dict,
    "tune": dict,
    "needs": dict,
    "prefers": dict,
}


# Fields that hold one of several words; _words_of says which an operator has.
_ONE_OF: dict[str, tuple[str, ...]] = {
    "dtype": tuple(ITEMSIZE),
    "to": tuple(ITEMSIZE),
    **{name: words for record in OPS.values() for name, (_, words) in record.enumerated.items()},
    "activation": ("none", *ACTIVATIONS, *GELUS),
}
_EXACTLY: dict[str, tuple[str, ...]] = {
    "group": ("group",),
    "dilation": ("dilation_h", "dilation_w"),
    "stride": ("stride_h", "stride_w"),
    "pad": ("pad_top", "pad_left", "pad_bottom", "pad_right"),
    "batch": ("batch",),
    "kernel": ("kh", "kw"),
    "side_by_side": ("side_by_side",),
}
_FLAGS = ("bias", "depthwise", "trans_a", "trans_b", "log", "packed")
_AT_MOST: dict[str, tuple[str, ...]] = {
    "kernel_max": ("kh", "kw"),
    "stride_max": ("stride_h", "stride_w"),
    "axis_max": ("axis",),
    "size_max": ("size",),
    "rank_max": ("shape",),
    "m_max": ("m",),
    "weights_max": ("weights",),
    "image_max": ("image",),
    "row_max": ("window_row",),
}
_AT_LEAST: dict[str, tuple[str, ...]] = {"m_min": ("m",), "outputs_min": ("outputs",)}
OF_DEVICES = ("compute_capability", "architecture")


def _types(of_op: type[Params]) -> dict[str, str]:
    """What can be asked of an operator's params, fields and properties, and of which type it is."""
    attributes = [member for of in reversed(of_op.__mro__) for member in vars(of).items()]
    properties = {
        name: value.fget.__annotations__["return"]
        for name, value in attributes
        if isinstance(value, property)
    }
    return {**properties, **{f.name: str(f.type) for f in fields(of_op)}}


def needs_of(op: str) -> tuple[str, ...]:
    """The keys of `needs` that mean something for this operator or task."""
    return _needs_of(record_of(op))


@lru_cache(maxsize=256)
def _needs_of(of_op: type[Params]) -> tuple[str, ...]:
    types = _types(of_op)
    keys = [key for key in _ONE_OF if key in types]
    limits = _EXACTLY | _AT_MOST | _AT_LEAST
    keys += [key for key, touches in limits.items() if all(map(types.__contains__, touches))]
    keys += [key for key in _FLAGS if types.get(key) == "bool"]
    if not types.keys() & {"axis", "inner", "kh"} and "size_max" in keys:
        keys.remove("size_max")  # the size of an element-wise op is its grid, not what a rung is built for
    return (*keys, "multiple_of", "require", *OF_DEVICES)


def parse(path: Path, device: str, source: str) -> dict[str, Any]:
    """The checked header of a rung's file, with `defines`, `needs` and `prefers`. Raises KernelError naming
    the file."""
    try:
        header = toml.read(_text(path, source))
    except toml.UnreadableTomlError as error:
        raise KernelError(f"{path}: the header {error}") from None
    _check_keys(path, device, header)
    header["defines"] = _checked_defines(path, header.get("defines", {}))
    header["tune"] = _checked_tune(path, device, header.get("tune", {}), header["defines"])
    header["launch"] = _checked_launch(path, header.get("launch", ""), header.get("workspace", 0))
    for table in ("needs", "prefers"):
        header[table] = _checked_needs(path, device, header["op"], header.get(table, {}))
    return header


def unmet(key: str, value: Any, params: Params, capability: tuple[int, int] | None) -> str | None:
    """Why this need, as `parse` gave it, does not hold for params (on a device of `capability`), or None."""
    if key in _ONE_OF:
        actual = getattr(params, key) or "none"
        return None if actual in value else f"takes {key} {' or '.join(value)}, not {actual}"
    if key in _EXACTLY or key in _FLAGS:
        sides = {name: getattr(params, name) for name in _EXACTLY.get(key, (key,))}
        for name, actual in sides.items():
            if actual != value:
                of = key if len({*sides.values()}) == 1 else name  # of all sides, or of one
                return f"needs {key} = {_words(value)}, and {of} is {_words(actual)}"
    elif key in _AT_MOST:
        for name in _AT_MOST[key]:
            actual = len(getattr(params, name)) if key == "rank_max" else getattr(params, name)
            if actual > value:
                return f"takes {key.removesuffix('_max')} up to {value}, not {actual}"
    elif key in _AT_LEAST:
        for name in _AT_LEAST[key]:
            if (actual := getattr(params, name)) < value:
                return f"takes {key.removesuffix('_min')} from {value} up, not {actual}"
    elif key == "multiple_of":
        for name, divisor in value.items():
            if getattr(params, name) % divisor:
                return f"needs {name} to be a multiple of {divisor}, and it is {getattr(params, name)}"
    elif key == "require":
        for text in value:
            try:
                holds = expressions.value(text, sizes_of(params))
            except expressions.ExpressionError as error:
                return f"needs {text}, which {error}"
            if not holds:
                return f"needs {text}"
    elif key in OF_DEVICES and capability is not None:
        actual, alone = tuple(capability), key == "architecture"
        if actual < value or (alone and actual != value):
            wanted, have = (f"{major}.{minor}" for major, minor in (value, actual))
            how = "itself" if alone else "or newer"
            return f"needs compute capability {wanted} {how}, and this device has {have}"
    return None


def sizes_of(params: Params) -> dict[str, int]:
    """The fields of params that expressions may name."""
    return {f.name: int(value) for f in fields(params) if isinstance(value := getattr(params, f.name), int)}


def _words(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _text(path: Path, source: str) -> str:
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
            raise KernelError(f"{path}: unknown key {key!r} in the header{did_you_mean(key, _HEADER_KEYS)}")
        kinds = _HEADER_KEYS[key]
        kinds = kinds if isinstance(kinds, tuple) else (kinds,)
        if type(value) not in kinds:
            raise KernelError(f"{path}: {key} must be {' or '.join(map(_type_words, kinds))}, not {value!r}")
    required = ["op", "rung", "name", "idea"] + (["launch"] if device == "cuda" else [])
    for key in required:
        if not header.get(key) and header.get(key) != 0:
            raise KernelError(f"{path}: the header lacks {key!r}")
    for key in ("launch", "workspace", "defines"):
        if device != "cuda" and key in header:
            raise KernelError(f"{path}: {key!r} means nothing for a {device} rung")
    if device != "cuda" and "overlaps" in header:
        raise KernelError(f"{path}: 'overlaps' means nothing for a {device} rung")
    if device == "cuda" and "compiled" in header:
        raise KernelError(f"{path}: 'compiled' means nothing for a {device} rung: all of them are")
    _check_language(path, device, header.get("language", ""))
    for key in LAYOUT_KEYS:
        _check_layouts(path, device, key, header)
    _check_precision(path, device, header.get("precision", FP32), header.get("also", []))
    if (method := header.get("method", METHODS[0])) not in METHODS:
        hint = did_you_mean(method, METHODS)
        raise KernelError(f"{path}: method {method!r} is unknown{hint}; there are {', '.join(METHODS)}")
    if not is_known(header["op"]):
        hint = did_you_mean(header["op"], (*OPS, *shipped()))
        own = f"; operators are {', '.join(OPS)}; a task of yours is known by its folder alone: name it "
        own += "(`judge --task DIR`), and keep its kernels in a folder that holds no others"
        raise KernelError(f"{path}: unknown op {header['op']!r}{hint or own}")


def _check_precision(path: Path, device: str, said: str | list[Any], also: list[Any]) -> None:
    """said: one, or a list of those whose types of 16 bits it is compiled for. also: coarser ones, in which
    what is computed in the last of these is fine enough."""
    several = said if isinstance(said, list) else [said]
    for name in (*several, *also):
        if name not in NAMES:
            raise KernelError(f"{path}: precision {name!r} is unknown; there are {', '.join(NAMES)}")
    if isinstance(said, list):
        able = [name for name in NAMES if narrow(name)]
        if device != "cuda" or path.suffix != ".cu" or not said or [n for n in able if n in said] != said:
            raise KernelError(
                f"{path}: precision = {said!r} is no list that a .cu file can have: {able!r}, in this order, "
                "each of which it computes in with the type of 16 bits that half.cuh gives it"
            )
    own = several[-1]
    finer = NAMES[: NAMES.index(own) + 1]
    if wrong := [name for name in also if name in finer]:
        raise KernelError(f"{path}: also = {wrong!r} is no coarser precision than {own!r}")


def _check_language(path: Path, device: str, name: str) -> None:
    if device == "cuda" and path.suffix == ".py":
        if not name:
            raise KernelError(f"{path}: the header lacks 'language'; there are {', '.join(languages())}")
        if name not in languages():
            hint = did_you_mean(name, languages())
            raise KernelError(
                f"{path}: language {name!r} is unknown{hint}; there are {', '.join(languages())}"
            )
    elif name:
        raise KernelError(f"{path}: 'language' is said by a .py file for CUDA alone")


def _check_layouts(path: Path, device: str, key: str, header: Mapping[str, Any]) -> None:
    """How x and y may lie: as ONNX has them first, for that is how a rung alone is given them."""
    if key not in header:
        return
    if device != "cuda":
        raise KernelError(f"{path}: {key!r} means nothing for a {device} rung")
    names, define = header[key], key.upper()
    if not names or names[0] != layouts.PLAIN or any(name not in layouts.LAYOUTS for name in names):
        raise KernelError(
            f"{path}: {key} = {names!r} is no list of layouts that begins with {layouts.PLAIN!r}; there are: "
            f"{', '.join(layouts.LAYOUTS)}"
        )
    if header.get("defines", {}).get(define) != 0:
        raise KernelError(
            f"{path}: {key} needs the define {define} = 0, by which the kernel knows the layout"
        )


# What a launch that a header says itself may say: the kernel's name, and expressions of sizes and defines.
_STAGE: dict[str, tuple[type, ...]] = {
    "kernel": (str,),
    "grid": (int, str, list),
    "block": (int, str, list),
    "shared": (int, str),
    "repeat": (int, str),
}
MOST_STAGES = 64


def _checked_launch(
    path: Path, launch: str | list[Any], workspace: int | str
) -> str | tuple[dict[str, Any], ...]:
    """A launch shape's name, or the kernels in their order."""
    if isinstance(launch, str):
        if workspace:
            raise KernelError(f"{path}: workspace is said beside [[launch]]; a launch shape asks for its own")
        return launch
    if not 1 <= len(launch) <= MOST_STAGES:
        raise KernelError(f"{path}: 1 to {MOST_STAGES} [[launch]] can be said, and here are {len(launch)}")
    for stage in launch:
        if not isinstance(stage, dict):
            raise KernelError(f"{path}: launch is the name of a launch shape, or tables [[launch]]")
        for key, value in stage.items():
            if key not in _STAGE:
                raise KernelError(f"{path}: unknown key {key!r} in [[launch]]{did_you_mean(key, _STAGE)}")
            sides = value if isinstance(value, list) else [value]
            if (
                type(value) not in _STAGE[key]
                or not 1 <= len(sides) <= 3
                or not all(type(v) in (int, str) for v in sides)
            ):
                raise KernelError(
                    f"{path}: {key} = {value!r} in [[launch]] is not a number, an expression of sizes or a "
                    "list of up to three"
                )
        for key in ("grid", "block"):
            if key not in stage:
                raise KernelError(f"{path}: [[launch]] says no {key}")
        if not _IDENTIFIER.fullmatch(stage.get("kernel", "k")):
            raise KernelError(f"{path}: kernel = {stage['kernel']!r} is no name of a function")
    return tuple(launch)


def _checked_defines(path: Path, defines: Mapping[str, Any]) -> dict[str, Define]:
    for key, value in defines.items():
        if not _IDENTIFIER.fullmatch(key) or not isinstance(value, int | float | str):
            raise KernelError(
                f"{path}: define {key} = {value!r} is not a name with a number, a string or a boolean"
            )
    return dict(defines)


def _checked_tune(
    path: Path, device: str, tune: Mapping[str, Any], defines: Mapping[str, Any]
) -> dict[str, tuple[int, ...]]:
    """The values that each tuned define may have, its own among them."""
    if tune and device != "cuda":
        raise KernelError(f"{path}: only CUDA rungs have defines, and so something to tune")
    for key, values in tune.items():
        if key not in defines:
            hint = did_you_mean(key, defines)
            raise KernelError(f"{path}: tune {key} is of no define of this header{hint}")
        if not isinstance(values, list) or not values or any(type(v) is not int or v < 1 for v in values):
            raise KernelError(f"{path}: tune {key} = {values!r} is not a list of whole numbers above 0")
        if defines[key] not in values or len(set(values)) != len(values):
            raise KernelError(f"{path}: tune {key} has to name its own {defines[key]!r}, and each value once")
    return {key: tuple(values) for key, values in tune.items()}


def _checked_needs(path: Path, device: str, op: str, needs: Mapping[str, Any]) -> dict[str, Any]:
    checked = dict(needs)
    for key, value in needs.items():
        if key not in needs_of(op) or (key in OF_DEVICES and device != "cuda"):
            hint = did_you_mean(key, needs_of(op))
            raise KernelError(f"{path}: unknown need {key!r} for {op} on {device}{hint}")
        bad = KernelError(f"{path}: need {key} = {value!r} is not {_expected(op, key)}")
        if key in _ONE_OF:
            if not isinstance(value, list) or not value or any(v not in _words_of(op, key) for v in value):
                raise bad
        elif key == "multiple_of":
            names = {name for name, kind in _types(record_of(op)).items() if kind == "int"}
            if not isinstance(value, dict) or any(
                name not in names or type(by) is not int or by < 1 for name, by in value.items()
            ):
                raise bad
        elif key == "require":
            if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
                raise bad
            named = {name: 1 for name, kind in _types(record_of(op)).items() if kind == "int"}
            for text in value:
                try:
                    expressions.value(text, named)
                except expressions.ExpressionError as error:
                    raise KernelError(f"{path}: need {text!r} {error}") from None
        elif key in OF_DEVICES:
            match = _CAPABILITY.fullmatch(value) if isinstance(value, str) else None
            if match is None:
                raise bad
            checked[key] = (int(match[1]), int(match[2]))
        elif type(value) is not (bool if key in _FLAGS else int):
            raise bad
    return checked


def _words_of(op: str, key: str) -> tuple[str, ...]:
    """What a field of this operator may hold; a pool has other kinds than a sum."""
    enumerated = record_of(op).enumerated
    return enumerated[key][1] if key in enumerated else _ONE_OF[key]


def _expected(op: str, key: str) -> str:
    if key in _ONE_OF:
        return f"a list out of {', '.join(_words_of(op, key))}"
    if key == "multiple_of":
        return "a table of fields of the op's params and the numbers that divide them"
    if key == "require":
        return 'a list of comparisons such as "n <= 1024"'
    if key in OF_DEVICES:
        return 'a string such as "8.0"'
    return "true or false" if key in _FLAGS else "a whole number"


def _type_words(kind: type) -> str:
    words = {str: "a string", int: "a whole number", bool: "true or false", dict: "a table", list: "a list"}
    return words[kind]
