"""What many rows come to, in sentences: how often each backend is faster than its reference, whether answers
agree, how large errors get. Every number is counted or chosen from the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.charts.series import most_images
from bench.results import doubt
from bench.results.records import ErrorStats, Layer
from bench.results.rows import Row, title
from bench.show import tables
from bench.words import units

VERDICTS = ("FASTER", "SAME", "SLOWER", "UNCLEAR")
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


def paragraph(rows: Sequence[Row], names: Mapping[str, str]) -> str:
    """The whole in a few sentences. names: how a model is called, by its name in the cases."""
    if not rows:
        return ""
    found = [_counts(rows)]
    compared = [row for row in most_images(rows) if not row.is_reference]
    for who in dict.fromkeys(row.contender for row in compared):
        own = [row for row in compared if row.contender == who]
        found += filter(None, [_speed(who, own, names), _agreement(who, own)])
    found += filter(None, [_errors(rows)])
    return " ".join(found)


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


def _speed(who: str, own: Sequence[Row], names: Mapping[str, str]) -> str:
    """ "A against B at 12 models and batch sizes: faster at 3, … ; from 0.4× (…) to 2× (…)"."""
    timed = [row for row in own if row.speedup is not None and row.measurement.disposition == "ok"]
    if not timed:
        return ""
    verdicts = Counter(row.verdict for row in timed)
    told = ", ".join(f"{word.lower()} at {verdicts[word]}" for word in VERDICTS)
    reference = " and ".join(dict.fromkeys(row.measurement.reference for row in timed))
    # What rests on one sample has no interval, and is no end to be told.
    order = sorted((r for r in timed if r.speedup_low is not None), key=lambda row: row.speedup or 0)

    def at(row: Row) -> str:
        where = f"{names.get(row.case.model, row.title)}, batch {row.case.batch:,}"
        return f"{doubt.marked(units.times(row.speedup or 0), row.speedup_doubts)} ({where})"

    several = "" if len(timed) == 1 else "s"
    words = f"{who} against {reference}, at {len(timed)} pair{several} of model and batch size: {told}"
    if order:
        reach = f"from {at(order[0])} to {at(order[-1])}" if len(order) > 1 else at(order[0])
        words += f"; speed-up {reach}"
    doubtful = [row.speedup_doubts for row in timed if row.speedup_doubts]
    if doubtful:
        why = doubt.in_short(text for doubts in doubtful for text in doubts)
        words += f"; {len(doubtful)} of {len(timed)} {'is' if len(doubtful) == 1 else 'are'} doubtful: {why}"
    return f"{words}."


def _agreement(who: str, own: Sequence[Row]) -> str:
    """Whether `who` answers as its reference does, and where least so."""
    judged = [
        (accuracy.agreement, row)
        for row in own
        if (accuracy := row.measurement.accuracy) is not None and accuracy.agreement is not None
    ]
    if not judged:
        return ""
    least, row = min(judged, key=lambda pair: pair[0])
    if least >= 1:
        return f"{who} gives the reference's top-1 answer to every image in all {len(judged)}."
    return (
        f"{who} gives the reference's top-1 answer to {units.percent(least)} of {row.case.images:,} images "
        f"at least ({row.title}, batch {row.case.batch:,})."
    )


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
