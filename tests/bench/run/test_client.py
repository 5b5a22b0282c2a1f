"""The worker's other end: whatever a worker does, what was measured is kept and the rest goes on."""

import os
import signal
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import msgspec
import pytest

from bench.results.folder import Folder
from bench.results.messages import CaseStarted, Done, Hello, Log, Measured, Progress, Provisional
from bench.results.records import Case, Environment, Job, Measurement, Run
from bench.run import client
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.run.supervisor import AWAY, Kill, LaunchWorker, Result, Say, Stop, Supervisor
from kernels.errors import InputError
from kernels.processes import exit_words
from tests import sampling

pytestmark = pytest.mark.slow

FAKE = Path(__file__).parent / "fake_worker.py"
JOB = Job(models=("net",), backends=("one", "two", "three"), timeout_s=20)
CASES = tuple(Case(model="net", backend=b, precision="fp32", batch=1) for b in JOB.backends)
ONE, TWO, THREE = CASES


def line(message):
    return msgspec.json.encode(message) + b"\n"


def measured(case):
    return line(Measured(measurement=Measurement(case=case, disposition="ok")))


def started(case, stage="time"):
    return line(CaseStarted(case=case, stage=stage))


def results(actions):
    return [(a.measurement.case, a.measurement.disposition) for a in actions if isinstance(a, Result)]


def launched(actions):
    lines = [action.line for action in actions if isinstance(action, LaunchWorker)]
    return [msgspec.json.decode(line, type=COMPARISON.reads).cases for line in lines]


# ------------------------------------------------------------------------------------- the machine, by hand


def test_lines_cut_anywhere_make_the_same_messages():
    text = (
        line(Hello(environment=Environment()))
        + started(ONE)
        + measured(ONE)
        + line(Log(level="info", text="é"))
    )
    whole = Supervisor(COMPARISON, JOB, CASES)
    whole.start(0)
    expected = whole.feed(text, 1)
    for size in (1, 2, 7):
        machine = Supervisor(COMPARISON, JOB, CASES)
        machine.start(0)
        actions = []
        for at in range(0, len(text), size):
            actions += machine.feed(text[at : at + size], 1)
        assert actions == expected
    assert whole.pending == (TWO, THREE)


def test_time_in_which_a_machine_elsewhere_does_not_answer_is_no_time_of_a_case():
    machine = Supervisor(COMPARISON, JOB, CASES)
    machine.start(0)
    machine.feed(started(ONE), 0)
    for now in range(5, 100, 10):
        machine.feed(started(ONE, AWAY), now)
        assert machine.tick(now + 9) == []
    machine.feed(started(ONE), 100)  # five seconds of its twenty are spent
    assert machine.tick(114.5) == []
    assert machine.tick(115.5) == [Kill()]


def test_a_crash_costs_the_case_in_flight_and_nothing_else():
    machine = Supervisor(COMPARISON, JOB, CASES)
    assert launched(machine.start(0)) == [CASES]
    machine.feed(measured(ONE) + started(TWO, "prepare"), 1)
    actions = machine.on_exit(-signal.SIGSEGV, "blah\nCUDA error 700\n\n", 2)
    assert results(actions) == [(TWO, "crashed")]
    reason = actions[0].measurement.reason
    assert reason == "the worker was killed by SIGSEGV (segmentation fault) (at: prepare): CUDA error 700"
    assert launched(actions) == [(THREE,)]
    machine.feed(measured(THREE) + line(Done()), 3)
    machine.on_exit(0, "", 3)
    assert machine.finished
    assert machine.reason == ""


def test_the_others_of_a_group_are_run_again():
    machine = Supervisor(COMPARISON, JOB, CASES)
    machine.start(0)
    machine.feed(started(ONE) + started(TWO) + started(THREE) + started(TWO), 1)
    actions = machine.on_exit(1, "", 2)
    assert results(actions) == [(TWO, "crashed")]
    assert launched(actions) == [(ONE, THREE)]


