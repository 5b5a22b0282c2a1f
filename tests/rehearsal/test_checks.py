"""Each way in which a step can be wrong makes it red; a right one is not."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from PIL import Image

from bench.results.finding import Finding
from bench.results.ladder_records import Ladder, LadderJob, RungCase, RungMeasurement
from bench.results.records import Case, ErrorStats, Measurement, Run
from bench.run.kinds.ladder import KIND as LADDER
from bench.run.kinds.profile import KIND as PROFILE
from tests.rehearsal import checks
from tests.rehearsal.checks import Result
from tests.rehearsal.machine import Machine
from tests.rehearsal.steps import PYTHON, Expect, Step

DATA = Path(__file__).parents[1] / "data"
PLAIN = Expect()
CPU = Machine(no_gpu="there is none")
TRACE = 'Traceback (most recent call last):\n  File "x.py"\nKeyError: 1\n'


def wrong(
    folder: Path, expect: Expect = PLAIN, code: int | None = 0, out: str = "a table", err: str = ""
) -> str:
    """What is told of a step that left this."""
    step = Step("one", "some", (PYTHON, "main.py"), expect)
    return "; ".join(checks.problems(step, Result(code, out, err, folder), CPU))


def test_a_step_that_gives_what_it_must_is_right(tmp_path: Path):
    (tmp_path / "trace.json").write_text('[{"ph": "X"}]')
    shutil.copytree(DATA / "two_models", tmp_path / "runs" / "one")
    assert wrong(tmp_path, Expect(made=("trace.json", "runs"), says="table")) == ""
    assert wrong(tmp_path, Expect((2,)), 2, "", "no such thing; another would do\n") == ""
    assert wrong(tmp_path, Expect((0, 1)), 1) == ""
    assert wrong(tmp_path, Expect(silent=True), 0, "") == ""


@pytest.mark.parametrize(
    ("expect", "code", "out", "err", "told"),
    [
        (Expect(), 1, "a table", "it broke\n", "exit code 1: it broke"),
        (Expect((1,)), 0, "a table", "", "exit code 0"),
        (Expect(), None, "a table", "", "not done after 400 s"),
        (Expect(), 0, TRACE, "", "a traceback on standard output: KeyError: 1"),
        (Expect(), 0, "a table", TRACE, "a traceback on standard error"),
        (
            Expect((1,), bad="crashed"),
            1,
            "a table",
            "Fatal Python error: Aborted",
            "a traceback on standard error",
        ),
        (Expect(), 0, " \n", "", "nothing on standard output"),
        (Expect((2,)), 2, "", "one\ntwo\n", "2 lines on standard error"),
        (Expect((2,)), 2, "", "", "0 lines on standard error"),
        (Expect(says="90 mine"), 0, "a table", "", "nothing says “90 mine”"),
        (Expect(made=("figures",)), 0, "a table", "", "figures was not written"),
        (Expect(made=("empty",)), 0, "a table", "", "empty is empty"),
        (Expect(made=("empty.txt",)), 0, "a table", "", "empty.txt is empty"),
        (Expect(made=("head.csv",)), 0, "a table", "", "head.csv has no line below its heading"),
        (Expect(made=("cut.json",)), 0, "a table", "", "cut.json is no JSON"),
    ],
)
def test_a_process_or_a_file_that_is_not_as_it_must_be(tmp_path, expect, code, out, err, told):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty.txt").touch()
    (tmp_path / "head.csv").write_text("model,batch\n")
    (tmp_path / "cut.json").write_text('[{"ph": ')
    assert told in wrong(tmp_path, expect, code, out, err)


def test_every_page_must_be_seen(tmp_path: Path):
    from gui.pages.page import page_types

    assert len(checks.pages()) == len(page_types())
    image = Image.effect_noise((60, 40), 80)
    for name in checks.pages():
        for theme in ("light", "dark"):
            image.save(tmp_path / f"{name}-{theme}.png")
    expect = Expect(pictures=".")
    assert wrong(tmp_path, expect) == ""
    Image.new("RGB", (60, 40), "white").save(tmp_path / "compare-light.png")
    (tmp_path / "layers-dark.png").unlink()
    (tmp_path / "ladder-dark.png").write_bytes(b"no picture")
    told = wrong(tmp_path, expect)
    assert "compare-light.png is blank: one colour in 100.0% of it" in told
    assert "no picture of the page layers-dark" in told
    assert "ladder-dark.png cannot be read" in told


# ------------------------------------------------------------------------------------------------ comparisons


def changed(folder: Path, change: Callable[[Measurement], Measurement | None]) -> None:
    """Each measurement of a recorded run with something done to it (None: taken out)."""
    path = folder / "results.jsonl"
    lines = [msgspec.json.decode(line, type=Measurement) for line in path.read_bytes().splitlines()]
    kept = [made for made in map(change, lines) if made is not None]
    path.write_bytes(b"".join(msgspec.json.encode(made) + b"\n" for made in kept))


def ours(**fields: object) -> Callable[[Measurement], Measurement]:
    """Of our engine's cases some fields replaced."""

    def change(m: Measurement) -> Measurement:
        return msgspec.structs.replace(m, **fields) if m.case.backend == "engine-cpu" else m

    return change


