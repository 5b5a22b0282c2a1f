"""An accuracy is the model's own, or there is none: its order of classes, its output of scores, its
images."""

import functools
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from bench.measure import cases, net_runner, timing
from bench.measure.images import image_feed
from bench.measure.net_runner import NetRunner
from bench.questions import model_questions
from bench.results import gallery
from bench.results.messages import Measured, ModelLoaded, Start
from bench.results.records import Job
from models import catalogue, datasets

pytestmark = pytest.mark.slow

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
COUNT = 120


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.setattr(
        net_runner,
        "Rules",
        functools.partial(timing.Rules, warmup_s=0.01, rewarm_s=0.005, min_s=0.02, max_samples=12),
    )
    # These files are our own: which cases they make is asked here, and not of a process each time.
    monkeypatch.setattr(model_questions, "cases", lambda job, progress, go_on: cases.plan(job, progress))


def measured(model, dataset, folder="", batch=32, backend="ort-cpu", **fields):
    """What came of a run over a data set, and what was told of the model."""
    job = Job(
        models=(str(model),),
        backends=(backend,),
        batches=(batch,),
        dataset=str(dataset),
        budget_s=0.05,
        layers=False,
        threads=1,
        **fields,
    )
    messages = []
    NetRunner(Start(job=job, folder=str(folder)), messages.append, lambda: False).run()
    found = next(m.measurement for m in messages if isinstance(m, Measured))
    return found, next((m.model for m in messages if isinstance(m, ModelLoaded)), None)


def folders(root, data, names, count=COUNT):
    for index in range(count):
        folder = root / names[int(data.labels[index])]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(data.images[index]).save(folder / f"{index:04}.png")
    return f"folder:{root}"


def own(tmp_path, change=lambda proto: None, model="lenet5-digits"):
    proto = onnx.load(catalogue.path(model))
    change(proto)
    path = tmp_path / "net.onnx"
    onnx.save(proto, path)
    return path


def described(**entries):
    def change(proto):
        helper.set_model_props(proto, {f"kernelscope.{key}": value for key, value in entries.items()})

    return change


def test_a_digits_model_on_folders_of_names(tmp_path):
    """Numbered alphabetically it would be right on 8 %, and is on 95 %."""
    folder = folders(tmp_path / "images", datasets.load("digits"), DIGITS)
    model = own(tmp_path)
    found, info = measured(model, folder)
    assert found.disposition == "ok"
    assert found.accuracy.top1 is None
    assert not found.accuracy.labelled
    assert "nothing says in which order model net answers them: give --labels FILE" in found.accuracy.refused
    assert "another order of the classes would explain the answers far better" in found.accuracy.hint
    assert ", ".join(DIGITS) in found.accuracy.hint
    assert info.labels == ""
    assert "order" not in " ".join(found.validity.warnings), "nothing of it speaks against the times"
    file = tmp_path / "classes.txt"
    file.write_text("\n".join(DIGITS))
    found, info = measured(model, folder, labels=str(file), folder=tmp_path / "run")
    assert found.accuracy.top1 > 0.9
    assert (found.accuracy.refused, found.accuracy.hint) == ("", "")
    assert info.labels == "classes.txt"
    assert gallery.load_images(gallery.images_path(tmp_path / "run", folder, found.case)).classes == DIGITS
    alphabetical, _ = measured(model, folder, labels="alphabetical")
    assert alphabetical.accuracy.top1 < 0.2
    assert "another order of the classes" in alphabetical.accuracy.hint, (
        "what the user said is shown, and doubted"
    )


def test_a_fashion_model_on_folders_of_names(tmp_path):
    """Numbered alphabetically it would be right on 35 %, and is on 91 %."""
    if datasets.available("fashion-mnist"):
        pytest.skip("there is no copy of Fashion-MNIST here")
    data = datasets.load("fashion-mnist", 200)
    names = [name.replace("/", " ") for name in data.classes]
    folder = folders(tmp_path / "images", data, names, 200)
    found, _ = measured(own(tmp_path, model="lenet5-fashion"), folder)
    assert found.accuracy.top1 is None
    assert "--labels FILE" in found.accuracy.refused
    found, _ = measured("lenet5-fashion", folder)
    assert found.accuracy.top1 > 0.85, "the catalogue knows its order"


def test_a_feature_map_in_first_place_is_no_row_of_scores(tmp_path):
    def first(proto):
        node = next(node for node in proto.graph.node if node.op_type == "MaxPool")
        known = {info.name: info for info in onnx.shape_inference.infer_shapes(proto).graph.value_info}
        outputs = [known[node.output[0]], *proto.graph.output]
        del proto.graph.output[:]
        proto.graph.output.extend(outputs)

    found, _ = measured(own(tmp_path, first), "digits", images=(COUNT,))
    assert found.accuracy.top1 > 0.9

    def alone(proto):
        first(proto)
        del proto.graph.output[1:]

    found, _ = measured(own(tmp_path, alone), "digits", images=(COUNT,))
    assert found.accuracy.top1 is None
    assert "no output of model net is a row of class scores" in found.accuracy.refused
    assert found.accuracy.output.ok
    assert not any("accuracy" in text for text in found.validity.warnings), "the time is not to be doubted"


