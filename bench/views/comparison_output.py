"""What `compare --format json` and `runs show --format json` write of a comparison."""

from __future__ import annotations

import msgspec

from bench.views.charts.scoreboard import Scoreboard
from bench.views.sentences.verdicts import Verdict
from bench.views.tables import comparison_tables as tables
from bench.views.tables import table

CASE = table.row_type("ComparisonCase", tables.COLUMNS, "A case, as a line of CSV has it.")
LAYER = table.row_type("ComparisonLayer", tables.LAYER_COLUMNS, "A layer of a case, as a line of CSV has it.")


class ScoreboardOutput(Scoreboard, frozen=True, kw_only=True):
    """line: what it comes to, in words."""

    line: str


def scoreboard(verdict: Verdict) -> ScoreboardOutput:
    """A model's scoreboard with the line above it."""
    return ScoreboardOutput(**msgspec.structs.asdict(verdict.board), line=verdict.text)


class ComparisonOutput(table.Output, frozen=True, kw_only=True):
    """layers: null unless --layers asks for them. scoreboards: one a model, or of a model of many contenders
    one for each precision."""

    cases: tuple[CASE, ...]  # type: ignore[valid-type]
    layers: tuple[LAYER, ...] | None  # type: ignore[valid-type]
    scoreboards: tuple[ScoreboardOutput, ...] = ()
