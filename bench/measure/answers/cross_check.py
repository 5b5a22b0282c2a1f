"""Whether the float64 oracle can be trusted for a model: it is compared with ONNX Runtime, group by group.

Each group of nodes gets the oracle's own tensors as inputs, in both: in float64 here, in float32 in ONNX
Runtime's CPU provider. Many groups, side by side in one model, share one session. If ONNX Runtime refuses
that session, the group at fault is found by bisection.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.measure import timing
from bench.measure.answers import oracle, ties
from bench.measure.answers.oracle import Golden
from engine import backends
from engine.backend import Options
from engine.graph.graph import Graph
from engine.options import DISABLED, Configuration
from engine.ort import sessions as ort
from engine.planning import groups as grouping
from engine.planning import submodel
from engine.planning.choices import Part
from engine.planning.groups import Group
from engine.planning.submodel import SeparateParts
from kernels.cache import Key
from kernels.errors import KernelError, KernelscopeError, OutOfMemoryError

ORACLE = Part[bool]("oracle", bool)
# Of the tensors that groups of one session read and give out in float64; and groups of one session.
TOGETHER_NBYTES, TOGETHER = 128 << 20, 256


@dataclass(frozen=True)
class Crossed:
    """doubt: why the oracle is not trusted with a model; unchecked: where it is trusted though ONNX Runtime
    had nothing to say of it, and why. Each a sentence, "" where there is none."""

    doubt: str = ""
    unchecked: str = ""


_known: OrderedDict[str, Crossed] = OrderedDict()
_KEPT = 256


def cross_check(graph: Graph, answers: Golden) -> Crossed:
    """Compares the oracle's answers with ONNX Runtime's: the two have to agree within the fp32 bound. A group
    at which ONNX Runtime fails is not compared: that is the reference's own fault, and is reported as such.
    So is an answer of another shape if ONNX's own rules give the oracle's shape. Kept by the model's hash, on
    disk if they agree everywhere."""
    if graph.sha256 not in _known:
        case = _key(graph, answers)
        agreed = ORACLE.read(case, {})
        found = Crossed() if agreed else _crossed(graph, answers)
        if not agreed and found == Crossed():
            with contextlib.suppress(KernelError):  # a read-only cache costs time, not the answer
                ORACLE.write(case, {}, True)
        _known[graph.sha256] = found
        while len(_known) > _KEPT:
            _known.popitem(last=False)
    return _known[graph.sha256]


def _key(graph: Graph, answers: Golden) -> Key:
    """What an agreement holds for: the model and its groups, these inputs, both programs' versions."""
    return {
        "answers": oracle.content_key(graph, answers.inputs),
        "devices": ", ".join(graph.devices),
        "onnxruntime": str(ort.import_onnxruntime().__version__),
        "numpy": np.__version__,
    }


def _crossed(graph: Graph, answers: Golden) -> Crossed:
    unchecked: list[str] = []
    parts = [part for part in grouping.groups(graph, answers.images) if _is_known(part, answers)]
    for part, actual in answered(graph, parts, answers, _ort):
        where = f"at node {part.nodes[-1]} ({part.op_type})"
        words = f"the oracle is not trusted with {graph.name}: {where}"
        if isinstance(actual, KernelscopeError):
            unchecked.append(f"{where} ({actual})")
            continue
        right = answers.tensors[part.output]
        if actual.shape != right.shape:
            if right.shape == part.shape:
                unchecked.append(f"{where} (it answers in shape {actual.shape} and not in {right.shape})")
                continue
            return Crossed(f"{words} it answers in shape {right.shape}, ONNX Runtime in {actual.shape}")
        try:
            stats = oracle.judged_alone(actual, graph, part, answers, "fp32", lossy=True)
        except OutOfMemoryError:
            raise
        except KernelscopeError as error:
            return Crossed(f"{words} it could not be compared with ONNX Runtime: {error}")
        if not stats.ok:
            return Crossed(f"{words} it differs from ONNX Runtime: {stats.reason}")
    if not unchecked:
        return Crossed()
    more = f", and at {len(unchecked) - 1} more" if len(unchecked) > 1 else ""
    return Crossed(unchecked=f"the float64 oracle was not held against ONNX Runtime {unchecked[0]}{more}")


def _is_known(part: Group, answers: Golden) -> bool:
    return {*part.inputs, part.output} <= set(answers.tensors)


def _ort(apart: SeparateParts, answers: Golden) -> Mapping[str, np.ndarray]:
    """What ONNX Runtime's CPU provider answers for these groups; of what is quantised without its optimiser,
    which rounds a bias in float32 to whole numbers, too."""
    batch = apart.graph.fixed_batch or answers.images
    as_it_stands = Configuration(optimization=DISABLED) if ties.quantizes(apart.graph) else None
    how = Options(ort=as_it_stands)
    with contextlib.closing(backends.get("ort-cpu").prepare(apart.graph, batch, options=how)) as session:
        return timing.answers(session, oracle.fed_apart(apart, answers))


Answer = Callable[[SeparateParts, Golden], Mapping[str, np.ndarray]]


def answered(
    graph: Graph, parts: Sequence[Group], answers: Golden, answer: Answer, precision: str = "fp32"
) -> Iterator[tuple[Group, Any]]:
    """Each group and the array of its output, which `answer` computes for groups side by side; the error
    instead of the array if the group fails alone. Their right answers are computed with them
    (oracle.right_of_group). Raises OutOfMemoryError."""
    for some in _together(parts, answers):
        yield from _halved(graph, some, answers, answer, precision)


def _together(parts: Sequence[Group], answers: Golden) -> Iterator[Sequence[Group]]:
    """Groups that fit into one session's memory, in their order."""
    some: list[Group] = []
    held = 0
    for part in parts:
        nbytes = sum(answers.tensors[name].nbytes for name in (*part.inputs, part.output))
        if some and (held + nbytes > TOGETHER_NBYTES or len(some) == TOGETHER):
            yield some
            some, held = [], 0
        some.append(part)
        held += nbytes
    if some:
        yield some


def _halved(
    graph: Graph, parts: Sequence[Group], answers: Golden, answer: Answer, precision: str
) -> Iterator[tuple[Group, Any]]:
    try:
        apart = submodel.side_by_side(graph, [part.nodes for part in parts], answers.images)
        found = answer(apart, answers)
        short = [part for part in parts if part.flops <= oracle.LONG_FLOPS]
        if len(parts) > 1 and short:
            oracle.alone_together(apart, short, answers, precision)
    except OutOfMemoryError:
        raise
    except KernelscopeError as error:
        if len(parts) == 1:
            yield parts[0], error
            return
        middle = len(parts) // 2
        yield from _halved(graph, parts[:middle], answers, answer, precision)
        yield from _halved(graph, parts[middle:], answers, answer, precision)
        return
    yield from ((part, found[part.output]) for part in parts)
