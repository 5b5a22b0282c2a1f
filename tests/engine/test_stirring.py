"""No pass is given what another was: the changes of inputs that a timed pass sees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.rung_rows import Rows
from engine.stirring import CHANGED, LOOKED_AT, POISONED, Stirring, places_of

DTYPES = ("float32", "float16", "float64", "int64", "int32", "uint8", "bool")


def _inputs(shape: tuple[int, ...], dtype: str, fill: int | None = None) -> dict[str, np.ndarray]:
    drawn = np.random.default_rng(0).standard_normal(shape) * 3
    return {"x": (np.full(shape, fill) if fill is not None else drawn).astype(dtype)}


@given(
    st.lists(st.integers(1, 9), min_size=0, max_size=4).map(tuple),
    st.sampled_from(DTYPES),
    st.integers(0, 2**40),
)
def test_a_pass_is_rebuilt_from_its_number_and_changes_every_row(
    shape: tuple[int, ...], dtype: str, number: int
) -> None:
    bound = _inputs(shape, dtype)
    stirring = Stirring(bound, {"y": ((2, 3), np.dtype("float32"))}, seed=5)
    found = stirring.inputs_of(number)["x"]
    again = Stirring(bound, {"y": ((2, 3), np.dtype("float32"))}, seed=5).inputs_of(number)["x"]
    assert found.dtype == bound["x"].dtype
    assert found.tobytes() == again.tobytes()
    differs = (found != bound["x"]).reshape(shape[0] if len(shape) > 1 else 1, -1)
    assert differs.any(axis=1).all()
    if len(np.unique(bound["x"])) > 1:  # what is drawn stays within what the net is given
        assert bound["x"].min() <= found.min()
        assert found.max() <= bound["x"].max()


@pytest.mark.parametrize("fill", [0, 7])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_constant_input_changes_as_well(dtype: str, fill: int) -> None:
    bound = _inputs((3, 5), dtype, fill)
    assert (Stirring(bound, {}, seed=1).inputs_of(3)["x"] != bound["x"]).any(axis=1).all()


def test_no_two_passes_are_alike_and_seeds_tell_nothing_of_each_other() -> None:
    bound = _inputs((4, 1, 28, 28), "float32")
    stirring = Stirring(bound, {}, seed=1)
    passes = {stirring.inputs_of(number)["x"].tobytes() for number in range(300)}
    assert len(passes) == 300
    assert Stirring(bound, {}, seed=2).inputs_of(0)["x"].tobytes() not in passes
    assert Stirring(bound, {}).seed != Stirring(bound, {}).seed


def test_what_is_looked_at_is_not_what_was_poisoned() -> None:
    stirring = Stirring(_inputs((2, 2), "float32"), {"y": ((8, 1000), np.dtype("float32"))}, seed=3)
    tensor = stirring.outputs["y"]
    poisoned, looked = (stirring.places(tensor, 9, of) for of in (POISONED, LOOKED_AT))
    assert len(set(poisoned)) == len(poisoned) == tensor.count == places_of((8, 1000))
    assert len(set(poisoned) & set(looked)) < tensor.count / 8
    assert {place // 1000 for place in looked} == set(range(8))
    assert (stirring.places(tensor, 10, LOOKED_AT) != looked).any()
    assert stirring.places(stirring.inputs["x"], 9, CHANGED).max() < 4


def test_a_batch_that_repeats_a_few_rows_is_stirred_as_if_it_were_whole() -> None:
    distinct = np.random.default_rng(0).standard_normal((3, 4, 5)).astype(np.float32)
    index = np.random.default_rng(1).integers(0, 3, 50)
    rows = Rows(distinct, index, (50, 4, 5))
    few, whole = (Stirring({"x": it}, {}, seed=4) for it in (rows, np.asarray(rows)))
    for number in (0, 7):
        assert few.inputs_of(number)["x"].tobytes() == whole.inputs_of(number)["x"].tobytes()
    assert np.asarray(rows).tobytes() == distinct[index].tobytes(), "and stays as it is"
