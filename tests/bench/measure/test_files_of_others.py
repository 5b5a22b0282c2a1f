"""Files as exporters write them, as the worker measures them: right on both backends, or refused by ours with
the reason and measured on the reference; what fails is the row's own."""

import functools

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from bench.measure import net_runner, timing
from bench.measure.answers import memory_check, oracle
from bench.measure.images import model_file
from bench.measure.loaded_model import LoadedModel
from bench.results.messages import Log, Measured
from engine import backends
from tests.bench.measure.test_worker import changed, go
from tests.engine.harness import make_model

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _quick(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path / "cache"))
    quick = functools.partial(timing.Rules, warmup_s=0.01, rewarm_s=0.005, min_s=0.02)
    monkeypatch.setattr(net_runner, "Rules", quick)


def measured(path, proto, batches=(1, 3), names=("engine-cpu", "ort-cpu"), **fields):
    """Of the engine and the reference each, at every batch, its measurement."""
    onnx.save(proto, path)
    job = changed(models=(str(path),), backends=names, batches=batches, dataset="random", images=(), **fields)
    _, messages = go(job)
    assert not [m.text for m in messages if isinstance(m, Log) and m.level == "error"], "no traceback"
    made = [m.measurement for m in messages if isinstance(m, Measured)]
    assert len(made) == len(batches) * len(names)
    return [[one for one in made if one.case.backend == name] for name in names]


def net(*nodes, x=("N", 5, 7, 7), constants=None, rank=4, opset=17, **inputs):
    types = {"y": TensorProto.INT64} if nodes[-1].op_type == "TopK" else {}
    return make_model(nodes, {"x": x, **inputs}, ["y"], constants, opset, {"y": rank}, types)


def node(op_type, inputs, outputs=("y",), **attributes):
    return helper.make_node(op_type, list(inputs), list(outputs), op_type.lower(), **attributes)


def branching():
    """Both branches read what is around them; the condition is computed."""
    read = [helper.make_node(op, ["a", "x"], ["z"], op.lower()) for op in ("Add", "Mul")]
    out = helper.make_tensor_value_info("z", TensorProto.FLOAT, None)
    yes, no = (helper.make_graph([one], one.name, [], [out]) for one in read)
    return net(
        node("Tanh", "x", "a"),
        node("ReduceSum", "x", "s", keepdims=0),
        node("Greater", ["s", "zero"], "c"),
        node("If", "c", then_branch=yes, else_branch=no),
        constants={"zero": np.float32(0)},
    )


def classifier():
    """As scikit-learn's exporter writes one: beside the scores a map of them."""
    proto = net(
        node("Relu", "x"),
        helper.make_node("ZipMap", ["y"], ["p"], "zip", domain="ai.onnx.ml", classlabels_int64s=[0, 1, 2]),
        x=("N", 3),
        rank=2,
    )
    row = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    proto.graph.output.append(helper.make_value_info("p", helper.make_sequence_type_proto(row)))
    return proto


def mask():
    return np.triu(np.full((6, 6), -np.inf, np.float32), 1)


BOTH = {
    "left_out": lambda: (classifier(), {}),
    "open_axes": lambda: (
        net(node("Relu", "x"), x=("N", 3, "height", "width")),
        {"dims": {"height": 6, "width": 9}},
    ),
    "time_first": lambda: (net(node("Tanh", "x"), x=("time", "batch", 4), rank=3), {"dims": {"time": 5}}),
    "scalar": lambda: (net(node("Mul", "xt"), t=()), {}),
    "table": lambda: (net(node("Mul", "xt"), t=(5, 1, 7)), {"inputs": {"t": "1.5"}}),
    "mask": lambda: (
        net(
            node("Add", ["x", "m"], "a"),
            node("Softmax", "a", axis=-1),
            x=("N", 6, 6),
            constants={"m": mask()},
            rank=3,
        ),
        {},
    ),
    "groups": lambda: (
        net(
            node("GroupNormalization", ["x", "s", "b"], num_groups=1),
            constants={"s": np.arange(5, dtype=np.float32), "b": np.ones(5, np.float32)},
            opset=21,
        ),
        {},
    ),
    "branching": lambda: (branching(), {}),
    "hardmax": lambda: (net(node("Hardmax", "x", axis=1), opset=11), {}),
    "indices": lambda: (
        net(node("TopK", ["x", "k"], ["v", "y"]), x=("N", 9), constants={"k": np.array([3])}, rank=2),
        {},
    ),
}


def kept_weight():
    """Given out beside the answer, as an exporter does with what it could fold."""
    proto = net(node("Relu", "x"), x=("N", 3), constants={"w": np.ones(3, np.float32)}, rank=2)
    proto.graph.output.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [3]))
    return proto


