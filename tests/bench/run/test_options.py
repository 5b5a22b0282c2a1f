"""The table of options: what the command line, the form and the checks make of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import typer
from typer.testing import CliRunner

import main
from bench.commands.given import Given, Grouped, command
from bench.results.kinds import kinds
from bench.results.ladder_records import LadderJob
from bench.results.profile_records import ProfileJob
from bench.results.records import Job
from bench.run import options
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.run.kinds.ladder import KIND as LADDER
from bench.run.kinds.profile import KIND as PROFILE
from bench.words import option as values
from kernels.errors import InputError

JOBS = (
    Job(
        models=("ece408-high", "alexnet"),
        backends=("ort-cpu",),
        precisions=("fp32", "tf32"),
        batches=(1, 100, 10_000),
        images=(100,),
        dataset="mnist",
        preprocess="0.5,0.25",
        threads=3,
        l2="cold",
        budget_s=2.5,
        timeout_s=100_000.0,
        layers=False,
        tune="none",
        tune_reference=True,
        own_batches={"alexnet": (1, 4)},
        own_images={"alexnet": (32,)},
        instances=4,
        labels="alphabetical",
        scores="prob",
        inputs={"scale": "1", "mask": "/some/mask.npy"},
        end_to_end=True,
        top_k=5,
        dims={"net:height": 1_048_576},
        rungs={"conv1": "cpu/im2col"},
        kernel_dirs=("/my/kernels, and more",),
    ),
    Job(models=("lenet5-digits",), backends=(), tune="all", layers_of=("engine-cpu",), instances=3),
    LadderJob(
        op="gemm",
        params={},
        device="cuda",
        model="lenet5-digits",
        node="fc1",
        batch=16,
        precision="tf32",
        rungs=("1", "tiled"),
        whole_model=True,
        tune=True,
        instances=5,
    ),
    ProfileJob(
        model="alexnet",
        backends=("engine-cpu", "ort-cpu"),
        batches=(1, 16),
        precision="mixed",
        max_error=2.5e-4,
        runs=7,
        counters=True,
        apart=True,
        copies="pinned",
        rungs={"conv1": "tiled"},
        threads=2,
    ),
)
KINDS: dict[type, Any] = {Job: COMPARISON, LadderJob: LADDER, ProfileJob: PROFILE}
# Fields of jobs that nobody asks for on a command line.
UNASKED = {"cuda_graph", "seed", "params", "title", "quick", "warm_up", "limits_kept", "simulated"}


def typed(table: tuple[values.Option, ...], words: list[str]) -> dict[str, Any]:
    """The fields of a job that a command line with these options makes."""
    found: dict[str, Any] = {}

    def keep(given: Given, **others: object) -> int:
        found.update(given.fields)
        return 0

    app = typer.Typer()
    app.command()(command(table)(keep))
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return found


@pytest.mark.parametrize("job", JOBS, ids=lambda job: type(job).__name__)
def test_a_job_as_a_command_line_is_read_as_the_same_job(job: Any) -> None:
    kind = KINDS[type(job)]
    found = values.usual(kind.options) | typed(kind.options, kind.arguments(job)[1:])
    others = {name: getattr(job, name) for name in UNASKED if hasattr(job, name)}
    assert type(job)(**others | found) == job


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.name)
def test_every_field_of_a_job_is_an_option_and_every_option_s_field_is_one(kind: Any) -> None:
    fields = {field.name for field in msgspec.structs.fields(kind.job)}
    assert {name for option in kind.options for name in option.fields} == fields - UNASKED


@pytest.mark.parametrize("name", options.COMMANDS)
def test_help_has_every_option_under_a_heading_with_what_applies_without_it(name: str) -> None:
    shown = (
        CliRunner(env={"COLUMNS": "300", "TERMINAL_WIDTH": "300"}).invoke(main.app, [name, "--help"]).output
    )
    headings = [
        line for line in shown.splitlines() if line and not line.startswith(" ") and line.endswith(":")
    ]
    for option in options.of(name):
        assert f"{option.group}:" in headings
        assert (option.metavar if option.argument else f"--{option.name}") in shown
        if option.needs:
            assert any(
                f"--{option.name}" in line and f"With --{option.needs}: " in line
                for line in shown.splitlines()
            )
    assert headings[-1] == "Options:"
    assert max(len(listed) for listed in options.TABLE.values()) < 25
    budgets = {"compare": 15, "ladder": 3, "profile": 2, "selfcheck": 15, "judge": 0.1}
    assert f"[default: {budgets[name]}]" in shown


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("batch", "1,x"),
        ("batch", "8..2"),
        ("batch", "0"),
        ("batch", "=1"),
        ("images", "1000001"),
        ("threads", "0"),
        ("threads", "two"),
        ("budget", "nan"),
        ("budget", "soon"),
        ("instances", "101"),
        ("input", "scale"),
        ("dim", "height"),
        ("preprocess", "half"),
        ("labels", "/no/such.txt"),
        ("l2", "hot"),
        ("max-error", "little"),
        ("max-error", "nan"),
    ],
)
def test_what_is_wrong_is_said_in_the_same_words_in_a_terminal_and_in_the_form(
    name: str, text: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as told:
        values.by_name(options.COMPARE, name).value.read_line(text)
    assert main.main(["compare", f"--{name}", text]) == 2
    assert str(told.value) in capsys.readouterr().err


@pytest.mark.parametrize(
    "line",
    [
        "compare --retry",
        "compare --gpu H200",
        "compare --top-k 3",
        "ladder conv --arch sm_80",
        "ladder conv --stride 2",
        "ladder --trust-kernels",
        "profile --gpu H200",
    ],
)
def test_an_option_that_belongs_to_another_is_refused_without_it(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(line.split()) == 2
    assert "belongs to --" in capsys.readouterr().err


def test_the_help_of_a_command_without_a_table_is_as_it_was() -> None:
    app = typer.Typer(rich_markup_mode=None)

    @app.command(cls=Grouped)
    def plain(size: int = typer.Option(3, help="How large.")) -> None:
        """Do."""

    shown = CliRunner().invoke(app, ["--help"]).output
    assert "Options:" in shown
    assert "[default: 3]" in shown
