"""TOML that anybody may have written: a kernel's header, answers, an assignment. Whatever it holds, it is
read in a bounded time or refused in a sentence.

The standard library's reader takes time that grows with the square of a dotted key, ends with a
RecursionError where values are nested, and gives numbers that can be neither compared nor written.
"""

from __future__ import annotations

import tomllib
from typing import Any

CHARACTERS = 1 << 16  # of a text
DOTS = 300  # in a line of it
_SAID = 200  # characters of what the reader says, which may quote what stands there


class UnreadableTomlError(ValueError):
    """Why a text is not read: what follows its name in a sentence."""


def read(text: str) -> dict[str, Any]:
    """The table in a text; its whole numbers have 64 bits at most. Raises UnreadableTomlError."""
    if len(text) > CHARACTERS:
        raise UnreadableTomlError(f"has {len(text):,} characters, and at most {CHARACTERS:,} are read")
    if any(line.count(".") > DOTS for line in text.splitlines()):
        raise UnreadableTomlError(f"has a line of more than {DOTS} dots")
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UnreadableTomlError(f"is not valid TOML: {str(error)[:_SAID]}") from None
    except RecursionError:
        raise UnreadableTomlError("holds values that are nested too deep") from None
    except ValueError:  # Python converts no number of more digits
        raise UnreadableTomlError("holds a number of too many digits") from None
    if holds_large(found):
        raise UnreadableTomlError("holds a whole number of more than 64 bits")
    return found


def holds_large(held: Any) -> bool:
    """Whether it holds a whole number of more than 64 bits: nothing can be computed with that."""
    waiting = [held]
    while waiting:
        match waiting.pop():
            case dict() as fields:
                waiting += fields.values()
            case list() as items:
                waiting += items
            case int() as number if not -(1 << 63) <= number < 1 << 63:
                return True
    return False
