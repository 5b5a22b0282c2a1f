"""Whatever a worker does, the window lives, keeps what was measured and says what went wrong."""

import os
from pathlib import Path

import pytest
from PySide6.QtCore import QTimer

from bench.results.records import Job
from bench.run import beforehand
from bench.run.kinds.comparison import KIND as COMPARISON
from gui.shell.main_window import END, STAY
from kernels.cache import cache_dir
from tests.gui.answering import Answers

JOB = Job(models=("net",), backends=("engine-cpu", "ort-cpu"), batches=(1, 2), timeout_s=60)


def dispositions(found):
    return [m.disposition for m in found.values()]


def on_disk(window):
    return [m.disposition for m in COMPARISON.open(window.state.folder).measurements()]


def test_a_run_fills_the_state_the_folder_and_the_page(make_window, run_to_end):
    window = make_window("ok")
    found = run_to_end(window, JOB)
    assert dispositions(found) == ["ok"] * 4
    assert on_disk(window) == ["ok"] * 4
    held = COMPARISON.open(window.state.folder).header
    assert len(held.cases) == 4
    assert held.environment.machine == "fake"
    assert held.models[0].title == "The net net"
    assert held.command.startswith("python main.py compare net --backend engine-cpu")
    page = window.pages[0]
    assert page.views["op-time"].title.startswith("The net net")
    assert page.table.source.rowCount() == 4
    assert not window.session.standing.active
    words = window.progress.words.text()
    assert words.startswith("4 of 4 cases ok in 0:0")
    assert words.endswith(f"run kept in {window.state.folder}")


def test_what_speaks_against_measuring_now_is_told_and_stops_nothing(make_window, run_to_end, monkeypatch):
    words = "Another program, burn, uses 180 % of a core."
    seen = []

    def look():
        seen.extend(path.stem for path in (cache_dir() / "measuring").glob("*.json"))
        return beforehand.Looked((words,))

    monkeypatch.setattr(beforehand, "look", look)
    window = make_window("ok")
    told = []
    window.session.looked.connect(lambda _: told.append(window.banner.text))
    assert dispositions(run_to_end(window, JOB)) == ["ok"] * 4
    assert told == [words]
    assert not window.banner.text, "it is over"
    assert str(os.getpid()) in seen, "other instances see that this one measures"
    assert not (cache_dir() / "measuring" / f"{os.getpid()}.json").exists()


def test_a_case_is_drawn_as_it_looks_so_far_until_it_is_measured(make_window, qtbot):
    window = make_window("soon")
    window.start(JOB)
    # At once: three say how they look before the measured one is written, and one of them is that one.
    qtbot.waitUntil(lambda: (len(window.state.provisional()), len(window.state.measurements)) == (3, 1))
    window.redraw.flush()
    page = window.pages[0]
    (panel,) = page.views["op-time"].chart.panels
    lines = {s.label: ([p.x for p in s.points], [p.x for p in s.provisional]) for s in panel.series}
    assert lines == {"ort-cpu": ([1], [2]), "engine-cpu": ([], [1, 2])}
    plot = page.views["op-time"].plots[""]
    assert "so far" in plot.words_at(0.0)
    assert len(plot._items["engine-cpu"].unsure.data) == 2
    names = [column.name for column in page.table.source.columns]
    shown = [page.table.source.index(i, names.index("disposition")).data() for i in range(4)]
    assert shown == ["ok", "timing", "timing", "timing"]
    assert len(page.table.copied().rows) == 1, "what is copied was measured"
    offered = next(c for c in window.state.all_charts() if c.name == "net-op-time")
    assert [s.label for s in offered.panels[0].series] == ["ort-cpu"], "and so is what is exported"
    with qtbot.waitSignal(window.session.ended):
        window.session.cancel()
    window.redraw.flush()
    assert page.table.source.rowCount() == 1
    assert not any(s.provisional for s in page.views["op-time"].chart.panels[0].series)


