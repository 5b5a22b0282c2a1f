"""Texts of models and records, shown as plain text everywhere.

A name or a reason may come from anybody. What a terminal, a Markdown reader or a spreadsheet would take for a
command is shown as text instead. Control characters are removed where records are read
(bench.results.reading), the rest here.
"""

from __future__ import annotations

import re
from typing import Any

_SHOWN = "\N{REPLACEMENT CHARACTER}"
# Control characters but tab and newline, and those that turn the direction of what is written.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
# The same in JSON: as escapes (of which no odd number of backslashes stands in front), and as they are.
_ESCAPED = re.compile(
    rb"(?<!\\)((?:\\\\)*)"
    rb"\\(?:r|b|f|u00(?:0[0-8b-fB-F]|1[0-9a-fA-F]|7[fF]|[89][0-9a-fA-F])|u20(?:2[a-eA-E]|6[6-9]))"
)
_RAW = re.compile(rb"\x7f|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xa9]")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def printable(text: str) -> str:
    """Text that does nothing to a terminal: lines and tabs stay, other control characters are shown."""
    return _CONTROL.sub(_SHOWN, text)


def json(data: bytes) -> bytes:
    """JSON whose texts are `printable`."""
    if b"\\" in data:
        data = _ESCAPED.sub(rb"\1\\ufffd", data)
    if b"\x7f" in data or not data.isascii():
        data = _RAW.sub(_SHOWN.encode(), data)
    return data


def markdown(text: str) -> str:
    """Text that Markdown shows as it stands, on one line."""
    one_line = " ".join(printable(text).split())
    return "".join(f"\\{c}" if c in "\\`*_[]<>|#~" else c for c in one_line)


def cell(text: str) -> str:
    """Text of a cell of a Markdown table, on one line: no further cell, HTML, link or picture. Other Markdown
    stays."""
    one_line = re.sub(r"[\r\n]+", " ", printable(text))
    return one_line.replace("|", "\\|").replace("<", "\\<").replace("](", "\\](")


def csv(value: Any) -> Any:
    """A value of a CSV file. A text that a spreadsheet would compute gets an apostrophe in front; numbers
    stay."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
