"""A worker on a machine elsewhere is to whoever waits for it as one here, whatever breaks between them."""

import random
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import pytest

from bench.extras.remote import frames
from bench.extras.remote.line import AT_ONCE_NBYTES, NOTE, note_of
from bench.results.messages import CaseStarted, Log, Progress
from bench.run import client
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.run.supervisor import AWAY
from tests import sampling
from tests.bench.extras.remote import cuts, there
from tests.bench.extras.remote.loopback import needs_sshd
from tests.bench.extras.remote.scripted import OPEN, SAID

pytestmark = pytest.mark.slow
OWN = {"run.json", "worker.log", ".lock", NOTE}  # of a run that has measured nothing


@pytest.fixture
def near(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELSCOPE_CONFIG", str(tmp_path / "config" / "config.toml"))
    place = there.make(tmp_path, lease_s=4.0)
    yield place
    for process in there.processes(place):
        process.kill()


@pytest.fixture
def far(lab, tmp_path):
    """The same by ssh."""
    place = lab.place("far", launch=("env", f"{SAID}={tmp_path / 'said'}"))
    yield place
    for process in there.processes(place):
        process.kill()


def measure(path, run, place, heard=None, **options):
    """A run into a new folder; its outcome."""
    heard = [] if heard is None else heard
    with COMPARISON.create(path, run) as folder:
        return client.run(run.job, run.cases, folder, heard.append, command=there.command(place), **options)


def dispositions(outcome):
    return [m.disposition for m in outcome.measurements]


def test_it_is_as_a_worker_here(near, tmp_path):
    outcome = measure(tmp_path / "run", there.run_of(3, "flood"), near)
    assert dispositions(outcome) == ["ok"] * 3
    with COMPARISON.open(tmp_path / "run") as folder:
        found = [(m.case.key, m.samples_ns[0]) for m in folder.measurements()]
        assert found == there.said(near)
        assert {m.facts["machine"] for m in folder.measurements()} == {"lab"}
        assert folder.header.environment.machine == "there"
        for key, figure in found:
            assert (tmp_path / "run" / "predictions" / f"{key}.npz").read_text() == str(figure) * 100
        assert "said on standard error" in folder.log.read_text()
    there.until(lambda: not there.processes(near))


@pytest.mark.sampled(5, "lines")
def test_what_the_job_names_travels_once_and_nothing_else(near, tmp_path):
    kernels, common = tmp_path / "mine" / "kernels", tmp_path / "mine"
    kernels.mkdir(parents=True)
    model, weights = tmp_path / "reads.onnx", tmp_path / "w.data"
    # As ONNX has a tensor whose values lie in another file.
    model.write_bytes(b"\x0a\x08location\x12\x06w.data \x0a\x08location\x12\x0a../secret2")
    weights.write_text("weights")
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "secret2").write_text("secret")
    (kernels / "90_mine.cu").write_text('#include "../common.cuh"\n#include "../../secret"\n')
    (kernels / ".hidden.cu").write_text("secret")
    (kernels / "notes.txt").write_text("secret")
    (common / "common.cuh").write_text("common")
    (tmp_path / "labels.txt").write_text("cat\ndog\n")
    (tmp_path / "ä 1.npy").write_text("input")
    run = there.run_of(
        1,
        str(model),
        kernel_dirs=(str(kernels),),
        labels=str(tmp_path / "labels.txt"),
        inputs={"x": str(tmp_path / "ä 1.npy")},
    )
    (made,) = measure(tmp_path / "run", run, near).measurements
    assert made.case.model == str(model)
    assert made.facts["90_mine.cu"].startswith("#include")
    assert made.facts["ä 1.npy"] == "input"
    # In what comes back every path is ours.
    for name, path in (("labels.txt", tmp_path), ("90_mine.cu", kernels), ("reads.onnx", tmp_path)):
        assert made.facts[f"{name} at"] == str(path / name)
    held = {path.name for path in Path(near.folder, "trees").rglob("*") if path.is_file()}
    assert held == {"reads.onnx", "w.data", "90_mine.cu", "common.cuh", "labels.txt", "ä 1.npy"}
    blobs = Path(near.folder, "blobs")
    before = set(blobs.iterdir())
    assert not any(blob.read_bytes() == b"secret" for blob in before)
    (kernels / "90_mine.cu").write_text('#include "../common.cuh"\n// saved again\n')
    weights.write_text("weights" * (AT_ONCE_NBYTES // 7))  # so much that it is asked first what is there
    (made,) = measure(tmp_path / "again", run, near).measurements
    assert "saved again" in made.facts["90_mine.cu"]
    assert len(set(blobs.iterdir()) - before) == 2


@pytest.mark.sampled(5, "lines")
def test_a_line_that_drops_is_told_and_comes_back(near, tmp_path):
    heard = []
    # While nobody is reached there, connections fail as those of a machine that is off.
    gate = tmp_path / "gate"
    script = f'while [ -e {gate} ]; do sleep 0.1; done; exec "$@"'
    slow = there.make(tmp_path, "slow", launch=("sh", "-c", script, "sh", *near.launch), lease_s=20.0)

    def drop() -> None:
        there.until(lambda: there.said(near))
        (line,) = [
            p for p in there.processes(slow) if "bench.extras.remote.line" in p.cmdline() and p.children()
        ]
        connection = line.children(recursive=True)
        Path(near.folder, OPEN).touch()  # the other cases; to look for processes takes as long as some
        there.until(lambda: len(there.said(near)) > 3)
        gate.touch()
        for process in connection:
            process.kill()
        there.until(lambda: any(isinstance(e, CaseStarted) and e.stage == AWAY for e in list(heard)))
        gate.unlink()

    thread = threading.Thread(target=drop)
    thread.start()
    try:
        run = there.run_of(60, "gated", timeout_s=60.0)
        outcome = measure(tmp_path / "run", run, slow, heard)
    finally:
        gate.unlink(missing_ok=True)
        thread.join()
    assert dispositions(outcome) == ["ok"] * 60
    assert len(there.said(near)) == 60, "a case was measured twice"
    told = [e.text for e in heard if isinstance(e, Log)]
    assert any("slow does not answer" in text and "goes on there" in text for text in told)
    assert "slow answers again" in told


@pytest.mark.sampled(5, "lines")
@needs_sshd
def test_connections_of_ssh_that_break_lose_nothing(lab, far, tmp_path):
    heard = []

    def cut() -> None:
        for count in (3, 20):
            there.until(lambda count=count: said(tmp_path / "said", count))
            lab.cut()

    def said(path, count) -> bool:
        return path.exists() and len(path.read_text().splitlines()) > count

    thread = threading.Thread(target=cut)
    thread.start()
    outcome = measure(tmp_path / "run", there.run_of(40), far, heard)
    thread.join()
    assert dispositions(outcome) == ["ok"] * 40
    assert {m.facts["machine"] for m in outcome.measurements} == {"far"}
    told = (tmp_path / "said").read_text().split()[1::2]
    assert [m.samples_ns[0] for m in outcome.measurements] == list(map(float, told))
    there.until(lambda: not there.processes(far))


@pytest.mark.sampled(5, "lines")
def test_cuts_at_random_moments_lose_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELSCOPE_CONFIG", "")
    campaign = cuts.Campaign(tmp_path, sampling.number("cuts"))
    campaign.run(1, cases=40, cuts=3)
    campaign.nobody_left()
    assert not campaign.problems, campaign.made


@pytest.mark.sampled(5, "lines")
def test_whoever_is_gone_finds_later_what_was_measured_meanwhile(near, tmp_path):
    path = tmp_path / "run"
    COMPARISON.create(path, there.run_of(6, "gated"))
    words = [sys.executable, "-m", "tests.bench.extras.remote.cuts", "--measure", str(path), near.name]
    with subprocess.Popen(words, cwd=there.ROOT, start_new_session=True) as program:
        there.until(lambda: (path / "results.jsonl").exists() and (path / "results.jsonl").read_bytes())
        program.kill()
    Path(near.folder, OPEN).touch()
    there.until(lambda: not there.processes(near))  # it was measured to its end, and the lease is over
    assert len(there.said(near)) == 6
    heard = []
    with COMPARISON.resume(path) as folder:
        left = folder.missing()
        assert len(left) == 5
        outcome = client.run(folder.job, left, folder, heard.append, command=there.command(near))
        assert dispositions(outcome) == ["ok"] * len(left)
        assert sorted((m.case.key, m.samples_ns[0]) for m in folder.measurements()) == sorted(
            there.said(near)
        )
    assert any("fetching what lab measured" in e.text for e in heard if isinstance(e, Log))


@pytest.mark.sampled(5, "lines")
def test_an_hour_without_anybody_ends_it(near, tmp_path):
    path = tmp_path / "run"
    COMPARISON.create(path, there.run_of(1, "idle"))
    words = [sys.executable, "-m", "tests.bench.extras.remote.cuts", "--measure", str(path), near.name]
    with subprocess.Popen(words, cwd=there.ROOT, start_new_session=True) as program:
        there.until(lambda: (path / NOTE).exists() and note_of(path).session)
        gone = time.monotonic()
        program.kill()
    there.until(lambda: not there.processes(near))
    assert time.monotonic() - gone > 1.0, "it was ended before its lease"


@pytest.mark.sampled(5, "lines")
def test_cancel_here_ends_it_there(near, tmp_path):
    stop = threading.Event()
    heard = []
    threading.Thread(
        target=lambda: (there.until(lambda: any(isinstance(e, CaseStarted) for e in list(heard))), stop.set())
    ).start()
    outcome = measure(tmp_path / "run", there.run_of(2, "idle"), near, heard, stop=stop)
    assert outcome.cancelled
    there.until(lambda: not there.processes(near))


@pytest.mark.sampled(5, "lines")
def test_a_case_that_takes_too_long_is_ended_there_and_the_next_is_measured(near, tmp_path, monkeypatch):
    jumped = []
    clock = types.SimpleNamespace(monotonic=lambda: time.monotonic() + sum(jumped))
    monkeypatch.setattr(client, "time", clock)

    def heard(event) -> None:
        """Once the case has begun: how long it takes to get there is no matter."""
        if isinstance(event, CaseStarted) and event.stage == "time" and not jumped:
            jumped.append(61.0)

    run = there.run_of(1, "endless", timeout_s=60.0)
    with COMPARISON.create(tmp_path / "run", run) as folder:
        outcome = client.run(run.job, run.cases, folder, heard, command=there.command(near))
    assert dispositions(outcome) == ["timed_out"]
    there.until(lambda: not there.processes(near))


@pytest.mark.sampled(5, "lines")
def test_waiting_in_a_queue_is_no_time_of_a_case(tmp_path, near):
    script = 'sleep 8; exec "$@"'
    launch = ("sh", "-c", script, "sh", *near.launch)
    queued = there.make(tmp_path, "queued", launch=launch, shared=True)
    heard = []
    outcome = measure(tmp_path / "run", there.run_of(1, timeout_s=7.0), queued, heard)
    assert dispositions(outcome) == ["ok"]
    assert any(e.text == "waiting in the queue of queued" for e in heard if isinstance(e, Progress))


SECOND = """
import sys
from bench.extras.remote import frames, places
from bench.extras.remote.line import Talk
talk = Talk(places.load(sys.argv[1]), sys.argv[2])
while not isinstance(talk.next(), frames.Opened):
    pass
talk.say(frames.Kill())
while not isinstance(talk.next(), frames.Ended):
    pass
"""


@pytest.mark.sampled(5, "lines")
def test_a_second_program_takes_the_session_over_and_the_first_is_told(near, tmp_path):
    heard = []
    path = tmp_path / "run"
    first = []
    thread = threading.Thread(
        target=lambda: first.append(measure(path, there.run_of(1, "endless"), near, heard))
    )
    thread.start()
    there.until(lambda: note_of(path) is not None and any(isinstance(e, CaseStarted) for e in list(heard)))
    words = [sys.executable, "-c", SECOND, near.name, note_of(path).session]
    subprocess.run(words, cwd=there.ROOT, check=True, timeout=60)
    thread.join(60)
    assert "another program listens" in first[0].reason


@pytest.mark.sampled(5, "lines")
@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("garbage", "cannot be reached: what comes from there is none of a keeper's"),
        ("outside", "names a file outside it"),
        ("elsewhere", "sends a file that no such run has: 'results.jsonl'"),
        ("newer", "remote update evil"),
    ],
)
def test_what_comes_back_is_not_believed_beyond_its_limits(tmp_path, near, how, words):
    launch = (
        "env",
        f"PYTHONPATH={there.ROOT}",
        sys.executable,
        "-m",
        "tests.bench.extras.remote.hostile",
        how,
    )
    evil = there.make(tmp_path, "evil", launch=launch)
    heard = []
    outcome = measure(tmp_path / "run", there.run_of(1), evil, heard)
    assert words in outcome.reason
    assert not (tmp_path / "outside").exists()
    assert {path.name for path in (tmp_path / "run").iterdir() if path.is_file()} <= OWN


