"""The job form: what it makes, what it refuses in words, and what it remembers."""

import shlex
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from bench.commands import compare
from bench.results.records import BackendInfo, Job, stem
from bench.run import defaults
from bench.run.kinds.comparison import KIND as COMPARISON
from kernels.errors import InputError
from models import imported
from tests.gui.models import small_model


def test_it_is_ready_on_the_default_comparison(make_window):
    form = make_window("ok").form
    assert form.job() == defaults.job()
    assert form.run_button.isEnabled()
    assert form.batches.text == "1,16,256; alexnet-digits=1"
    assert form.fields["images"].widget.text == "alexnet-digits=16"
    assert form.summary == "8 cases, 0:18 to 0:54 (min:s)"
    form.models.check(["lenet5-digits"])
    assert (form.job().own_batches, form.job().own_images) == ({}, {}), "and no error though it is typed"
    assert form.summary.startswith("6 cases")


def test_a_model_that_was_imported_is_offered(make_window, tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELSCOPE_MODELS", str(tmp_path / "own"))
    facts = {"input": [3, 227, 227], "preprocess": "raw", "dataset": "random", "images": 2, "classes": []}
    imported.add("mine", b"", {"title": "AlexNet of mine", "net": imported.NET, "origin": "a file", **facts})
    form = make_window("ok", begin=False).form
    form.models.check(["mine"])
    assert form.job().models == ("mine",)
    assert form.models.item(form.models.keys.index("mine")).toolTip() == "AlexNet of mine"


def test_unavailable_backends_are_greyed_with_their_reason(make_window):
    form = make_window("ok").form
    assert form.backends.usable == ("engine-cpu", "ort-cpu")
    item = form.backends.item(form.backends.keys.index("ort-cuda"))
    assert not item.flags() & Qt.ItemFlag.ItemIsEnabled
    assert item.toolTip() == "no NVIDIA driver is installed"
    assert form.precisions.checked == ("fp32",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "names no number"),
        ("two", "'two' is not a whole number"),
        ("0", "0 is out of range; 1 to 100,000 works"),
        ("1,-4", "-4 is out of range"),
        ("8..2", "is no range"),
        ("1000000", "1,000,000 is out of range"),
        ("1; alexnet-digit=2", "did you mean 'alexnet-digits'?"),
        ("1; alexnet-digits=x", "'x' is not a whole number"),
        ("1; =2", "names no model"),
        ("1; alexnet-digits: 2", "or alexnet-digits=1,4 for one model"),
    ],
)
def test_batch_sizes_are_checked_while_they_are_typed(make_window, text, words):
    form = make_window("ok", begin=False).form
    form.batches.box.setEditText(text)
    assert words in form.batches.problem
    assert words in form.summary
    assert not form.run_button.isEnabled()
    with pytest.raises(InputError):
        form.job()
    form.batches.box.setEditText("1..8,100")
    assert form.batches.problem == ""
    assert form.job().batches == (1, 2, 4, 8, 100)


def test_what_is_missing_is_said(make_window):
    form = make_window("ok").form
    form.models.check([])
    assert form.summary.startswith("Choose a model")
    form.models.check(["alexnet"])
    form.backends.check([])
    assert form.summary == "Choose a backend."
    form.backends.check(["ort-cpu"])
    form.fields["preprocess"].widget.text = "bright"
    assert "bright" in form.summary
    form.fields["preprocess"].widget.text = "0.45,0.225"
    assert form.job().preprocess == "0.45,0.225"


FULL = Job(
    models=("ece408-high", "alexnet"),
    backends=("ort-cpu",),
    precisions=("fp32",),
    batches=(1, 100, 10_000),
    images=(100, 1000),
    dataset="mnist",
    preprocess="0.5,0.25",
    threads=3,
    l2="cold",
    budget_s=2.5,
    layers=False,
    own_batches={"alexnet": (1, 4)},
    own_images={"alexnet": (32,)},
    instances=4,
    labels="alphabetical",
    scores="prob",
    inputs={"scale": "1", "mask": "/some/mask.npy"},
)


def test_settings_survive_a_restart(make_window, tmp_path):
    window = make_window("ok")
    model = small_model(tmp_path / "mine.onnx")
    window.form.set_job(msgspec.structs.replace(FULL, models=(*FULL.models, str(model))))
    wanted = window.form.job()
    window.theming.choose("dark")
    window.form_dock.close()
    window.end()
    again = make_window("ok")
    assert again.form.job() == wanted
    assert again.form.models.checked == ("ece408-high", "alexnet", str(model))
    assert again.settings.value("theme") == "dark"
    assert again.form_dock.isHidden()


