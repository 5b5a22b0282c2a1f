"""One sentence a chart, computed from its data and intervals; "" where the data cannot say.

A difference is named only where the interval of the ratio lies outside ±2 % (FASTER, SLOWER), and called
level only where it lies inside (SAME); what is UNCLEAR is left out, as everything is that rests on one
sample. Wrong answers are never called fast. What is to be doubted stays in and is counted
(bench.charts.doubts).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench.charts import breakdown as divide
from bench.results.rows import Row
from bench.words import palette, units


def times(items: Sequence[Row]) -> str:
    """Who is faster than its reference where, and whether both answer alike."""
    sentences = [speed for who in _contenders(items) if (speed := _speed(who, items))]
    if not sentences:
        return ""
    return _sentence([*sentences, *filter(None, [_alike(items)])])


def _speed(who: str, items: Sequence[Row]) -> str:
    """ "engine-cpu is 1.3× slower than ort-cpu at batch 16 and level from 64 on"; "" where all is unclear."""
    own = sorted(
        (r for r in items if r.contender == who and r.speedup and r.measurement.disposition == "ok"),
        key=lambda r: r.case.batch,
    )
    if not own:
        return ""
    known = {r.case.batch for r in items}
    reference = own[0].measurement.reference
    clauses: list[str] = []
    for verdict, word in (("FASTER", "faster"), ("SLOWER", "slower"), ("SAME", "level")):
        found = [r for r in own if r.verdict == verdict]
        if not found:
            continue
        batches = f"at batch {units.spans((r.case.batch for r in found), known)}"
        if verdict == "SAME":
            clauses.append(f"level {'' if clauses else f'with {reference} '}{batches}")
            continue
        ratios = sorted(_above_one(r) for r in found)
        low, high = (_times(ratios[0]), _times(ratios[-1]))
        span = low if low == high else f"{low.removesuffix('×')} to {high}"
        clauses.append(f"{span} {word} {'' if clauses else f'than {reference} '}{batches}")
    return f"{who} is {_join(clauses)}" if clauses else ""


def _above_one(row: Row) -> float:
    speedup = row.speedup or 1.0
    return speedup if speedup >= 1 else 1 / speedup


def _times(ratio: float) -> str:
    return f"{units.digits(ratio, 2 if ratio < 10 else 3)}×"


def _alike(items: Sequence[Row]) -> str:
    """ "both answer alike on 200 images" where every contender was compared and agreed on every image."""
    checked = [r for r in items if not r.is_reference and r.measurement.accuracy is not None]
    known = [r.measurement.accuracy.agreement for r in checked if r.measurement.accuracy]
    if not known or any(a is None or a < 1 for a in known) or any(r.failed and r.sound for r in checked):
        return ""
    names = {r.contender for r in checked} | {r.measurement.reference for r in checked}
    images = units.spans({r.case.images for r in checked}, ())
    words = "both answer alike" if len(names) == 2 else "each answers as its reference does"
    return f"{words} on {images} images"


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
    differing: dict[str, list[tuple[int, int, int]]] = {}
    for row in judged:
        found = row.measurement.accuracy
        if found is not None and found.agreement is not None and found.agreement < 1 and not row.is_reference:
            count = round((1 - found.agreement) * found.images)
            differing.setdefault(row.contender, []).append((count, found.images, row.case.batch))
    for who, found_differences in differing.items():
        count, images, batch = max(found_differences)
        parts.append(f"{who} answers {count:,} of {images:,} images unlike its reference at batch {batch:,}")
    if not parts and (alike := _alike(items)):
        parts.append(alike)
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
    parts = []
    for row, found in splits:
        if row.case.batch == batch:
            key, ns = max(found.parts_ns.items(), key=lambda item: item[1])
            share = units.percent(ns / found.total_ns, 0)
            parts.append(f"{palette.CATEGORIES[key][0]} {share} on {row.contender}")
    return _sentence([f"the largest part of a pass at batch {batch:,}: {', '.join(parts)}"])


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
    interval is never the most, and may be more than what would be."""
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
    if any(rate >= slowest_first * 1e9 for rate in unknown):
        return ""
    rate, second = units.si(first.images_per_s or 0), others[0]
    return _sentence(
        [
            f"{first.contender} reaches the most, {rate} images/s at batch {first.case.batch:,}; "
            f"{second.contender} comes to {units.si(second.images_per_s or 0)} at batch {second.case.batch:,}"
        ]
    )


def _contenders(items: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(r.contender for r in items if not r.is_reference))


def _common_batch(found: Iterable[Row]) -> int | None:
    """The largest batch size at which every contender found has a row; None where there is none."""
    by_contender: dict[str, set[int]] = {}
    for row in found:
        by_contender.setdefault(row.contender, set()).add(row.case.batch)
    common = set.intersection(*by_contender.values()) if by_contender else set()
    return max(common, default=None)


def _join(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def _sentence(parts: Sequence[str]) -> str:
    text = "; ".join(parts)
    return (
        f"{text[0].upper()}{text[1:]}."
        if text and not text.startswith(("engine-", "ort-"))
        else f"{text}." * bool(text)
    )
