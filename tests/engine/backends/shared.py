"""Every backend as a pytest parameter, and one forward pass of a graph on one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from engine.backend import Backend, Options, by_default
from engine.backends import all_backends
from engine.graph.graph import Graph

EVERY_BACKEND = [
    pytest.param(backend, id=name, marks=[pytest.mark.gpu] if backend.device == "cuda" else [])
    for name, backend in all_backends().items()
    if by_default(backend)
]


def usable(backend: Backend) -> Backend:
    """The backend, or the test is skipped with the reason."""
    reason = backend.unavailable()
    if reason is not None:
        pytest.skip(f"{backend.name}: {reason}")
    return backend


def answers(
    backend: Backend, graph: Graph, feeds: Mapping[str, np.ndarray], batch: int, **options: Any
) -> dict[str, np.ndarray]:
    """All outputs of one pass in fp32."""
    session = backend.prepare(graph, batch, "fp32", Options(threads=1, **options))
    try:
        session.bind(feeds)
        session.run()
        session.synchronize()
        return session.fetch()
    finally:
        session.close()
