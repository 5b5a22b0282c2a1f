"""The layer errors of a reference, kept on disk.

A library that did not change, on a machine that did not change, gives the same inputs the same errors, and
computing them takes as long as timing the model. The errors of our own kernels are never kept: a comparison
is there to check them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager

from bench.measure.answers import accuracy, oracle
from bench.measure.answers.oracle import Golden
from bench.results.records import ErrorStats
from engine.backend import Backend, Options
from engine.graph.graph import Graph
from engine.machine import host
from engine.ort import tuning as ort_tuning
from engine.planning.choices import Part
from kernels.cache import Key
from kernels.errors import KernelError
from kernels.precision import of

Known = dict[str, ErrorStats]
"""By output tensor."""
ERRORS = Part[Known]("errors", Known)


@contextmanager
def kept(
    what: str, graph: Graph, backend: Backend, precision: str, options: Options, golden: Golden
) -> Iterator[Known]:
    """What is known of a reference on this machine, to be added to by errors that are within their bounds; it
    is kept at the end. what: how the
    errors were taken ("isolated", "propagated"). Of any other backend nothing is known or kept."""
    if backend.name != backend.reference or options.kernel_dirs or options.ort is not None:
        yield {}
        return
    case = ort_tuning.key(backend.name, graph, golden.images, precision)
    on = _on(what, graph, precision, options, golden)
    found = ERRORS.read(case, on) or {}
    before = dict(found)
    yield found
    if found != before:
        with contextlib.suppress(KernelError):  # a read-only cache costs time, not the answer
            ERRORS.write(case, on, found)


def _on(what: str, graph: Graph, precision: str, options: Options, golden: Golden) -> Key:
    return {
        "what": what,
        "devices": ", ".join(graph.devices),
        "answers": oracle.content_key(graph, golden.inputs),
        "judged": f"{of(precision).bound}, {accuracy.PROPAGATED_FACTOR}",
        "cpu": host.cpu_name(),
        "threads": str(options.threads),
        "options": ", ".join(f"{name}={value}" for name, value in sorted(options.provider_options.items())),
    }
