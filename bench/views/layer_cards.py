"""The three answers to the layers of one contender (bench.views.cards): which tensor diverges first, on which
operators it loses or wins beside its reference, and which layer most of that comes of.

A layer's time has no interval, so that nothing is decided by it: no answer here has a colour but whether the
layers are right, and only what differs by more than TELLING is called won or lost.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.results import doubt
from bench.results.records import ErrorStats, Layer, Measurement, Run
from bench.views.cards import FAST, HELD, NOTHING, RIGHT, Answer, limit_of
from bench.views.charts import breakdown
from bench.views.sentences import limits
from bench.words import orders, palette, units

TELLING = 1.1  # times another layer's time, from which on they are not called the same


def answers(focus: Measurement, reference: Measurement | None, runs: Sequence[Run] = ()) -> dict[str, Answer]:
    """The answers by their question; their `cases` are output tensors. reference: whose layers are compared,
    None if there is none."""
    return {RIGHT: _right(focus.layers), FAST: _fast(focus, reference), HELD: _held(focus, reference, runs)}


def text(focus: Measurement, reference: Measurement | None, runs: Sequence[Run] = ()) -> str:
    """The same as one sentence: "loses on conv, wins on pool and fc: conv2 is 41 % of the gap"."""
    found = answers(focus, reference, runs)
    fast = ", ".join(filter(None, [found[FAST].text, found[FAST].detail]))
    parts = [fast, found[HELD].text]
    said = ": ".join(part for part in parts if part != NOTHING)
    return "; ".join(part for part in (found[RIGHT].text, said) if part and part != NOTHING)


def layer_name(layer: Layer) -> str:
    """A layer in a word: its first node, which names it in graph and table, too."""
    return layer.nodes[0] if layer.nodes else layer.op_type


# ------------------------------------------------------------------------------------- another run laid over


def counterpart(focus: Measurement, others: Sequence[Measurement]) -> Measurement | None:
    """Of another run, the measurement whose layers are laid over these: of the same backend and precision,
    and if it can be of the same model and batch size. None if there is none."""
    own = focus.case
    fitting = [
        m for m in others if m.layers and (m.case.backend, m.case.precision) == (own.backend, own.precision)
    ]
    same = [m for m in fitting if m.case.model == own.model]
    models = {m.case.model for m in fitting}
    able = same or (fitting if len(models) == 1 else [])  # of several other models nobody said which
    return max(able, key=lambda m: (m.case.batch == own.batch, m.case.images), default=None)


def matched(layers: Sequence[Layer], others: Sequence[Layer]) -> dict[str, Layer]:
    """For the output tensor of each layer the layer of the other run that does the same: with the same
    output, else with a node in common. Layers without one are left out."""
    by_output = {layer.output: layer for layer in others if layer.output}
    by_node = {node: layer for layer in others for node in layer.nodes}
    found = {}
    for layer in layers:
        other = by_output.get(layer.output) or next(
            (by_node[node] for node in layer.nodes if node in by_node), None
        )
        if layer.output and other is not None:
            found[layer.output] = other
    return found


def differs(layer: Layer, other: Layer | None) -> str:
    """How a layer differs from the one of another run that is laid over it, in a few words; "" if it does
    not."""
    if other is None:
        return "only here"
    parts = []
    if other.op_type != layer.op_type:
        parts.append(f"there {other.op_type}")
    if other.shape != layer.shape:
        parts.append(f"there {'×'.join(map(str, other.shape))}")
    if other.rung != layer.rung:
        parts.append(f"there by {other.rung or 'no kernel of ours'}")
    if layer.time_ns and other.time_ns:
        ratio = layer.time_ns / other.time_ns
        if max(ratio, 1 / ratio) > TELLING:
            parts.append(f"{units.times(ratio)} its time")
    wrong = [bool(first_diverging([each])) for each in (layer, other)]
    if wrong[0] != wrong[1]:
        parts.append("diverges here alone" if wrong[0] else "diverges there alone")
    return ", ".join(parts)


# ------------------------------------------------------------------------------------------------- right?


def _right(layers: Sequence[Layer]) -> Answer:
    first = first_diverging(layers)
    if first is not None:
        layer, how, error = first
        told = error.reason or f"{error.rel_l2:.1e} of {error.bound:.0e} allowed"
        why = f"{layer.output} of {', '.join(layer.nodes)} is the first tensor that diverges, {how}: {told}"
        return Answer(f"✕ {layer.output} diverges", f"first, {how}", "bad", why, (layer.output,))
    known = ((layer, layer.isolated or layer.propagated) for layer in layers)
    checked = [(layer, error) for layer, error in known if error is not None]
    if not checked:
        return Answer(NOTHING, "no layer was checked")
    worst, error = max(checked, key=lambda item: item[1].rel_l2 / item[1].bound)
    detail = f"{error.rel_l2:.0e} of {error.bound:.0e} allowed"
    why = f"the largest error beside its bound is that of {layer_name(worst)}"
    return Answer(f"✓ all {len(checked)} layers", detail, "good", why, (worst.output,))


def first_diverging(layers: Sequence[Layer]) -> tuple[Layer, str, ErrorStats] | None:
    """The first layer in the order of running whose tensor is out of bounds: by itself where that is so, else
    as it was carried along. None if there is none."""
    for layer in layers:
        for how, error in (("by itself", layer.isolated), ("carried along", layer.propagated)):
            if error is not None and not error.ok:
                return layer, how, error
    return None


# ---------------------------------------------------------------------------------------------- how fast?


def _pairs(focus: Measurement, reference: Measurement | None) -> list[tuple[Layer, float, float]]:
    """Each layer that both have timed: with its time and the reference's, in ns."""
    theirs = {layer.output: layer.time_ns for layer in reference.layers if layer.output} if reference else {}
    found = []
    for layer in focus.layers:
        other = theirs.get(layer.output)
        if layer.output and layer.time_ns and other:
            found.append((layer, layer.time_ns, other))
    return found


