"""Pickles from elsewhere, read without running anything: arrays, dicts, lists, strings and numbers come out.

A pickle is a program. This machine knows the opcodes that such data needs and calls no function that a file
names: what a name means stands in a table, here NumPy's own and in `names` the caller's. Everything else is
refused by its name. Memory stays within a small multiple of the file, and steps are counted.
"""

from __future__ import annotations

import io
import pickletools
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, cast

from bench.extras.weights.pickled_arrays import (
    NUMPY,
    ArrayInMaking,
    RefusedPickle,
    TypeInMaking,
    array_of,
    finished,
)

MOST_STEPS = 200_000  # of a file of weights there are some thousands
WHAT_WORKS = "arrays, dicts, lists, strings and numbers are understood"
Names = Mapping[str, Any]


class Bounded:
    """A stream that never hands out more than its file holds, whatever length is asked for."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        here = stream.tell()
        self.left = stream.seek(0, io.SEEK_END) - here
        stream.seek(here)

    def read(self, size: int) -> bytes:
        if not 0 <= size <= self.left:
            raise RefusedPickle(f"it says that {size:,} bytes follow where there are {self.left:,}")
        self.left -= size
        return self.stream.read(size)

    def readline(self) -> bytes:
        line = self.stream.readline(4096)
        self.left -= len(line)
        return line


class _Mark:
    pass


def load(stream: BinaryIO, names: Names | None = None, persistent: Callable[[Any], Any] | None = None) -> Any:
    """The data of the pickle at the stream's place, which is left behind it. Raises Refused, in words that
    fit behind the file's name and a colon.

    names: "module name" → a function of what the pickle calls it with, or any other value; persistent: what
    an outside name (as torch writes them for its storages) stands for.
    """
    machine = _Machine(Bounded(stream), names or {}, persistent)
    try:
        return machine.run()
    except RefusedPickle:
        raise
    except (
        ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError, MemoryError,
    ) as error:  # fmt: skip
        raise RefusedPickle(f"its pickle is damaged ({type(error).__name__})") from None


class _Machine:
    def __init__(self, source: Bounded, names: Names, persistent: Callable[[Any], Any] | None) -> None:
        self.source = source
        self.copies = 2 * source.left + 1024  # bytes that may be made of those that there are
        self.names = {**NUMPY, "_codecs encode": self.encoded, **names}
        self.persistent = persistent
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        for step, (opcode, argument, _) in enumerate(pickletools.genops(cast(Any, self.source))):
            if step > MOST_STEPS:
                raise RefusedPickle(f"its pickle has more than {MOST_STEPS:,} steps, which no weights need")
            if opcode.name == "STOP":
                (result,) = self.stack
                return finished(result)
            if opcode.name in _PUSHED:
                self.stack.append(argument)
            elif opcode.name in _MADE:
                self.stack.append(_MADE[opcode.name]())
            else:
                act = getattr(self, f"on_{opcode.name.lower()}", None)
                if act is None:
                    raise RefusedPickle(f"its pickle uses {opcode.name}, which no data needs; {WHAT_WORKS}")
                act(argument)
        raise RefusedPickle("its pickle is cut off")

    def encoded(self, text: str, coding: str) -> bytes:
        """Bytes as Python 3 writes them for Python 2: a text of Latin-1."""
        if coding not in ("latin1", "latin-1") or not isinstance(text, str):
            raise RefusedPickle("it encodes text as no array has it")
        return self.copied(text)

    def copied(self, text: str) -> bytes:
        self.copies -= len(text)
        if self.copies < 0:
            raise RefusedPickle("it copies its bytes again and again")
        return text.encode("latin-1")

    # ------------------------------------------------------------------------------------------ the stack

    def marked(self) -> list[Any]:
        """What was pushed since the last mark."""
        place = len(self.stack) - 1
        while not isinstance(self.stack[place], _Mark):
            place -= 1
            if place < 0:
                raise RefusedPickle("its pickle is damaged (no mark)")
        items = self.stack[place + 1 :]
        del self.stack[place:]
        return [finished(item) for item in items]

    def on_proto(self, argument: int) -> None:
        if argument > 5:
            raise RefusedPickle(f"its pickle is of protocol {argument}; up to 5 is understood")

    def on_frame(self, argument: int) -> None:
        """How many bytes follow in one piece: of no use here."""

    def on_pop(self, argument: None) -> None:
        self.stack.pop()

    def on_pop_mark(self, argument: None) -> None:
        self.marked()

    def on_tuple1(self, argument: None) -> None:
        self._tuple(1)

    def on_tuple2(self, argument: None) -> None:
        self._tuple(2)

    def on_tuple3(self, argument: None) -> None:
        self._tuple(3)

    def _tuple(self, size: int) -> None:
        if len(self.stack) < size:
            raise RefusedPickle("its pickle is damaged (nothing to take)")
        self.stack[-size:] = [tuple(map(finished, self.stack[-size:]))]

    def on_tuple(self, argument: None) -> None:
        self.stack.append(tuple(self.marked()))

    def on_list(self, argument: None) -> None:
        self.stack.append(self.marked())

    def on_append(self, argument: None) -> None:
        self._appended([finished(self.stack.pop())])

    def on_appends(self, argument: None) -> None:
        self._appended(self.marked())

    def _appended(self, items: list[Any]) -> None:
        if type(self.stack[-1]) is not list:
            raise RefusedPickle("its pickle appends to what is no list")
        self.stack[-1].extend(items)

    def on_dict(self, argument: None) -> None:
        items = self.marked()
        self.stack.append({})
        self._set(items)

    def on_setitem(self, argument: None) -> None:
        value, key = finished(self.stack.pop()), self.stack.pop()
        self._set([key, value])

    def on_setitems(self, argument: None) -> None:
        self._set(self.marked())

    def _set(self, items: list[Any]) -> None:
        keys = items[::2]
        if type(self.stack[-1]) is not dict or not all(type(key) in (str, int, bytes) for key in keys):
            raise RefusedPickle("its pickle has a dict whose keys are no texts or numbers")
        self.stack[-1].update(zip(keys, items[1::2], strict=True))

    # ---------------------------------------------------------------------------------------------- the memo

    def on_put(self, argument: int) -> None:
        self.memo[argument] = self.stack[-1]

    def on_memoize(self, argument: None) -> None:
        self.memo[len(self.memo)] = self.stack[-1]

    def on_get(self, argument: int) -> None:
        self.stack.append(self.memo[argument])

    on_binput = on_long_binput = on_put
    on_binget = on_long_binget = on_get

    # -------------------------------------------------------------------------------- names, calls and states

    def on_global(self, argument: str) -> None:
        self._named(argument)

    def on_stack_global(self, argument: None) -> None:
        name, module = self.stack.pop(), self.stack.pop()
        if not (isinstance(module, str) and isinstance(name, str)):
            raise RefusedPickle("its pickle names something by what is no text")
        self._named(f"{module} {name}")

    def _named(self, name: str) -> None:
        if name not in self.names:
            told = name.replace(" ", ".")[:80]
            raise RefusedPickle(f"it holds more than data: {told}, which is never run; {WHAT_WORKS}")
        self.stack.append(self.names[name])

    def on_reduce(self, argument: None) -> None:
        arguments, called = self.stack.pop(), self.stack.pop()
        if not callable(called) or not isinstance(arguments, tuple):
            raise RefusedPickle("its pickle calls what is no function")
        self.stack.append(called(*arguments))

    def on_build(self, argument: None) -> None:
        state, owner = self.stack.pop(), self.stack[-1]
        if isinstance(owner, TypeInMaking):
            owner.order = ">" if state[1] == ">" else "<"
        elif isinstance(owner, ArrayInMaking):
            _, shape, kind, by_columns, data = state
            owner.value = array_of(shape, kind, by_columns, self.copied(data) if type(data) is str else data)
        elif type(owner) is not dict:  # an ordered dict's state is what torch notes of versions
            raise RefusedPickle("its pickle gives a state to what has none")

    def on_binpersid(self, argument: None) -> None:
        if self.persistent is None:
            raise RefusedPickle("its pickle names data outside of it")
        self.stack.append(self.persistent(self.stack.pop()))


_PUSHED = {
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "FLOAT", "BINFLOAT", "STRING", "BINSTRING",
    "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES",
    "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8",
}  # fmt: skip
_MADE: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "MARK": _Mark,
    "EMPTY_TUPLE": tuple,
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
}