def test_a_case_is_charged_with_its_own_time_only():
    machine = Supervisor(COMPARISON, JOB, CASES)
    machine.start(0)
    now = 0.0
    for _ in range(10):  # 15 s each, in turns; then one goes beyond its 20 s
        machine.feed(started(ONE), now)
        assert machine.tick(now + 1.4) == []
        machine.feed(started(TWO), now + 1.5)
        now += 3
    assert machine.tick(now + 3) == []
    assert machine.tick(now + 7) == [Kill()]
    assert machine.tick(now + 8) == [], "killed once"
    actions = machine.on_exit(-signal.SIGKILL, "", now + 8)
    assert results(actions) == [(TWO, "timed_out")]
    assert "given up after 20 s" in actions[0].measurement.reason


@pytest.mark.parametrize("stage", ["tune", "compile"])
def test_what_is_tuned_or_compiled_is_not_charged_to_a_case_as_long_as_it_moves(stage):
    machine = Supervisor(COMPARISON, JOB, CASES)
    machine.start(0)
    machine.feed(line(CaseStarted(case=ONE, stage=stage)), 0)
    for now in range(15, 150, 15):
        assert machine.tick(now) == []
        machine.feed(line(Progress(text="trying another kernel")), now)
    machine.feed(started(ONE), 150)
    assert machine.tick(165) == [], "its own time begins now"
    assert machine.tick(175) == [Kill()]
    machine = Supervisor(COMPARISON, JOB, CASES)
    machine.start(0)
    machine.feed(line(CaseStarted(case=ONE, stage=stage)), 0)
    assert machine.tick(21) == [Kill()], "a kernel that never ends is still given up"
    assert f"(at: {stage})" in machine.on_exit(-9, "", 22)[0].measurement.reason


def test_a_worker_that_never_says_a_word_is_given_up():
    machine = Supervisor(COMPARISON, JOB, CASES)
    machine.start(0)
    assert machine.tick(21) == [Kill()]
    assert launched(machine.on_exit(-9, "", 22)) == [CASES]
    assert machine.tick(60) == [Kill()]
    actions = machine.on_exit(-9, "", 61)
    assert machine.finished
    assert "said nothing for 20 s" in machine.reason
    assert results(actions) == [(case, "cancelled") for case in CASES]


def test_words_while_no_case_runs_keep_it_alive():
    machine = Supervisor(COMPARISON, JOB, CASES)
    machine.start(0)
    for now in range(10, 100, 10):
        machine.feed(line(Log(level="info", text="downloading")), now)
        assert machine.tick(now + 5) == []


def test_cancelling_while_a_model_is_read_waits_for_nothing():
    machine = Supervisor(COMPARISON, JOB, CASES)
    machine.start(0)
    machine.feed(started(ONE, "load"), 1)
    assert machine.cancel(2) == [Kill()]
    assert results(machine.on_exit(-9, "", 3)) == [(case, "cancelled") for case in CASES]


def test_what_reading_a_model_does_to_a_worker_is_told_of_all_its_cases():
    other = Case(model="other", backend="one", precision="fp32", batch=1)
    machine = Supervisor(COMPARISON, JOB, (*CASES, other))
    machine.start(0)
    machine.feed(started(ONE, "load"), 1)
    assert machine.tick(20) == []
    assert machine.tick(22) == [Kill()]
    actions = machine.on_exit(-9, "", 23)
    assert results(actions) == [(case, "timed_out") for case in CASES]
    assert launched(actions) == [(other,)]


def test_reading_a_model_is_no_part_of_a_case_s_time():
    machine = Supervisor(COMPARISON, JOB, CASES)
    machine.start(0)
    machine.feed(started(ONE, "load"), 1)
    machine.feed(started(ONE, "prepare"), 19)
    assert machine.tick(38) == []
    assert machine.tick(40) == [Kill()]


