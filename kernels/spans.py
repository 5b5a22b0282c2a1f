"""Times of named parts of the program, recorded only while somebody asks for them.

    @span("NVRTC compile")
    def compile_rung(...): ...

    with recorded("NVRTC compile", "module load") as spans:
        session = backend.prepare(...)

A call that nobody records costs one look into a dictionary.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Span:
    """One call of a part: the part's name, perf_counter_ns before and after, and the result (None where it
    raised)."""

    name: str
    start_ns: int
    end_ns: int
    result: Any = None


_asked: dict[str, list[Span]] = {}  # where the spans of a name go


def span(name: str) -> Callable[[Callable[_Parameters, _Result]], Callable[_Parameters, _Result]]:
    """A decorator: each call of the function is a span of this name."""

    def spanned(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
        @functools.wraps(function)
        def call(*arguments: _Parameters.args, **named: _Parameters.kwargs) -> _Result:
            spans = _asked.get(name)
            if spans is None:
                return function(*arguments, **named)
            started, result = time.perf_counter_ns(), None
            try:
                result = function(*arguments, **named)
                return result
            finally:
                spans.append(Span(name, started, time.perf_counter_ns(), result))

        return call

    return spanned


@contextlib.contextmanager
def recorded(*names: str) -> Iterator[list[Span]]:
    """The spans of these names inside the block, of all threads, in the order of their ends."""
    spans: list[Span] = []
    before = dict(_asked)
    _asked.update(dict.fromkeys(names, spans))
    try:
        yield spans
    finally:
        _asked.clear()
        _asked.update(before)
