"""What a model needs of memory is worked out before anything is allocated."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from bench.measure.answers import memory_check, oracle
from engine.cpu import session
from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from engine.machine import host
from kernels.errors import OutOfMemoryError, UnsupportedError
from tests.engine.harness import make_model, random


def chain(length: int, shape: tuple[int, ...]) -> Graph:
    nodes = [helper.make_node("Tanh", [f"t{i}"], [f"t{i + 1}"], f"n{i}") for i in range(length)]
    return from_proto(
        make_model(nodes, {"t0": ("N", *shape)}, [f"t{length}"], ranks={f"t{length}": 1 + len(shape)})
    )


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 6), st.lists(st.integers(1, 9), min_size=1, max_size=3), st.integers(1, 5))
def test_no_less_is_planned_than_what_is_held(length: int, shape: list[int], images: int) -> None:
    graph = chain(length, tuple(shape))
    answers = oracle.run(graph, {"t0": random((images, *shape))}, [f"t{i + 1}" for i in range(length)])
    found = memory_check.needs(graph, images, images)
    assert found.answers >= sum(array.nbytes for array in answers.values())
    elements = math.prod((images, *shape))
    assert found.passes >= 2 * 4 * (2 + 1) * elements, (
        "of two: what a node reads and writes, and what it is fed"
    )


@pytest.mark.parametrize("elements", [2_000_000_000, 1 << 40])
@pytest.mark.parametrize("free", [1 << 30, 16 << 30])
def test_what_no_memory_holds_is_refused_by_arithmetic(
    elements: int, free: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_check, "free_nbytes", lambda: free)
    told = r"needs .* of memory at the least .* are free: a smaller batch|more elements than any memory holds"
    with pytest.raises((OutOfMemoryError, UnsupportedError), match=told):
        memory_check.check(chain(1, (elements,)), 1, 2)


def test_a_container_has_what_its_limit_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [tmp_path / name for name in ("memory.max", "memory.current", "memory.stat")]
    monkeypatch.setattr(host, "_LIMITS", (tuple(map(str, files[:2])),))
    for file, text in zip(files, ("1000000", "400000", "anon 5\ninactive_file 100000"), strict=True):
        file.write_text(f"{text}\n")
    assert host.free_nbytes() == 700_000, "what is used there counts files that are cached"
    session.refuse_too_large("it", 699_999)
    with pytest.raises(OutOfMemoryError):
        session.refuse_too_large("it", 700_001)
    files[0].write_text("max\n")
    assert host.free_nbytes() > 1_000_000


def test_a_batch_that_fits_is_taken_and_the_next_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = chain(3, (1000,))
    monkeypatch.setattr(memory_check, "free_nbytes", lambda: memory_check.needs(graph, 64, 2).total)
    memory_check.check(graph, 64, 2)
    with pytest.raises(OutOfMemoryError):
        memory_check.check(graph, 65, 2)
