"""What is known of each precision fits together."""

import pytest

from bench.words import palette
from kernels.precision import EXACT, NAMES, PRECISIONS, of


def test_they_are_listed_from_the_strictest_to_the_coarsest():
    for fact in ("bound", "model_bound", "pass_rounding"):
        values = [getattr(precision, fact) for precision in PRECISIONS.values()]
        assert values == sorted(values)
    widths = [precision.weight_nbytes for precision in PRECISIONS.values()]
    assert widths == sorted(widths, reverse=True)


@pytest.mark.parametrize("name", NAMES)
def test_what_the_reference_computes_is_no_coarser(name):
    precision = PRECISIONS[name]
    assert PRECISIONS[precision.reference].bound <= precision.bound
    assert (name in EXACT) == (precision.bound == PRECISIONS[NAMES[0]].bound)


def test_they_are_told_apart_in_a_chart_where_one_is_not_known_as_well():
    assert len({palette.marker(name) for name in (*NAMES, "mixed-1e-3", "int8")}) == len(NAMES) + 2
    colours = [precision.colour for precision in (*PRECISIONS.values(), of("mixed-1e-3"))]
    assert len(set(colours)) == len(colours)
    assert palette.dash("int8") == "--"
