"""One process writes into a run at a time; what was killed from outside is measured again, or when asked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import main
from bench.results.claim import LOCK_FILE, Claim
from bench.results.folders import copy
from bench.results.ladder_records import RungCase, RungMeasurement
from bench.results.messages import CaseStarted
from bench.results.records import KILLED_BY, Measurement
from bench.run import client
from bench.run.client import Outcome
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.run.kinds.ladder import KIND as LADDER
from bench.run.supervisor import Kill, Result, Supervisor
from kernels.errors import InputError
from tests.bench.ladder.test_ladder import example
from tests.bench.results import received

QUIET = ("--charts", "none", "--format", "csv")
HOLD = """
import sys
from pathlib import Path
from bench.results.claim import Claim
claim = Claim(Path(sys.argv[1]))
claim.take()
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path) -> Any:
    """Another process that writes into the run."""
    path = received.run(tmp_path / "run")
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=client.worker_environment(),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    yield path, process
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


def test_a_second_resume_says_that_the_run_is_being_measured(
    holder: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, process = holder
    started: list[Any] = []

    def run(*_: object, **__: object) -> Outcome:
        started.append(1)
        return Outcome(())

    monkeypatch.setattr(client, "run", run)
    assert main.main(["compare", "--resume", str(path), *QUIET]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"is being measured by another process ({process.pid})" in said
    assert started == []
    assert main.main(["runs", "show", str(path)]) == 0, "to read it is nobody's business"
    copy(path, path.parent / "copied")
    assert not (path.parent / "copied" / LOCK_FILE).exists()
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert main.main(["compare", "--resume", str(path), *QUIET]) == 1
    assert started == [1], "the system lets go of what a dead process held"


def test_a_driver_claims_before_a_worker_is_started(holder: Any) -> None:
    path, _ = holder
    folder = COMPARISON.open(path)
    with pytest.raises(InputError, match="is being measured"):
        client.run(folder.header.job, folder.missing(), folder, command=["/nowhere"])
    assert not folder.log.exists()


def test_a_claim_is_taken_once_and_given_back(tmp_path: Path) -> None:
    one, other = Claim(tmp_path), Claim(tmp_path)
    one.take()
    one.take()
    with pytest.raises(InputError, match=f"another process \\({os.getpid()}\\)"):
        other.take()
    one.release()
    other.take()
    other.release()


@pytest.mark.parametrize("plant", [os.mkfifo, lambda path: path.symlink_to("/etc/passwd")])
def test_a_planted_lock_is_one_sentence(tmp_path: Path, plant: Any) -> None:
    path = received.run(tmp_path / "run")
    plant(path / LOCK_FILE)
    with pytest.raises(InputError, match=r"\.lock"):
        COMPARISON.open(path)


# ------------------------------------------------------------------------------------------- measured again


def ended(case: Any, disposition: str, **facts: str) -> Measurement:
    return Measurement(case=case, disposition=disposition, facts=facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("measurement", "missing", "retried"),
    [
        (ended(received.CASES[0], "crashed"), False, True),
        (ended(received.CASES[0], "timed_out"), False, True),
        (ended(received.CASES[0], "crashed", **{KILLED_BY: "SIGSEGV"}), False, True),
        (ended(received.CASES[0], "crashed", **{KILLED_BY: "SIGKILL"}), True, True),
        (ended(received.CASES[0], "crashed", **{KILLED_BY: "SIGTERM"}), True, True),
        (ended(received.CASES[0], "incorrect"), False, False),
        (ended(received.CASES[0], "ok"), False, False),
    ],
)
def test_what_is_missing_of_a_run(
    tmp_path: Path, measurement: Measurement, missing: bool, retried: bool
) -> None:
    with COMPARISON.open(received.run(tmp_path / "run")) as folder:
        folder.append(measurement)
    assert (received.CASES[0] in folder.missing()) == missing
    assert (received.CASES[0] in folder.missing(retry=True)) == retried


def test_a_ladder_s_hung_rungs_are_tried_again_when_asked_for(tmp_path: Path) -> None:
    made, _ = example()
    folder = LADDER.create(tmp_path / "ladder", made)
    case: RungCase = made.cases[0]
    folder.append(RungMeasurement(case=case, disposition="timed_out"))
    assert case not in folder.missing()
    assert case in folder.missing(retry=True)


def test_resume_with_retry_runs_what_crashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with COMPARISON.open(received.run(tmp_path / "run")) as folder:
        folder.append(ended(received.CASES[0], "crashed"))
        folder.append(ended(received.CASES[1], "ok"))
    asked: list[Sequence[Any]] = []

    def run(job: Any, cases: Sequence[Any], folder: Any, *_: object, **__: object) -> Outcome:
        asked.append(cases)
        return Outcome(())

    monkeypatch.setattr(client, "run", run)
    main.main(["compare", "--resume", str(folder.path), *QUIET])
    assert asked == []
    main.main(["compare", "--resume", str(folder.path), "--retry", *QUIET])
    assert asked == [received.CASES[:1]]
    assert main.main(["compare", "--retry"]) == 2
    assert main.main(["ladder", "--retry"]) == 2


@pytest.mark.parametrize(("code", "fact"), [(-9, "SIGKILL"), (-11, "SIGSEGV"), (3, "")])
def test_by_what_a_worker_was_killed_is_recorded(code: int, fact: str) -> None:
    import msgspec

    machine = Supervisor(COMPARISON, received.JOB, received.CASES)
    machine.start(0.0)
    said = msgspec.json.encode(CaseStarted(case=received.CASES[0], stage="time")) + b"\n"
    machine.feed(said, 0.0)
    (result,) = (a for a in machine.on_exit(code, "", 1.0) if isinstance(a, Result))
    assert result.measurement.facts.get(KILLED_BY, "") == fact


def test_a_worker_that_we_killed_was_not_killed_from_outside() -> None:
    import msgspec

    machine = Supervisor(COMPARISON, received.JOB, received.CASES)
    machine.start(0.0)
    said = msgspec.json.encode(CaseStarted(case=received.CASES[0], stage="time")) + b"\n"
    machine.feed(said, 0.0)
    assert Kill() in machine.tick(received.JOB.timeout_s + 1)
    results = machine.on_exit(-9, "", received.JOB.timeout_s + 2)
    (result,) = (a for a in results if isinstance(a, Result))
    assert result.measurement.disposition == "timed_out"
    assert result.measurement.facts == {}
