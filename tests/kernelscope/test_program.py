"""The thin package: where the program is, and that it starts it as Python itself would."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.words import called, version
from kernelscope import program

ROOT = Path(__file__).resolve().parents[2]


def test_in_a_checkout_the_program_is_the_folder_around_the_package() -> None:
    assert program.root() == ROOT
    assert program.command("doctor") == [sys.executable, str(ROOT / "main.py"), "doctor"]
    assert program.version() == version.described()
    assert called.command_line(["runs", "show", "a b"]) == "python main.py runs show 'a b'"


@pytest.mark.slow
def test_the_module_runs_the_command_line_from_any_folder_and_finds_nothing_of_it(tmp_path: Path) -> None:
    """A module of the current folder is not taken for one of the program's."""
    (tmp_path / "bench.py").write_text("raise SystemExit('the wrong one')\n")
    done = subprocess.run(
        [sys.executable, "-m", "kernelscope", "--version"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, f"kernelscope {version.described()}\n"), done.stderr


def test_a_package_tells_the_commit_that_it_was_built_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(version, "ROOT", tmp_path)
    assert version.described() == ""
    (tmp_path / "pyproject.toml").write_text('version = "1.2"\n')
    assert version.described() == "1.2"
    (tmp_path / "commit.txt").write_text("1a2b3c4d\n")
    assert version.described() == "1.2 (1a2b3c4d)"
