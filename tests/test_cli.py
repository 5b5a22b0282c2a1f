"""The command line as users meet it: exit codes, one sentence for a mistake, nothing else on standard
output."""

from __future__ import annotations

import csv
import inspect
import io
import json
import subprocess
import sys
import typing
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
import typer
from typer.testing import CliRunner

import main
from bench.results.records import Case, Job, Measurement
from bench.run import beforehand, client
from bench.run.client import Outcome
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.run.kinds.comparison import RunFolder
from bench.words.version import version
from tests.bench import synthetic

ROOT = Path(main.__file__).parent


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker is started ahead: most commands here end before they have one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(client.StandbyWorker, "start", lambda _: None)


def fake_run(
    monkeypatch: pytest.MonkeyPatch, outcomes: dict[int, str] | None = None, cancel_after: int = 10**9
) -> None:
    """In place of the worker: made-up measurements, written as the client writes them. `outcomes` by
    batch."""
    monkeypatch.setattr(beforehand, "look", beforehand.Looked)  # whoever else uses the machine

    def run(job: Job, cases: Sequence[Case], folder: RunFolder, on_event: object, **_: object) -> Outcome:
        found: list[Measurement] = []
        for case in cases[:cancel_after]:
            disposition = (outcomes or {}).get(case.batch, "ok")
            reason = "" if disposition == "ok" else "as planned"
            found.append(synthetic.measurement(case, disposition, reason))  # type: ignore[arg-type]
            folder.append(found[-1])
            on_event(found[-1])  # type: ignore[operator]
        folder.close()
        return Outcome(tuple(found), cancelled=len(found) < len(cases))

    monkeypatch.setattr(client, "run", run)


CPU = ("--backend", "engine-cpu", "--backend", "ort-cpu")


@pytest.mark.usefixtures("blank_pictures")
def test_compare_prints_a_table_and_leaves_run_and_charts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_run(monkeypatch)
    code = main.main(
        ["compare", "lenet5-digits", *CPU, "--batch", "1,4", "--out", "here", "--charts", "png,svg"]
    )
    out, err = capsys.readouterr()
    assert code == 0
    assert "lenet5-digits, 360 images" in out
    assert "here" in err
    assert sorted(p.suffix for p in Path("here/charts").iterdir()) == [".png"] * 6 + [".svg"] * 6
    assert len(COMPARISON.open(Path("here")).measurements()) == 4


