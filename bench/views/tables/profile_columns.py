"""The kinds of columns that a profile's tables have. Their rows are dictionaries by the columns' names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from bench.results import kernel_names as names
from bench.views.tables.table import Column, Table, as_text
from bench.words import units

Line = dict[str, Any]
ProfileTable = Table[Line]
ProfileColumn = Column[Line]


def _column(
    name: str, title: str, text: Callable[[Any], str] = as_text, left: bool = False, idle: bool = False
) -> ProfileColumn:
    return Column(name, text=text, title=title, left=left, idle=idle)


words = partial(_column, left=True)
count = _column
duration = partial(_column, text=units.duration)  # of ns
seconds = partial(_column, text="{:.2f} s".format)
share = partial(_column, text=units.percent)
rate = partial(_column, text=units.si)
nbytes = partial(_column, text=units.nbytes)
factor = partial(_column, text="{:.2f}".format)


def named(table: ProfileTable, text: Callable[[str], str]) -> ProfileTable:
    """The same with its lines' names told by `text`."""
    told = [replace(column, text=text) if column.name == "name" else column for column in table.columns]
    return replace(table, columns=told)


def short_name(name: str, most: int = 0) -> str:
    """A kernel's name without its templates and parameters, any other as it is."""
    kernel = ("<" in name or "(" in name) and not name.startswith("(")
    return names.short(name, most) if kernel else name
