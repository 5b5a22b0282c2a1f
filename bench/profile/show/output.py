"""Tables of a profile for a terminal and as JSON; CSV and Markdown are as of any table (bench.show.table)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from bench.profile.records import CaseProfile, Profile
from bench.profile.show.columns import ProfileTable, named, short_name
from bench.show import grid, table

if TYPE_CHECKING:
    from rich.console import RenderableType

NAME_WIDTH = 60


def terminal(found: Sequence[ProfileTable], short: bool = True, width: int | None = None) -> RenderableType:
    """The tables for people. short: long names of kernels without their templates and parameters; width: of
    the terminal."""
    text = partial(short_name, most=NAME_WIDTH) if short else str
    return grid.stacked([named(one, text) for one in found], width)


def to_json(profile: Profile, profiles: Sequence[CaseProfile], found: Sequence[ProfileTable]) -> str:
    """The profile, its cases, and the tables' rows by their titles."""
    return table.to_json(
        {
            "job": profile.job,
            "environment": profile.environment,
            "limits": profile.limits,
            "cases": profiles,
            "tables": [
                {"key": one.key, "title": one.title, "rows": list(one.rows), "notes": one.notes}
                for one in found
            ],
        }
    )
