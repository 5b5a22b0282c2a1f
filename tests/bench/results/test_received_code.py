"""A received run does not run its own kernels: only those that this user recorded here, or agreed to."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import main
from bench.commands import compare
from bench.results import trust
from bench.results.records import Job
from bench.run import client
from bench.run.client import Outcome
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.run.kinds.ladder import KIND as LADDER
from tests.bench.results import received

QUIET = ("--charts", "none", "--format", "csv")


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    folder = tmp_path / "kernels"
    (folder / "common").mkdir(parents=True)
    (folder / "90_evil.py").write_text(received.EVIL.format(mark=str(tmp_path / "mark")))
    (folder / "91_gpu.cu").write_text('/* */\n#include "common/tile.cuh"\n#include "../outside.cuh"\n')
    (folder / "common" / "tile.cuh").write_text("#define TILE 8\n")
    (tmp_path / "outside.cuh").write_text("#define OUTSIDE 1\n")
    return folder


@pytest.fixture(autouse=True)
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The jobs that a worker would have been started with."""
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    jobs: list[Any] = []

    def run(job: Any, cases: Sequence[Any], folder: Any, *_: object, **__: object) -> Outcome:
        jobs.append(job)
        return Outcome(())

    monkeypatch.setattr(client, "run", run)
    monkeypatch.setattr(client, "run", run)
    return jobs


def test_a_received_run_does_not_run_its_kernels(
    tmp_path: Path, kernels: Path, started: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    path = received.run(tmp_path / "run", kernel_dirs=(str(kernels),), rungs={"conv1": "evil"})
    assert main.main(["compare", "--resume", str(path), *QUIET]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert str(kernels) in said
    assert "90_evil.py" in said
    assert "--trust-kernels" in said
    assert started == []
    # Agreed to once, and remembered; and so does naming them.
    assert main.main(["compare", "--resume", str(path), "--trust-kernels", *QUIET]) == 1
    assert main.main(["compare", "--resume", str(path), *QUIET]) == 1
    assert len(started) == 2
    other = Path(shutil.copytree(path, tmp_path / "other"))
    assert main.main(["compare", "--resume", str(other), *QUIET]) == 2
    assert main.main(["compare", "--resume", str(other), "--kernels", str(kernels), *QUIET]) == 1


def test_a_received_ladder_does_not_run_its_kernels(
    tmp_path: Path, kernels: Path, started: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.bench.ladder.test_ladder import example

    made, _ = example()
    import msgspec

    job = msgspec.structs.replace(made.job, kernel_dirs=(str(kernels),))
    path = LADDER.create(tmp_path / "ladder", msgspec.structs.replace(made, job=job)).path
    assert main.main(["ladder", "--resume", str(path), *QUIET]) == 2
    assert "--trust-kernels" in capsys.readouterr().err
    assert started == []
    main.main(["ladder", "--resume", str(path), "--trust-kernels", *QUIET])
    assert len(started) == 1
    assert main.main(["ladder", "conv", "--trust-kernels"]) == 2
    assert main.main(["compare", "--trust-kernels"]) == 2


def test_a_run_of_ones_own_goes_on_unasked_until_a_kernel_changes(
    tmp_path: Path, kernels: Path, started: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    (kernels / "91_gpu.cu").rename(kernels / "_gpu.cu")  # no rung any more: its header says nothing
    job = Job(**{name: getattr(received.JOB, name) for name in Job.__struct_fields__} | {
        "kernel_dirs": (str(kernels),)
    })  # fmt: skip
    compare.run_jobs([(job, tmp_path / "run")], compare.Output("csv", ()))
    assert main.main(["compare", "--resume", "run", *QUIET]) == 1
    assert len(started) == 2
    capsys.readouterr()
    for file in (kernels / "90_evil.py", kernels / "common" / "tile.cuh", tmp_path / "outside.cuh"):
        before = file.read_text()
        file.write_text(before + "\n")
        assert main.main(["compare", "--resume", "run", *QUIET]) == 2, file
        assert f"(changed: {file.name})" in capsys.readouterr().err
        file.write_text(before)
    (kernels / "92_more.py").write_text("")
    assert main.main(["compare", "--resume", "run", *QUIET]) == 2, "a file more"
    assert len(started) == 2


def test_a_record_that_is_swapped_is_not_the_one_that_was_recorded(tmp_path: Path, kernels: Path) -> None:
    path = received.run(tmp_path / "run", kernel_dirs=(str(kernels),))
    trust.remember(path, (str(kernels),))
    assert trust.doubt(path, (str(kernels),)) == ""
    elsewhere = Path(shutil.copytree(kernels, tmp_path / "elsewhere"))
    assert trust.doubt(path, (str(elsewhere),)) != ""
    assert trust.doubt(path, (str(kernels), str(elsewhere))) != ""
    assert trust.doubt(path, ()) == ""


def test_what_cannot_be_looked_through_is_asked_about(
    tmp_path: Path, kernels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trust, "MOST_FILES", 2)
    path = received.run(tmp_path / "run", kernel_dirs=(str(kernels),))
    trust.remember(path, (str(kernels),))
    assert trust.doubt(path, (str(kernels),)) != ""


def test_a_run_without_kernels_of_its_own_goes_on(tmp_path: Path, started: list[Any]) -> None:
    path = received.run(tmp_path / "run")
    assert main.main(["compare", "--resume", str(path), *QUIET]) == 1
    assert len(started) == 1
    assert COMPARISON.open(path).header.job.kernel_dirs == ()


def test_what_a_stranger_names_is_not_read_before_it_is_agreed_to(
    tmp_path: Path, kernels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = received.run(tmp_path / "run", kernel_dirs=(str(kernels),))
    read: list[Path] = []
    before = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda self: (read.append(self), before(self))[1])
    assert "90_evil.py" in trust.doubt(path, (str(kernels),))
    assert trust.doubt(path, ("/proc",)) != ""
    assert not [file for file in read if not file.is_relative_to(tmp_path / "cache")]
