"""What is compiled before it is wanted is all that is wanted then."""

from __future__ import annotations

from engine.cpu import ahead
from kernels import registry
from kernels.ops import OPS


def test_it_compiles_a_function_of_every_compiled_rung_and_what_joins_them() -> None:
    found = {function.function.__code__.co_filename for function in ahead.functions()}
    rungs = {str(rung.path) for op in OPS for rung in registry.rungs("cpu", op) if rung.compiled}
    assert rungs
    assert found > rungs
