"""Sizes that a text file says as expressions: "4 * ceil(n, BLOCK)", of names that have whole numbers.

Whole numbers, names, + - * // %, comparisons, and the functions of FUNCTIONS. Nothing of the text is run: it
is read as Python's syntax and worked out here, so a file from elsewhere can say no more than that.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from kernels.nearest import did_you_mean

MOST_CHARACTERS, MOST = 200, 1 << 62  # of an expression; what a value stays below


class ExpressionError(ValueError):
    """Why an expression has no value: what follows its text in a sentence."""


def _ceil(a: int, b: int) -> int:
    """How many whole b hold a."""
    return -(-a // b)


def _log2(a: int) -> int:
    """The least power of two that is not below a, as its exponent."""
    if a < 1:
        raise ExpressionError(f"has a logarithm of {a}")
    return (a - 1).bit_length()


FUNCTIONS: Mapping[str, Callable[..., int]] = {
    "ceil": _ceil,
    "min": min,
    "max": max,
    "log2": _log2,
    "sqrt": math.isqrt,
}
_BINARY: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARED: Mapping[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


def value(text: int | str, names: Mapping[str, Any]) -> int:
    """The value of an expression; a comparison's is 1 or 0. Raises ExpressionError."""
    if isinstance(text, int):
        return text
    try:
        found = _value(_tree(text), names)
    except ZeroDivisionError:
        raise ExpressionError("divides by 0") from None
    except ValueError as error:
        raise ExpressionError(str(error)) from None
    return found


@lru_cache(maxsize=1024)
def _tree(text: str) -> ast.expr:
    if len(text) > MOST_CHARACTERS:
        raise ExpressionError(f"has more than {MOST_CHARACTERS} characters")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ExpressionError("is no expression of sizes") from None


def _value(node: ast.expr, names: Mapping[str, Any]) -> int:
    match node:
        case ast.Constant(value=int() as number) if type(number) is int:
            found = number
        case ast.Name(id=name):
            if name not in names or not isinstance(names[name], int):
                known = sorted(key for key, held in names.items() if isinstance(held, int))
                hint = did_you_mean(name, known, f"; there are {', '.join(known)}")
                raise ExpressionError(f"names {name!r}{hint}")
            found = int(names[name])
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            found = -_value(inner, names)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            found = _BINARY[type(op)](_value(left, names), _value(right, names))
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARED:
            found = int(_COMPARED[type(op)](_value(left, names), _value(right, names)))
        case ast.Call(func=ast.Name(id=called), args=arguments, keywords=[]) if called in FUNCTIONS:
            if len(arguments) != (1 if called in ("log2", "sqrt") else 2):
                raise ExpressionError(f"calls {called} with {len(arguments)} values")
            found = FUNCTIONS[called](*(_value(argument, names) for argument in arguments))
        case _:
            raise ExpressionError(
                f"has {ast.unparse(node)[:40]!r}, and only whole numbers, sizes, + - * // %, comparisons and "
                f"{', '.join(FUNCTIONS)} are read"
            )
    if abs(found) >= MOST:
        raise ExpressionError("is too large")
    return found
