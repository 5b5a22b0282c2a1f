"""Sentences about comparisons: one a chart, and what many rows come to. Each is computed from its data and
intervals; "" where the data cannot say.

Charts of times and of speed have the verdict (`verdicts`). What is to be doubted stays in and is
counted (bench.views.charts.doubts).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bench.results.records import ErrorStats, Layer
from bench.results.rows import Row, title
from bench.views.charts import breakdown as divide
from bench.views.charts.definitions import Chart, Panel
from bench.views.sentences import verdicts
from bench.views.tables import comparison_tables as tables
from bench.words import palette, units


def accuracy(items: Sequence[Row]) -> str:
    """Whether the answers are the reference's, image by image, and the top-1 they come to."""
    judged = [r for r in items if r.measurement.accuracy is not None and r.measurement.accuracy.images]
    wrong = [r for r in items if r.measurement.disposition == "incorrect"]
    parts: list[str] = []
    for who in dict.fromkeys(r.contender for r in wrong):
        batches = units.spans(
            (r.case.batch for r in wrong if r.contender == who), {r.case.batch for r in items}
        )
        parts.append(f"{who} fails its check at batch {batches}")
    parts += [clause.text for clause in verdicts.answers(items) if clause.kind in ("answers", "differ")]
    tops = {
        r.measurement.accuracy.top1
        for r in judged
        if r.measurement.accuracy and r.measurement.accuracy.labelled
    }
    values = [top for top in tops if top is not None]
    if len({r.case.images for r in judged}) == 1 and values:
        low, high = units.percent(min(values)), units.percent(max(values))
        parts.append(f"top-1 is {low}" if low == high else f"top-1 is between {low} and {high}")
    return _sentence(parts)


def about_accuracy(items: Sequence[Row]) -> tuple[str, ...]:
    """Why there is no top-1 of images that have labels, and whether another order of the classes explains
    more."""
    found = [r.measurement.accuracy for r in items if r.measurement.accuracy is not None]
    refused = dict.fromkeys(f"no accuracy: {a.refused}" for a in found if a.refused)
    return (*refused, *dict.fromkeys(a.hint for a in found if a.hint))


def breakdown(items: Sequence[Row]) -> str:
    """What takes the most of a pass on each backend, at the largest batch that all of them ran."""
    splits = [(r, found) for r in items if (found := divide.split(r.measurement)) is not None]
    batch = _common_batch(row for row, _ in splits)
    if batch is None:
        return ""
    shares: dict[str, list[str]] = {}
    for row, found in splits:
        if row.case.batch == batch:
            key, ns = max(found.parts_ns.items(), key=lambda item: item[1])
            share = units.percent(ns / found.total_ns, 0)
            shares.setdefault(palette.CATEGORIES[key][0], []).append(f"{share} on {row.contender}")
    parts = [f"{part} {', '.join(each)}" for part, each in shares.items()]
    return _sentence([f"the largest part of a pass at batch {batch:,}: {'; '.join(parts)}"])


def total(items: Sequence[Row]) -> str:
    """How long each backend takes once, before the data set, and how long over it."""
    staged = [(r, found) for r in items if (found := divide.stages(r.measurement))]
    batch = _common_batch(row for row, _ in staged)
    if batch is None:
        return ""
    parts = []
    for row, found in staged:
        if row.case.batch == batch:
            cold = sum(ns for key, ns in found.items() if not key.startswith("dataset"))
            warm = sum(found.values()) - cold
            over = f" and {units.duration(warm)} over the data set" if warm else ""
            parts.append(f"{row.contender} takes {units.duration(cold)} once{over}")
    return _sentence([f"at batch {batch:,} " + "; ".join(parts)])


def throughput(items: Sequence[Row]) -> str:
    """The most images a second, where its interval is clear of every other contender's best; what has no
    interval is never the most, and may be more than what would be. Where one of these is to be doubted,
    nothing is said."""
    best: dict[str, Row] = {}
    unknown = [
        row.images_per_s
        for row in items
        if row.measurement.disposition == "ok" and row.images_per_s and not (row.high_ns and row.low_ns)
    ]
    for row in items:
        if row.measurement.disposition == "ok" and row.images_per_s and row.high_ns and row.low_ns:
            held = best.get(row.contender)
            if held is None or row.images_per_s > (held.images_per_s or 0):
                best[row.contender] = row
    if len(best) < 2:
        return ""
    first, *others = sorted(best.values(), key=lambda r: -(r.images_per_s or 0))
    slowest_first = first.case.batch / (first.high_ns or 1)
    if any(other.case.batch / (other.low_ns or 1) >= slowest_first for other in others):
        return ""
    if any(rate >= slowest_first * 1e9 for rate in unknown) or any(row.own_doubts for row in best.values()):
        return ""
    rate, second = units.si(first.images_per_s or 0), others[0]
    return _sentence(
        [
            f"{first.contender} reaches the most, {rate} images/s at batch {first.case.batch:,}; "
            f"{second.contender} comes to {units.si(second.images_per_s or 0)} at batch {second.case.batch:,}"
        ]
    )


