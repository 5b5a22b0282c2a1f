"""Runs on a machine elsewhere, seen from the window: chosen, waited for, lost and found again."""

import shlex
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from bench.commands.checks import Check
from bench.extras.remote import places
from bench.extras.remote.line import note_of
from bench.extras.remote.places import Place
from bench.results.records import BackendInfo, Job
from bench.run import elsewhere
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.words.version import described
from gui.form.where_box import ADD, WhereRow
from gui.pages.ladder import LadderPage
from gui.pages.timeline import TimelinePage
from gui.shell.main_window import STAY
from tests.bench.extras.remote import scripted, there
from tests.gui.answering import Answers

HERE = Path(__file__).parent
JOB = Job(models=("net",), backends=("engine-cuda", "ort-cuda"), batches=(1, 2), timeout_s=60)
NO_DRIVER = "no NVIDIA driver is installed"


def doctor(gpu="NVIDIA H100 80GB HBM3", **refused):
    found = [Check("gpu", "GPU", "ok", f"{gpu} (driver 550.54)")] if gpu else []
    for name in ("engine-cpu", "ort-cpu", "engine-cuda", "ort-cuda"):
        why = refused.get(name.replace("-", "_"), "" if gpu or name.endswith("cpu") else NO_DRIVER)
        found.append(Check("backends", name, "note" if why else "ok", why or "can run (fp32, tf32)"))
    return tuple(found)


@pytest.fixture
def add(tmp_path, monkeypatch):
    """add(name, …): a place as `remote add` leaves it, reached by a line of the tests."""
    monkeypatch.setenv("KERNELSCOPE_CONFIG", str(tmp_path / "config" / "kernelscope.toml"))
    plans = {}

    def command(on, kind):
        there = [sys.executable, str(HERE / "fake_worker.py"), str(tmp_path / f"state-{on}"), "ok"]
        return [sys.executable, str(HERE / "fake_line.py"), str(tmp_path), on, plans[on], "--", *there]

    monkeypatch.setattr(elsewhere, "worker_command", command)

    def made(name, plan="", **more):
        plans[name] = plan
        known = {"env": "env-1", "program": "program-1", "version": described(), "doctor": doctor()}
        places.save(Place(name=name, host="user@host", folder="/home/user/k", **(known | more)))

    return made


@pytest.fixture
def real(tmp_path, monkeypatch):
    """A place that is this machine, reached by the program's own line. Its worker's figures are known, and a
    case takes it 0.3 s."""
    monkeypatch.setenv("KERNELSCOPE_CONFIG", str(tmp_path / "config" / "kernelscope.toml"))
    place = there.make(tmp_path)
    monkeypatch.setattr(elsewhere, "worker_command", lambda on, kind: there.command(place))
    yield place
    there.until(lambda: not there.processes(place))


def choose(box, name):
    """As the user does."""
    box.setCurrentIndex(box.findData(name))
    box.activated.emit(box.currentIndex())


def lines(tmp_path):
    file = tmp_path / "lines"
    return file.read_text().splitlines() if file.exists() else []


def greyed(window):
    shown = (window.form.backends.item(i) for i in range(window.form.backends.count()))
    return {i.text(): i.toolTip() for i in shown if not i.flags() & Qt.ItemFlag.ItemIsEnabled}


@pytest.mark.sampled(4, "where")
def test_without_a_place_there_is_this_machine_and_how_to_add_one(make_window, add):
    window = make_window("ok")
    box = window.form.where
    assert box.offered == ["", ADD]
    assert box.currentText() == "This machine"
    choose(box, ADD)
    assert "remote add lab user@host" in window.banner.text
    assert box.currentText() == "This machine", "the entry that adds one is no place"
    window.banner.button.click()
    assert QApplication.clipboard().text() == elsewhere.ADDING
    for page in (LadderPage, TimelinePage):
        window.tabs.setCurrentWidget(window.page_of(page))
        window.redraw.flush()
        (row,) = window.page_of(page).findChildren(WhereRow)
        assert row.isHidden(), "the forms of ladder and profile are as small as before"


