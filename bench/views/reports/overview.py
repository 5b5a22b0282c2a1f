"""What many rows come to, in sentences: how cases ended, how large errors get. Every number is counted or
chosen from the rows. How fast they are is told by their scoreboards (bench.views.sentences.verdicts)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bench.results.records import ErrorStats, Layer
from bench.results.rows import Row, title
from bench.views.tables import comparison_tables as tables
from bench.words import units

KINDS = {"isolated": "by itself", "propagated": "with the errors before it"}


@dataclass(frozen=True)
class LayerError:
    """One error of one layer of one case; kind: of KINDS."""

    row: Row
    layer: Layer
    kind: str
    error: ErrorStats

    @property
    def of_bound(self) -> float:
        return self.error.rel_l2 / self.error.bound if self.error.bound else float(self.error.rel_l2 > 0)

    @property
    def words(self) -> str:
        return f"{tables.layer_name(self.layer)} ({self.layer.op_type}), {KINDS[self.kind]}"


def sentences(rows: Sequence[Row]) -> list[str]:
    """The whole, a sentence each."""
    return [_counts(rows), *filter(None, [_errors(rows)])] if rows else []


def within(layer: Layer) -> bool | None:
    """Whether a layer stayed within its bounds, by itself and with what came before; None: not judged."""
    judged = [error.ok for error in (layer.isolated, layer.propagated) if error is not None]
    return all(judged) if judged else None


def beyond(rows: Sequence[Row]) -> list[str]:
    """A sentence for each layer beyond its bound; a layer's batch sizes share it."""
    grouped: dict[tuple[str, str], list[LayerError]] = {}
    for found in _layer_errors(rows):
        if not found.error.ok:
            grouped.setdefault((found.row.case.model, found.words), []).append(found)
    lines = []
    for (_, words), errors in grouped.items():
        worst = max(errors, key=lambda found: found.of_bound)
        reason = worst.error.reason or "beyond its bound"
        where = places([found.row for found in errors], rows)
        lines += [f"{place}: layer {words}: {reason}" for place in where]
    return lines


def places(rows: Sequence[Row], known: Sequence[Row] | None = None) -> list[str]:
    """ "lenet5-digits, engine-cpu at batch 1–64", one a model. known: rows whose batch sizes are neighbours
    of each other (without it, those of `rows`)."""
    batches = {row.case.batch for row in known or rows}
    lines = []
    for model in dict.fromkeys(row.case.model for row in rows):
        where: dict[str, list[int]] = {}
        for row in rows:
            if row.case.model == model:
                where.setdefault(row.contender, []).append(row.case.batch)
        cases = ", ".join(f"{who} at batch {units.spans(found, batches)}" for who, found in where.items())
        lines.append(f"{title(model)}, {cases}")
    return lines


def _counts(rows: Sequence[Row]) -> str:
    came_to = Counter(tables.words(row.measurement) for row in rows)
    models = len({row.case.model for row in rows})
    several = "" if models == 1 else "s"
    found = ", ".join(f"{count:,} {words}" for words, count in came_to.items())
    return f"{len(rows):,} case{'' if len(rows) == 1 else 's'} of {models} model{several} measured: {found}."


def _errors(rows: Sequence[Row]) -> str:
    """The layer whose error comes nearest to its bound, or goes furthest beyond, of those that are compared
    with a reference."""
    found = [error for error in _layer_errors(rows) if not error.row.is_reference]
    if not found:
        return ""
    worst = max(found, key=lambda error: (not error.error.ok, error.of_bound))
    out = sum(
        within(layer) is False for row in rows if not row.is_reference for layer in row.measurement.layers
    )
    where = f"{worst.words}, of {worst.row.title} on {worst.row.contender}, batch {worst.row.case.batch:,}"
    told = "every layer is within its bound"
    if out:
        told = f"{out:,} layer{' is' if out == 1 else 's are'} beyond {'its' if out == 1 else 'their'} bound"
    size = f"{units.exponent(worst.error.rel_l2)} of {units.exponent(worst.error.bound)} allowed"
    return f"Against float64 {told}; the worst is {where}: {size}."


def _layer_errors(rows: Iterable[Row]) -> Iterator[LayerError]:
    for row in rows:
        for layer in row.measurement.layers:
            for kind in KINDS:
                error = getattr(layer, kind)
                if error is not None:
                    yield LayerError(row, layer, kind, error)
