"""What a run makes of configurations of a backend that were chosen by what was measured on this machine.

Cases of a group may be one and the same: ONNX Runtime's fastest configuration is most often within the bound
of the precision, and then the fastest of those that are within it, too. The same sessions would be timed
under two names: one case is measured and speaks for the others.

One may come wrong in a case. A sweep's winner was right when it was tuned, and confirmed in a second session;
what a session chooses when it is created (cuDNN's algorithms) another may still choose otherwise. What is
kept then says so, and the next best wins in its place.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence

import msgspec

from bench.results import artifacts
from bench.results.records import MEASURED_AS, PARTS, Case, Measurement
from engine import backends
from engine.backend import Backend, Options, Variant
from engine.graph.graph import Graph
from engine.options import Configuration
from engine.ort import tuning as ort_tuning
from kernels.cache import atomic_file
from kernels.errors import KernelscopeError, system_words


def found(
    group: Sequence[Case], graph: Graph, options: Callable[[Backend], Options]
) -> dict[str, tuple[Case, ...]]:
    """By the key of a case that is to be measured: the others of `group` (cases that differ in the backend
    alone) that are the same. It is the one that is held against the stricter bound. options: what a case of a
    backend is prepared with. Nothing of what cannot run, or was chosen nothing for, is here."""
    alike: dict[tuple[str, Configuration], list[Case]] = {}
    for case in group:
        backend = backends.get(case.backend)
        if not isinstance(backend, Variant) or backend.unavailable() is not None:
            continue
        try:
            chosen = backend.resolved(graph, case.batch, case.precision, options(backend)).ort
        except KernelscopeError:
            continue
        if chosen is not None:
            alike.setdefault((backend.variant_of, chosen), []).append(case)
    same = {}
    for members in alike.values():
        first, *others = sorted(members, key=_lenient)
        if others:
            same[first.key] = tuple(others)
    return same


def doubt(
    case: Case, backend: Backend, graph: Graph, options: Options, reason: str
) -> tuple[str, bool] | None:
    """Note in what is kept that the case's configuration came wrong. Returns that in words, and whether
    another is kept in its place; None where nothing kept says otherwise, or where it cannot be noted: then
    it would be chosen again."""
    if not isinstance(backend, Variant) or options.ort is None:
        return None
    at = (backend.variant_of, graph, case.batch, case.precision)
    kept = ort_tuning.read(*at)
    chosen = kept and (kept.lenient if backend.lenient else kept.best)
    if kept is None or chosen is None or chosen != options.ort:
        return None
    left = kept.without(chosen, reason, strict=not backend.lenient)
    try:
        ort_tuning.write(*at, left)
    except KernelscopeError:
        return None
    instead = left.lenient if backend.lenient else left.best
    taken = instead.words if instead is not None else "nothing else that is known to be right"
    words = f"{chosen.words} came wrong where it was right when tuned; {taken} is taken instead"
    return words, instead is not None


def as_own(measured: Measurement, case: Case, folder: str) -> Measurement:
    """What `measured` is for a case that is the same, with a fact that says so; the files of its case in the
    run folder `folder` ("": none) are copied."""
    told = f"{measured.case.backend}: the same configuration"
    made = msgspec.structs.replace(measured, case=case, facts={**measured.facts, MEASURED_AS: told})
    try:
        for kind in PARTS if folder else ():
            source = artifacts.path(folder, kind, measured.case)
            if source.exists():
                with atomic_file(artifacts.path(folder, kind, case)) as temporary:
                    shutil.copyfile(source, temporary)
    except OSError as error:
        said = f"the files of {measured.case.backend} could not be copied: {system_words(error)}"
        validity = msgspec.structs.replace(made.validity, warnings=(*made.validity.warnings, said))
        made = msgspec.structs.replace(made, validity=validity)
    return made


def _lenient(case: Case) -> bool:
    return bool(getattr(backends.get(case.backend), "lenient", False))