def test_cancelling_asks_first_and_kills_after_a_grace():
    machine = Supervisor(COMPARISON, JOB, CASES)
    machine.start(0)
    machine.feed(measured(ONE) + started(TWO), 1)
    assert machine.cancel(2) == [Stop()]
    assert machine.cancel(2) == []
    assert machine.tick(3) == []
    assert machine.tick(13) == [Kill()]
    actions = machine.on_exit(-9, "", 14)
    assert results(actions) == [(TWO, "cancelled"), (THREE, "cancelled")]
    assert launched(actions) == []
    assert machine.finished
    assert machine.cancelled


def test_a_worker_that_stays_after_done_is_ended():
    machine = Supervisor(COMPARISON, JOB, (ONE,))
    machine.start(0)
    machine.feed(measured(ONE) + line(Done()), 1)
    assert machine.tick(5) == []
    assert machine.tick(12) == [Kill()]
    machine.on_exit(-9, "", 13)
    assert machine.finished
    assert machine.reason == ""


def test_without_cases_the_worker_says_what_the_job_means():
    machine = Supervisor(COMPARISON, JOB)
    assert launched(machine.start(0)) == [()]
    machine.feed(line(Hello(environment=Environment(), cases=CASES)) + started(ONE), 1)
    assert machine.cases == CASES
    assert launched(machine.on_exit(1, "", 2)) == [(TWO, THREE)]


def test_strange_and_repeated_measurements_are_not_kept():
    machine = Supervisor(COMPARISON, JOB, (ONE, TWO))
    machine.start(0)
    assert results(machine.feed(measured(ONE) + measured(ONE) + measured(THREE), 1)) == [(ONE, "ok")]


def test_what_a_case_takes_so_far_is_said_and_settles_nothing():
    machine = Supervisor(COMPARISON, JOB, CASES)
    machine.start(0)
    machine.feed(started(ONE), 1)
    message = Provisional(case=ONE, median_ns=5e4)
    assert machine.feed(line(message), 2) == [Say(message)]
    assert machine.pending == CASES
    machine.feed(measured(ONE), 3)
    (noise,) = machine.feed(line(message), 4)
    assert isinstance(noise.message, Log), "a case that is settled is not being measured"


def test_noise_is_logged_a_few_times_and_then_passed_over():
    machine = Supervisor(COMPARISON, JOB, (ONE,))
    machine.start(0)
    actions = machine.feed(b"printf\n" * 1000 + measured(ONE), 1)
    logs = [a for a in actions if isinstance(a, Say)]
    assert 1 < len(logs) <= 20
    assert results(actions) == [(ONE, "ok")]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (3, "ended with exit code 3"),
        (-6, "was killed by SIGABRT (aborted)"),
        (0xC0000005, "(access violation)"),
        (-63, "signal 63|SIGRT"),
    ],
)
def test_exits_in_words(code, words):
    import re

    assert re.search(words if "|" in words else re.escape(words), exit_words(code))


# --------------------------------------------------------------------------------------- with real processes


@pytest.fixture
def drive(tmp_path):
    """Run CASES in fake workers by a plan; gives (outcome, dispositions written, events, workers started)."""

    def go(*plan, job=JOB, **options):
        folder = COMPARISON.create(tmp_path / "run", Run(job=job, cases=CASES))
        events = []
        on_event = options.pop("on_event", lambda event: None)
        outcome = client.run(
            job,
            CASES,
            folder,
            lambda event: (events.append(event), on_event(event)),
            command=[sys.executable, str(FAKE), str(tmp_path / "state"), *plan],
            **options,
        )
        written = {m.case: m.disposition for m in COMPARISON.open(folder.path).measurements()}
        return outcome, written, events, len((tmp_path / "state").read_text())

    return go


def test_the_last_words_of_a_worker_started_ahead_are_in_the_log_too(drive, tmp_path):
    command = [sys.executable, str(FAKE), str(tmp_path / "state"), "segv", "ok"]
    with client.StandbyWorker(COMPARISON, renewed=False, command=command) as spare:
        outcome, written, _, workers = drive("ok", spare=spare)
        assert spare.take() is None  # no other was started
    assert written == {ONE: "ok", TWO: "crashed", THREE: "ok"}
    assert workers == 2
    crashed = next(m for m in outcome.measurements if m.disposition == "crashed")
    assert "SIGSEGV" in crashed.reason
    assert crashed.reason.endswith("illegal address in conv/04")
    assert "illegal address in conv/04" in COMPARISON.open(tmp_path / "run").log.read_text()


