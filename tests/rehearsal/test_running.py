"""Steps are run where they should be, ended when they should be, in order, and gone on with after a cut."""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from tests.rehearsal import __main__ as rehearsal
from tests.rehearsal import report, state
from tests.rehearsal.content import ROOT
from tests.rehearsal.machine import Machine
from tests.rehearsal.running import STANDIN, Runner, Stopped
from tests.rehearsal.schedule import Schedule
from tests.rehearsal.state import State
from tests.rehearsal.steps import PYTHON, Expect, Outcome, Step, Use

pytestmark = pytest.mark.slow

CPU = Machine(no_gpu="there is none")


def step(name: str, program: str = "print(1)", **more: object) -> Step:
    return Step(name, "some", (PYTHON, "-c", program), **more)  # type: ignore[arg-type]


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path / "work", CPU, threading.Event())


def test_a_step_runs_in_a_folder_of_its_own_with_what_it_uses(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DISPLAY", ":7")
    made = step("a text", "open('made', 'w').write('hello')", expect=Expect(made=("made",), silent=True))
    reads = step(
        "reads it",
        "import os, main; print(open('deep/file').read(), os.environ.get('DISPLAY'), os.environ['OWN'])",
        uses=(Use("a text", "deep/file"),),
        environment={"OWN": "{work}/x"},
        into="said.txt",
        expect=Expect(made=("said.txt",), says="hello None"),
    )
    known = {made.name: made, reads.name: reads}
    assert runner.run(made, known).outcome == "ok"
    assert runner.made(made)
    assert runner.run(reads, known).reason == ""
    assert (runner.work / "reads-it" / "said.txt").read_text() == f"hello None {runner.work}/x\n"


def test_a_step_that_fails_or_takes_too_long_says_so_without_a_path(runner: Runner):
    failing = step("fails", "import os, sys; print(1); sys.exit(os.getcwd())")
    assert runner.run(failing, {}).reason == "exit code 1: …"
    slow = runner.run(step("slow", "import time; print(1, flush=True); time.sleep(60)", timeout_s=0.5), {})
    assert (slow.outcome, slow.seconds < 20) == ("failed", True)
    assert "not done after 0.5 s" in slow.reason


WATCHED = """
import sys, time
before = open('kernels/90_mine.py').read()
print('waiting for a file to be saved', flush=True)
while open('kernels/90_mine.py').read() == before:
    time.sleep(0.02)
print('waiting for a file to be saved', flush=True)
try:
    time.sleep(60)
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_what_watches_its_files_is_given_one_and_ended_by_ctrl_c(runner: Runner):
    kernel = step(
        "a kernel",
        "import os; os.mkdir('made'); open('made/90_mine.py', 'w').write('# a rung')",
        expect=Expect(made=("made",), silent=True),
    )
    watched = step(
        "watched", WATCHED, uses=(Use("a kernel", "kernels"),), watch="kernels", expect=Expect((130,))
    )
    known = {kernel.name: kernel}
    assert runner.run(kernel, known).outcome == "ok"
    assert runner.run(watched, known).reason == ""


def test_a_rehearsal_that_is_stopped_ends_the_step_in_flight(tmp_path: Path):
    stop = threading.Event()
    runner = Runner(tmp_path, CPU, stop)
    threading.Timer(0.5, stop.set).start()
    began = time.monotonic()
    with pytest.raises(Stopped):
        runner.run(step("slow", "import time; time.sleep(60)"), {})
    assert time.monotonic() - began < 30


def test_a_standin_runs_the_programs_commands_and_nothing_else(tmp_path: Path):
    runner = Runner(tmp_path, Machine(gpu="simulated", standin=True), threading.Event())
    words = runner.arguments(Step("x", "some", (PYTHON, "main.py", "doctor")))
    assert words == [sys.executable, *STANDIN, str(ROOT / "main.py"), "doctor"]
    assert runner.arguments(Step("x", "some", (PYTHON, "-m", "y"))) == [sys.executable, "-m", "y"]


def test_steps_side_by_side_share_the_gpus_that_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    runner = Runner(tmp_path, Machine(gpu="some", gpus=("0", "1")), threading.Event())
    beside = tmp_path / "beside"
    beside.mkdir()
    # Each goes on once all are there.
    shows = (
        "import os, time; print(os.environ['CUDA_VISIBLE_DEVICES'])\n"
        f"open(f'{beside}/{{os.getpid()}}', 'w')\n"
        f"while len(os.listdir('{beside}')) < 4: time.sleep(0.02)\n"
    )
    steps = [step(str(number), shows) for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert {outcome.outcome for outcome in pool.map(lambda s: runner.run(s, {}), steps)} == {"ok"}
    seen = [(runner.folder_of(s) / "stdout.txt").read_text().strip() for s in steps]
    assert sorted(seen) == ["0", "0", "1", "1"]
    alone = step("alone", shows)
    assert runner.run(alone, {}).outcome == "ok"
    assert (runner.folder_of(alone) / "stdout.txt").read_text().strip() == "0"


# --------------------------------------------------------------------------------------------------- in order


class Fake(Runner):
    """Runs nothing; `fails` names the steps that fail."""

    def __init__(self, fails: tuple[str, ...] = (), there: bool = True) -> None:
        super().__init__(Path("nowhere"), CPU, threading.Event())
        self.ran: list[str] = []
        self.beside: list[set[str]] = []
        self._now: set[str] = set()
        self._fails = fails
        self._there = there

    def made(self, step: Step) -> bool:
        return self._there

    def run(self, step: Step, known: dict[str, Step]) -> Outcome:
        self.ran.append(step.name)
        self._now.add(step.name)
        time.sleep(0.05)
        self.beside.append(set(self._now))
        self._now.discard(step.name)
        if step.name == "odd":
            raise KeyError("made")
        failed = step.name in self._fails
        return Outcome(
            name=step.name, outcome="failed" if failed else "ok", reason="it broke" if failed else ""
        )


STEPS = [
    step("first", alone=True),
    step("made"),
    step("uses", uses=(Use("made", "x"),)),
    step("alone", alone=True),
    step("last"),
    Step("never", "some", left="it installs"),
    step("skipped", skip="no GPU"),
]


def rehearse(folder: Path, fake: Fake, wanted: list[Step], held: State, **more: object) -> list[str]:
    said: list[str] = []
    known = more.pop("known", STEPS)
    schedule = Schedule(known, held, folder, fake, say=said.append, **more)  # type: ignore[arg-type]
    try:
        schedule.run(wanted)
    finally:
        schedule.close()
    return said


def begun() -> State:
    return State(content="c", machine="cpu")


def test_steps_run_in_order_and_some_alone(tmp_path: Path):
    fake = Fake()
    said = rehearse(tmp_path, fake, STEPS, begun(), jobs=3)
    assert sorted(fake.ran) == sorted(["first", "made", "uses", "alone", "last"])
    assert fake.ran.index("made") < fake.ran.index("uses")
    assert [beside for beside in fake.beside if beside & {"first", "alone"}] == [{"first"}, {"alone"}]
    assert said[-1].startswith("[5/5] ")


def test_a_page_that_cannot_be_written_is_told_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    # To plan all steps and to look at this machine takes seconds, and is not what this is about.
    monkeypatch.setattr(rehearsal.machines, "look", lambda standin: CPU)
    monkeypatch.setattr(rehearsal.plans, "plan", lambda machine, first_ever: [step("doctor")])
    monkeypatch.setattr(rehearsal, "_begun", lambda *of: begun())
    (tmp_path / "file").touch()
    page = tmp_path / "file" / "page.md"
    asked = ["--only", "doctor", "--state", str(tmp_path / "state"), "--page", str(page)]
    assert rehearsal.main(asked) == 2
    assert f"cannot write {page}" in capsys.readouterr().err
    assert not list(tmp_path.rglob("stdout.txt"))


def test_what_was_kept_is_told_after_each_step_not_at_the_end(tmp_path: Path):
    held, seen = begun(), []
    rehearse(tmp_path, Fake(("uses",)), STEPS, held, kept=lambda: seen.append(sorted(held.outcomes)))
    assert len(seen) == 5
    assert seen[0] == ["first"]
    assert all(set(before) < set(after) for before, after in pairwise(seen))


def test_it_goes_on_where_it_was_cut_and_tries_again_what_failed(tmp_path: Path):
    held = begun()
    rehearse(tmp_path, Fake(("uses",)), STEPS, held, deadline=time.monotonic() - 1)
    assert held.outcomes == {}  # the time was over before anything began
    rehearse(tmp_path, Fake(("uses",)), STEPS[:3], held)
    kept = state.load(tmp_path, "c", "cpu")
    assert kept is not None
    assert [kept.outcomes[name].outcome for name in ("first", "made", "uses")] == ["ok", "ok", "failed"]
    fake = Fake()
    rehearse(tmp_path, fake, STEPS, kept)
    assert fake.ran == ["alone", "uses", "last"]
    assert kept.outcomes["uses"].before == "it broke"


def test_on_another_machine_what_is_needed_is_made_again(tmp_path: Path):
    held = begun()
    rehearse(tmp_path, Fake(), STEPS[:2], held)
    fake = Fake(there=False)
    rehearse(tmp_path, fake, [STEPS[2]], held)
    assert fake.ran == ["made", "uses"]


def test_a_fault_of_the_rehearsals_own_costs_its_step_alone(tmp_path: Path):
    held = begun()
    rehearse(tmp_path, Fake(), [step("odd"), STEPS[0]], held, known=[step("odd"), *STEPS])
    assert held.outcomes["odd"].reason == "the rehearsal itself failed: KeyError: 'made'"
    assert held.outcomes["first"].outcome == "ok"


def test_what_needs_a_failed_step_fails_with_it(tmp_path: Path):
    held = begun()
    fake = Fake(("made",))
    rehearse(tmp_path, fake, STEPS[:3], held)
    assert "uses" not in fake.ran
    assert held.outcomes["uses"].reason == "it needs “made”, which failed"


# ------------------------------------------------------------------------------------------------ the command


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [
        step("good"),
        step("bad", "raise SystemExit('broken')"),
        step("slow", "import time; time.sleep(60)"),
    ]
    monkeypatch.setattr(rehearsal.plans, "plan", lambda machine, first_ever=False: steps)
    monkeypatch.setattr(rehearsal.machines, "look", lambda standin=False: CPU)
    monkeypatch.setattr(rehearsal.content, "content_hash", lambda: "c" * 64)


@pytest.mark.usefixtures("planned")
def test_exit_codes_say_whether_all_is_well_failed_or_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    kept = ["--state", str(tmp_path)]
    assert rehearsal.main([*kept, "--only", "good"]) == 0
    assert rehearsal.main([*kept, "--only", "good", "--only", "slow", "--minutes", "0"]) == rehearsal.LEFT
    assert "1 are left, from “slow” on" in capsys.readouterr().err
    page = tmp_path / "page.md"
    assert rehearsal.main([*kept, "--part", "2/3", "--page", str(page)]) == 1
    assert "bad: exit code 1: broken" in page.read_text()
    assert rehearsal.main([*kept, "--only", "no such"]) == 2
    assert rehearsal.main([*kept, "--list"]) == 0
    assert "slow" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        rehearsal.main(["--part", "3/2"])
    assert ended.value.code == 2
    assert rehearsal.main(["--hash"]) == 0
    assert capsys.readouterr().out == "c" * 64 + "\n"
    assert report.NOT_YET in report.page([step("slow")], begun())


@pytest.mark.usefixtures("planned")
def test_ctrl_c_ends_it_cleanly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def interrupted(schedule: Schedule, wanted: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Schedule, "run", interrupted)
    assert rehearsal.main(["--state", str(tmp_path)]) == rehearsal.CANCELLED