def test_machine_formats_have_standard_output_to_themselves(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_run(monkeypatch)
    start = ["compare", "lenet5-digits", *CPU, "--batch", "1..4", "--charts", "none", "--format"]
    assert main.main([*start, "csv"]) == 0
    out, err = capsys.readouterr()
    assert [row["batch"] for row in csv.DictReader(io.StringIO(out))] == ["1", "1", "2", "2", "4", "4"]
    assert "[6/6]" in err
    assert main.main([*start, "json", "--layers"]) == 0
    decoded = json.loads(capsys.readouterr().out)
    assert len(decoded["cases"]) == 6
    assert main.main([*start, "json"]) == 0
    without = json.loads(capsys.readouterr().out)
    assert list(without) == list(decoded)
    assert (without["layers"], without["kernelscope"]) == (None, version())
    assert decoded["layers"][0]["op_type"] == "Conv+Tanh"
    assert main.main([*start, "md"]) == 0
    boards, cases = capsys.readouterr().out.split("\n\n")
    assert all(line.startswith("|") for line in (*boards.splitlines(), *cases.splitlines()))
    assert len(list(Path("runs").iterdir())) == 4  # four runs, four folders, though within a second


@pytest.mark.parametrize(("disposition", "code"), [("incorrect", 1), ("crashed", 1), ("unsupported", 0)])
def test_a_failed_case_is_exit_code_1(
    disposition: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_run(monkeypatch, {4: disposition})
    assert main.main(["compare", "lenet5-digits", *CPU, "--batch", "1,4", "--charts", "none"]) == code
    assert "as planned" in capsys.readouterr().out


def test_nothing_measured_is_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_run(monkeypatch, {4: "unsupported"})
    assert main.main(["compare", "lenet5-digits", *CPU, "--batch", "4", "--charts", "none"]) == 1


def test_a_model_refused_by_every_engine_that_was_named_is_exit_code_1(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The reference's answer is not what was asked for. Refused at some batch sizes alone, or by an engine
    that nobody named, is no failure."""

    def refused(measurement: Measurement) -> Measurement:
        ours = measurement.case.backend == "engine-cpu" and measurement.case.batch in refusing
        return synthetic.measurement(measurement.case, "unsupported", "no Loop") if ours else measurement

    def run(job: Job, cases: Sequence[Case], folder: RunFolder, on_event: object, **_: object) -> Outcome:
        found = [refused(synthetic.measurement(case)) for case in cases]
        for measurement in found:
            folder.append(measurement)
        folder.close()
        return Outcome(tuple(found), cancelled=False)

    monkeypatch.setattr(beforehand, "look", beforehand.Looked)  # whoever else uses the machine
    monkeypatch.setattr(client, "run", run)
    start = ["compare", "lenet5-digits", "--batch", "1,4", "--charts", "none"]
    refusing = {1, 4}
    assert main.main([*start, *CPU]) == 1
    assert main.main([*start, "--backend", "engine-cpu"]) == 1
    assert main.main([*start, "--backend", "ort-cpu"]) == 0
    assert main.main(start) == 0
    refusing = {4}
    assert main.main([*start, *CPU]) == 0


def test_a_cancelled_run_shows_what_there_is_and_resumes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_run(monkeypatch, cancel_after=3)
    start = ["compare", "lenet5-digits", *CPU, "--batch", "1,4,16", "--charts", "none"]
    assert main.main([*start, "--out", "half"]) == 130
    out, err = capsys.readouterr()
    assert "ort-cpu" in out
    assert "compare --resume half" in err
    fake_run(monkeypatch)
    assert main.main(["compare", "--resume", "half", "--charts", "none", "--format", "csv"]) == 0
    assert len(list(csv.DictReader(io.StringIO(capsys.readouterr().out)))) == 6
    assert main.main(["compare", "lenet5-digits", "--resume", "half", "--batch", "1,2"]) == 2
    assert "was started with batches = 1, 4, 16" in capsys.readouterr().err


def test_resume_keeps_the_settings_it_was_started_with(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_run(monkeypatch)
    start = [
        "compare",
        "lenet5-digits",
        *CPU,
        "--batch",
        "1",
        "--charts",
        "none",
        "--budget",
        "0.5",
        "--threads",
        "1",
    ]
    assert main.main([*start, "--out", "a"]) == 0
    job = COMPARISON.open(Path("a")).header.job
    assert (job.budget_s, job.threads, job.batches) == (0.5, 1, (1,))
    assert main.main(["compare", "--resume", "a", "--charts", "none"]) == 0
    assert COMPARISON.open(Path("a")).header.job == job


def test_a_model_may_have_sizes_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_run(monkeypatch)
    models = ["lenet5-digits", "alexnet-digits"]
    line = ["compare", *models, *CPU, "--batch", "1,2", "--batch", "alexnet-digits=4", "--charts", "none"]
    line += ["--images", "alexnet-digits=32", "--no-layer-pass"]
    assert main.main([*line, "--out", "a"]) == 0
    run = COMPARISON.open(Path("a")).header
    assert {(c.model, c.batch, c.images) for c in run.cases} == {
        ("lenet5-digits", 1, 360),
        ("lenet5-digits", 2, 360),
        ("alexnet-digits", 4, 32),
    }
    assert not run.job.layers
    assert main.main([*line, "--resume", "a"]) == 0
    assert main.main(["compare", "--resume", "a", "--batch", "1,2", "--charts", "none"]) == 2
    assert main.main(["compare", "--resume", "a", "--layer-pass", "--charts", "none"]) == 2


@pytest.mark.usefixtures("blank_pictures")
def test_the_default_comparison_is_one_run_of_two_models(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_run(monkeypatch)
    monkeypatch.setattr("gui.base.display.problem", lambda: "no window can open: no display")
    assert main.main([]) == 0
    out, err = capsys.readouterr()
    assert err.startswith("no window can open: no display")
    assert "lenet5-digits, 360 images" in out
    assert "alexnet-digits, 16 images" in out
    (path,) = Path("runs").iterdir()
    batches: dict[str, set[int]] = {}
    for case in COMPARISON.open(path).header.cases:
        batches.setdefault(case.model, set()).add(case.batch)
    assert batches["lenet5-digits"] == {1, 16, 256}
    assert batches["alexnet-digits"] == {1}


MISTAKES = {
    "compar": "Did you mean 'compare'",
    "compare --bach 1": "--batch",
    "compare lenet5-digit": "did you mean 'lenet5-digits'",
    "compare --batch 0": "--batch 0 is out of range",
    "compare --batch -1": "batch -1 is out of range",
    "compare --end-to-end --top-k 0": "1 or more",
    "compare --top-k 3": "belongs to --end-to-end",
    "compare --batch 1000000000": "out of range",
    "compare --batch 1,x": "'x' is not a whole number",
    "compare --batch 8..2": "is no range",
    "compare --batch lenet5-digit=1": "did you mean 'lenet5-digits'",
    "compare --batch =1": "names no model",
    "compare --images lenet5-digits=0": "--images 0 is out of range",
    "compare --layer-pass-of engine-cpu --no-layer-pass": "leave one of them away",
    "compare --backend ort-cpu --layer-pass-of engine-cpu": "layers are wanted of engine-cpu, which is not",
    "compare --layers --no-layer-pass": "--layers is of the layer pass",
    "compare --batch ,": "names no number",
    "compare --backend engine-cp": "did you mean 'engine-cpu'",
    "compare --backend ,": "--backend names nothing",
    "ladder conv --compile --arch ,": "--arch names nothing",
    "compare --precision fp23": "did you mean 'fp32'",
    "compare --format jsn": "did you mean 'json'",
    "compare --charts gif": "--charts 'gif' is not known",
    "compare --l2 hot": "known are warm, cold",
    "compare --rung conv1": "is not NODE=RUNG",
    "compare --rung convX=tiled": "lenet5-digits has no node 'convX' (did you mean 'conv1'?)",
    "compare lenet5-digits ece408-high --rung convX=tiled": "lenet5-digits and ece408-high have no node",
    "compare --rung lenet5-digit:conv1=im2col": "has no node 'lenet5-digit:conv1'",
    "compare --rung alexnet-digits:conv1=im2col": "alexnet-digits is not compared",
    "compare --rung conv1=nonsense --backend engine-cpu": "no rung 'nonsense' of conv on cpu",
    "compare --rung conv1=gpu/im2col": "device 'gpu' is not known",
    "compare --rung flatten=ufunc": "which no kernel runs",
    "compare --kernels nowhere": "does not exist",
    "compare nowhere.onnx": "does not exist",
    "compare --images 0": "--images 0 is out of range; 1 to",
    "compare --threads 0": "threads 0 is out of range",
    "compare --budget nan": "is out of range; 0.000001 to 10,000,000 works",
    "compare --budget x": "--budget",
    "compare --dataset mnis": "did you mean 'mnist'",
    "compare --preprocess foo": "raw",
    "compare --preprocess nowhere.toml": "cannot be read",
    "compare --labels nowhere": "give a text file, a class a line",
    "compare --input scale": "is not NAME=NUMBER or NAME=FILE.npy",
    "compare --out file/below": "cannot",
    "compare --resume nowhere": "holds no run",
    "export nowhere": "holds no run",
    "ladder convv": "did you mean 'conv'?",
    "ladder conv --node nowhere": "there are conv1, conv2",
    "ladder conv --rung nonsense --device cpu": "no rung 'nonsense' of conv on cpu",
    "ladder conv --kernels nowhere": "does not exist",
    "ladder conv --shape 1,2,3": "--shape is N,C,H,W,M,K",
    "ladder conv --shape 1,3,8,8,4,3 --threads -3": "threads -3 is out of range",
    "ladder conv --shape 1,3,8,8,4,3 --threads 0": "threads 0 is out of range",
    "ladder conv --shape 1,3,8,8,4,3 --budget nan": "is out of range; 0.000001 to 10,000,000 works",
    "ladder conv --shape 1,3,8,8,4,3 --timeout -1": "is out of range; 0.000001 to 10,000,000 works",
    "ladder --resume nowhere": "holds no ladder",
    "profile lenet5-digit": "did you mean 'lenet5-digits'",
    "profile --rung convX=tiled": "did you mean 'conv1'?",
    "profile --rung conv1=nonsense --backend engine-cpu": "no rung 'nonsense' of conv on cpu",
    "profile --threads 0": "threads 0 is out of range",
    "profile --dataset folder:nowhere": "does not exist",
    "profile --load nowhere": "holds no profile",
    "selfcheck --seed -1": "--seed",
    "selfcheck --times 0": "--times 0 is out of range; 1 or more works",
    "runs show nowhere": "holds no run",
    "runs list nowhere": "there is no such folder",
    "models show lenet5-digit": "did you mean 'lenet5-digits'",
    "models show lenet5-digits --plan --batch 0": "--batch 0 is out of range; 1 or more works",
    "models show lenet5-digits --plan --precision tf32": "tf32 is not offered by the engine on cpu",
    "models build nothing": "not known",
    "models frob": "No such command",
    "--nope": "No such option",
}


def test_on_a_fresh_clone_there_are_no_runs_yet_and_that_is_no_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for line in ("runs list", "runs list ."):
        assert main.main(line.split()) == 0
        out, err = capsys.readouterr()
        assert (out[:11], err) == ("no runs yet", "")


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_one_sentence_and_exit_code_2(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("file").write_text("")
    assert main.main(line.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    said = [text for text in err.splitlines() if not text.startswith("building ")]  # a model, where it is new
    assert len(said) == 1
    assert MISTAKES[line] in err
    assert "Traceback" not in err
    assert sorted(p.name for p in Path().iterdir()) == ["file"]


def test_every_number_is_refused_in_words_that_name_its_option_and_what_works(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def numbers(app: typer.Typer, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
        for group in app.registered_groups:
            assert group.typer_instance is not None
            yield from numbers(group.typer_instance, (*words, group.name or ""))
        for command in app.registered_commands:
            assert command.callback is not None
            name = command.name or command.callback.__name__.replace("_", "-")
            hints = typing.get_type_hints(command.callback)
            for parameter in inspect.signature(command.callback).parameters.values():
                kind = hints[parameter.name]
                if {int, float} & {kind, *typing.get_args(kind)}:
                    declared = getattr(parameter.default, "param_decls", ()) or (f"--{parameter.name}",)
                    yield (*words, name, declared[0])

    found = list(numbers(main.app))
    assert ("report", "course", "--images") in found
    assert len(found) >= 10
    for *words, option in found:
        # No number goes below these: not even of seconds.
        for text, said in (("-1", "-1 is out of range; "), ("x", "'x' is not a "), ("nan", "")):
            assert main.main([*words, option, text]) == 2, (words, option)
            out, err = capsys.readouterr()
            assert (out, err.count("\n")) == ("", 1)
            assert err.startswith(f"{option} {said}"), err
            assert err.rstrip().endswith(" works") or ": write it as in " in err, err


@pytest.mark.parametrize("command", ["compare", "ladder conv --device cpu", "profile"])
def test_a_file_that_is_no_rung_is_named_before_anything_runs(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("mine").mkdir()
    Path("mine/90_mine.py").write_text('# op = "conv"\n# rung = 90\n# name = "mine"\n# wat = 3\n')
    assert main.main([*command.split(), "--kernels", "mine"]) == 2
    assert capsys.readouterr() == (
        "",
        f"{Path('mine/90_mine.py').resolve()}: unknown key 'wat' in the header\n",
    )
    assert [path.name for path in Path().iterdir()] == ["mine"]


def test_a_group_without_a_command_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["runs"]) == 2
    assert "\n" in capsys.readouterr().err.strip()


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x08\x07\x12"])
def test_a_broken_model_is_one_sentence(content: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    Path("broken.onnx").write_bytes(content)
    assert main.main(["compare", "broken.onnx", "--batch", "1"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "broken.onnx" in err
    assert not Path("runs").exists()


def saved(path: Path) -> Path:
    run, measured = synthetic.run(batches=(1, 4), failures={("engine-cuda", 4): ("crashed", "SIGSEGV")})
    with COMPARISON.create(path, run) as folder:
        for measurement in measured:
            folder.append(measurement)
    return path


@pytest.mark.usefixtures("blank_pictures")
def test_export_draws_a_saved_run_again(capsys: pytest.CaptureFixture[str]) -> None:
    run = saved(Path("saved"))
    assert main.main(["export", str(run), "--charts", "svg", "--csv", "--out", "pictures"]) == 0
    written = capsys.readouterr().out.split()
    assert all(Path(name).is_file() for name in written)
    names = {Path(name).name for name in written}
    assert {"lenet5-digits-accuracy.svg", "lenet5-digits-breakdown.svg", "results.csv", "layers.csv"} <= names
    with Path("pictures/results.csv").open() as file:
        assert [row["disposition"] for row in csv.DictReader(file)].count("crashed") == 1
    assert main.main(["export", str(run), "--charts", "none"]) == 2


def test_runs_are_listed_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    saved(Path("runs/one"))
    assert main.main(["runs", "list"]) == 0
    assert "runs/one" in capsys.readouterr().out
    assert main.main(["runs", "show", "runs/one"]) == 0
    out = capsys.readouterr().out
    assert "crashed: SIGSEGV" in out
    assert "driver 580.65" in out
    assert main.main(["runs", "show", "runs/one", "--format", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["cases"]) == 8


def test_models_are_listed_shown_and_built(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["models", "list"]) == 0
    assert "alexnet-digits" in capsys.readouterr().out
    assert main.main(["models", "show", "lenet5-digits", "--plan", "--batch", "4"]) == 0
    out = capsys.readouterr().out
    assert "61,706" in out
    assert "conv/" in out
    assert main.main(["models", "build", "lenet5-digits"]) == 0
    assert Path(capsys.readouterr().out.strip()).suffix == ".onnx"


def test_help_is_there_for_every_command() -> None:
    runner = CliRunner()
    for command in ((), ("compare",), ("export",), ("doctor",), ("models",), ("runs",), ("models", "show")):
        result = runner.invoke(main.app, [*command, "--help"])
        assert result.exit_code == 0
        assert "Usage" in result.output


def test_no_command_is_described_by_half_a_sentence_where_80_columns_are_all_there_is() -> None:
    runner = CliRunner(env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"})
    for group in ((), ("models",), ("runs",), ("runs", "baseline"), ("course",), ("remote",), ("report",)):
        shown = runner.invoke(main.app, [*group, "--help"]).output
        assert "Commands:" in shown
        assert [line for line in shown.splitlines()[1:] if line.endswith("...")] == [], shown


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys, main\n"
        "assert main.main(['--help']) == 0\n"
        "heavy = {'numpy', 'onnx', 'onnxruntime', 'matplotlib', 'PySide6', 'cupy'} & set(sys.modules)\n"
        "sys.exit(', '.join(heavy) or 0)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


def test_a_real_comparison_through_the_worker() -> None:
    """The whole way, once: process, worker, oracle, timing, table, charts."""
    line = ["compare", "lenet5-digits", *CPU, "--batch", "2", "--images", "5", "--budget", "0.1"]
    command = [
        sys.executable,
        str(ROOT / "main.py"),
        *line,
        "--charts",
        "png",
        "--out",
        "real",
        "--format",
        "json",
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=110)
    assert result.returncode == 0, result.stderr
    items = json.loads(result.stdout)["cases"]
    assert [(i["backend"], i["disposition"]) for i in items] == [("engine-cpu", "ok"), ("ort-cpu", "ok")]
    assert all(i["median_s"] > 0 for i in items)
    assert len(list(Path("real/charts").iterdir())) == 6
    run = COMPARISON.open(Path("real")).header
    assert run.command.endswith("--format json")
    assert msgspec.json.decode(Path("real/run.json").read_bytes())["environment"]["cpu"]
