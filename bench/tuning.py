"""What is measured once for a case before it is prepared, where this machine does not know it yet: in the
worker, before anything of the case's group is on the device."""

from __future__ import annotations

from collections.abc import Callable

from bench.material import Material
from bench.records import Case, Job
from bench.tune_reference import ReferenceSweep, Subject
from engine import backends, ort_configuration, ort_tuning
from engine.backend import Variant
from engine.fused_conv import fused
from engine.graph import Graph
from engine.ort_configuration import Configuration

Progress = Callable[[str, float | None], None]


def lacks(case: Case, graph: Graph, job: Job) -> bool:
    """Whether there is something to be measured for this case first."""
    return _lacks_sweep(case, graph, job)


def tune(case: Case, material: Material, job: Job, progress: Progress) -> None:
    """Measure it. Raises what the backend raises, tune_reference.DeviceLost, and what `progress` raises."""
    if _lacks_sweep(case, material.graph, job):
        _sweep(case, material, progress)


def _lacks_sweep(case: Case, graph: Graph, job: Job) -> bool:
    backend = backends.get(case.backend)
    if not job.tune_reference or not isinstance(backend, Variant) or backend.unavailable() is not None:
        return False
    plain = backends.get(backend.variant_of)
    if plain.supports(graph, case.batch, case.precision) is not None:
        return False
    known = ort_tuning.read(plain.name, graph, case.batch, case.precision)
    return known is None or not known.done


def _sweep(case: Case, material: Material, progress: Progress) -> None:
    backend = backends.get(case.backend)
    assert isinstance(backend, Variant)
    plain = backends.get(backend.variant_of)
    at = (plain.name, material.graph, case.batch, case.precision)
    lost = _lost if plain.device == "cuda" else lambda: False
    subject = Subject(plain, material, case.batch, case.precision, material.options, lost)
    ReferenceSweep(
        subject,
        configurations(material.graph),
        lambda sweep: ort_tuning.write(*at, sweep),
        progress,
        ort_tuning.read(*at),
    ).run()


def _lost() -> bool:
    from engine import rung_cuda

    return rung_cuda.lost()


def configurations(graph: Graph) -> tuple[Configuration, ...]:
    """Those of the CUDA provider that differ for this model."""
    same = fused(graph) is graph
    return tuple(c for c in ort_configuration.cuda() if not (c.fused_conv and same))
