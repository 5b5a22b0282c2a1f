"""What a pass is held against is what it was fed: whether images change each other's answers, wherever an
output has them, at every batch; what cannot be compared is no wrong answer; a tie is a tie in every file."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from bench.measure.answers import accuracy, by_image, oracle, right, ties
from bench.measure.answers.accuracy import Allowed, Placement
from bench.measure.answers.by_image import Images, images_of
from bench.measure.answers.right import RightAnswers
from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from engine.planning import groups
from kernels.errors import UnsupportedError
from tests.bench.measure.answers import drawn_models
from tests.bench.measure.answers.drawn_models import BY_IMAGE, TOGETHER, Made, built, model, rows
from tests.engine.harness import make_model, run_ort

pytestmark = pytest.mark.usefixtures("own_cache")

SEEDS = range(2)


def fetched(graph: Graph, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """As a session answers."""
    return {name: np.array(array, np.float32) for name, array in run_ort(graph, inputs).items()}


def answers_of(graph: Graph, images: int = 4) -> RightAnswers:
    golden = oracle.golden(graph, rows(graph, graph.fixed_batch or images, 0), [])
    return RightAnswers(graph, golden, True, lambda inputs: fetched(graph, dict(inputs)))


def placed(found: RightAnswers, graph: Graph, batch: int, seed: int = 0) -> Placement:
    """As LoadedModel places."""
    golden = found._golden.inputs
    order = np.roll(np.arange(found._golden.images), seed)
    made = accuracy.place({name: a[order] for name, a in golden.items()}, batch, None, seed)
    if found.layout is None:
        return Placement(made.inputs, tuple(range(batch)), ())
    return Placement(made.inputs, made.rows, tuple(int(order[i]) for i in made.golden))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", [*BY_IMAGE, *TOGETHER])
def test_right_answers_are_right_at_every_batch(kind: drawn_models.Kind) -> None:
    for seed in SEEDS:
        graph = model(kind, seed)
        found = answers_of(graph)
        assert (found.layout is not None) == (kind in BY_IMAGE)
        for batch in (1, 2, 4, 7, 33):
            for turn in (0, 1):
                at = placed(found, graph, batch, turn)
                stats = found.check(fetched(graph, dict(at.inputs)), at, "fp32")
                assert stats.ok, (kind.__name__, seed, batch, stats.reason)
            other = rows(graph, batch, 5)  # as a timed pass, whose inputs nobody knew before
            looked = found.check_row(other, fetched(graph, other), "fp32")
            assert looked is not None
            assert looked.ok, (kind.__name__, seed, batch, looked.reason)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", [*BY_IMAGE, *TOGETHER])
def test_wrong_answers_are_found_at_every_batch(kind: drawn_models.Kind) -> None:
    for seed in SEEDS:
        graph = model(kind, seed)
        found = answers_of(graph)
        for batch in (1, 4, 33):
            at = placed(found, graph, batch)
            for name, array in fetched(graph, dict(at.inputs)).items():
                wrong = fetched(graph, dict(at.inputs))
                wrong[name] = array.copy()
                wrong[name].reshape(-1)[-1:] += 1
                if array.size:
                    assert not found.check(wrong, at, "fp32").ok, (kind.__name__, seed, batch, name)
                wrong[name] = np.zeros((*array.shape, 1), np.float32)
                stats = found.check(wrong, at, "fp32")
                assert not stats.ok
                assert "shape" in stats.reason
            if batch > 1 and kind not in (drawn_models.classes, drawn_models.places):  # which may be alike
                stale = fetched(graph, {"x": at.inputs["x"][::-1] + np.float32(0.25)})
                assert not found.check(stale, at, "fp32").ok, "what other inputs give"


def test_one_image_is_answered_as_one_whatever_the_others_would_do() -> None:
    """What came of a model of dynamic quantisation, at batch 1."""
    graph = model(drawn_models.dynamic_range, 0)
    found = answers_of(graph, 2)
    at = placed(found, graph, 1)
    beside = oracle.run(graph, rows(graph, 2, 0), ["q0", *(info.name for info in graph.outputs)])
    name = graph.outputs[0].name
    assert found.check(fetched(graph, dict(at.inputs)), at, "fp32").ok
    assert not np.allclose(beside[name][:1], fetched(graph, dict(at.inputs))[name], atol=1e-6)


def test_what_dynamic_quantisation_finds_half_way_may_be_rounded_either_way() -> None:
    """Pixels of 0 to 254 in 255ths: 127 of them is half-way between two steps, but for the last bit of the
    scale that it is divided by."""
    made = Made(np.random.default_rng(0))
    drawn_models.dynamic_range(made, "x")
    (layer,) = (it for it in made.nodes if it.op_type == "DynamicQuantizeLinear")
    layer.input[0] = "x"
    graph = built(made, "N", "ties")
    found = answers_of(graph, 2)
    at = placed(found, graph, 1)
    name = graph.outputs[0].name
    pixels = np.full(at.inputs["x"].shape, 127 / 255, np.float32)
    pixels.reshape(-1)[0] = 254 / 255
    # Between −1 and 1 the largest itself is half-way: another range would move all the others.
    around = np.full(at.inputs["x"].shape, 90.5 * 2 / 255, np.float32)
    around.reshape(-1)[:2] = -1, 1
    for x in (pixels, around):
        at = Placement({"x": x}, at.rows, at.golden)
        theirs, exact = fetched(graph, {"x": x})[name], oracle.run(graph, {"x": x}, [name])[name]
        step = (x.max() - min(x.min(), 0)) / 255
        assert found.check({name: theirs}, at, "fp32").ok
        other = oracle.run(graph, {"x": x}, [name], None, True)[name]
        assert (np.abs(other - exact).reshape(-1)[2:] > step / 2).all(), "each is rounded the other way"
        assert found.check({name: other.astype(np.float32)}, at, "fp32").ok
        assert not found.check({name: (exact + 9 * step).astype(np.float32)}, at, "fp32").ok


def test_a_file_that_takes_several_images_alone_is_answered_whole() -> None:
    """Its shapes are written for so many (Reshape to 2 rows), though its first axis is open."""
    made = Made(np.random.default_rng(0))
    made.answers(made.node("Reshape", [made.layer("x"), made.weight([2, -1, 6], np.int64)]), 3)
    graph = built(made, "N", "pairs")
    found = answers_of(graph)
    assert found.layout is None
    at = placed(found, graph, 4)
    assert found.check(fetched(graph, dict(at.inputs)), at, "fp32").ok


def test_a_fixed_batch_is_answered_whole() -> None:
    for count in (1, 3, 12):
        graph = model(drawn_models.running_sum, count, count)
        found = answers_of(graph)
        assert found._golden.images == count, "a fixed batch cannot be cut"
        for turn in (0, 1):
            at = placed(found, graph, count, turn)
            assert found.check(fetched(graph, dict(at.inputs)), at, "fp32").ok


def test_what_would_take_float64_too_long_is_held_against_the_reference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = model(drawn_models.attention, 0)
    found = answers_of(graph)
    monkeypatch.setattr(right, "MOST_FLOPS", 1e4)
    at = placed(found, graph, 64)
    assert found.check(fetched(graph, dict(at.inputs)), at, "fp32").ok
    assert "batch 64 was checked against ONNX Runtime on the CPU: its images change" in found.judge_of(64)
    assert found.check_row(at.inputs, fetched(graph, dict(at.inputs)), "fp32") is None
    assert found.judge_of(2) == ""


@pytest.mark.parametrize(
    ("one", "many", "found"),
    [
        ((1, 3), (4, 3), Images(0, 1)),
        ((5, 3), (20, 3), Images(0, 5)),
        ((3, 1, 2), (3, 4, 2), Images(1, 1)),
        ((), (), None),
        ((1, 3), (1, 3), None),
        ((1, 3), (5, 3), None),
        ((1, 1), (4, 4), None),
        ((0, 3), (0, 3), None),
        ((1,), (4, 1), None),
    ],
)
def test_where_images_lie_follows_from_two_shapes(one: Any, many: Any, found: Images | None) -> None:
    assert images_of(one, many, 4) == found
    if found is not None:
        array = np.arange(np.prod(many)).reshape(many)
        assert found.rows(array).shape[0] == 4
        assert found.shape(many, 4) == many


# ---------------------------------------------------------------------------- what cannot be compared


def drawing(op_type: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(op_type, ["x"], ["r"], "draws", **attributes)


RANDOM = [
    drawing("RandomNormalLike"),
    drawing("RandomUniformLike", seed=1.0),
    drawing("Bernoulli"),
    helper.make_node("RandomNormal", [], ["r"], "draws", shape=[3, 4]),
    helper.make_node("Dropout", ["x", "", "yes"], ["r"], "draws"),
]


@pytest.mark.parametrize("node", RANDOM, ids=lambda node: node.op_type)
def test_a_node_that_draws_is_found_where_an_output_hangs_on_it(node: onnx.NodeProto) -> None:
    add = helper.make_node("Add", ["x", "r"], ["y"], "add")
    relu = helper.make_node("Relu", ["x"], ["z"], "relu")
    weights = {"yes": np.array(True)}
    graph = from_proto(make_model([node, add], {"x": (3, 4)}, ["y"], weights), "draws")
    assert by_image.random_node(graph) == ("draws", node.op_type)
    unread = from_proto(make_model([node, relu], {"x": (3, 4)}, ["z"], weights), "does not")
    assert by_image.random_node(unread) is None


def test_a_dropout_that_does_nothing_draws_nothing() -> None:
    node = helper.make_node("Dropout", ["x", "", "no"], ["y"], "drop")
    graph = from_proto(make_model([node], {"x": (3, 4)}, ["y"], {"no": np.array(False)}), "drop")
    assert by_image.random_node(graph) is None


def test_nan_is_right_where_it_is_right_and_a_loss_of_it_a_note() -> None:
    node = helper.make_node("Log", ["x"], ["y"], "log")
    graph = from_proto(make_model([node], {"x": ("N", 6)}, ["y"]), "log")
    found = answers_of(graph)
    for batch in (1, 4, 40):
        at = placed(found, graph, batch)
        with np.errstate(invalid="ignore"):
            y = np.log(at.inputs["x"])
        assert np.isnan(y).any()
        assert found.check({"y": y}, at, "fp32").ok
        lost = {"y": np.where(np.isnan(y), 7, y)}
        strict = found.check(lost, at, "fp32")
        assert not strict.ok
        assert "7 instead of NaN" in strict.reason
        lenient = found.check(lost, at, "fp32", allowed=Allowed.LIBRARY)
        assert lenient.ok
        assert "are numbers where the reference itself holds NaN" in lenient.note
        broken = {"y": np.where(np.isnan(y), y, np.where(y == y[~np.isnan(y)][0], np.nan, y))}
        assert not found.check(broken, at, "fp32", allowed=Allowed.LIBRARY).ok, "NaN where a number is right"


def test_nan_in_an_image_that_is_no_golden_one_is_found() -> None:
    graph = model(drawn_models.own, 0)
    found = answers_of(graph)
    at = placed(found, graph, 64)
    row = next(row for row in range(64) if row not in at.rows)
    outputs = fetched(graph, dict(at.inputs))
    next(iter(outputs.values()))[row, 1] = np.nan
    stats = found.check(outputs, at, "fp32")
    assert not stats.ok
    assert stats.reason.startswith(f"image {row}: NaN at index (1,)")


def test_where_all_is_nan_there_is_nothing_to_compare() -> None:
    node = helper.make_node("Sqrt", ["n"], ["y"], "root")
    below = helper.make_node("Sub", ["x", "two"], ["n"], "below")
    weights = {"two": np.float32(2)}
    graph = from_proto(make_model([below, node], {"x": ("N", 6)}, ["y"], weights), "roots")
    found = answers_of(graph)
    at = placed(found, graph, 4)
    with pytest.raises(UnsupportedError, match="NaN or infinity in all of its 24 elements"):
        found.check({"y": np.zeros((4, 6), np.float32)}, at, "fp32")


def test_infinity_is_right_where_float32_ends() -> None:
    expected = np.array([1.0, 1e39, -1e300, np.inf])
    assert accuracy.error_stats(np.array([1, np.inf, -np.inf, np.inf], np.float32), expected, "fp32").ok
    assert not accuracy.error_stats(np.array([1, 3e38, -np.inf, np.inf], np.float32), expected, "fp32").ok
    assert not accuracy.error_stats(np.array([1, -np.inf, -np.inf, np.inf], np.float32), expected, "fp32").ok
    assert not accuracy.error_stats(np.array([np.inf] * 4, np.float32), expected, "fp32").ok


def test_whole_numbers_are_held_to_what_a_session_fetches() -> None:
    large = np.array([2**24 + 1, 3], np.int64)
    assert accuracy.error_stats(large.astype(np.float32), large, "fp32").ok
    assert not accuracy.error_stats((large + 4).astype(np.float32), large, "fp32").ok


# ------------------------------------------------------------------------------------------------- ties


def test_values_next_to_half_way_are_moved_to_the_other_side_and_no_others() -> None:
    steps = np.array([0.5, 1.5, -0.5, 2.5 - 1e-6, 2.5 + 1e-6, -3.5 + 1e-6, 2.4, 2.6, 7.0, np.nan, np.inf])
    before, after = np.rint(steps), np.rint(ties.other_side(steps))
    np.testing.assert_array_equal(np.abs(after[:6] - before[:6]), 1)
    np.testing.assert_array_equal(after[6:], before[6:])


def test_some_ties_may_fall_otherwise_where_all_together_cancel_out() -> None:
    """16 ties, eight upwards and eight downwards: their mean is the same if all are rounded the other way."""
    constants = {"one": np.float32(1), "zero": np.uint8(0), "step": np.float32(1 / 16)}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "one", "zero"], ["q"], "q"),
        helper.make_node("DequantizeLinear", ["q", "one", "zero"], ["d"], "d"),
        helper.make_node("ReduceMean", ["d"], ["m"], "m", axes=[1]),
        helper.make_node("QuantizeLinear", ["m", "step", "zero"], ["n"], "n"),
        helper.make_node("DequantizeLinear", ["n", "step", "zero"], ["y"], "y"),
    ]
    graph = from_proto(make_model(nodes, {"x": ("N", 16)}, ["y"], constants, 13), "cancelling")
    x = np.tile(np.array([0.5, 1.5], np.float32), (2, 8))
    golden = oracle.golden(graph, {"x": x}, [])
    assert (golden.tensors["y"] == 1).all()
    at = Placement({"x": x}, (0, 1), (0, 1))
    for off, ok in ((1 / 16, True), (-2 / 16, True), (2.0, False)):
        found = RightAnswers(graph, golden, True, lambda _: pytest.fail("another judges"))
        y = (golden.tensors["y"] + off).astype(np.float32)
        assert found.check({"y": y}, at, "fp32").ok == ok, off


def quantised(seed: int, channels: int = 4) -> Graph:
    """QDQ as static quantisation writes it; its steps make sums land half-way often."""
    random = np.random.default_rng(seed)
    given = {
        "xs": np.float32(0.02), "xz": np.uint8(0), "ws": np.float32(0.0125), "wz": np.int8(0),
        "ys": np.float32(0.25), "yz": np.uint8(128), "zs": np.float32(1.0),
        "w0": random.integers(-127, 128, (channels, 3, 3, 3)).astype(np.int8),
        "w1": random.integers(-127, 128, (channels, channels, 3, 3)).astype(np.int8),
    }  # fmt: skip

    def through(x: str, scale: str, zero: str, made: str) -> list[onnx.NodeProto]:
        q = helper.make_node("QuantizeLinear", [x, scale, zero], [f"q{made}"], f"q{made}")
        return [q, helper.make_node("DequantizeLinear", [f"q{made}", scale, zero], [made], f"d{made}")]

    nodes = [
        *through("x", "xs", "xz", "a"),
        helper.make_node("DequantizeLinear", ["w0", "ws", "wz"], ["v0"], "v0"),
        helper.make_node("Conv", ["a", "v0"], ["b"], "conv0", pads=[1] * 4),
        *through("b", "ys", "yz", "c"),
        helper.make_node("DequantizeLinear", ["w1", "ws", "wz"], ["v1"], "v1"),
        helper.make_node("Conv", ["c", "v1"], ["d"], "conv1", pads=[1] * 4),
        *through("d", "zs", "yz", "y"),
    ]
    proto = make_model(nodes, {"x": ("N", 3, 8, 8)}, ["y"], given, 13, {"y": 4})
    return from_proto(proto, f"quantised{seed}")


def sums_in_float32(graph: Graph, x: np.ndarray, order: int) -> np.ndarray:
    """The net as float32 computes it, its sums in an order of their own."""
    weights = graph.initializers

    def through(values: np.ndarray, scale: str, zero: str) -> np.ndarray:
        low, high = np.iinfo(weights[zero].dtype).min, np.iinfo(weights[zero].dtype).max
        whole = np.rint(values / weights[scale]) + weights[zero].astype(np.float32)
        return (np.clip(whole, low, high) - weights[zero].astype(np.float32)) * weights[scale]

    def conv(values: np.ndarray, name: str) -> np.ndarray:
        w = weights[name].astype(np.float32) * weights["ws"]
        padded = np.pad(values, [(0, 0), (0, 0), (1, 1), (1, 1)])
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
        terms = (windows[:, None] * w[None, :, :, None, None]).astype(np.float32)
        flat = np.moveaxis(terms, 2, -3).reshape(*terms.shape[:2], *values.shape[2:], -1)
        shuffled = np.random.default_rng(order).permutation(flat.shape[-1])
        total = np.zeros(flat.shape[:-1], np.float32)
        for term in shuffled:
            total += flat[..., term]
        return total

    hidden = through(conv(through(x, "xs", "xz"), "w0"), "ys", "yz")
    return through(conv(hidden, "w1"), "zs", "yz")


def test_a_tie_is_a_tie_in_every_file() -> None:
    """Of drawn nets and orders of sums, none is called wrong for how it rounds; some do round otherwise."""
    otherwise = 0
    for seed in range(6):
        graph = quantised(seed)
        x = np.random.default_rng(seed).uniform(-1, 1, (2, 3, 8, 8)).astype(np.float32)
        golden = oracle.golden(graph, {"x": x}, [])
        found = RightAnswers(graph, golden, True, lambda _: pytest.fail("another judges"))
        at = Placement({"x": x}, (0, 1), (0, 1))
        for order in range(3):
            y = sums_in_float32(graph, x, order)
            otherwise += int((y != golden.tensors["y"]).any())
            stats = found.check({"y": y}, at, "fp32")
            assert stats.ok, (seed, order, stats.reason)
            told = accuracy.moving(stats, "fp32", ties=True)
            assert (stats.rel_l2 > 1e-4) == ("half-way between two steps" in told)
    assert otherwise > 3


@pytest.mark.sampled(4, "long")
def test_a_step_too_many_where_no_tie_is_is_wrong() -> None:
    for seed in range(4):
        graph = quantised(seed)
        x = np.random.default_rng(seed).uniform(-1, 1, (2, 3, 8, 8)).astype(np.float32)
        golden = oracle.golden(graph, {"x": x}, [])
        found = RightAnswers(graph, golden, True, lambda _: pytest.fail("another judges"))
        at = Placement({"x": x}, (0, 1), (0, 1))
        y = golden.tensors["y"].astype(np.float32)
        some = np.random.default_rng(seed).random(y.shape) < 0.05
        assert not found.check({"y": np.where(some, y + 8.0, y)}, at, "fp32").ok
        (last,) = [part for part in groups.groups(graph, 2) if part.output == "y"]
        whole = oracle.golden(graph, {"x": x})
        assert not oracle.judged_alone(np.where(some, y + 1.0, y), graph, last, whole, "fp32").ok
        assert oracle.judged_alone(y, graph, last, whole, "fp32").ok


def test_whole_numbers_may_be_off_by_their_step_at_ties_alone() -> None:
    """QuantizeLinear's own output: one step at a tie is right, three are not, and none elsewhere."""
    made = Made(np.random.default_rng(0))
    made.answers(
        made.node("QuantizeLinear", ["x", made.weight(0.25), made.weight(0, np.uint8)]), 2, TensorProto.UINT8
    )
    graph = built(made, "N", "steps")
    x = np.array([[0.125, 0.375, 0.3, 0.5, 0.9, 1.1]], np.float32)  # .5 and 1.5 steps, and no others half-way
    name = graph.outputs[0].name
    found = RightAnswers(graph, oracle.golden(graph, {"x": x}, []), True, lambda _: pytest.fail("another"))
    at = Placement({"x": x}, (0,), (0,))
    right_ones = np.array([[0, 2, 1, 2, 4, 4]], np.float32)
    for off, ok in (([0, 0, 0, 0, 0, 0], True), ([1, -1, 0, 0, 0, 0], True), ([3, 0, 0, 0, 0, 0], False),
                    ([0, 0, 1, 0, 0, 0], False)):  # fmt: skip
        stats = found.check({name: right_ones + np.array([off], np.float32)}, at, "fp32")
        assert stats.ok == ok, off
        assert ("than the right ones themselves move" in stats.note) == (any(off) and ok)