def _common_batch(found: Iterable[Row]) -> int | None:
    """The largest batch size at which every contender found has a row; None where there is none."""
    by_contender: dict[str, set[int]] = {}
    for row in found:
        by_contender.setdefault(row.contender, set()).add(row.case.batch)
    common = set.intersection(*by_contender.values()) if by_contender else set()
    return max(common, default=None)


def _sentence(parts: Sequence[str]) -> str:
    text = "; ".join(parts)
    return (
        f"{text[0].upper()}{text[1:]}."
        if text and not text.startswith(("engine-", "ort-"))
        else f"{text}." * bool(text)
    )


def end_to_end(items: Sequence[Row]) -> str:
    """Who sends the most images through, at the batch size at which anybody sends the most."""
    found = [flow for row in items if (flow := row.end_to_end) is not None]
    best = max(found, key=lambda flow: flow.images_per_s, default=None)
    if best is None:
        return ""
    parts = []
    for row in items:
        flow = row.end_to_end
        if flow is not None and row.case.batch == best.batch:
            bus = f" ({units.percent(flow.bus_share, 0)} of the bus)" if flow.bus_share is not None else ""
            parts.append(f"{row.contender} {units.si(flow.images_per_s)}{bus}")
    return _sentence([f"images a second from host to host at batch {best.batch:,}: {', '.join(parts)}"])


def about_end_to_end(items: Sequence[Row]) -> tuple[str, ...]:
    """How it was measured, and whose it was not."""
    found = [flow.record for row in items if (flow := row.end_to_end) is not None]
    lanes = sorted({record.lanes for record in found})
    types = ", ".join(dict.fromkeys(record.carries for record in found))
    best = {record.top_k for record in found if record.top_k}
    answers = f"the {max(best)} best classes" if best else "all outputs"
    notes = [
        f"By the host's clock, not that of the forward pass: images travel as {types}, {answers} come back, "
        f"{' or '.join(map(str, lanes))} {'batch is' if lanes == [1] else 'batches are'} in flight.",
    ]
    refused: dict[str, list[str]] = {}
    for row in items:
        if (said := row.measurement.end_to_end) is not None and said.refused:
            refused.setdefault(said.refused, []).append(row.contender)
    notes += [f"Without {', '.join(dict.fromkeys(who))}: {why}." for why, who in refused.items()]
    return tuple(notes)


