"""How an order of two is worded, and by which rule work is bound by a limit."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.results import stats
from bench.results.rows import rows
from bench.results.stats import Interval, Verdict
from bench.views.sentences import limits
from bench.words import orders
from tests.bench import synthetic

RATIOS = st.floats(1e-3, 1e3)


@settings(deadline=None, max_examples=200)
@given(st.tuples(RATIOS, RATIOS, RATIOS).map(sorted), st.booleans())
def test_a_ratio_is_told_as_the_verdict_has_it_and_never_below_1(ends: list[float], known: bool) -> None:
    ratio = Interval(ends[1], ends[0], ends[2], known)
    for verdict in Verdict:
        for told in (
            orders.interval_words(verdict, ratio, ends=True),
            orders.order(verdict, ratio, "a", "b", 0.02),
        ):
            assert not re.search(r"\b0\.\d+×", told), told
            head = told.partition("(")[0]
            assert ("faster" in head) == (verdict == "FASTER")
            assert ("slower" in head) == (verdict == "SLOWER")
            assert orders.NOT_DECIDED in head or verdict != "UNCLEAR"
        if verdict == "UNCLEAR":
            assert "×" not in orders.order(verdict, ratio, "a", "b", 0.02)


@pytest.mark.parametrize(
    ("verdict", "ratio", "cell", "order"),
    [
        ("FASTER", (2.2, 2.1, 2.3), "2.20× faster (2.10× to 2.30×)", "2.20× faster than b (2.10× to 2.30×)"),
        ("SLOWER", (0.0235, 0.023, 0.024), "42.6× slower (41.7× to 43.5×)",
         "42.6× slower than b (41.7× to 43.5×)"),
        ("SAME", (0.99, 0.985, 1.01), "same (1.02× slower to 1.01× faster)", "as fast as b (within 2 %)"),
        ("UNCLEAR", (0.9, 0.71, 1.04), "not decided (1.41× slower to 1.04× faster)",
         "not decided between a and b"),
        ("UNCLEAR", (1.0, 1e-9, 3e10), "not decided (any ratio)", "not decided between a and b"),
    ],
)  # fmt: skip
def test_words_of_an_order(verdict: str, ratio: tuple[float, float, float], cell: str, order: str) -> None:
    found = Interval(*ratio)
    assert orders.interval_words(verdict, found, ends=True) == cell
    assert orders.order(verdict, found, "a", "b", stats.SAME_BOUND) == order


def test_a_reason_has_no_ratio_that_is_not_decided() -> None:
    across = stats.across(Interval(1.0, 0.9, 1.1))
    assert "×" in across
    assert "×" not in orders.reason(across)
    assert orders.reason(across).startswith("the interval reaches across")
    busy = "not decided: other programs used 1.7 of 2 cores while this was measured"
    assert orders.reason(busy) == "other programs used 1.7 of 2 cores while this was measured"
    assert orders.listed("abcdef") == "a, b, c and 3 more"
    assert orders.listed("abcd") == "a, b, c and d"


def test_colours_say_what_is_decided_and_nothing_else() -> None:
    assert [orders.role(verdict) for verdict in Verdict] == ["same", "undecided", "faster", "slower"]
    assert {orders.role(verdict, ("a doubt",)) for verdict in Verdict} == {"doubtful", "undecided"}
    assert [role for role, style in orders.STYLES.items() if "green" in style] == ["faster"]


def test_where_medians_contradict_the_rounds_no_order_is_claimed() -> None:
    """Ours has most of its samples in the slow round: faster in each round, longer by the median of all."""
    _, (ours, reference) = synthetic.run(backends=("engine-cpu", "ort-cpu"), batches=(1,))

    def timed(few: int, slow: int, factor: float) -> dict[str, object]:
        samples = [factor * 1e6 * (1 + i % 3 / 1e4) for i in range(few)]
        samples += [factor * 2e6 * (1 + i % 3 / 1e4) for i in range(slow)]
        return {"samples_ns": tuple(samples), "rounds": (0, few), "instances": ()}

    pair = [
        msgspec.structs.replace(ours, **timed(5, 20, 0.9)),
        msgspec.structs.replace(reference, **timed(20, 5, 1.0)),
    ]
    row = next(row for row in rows(pair) if not row.is_reference)
    assert row.speedup_low is not None
    assert row.speedup_low > 1.05
    assert row.verdict == "UNCLEAR"
    assert "medians" in row.undecided
    alike = [pair[0], msgspec.structs.replace(reference, **timed(5, 20, 1.0))]
    assert next(row for row in rows(alike) if not row.is_reference).verdict == "FASTER"


@settings(deadline=None, max_examples=200)
@given(st.floats(0, 3), st.sampled_from(sorted(limits.NAMES)))
def test_work_is_bound_by_a_limit_from_60_percent_of_it_on(share: float, limit: str) -> None:
    told = limits.standing(share, limit, ("only 2 blocks",))
    assert told.startswith("bound by ") == (0.6 <= share <= limits.OVER)
    assert told.startswith("far from every limit (") == (share < 0.6)
    if share < 0.6:
        assert told.endswith("; only 2 blocks")
        shown = re.search(r"\(([\d.]+) %", told)
        assert shown is None or float(shown[1]) < 60, "a share that is not enough does not read as enough"