def test_copy_as_command_gives_what_the_command_line_reads_as_the_same_job(make_window, monkeypatch):
    import main

    form = make_window("ok").form
    form.set_job(FULL)
    form.copy_button.click()
    words = shlex.split(QApplication.clipboard().text())
    assert words[:3] == ["python", "main.py", "compare"]
    given = []
    monkeypatch.setattr(compare, "run_jobs", lambda jobs, output: given.append(jobs[0][0]) or 0)
    assert main.main(words[2:]) == 0
    assert given == [form.job()]
    assert COMPARISON.arguments(form.job()) == words[2:]


def test_the_reference_can_be_tuned_where_it_can_run(make_window):
    form = make_window("ok").form
    assert not form.tune.isEnabled(), "no variant was told of by this worker"
    variant = BackendInfo(
        name="ort-cuda-tuned",
        device="cuda",
        precisions=("fp32",),
        reference="ort-cuda",
        unavailable="no NVIDIA driver is installed",
        variant_of="ort-cuda",
    )
    plain = BackendInfo(name="ort-cuda", device="cuda", precisions=("fp32",), reference="ort-cuda")
    form.show_backends([plain, variant])
    assert not form.tune.isEnabled()
    assert "no NVIDIA driver is installed" in form.tune.toolTip()
    form.show_backends([plain, msgspec.structs.replace(variant, unavailable="")])
    assert "ort-cuda-tuned" not in form.backends.keys, "it is no backend to choose, but a way of one"
    form.backends.check(["ort-cuda"])
    before = form.summary
    form.tune.click()
    assert form.job().tune_reference
    assert "--tune-reference" in COMPARISON.arguments(form.job())
    assert form.summary != before, "more cases"
    form.backends.check(["engine-cpu"])
    own = BackendInfo(name="engine-cpu", device="cpu", precisions=("fp32",), reference="ort-cpu")
    form.show_backends([own, plain, msgspec.structs.replace(variant, unavailable="")])
    assert "Choose ort-cuda too" in form.summary


def test_a_rival_is_offered_where_it_is_there_and_runs_where_it_is_chosen(make_window):
    form = make_window("ok").form
    plain = BackendInfo(name="engine-cpu", device="cpu", precisions=("fp32",), reference="ort-cpu")
    rival = BackendInfo(name="torch-cpu", device="cpu", precisions=("fp32",), reference="ort-cpu", rival=True)
    form.show_backends([plain, msgspec.structs.replace(rival, unavailable="not installed")])
    assert "torch-cpu" not in form.backends.keys, "the form is no list of what is missing"
    form.show_backends([plain, rival])
    assert "torch-cpu" in form.backends.usable
    assert "torch-cpu" not in form.backends.checked
    before = form.job()
    assert before.backends == (), "all that take part untold"
    form.backends.check([*form.backends.checked, "torch-cpu"])
    chosen = form.job()
    assert "torch-cpu" in chosen.backends
    form.show_backends([plain, rival])
    assert "torch-cpu" in form.backends.checked, "a worker that tells the same again changes no choice"
    form.set_job(before)
    assert "torch-cpu" not in form.backends.checked
    form.set_job(chosen)
    assert "torch-cpu" in form.backends.checked
    # A kernel that is swapped in goes into it, too; where it is not installed that is said.
    form.set_job(before)
    swapped = msgspec.structs.replace(
        rival, name="torch-cpu-swapped", variant_of="torch-cpu", rival=False, swaps=True, invited=True
    )
    form.show_backends([plain, rival, swapped])
    assert form.swap_into("cpu") == (["torch-cpu"], "")
    assert {"engine-cpu", "torch-cpu"} <= {*form.backends.checked}
    form.show_backends([plain, msgspec.structs.replace(swapped, unavailable="not installed")])
    assert form.swap_into("cpu") == ([], "not installed")
    assert form.swap_into("cuda") == ([], "")


