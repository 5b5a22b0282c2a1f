"""Were the passes that were timed right? Some of them, chosen afterwards, are rebuilt and looked at.

Each was given inputs of its own (engine.stirring), and what it left was kept. It has to be what the same
inputs give when nobody measures, and that has to be what float64 gives: a kernel that answers from memory,
does its work outside of the time, or knows when it is timed fails one or the other.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping

import numpy as np

from bench import accuracy
from bench.outcomes import Incorrect
from bench.records import ErrorStats
from engine.witness import Witnessed

LOOKED_AT = 4  # timed passes, each drawn
ALSO_BY_ORACLE = 1  # of them

Arrays = Mapping[str, np.ndarray]
WHEN = "during timing"


def check(
    session: Witnessed,
    again: Callable[[Arrays], Arrays],
    right: Callable[[Arrays, Arrays], ErrorStats | None],
    precision: str,
    factor: float = 1.0,
) -> ErrorStats | None:
    """Raises Incorrect where a timed pass was wrong; None where none was timed since this was asked last.

    again: an untimed pass of the same session over these inputs, its outputs by name. right: inputs and
    outputs of such a pass against float64, as far as it is worth it; None where there is nothing to hold it
    against. precision, factor: the bound.
    """
    stirring, witnesses = session.stirring, list(session.witnesses())
    if stirring is None or not witnesses:
        return None
    secrets.SystemRandom().shuffle(witnesses)
    found: ErrorStats | None = None
    # All that is rebuilt comes first: a pass over other inputs begins another stirring.
    chosen = [(w, stirring.inputs_of(w.number)) for w in witnesses[:LOOKED_AT]]
    for place, (witness, inputs) in enumerate(chosen):
        answers = again(inputs)
        for name, (places, values) in witness.outputs.items():
            expected = np.asarray(answers[name]).reshape(-1)[places].astype(np.float64)
            stats = accuracy.judged(values.astype(np.float32), expected, precision, factor)
            if not stats.ok:
                raise Incorrect(stats, WHEN, _words(name, values, stats))
        if place < ALSO_BY_ORACLE and (stats_ := right(inputs, answers)) is not None:
            if not stats_.ok:
                raise Incorrect(stats_, f"{WHEN}, on inputs that were timed")
            found = stats_
    return found


def _words(name: str, values: np.ndarray, stats: ErrorStats) -> str:
    unwritten = values.dtype.kind == "f" and bool(np.isnan(values).any())
    why = "it never wrote all of its answer" if unwritten else stats.reason
    return f"a timed pass left in {name} what its inputs do not give ({why})"