def test_failures_are_marked_and_listed_and_the_rest_goes_on(make_window, run_to_end):
    window = make_window("failing", "ok")
    found = run_to_end(window, JOB)
    assert dispositions(found) == ["out_of_memory", "incorrect", "ok", "ok"]
    assert [line[1] for line in window.problems.lines] == ["out of memory", "incorrect"]
    assert "40 GiB" in window.problems.lines[0][2]
    assert window.progress.words.text().startswith("2 of 4 cases ok, 1 out of memory, 1 incorrect in 0:")
    assert not window.problems_dock.isHidden()
    marks = [m for s in window.pages[0].views["op-time"].chart.panels[0].series for m in s.marks]
    assert {m.disposition for m in marks} == {"out_of_memory", "incorrect"}
    assert "40 GiB" in window.pages[0].views["op-time"].plots[""].words_at(0.0)
    run_to_end(window, JOB)
    assert window.problems_dock.isHidden(), "what came up by itself goes by itself"


def test_a_segfault_costs_one_case_and_leaves_the_window_alive(make_window, run_to_end):
    window = make_window("segv", "ok")
    found = run_to_end(window, JOB)
    assert dispositions(found) == ["ok", "crashed", "ok", "ok"]
    crashed = next(m for m in found.values() if m.disposition == "crashed")
    assert "SIGSEGV" in crashed.reason
    assert "illegal address in conv/04" in crashed.reason
    assert on_disk(window).count("crashed") == 1
    assert "illegal address" in COMPARISON.open(window.state.folder).log.read_text()
    assert window.isVisible()


def test_garbage_is_logged_and_passed_over(make_window, run_to_end):
    window = make_window("garbage")
    found = run_to_end(window, JOB)
    assert dispositions(found) == ["ok"] * 4
    assert any("no message" in reason for _, _, reason in window.problems.lines)


def test_a_flood_leaves_the_event_loop_free(make_window, run_to_end):
    window = make_window("flood")
    window.page.prepare()
    beats, batches = [], []
    timer = QTimer()
    timer.setInterval(2)
    timer.timeout.connect(lambda: beats.append(1))
    timer.start()
    window.session.worker.messages.connect(lambda messages: batches.append((len(messages), len(beats))))
    found = run_to_end(window, JOB)
    timer.stop()
    assert dispositions(found) == ["ok"] * 4
    # How long it may block is measured where nothing else runs; here, that what comes is taken in parts and
    # the loop is served between them.
    sizes = [size for size, _ in batches]
    assert sum(sizes) > 1_500
    assert max(sizes) < sum(sizes) / 2
    assert batches[-1][1] - batches[0][1] >= len(batches) // 2


def test_a_hanging_worker_is_cancelled_and_what_it_had_not_measured_can_go_on(make_window, qtbot):
    window = make_window("hang", "ok")
    window.start(JOB)
    qtbot.waitUntil(lambda: window.session.standing.phase == "running" and window.session.standing.total == 4)
    assert window.progress.cancel_button.isVisible()
    with qtbot.waitSignal(window.session.ended):
        window.progress.cancel_button.click()
    assert window.state.empty
    assert on_disk(window) == []
    assert window.progress.words.text().startswith("Cancelled: 0 of 4 cases ok in 0:")
    with qtbot.waitSignal(window.session.ended):
        window.session.go_on(window.state.folder)
    assert [m.disposition for m in window.state.measurements] == ["ok"] * 4


def test_a_pause_lets_the_worker_go_and_loses_nothing(make_window, qtbot):
    window = make_window("held", "ok")
    window.start(JOB)
    qtbot.waitUntil(lambda: len(window.state.measurements) >= 1)
    window.progress.pause_button.click()
    qtbot.waitUntil(lambda: window.session.standing.phase == "paused")
    assert window.session.worker.process_id == 0
    assert window.progress.pause_button.text() == "Go on"
    assert len(window.state.measurements) == 1
    with qtbot.waitSignal(window.session.ended):
        window.progress.pause_button.click()
    assert [m.disposition for m in window.state.measurements] == ["ok"] * 4