def test_a_run_from_beginning_to_end(drive, tmp_path):
    outcome, written, _, workers = drive("ok")
    assert written == dict.fromkeys(CASES, "ok")
    assert (outcome.cancelled, outcome.reason, workers) == (False, "", 1)
    assert COMPARISON.open(tmp_path / "run").header.environment.machine == "fake"


@pytest.mark.parametrize(
    ("word", "said"), [("segv", "SIGSEGV"), ("kill", "SIGKILL"), ("exit3", "exit code 3")]
)
def test_death_in_the_middle_of_a_line(drive, word, said):
    outcome, written, _, workers = drive(word, "ok")
    assert written == {ONE: "ok", TWO: "crashed", THREE: "ok"}
    crashed = next(m for m in outcome.measurements if m.disposition == "crashed")
    assert said in crashed.reason
    if word != "exit3":
        assert crashed.reason.endswith("illegal address in conv/04")
    assert workers == 2


@pytest.mark.parametrize("word", ["garbage", "flood"])
def test_nonsense_on_the_pipe_is_not_fatal(drive, word):
    _, written, events, _ = drive(word)
    assert written == dict.fromkeys(CASES, "ok")
    assert any(isinstance(e, Log) and "no message" in e.text for e in events)


def test_a_hanging_case_times_out_and_the_rest_goes_on(drive, monkeypatch):
    """By a clock that jumps once the case has begun: how long a worker takes to start is no matter."""
    jumped = []
    clock = types.SimpleNamespace(monotonic=lambda: time.monotonic() + sum(jumped))
    monkeypatch.setattr(client, "time", clock)

    def begun(event):
        if isinstance(event, CaseStarted) and not jumped:
            jumped.append(JOB.timeout_s + 1)

    _, written, _, workers = drive("hang", "ok", on_event=begun)
    assert written == {ONE: "timed_out", TWO: "ok", THREE: "ok"}
    assert workers == 2


def test_a_worker_that_cannot_start_ends_the_run_with_its_last_words(drive):
    outcome, written, _, workers = drive("mute")
    assert written == {}
    assert "exit code 4" in outcome.reason
    assert outcome.reason.endswith("cannot load libnothing.so")
    assert workers == 2
    assert {m.disposition for m in outcome.measurements} == {"cancelled"}


def test_a_worker_may_ask_to_be_started_anew(drive):
    _, written, _, workers = drive("anew")
    assert written == dict.fromkeys(CASES, "ok")
    assert workers == 3


def test_a_worker_that_gives_up_says_why(drive):
    outcome, written, _, _ = drive("quit")
    assert outcome.reason == "the model has no inputs"
    assert written == {}


def test_stopping_keeps_what_was_measured_and_a_resume_runs_the_rest(drive, tmp_path):
    stop = threading.Event()
    outcome, written, _, _ = drive(
        "slow", "ok", stop=stop, on_event=lambda e: stop.set() if isinstance(e, Measurement) else None
    )
    assert outcome.cancelled
    assert written == {ONE: "ok"}
    folder = COMPARISON.resume(tmp_path / "run", JOB)
    assert folder.missing() == (TWO, THREE)
    again = client.run(
        JOB, folder.missing(), folder, command=[sys.executable, str(FAKE), str(tmp_path / "state"), "ok"]
    )
    assert not again.cancelled
    assert folder.missing() == ()


def test_two_interrupts_end_even_a_deaf_worker(drive):
    presses = []

    def press(event):
        if isinstance(event, CaseStarted):
            presses.append(threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)))
            presses.append(threading.Timer(0.6, os.kill, (os.getpid(), signal.SIGINT)))
            for timer in presses:
                timer.start()

    outcome, written, _, _ = drive("deaf", on_event=press)
    for timer in presses:
        timer.join()
    assert outcome.cancelled
    assert written == {}