# By the end of a chart's name.
MEANINGS = {
    "scoreboard": (
        "How fast each [backend] is beside its [reference], at each batch size: the [speed-up], where it is "
        "decided.\n"
        "The further from the same, the fuller the colour: blue is faster, red slower. Grey is not decided, "
        "or to be doubted."
    ),
    "accuracy": (
        "How many images of the data set each [backend] answers rightly, at each batch size.\n"
        "All backends run the same model on the same images, so all lines should lie on one another: where "
        "one is lower, its kernels compute something else. [agreement] tells images that get the same answer "
        "as from the [reference], also where nobody knows the right one."
    ),
    "op-time": (
        "How long a forward [pass] takes, at each batch size: the [op time], without copies from and to the "
        "host. Lower is better.\n"
        "A bar through a point is its 95 % [interval]. Two [backend]s differ for certain only where their "
        "ratio is measured in the same [round]s: that is the [verdict] in the sentence above the chart. On "
        "two logarithmic scales twice the batch in twice the time is a straight line of slope one; a flat "
        "beginning is time that does not depend on the batch, as launches."
    ),
    "-speed": (
        "Left, the [speed-up]: the [reference]'s time divided by the backend's own, measured in the same "
        "[round]s. Above the line at 1 it is faster.\n"
        "Right, throughput: images a second. It grows with the batch until the machine is full."
    ),
    "-end-to-end": (
        "Right, how many images a second go through [end to end]: from the host's memory to its answers, "
        "with copies and kernels at work at once. Left, the [speed-up] of that.\n"
        "Images travel as bytes, and become numbers on the device: by our kernel, or by ONNX Runtime's "
        "model, which is rewritten for it. It is another clock than the [op time]: where a net is small the "
        "bus may be what holds both back, and the read-out says what share of it is used."
    ),
    "-breakdown": (
        "Where the time of one [pass] goes, from host to host: the copy in, the operators, the copy out, "
        "waiting, and the rest, which no part explains.\n"
        "Bars beside each other are [backend]s at one batch size. What happens only once is no part of it: "
        "see the [cold start]."
    ),
    "-total-time": (
        "What happens once, the [cold start]: loading the model, compiling kernels, allocating and uploading "
        "weights, the first [pass]; and then the pass over the whole data set.\n"
        "A [backend] that is slow to start may still be the faster one for many images."
    ),
    "ladder-speed": (
        "Each bar is a [rung]: one kernel for the same operator, from the plainest at the left to the "
        "fastest. Higher is better.\n"
        "The dashed line is the [reference] on the same node, timed in the same [round]s. A rung whose "
        "answer is wrong has no bar: only right answers are timed."
    ),
    "ladder-limits": (
        "How near each [rung] comes to what this machine can do: all of them do the same work on the same "
        "bytes, which at the measured rates of arithmetic and memory takes some time at least. That is the "
        "limit, 100 %; a point at 10 % takes ten times as long. Each precision has limits of its own.\n"
        "From 60 % on a rung is bound by that limit. Further below something else holds it back: waiting, "
        "too few threads, or bytes that are moved more than once."
    ),
    "roofline": (
        "How near a kernel comes to what this machine can do. To the right, operations for each byte moved, "
        "every input and output once as the kernel keeps it; "
        "upwards, operations a second. The line is the [roofline]: memory holds back below its slope, "
        "arithmetic below its flat top.\n"
        "From 60 % of the line on a kernel is bound by that limit. Further below it is held back by neither: "
        "by waiting, by too few threads, or by moving bytes more than once."
    ),
    "profile-breakdown": (
        "The parts of one [pass] as the [profile] recorded them; they add up to the whole pass, and what no "
        "event explains is the rest."
    ),
    "diff-waterfall": (
        "From the [pass] of one [profile] to that of another, a bar a step: what takes longer lifts the next "
        "bar, what takes less lowers it. Steps are ONNX nodes, copies, calls into CUDA, gaps between kernels "
        "and what the host does.\n"
        "The grey bar is what no event explains. A hatched one changed no more than the passes of one "
        "profile differ by among themselves."
    ),
    "profile-times": (
        "How long a [pass] takes at each batch size while it is recorded. Recording costs time: for times to "
        "compare use Compare."
    ),
    "profile-cold-start": (
        "The [cold start], event by event: what happens before the first answer, and never again in this "
        "session."
    ),
}


def meaning(name: str) -> str:
    """Of a chart of this name; "" for one that explains itself."""
    ends = sorted(MEANINGS, key=len, reverse=True)
    families = {"profile-roofline-": "roofline", "diff-waterfall-": "diff-waterfall"}
    plain = next((of for start, of in families.items() if name.startswith(start)), name)
    return next((MEANINGS[end] for end in ends if plain.endswith(end)), "")


def badge(chart: Chart) -> str:
    """Of a chart of accuracy: "97.78 % right, all agree". "" where anything varies or an answer fails its
    check: that has to be seen."""
    if any(m.disposition == "incorrect" for p in chart.panels for s in p.series for m in s.marks):
        return ""
    parts: list[str] = []
    for panel in chart.panels:
        values = _values(panel)
        if len(values) > 1:
            return ""
        for value in values:
            words = _words(panel.title, value)
            if words is None:
                return ""
            parts.append(words)
    return ", ".join(filter(None, parts))


def _values(panel: Panel) -> set[float]:
    return {point.y for series in panel.series for point in (*series.points, *series.provisional)}


def _words(measure: str, value: float) -> str | None:
    """None: this has to be seen in a chart."""
    if measure == "top-1":
        return f"{units.percent(value)} right"
    if measure.startswith("agreement"):
        return "all agree" if value == 1 else None
    return ""  # the first one is told


# What many rows come to: how cases ended, how large errors get. Every number is counted or chosen from them.
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
