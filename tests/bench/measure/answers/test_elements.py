"""Single elements of an answer are those of the oracle's whole answer, for every operator that has them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.measure.answers import elements, one_node
from kernels.ops import OPS, Params
from kernels.ops.binary import Binary
from kernels.ops.pool import Pool
from kernels.ops.unary import Unary
from tests.kernels.drawn import DRAWN

COLUMN = Binary("sub", (600, 1, 1), (1, 0, 0), (1, 0, 0))
LARGE = ("conv", "conv3d", "conv_pool", "conv_transpose", "gemm")  # an image may take the oracle minutes


@pytest.mark.parametrize("op", LARGE)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), seed=st.integers(0, 1 << 20))
def test_each_is_as_in_the_whole_answer(op: str, data: st.DataObject, seed: int) -> None:
    p = data.draw(DRAWN[op])
    inputs = one_node.draw(p, random := np.random.default_rng(seed))
    whole = one_node.answer(p, inputs).reshape(-1)
    places = elements.drawn(p.output_shape, random)
    assert elements.known(p)
    np.testing.assert_allclose(elements.answer(p, inputs, places), whole[places], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("p", [Unary("tanh", 5000), Unary("gelu", 500), COLUMN])
def test_what_has_no_neighbours_is_asked_of_the_oracle_alone(p: Params) -> None:
    inputs = one_node.draw(p, random := np.random.default_rng(0))
    places = elements.drawn(p.output_shape, random)
    np.testing.assert_array_equal(
        elements.answer(p, inputs, places), one_node.answer(p, inputs).reshape(-1)[places]
    )


def test_who_may_have_large_rows_has_elements() -> None:
    """Each of these multiplies for every output; of what is left a row is as cheap as its elements."""
    several = {op for op, of in OPS.items() if of.of_squares is not Params.of_squares}
    assert several <= {*LARGE, "reduce"}
    assert not elements.known(Pool("max", 1, 3, 8, 8, 2, 2, 4, 4, 2, 2))


def test_places_are_everywhere_and_at_the_ends() -> None:
    shape, random = (3, 40, 50, 60), np.random.default_rng(1)
    places = np.concatenate([elements.drawn(shape, random) for _ in range(200)])
    assert places.min() >= 0
    assert places.max() < np.prod(shape)
    for axis, index in enumerate(np.unravel_index(places, shape)):
        ends = np.isin(index, (0, shape[axis] - 1)).mean()
        assert axis == 0 or ends > 2 / shape[axis] + 0.02, "more often than by chance"
        assert len(np.unique(index)) == shape[axis]
    assert elements.drawn((2, 3), random).tolist() == list(range(6))


def test_one_in_sixty_is_found() -> None:
    """Which elements are wrong is drawn once; what is looked at, each time."""
    random = np.random.default_rng(2)
    wrong = random.random(200_000) < 1 / 60
    missed = sum(not wrong[elements.drawn(wrong.shape, random)].any() for _ in range(2000))
    assert missed <= 6  # 0.0009 of 2,000 are 1.7