LINES = 6000  # of Python that such a run goes through at least, in whichever module


@pytest.mark.sampled
@pytest.mark.timeout(900)  # at all of them
def test_ctrl_c_between_any_two_lines_loses_nothing_and_leaves_nobody(tmp_path):
    """Python raises KeyboardInterrupt after whichever step it was at: a lock that was just taken is never
    released then, and the end of a worker that was just heard of is never heard of again."""
    line = 0
    last = 0

    def trace(frame, event, _):
        nonlocal line
        line += 1
        if line == last:
            signal.raise_signal(signal.SIGINT)
        return trace

    def interrupted(folder, workers):
        """The outcome, None where it raised."""
        command = [sys.executable, str(FAKE), str(folder.path.with_suffix(".state")), "anew", "ok"]
        sys.settrace(trace)
        try:
            return client.run(
                JOB, CASES, folder, command=command, on_worker=lambda pid, _: workers.append(pid)
            )
        except KeyboardInterrupt:
            return None
        finally:
            sys.settrace(None)

    for last in sampling.some("interrupts", range(10, LINES, 10), 10):
        folder = COMPARISON.create(tmp_path / f"run{last}", Run(job=JOB, cases=CASES))
        workers, line = [], 0
        found = interrupted(folder, workers)
        kept = [m.case for m in COMPARISON.open(folder.path).measurements()]
        if found is None:
            assert len(kept) == (len(CASES) if workers else 0), f"before the first or behind the last: {last}"
        else:
            # Behind the last line all was said already.
            assert found.cancelled == (line >= last) or line == last, f"heard (line {last} of {line})"
            assert sorted(m.case.backend for m in found.measurements) == sorted(JOB.backends)
            assert [m.case for m in found.measurements if m.disposition != "cancelled"] == kept
        for pid in workers:
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)


def test_the_worker_started_ahead_is_not_lost_where_another_process_writes_to_the_folder(tmp_path):
    command = [sys.executable, str(FAKE), str(tmp_path / "state"), "ok"]
    held = COMPARISON.create(tmp_path / "run", Run(job=JOB, cases=CASES))
    held.claim()
    folder = COMPARISON.open(held.path)
    with client.StandbyWorker(COMPARISON, renewed=False, command=command) as spare:
        with pytest.raises(InputError, match="by another process"):
            client.run(JOB, CASES, folder, spare=spare)
        held.close()
        assert not client.run(JOB, CASES, folder, command=["/nowhere"], spare=spare).reason
    assert len((tmp_path / "state").read_text()) == 1, "it was that one"


def test_a_full_disk_ends_the_worker_and_says_so(drive, monkeypatch, tmp_path):
    def full(self, measurement):
        raise InputError("cannot write results.jsonl: no space left on device")

    monkeypatch.setattr(Folder, "append", full)
    with pytest.raises(InputError, match="no space left"):
        drive("ok")


def test_the_client_reaches_no_engine():
    code = (
        "import sys, bench.run.client, bench.results.records\n"
        "heavy = {'engine', 'numpy', 'onnx', 'onnxruntime', 'cupy', 'models'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=client.worker_environment())


def test_a_worker_keeps_bytecode_also_where_none_is_to_lie_beside_the_sources(monkeypatch, tmp_path):
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    subprocess.run(
        [sys.executable, "-c", "import bench.results.records"], check=True, env=client.worker_environment()
    )
    assert list((tmp_path / "bytecode").rglob("records.*.pyc"))
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", "elsewhere")
    assert client.worker_environment()["PYTHONPYCACHEPREFIX"] == "elsewhere"
    assert "PYTHONPYCACHEPREFIX" not in client.worker_environment({})


def test_a_worker_loads_nothing_of_the_folder_that_it_is_started_in(tmp_path):
    (tmp_path / "bench.py").write_text("raise SystemExit(7)")
    done = subprocess.run(
        client.worker_command(COMPARISON.worker),
        cwd=tmp_path,
        env=client.worker_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert done.returncode != 7, done.stderr
