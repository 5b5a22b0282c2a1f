"""Tables of a profile for a terminal and as JSON; CSV and Markdown as of any (bench.views.tables)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from bench.results.machine_limits import MachineLimits
from bench.results.profile_records import CaseProfile, Profile, ProfileJob
from bench.views.sentences import profile_remarks as remarks
from bench.views.tables import grid, table
from bench.views.tables.profile_columns import ProfileTable, named, short_name

if TYPE_CHECKING:
    from rich.console import RenderableType

NAME_WIDTH = 60
# Of what holds an operator back, what a narrow terminal does without, so that the sentence can be read.
SPARED = ("blocks", "launch_ns", "launches", "bytes_per_s", "flops_per_s")


def terminal(found: Sequence[ProfileTable], short: bool = True) -> RenderableType:
    """The tables for people. short: long names of kernels without their templates and parameters."""
    text = partial(short_name, most=NAME_WIDTH) if short else str
    return grid.stacked([named(one, text) for one in found], SPARED)


def heads(profiles: Sequence[CaseProfile]) -> RenderableType:
    """What a pass takes, a line a batch size, above the tables."""
    from rich.console import Group
    from rich.text import Text

    found = [Text.assemble((about, "bold"), f": {told}.") for about, told in remarks.headlines(profiles)]
    return Group(*found, *([Text(remarks.HEADLINE, style="dim"), Text()] if found else []))


class ShownTable(msgspec.Struct, frozen=True):
    """A table. rows: by the names of its columns, as CSV has them, and what a row is of."""

    key: str
    title: str
    rows: tuple[dict[str, str | float | int | bool | tuple[str, ...] | None], ...]
    notes: tuple[str, ...]


class ProfileOutput(table.Output, frozen=True, kw_only=True):
    """`profile --format json`: what profile.json holds, its cases as results.jsonl has them, and the tables
    that were asked for."""

    job: ProfileJob
    limits: dict[str, MachineLimits]
    cases: tuple[CaseProfile, ...]
    tables: tuple[ShownTable, ...]


def to_json(profile: Profile, profiles: Sequence[CaseProfile], found: Sequence[ProfileTable]) -> str:
    """The profile, its cases, and the tables' rows by their titles."""
    return table.to_json(
        ProfileOutput(
            **table.head([profile]),
            job=profile.job,
            limits=profile.limits,
            cases=tuple(profiles),
            tables=tuple(ShownTable(one.key, one.title, tuple(one.rows), tuple(one.notes)) for one in found),
        )
    )