def test_the_time_left_knows_that_a_pause_makes_a_case_begin_anew(make_window, qtbot, monkeypatch):
    window = make_window("held", "ok")
    window.start(JOB)
    qtbot.waitUntil(lambda: len(window.state.measurements) >= 1)
    pace = window.session._pace
    monkeypatch.setattr(pace, "left", lambda *a: (4.0, 4.0))

    def interrupted(now):
        if window.session.standing.phase == "pausing":
            window.session._stand()  # that the process is gone may be seen before it is told
            assert window.session.standing.phase == "paused"
        monkeypatch.setattr(pace, "left", lambda *a: (16.0, 16.0))

    monkeypatch.setattr(pace, "interrupted", interrupted)
    window.progress.pause_button.click()
    qtbot.waitUntil(lambda: window.session.standing.phase == "paused")
    qtbot.waitUntil(lambda: window.session.standing.left == (16.0, 16.0))
    with qtbot.waitSignal(window.session.ended):
        window.progress.pause_button.click()


def test_a_job_that_is_given_up_is_told_in_the_banner(make_window, run_to_end):
    window = make_window("quit")
    run_to_end(window, JOB)
    assert "The model has no inputs" in window.banner.text
    assert window.progress.words.text().startswith("Nothing was measured")


def test_a_worker_that_cannot_start_is_told_with_its_last_words(make_window, run_to_end):
    window = make_window("mute")
    run_to_end(window, JOB)
    assert "libnothing.so" in window.banner.text
    assert window.isVisible()


def test_a_folder_that_cannot_be_written_is_told(make_window, tmp_path):
    window = make_window("ok")
    (tmp_path / "runs").write_text("in the way")
    window.start(JOB)
    assert "cannot" in window.banner.text
    assert "start Kernelscope in another folder" in window.banner.text, "there is no field for a name"
    assert not window.session.active


def gone(process):
    """Whether a process has ended (of one that nobody has asked for its exit code, the name stays)."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes() == b""
    except OSError:
        return True


@pytest.mark.parametrize("answer", [STAY, END])
def test_closing_while_running_asks_once_and_keeps_the_run(make_window, qtbot, answer):
    answers = Answers(answer)
    window = make_window("held")
    window.start(JOB)
    qtbot.waitUntil(lambda: len(window.state.measurements) >= 1)
    process = window.session.worker.process_id
    assert window.close() == (answer == END)
    assert not answers.left
    if answer == END:
        qtbot.waitUntil(lambda: gone(process))
        assert "ok" in on_disk(window)
    else:
        assert window.session.active


@pytest.mark.parametrize(
    ("owner", "attribute", "words"),
    [("ladders", "writing", "A ladder is running"), ("profiles", "active", "A profile is being recorded")],
)
def test_closing_while_a_ladder_or_a_profile_runs_asks_once(
    make_window, monkeypatch, tmp_path, owner, attribute, words
):
    answers = Answers(STAY, END)
    window = make_window("mute", begin=False)
    session = getattr(window, owner).session
    monkeypatch.setattr(type(session), attribute, property(lambda self: tmp_path))
    assert not window.close()
    assert answers.asked == [(words, "What was measured is kept.")]
    assert window.close()
    assert not answers.left


def test_a_slot_that_raises_is_shown_and_logged(make_window, fault_handler, tmp_path):
    from gui.base import faults

    window = make_window("ok")
    faults.start_log(tmp_path / "window.log")
    try:
        raise ValueError("a slot went wrong")
    except ValueError as error:
        fault_handler.report(error)
    assert "a slot went wrong" in window.banner.text
    assert "Traceback" in (tmp_path / "window.log").read_text()
    window.banner.dismiss()
    assert window.banner.text == ""
