"""The operators of the ladder, one file each: the folder is the list.

A file here (its name not starting with "_") defines the record of one operator, a frozen dataclass on
`Params`, whose docstring says its tensors in order, and under whose `op` its rungs are found. `Params` says
what every operator has to say of itself; a record that leaves something out is refused here.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from dataclasses import fields
from types import MappingProxyType, ModuleType

from kernels.ops._base import (
    ACTIVATIONS,
    EXPONENTS,
    FLOATS,
    FLOATS8,
    GELUS,
    ITEMSIZE,
    MAX_RANK,
    MEMBER_TYPES,
    METHODS,
    WIDER,
    Division,
    Params,
    Scalar,
    Shape,
    members,
)
from kernels.ops._windows import sized

__all__ = [
    "ACTIVATIONS",
    "EXPONENTS",
    "FLOATS",
    "FLOATS8",
    "GELUS",
    "ITEMSIZE",
    "MAX_RANK",
    "MEMBER_TYPES",
    "OPS",
    "METHODS",
    "Division",
    "Params",
    "Scalar",
    "Shape",
    "WIDER",
    "code",
    "codes",
    "members",
    "read",
    "sized",
]


def read(package: str, paths: Iterable[str]) -> Mapping[str, type[Params]]:
    """The records of a folder by their `op`. Raises TypeError, one sentence, for a file that has none or
    several, and for a record that lacks what every operator has."""
    records: dict[str, type[Params]] = {}
    for module_info in pkgutil.iter_modules(paths):
        if not module_info.name.startswith("_"):
            record = _record(importlib.import_module(f"{package}.{module_info.name}"))
            records[record.op] = record
    return MappingProxyType(records)


def _record(module: ModuleType) -> type[Params]:
    name = module.__name__.rpartition(".")[2]
    own = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, Params)]
    records = [cls for cls in own if cls.__module__ == module.__name__ and not cls.__name__.startswith("_")]
    if len(records) != 1:
        raise TypeError(f"{module.__file__} defines {len(records)} records of an operator, and one is wanted")
    (record,) = records
    if "__dataclass_fields__" not in vars(record):
        raise TypeError(f"{module.__file__}: {record.__name__} is no dataclass")
    known = {field.name for field in fields(record)}
    lacking = sorted(record.__abstractmethods__)
    lacking += [name for name in ("op", "struct", "dtype") if not hasattr(record, name) and name not in known]
    if lacking:
        raise TypeError(
            f"{module.__file__}: {record.__name__} lacks {', '.join(lacking)}, which every operator has "
            "(kernels.ops.Params says what they are)"
        )
    if record.op != name:
        raise TypeError(f"{module.__file__}: op is {record.op!r}, and the file is called {name!r}")
    return record


OPS = read(__name__, __path__)


def codes() -> dict[str, int]:
    """The numbers by which a kernel is told of an enumerated parameter, as defines: ACTIVATION_NONE = 0,
    ACTIVATION_RELU = 1, …, UNARY_RELU, BINARY_ADD, POOL_MAX, PAD_CONSTANT, DTYPE_FLOAT32."""
    words = {"ACTIVATION": ("none", *ACTIVATIONS, *GELUS), "DTYPE": tuple(ITEMSIZE)}
    for record in OPS.values():
        words |= dict(record.enumerated.values())
    return {f"{group}_{w.upper()}": i for group, names in words.items() for i, w in enumerate(names)}


def code(group: str, word: str | None) -> int:
    """The number of one word: code("ACTIVATION", None) is 0."""
    return codes()[f"{group}_{(word or 'none').upper()}"]