def answers(**fields: object) -> Callable[[Measurement], Measurement]:
    def change(m: Measurement) -> Measurement:
        if m.case.backend != "engine-cpu":
            return m
        assert m.accuracy is not None
        return msgspec.structs.replace(m, accuracy=msgspec.structs.replace(m.accuracy, **fields))

    return change


def bad_layer(m: Measurement) -> Measurement:
    error = ErrorStats(rel_l2=0.2, max_abs=1, mean_abs=1, max_rel=1, bound=1e-5, ok=False, reason="far off")
    layers = tuple(msgspec.structs.replace(layer, isolated=error) for layer in m.layers[:1])
    return msgspec.structs.replace(m, layers=layers)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (ours(disposition="crashed", reason="it fell"), "is crashed, not ok (it fell)"),
        (ours(disposition="unsupported"), "is unsupported, not ok"),
        (lambda m: m if m.case.backend == "ort-cpu" else None, "cases have no result"),
        (lambda m: None, "8 of 8 cases have no result"),
        (answers(agreement=0.975), "agrees with ort-cpu on 97.5% of the images"),
        (answers(agreement=None), "was not held against ort-cpu"),
        (answers(top1=0.5), "has 50.00% right and ort-cpu"),
        (ours(accuracy=None), "has no answers"),
        (ours(samples_ns=()), "has no times"),
        (bad_layer, "engine-cpu, fp32, batch 1, 40 images is ok, and its layer"),
        (bad_layer, "ort-cpu, fp32, batch 1, 40 images has no mark, and its layer"),
    ],
)
def test_a_comparison_with_something_wrong_in_it(tmp_path: Path, change, told: str):
    folder = shutil.copytree(DATA / "two_models", tmp_path / "runs" / "one")
    changed(folder, change)
    assert told in wrong(tmp_path)


def test_a_backend_that_has_no_times_is_right_without_them(tmp_path: Path):
    def renamed(m: Measurement) -> Measurement:
        if m.case.backend != "engine-cpu":
            return m
        case = msgspec.structs.replace(m.case, backend="engine-cuda-simulated")
        return msgspec.structs.replace(m, case=case, disposition=disposition, samples_ns=())

    for disposition, told in (("untimed", ""), ("ok", "is ok, not untimed"), ("incorrect", "not untimed")):
        folder = shutil.copytree(DATA / "two_models", tmp_path / "runs" / disposition)
        changed(folder, renamed)
        said = wrong(tmp_path)
        assert told in said
        assert "untimed, not ok" not in said
        shutil.rmtree(folder)


