"""Single passes of a session over given inputs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench.measure.timing import first_run
from engine.backend import Session


def one_pass(session: Session, inputs: Mapping[str, np.ndarray]) -> float:
    """A pass over these inputs; the seconds that it took."""
    session.bind(inputs)
    return first_run(session) / 1e9


def answers_of(session: Session, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    one_pass(session, inputs)
    return session.fetch()


def disturbed(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Other inputs of the same shapes: images in reverse order and negated (integers as they are)."""
    return {name: -a[::-1] if a.dtype.kind == "f" else a[::-1] for name, a in inputs.items()}
