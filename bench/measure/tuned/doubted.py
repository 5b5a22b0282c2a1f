"""A kept configuration that came wrong in a case: its record says so, and the next best wins in its place.

A sweep's winner was right when it was tuned, and confirmed in a second session. What a session chooses when
it is created (cuDNN's algorithms) another may still choose otherwise.
"""

from __future__ import annotations

import msgspec

from bench.results.records import Case
from engine.backend import Backend, Options, Variant
from engine.graph.graph import Graph
from engine.options import Configuration
from engine.ort import tuning as ort_tuning
from kernels.errors import KernelscopeError


class Doubted(msgspec.Struct, frozen=True, kw_only=True):
    """What came wrong, and what is kept in its place (None: nothing that was looked at is right)."""

    wrong: Configuration
    instead: Configuration | None

    @property
    def words(self) -> str:
        taken = self.instead.words if self.instead is not None else "nothing else that is known to be right"
        return f"{self.wrong.words} came wrong where it was right when tuned; {taken} is taken instead"


def doubt(case: Case, backend: Backend, graph: Graph, options: Options, reason: str) -> Doubted | None:
    """Note in what is kept that the case's configuration came wrong; None where nothing kept says otherwise,
    or where it cannot be noted: then it would be chosen again."""
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
    return Doubted(wrong=chosen, instead=left.lenient if backend.lenient else left.best)
