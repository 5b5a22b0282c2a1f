"""Job → cases: what is asked for, small batches first; whatever is wrong is one sentence."""

import msgspec
import onnx
import pytest

from bench.measure import cases
from bench.results.names import with_distinct_stems
from bench.results.records import Case, Job
from engine import backends
from engine.backend import by_default
from kernels.errors import InputError
from models import catalogue

JOB = Job(models=("lenet5-digits",), backends=("engine-cpu", "ort-cpu"), batches=(16, 1), images=(20,))


def changed(**fields):
    return msgspec.structs.replace(JOB, **fields)


def test_backends_stand_together_and_small_batches_first():
    assert [(case.batch, case.backend) for case in cases.plan(JOB)] == [
        (1, "engine-cpu"),
        (1, "ort-cpu"),
        (16, "engine-cpu"),
        (16, "ort-cpu"),
    ]
    groups = cases.groups(cases.plan(JOB))
    assert [len(group) for group in groups] == [2, 2]
    assert all(len({case.batch for case in group}) == 1 for group in groups)


def test_groups_survive_the_loss_of_some_cases():
    left = [case for case in cases.plan(JOB) if (case.batch, case.backend) != (1, "ort-cpu")]
    assert [len(group) for group in cases.groups(left)] == [1, 2]


def test_nothing_is_run_twice():
    doubled = changed(batches=(1, 16, 1), backends=("ort-cpu", "ort-cpu"), models=JOB.models * 2)
    assert len(cases.plan(doubled)) == 2


def test_without_backends_those_that_can_run_here():
    found = {case.backend for case in cases.plan(changed(backends=()))}
    assert found == {
        name for name, b in backends.all_backends().items() if b.unavailable() is None and by_default(b)
    }


def test_the_models_own_images_unless_told_otherwise():
    assert {case.images for case in cases.plan(changed(images=()))} == {360}
    assert sorted({case.images for case in cases.plan(changed(images=(50, 10)))}) == [10, 50]


def test_another_data_set_is_taken_whole():
    fewer = changed(models=("alexnet-fashion",), images=(), dataset="digits")
    assert {case.images for case in cases.plan(fewer)} == {360}


def test_random_images_are_few():
    random = changed(dataset="random", images=())
    assert {case.images for case in cases.plan(random)} == {cases.RANDOM_IMAGES}


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"models": ()}, "no model was named"),
        ({"models": ("lenet5-digit",)}, r"did you mean 'lenet5-digits'\?"),
        ({"models": ("no/such.onnx",)}, "does not exist"),
        ({"backends": ("ort-cpux",)}, r"did you mean 'ort-cpu'\?"),
        ({"batches": ()}, "batch names no number: write it as in 1,2,4"),
        ({"batches": (0,)}, "batch 0 is out of range; 1 to"),
        ({"batches": (-1,)}, "batch -1 is out of range"),
        ({"batches": (10**9,)}, "batch 1,000,000,000 is out of range"),
        ({"images": (0,)}, "images 0 is out of range"),
        ({"threads": 0}, "threads 0 is out of range"),
        ({"precisions": ("fp64",)}, r"precision 'fp64' is not known; "),
        ({"precisions": ("fp32", "fp16"), "max_error": 1e-3}, r"add it, as in --precision fp32,fp16,mixed"),
        ({"precisions": ("mixed",), "max_error": 2.0}, "max-error 2 is out of range; 1e-8 to 0.5 works"),
        ({"budget_s": 0.0}, "budget 0 is out of range; 0.000001 to"),
        ({"timeout_s": float("nan")}, "timeout nan is out of range"),
        ({"dataset": "fashion"}, r"did you mean 'fashion-mnist'\?"),
        ({"dataset": "folder:/no/such"}, "does not exist"),
        ({"preprocess": "half"}, "preprocessing 'half' is not known"),
        ({"preprocess": "imagnet"}, "did you mean 'imagenet'"),
        ({"labels": "/no/such.txt"}, r"labels /no/such\.txt cannot be read"),
        ({"kernel_dirs": ("/no/such",)}, "kernel folder /no/such does not exist"),
    ],
)
def test_bad_input_is_one_sentence(fields, sentence):
    with pytest.raises(InputError, match=sentence) as told:
        cases.plan(changed(**fields))
    assert "\n" not in str(told.value)