def test_a_librarys_layer_beyond_its_bound_is_told_and_no_failure(tmp_path: Path):
    def marked(m: Measurement) -> Measurement:
        if m.case.backend == "engine-cpu":
            return m
        doubt = msgspec.structs.replace(m.validity, warnings=("layer conv1 alone: far off (and 1 more)",))
        return msgspec.structs.replace(bad_layer(m), validity=doubt)

    changed(shutil.copytree(DATA / "two_models", tmp_path / "runs" / "one"), marked)
    assert wrong(tmp_path) == ""


def test_a_wrong_kernel_must_be_found_out_and_nothing_else_be_blamed(tmp_path: Path):
    folder = shutil.copytree(DATA / "two_models", tmp_path / "one")
    expect = Expect((1,), bad="incorrect")
    assert "engine-cpu, fp32, batch 4, 40 images is ok, not incorrect" in wrong(tmp_path, expect, 1)
    changed(folder, ours(disposition="incorrect"))
    assert wrong(tmp_path, expect, 1) == ""
    changed(folder, lambda m: msgspec.structs.replace(m, disposition="incorrect"))
    assert "ort-cpu, fp32, batch 4, 40 images is incorrect, not ok" in wrong(tmp_path, expect, 1)


def test_a_traceback_in_the_workers_log_and_a_broken_folder(tmp_path: Path):
    folder = shutil.copytree(DATA / "two_models", tmp_path / "one")
    (folder / "worker.log").write_text(TRACE)
    assert "one: a traceback on worker.log: KeyError: 1" in wrong(tmp_path)
    (folder / "worker.log").write_text("Fatal Python error: Segmentation fault\n")
    assert "a traceback on worker.log" in wrong(tmp_path)
    (folder / "run.json").write_text("{")
    assert "is broken" in wrong(tmp_path)


GPU = Machine(gpu="NVIDIA H200")


def on_gpu(folder: Path, **precisions: str) -> None:
    """A recorded run as if it were of a GPU, every case refused; precisions: of each backend's cases."""
    run = msgspec.json.decode((folder / "run.json").read_bytes(), type=Run)

    def moved(case: Case) -> Case:
        backend = case.backend.replace("cpu", "cuda")
        return msgspec.structs.replace(
            case, backend=backend, precision=precisions.get(case.backend[:3], "fp32")
        )

    changed(folder, lambda m: msgspec.structs.replace(m, case=moved(m.case), disposition="unsupported"))
    run = msgspec.structs.replace(run, cases=tuple(map(moved, run.cases)))
    (folder / "run.json").write_bytes(msgspec.json.encode(run))


def named(*words: str) -> Step:
    return Step("one", "some", (PYTHON, "main.py", *words, "--backend", "engine-cuda"))


def test_a_case_without_a_gpu_is_to_be_refused_and_one_that_runs_nothing_is_no_comparison(tmp_path: Path):
    on_gpu(shutil.copytree(DATA / "two_models", tmp_path / "one"))
    result = Result(0, "a table", "", tmp_path)
    assert checks.problems(named(), result, CPU) == ["one: no case was to be measured"]
    assert len([t for t in checks.problems(named(), result, GPU) if "is unsupported, not ok" in t]) == 8


def test_on_a_gpu_every_precision_is_to_be_had(tmp_path: Path):
    result = Result(0, "a table", "", tmp_path)
    on_gpu(shutil.copytree(DATA / "two_models", tmp_path / "one"), eng="fp16", ort="bf16")
    told = checks.problems(named(), result, GPU)
    assert len([line for line in told if "engine-cuda, fp16" in line and "not ok" in line]) == 4
    assert not [line for line in told if "ort-cuda" in line]  # which has no convolution in bfloat16


