"""Kernel source in colours: pygments finds the tokens; what colour each kind has in either theme."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pygments.lexer import Lexer
from pygments.lexers import CudaLexer, PythonLexer, TextLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Token, _TokenType

from gui.base.theme import Theme


@dataclass(frozen=True)
class Ink:
    """A token's colour on light and on dark paper."""

    light: str
    dark: str
    bold: bool = False
    italic: bool = False

    def on(self, theme: Theme) -> str:
        return self.dark if theme.dark else self.light


# A kind of token that is not named here looks as the kind above it does; what has none is plain ink. All
# stand out from the paper by 4.5 to 1 and more, on changed and on faulty lines too.
INKS: dict[_TokenType, Ink] = {
    Comment: Ink("#5A636D", "#A3ABB5", italic=True),
    Comment.Preproc: Ink("#7A4300", "#E3B07A"),
    Comment.PreprocFile: Ink("#0A6240", "#9BD8A5"),
    Keyword: Ink("#0A5595", "#7CC0F5", bold=True),
    Keyword.Type: Ink("#0B6363", "#6FD6CB"),
    Keyword.Constant: Ink("#6D3796", "#D6AEFF"),
    Name.Builtin: Ink("#7B2D6B", "#F2A3DC"),
    Name.Function: Ink("#5B3FA8", "#C6B7FF"),
    Name.Class: Ink("#0B6363", "#6FD6CB"),
    Name.Decorator: Ink("#7A4300", "#E3B07A"),
    Name.Namespace: Ink("#0B6363", "#6FD6CB"),
    Number: Ink("#6D3796", "#D6AEFF"),
    String: Ink("#0A6240", "#9BD8A5"),
    String.Doc: Ink("#5A636D", "#A3ABB5", italic=True),
    Operator.Word: Ink("#0A5595", "#7CC0F5", bold=True),
    Punctuation: Ink("#3C444D", "#C9CED5"),
}
_LEXERS: dict[str, type[Lexer]] = {
    ".cu": CudaLexer,
    ".cuh": CudaLexer,
    ".h": CudaLexer,
    ".py": PythonLexer,
}

# (column, length, ink) of a line's coloured parts, in order.
Parts = list[tuple[int, int, Ink]]


def ink_of(kind: _TokenType) -> Ink | None:
    """The ink of a kind of token, or of the nearest kind above it that has one."""
    at: _TokenType | None = kind
    while at is not None and at is not Token:
        if at in INKS:
            return INKS[at]
        at = at.parent
    return None


def highlighted(text: str, suffix: str) -> list[Parts]:
    """The coloured parts of each line of `text` (lines end in "\\n"); suffix: of its file, as ".cu". A file
    of no known kind has none."""
    lines: list[Parts] = [[] for _ in range(text.count("\n") + 1)]
    starts = _line_starts(text)
    line = 0
    for start, kind, value in _LEXERS.get(suffix, TextLexer)().get_tokens_unprocessed(text):
        ink = ink_of(kind)
        if ink is None:
            continue
        for part in value.splitlines(keepends=True):
            while line + 1 < len(starts) and starts[line + 1] <= start:
                line += 1
            wide = len(part.rstrip("\n"))
            if wide:
                lines[line].append((start - starts[line], wide, ink))
            start += len(part)
    return lines


def header_lines(text: str, suffix: str) -> int:
    """How many of the first lines are a rung's header: the first comment of a .cu file, the first lines that
    begin with # of a .py file."""
    lines = text.split("\n")
    if suffix == ".py":
        return next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
    if not text.startswith("/*") or "*/" not in text:
        return 0
    return text[: text.index("*/")].count("\n") + 1


def _line_starts(text: str) -> Sequence[int]:
    starts = [0]
    at = text.find("\n")
    while at >= 0:
        starts.append(at + 1)
        at = text.find("\n", at + 1)
    return starts