def two_heads(proto):
    """A second row of ten scores, the classes turned by one."""
    turn = np.roll(np.eye(10, dtype=np.float32), 1, axis=1)
    scores = proto.graph.output[0].name
    proto.graph.initializer.append(numpy_helper.from_array(turn, "turn"))
    proto.graph.node.append(helper.make_node("MatMul", [scores, "turn"], ["turned"], name="turned"))
    proto.graph.output.insert(0, helper.make_tensor_value_info("turned", TensorProto.FLOAT, ["N", 10]))


def test_of_several_outputs_of_scores_one_is_named(tmp_path):
    model = own(tmp_path, two_heads)
    scores = onnx.load(model).graph.output[1].name
    found, _ = measured(model, "digits", images=(COUNT,))
    assert found.accuracy.top1 is None
    assert (
        f"several outputs that could be its scores (turned, {scores}): give --scores"
        in found.accuracy.refused
    )
    assert measured(model, "digits", images=(COUNT,), scores=scores)[0].accuracy.top1 > 0.9
    wrong, _ = measured(model, "digits", images=(COUNT,), scores="turned")
    assert wrong.accuracy.top1 < 0.1
    assert "another order" in wrong.accuracy.hint
    missing, _ = measured(model, "digits", images=(COUNT,), scores="turn")
    assert "did you mean 'turned'?" in missing.reason


def test_what_a_models_file_says_of_itself(tmp_path):
    folder = folders(tmp_path / "images", datasets.load("digits"), DIGITS)

    def change(proto):
        two_heads(proto)
        scores = proto.graph.output[1].name
        text = "divide = 255\nmean = 0"
        described(labels="\n".join(DIGITS), scores=scores, preprocess=text)(proto)

    model = own(tmp_path, change)
    found, info = measured(model, folder)
    assert found.accuracy.top1 > 0.9
    assert info.labels == "the model's file"
    assert info.preprocess == "as the model's file says"
    assert info.image == "resized to 28×28; grey; pixels divided by 255"


@pytest.mark.parametrize("outputs", [10, 1000])
def test_another_number_of_classes_is_no_accuracy(tmp_path, outputs):
    nodes = [
        helper.make_node("Flatten", ["x"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w"], ["y"]),
    ]
    weights = np.random.default_rng(0).standard_normal((784, outputs)).astype(np.float32)
    save(tmp_path, nodes, [("x", TensorProto.FLOAT, ["N", 1, 28, 28])], ["N", outputs], {"w": weights})
    found, _ = measured(tmp_path / "net.onnx", "digits", images=(COUNT,))
    assert (found.accuracy.top1 is None) == (outputs == 1000)
    assert ("has 10 classes and model net scores 1,000" in found.accuracy.refused) == (outputs == 1000)


def save(tmp_path, nodes, inputs, output, weights):
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info(*entry) for entry in inputs],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, output)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(proto, tmp_path / "net.onnx")


def lenet_with(proto, inputs, nodes, weights=()):
    """LeNet behind nodes that make its input, `x`, of others."""
    feed = proto.graph.input[0].name
    for node in proto.graph.node:
        node.input[:] = ["x" if name == feed else name for name in node.input]
    del proto.graph.input[:]
    proto.graph.input.extend(helper.make_tensor_value_info(*entry) for entry in inputs)
    for place, node in enumerate(nodes):
        proto.graph.node.insert(place, node)
    proto.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights)


SHAPES = {
    "NHWC": (["N", 28, 28, 1], [helper.make_node("Transpose", ["image"], ["x"], perm=[0, 3, 1, 2])]),
    "NHW": (["N", 28, 28], [helper.make_node("Unsqueeze", ["image", "axes"], ["x"])]),
    "NF": (["N", 784], [helper.make_node("Reshape", ["image", "whole"], ["x"])]),
}


@pytest.mark.parametrize("layout", SHAPES)
def test_images_in_other_layouts(tmp_path, layout):
    shape, nodes = SHAPES[layout]
    weights = [("axes", np.array([1])), ("whole", np.array([-1, 1, 28, 28]))]

    def change(proto):
        lenet_with(proto, [("image", TensorProto.FLOAT, shape)], nodes, weights)

    found, _ = measured(own(tmp_path, change), "digits", images=(COUNT,))
    assert (found.disposition, found.reason) == ("ok", "")
    assert found.accuracy.top1 > 0.9


def test_bytes_as_they_are(tmp_path):
    def change(proto):
        nodes = [
            helper.make_node("Cast", ["image"], ["wide"], to=TensorProto.FLOAT),
            helper.make_node("Div", ["wide", "most"], ["x"]),
        ]
        shape = ["N", 1, 28, 28]
        lenet_with(proto, [("image", TensorProto.UINT8, shape)], nodes, [("most", np.array(255, np.float32))])

    model = own(tmp_path, change)
    found, info = measured(model, "digits", images=(COUNT,))
    assert (found.disposition, found.reason) == ("ok", "")
    assert found.accuracy.top1 > 0.9
    assert info.preprocess == "raw"
    found, _ = measured(model, "digits", images=(COUNT,), preprocess="unit")
    assert "use --preprocess raw" in found.reason


