"""Sentences that command and window share, as the window says them: an option of the command line is called
by the field or button that sets it here."""

from __future__ import annotations

import re

from bench.run import options
from bench.words.called import CALLED

_OPTION = re.compile(r"`[^`]*`|(?<![\w-])--([a-z][a-z-]*)(?![\w-])")
# What is no field, but a button.
_BUTTONS = {"resume": "Resume", "trust-kernels": "Run these kernels"}
LABELS = {
    option.name: option.label.replace("&", "")
    for option in (each for listed in options.TABLE.values() for each in listed)
    if option.label
} | _BUTTONS


def in_window(text: str) -> str:
    """ "a larger --budget helps" → "a larger “Time” helps". Commands, and options without a field, stay as
    they are."""
    if "--" not in text:
        return text
    return "\n".join(line if CALLED in line else _OPTION.sub(_called, line) for line in text.split("\n"))


def _called(found: re.Match[str]) -> str:
    label = LABELS.get(found[1] or "")
    return f"“{label}”" if label else found[0]
