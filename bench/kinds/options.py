"""A job as words of a command line: a table of options, by the job's fields."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

ALWAYS: Any = object()  # never left out
PLAIN: Any = object()  # left out where the field has its own default


@dataclass(frozen=True)
class Option:
    """field: of the job; words: its value as options; usual: with which value they are left out."""

    field: str
    words: Callable[[Any], Sequence[str]]
    usual: Any = PLAIN


def arguments(job: Any, options: Sequence[Option]) -> list[str]:
    """What of a job is not as usual, in the order of the options."""
    plain = {
        field.name: field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        for field in msgspec.structs.fields(type(job))
    }
    found: list[str] = []
    for option in options:
        value = getattr(job, option.field)
        if value != (plain[option.field] if option.usual is PLAIN else option.usual):
            found += option.words(value)
    return found


def one(flag: str, text: Callable[[Any], str] = str) -> Callable[[Any], Sequence[str]]:
    return lambda value: (flag, text(value))


def each(flag: str, text: Callable[[Any], str] = str) -> Callable[[Any], Sequence[str]]:
    """An option that is repeated."""
    return lambda values: tuple(word for value in values for word in (flag, text(value)))


def pairs(flag: str, text: Callable[[Any], str] = str) -> Callable[[Any], Sequence[str]]:
    """An option that is repeated, as NAME=VALUE."""
    return lambda values: each(flag)(f"{name}={text(value)}" for name, value in values.items())


def switch(flag: str) -> Callable[[Any], Sequence[str]]:
    return lambda value: (flag,)


def joined(values: Sequence[Any]) -> str:
    return ",".join(map(str, values))


def seconds(value: float) -> str:
    return f"{value:g}"


def batches(values: tuple[int, ...]) -> str:
    """Batch sizes as the option takes them: "1..256" where they double, else "1,100,10000"."""
    doubling = all(later == 2 * earlier for earlier, later in itertools.pairwise(values))
    return f"{values[0]}..{values[-1]}" if len(values) > 2 and doubling else joined(values)


THREADS = Option("threads", one("--threads"))
TIMES = (Option("budget_s", one("--budget", seconds)), Option("timeout_s", one("--timeout", seconds)))
MEASURING = (THREADS, Option("l2", one("--l2")), *TIMES)
RUNGS = Option("rungs", pairs("--rung"))
KERNELS = Option("kernel_dirs", each("--kernels"))
IMAGES = (Option("dataset", one("--dataset")), Option("preprocess", one("--preprocess")))
ANSWERS = (
    Option("labels", one("--labels")),
    Option("scores", one("--scores")),
    Option("inputs", pairs("--input")),
    Option("dims", pairs("--dim")),
)