@pytest.mark.sampled(5, "lines")
def test_lines_that_no_worker_says_are_passed_over(tmp_path, near):
    launch = (
        "env",
        f"PYTHONPATH={there.ROOT}",
        sys.executable,
        "-m",
        "tests.bench.extras.remote.hostile",
        "lines",
    )
    evil = there.make(tmp_path, "evil", launch=launch)
    heard = []
    outcome = measure(tmp_path / "run", there.run_of(1), evil, heard)
    assert dispositions(outcome) == ["cancelled"]
    assert not any("\x1b" in e.text for e in heard if isinstance(e, Log))
    assert sum("no message" in e.text for e in heard if isinstance(e, Log)) == 3


@pytest.mark.sampled(5, "lines")
def test_a_banner_is_passed_over_and_an_unreachable_place_says_why(tmp_path, near):
    noisy = there.make(
        tmp_path, "noisy", launch=("sh", "-c", 'echo "Welcome!"; exec "$@"', "sh", *near.launch)
    )
    assert dispositions(measure(tmp_path / "one", there.run_of(1), noisy)) == ["ok"]
    gone = there.make(tmp_path, "gone", launch=("sh", "-c", "echo no route to host >&2; exit 255"))
    outcome = measure(tmp_path / "two", there.run_of(1), gone)
    assert outcome.reason == "gone cannot be reached: no route to host"


# ------------------------------------------------------------------------------------------------ the frames


@pytest.mark.sampled
def test_frames_come_whole_however_they_are_cut_and_damage_is_noticed():
    chosen = random.Random(sampling.number("frames"))
    said = [frames.Heard(n, chosen.randbytes(chosen.choice((0, 10, 4000))) * 3) for n in range(20)]
    data = b"banner\n" + frames.MAGIC + b"".join(map(frames.packed, said))
    unpacked = frames.Frames(frames.Up, magic=True)
    found = []
    while data:
        size = chosen.randint(1, 3000)
        found += unpacked.feed(data[:size])
        data = data[size:]
    assert found == said
    whole = frames.packed(frames.Heard(0, b"x" * 4000))
    for _ in range(200):
        bad = bytearray(whole)
        bad[chosen.randrange(len(bad))] ^= 1 << chosen.randrange(8)
        try:
            for frame in frames.Frames(frames.Up).feed(bytes(bad)):
                assert isinstance(frame, frames.Up)
        except frames.Broken:
            pass