def test_a_mixed_case_says_its_budget():
    """So that runs with another budget are told apart wherever cases are."""
    found = cases.plan(changed(precisions=("fp32", "mixed"), max_error=2.5e-4))
    assert {case.precision for case in found} == {"fp32", "mixed-2.5e-4"}
    assert {case.precision for case in cases.plan(changed(precisions=("mixed",)))} == {"mixed-1e-3"}


def test_a_broken_model_file_is_told_before_anything_runs(tmp_path):
    path = tmp_path / "cut.onnx"
    path.write_bytes(b"\x08\x07\x12")
    with pytest.raises(InputError, match=r"cut\.onnx"):
        cases.plan(changed(models=(str(path),)))
    with pytest.raises(InputError, match=r"did you mean 'cut\.onnx'\?"):
        cases.plan(changed(models=(str(tmp_path / "cat.onnx"),)))
    with pytest.raises(InputError, match="is a folder"):
        cases.plan(changed(models=(f"{tmp_path}/",)))


def test_a_file_that_fixes_its_batch_runs_at_that_alone(tmp_path):
    proto = onnx.load(catalogue.path("lenet5-digits"))
    for info in (*proto.graph.input, *proto.graph.output):
        info.type.tensor_type.shape.dim[0].dim_value = 8
    path = str(tmp_path / "fixed.onnx")
    onnx.save(proto, path)
    found = cases.plan(changed(models=("lenet5-digits", path)))
    assert {(case.model, case.batch) for case in found} == {
        ("lenet5-digits", 1),
        ("lenet5-digits", 16),
        (path, 8),
    }


def test_a_backend_that_cannot_run_keeps_its_cases_as_long_as_another_can(monkeypatch):
    broken = backends.get("engine-cpu")
    monkeypatch.setattr(broken, "unavailable", lambda: "it is broken today", raising=False)
    assert {case.backend for case in cases.plan(JOB)} == {"engine-cpu", "ort-cpu"}
    assert "engine-cpu" not in {case.backend for case in cases.plan(changed(backends=()))}
    with pytest.raises(InputError, match="no backend asked for can run here: engine-cpu: it is broken today"):
        cases.plan(changed(backends=("engine-cpu",)))


def test_two_files_of_one_name_are_told_apart_by_their_paths(tmp_path, monkeypatch):
    monkeypatch.setattr(cases.model_file, "of_job", lambda spec, job: cases.model_file.Read(None))
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "net.onnx").touch()
    models = tuple(str(tmp_path / folder / "net.onnx") for folder in ("a", "b"))
    with pytest.raises(InputError, match="same name; rename one file"):
        cases.plan(changed(models=models))
    planned = cases.plan(changed(models=with_distinct_stems(models), backends=("ort-cpu",), batches=(1,)))
    assert sorted({case.key.partition("-ort")[0] for case in planned}) == ["a-net", "b-net"]


def test_a_size_that_no_model_of_the_job_can_have_is_refused(tmp_path):
    (tmp_path / "net.onnx").touch()
    file = str(tmp_path / "net.onnx")
    cases.check(changed(models=(file, "lenet5-digits"), dims={"height": 8, "net:width": 9}))
    with pytest.raises(InputError, match=r"nets is not compared \(did you mean .net."):
        cases.check(changed(models=(file,), dims={"nets:height": 8}))
    with pytest.raises(InputError, match="axis height: no model of the catalogue has an open axis"):
        cases.check(changed(dims={"height": 8}))


def test_keys_are_fit_for_file_names():
    case = Case(model="../some where/net.onnx", backend="ort-cpu", precision="fp32", batch=2, images=3)
    assert case.key == "net-ort-cpu-fp32-b2-n3"