@pytest.mark.sampled(4, "where")
def test_a_place_that_was_added_meanwhile_is_offered_when_the_user_comes_back(make_window, add, qtbot):
    window = make_window("ok")
    add("lab")
    window.where.look()
    qtbot.waitUntil(lambda: window.form.where.offered == ["", "lab", ADD])
    assert window.form.where.itemText(1) == "lab: NVIDIA H100 80GB HBM3"


def test_what_cannot_run_there_is_grey_with_the_reason(make_window, add, qtbot, tmp_path):
    add("lab")
    add("old", version="0.0.1 (00000000)")
    add("bare", plan="refused", doctor=doctor(gpu=""))
    window = make_window("ok")
    here = greyed(window)
    assert here == {"engine-cuda": NO_DRIVER, "ort-cuda": NO_DRIVER}
    box = window.form.where
    assert box.offered == ["", "bare", "lab", "old", ADD]
    old = box.model().item(3)
    assert not old.isEnabled()
    assert "remote update old" in old.toolTip()
    choose(box, "bare")
    assert greyed(window) == here, "as its last doctor said, though it cannot be reached"
    choose(box, "lab")
    assert greyed(window) == {}
    qtbot.waitUntil(lambda: lines(tmp_path) != [])
    assert window.form.job().backends == ()
    window.form.copy_command()
    assert shlex.split(QApplication.clipboard().text())[-2:] == ["--on", "lab"]
    choose(box, "")
    assert greyed(window) == here


@pytest.mark.sampled(4, "where")
def test_what_is_here_alone_is_not_offered_there(make_window, add, qtbot):
    add("lab")
    window = make_window("ok")
    rival = BackendInfo(name="own-cpu", device="cpu", precisions=("fp32", "fp8"), reference="ort-cpu")
    window.where.see("", (*window.backends, rival))
    window.form.backends.check([*window.form.backends.usable])
    assert "own-cpu" in window.form.backends.checked
    page = window.page_of(TimelinePage)
    window.tabs.setCurrentWidget(page)
    window.redraw.flush()
    assert page.controls.chosen == ("engine-cpu", "ort-cpu", "own-cpu")
    choose(window.form.where, "lab")
    window.redraw.flush()
    assert greyed(window) == {"own-cpu": "It is not installed on lab."}
    assert page.controls.chosen == ("engine-cuda", "ort-cuda"), "a GPU first, as here"
    choose(window.form.where, "")
    assert "own-cpu" in window.form.backends.usable


def test_a_run_there_looks_as_one_here_and_says_where_it_was(make_window, add, run_to_end, tmp_path):
    add("lab")
    window = make_window("ok")
    choose(window.form.where, "lab")
    found = run_to_end(window, JOB)
    assert [m.disposition for m in found.values()] == ["ok"] * 4
    held = COMPARISON.open(window.state.folder).header
    assert held.environment.machine == "lab"
    assert held.environment.gpu == "NVIDIA H100 80GB HBM3"
    assert held.command.endswith("--on lab")
    assert lines(tmp_path)[0] == "--warm", "it was ready before the run began"
    again = make_window("ok", begin=False)
    assert again.where.name == "lab", "the choice is kept"
    assert greyed(again) == {}


@pytest.mark.sampled(4, "where")
def test_waiting_in_a_queue_is_shown_and_is_no_time_of_the_run(make_window, add, qtbot, tmp_path):
    add("lab", plan="queued", launch=("srun", "-p", "gpu"))
    window = make_window("ok")
    choose(window.form.where, "lab")
    assert greyed(window) == {}, "as its last doctor said"
    qtbot.wait(50)
    assert lines(tmp_path) == [], "nothing waits in a queue before there is something to measure"
    window.start(JOB)
    words = window.progress.words
    qtbot.waitUntil(lambda: words.text() == "Waiting in the queue of lab")
    assert not window.form.where.isEnabled(), "a run stays where it is"
    assert window.session.standing.left is None
    window.session.worker.supervisor.tick(1e9)  # however long
    assert window.session.active
    with qtbot.waitSignal(window.session.ended):
        (tmp_path / "turn").touch()
    assert words.text().startswith("4 of 4 cases ok")
    assert window.form.where.isEnabled()