def functions():
    """A function of the file's own that calls another, with a constant in it."""
    proto = net(helper.make_node("Twice", ["x"], ["y"], "it", domain="own"), x=("N", 3), rank=2)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    half = helper.make_tensor("half", TensorProto.FLOAT, [], [0.5])
    inner = [helper.make_node("Constant", [], ["h"], value=half), helper.make_node("Mul", ["a", "h"], ["b"])]
    outer = [helper.make_node("Once", [a], [b], domain="own") for a, b in (("a", "b"), ("b", "c"))]
    for name, given, nodes in (("Twice", "c", outer), ("Once", "b", inner)):
        proto.functions.append(helper.make_function("own", name, ["a"], [given], nodes, opsets))
    proto.opset_import.append(opsets[1])
    return proto


def loop():
    """Without a condition, what each turn makes beside what it hands on, and a weight of the body's own."""
    info = helper.make_tensor_value_info
    row, truth = (lambda name: info(name, TensorProto.FLOAT, ["N", 3])), TensorProto.BOOL
    body = helper.make_graph(
        [node("Mul", ["h", "w"], ["h2"]), node("Identity", "c", ["c2"]), node("Add", ["h2", "x"], ["told"])],
        "body",
        [info("i", TensorProto.INT64, []), info("c", truth, []), row("h")],
        [info("c2", truth, []), row("h2"), row("told")],
        [helper.make_tensor("w", TensorProto.FLOAT, [], [0.5])],
    )
    made = node("Loop", ["n", "", "x"], ["last", "y"], body=body)
    return net(made, x=("N", 3), constants={"n": np.array(3)}, rank=3)


def negative():
    """An axis of any size, as some exporters write it."""
    proto = net(node("Relu", "x"), x=("N", 3), rank=2)
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    return proto


BOTH |= {
    "kept_weight": lambda: (kept_weight(), {}),
    "functions": lambda: (functions(), {}),
    "loop": lambda: (loop(), {}),
    "negative": lambda: (negative(), {}),
    "tiny": lambda: (net(node("Mul", "xc"), x=("N", 9), constants={"c": np.float32(1e-42)}, rank=2), {}),
    "l1": lambda: (net(node("LpNormalization", "x", p=1, axis=1)), {}),
    "zeros": lambda: (
        net(
            node("Shape", "x", "s"), node("ConstantOfShape", "s", "z"), node("Add", "zx"), x=("N", 9), rank=2
        ),
        {},
    ),
    "trees": lambda: (trees(), {}),
}


def trees():
    """As of scikit-learn's regressors."""
    told = {
        "treeids": [0, 0, 0],
        "nodeids": [0, 1, 2],
        "featureids": [1, 0, 0],
        "modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "values": [0.5, 0.0, 0.0],
        "truenodeids": [1, 0, 0],
        "falsenodeids": [2, 0, 0],
    }
    given = {"treeids": [0, 0], "nodeids": [1, 2], "ids": [0, 0], "weights": [1.5, -2.0]}
    named = {f"{of}_{k}": v for of, named in (("nodes", told), ("target", given)) for k, v in named.items()}
    named["n_targets"] = 1
    made = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], "it", domain="ai.onnx.ml", **named)
    proto = net(made, x=("N", 3), rank=2)
    proto.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    return proto