def test_a_backend_that_is_left_out_in_silence_is_told(tmp_path: Path):
    shutil.copytree(DATA / "two_models", tmp_path / "one")
    result = Result(0, "a table", "", tmp_path)
    unnamed = Step("one", "some", (PYTHON, "main.py"))
    assert checks.problems(unnamed, result, CPU) == []
    assert checks.problems(unnamed, result, GPU) == [
        "one: engine-cuda was left out",
        "one: ort-cuda was left out",
    ]
    assert checks.problems(named(), result, GPU) == []
    ladder(tmp_path / "two")
    assert "two: it ran on cpu, not on cuda" in checks.problems(unnamed, result, GPU)


# ---------------------------------------------------------------------------------------------------- ladders

NAIVE, MINE, REFERENCE = (
    RungCase(rung="naive", number=1),
    RungCase(rung="mine", number=90, user=True),
    RungCase(rung="reference", scope="reference"),
)


def ladder(folder: Path, reason: str = "", **dispositions: str) -> None:
    job = LadderJob(op="conv", params={}, device="cpu")
    made = LADDER.create(folder, Ladder(job=job, cases=(NAIVE, MINE, REFERENCE)))
    for case in made.cases:
        found = dispositions.get(case.rung, "ok")
        if found != "missing":
            fault = Finding(fault="bias", reason="the bias is missing") if found == "incorrect" else None
            made.append(RungMeasurement(case=case, disposition=found, finding=fault, reason=reason))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("dispositions", "expect", "told"),
    [
        ({}, Expect(), ""),
        ({"naive": "unsupported"}, Expect(), ""),
        ({"naive": "incorrect"}, Expect(), "rung 01 naive is incorrect"),
        ({"mine": "unsupported"}, Expect(), "rung 90 mine is unsupported"),
        ({"reference": "unsupported"}, Expect(), "the reference is unsupported"),
        ({"naive": "missing"}, Expect(), "1 of 3 cases have no result (naive)"),
        ({"naive": "unsupported", "mine": "unsupported"}, Expect(), "no rung is right"),
        ({"mine": "incorrect"}, Expect(bad="incorrect", fault="bias"), ""),
        ({"mine": "incorrect"}, Expect(bad="incorrect", fault="pad"), "is told “bias”, not “pad”"),
        ({}, Expect(bad="incorrect", fault="bias"), "rung 90 mine is ok, not incorrect"),
        ({"mine": "crashed"}, Expect(bad="crashed"), ""),
        ({"mine": "crashed", "naive": "crashed"}, Expect(bad="crashed"), "rung 01 naive is crashed"),
    ],
)
def test_a_ladder(tmp_path: Path, dispositions: dict[str, str], expect: Expect, told: str):
    ladder(tmp_path / "one", **dispositions)
    found = wrong(tmp_path, expect)
    assert told in found
    assert bool(told) == bool(found)


def test_a_reference_that_has_no_kernel_for_it_on_the_device_is_no_failure(tmp_path: Path):
    ladder(tmp_path / "one", "ONNX Runtime placed every node of it on the CPU", reference="unsupported")
    assert wrong(tmp_path, Expect()) == ""


def test_a_profile_without_events_or_with_a_case_that_failed(tmp_path: Path):
    shutil.copytree(DATA / "lenet_on_h200", tmp_path / "one")
    step = Step("one", "some", (PYTHON, "main.py", "profile"))
    result = Result(0, "a table", "", tmp_path)
    assert checks.problems(step, result, GPU) == []
    results = tmp_path / "one" / "results.jsonl"
    text = results.read_text()
    results.write_text(text.replace('"disposition":"ok"', '"disposition":"failed"', 1))
    assert "is failed, not ok" in "; ".join(checks.problems(step, result, GPU))
    results.write_text(text.splitlines(keepends=True)[0])
    assert "1 of 2 cases have a result" in "; ".join(checks.problems(step, result, GPU))
    results.write_text(text)
    events = PROFILE.open(tmp_path / "one").measurements()[0].file
    (tmp_path / "one" / events).write_bytes(gzip.compress(b""))
    assert "has no kernels" in "; ".join(checks.problems(step, result, GPU))