def test_a_second_input_is_given(tmp_path):
    def change(proto):
        inputs = [
            ("image", TensorProto.FLOAT, ["N", 1, 28, 28]),
            ("scale", TensorProto.FLOAT, ["N", 1, 1, 1]),
        ]
        lenet_with(proto, inputs, [helper.make_node("Mul", ["image", "scale"], ["x"])])

    model = own(tmp_path, change)
    found, _ = measured(model, "digits", images=(COUNT,))
    assert "has 2 inputs" in found.reason
    assert "--input NAME=NUMBER" in found.reason
    np.save(tmp_path / "scale.npy", np.full((1, 1, 1), 1 / 255, np.float32))
    for given, preprocess in (("1", "unit"), (str(tmp_path / "scale.npy"), "raw")):
        found, _ = measured(model, "digits", images=(COUNT,), preprocess=preprocess, inputs={"scale": given})
        assert (found.disposition, found.reason) == ("ok", "")
        assert found.accuracy.top1 > 0.9
    np.save(tmp_path / "wrong.npy", np.zeros((3, 3)))
    for given, words in (
        (str(tmp_path / "wrong.npy"), "holds (3, 3)"),
        ("no.npy", "is no number and no .npy"),
    ):
        found, _ = measured(model, "digits", images=(COUNT,), inputs={"scale": given})
        assert words in found.reason
    found, _ = measured(model, "digits", images=(COUNT,), inputs={"scael": "1"})
    assert "did you mean 'scale'?" in found.reason


@pytest.mark.parametrize(("shape", "backend"), [([], "engine-cpu"), ([1], "ort-cpu"), ([28], "ort-cpu")])
def test_a_second_input_without_a_batch_is_a_constant(tmp_path, shape, backend):
    def change(proto):
        inputs = [("image", TensorProto.FLOAT, ["N", 1, 28, 28]), ("scale", TensorProto.FLOAT, shape)]
        lenet_with(proto, inputs, [helper.make_node("Mul", ["image", "scale"], ["x"])])

    given = {"scale": str(1 / 255)}
    found, _ = measured(
        own(tmp_path, change), "digits", images=(COUNT,), preprocess="raw", inputs=given, backend=backend
    )
    assert (found.disposition, found.reason) == ("ok", "")
    assert found.accuracy.top1 > 0.9


def test_images_that_cannot_be_read_are_left_out_of_all(tmp_path):
    folder = Path(folders(tmp_path / "images", datasets.load("digits"), DIGITS).removeprefix("folder:"))
    broken = sorted(folder.glob("*/*.png"))[5]
    broken.write_bytes(broken.read_bytes()[:60])
    file = tmp_path / "classes.txt"
    file.write_text("\n".join(DIGITS))
    found, _ = measured(
        own(tmp_path), f"folder:{folder}", labels=str(file), folder=tmp_path / "run", backend="engine-cpu"
    )
    assert found.accuracy.images == COUNT - 1
    assert found.accuracy.top1 > 0.9
    assert found.accuracy.agreement == 1.0
    assert (
        f"1 of {COUNT} image files cannot be read and are left out: {broken.name}" in found.accuracy.notes[0]
    )
    images = gallery.load_images(gallery.images_path(tmp_path / "run", f"folder:{folder}", found.case))
    answers = gallery.load_answers(gallery.answers_path(tmp_path / "run", found.case))
    assert len(images) == len(answers) == COUNT - 1


def test_folders_stream_in_parts(tmp_path, monkeypatch):
    """Never more images at once than a part, whatever their number."""
    folder = folders(tmp_path / "images", datasets.load("digits"), "0123456789", 300)
    model = own(tmp_path)
    largest = []
    real = image_feed.Preprocessing.fill

    def fill(self, images):
        largest.append(len(images))
        return real(self, images)

    monkeypatch.setattr(image_feed.Preprocessing, "fill", fill)
    found, _ = measured(model, folder, batch=3)
    assert found.accuracy.images == 300
    assert found.accuracy.top1 > 0.9
    assert 3 < max(largest) < 100


def test_two_models_of_a_run_name_their_classes_each_in_its_own_order(tmp_path):
    def turned(proto):
        two_heads(proto)
        order = np.roll(np.arange(10), 1).astype(str)
        described(labels="\n".join(order), scores="turned")(proto)

    model = own(tmp_path, turned)
    found, _ = measured(model, "digits", images=(COUNT,), folder=tmp_path / "run")
    catalogue_, _ = measured("lenet5-digits", "digits", images=(COUNT,), folder=tmp_path / "run")
    assert found.accuracy.top1 == catalogue_.accuracy.top1 > 0.9
    for case, first in ((found.case, "9"), (catalogue_.case, "0")):
        path = gallery.images_path(tmp_path / "run", "digits", case)
        assert gallery.load_images(path).classes[0] == first
