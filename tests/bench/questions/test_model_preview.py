"""What a preview holds of a model: each node's kernel or the reason there is none, weights' histograms, and
what an image is when it goes in."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from PIL import Image

from bench.questions import model_preview, model_questions
from bench.questions.messages import AnyAnswer
from bench.questions.preview import Preview, WhichPreview
from bench.results.records import Job
from kernels.errors import ModelError
from tests.gui.models import small_model


def asked(model: object, **job: object) -> WhichPreview:
    return WhichPreview(job=Job(models=(str(model),), backends=(), **job))  # type: ignore[arg-type]


def test_every_node_of_a_net_that_runs_has_its_kernel_and_what_is_fused() -> None:
    found = model_preview.preview(asked("lenet5-digits"))
    assert found.devices.keys() == {"cpu", "cuda"}
    assert not any(words.startswith("does not") for words in found.devices.values())
    runs = {node.name: node.runs["cuda"] for node in found.nodes}
    assert all(run.kernel or run.note for run in runs.values())
    assert set(runs["conv1"].nodes) == {"conv1", "tanh1", "pool1"}
    assert "view" in runs["flatten"].note
    assert {weight.name for weight in found.weights} >= {"conv1.weight", "fc3.bias"}
    assert [image.label for image in found.images] == ["2", "3", "4"]


def test_of_a_net_that_is_refused_all_other_nodes_have_their_kernels(tmp_path: Path) -> None:
    found = model_preview.preview(asked(small_model(tmp_path / "net.onnx", "Det")))
    runs = {node.name: node.runs["cpu"] for node in found.nodes}
    assert runs["first"].kernel.startswith("conv/")
    assert runs["mean"].kernel
    assert runs["second"].refused.startswith("the engine does not support Det")
    assert found.devices["cpu"].startswith("does not run it: 1 of 4 nodes has no kernel (Det)")
    assert found.devices["cpu"].endswith("ONNX Runtime runs it alone")


def test_what_is_behind_an_operator_of_ones_own_is_not_called_refused(tmp_path: Path) -> None:
    """Its shape is not known; and ONNX Runtime, which lacks the operator, too, is not said to run it."""
    found = model_preview.preview(asked(small_model(tmp_path / "net.onnx", "Swish", domain="com.acme")))
    runs = {node.name: node.runs["cpu"] for node in found.nodes}
    assert runs["first"].kernel.startswith("conv/")
    assert runs["second"].refused == "the engine does not support com.acme.Swish"
    assert runs["mean"].note.startswith("not known")
    assert not any(runs[name].refused for name in ("mean", "flat"))
    said = "does not run it: 1 of 4 nodes has no kernel (Swish); nor has ONNX Runtime operators of com.acme"
    assert found.devices["cpu"] == said


@pytest.mark.parametrize(
    "values",
    [
        [1.0, 2.0, np.nan, np.inf],
        [np.nan],
        [1.0, 1.0 + 2**-52],
        [-1.7e308, 1.7e308],
        [0.0, 5e-324],
        [0.0],
        [],
    ],
)
def test_a_weight_of_any_numbers_has_a_histogram_that_can_be_sent(values: list[float]) -> None:
    made = model_preview.weight("w", np.array(values))
    again = msgspec.json.decode(msgspec.json.encode(made), type=type(made))
    assert again == made
    finite = [value for value in values if np.isfinite(value)]
    assert sum(made.counts) == len(finite)
    assert made.not_finite == len(values) - len(finite)


def test_of_a_large_weight_values_are_taken_from_all_over_it() -> None:
    values = np.zeros(1_000_000, np.float32)
    values[500_000:] = 1
    made = model_preview.weight("w", values)
    assert made.taken <= model_preview.MOST_VALUES
    assert made.counts[0] == pytest.approx(made.counts[-1], rel=0.01)


def test_an_image_is_shown_as_the_model_is_given_it(tmp_path: Path) -> None:
    """Blue first, and the middle of it alone: what is shown is turned back to red, green, blue."""
    (tmp_path / "photos" / "sky").mkdir(parents=True)
    pixels = np.zeros((16, 32, 3), np.uint8)
    pixels[:, 8:24, 2] = np.arange(16) * 10  # blue in the middle
    Image.fromarray(pixels).save(tmp_path / "photos" / "sky" / "blue.png")
    (tmp_path / "own.toml").write_text('base = "raw"\norder = "BGR"\nfit = "crop"\nresize = 8\n')
    job = {"dataset": f"folder:{tmp_path / 'photos'}", "preprocess": str(tmp_path / "own.toml")}
    (seen,) = model_preview.preview(asked(small_model(tmp_path / "net.onnx"), **job)).images
    assert (seen.own.width, seen.own.height, seen.size) == (32, 16, "3×8×8")
    given = np.frombuffer(seen.given.pixels, np.uint8).reshape(8, 8, 3)
    assert given[..., 2].max() == 255
    assert given[..., :2].max() == 0
    assert seen.channels[0][2] > 100, "the model's first channel is blue"


def test_what_speaks_against_the_images_is_said_and_the_rest_is_shown(tmp_path: Path) -> None:
    path = small_model(tmp_path / "net.onnx")
    found = model_preview.preview(asked(path, dataset=f"folder:{tmp_path}/none"))
    assert not found.images
    assert "none" in found.images_note
    assert found.nodes
    found = model_preview.preview(asked(path, scores="other"))
    assert "no output 'other'" in found.takes.refused
    assert found.nodes


def test_it_is_answered_by_a_process_apart_and_a_file_that_is_none_is_told(tmp_path: Path) -> None:
    question = asked(small_model(tmp_path / "net.onnx"))
    found = model_questions.ask(question, Preview)
    assert msgspec.json.decode(msgspec.json.encode(found), type=AnyAnswer) == found
    (tmp_path / "broken.onnx").write_bytes(b"<html>")
    with pytest.raises(ModelError, match="is truncated or is not an ONNX model"):
        model_questions.ask(asked(tmp_path / "broken.onnx"), Preview)
