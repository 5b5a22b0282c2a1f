"""Errors of a model's layers, which many cases share: each taken once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from bench import layer_errors, layers
from bench.material import Material
from bench.records import Layer
from engine import backends
from engine.backend import Options
from kernels.errors import UnsupportedError

if TYPE_CHECKING:
    from bench.contender import Contender


class LayerErrors:
    """Errors of layers by backend, precision and rungs: beyond that they do not depend on the batch, so they
    are taken once, of the rungs that were timed at the case's batch where some were. Of a reference in a
    configuration of its own, which chooses its algorithms out of sight, they are taken at each batch."""

    def __init__(self) -> None:
        self._found: dict[tuple[object, ...], dict[str, Layer]] = {}

    def merged(self, contender: Contender, material: Material, timed: tuple[Layer, ...]) -> tuple[Layer, ...]:
        """`timed` with the errors of the same tensors."""
        options = _with_rungs(contender.options, timed)
        key = (contender.case.backend, contender.case.precision, *options.rungs.items(), *_at(contender))
        if key not in self._found:
            try:
                found = self._measured(contender, material, options)
            except UnsupportedError:  # a rung that takes the case's batch and not that of the golden images
                found = self._measured(contender, material, contender.options)
            held = {layer.output: layer for layer in found if layer.output}
            if contender.options.ort is not None:
                held |= _errors_at(contender, material, held)
            self._found[key] = held
        known = self._found[key]
        return tuple(
            msgspec.structs.replace(
                layer, isolated=known[layer.output].isolated, propagated=known[layer.output].propagated
            )
            if layer.output in known
            else layer
            for layer in timed
        )

    @staticmethod
    def _measured(contender: Contender, material: Material, options: Options) -> tuple[Layer, ...]:
        golden = material.golden()
        reference = backends.get(contender.backend.reference)
        return layers.measure(
            material.graph,
            contender.backend,
            contender.case.precision,
            options,
            golden,
            golden.images,
            reference=reference if reference.unavailable() is None else None,
            times=False,
        )


def _with_rungs(options: Options, timed: Sequence[Layer]) -> Options:
    """The rungs that ran named by node where some were timed at the case's own batch, at another one other
    rungs would run."""
    if all(layer.chosen != "timed" for layer in timed):
        return options
    return replace(options, rungs={layer.nodes[0]: layer.rung for layer in timed if layer.rung})


def _at(contender: Contender) -> tuple[object, ...]:
    """What the errors of its layers hang on beside backend and precision."""
    configured = contender.options.ort
    return () if configured is None else (configured, contender.case.batch)


def _errors_at(contender: Contender, material: Material, held: Mapping[str, Layer]) -> dict[str, Layer]:
    """Layers of `held` with the errors that they have alone at the case's own batch."""
    case = contender.case
    errors = layer_errors.errors_at(
        material.graph, contender.backend, case.precision, contender.options, material.golden(), case.batch
    )
    return {
        part.output: msgspec.structs.replace(held[part.output], isolated=stats_)
        for part, stats_ in errors
        if part.output in held
    }
