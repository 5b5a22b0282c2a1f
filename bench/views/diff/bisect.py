"""Where a case leaves the reference: the first layer whose answer is beyond its bound, and whether it is that
layer's own doing or what the layers before it handed on, in a sentence made of the errors that were measured.

A layer was looked at twice: fed right inputs (isolated), and fed what the backend itself computed before it
(propagated). Beyond its bound when fed right inputs, it is at fault itself; beyond it only with what came
before, it carries that along. The float64 oracle is what both are held against; where the reference is no
better on the layer, that is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from bench.results.records import Layer, Measurement
from bench.results.rows import Row, label, title
from bench.words import units

NO_BETTER = 2.0  # times the reference's own error, up to which it is no better


@dataclass(frozen=True)
class Leaving:
    """layer: where it begins; how: by itself, or carried along; after: which layers behind it are beyond
    their bounds too, as it is handed on; alone: further ones that are wrong by themselves."""

    layer: Layer
    how: Literal["isolated", "propagated"]
    after: tuple[Layer, ...] = ()
    alone: tuple[Layer, ...] = ()


def leaving(layers: Sequence[Layer]) -> Leaving | None:
    """The first layer, in the model's order, that is beyond its bound; None where none is. One that is wrong
    by itself comes before one that carries something along, as it is where that comes from."""
    alone = [layer for layer in layers if layer.isolated is not None and not layer.isolated.ok]
    along = [layer for layer in layers if layer.propagated is not None and not layer.propagated.ok]
    if alone:
        first = alone[0]
        place = layers.index(first)
        fed = _downstream(layers, first)
        before = [layer for layer in along if layers.index(layer) < place]
        if not before:
            after = tuple(layer for layer in along if layer.output in fed)
            return Leaving(first, "isolated", after, tuple(alone[1:]))
    if along:
        fed = _downstream(layers, along[0])
        return Leaving(
            along[0], "propagated", tuple(layer for layer in along[1:] if layer.output in fed), tuple(alone)
        )
    return None


def _downstream(layers: Sequence[Layer], first: Layer) -> set[str]:
    """The outputs that depend on a layer's."""
    found = {first.output}
    for layer in layers[layers.index(first) + 1 :]:
        if found.intersection(layer.inputs):
            found.add(layer.output)
    return found - {first.output}


def words(measurement: Measurement) -> str:
    """The sentence of a case."""
    layers = measurement.layers
    found = leaving(layers)
    known = [layer for layer in layers if layer.isolated is not None]
    if found is None:
        if not known:
            return _nothing(measurement)
        carried = [layer for layer in layers if layer.propagated is not None]
        if not carried:
            return (
                f"no layer is wrong by itself ({len(known)} of {len(layers)} looked at); what they make "
                "together was not looked at layer by layer"
            )
        worst = max(carried, key=lambda layer: layer.propagated.rel_l2 if layer.propagated else 0.0)
        error = worst.propagated
        assert error is not None
        return (
            f"no layer leaves the reference: {len(known)} of {len(layers)} were looked at alone, and the "
            f"largest error with what came before is {_error(error.rel_l2)} at {_name(worst)} (bound "
            f"{_error(error.bound)})"
        )
    return _told(found, layers)


def _told(found: Leaving, layers: Sequence[Layer]) -> str:
    layer = found.layer
    error = layer.isolated if found.how == "isolated" else layer.propagated
    assert error is not None
    by = f" ({layer.op_type}{f', rung {layer.rung}' if layer.rung else ''})"
    beyond = _beyond(error.rel_l2, error.bound, error.reason)
    reference = _reference(error.ratio)
    where = f"the first layer to leave the reference is {_name(layer)}{by}"
    if found.how == "isolated":
        said = f"{where}: fed right inputs it is {beyond}{reference}, so the fault is its own (isolated)"
    else:
        own = layer.isolated
        alone = (
            f"fed right inputs its error is {_error(own.rel_l2)}, within its bound"
            if own
            else ("it was not looked at alone")
        )
        said = (
            f"{where}: with what the layers before it computed it is {beyond}{reference}, while {alone}, so "
            "it is carried along (propagated)"
            if own
            else f"{where}: with what the layers before it computed it is {beyond}{reference}; {alone}"
        )
    if found.after:
        names = _names(found.after)
        are = "is" if len(found.after) == 1 else "are"
        said += f"; behind it {names} {are} beyond the bound as it is handed on"
    elif found.how == "isolated" and any(item.propagated is not None for item in layers):
        said += "; no layer behind it is beyond its bound"
    if found.alone:
        said += (
            f"; wrong by {'itself' if len(found.alone) == 1 else 'themselves'}, too: {_names(found.alone)}"
        )
    return said


def left(measurement: Measurement) -> str:
    """The sentence where a layer leaves the reference, else ""."""
    found = leaving(measurement.layers)
    return _told(found, measurement.layers) if found is not None else ""


def lines(items: Iterable[Row]) -> list[str]:
    """A sentence a contender, the same one for several batch sizes once; references last."""
    found: dict[tuple[str, str, str], list[int]] = {}
    rows = list(items)
    for row in sorted(rows, key=lambda row: row.is_reference):
        case = row.case
        who = label(case.backend, case.precision)
        found.setdefault((title(case.model), who, words(row.measurement)), []).append(case.batch)
    known = {row.case.batch for row in rows}
    return [
        f"{model} on {who}, batch {units.spans(batches, known)}: {said}."
        for (model, who, said), batches in found.items()
    ]


def _nothing(measurement: Measurement) -> str:
    why = f" ({measurement.disposition.replace('_', ' ')}" if measurement.disposition != "ok" else ""
    reason = f": {measurement.reason}" if why and measurement.reason else ""
    return f"its layers were not looked at{why}{reason}{')' if why else ''}"


def _beyond(rel_l2: float, bound: float, reason: str) -> str:
    if rel_l2 > bound:
        return f"off by {_error(rel_l2)}, {units.digits(rel_l2 / bound, 2)} times its bound"
    return f"beyond its bound ({reason})" if reason else f"off by {_error(rel_l2)}"


def _reference(ratio: float | None) -> str:
    if ratio is None:
        return ""
    if ratio <= NO_BETTER:
        return f", where the reference is no better ({units.times(ratio)} its error)"
    return f" and {units.times(ratio)} the reference's own error"


def _error(value: float) -> str:
    return units.exponent(value)


def _name(layer: Layer) -> str:
    return layer.nodes[0] if layer.nodes else layer.output


def _names(layers: Sequence[Layer]) -> str:
    names = [_name(layer) for layer in layers]
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
