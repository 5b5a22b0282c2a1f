"""The words that are ours, and their meanings, read from glossary.md, to which the documents link.

Texts for people mark such a word by brackets, as in "each [rung] of the [ladder]"; `parts` separates the
words from the text between them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

FILE = Path(__file__).with_name("glossary.md")
# At the beginning of an item, or of a sentence in it.
_TERM = re.compile(r"(?:(?<=^)|(?<=[.…] ))\*\*([^*]+)\*\*: ")
_MARKED = re.compile(r"\[([^][]+)\](\w*)")  # with the end of a plural


@lru_cache(maxsize=1)
def terms() -> Mapping[str, str]:
    """The meaning of each word, in the order of the list."""
    return read(FILE.read_text(encoding="utf-8"))


def read(text: str) -> dict[str, str]:
    """The words in the items of a Markdown list."""
    entries: dict[str, str] = {}
    for item in re.split(r"^- ", text, flags=re.MULTILINE):
        explanation = " ".join(item.split())
        marks = list(_TERM.finditer(explanation))
        ends = [mark.start() for mark in marks[1:]] + [len(explanation)]
        for mark, end in zip(marks, ends[: len(marks)], strict=True):
            entries[mark[1]] = explanation[mark.end() : end].strip()
    return entries


def find(words: str) -> str:
    """The word of the list that this text is, also capitalised, with the mark of a menu, or in the plural; ""
    for none."""
    plain = words.replace("&", "").replace("_", " ").strip().rstrip(":").lower()
    singular = plain.removesuffix("s")
    return next((word for word in (plain, singular) if word in terms()), "")


def parts(text: str) -> list[tuple[str, str]]:
    """(text, word) in order; word is "" for text that is no marked word. Raises KeyError for a marked word
    that the list does not have."""
    pieces, end = [], 0
    for mark in _MARKED.finditer(text):
        if not (word := find(mark[1])):
            raise KeyError(mark[1])
        pieces += [(text[end : mark.start()], ""), (mark[1] + mark[2], word)]
        end = mark.end()
    return [part for part in [*pieces, (text[end:], "")] if part[0]]
