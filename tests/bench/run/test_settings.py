"""Settings that need not be typed: which of several holds, how what is wrong in one is told, and that no
project's file has anything run unasked."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import main
from bench.commands.given import Given, command
from bench.run import defaults, options, settings
from kernels.errors import InputError


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, a project of its own, with a user's file and cache beside it."""
    folder = tmp_path / "project" / "below"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("KERNELSCOPE_CONFIG", str(tmp_path / "user.toml"))
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path / "cache"))
    return folder


def asked(table: tuple[options.Option, ...], *words: str) -> tuple[Given, dict[str, object]]:
    """What a command of these options is called with."""
    told: list[tuple[Given, dict[str, object]]] = []

    def keep(given: Given, **others: object) -> int:
        told.append((given, others))
        return 0

    app = typer.Typer()
    app.command()(command(table)(keep))
    result = CliRunner().invoke(app, [*words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    print(result.stderr, end="", file=sys.stderr)
    return told[0]


def test_the_command_line_goes_before_a_variable_that_before_the_project_that_before_the_user(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def budget(*words: str) -> object:
        given, _ = asked(options.LADDER, *words)
        return (given.lasting | given.fields).get("budget_s")

    assert budget() is None
    (project.parents[1] / "user.toml").write_text("budget = 1\nthreads = 3\n")
    assert budget() == 1
    (project.parent / "kernelscope.toml").write_text("budget = 2\n")
    assert budget() == 2
    (project / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert budget() == 2, "a pyproject.toml that says nothing of us is passed over"
    (project / "pyproject.toml").write_bytes(b"[tool.other]\nname = \xff = no TOML\n")
    assert budget() == 2, "nor need it be one that can be read"
    (project / "pyproject.toml").write_text("[tool.kernelscope]\nbudget = 3\n")
    assert budget() == 3
    monkeypatch.setenv("KERNELSCOPE_BUDGET", "4")
    assert budget() == 4
    assert budget("--budget", "5") == 5
    assert asked(options.LADDER)[0].lasting["threads"] == 3, "what the project leaves open is the user's"
    assert (defaults.job().budget_s, defaults.job().threads) == (4, 3)
    monkeypatch.setenv("KERNELSCOPE_BUDGET", "")
    assert budget() == 3


def test_what_is_no_part_of_a_job_lasts_as_well_and_what_needs_another_comes_with_it(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = project / "kernelscope.toml"
    file.write_text('charts = ["png", "svg"]\ngpu = "H200"\nbackend = ["engine-cpu", "ort-cpu"]\n')
    given, others = asked(options.PROFILE)
    said = capsys.readouterr().err
    assert "settings: --backend engine-cpu,ort-cpu --charts png,svg (" in said, (
        "it is not on the command line"
    )
    assert others == {"charts": ("png", "svg")}
    assert given.lasting == {"backends": ("engine-cpu", "ort-cpu")}
    assert given.names == frozenset()
    assert asked(options.PROFILE, "--cluster", "local")[1]["gpu"] == "H200"
    assert "charts" not in asked(options.SELFCHECK)[1]


def test_a_command_that_makes_no_job_of_its_options_tells_no_settings_of_one(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "kernelscope.toml").write_text("threads = 2\n")
    for table, *words in ((options.JUDGE, "--serve"), (options.LADDER, "--resume", "run")):
        assert asked(table)[0].lasting == {"threads": 2}
        assert "--threads 2" in capsys.readouterr().err
        assert asked(table, *words)[0].lasting == {}
        assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("\nbugdet = 1\n", "line 2: 'bugdet' is not known (did you mean 'budget'?)"),
        ("[compare]\nbudget = 1\n", "line 1: 'compare' is not known"),
        ('budget = "soon"\n', "line 1: budget 'soon' is not a number"),
        (
            "budget = true\n",
            "line 1: budget takes a text, a number, or a list of such, and not true or false",
        ),
        ("budget = [1, 2]\n", "line 1: budget takes one value, and has 2"),
        ("budget = {a = 1}\n", "line 1: budget takes a text, a number, or a list of such, and not a table"),
        ("threads = 0\n", "line 1: threads 0 is out of range"),
        ("threads = 1.5\n", "line 1: threads '1.5' is not a whole number"),
        ('l2 = "hot"\n', "line 1: l2 'hot' is not known"),
        ('l2 = ""\n', "line 1: l2 is empty"),
        ("backend = []\n", "line 1: backend names nothing"),
        ('kernels = ["gone"]\n', "line 1: kernels: kernel folder"),
        ("budget =\n", "is no TOML: Invalid value (at line 1"),
    ],
)
@pytest.mark.parametrize("name", ["kernelscope.toml", "pyproject.toml"])
def test_what_is_wrong_in_a_file_is_one_sentence_with_file_and_line(
    name: str, text: str, told: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "pyproject.toml":
        text = f"[tool.kernelscope]\n{text}".replace("[compare]", "[tool.kernelscope.compare]")
        told = told.replace("line 2", "line 3").replace("line 1", "line 2")
    (project / name).write_text(text)
    for words in (["compare", "lenet5-digits"], ["config"], []):
        assert main.main(words) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert str(project / name) in said
        assert told in said


def test_kernels_of_a_projects_file_are_run_only_once_it_is_trusted_as_it_is(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may have come from anybody. The user's own file, and a variable, are the user's word."""
    (project.parent / "mine").mkdir()
    file = project.parent / "kernelscope.toml"
    file.write_text('kernels = "mine"\n')
    with pytest.raises(InputError, match="config --trust"):
        settings.values(options.COMPARE)
    assert main.main(["compare", "lenet5-digits"]) == 2
    assert main.main(["config", "--trust"]) == 0
    assert settings.values(options.COMPARE) == {"kernels": (str(project.parent / "mine"),)}
    file.write_text('kernels = ["mine", "."]\n')
    with pytest.raises(InputError, match="config --trust"):
        settings.values(options.COMPARE)
    file.write_text('editor = "evil"\n')
    with pytest.raises(InputError, match="config --trust"):
        settings.values([settings.LASTING["editor"]])
    file.unlink()
    (project.parents[1] / "user.toml").write_text('kernels = "project/mine"\n')
    assert settings.values(options.COMPARE) == {"kernels": (str(project.parents[0] / "mine"),)}
    assert main.main(["config", "--trust"]) == 2
    assert "kernelscope.toml" in capsys.readouterr().err


def test_config_shows_each_value_and_where_it_is_from(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "pyproject.toml").write_text('[project]\nname = "x"\n\n[tool.kernelscope]\nthreads = 2\n')
    monkeypatch.setenv("KERNELSCOPE_BACKEND", "ort-cpu")
    assert main.main(["config"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "backend ort-cpu the variable KERNELSCOPE_BACKEND" in said
    assert "pyproject.toml, line 5" in said
    assert "budget 15 (compare, selfcheck), 3 (ladder), 2 (profile) default" in said
    for name in settings.LASTING:
        assert name in said


def test_a_setting_is_stored_where_it_stands_and_all_else_stays(project: Path) -> None:
    file = project.parents[1] / "user.toml"
    settings.store("budget", ["2.5"])
    assert file.read_text() == "budget = 2.5\n"
    file.write_text('# mine\nbudget = 1  # s\neditor = "vi"\nkernels = [\n  "a",\n]\n')
    settings.store("backend", ["engine-cpu", "ort-cpu"])
    settings.store("budget", ["3"])
    settings.store("editor", [])
    told = '# mine\nbudget = 3\nkernels = [\n  "a",\n]\nbackend = ["engine-cpu", "ort-cpu"]\n'
    assert file.read_text() == told
    for name, texts in (
        ("budget", ["much"]),
        ("budget", ["-1"]),
        ("kernels", ["b"]),
    ):  # which has three lines
        with pytest.raises(InputError):
            settings.store(name, texts)
        assert file.read_text() == told
    file.write_text("budget = \n")
    with pytest.raises(InputError, match="is no TOML"):
        settings.store("budget", ["3"])
    assert file.read_text() == "budget = \n"


def test_runs_are_kept_where_the_setting_says(project: Path, tmp_path: Path) -> None:
    assert settings.runs_folder() == Path("runs")
    settings.store("runs", [str(tmp_path / "all")])
    assert settings.runs_folder() == tmp_path / "all"
    odd = tmp_path / "Läufe \U0001f600"
    settings.store("runs", [str(odd)])
    assert settings.runs_folder() == odd


@pytest.mark.skipif(sys.platform == "win32", reason="links are for administrators there")
def test_a_file_that_is_a_link_stays_one(project: Path, tmp_path: Path) -> None:
    file, own = project.parents[1] / "user.toml", tmp_path / "dotfiles.toml"
    own.write_text("# mine\n")
    file.symlink_to(own)
    settings.store("budget", ["3"])
    assert file.is_symlink()
    assert own.read_text() == "# mine\nbudget = 3\n"
