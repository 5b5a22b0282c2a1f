"""Boxes stand below what they read, apart from each other, and edges go round them."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gui.widgets.graph import GAP_X, layout


def sizes(names, width=100.0, height=40.0):
    return dict.fromkeys(names, (width, height))


def test_a_chain_is_a_straight_column():
    placed = layout(sizes("abcd"), [("a", "b"), ("b", "c"), ("c", "d")])
    assert len({x for x, _ in placed.centres.values()}) == 1
    ys = [placed.centres[name][1] for name in "abcd"]
    assert ys == sorted(ys)
    assert placed.rows == (("a",), ("b",), ("c",), ("d",))


def test_branches_stand_side_by_side_below_the_middle_of_what_they_read():
    placed = layout(sizes("abcd"), [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
    (ax, _), (bx, by), (cx, cy), (dx, _) = (placed.centres[name] for name in "abcd")
    assert by == cy
    assert abs(bx - cx) >= 100 + GAP_X
    assert ax == pytest.approx((bx + cx) / 2) == pytest.approx(dx)


def test_a_shortcut_goes_round_the_boxes_it_skips():
    placed = layout(sizes("abcd"), [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")])
    for name in "bc":
        x, y = placed.centres[name]
        for px, py in placed.routes["a", "d"][1:-1]:
            assert abs(py - y) > 20 or abs(px - x) > 50


def test_crossings_that_need_not_be_are_taken_away():
    placed = layout(sizes("abcd"), [("a", "d"), ("b", "c")])
    crossed = placed.centres["a"][0] < placed.centres["b"][0]
    assert (placed.centres["d"][0] < placed.centres["c"][0]) == crossed


def test_an_edge_that_leads_backwards_is_refused():
    with pytest.raises(ValueError, match="b → a leads backwards"):
        layout(sizes("ab"), [("b", "a")])


def test_nothing_is_placed_nowhere():
    assert layout({}, []).centres == {}


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 14), st.data())
def test_no_two_boxes_overlap_and_every_edge_leads_down(count, data):
    pairs = list(itertools.combinations(range(count), 2))
    picked = data.draw(st.lists(st.sampled_from(pairs), max_size=24)) if pairs else []
    edges = [(str(a), str(b)) for a, b in picked]
    widths = {str(i): (40.0 + 30 * (i % 4), 30.0) for i in range(count)}
    placed = layout(widths, edges)
    for row in placed.rows:
        for left, right in itertools.pairwise(row):
            gap = placed.centres[right][0] - placed.centres[left][0]
            assert gap >= (widths[left][0] + widths[right][0]) / 2 + GAP_X - 1e-6
    for a, b in edges:
        assert placed.centres[a][1] < placed.centres[b][1]
        ys = [y for _, y in placed.routes[a, b]]
        assert ys == sorted(ys)


def test_a_deep_net_with_edges_past_its_nodes_stays_in_one_column():
    """x → sigmoid → mul, and x → mul past it, a hundred times: as exporters write Swish."""
    sizes, edges, before = {"x0": (100.0, 30.0)}, [], "x0"
    for i in range(100):
        sizes |= {f"s{i}": (100.0, 30.0), f"m{i}": (100.0, 30.0)}
        edges += [(before, f"s{i}"), (f"s{i}", f"m{i}"), (before, f"m{i}")]
        before = f"m{i}"
    placed = layout(sizes, edges)
    middles = [x for x, _ in placed.centres.values()]
    assert max(middles) - min(middles) < 10
    past = placed.routes["x0", "m0"]
    inside = [x for x, y in past if abs(y - placed.centres["s0"][1]) <= 15]
    assert inside
    assert all(abs(x - placed.centres["s0"][0]) >= 50 for x in inside), "beside the box, and not behind it"
