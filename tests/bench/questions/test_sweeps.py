"""A folder of third-party files in one command: each ends as what it is, and no bad one stops the others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

import main
from bench.measure.answers import oracle
from bench.questions import model_questions
from bench.results.records import Job, Run
from bench.run import client, confined
from bench.run.kinds.comparison import KIND as COMPARISON
from tests.bench.questions.test_received_models import endless, make_vast, pytestmark, unchecked  # noqa: F401
from tests.engine.harness import make_model, random

QUICK = ("--dataset", "random", "--batch", "2", "--images", "8", "--budget", "0.05", "--instances", "1")


def saved(folder: Path, name: str, node: str, **options: object) -> Path:
    model = make_model([helper.make_node(node, ["x"], ["y"], node)], {"x": ("N", 4)}, ["y"])
    path = folder / name
    path.write_bytes(model.SerializeToString())
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A good model, one that our engine refuses, and files that are not what they say."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(confined.MEMORY_VARIABLE, "300")
    models = tmp_path / "models"
    models.mkdir()
    good = saved(models, "a_good.onnx", "Tanh")
    labels = {"keys_floats": [0.0], "values_floats": [1.0]}
    refused = make_model(
        [helper.make_node("LabelEncoder", ["x"], ["y"], "told", domain="ai.onnx.ml", **labels)],
        {"x": ("N", 4)},
        ["y"],
    )
    refused.opset_import.append(helper.make_opsetid("ai.onnx.ml", 2))
    (models / "b_refused.onnx").write_bytes(refused.SerializeToString())
    (models / "c_truncated.onnx").write_bytes(good.read_bytes()[:-20])
    (models / "d_text.onnx").write_text("no model")
    (models / "e_model.ort").write_bytes(b"\x10\0\0\0ORTM")
    unknown = make_model(
        [helper.make_node("Odd", ["x"], ["y"], "odd", domain="acme")], {"x": ("N", 4)}, ["y"]
    )
    unknown.opset_import.append(helper.make_opsetid("acme", 1))
    (models / "f_unknown.onnx").write_bytes(unknown.SerializeToString())
    gather = make_model(
        [helper.make_node("Gather", ["w", "x"], ["y"], "rows")],
        {"x": ("N", 4)},
        ["y"],
        {"w": random((9, 3))},
        types={"x": TensorProto.INT64},
        ranks={"y": 3},
    )
    (models / "g_integers.onnx").write_bytes(gather.SerializeToString())
    make_vast(models).rename(models / "h_vast.onnx")
    saved(models, "z_good.onnx", "Relu")
    return models


EXPECTED = {
    "a_good.onnx": ("ok", "ok"),
    "b_refused.onnx": ("unsupported", "ok"),
    "c_truncated.onnx": ("failed", "failed"),
    "d_text.onnx": ("failed", "failed"),
    "e_model.ort": ("failed", "failed"),
    "f_unknown.onnx": ("unsupported", "unsupported"),
    "g_integers.onnx": ("ok", "ok"),
    "h_vast.onnx": ("out_of_memory", "out_of_memory"),
    "z_good.onnx": ("ok", "ok"),
}


@pytest.mark.sampled(4, "long")
def test_every_file_ends_as_what_it_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = sorted(str(path) for path in folder.iterdir() if path.suffix != ".bin")
    assert [Path(file).name for file in files] == list(EXPECTED)
    assert main.main(["compare", *files, *QUICK, "--charts", "none", "--out", "run", "--no-layer-pass"]) == 1
    told = capsys.readouterr()
    assert "Traceback" not in told.err
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for m in COMPARISON.open(Path("run")).measurements():
        found.setdefault(Path(m.case.model).name, {})[m.case.backend] = (m.disposition, m.reason)
    came = {name: (of["engine-cpu"][0], of["ort-cpu"][0]) for name, of in found.items()}
    assert came == EXPECTED
    reasons = {name: of["engine-cpu"][1] for name, of in found.items()}
    assert "does not support ai.onnx.ml.LabelEncoder" in reasons["b_refused.onnx"]
    assert "is truncated or is not an ONNX model" in reasons["c_truncated.onnx"]
    assert "ONNX Runtime's own format" in reasons["e_model.ort"]
    assert "takes more than 300 MiB" in reasons["h_vast.onnx"]
    for reason in (
        "does not support ai.onnx.ml.LabelEncoder",
        "ONNX Runtime's own format",
        "takes more than 300 MiB",
    ):
        assert reason in " ".join(told.out.split()), "the reason stands below the table"


@pytest.mark.sampled(4, "long")
def test_a_file_that_harms_its_reader_does_not_stop_the_plan(
    endless: Path,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Less is little for the two that are right, where many tests run beside this one.
    monkeypatch.setenv(confined.SECONDS_VARIABLE, "1.5")
    good = [saved(tmp_path, f"{name}.onnx", "Relu") for name in ("a", "z")]
    models = (str(good[0]), str(endless), str(good[1]))
    job = Job(models=models, backends=("engine-cpu",), batches=(1,))
    assert [case.model for case in model_questions.cases(job)] == list(models)


@pytest.mark.sampled(4, "long")
def test_the_window_sweeps_too(folder: Path) -> None:
    """Which plans nothing itself: its worker does."""
    models = tuple(str(folder / name) for name in ("c_truncated.onnx", "a_good.onnx"))
    job = Job(models=models, backends=("ort-cpu",), batches=(1,), images=(8,), budget_s=0.05, layers=False)
    with COMPARISON.create(folder / "run", Run(job=job, cases=())) as held:
        outcome = client.run(job, (), held)
    assert [m.disposition for m in outcome.measurements] == ["failed", "ok"]


@pytest.mark.sampled(4, "long")
def test_a_refusal_of_the_only_engine_asked_for_is_no_success(folder: Path) -> None:
    refused = str(folder / "b_refused.onnx")
    common = (*QUICK, "--charts", "none", "--no-layer-pass")
    assert main.main(["compare", refused, *common, "--backend", "engine-cpu", "--out", "alone"]) == 1
    assert main.main(["compare", refused, *common, "--out", "beside"]) == 0, "the reference was measured"
    both = ("--backend", "engine-cpu", "--backend", "ort-cpu")
    assert main.main(["compare", refused, *common, *both, "--out", "named"]) == 1


def test_the_oracle_is_fed_whole_numbers_as_such() -> None:
    from engine.graph.importer import from_proto

    cast = helper.make_node("Cast", ["x"], ["y"], "cast", to=TensorProto.FLOAT)
    graph = from_proto(make_model([cast], {"x": ("N", 2)}, ["y"], types={"x": TensorProto.INT64}))
    far = np.array([[2**24 + 1, 1]])
    found = oracle.golden(graph, {"x": far})
    assert found.inputs["x"].dtype == np.int64
    np.testing.assert_array_equal(found.tensors["y"], far)