HALVES = {"float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16}


def half(dtype, computes=True):
    """A convolution and what follows in half precision, fed and given in it; or with `computes` false
    converted to float32 first, which ONNX Runtime has kernels for on a CPU in every type."""
    random = np.random.default_rng(0)
    w, g = (random.standard_normal(shape).astype(dtype) for shape in ((6, 5, 3, 3), (6, 4)))
    kind, x = HALVES[dtype], "x"
    nodes = []
    if not computes:
        nodes = [node("Cast", [name], [f"{name}32"], to=TensorProto.FLOAT) for name in "xwg"]
    x, kernel, last = (name if computes else f"{name}32" for name in "xwg")
    nodes += [
        node("Conv", [x, kernel], "c", pads=[1] * 4),
        node("Relu", "c", "r"),
        node("GlobalAveragePool", "r", "p"),
        node("Flatten", "p", "f"),
        node("MatMul", ["f", last]),
    ]
    for index, made in enumerate(nodes):
        made.name = f"{made.op_type}{index}"
    types = {"x": kind, "y": kind if computes else TensorProto.FLOAT}
    proto = make_model(nodes, {"x": ("N", 5, 7, 7)}, ["y"], {"w": w, "g": g}, 22, {"y": 2}, types)
    proto.ir_version = 10
    return proto


BOTH |= {
    "float16": lambda: (half("float16"), {}),
    "bfloat16_fed": lambda: (half("bfloat16", computes=False), {}),
}
REFERENCE_ALONE = {
    "contrib": lambda: net(
        node("LayerNormalization", ["x", "s", "s"]), constants={"s": np.ones(7, np.float32)}, opset=14
    ),
    "undeclared": lambda: net(helper.make_node("Inverse", ["x"], ["y"], "it", domain="com.microsoft")),
    "early": lambda: net(node("Softmax", "x"), x=("N", 9), rank=2, opset=5),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", BOTH)
def test_both_are_measured_and_right(tmp_path, kind):
    proto, fields = BOTH[kind]()
    for row in measured(tmp_path / "net.onnx", proto, **fields):
        assert [(one.case.batch, one.disposition, one.reason) for one in row] == [
            (1, "ok", ""),
            (3, "ok", ""),
        ]
        assert all(one.accuracy.output.ok for one in row)
        assert not [text for one in row for text in one.validity.warnings if "checked against" in text]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", REFERENCE_ALONE)
def test_what_ours_refuses_is_measured_on_the_reference(tmp_path, kind):
    ours, theirs = measured(tmp_path / "net.onnx", REFERENCE_ALONE[kind](), (2,))
    assert [one.disposition for one in ours] == ["unsupported"]
    assert [(one.disposition, one.reason) for one in theirs] == [("ok", "")]


def test_where_float64_and_the_reference_differ_neither_is_told_to_be_wrong(tmp_path):
    """ONNX Runtime takes a whole size where ONNX's text has 4.9 places; who answers otherwise still is."""
    resize = node("Resize", ["x", "", "s"], mode="linear", coordinate_transformation_mode="align_corners")
    proto = net(resize, constants={"s": np.float32([1, 1, 1, 0.7])}, opset=18)
    for row in measured(tmp_path / "net.onnx", proto, (2,)):
        assert [(one.disposition, one.reason) for one in row] == [("ok", "")]
        assert any("differs from ONNX Runtime" in text for text in row[0].validity.warnings)
    loaded = LoadedModel(
        str(tmp_path / "net.onnx"),
        changed(models=(str(tmp_path / "net.onnx"),), batches=(2,), dataset="random", images=()),
        (2,),
        lambda *_: None,
    )
    at = loaded.placement(2, 0)
    right = oracle.run(loaded.graph, at.inputs, ["y"])["y"]
    told = loaded.check({"y": right.astype(np.float32)}, at, "fp32")
    assert told.ok
    assert "right by float64, not by ort-cpu" in told.note
    assert not loaded.check({"y": (right * 1.01).astype(np.float32)}, at, "fp32").ok


def test_bfloat16_is_measured_on_ours_where_the_reference_has_no_kernel_for_it(tmp_path):
    ours, theirs = measured(tmp_path / "net.onnx", half("bfloat16"), (2,))
    assert [(one.disposition, one.reason) for one in ours] == [("ok", "")]
    assert 1e-5 < ours[0].accuracy.output.rel_l2 < 2**-7, "rounded to bfloat16, and no coarser"
    assert [one.disposition for one in theirs] == ["unsupported"]
    assert "Could not find an implementation for Conv" in theirs[0].reason


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", HALVES)
def test_half_precision_on_a_gpu_is_that_of_the_cpu(tmp_path, dtype):
    ours = [backends.get(f"engine-{device}") for device in ("cpu", "cuda")]
    if reason := ours[1].unavailable():
        pytest.skip(reason)
    onnx.save(half(dtype), tmp_path / "net.onnx")
    graph = model_file.read(tmp_path / "net.onnx").graph
    x = np.random.default_rng(1).random((2, 5, 7, 7), np.float32).astype(graph.inputs[0].dtype)
    cpu, cuda = (timing.answers(backend.prepare(graph, 2), {"x": x})["y"] for backend in ours)
    quantum = {"float16": 2.0**-10, "bfloat16": 2.0**-7}[dtype]
    assert np.abs(cuda - cpu).max() <= quantum * np.abs(cpu).max(), "one in the last place at most"
    assert (cuda == cuda.astype(dtype).astype(np.float32)).all(), "a number of the type"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_what_the_reference_fails_at_is_its_own_row(tmp_path, place):
    chain = ["Tanh", "Sigmoid"]
    chain.insert(place, "LRN")
    nodes = [
        helper.make_node(
            op,
            [f"t{i}" if i else "x"],
            [f"t{i + 1}" if i < 2 else "y"],
            op,
            **({"size": 4} if op == "LRN" else {}),
        )
        for i, op in enumerate(chain)
    ]
    ours, theirs = measured(tmp_path / "net.onnx", net(*nodes), (2,))
    assert [(one.disposition, one.reason) for one in ours] == [("ok", "")]
    assert [one.disposition for one in theirs] == ["failed"]
    assert any("not held against ONNX Runtime at node LRN" in text for text in ours[0].validity.warnings)


def test_a_shape_that_only_the_reference_gives_ends_nothing_of_ours(tmp_path):
    window = {"kernel_shape": [3, 3], "strides": [1, 1], "dilations": [2, 2], "auto_pad": "SAME_UPPER"}
    ours, theirs = measured(tmp_path / "net.onnx", net(node("MaxPool", "x", **window), x=(1, 2, 7, 7)), (1,))
    assert [(one.disposition, one.reason) for one in ours] == [("ok", "")]
    assert theirs[0].disposition in ("failed", "incorrect")


def test_what_memory_does_not_hold_is_refused_before_it_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(memory_check, "free_nbytes", lambda: 4 << 30)
    rows = measured(tmp_path / "net.onnx", net(node("Relu", "x"), x=("N", 2_000_000_000), rank=2), (1,))
    assert {one.disposition for row in rows for one in row} == {"out_of_memory"}
    assert all("of memory at the least" in one.reason for row in rows for one in row)