@pytest.mark.sampled(4, "where")
def test_a_line_that_drops_is_told_and_nothing_is_lost(make_window, add, qtbot, tmp_path):
    add("lab", plan="drops")
    window = make_window("ok")
    choose(window.form.where, "lab")
    window.start(JOB)
    words = window.progress.words
    qtbot.waitUntil(lambda: words.text() == "No answer from lab; measuring goes on there")
    qtbot.waitUntil(lambda: len(COMPARISON.open(window.state.folder).measurements()) == 1)
    with qtbot.waitSignal(window.session.ended):
        (tmp_path / "back").touch()
    assert words.text().startswith("4 of 4 cases ok")
    assert not window.problems.lines


@pytest.mark.sampled(4, "where")
def test_a_machine_that_cannot_be_reached_is_said_in_a_sentence(make_window, add, run_to_end, tmp_path):
    add("lab", plan="refused")
    window = make_window("ok")
    choose(window.form.where, "lab")
    assert run_to_end(window, JOB) == {}
    assert "lab cannot be reached: ssh: connect to host lab port 22: Connection refused" in window.banner.text


@pytest.mark.sampled(4, "where")
def test_a_ladder_is_planned_for_the_gpu_that_is_there(make_window, add, qtbot, tmp_path):
    add("lab")
    add("farm")
    (tmp_path / "config" / "kernelscope.toml").write_text('on = "lab"\n')
    window = make_window("ok", begin=False)
    assert window.where.name == "lab", "as the configuration says"
    page = window.page_of(LadderPage)
    window.tabs.setCurrentWidget(page)
    qtbot.waitUntil(lambda: page.session.state.ladder is not None and page.at_rest)
    window.redraw.flush()
    assert page.session.state.ladder.job.device == "cuda"
    assert page.bar.device.itemText(page.bar.device.findData("cuda")) == "cuda"
    assert page.bar.run_button.isEnabled()
    assert not page.session.state.reading_words
    why_not = " ".join(info.refused for info in page.session.state.rungs)
    assert "Triton" not in why_not, "what is not installed here may be there"
    (row,) = page.findChildren(WhereRow)
    assert row.box.currentData() == "lab"
    choose(row.box, "")
    qtbot.waitUntil(lambda: page.at_rest and page.session.state.question.on == "")
    assert page.session.state.ladder.job.device == "cpu"
    assert window.form.where.currentData() == "", "one choice for the whole window"


@pytest.mark.sampled(4, "where")
@pytest.mark.parametrize("how", ["it goes on there", "it is ended there", "it has ended there"])
def test_a_window_that_closes_leaves_the_run_there_or_ends_it(make_window, real, qtbot, monkeypatch, how):
    end = "End it there and close" if how == "it is ended there" else "Leave it running on lab"
    answers = Answers(STAY, end)
    window = make_window("ok")
    choose(window.form.where, "lab")
    run = there.run_of(4, "gated")
    folder = window.session.new_folder(run)
    window.session.begin(folder, run.cases)
    qtbot.waitUntil(lambda: window.session.standing.done >= 1)
    assert not window.close()
    assert window.session.active
    measure = Path(real.folder, scripted.OPEN).touch
    if how == "it has ended there":
        measure()
        there.until(lambda: note_of(folder.path).done)  # all has come, and the window has read nothing of it
    assert window.close()
    assert all("lab measures the rest, and Resume fetches it" in words for _, words in answers.asked)
    measure()
    there.until(lambda: not there.workers(real))
    if how != "it has ended there":
        again = make_window("ok", begin=False)
        choose(again.form.where, "")  # a run is gone on with where it was
        with qtbot.waitSignal(again.session.ended):
            again.library.resume(folder.path)
        assert again.session.on == "", "the next run is on this machine again"
    figures = [m.samples_ns[0] for m in COMPARISON.open(folder.path).measurements()]
    assert figures == [figure for _, figure in there.said(real)], "each was measured once, and none is lost"
    assert len(figures) == len(run.cases)
