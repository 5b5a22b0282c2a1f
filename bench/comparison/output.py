"""What `compare --format json` and `runs show --format json` write of a comparison."""

from __future__ import annotations

from bench.show import outputs, tables

CASE = outputs.row("ComparisonCase", tables.COLUMNS, "A case, as a line of CSV has it.")
LAYER = outputs.row("ComparisonLayer", tables.LAYER_COLUMNS, "A layer of a case, as a line of CSV has it.")


class ComparisonOutput(outputs.Output, frozen=True, kw_only=True):
    """layers: null unless --layers asks for them."""

    cases: tuple[CASE, ...]  # type: ignore[valid-type]
    layers: tuple[LAYER, ...] | None  # type: ignore[valid-type]