def _fast(focus: Measurement, reference: Measurement | None) -> Answer:
    pairs = _pairs(focus, reference)
    if not pairs or reference is None:
        return Answer(NOTHING, "" if reference is None else "no layer to compare")
    lost, won = (
        _named(pairs, [layer for layer, own, other in pairs if sign(own, other)])
        for sign in (lambda own, other: own > TELLING * other, lambda own, other: other > TELLING * own)
    )
    doubts = (*doubt.own(focus), *doubt.of_other(reference.case.backend, doubt.own(reference)))
    mark = doubt.MARK * bool(doubts)
    lines = [
        f"{layer_name(layer)}: {units.duration(own)} beside {units.duration(other)}"
        for layer, own, other in pairs
    ]
    told = f"each layer's time as it is beside {reference.case.backend}'s; it has no interval"
    why = "\n".join([told, *lines, *doubts])
    tensors = tuple(layer.output for layer, own, other in sorted(pairs, key=lambda p: p[2] - p[1]))
    if not (lost or won):
        return Answer(f"no layer differs{mark}", f"beside {reference.case.backend}", "", why, tensors)
    told_of = [
        f"{verb} on {orders.listed(names)}" for verb, names in (("loses", lost), ("wins", won)) if names
    ]
    first, second = [*told_of, f"beside {reference.case.backend}"][:2]
    return Answer(f"{first}{mark}", second, "", why, tensors)


def _named(pairs: Sequence[tuple[Layer, float, float]], chosen: Sequence[Layer]) -> list[str]:
    """Layers in few words: an operator's name where all layers of its kind are among them ("every conv" of
    several), else the layers' own."""
    names: list[str] = []
    kinds = {id(layer): _kind(layer) for layer, _, _ in pairs}
    outputs = {layer.output for layer in chosen}
    for kind in dict.fromkeys(kinds[id(layer)] for layer in chosen):
        alike = [layer for layer, _, _ in pairs if kinds[id(layer)] == kind]
        inside = [layer for layer in alike if layer.output in outputs]
        if len(inside) == len(alike):
            names.append(f"every {kind}" if len(alike) > 1 else kind)
        else:
            names += [layer_name(layer) for layer in inside]
    return names


def _kind(layer: Layer) -> str:
    key = breakdown.category(layer)
    return palette.CATEGORIES[key][0] if key != "other" else layer.op_type.partition("+")[0].lower()


# ------------------------------------------------------------------------------------------- held back by


def _held(focus: Measurement, reference: Measurement | None, runs: Sequence[Run]) -> Answer:
    timed = [layer for layer in focus.layers if layer.time_ns]
    if not timed:
        return Answer(NOTHING, "no layer was timed")
    gaps = [(layer, own - other) for layer, own, other in _pairs(focus, reference) if own > TELLING * other]
    if gaps:
        layer, most = max(gaps, key=lambda item: item[1])
        share, of = most / sum(ns for _, ns in gaps), "of the gap"
    else:
        layer = max(timed, key=lambda each: each.time_ns or 0.0)
        share, of = (layer.time_ns or 0.0) / sum(each.time_ns or 0.0 for each in timed), "of the time"
    limit = limit_of(layer, focus, runs)
    told = limits.standing(*limit) if limit is not None else ""
    near = f"{limits.percent(limit[0])} of {limits.NAMES[limit[1]]}" if limit is not None else ""
    why = "\n".join(filter(None, [f"{layer_name(layer)} runs {layer.rung}" if layer.rung else "", told]))
    detail = ", ".join(filter(None, [layer.rung, near]))
    return Answer(f"{layer_name(layer)}: {units.percent(share, 0)} {of}", detail, "", why, (layer.output,))