def test_a_click_beside_the_box_turns_an_item(make_window, qtbot):
    models = make_window("ok", begin=False).form.models
    item = models.item(models.keys.index("alexnet"))
    at = models.visualItemRect(item).center()
    qtbot.mouseClick(models.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert "alexnet" in models.checked
    qtbot.mouseClick(models.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert "alexnet" not in models.checked
    models.setCurrentItem(item)
    qtbot.keyClick(models, Qt.Key.Key_Space)
    assert "alexnet" in models.checked


@pytest.fixture
def fixed_model(tmp_path):
    """LeNet's shape with a batch of 8 and an order of its own."""
    import onnx
    from onnx import TensorProto, helper

    entry = [helper.make_tensor_value_info("image", TensorProto.FLOAT, [8, 1, 4, 4])]
    out = [helper.make_tensor_value_info("answer", TensorProto.FLOAT, [8, 16])]
    proto = helper.make_model(
        helper.make_graph([helper.make_node("Flatten", ["image"], ["answer"])], "net", entry, out),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    helper.set_model_props(proto, {"kernelscope.labels": "\n".join(f"class {i}" for i in range(16))})
    path = tmp_path / "fixed.onnx"
    onnx.save(proto, path)
    return str(path)


def test_a_models_file_says_what_it_takes_before_anything_runs(make_window, qtbot, fixed_model):
    window = make_window("ok")
    form = window.form
    form.models.check([])
    window.open_models([fixed_model])
    qtbot.waitUntil(lambda: "image is" in form.note.text())
    for words in (
        "input: image: float32, 8×1×4×4",
        "output: answer: float32, 8×16",
        "batch: 8 alone: the file fixes it",
        "resized to 4×4; grey; pixels divided by 255",
        "scores: answer",
        "in the order of the model's file: class 0, class 1, class 2, class 3, … (16)",
    ):
        assert words in form.note.text()
    assert form.job().own_batches == {"fixed": (8,)}, "whatever the field says of all"
    form.fields["preprocess"].widget.text = "raw"
    qtbot.waitUntil(lambda: "pixels 0 to 255" in form.note.text())
    form.fields["scores"].widget.text = "anser"
    qtbot.waitUntil(lambda: "did you mean 'answer'?" in form.note.text())
    form.batches.text = "1; fixed=1,8"
    assert form.summary == "fixed runs at batch 8 alone: its file fixes it."
    form.models.check(["lenet5-digits"])
    form.batches.text = "1"
    assert form.note.isHidden()


def test_a_file_of_classes_is_read_while_it_is_named(make_window, tmp_path):
    form = make_window("ok").form
    form.labels.text = str(tmp_path / "classes.txt")
    assert "cannot be read" in form.labels.problem
    (tmp_path / "classes.txt").write_text("cat\ndog\n")
    assert form.labels.problem == ""
    assert form.job().labels == str(tmp_path / "classes.txt")
    form.fields["input"].widget.text = "scale"
    assert "is not NAME=NUMBER" in form.fields["input"].widget.problem


def test_end_to_end_is_a_box_to_tick(make_window):
    form = make_window("ok").form
    before = form.summary
    assert not form.job().end_to_end
    form.fields["end-to-end"].widget.click()
    assert form.job().end_to_end
    assert form.summary != before, "it takes longer"
    assert "--end-to-end" in COMPARISON.arguments(form.job())
    form.set_job(msgspec.structs.replace(form.job(), top_k=5))
    assert {"--end-to-end", "--top-k"} <= set(COMPARISON.arguments(form.job()))
    form.fields["end-to-end"].widget.click()
    assert not {"--end-to-end", "--top-k"} & set(COMPARISON.arguments(form.job()))


def test_a_mixed_precision_brings_its_budget(make_window):
    form = make_window("ok", begin=False).form
    able = BackendInfo(name="engine-cpu", device="cpu", precisions=("fp32", "mixed"), reference="ort-cpu")
    form.show_backends([able])
    budget = form.fields["max-error"].widget
    assert not budget.isVisibleTo(form)
    budget.box.setEditText("1e-4")
    assert form.job().max_error is None, "without a mixed precision it means nothing"
    form.precisions.check(("fp32", "mixed"))
    assert budget.isVisibleTo(form)
    assert (form.job().precisions, form.job().max_error) == (("fp32", "mixed"), 1e-4)
    assert "--max-error 0.0001" in shlex.join(COMPARISON.arguments(form.job()))
    for text, words in (("2", "max-error 2 is out of range"), ("little", "'little' is no number")):
        budget.box.setEditText(text)
        assert words in form.summary
    budget.box.setEditText("")
    assert form.job().max_error is None


def test_sizes_of_open_axes_are_kept_with_the_model(make_window, tmp_path):
    form = make_window("ok").form
    files = [tmp_path / name / "net.onnx" for name in ("one", "other")]
    for file in files:
        file.parent.mkdir()
        file.write_bytes(b"")
        form.add_model(str(file), check=False)
    form.models.check([str(files[0])])
    form.axes.text = "height"
    assert "is not NAME=SIZE" in form.axes.problem
    form.axes.text = "height=64 width=96"
    assert form.job().dims == {"height": 64, "width": 96}
    arguments = COMPARISON.arguments(form.job())
    assert arguments[arguments.index("--dim") + 1] == "height=64"
    form.save()
    for chosen in ([str(files[1])], ["lenet5-digits"]):
        form.axes.text = ""
        form.models.check([str(files[0])])
        form._on_models()
        form.models.check(chosen)
        form._on_models()
        assert form.axes.text == "", "what was filled in for the one file is for no other model"
    form.models.check([str(files[0])])
    form._on_models()
    assert form.axes.text == "height=64 width=96"
    form.models.check(list(map(str, files)))
    assert {Path(model) for model in form.job().models} == set(files)
    assert len({stem(model) for model in form.job().models}) == 2
    form.set_job(form.job())
    assert set(form.models.checked) == set(map(str, files))
