"""What came of one of ONNX's tests on an engine of ours: right, refused with the reason, or wrong."""

from __future__ import annotations

import functools
import multiprocessing
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from engine import backends
from engine.backend import Options
from engine.graph.importer import from_proto
from engine.ops import MissingOperatorError
from kernels.errors import KernelError, KernelscopeError, OutOfMemoryError, UnavailableError
from tests.conformance.onnx_suite import Case, cases


@dataclass(frozen=True)
class Outcome:
    """kind: "right", "refused" or "wrong"; why: of the last two. lacking: the operator for want of which a
    test is refused, which may be one of those that its own is written as."""

    kind: str
    why: str = ""
    lacking: str = ""


@functools.cache
def outcome(backend: str, index: int) -> Outcome:
    """Of one of `cases()`."""
    return came_of(backend, cases()[index])


def kinds(backend: str, processes: int = 1) -> list[str]:
    """Of each of `cases()`; in several processes, each with a device's context and a compiler of its own."""
    asked = range(len(cases()))
    if processes == 1:
        return [outcome(backend, index).kind for index in asked]
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(_kind, repeat(backend), asked, chunksize=8))


def _kind(backend: str, index: int) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the suite overflows on purpose
        try:
            return outcome(backend, index).kind
        except Exception as error:  # neither an answer nor a refusal in words
            print(f"{cases()[index].name}: {type(error).__name__}: {error}", file=sys.stderr)
            return "wrong"


def came_of(backend: str, case: Case) -> Outcome:
    """Run a test and look at the answers. A kernel that was taken and then failed is no refusal, and where a
    device is lost with it nothing behind it is one."""
    try:
        answers = _answers(backend, case)
    except (KernelError, OutOfMemoryError, UnavailableError) as error:
        return Outcome("wrong", f"{type(error).__name__}: {error}")
    except MissingOperatorError as error:
        return Outcome("refused", str(error), error.operator)
    except KernelscopeError as error:
        return Outcome("refused", str(error))
    try:
        for actual, expected in zip(answers.values(), case.expected, strict=True):
            assert actual.shape == expected.shape, f"shape {actual.shape} instead of {expected.shape}"
            np.testing.assert_allclose(actual, expected, case.rtol, case.atol)
    except AssertionError as error:
        return Outcome("wrong", str(error))
    return Outcome("right")


def _answers(name: str, case: Case) -> dict[str, np.ndarray]:
    backend = backends.get(name)
    graph = from_proto(case.proto, case.name)
    # The tests are one node each: what a process apart keeps apart is tested elsewhere.
    prepare = getattr(backend, "prepare_here", backend.prepare)
    session = prepare(graph, graph.fixed_batch or 1, "fp32", Options(threads=1))
    try:
        session.bind(dict(case.feeds))
        session.run()
        session.synchronize()
        return session.fetch()
    finally:
        session.close()
