"""An imported model stands in the catalogue, in lists, in the form and on the command line, as it was."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

import main
from bench.extras.reports.courses import presets as courses
from bench.extras.weights.importing import import_file, readers
from bench.run.kinds.comparison import KIND as COMPARISON
from kernels.errors import InputError, ModelError
from models import catalogue, imported, labels, names
from tests.bench.extras.weights import made

pytestmark = pytest.mark.slow


@pytest.fixture
def file(tmp_path: Path, caffe_weights: made.Weights) -> Path:
    return made.npy(tmp_path / "My AlexNet.npy", made.layers_of_caffe(caffe_weights))


@pytest.mark.sampled(4, "long")
def test_it_is_listed_shown_compared_and_removed(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main.main(["models", "import", str(file), "--as", "bvlc"]) == 0
    assert capsys.readouterr().out == "bvlc\n"
    assert main.main(["models", "list"]) == 0
    assert "bvlc" in capsys.readouterr().out
    assert main.main(["models", "show", "bvlc"]) == 0
    out = capsys.readouterr().out
    assert "imported from My AlexNet.npy" in out
    assert "caffe" in out
    assert "Caffe's AlexNet at 1/16 of its width" in out
    line = "compare bvlc --preprocess raw --backend engine-cpu --backend ort-cpu --batch 2 --images 4"
    line += " --budget 0.01 --instances 1 --charts none --out run"
    assert main.main(line.split()) == 0
    run = COMPARISON.open(Path("run"))
    assert [(m.case.model, m.disposition) for m in run.measurements()] == [("bvlc", "ok")] * 2
    assert main.main(["models", "remove", "bvlc"]) == 0
    assert "bvlc" not in names.models()
    assert not list(imported.folder().iterdir())
    assert main.main(["models", "remove", "bvlc"]) == 2
    assert main.main(["models", "remove", "lenet5-digits"]) == 2
    assert "is no imported model" in capsys.readouterr().err


def test_menus_have_it_last(file: Path) -> None:
    before = names.model_titles()
    import_file(file, "bvlc")
    assert list(names.model_titles()) == [*before, "bvlc"], "behind those that were there"


def test_the_report_that_gave_these_weights_up_is_measured_with_them(
    tmp_path: Path, caffe_weights: made.Weights
) -> None:
    assert {need.models for need in courses.load("alexnet").needs} == {("alexnet",)}
    import_file(made.npy(tmp_path / "bvlc_alexnet.npy", made.layers_of_caffe(caffe_weights)))
    course = courses.load("alexnet")
    assert {need.models for need in course.needs} == {("bvlc_alexnet",)}
    assert "Here with the weights of bvlc_alexnet, which were imported." in course.notes


def test_labels_are_a_class_a_line_and_go_into_the_file(file: Path, tmp_path: Path) -> None:
    labels = tmp_path / "labels.txt"
    classes = tuple(f"class {i}, or ä" for i in range(made.CLASSES))
    for text in ("\n".join(classes[1:]), "\n".join((*classes, "one more")), "\n\n".join(classes[:4]), ""):
        labels.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match="a class a line"):
            import_file(file, labels=labels)
    labels.write_text("\n".join(classes) + "\n", encoding="utf-8")
    name = import_file(file, labels=labels)
    assert name == "my-alexnet"
    assert catalogue.get(name).classes == classes
    model = onnx.load(catalogue.path(name))
    assert {prop.key: prop.value for prop in model.metadata_props} == {
        "kernelscope.labels": "\n".join(classes),
        "kernelscope.preprocess": "caffe",
        "kernelscope.scores": "prob",
    }
    onnx.checker.check_model(catalogue.path(name), full_check=True)
    assert import_file(file) == "my-alexnet-2", "a name that is free"


@pytest.mark.parametrize("name", ["../up", "Name", "", ".hidden", "a/b", "x" * 65, "lenet5-digits", "taken"])
def test_names_that_cannot_be_given(file: Path, name: str) -> None:
    import_file(file, "taken")
    with pytest.raises(InputError, match=r"cannot be a model's name|is in the catalogue already"):
        import_file(file, name)
    assert set(names.models()) - set(names.shipped()) == {"taken"}


def test_a_file_that_was_changed_is_not_taken_for_what_was_imported(file: Path) -> None:
    import_file(file, "bvlc")
    path = catalogue.path("bvlc")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(ModelError, match="not what was imported"):
        catalogue.path("bvlc")
    path.unlink()
    with pytest.raises(ModelError, match="is gone from"):
        catalogue.path("bvlc")


@pytest.mark.parametrize(
    "change",
    [{"input": [3, -1, 5]}, {"input": "x"}, {"images": 0}, {"classes": [1]}, {"title": None}, {"sha256": 3}],
)
def test_a_table_that_is_damaged_is_left_out_and_told(
    file: Path, change: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    import_file(file, "bvlc")
    import_file(file, "other")
    table = imported.folder() / "bvlc.json"
    text = json.dumps(json.loads(table.read_text()) | change)
    table.unlink()
    for damaged in (text, "{", "[" * 100_000, "[]", ""):
        table.unlink(missing_ok=True)
        table.write_text(damaged)
        assert set(names.models()) - set(names.shipped()) == {"other"}
        assert "the imported model" in caplog.text
        caplog.clear()


def test_a_table_does_not_take_the_name_of_a_model_of_the_program(file: Path) -> None:
    import_file(file, "bvlc")
    for suffix in (".json", ".onnx"):
        own = imported.folder() / f"bvlc{suffix}"
        own.rename(own.with_stem("lenet5-digits"))
    assert catalogue.get("lenet5-digits").title == "LeNet-5, handwritten digits"
    assert catalogue.path("lenet5-digits").parent != imported.folder()


OTHERS = {
    "a.pt": "torch.onnx.export",
    "a.h5": "export it there with model.export",
    "a.keras": "export it there with model.export",
    "a.pb": "tf2onnx",
    "a.ort": "take the .onnx file",
    "a.txt": "is no file of weights that is known",
    "folder": "holds no file that is understood",
    "nowhere": "does not exist",
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_none_of_these_gets_a_sentence(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if "." in name:
        (tmp_path / name).write_bytes(b"PK\x03\x04" if name == "a.keras" else b"anything")
    elif name == "folder":
        (tmp_path / name).mkdir()
    assert main.main(["models", "import", str(tmp_path / name)]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert OTHERS[name] in err
    for reader in readers():
        assert reader.UNDERSTOOD in err, "it says what is understood"


def test_a_file_that_is_called_onnx_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = catalogue.path("lenet5-digits").read_bytes()
    for content, words in (
        (whole, "is ONNX already"),
        (whole[: len(whole) // 2], "is truncated or is not an ONNX model"),
        (b"anything", "is truncated or is not an ONNX model"),
        (b"version https://git-lfs.github.com/spec/v1\n", "is a Git LFS pointer"),
    ):
        (tmp_path / "a.onnx").write_bytes(content)
        assert main.main(["models", "import", str(tmp_path / "a.onnx")]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert words in err


def test_a_folder_with_one_model_is_that_model(tmp_path: Path, caffe_weights: made.Weights) -> None:
    folder = tmp_path / "bvlc_alexnet"
    folder.mkdir()
    made.prototxt(folder / "deploy.prototxt")
    (folder / "readme.md").write_text("AlexNet")
    with pytest.raises(ModelError, match=r"no files \.caffemodel"):
        import_file(folder)
    made.caffemodel(folder / "bvlc_alexnet.caffemodel", caffe_weights)
    made.prototxt(folder / "train_val.prototxt", pool_first=True)
    assert import_file(folder) == "bvlc_alexnet"
    operators = [node.op_type for node in onnx.load(catalogue.path("bvlc_alexnet")).graph.node[:4]]
    assert operators == ["Conv", "Relu", "LRN", "MaxPool"], "as deploy.prototxt has it"
    made.npy(folder / "other.npy", made.layers_of_caffe(caffe_weights))
    with pytest.raises(InputError, match="holds 2 files that are understood"):
        import_file(folder)


def test_a_folder_that_cannot_be_written_leaves_nothing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, *_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(InputError, match="no space left on device"):
        import_file(file, "bvlc")
    assert not list(imported.folder().iterdir())


def test_a_net_that_answers_as_many_has_imagenets_classes(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not catalogue.get(import_file(file)).classes
    monkeypatch.setattr(labels, "SHIPPED", tmp_path)
    lines = [f"n{i:08} thing {i}" for i in range(made.CLASSES)]
    (tmp_path / "imagenet.txt").write_text("\n".join(lines))
    assert catalogue.get(import_file(file)).classes == tuple(lines)
