"""Exit codes stand in one table, which the page of commands shows."""

from __future__ import annotations

import re
from pathlib import Path

from bench.words import exits

ROOT = Path(__file__).resolve().parents[3]


def test_the_page_of_commands_has_the_table_of_exit_codes() -> None:
    page = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| (\d+) \| (.*) \|$", page, re.MULTILINE)
    assert shown == [(str(code), words) for code, words in exits.TABLE.items()]
