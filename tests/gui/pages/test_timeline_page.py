"""The page that profiles: controls, both backends on one axis, tables, parts, cold start, diagnosis."""

import csv
import io
import sys
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication, QFileDialog

from bench.results.machine_limits import MachineLimits
from bench.results.profile_records import ProfileJob
from bench.results.records import BackendInfo
from bench.run.kinds.profile import KIND as PROFILE
from bench.views import trace as profile_trace
from gui.pages.timeline import TimelinePage, profile_details
from gui.sessions.profile_session import PROCESS, ProfileSession
from tests.gui.pages import profiled
from tests.gui.pages.test_runs_page import drop
from tests.gui.recorded import Shown

FAKE = Path(__file__).parent / "fake_profiler.py"
INFOS = tuple(
    BackendInfo(
        name=name,
        device=name.partition("-")[2],
        precisions=("fp32", "tf32") if "cuda" in name else ("fp32",),
        reference=f"ort-{name.partition('-')[2]}",
        unavailable="no driver" if name == "ort-cpu" else "",
    )
    for name in ("engine-cuda", "ort-cuda", "engine-cpu", "ort-cpu")
)


class Page(Shown):
    """The page with a session of its own."""

    def __init__(self, qtbot, tmp_path, *words, blocked=""):
        super().__init__(qtbot, TimelinePage)
        self.told = []
        worker = [sys.executable, str(FAKE), *words]
        self.session = ProfileSession(None, tmp_path / "runs", lambda: blocked, worker)
        self.session.message.connect(self.told.append)
        self.page.connect_to(self.session, lambda: ("lenet5-digits", "alexnet"))
        self.page.show_backends(INFOS)
        self.redraw.flush()

    def rest(self):
        """Until nothing is on its way."""
        self.qtbot.waitUntil(lambda: self.page.at_rest, timeout=20_000)
        self.redraw.flush()
        self.qtbot.waitUntil(lambda: self.page.at_rest, timeout=20_000)
        self.redraw.flush()

    def open_profile(self, path):
        self.session.open(path)
        self.rest()
        self.rest()
        return self.page


@pytest.fixture
def made(qtbot, tmp_path):
    """made(*words of the fake profiler): a page; its worker ends with the test."""
    pages = []

    def make(*words, **more):
        pages.append(Page(qtbot, tmp_path, *words, **more))
        return pages[-1]

    yield make
    for page in pages:
        page.session.quit()


@pytest.fixture
def page(made, tmp_path):
    return made().open_profile(profiled.two_gpus(tmp_path / "profile"))


def cells(table, name):
    at = [c.name for c in table.source.columns].index(name)
    return [table.source.index(i, at).data() for i in range(table.source.rowCount())]


def test_an_empty_page_offers_what_this_machine_can_profile(made):
    shown = made()
    controls = shown.page.controls
    assert shown.page.stack.currentIndex() == 0
    assert controls.chosen == ("engine-cuda", "ort-cuda")  # a GPU is there
    actions = {action.text(): action for action in controls.backends.menu().actions()}
    assert not actions["ort-cpu"].isEnabled()
    assert actions["ort-cpu"].toolTip() == "no driver"
    actions["ort-cuda"].trigger()
    assert controls.chosen == ("engine-cuda",)
    controls.batches.setCurrentText("1..8")
    controls.counters.click()
    job = controls.job()
    assert job.counters
    assert (job.model, job.backends, job.batches) == ("lenet5-digits", ("engine-cuda",), (1, 2, 4, 8))
    controls.copy_command()
    assert QApplication.clipboard().text() == (
        "python main.py profile lenet5-digits --backend engine-cuda --batch 1..8 --counters"
    )
    actions["engine-cuda"].trigger()
    controls.run_button.click()
    assert shown.told == ["Choose a backend to profile."]


def test_a_profile_is_taken_and_shown_as_it_comes(qtbot, made):
    shown = made()
    controls = shown.page.controls
    controls.batches.setCurrentText("1,4")
    controls.runs.setValue(2)
    with qtbot.waitSignal(shown.session.ended, timeout=30_000):
        qtbot.mouseClick(controls.run_button, Qt.MouseButton.LeftButton)
        assert not controls.run_button.isVisible()
    shown.rest()
    shown.rest()
    assert shown.told == []
    folder = PROFILE.open(shown.session.state.folder)
    assert [m.case.key for m in folder.measurements()] == [c.key for c in folder.header.cases]
    assert len(folder.measurements()) == 4
    assert folder.header.environment.machine == "fake"
    page = shown.page
    assert [group.backend for group in page.view.groups] == ["engine-cuda", "ort-cuda"]
    assert page.view.groups[0].spans[-1].title == "profiled pass 2"
    assert "kept in runs/" in page.words.text()
    assert controls.run_button.isVisible()


def test_a_profile_by_the_worker_itself(qtbot, tmp_path):
    session = ProfileSession(None, tmp_path / "runs")
    told = []
    session.message.connect(told.append)
    job = ProfileJob(model="lenet5-digits", backends=("engine-cpu",), runs=2, budget_s=0.1)
    with qtbot.waitSignal(session.ended, timeout=60_000):
        session.run(job)
    session.quit()
    assert told == []
    assert [case.disposition for case in session.state.cases] == ["ok"]
    session.read(session.state.fine)
    (case,) = session.state.fine
    qtbot.waitUntil(lambda: session.state.read(case) is not None, timeout=10_000)
    tracks = [track.title.partition(",")[0] for track in session.state.read(case).tracks.tracks]
    assert tracks == ["cold start", "passes", "steps"]


def test_a_case_that_fails_is_told_and_the_other_shown(qtbot, made):
    shown = made("failing")
    with qtbot.waitSignal(shown.session.ended, timeout=30_000):
        shown.page.controls.run_button.click()
    shown.rest()
    assert "no profiler can be attached here" in shown.told[0]
    assert [group.backend for group in shown.page.view.groups] == ["engine-cuda"]


def test_a_profile_is_cancelled(qtbot, made):
    shown = made("hang")
    shown.page.controls.run_button.click()
    qtbot.waitUntil(lambda: "profiling" in shown.session.standing.words, timeout=20_000)
    with qtbot.waitSignal(shown.session.ended, timeout=20_000):
        shown.page.controls.cancel_button.click()
    assert "Cancelled" in shown.page.words.text()


def test_nothing_is_profiled_while_something_else_is_timed(made):
    shown = made(blocked="A comparison is running.")
    shown.page.controls.run_button.click()
    assert shown.told == ["A comparison is running."]
    assert not shown.session.active


def test_it_opens_on_one_pass_of_the_backend_in_the_tables(page):
    assert page.batch == 1
    assert page.details.backend.currentText() == "engine-cuda"
    own, longest = (group.spans[2] for group in page.view.groups)
    assert own.title == longest.title == "profiled pass 1"
    length = page.view.axis.end - page.view.axis.start
    assert 1.0 < length / (own.end_ns - own.start_ns) < 1.3
    box = page._choices["span"]
    assert box.currentText() == "engine-cuda: profiled pass 1"
    assert box.width() >= box.fontMetrics().horizontalAdvance(box.currentText()), "it can be read"


def test_another_batch_another_zero(page, qtbot):
    box = page._choices["batch"]
    box.setCurrentIndex(1)
    box.activated.emit(1)
    page.redraw()
    qtbot.waitUntil(lambda: "batch 16" in page.view.groups[0].title, timeout=10_000) if page.at_rest else None
    qtbot.waitUntil(lambda: page.at_rest)
    page.redraw()
    assert [group.title for group in page.view.groups] == [
        "engine-cuda, fp32, batch 16", "ort-cuda, fp32, batch 16"]  # fmt: skip
    anchors = page._choices["anchor"]
    anchors.setCurrentIndex(anchors.findData(PROCESS))
    anchors.activated.emit(0)
    page.redraw()
    assert page.view.anchor == PROCESS


def test_the_tables_are_nvprofs_with_the_lines_of_ninety_percent_marked(page, qtbot):
    tables = page.details.tables
    rows = tables.activities.source
    assert cells(tables.activities, "name") == ["conv", "fc1", "memcpy HtoD", "pool1", "memcpy DtoH"]
    # Of a pass: conv1 40 and conv2 70 of 150 µs, three passes.
    assert cells(tables.activities, "share")[0] == "73.33 %"
    assert cells(tables.activities, "calls")[0] == "6"
    assert cells(tables.activities, "mean_ns")[0] == "55.0 µs"
    bold = [rows.index(place, 0).data(Qt.ItemDataRole.FontRole) is not None for place in range(5)]
    assert bold == [True, True, True, False, False]
    assert "93.3" in tables.heading("activities")
    assert cells(tables.calls, "name")[0] == "cudaStreamSynchronize"
    assert rows.index(0, 8).data(Qt.ItemDataRole.ToolTipRole).startswith("void kernel::conv<float>")
    tables.by_box.setCurrentIndex(tables.by_box.findData("node"))
    tables.update_tables()
    qtbot.waitUntil(lambda: "conv2" in cells(tables.activities, "name"), timeout=10_000)
    tables.filter.setText("conv")
    qtbot.waitUntil(lambda: cells(tables.activities, "name") == ["conv2", "conv1"], timeout=10_000)
    assert cells(tables.calls, "name") == []


def test_a_line_of_a_table_goes_to_its_first_event(page):
    tables = page.details.tables
    tables.activities.setCurrentIndex(tables.activities.model().index(1, 0))
    assert page.view.selected.name == "fc1"
    assert page.view.selected.run == 0
    assert "grid 16 × 6 × 1" in page.facts.text()
    tables.calls.setCurrentIndex(tables.calls.model().index(1, 0))
    assert page.view.selected.name == "cudaLaunchKernel_v7000"


def test_tables_sort_and_copy(page, qtbot):
    table = page.details.tables.activities
    table.sortByColumn([c.name for c in table.source.columns].index("max_ns"), Qt.SortOrder.AscendingOrder)
    assert cells(table, "name")[0] == "memcpy DtoH"
    table.copy_csv()
    rows = list(csv.DictReader(io.StringIO(QApplication.clipboard().text())))
    assert rows[0]["name"] == "memcpy DtoH"
    assert int(rows[-1]["max_ns"]) == 70_000
    table.copy_markdown()
    assert "| time % |" in QApplication.clipboard().text()


def test_the_parts_of_every_case_add_up_to_its_pass(page, qtbot):
    parts = page.details.parts
    assert [bar.title for bar in parts.bars] == [
        "engine-cuda, batch 1", "ort-cuda, batch 1", "engine-cuda, batch 16", "ort-cuda, batch 16",
    ]  # fmt: skip
    for bar in parts.bars:
        assert sum(time_ns for _, time_ns in bar.parts) == pytest.approx(bar.wall)
        assert bar.plain == pytest.approx(0.9 * bar.wall)
    assert parts.bars[0].figures == "174 µs = 157 µs + 17.4 µs profiler"
    page.details.setCurrentIndex(1)
    seen = [rect for _, rect, _ in parts._rects(parts.bars[0], 6)]
    assert seen[-1].right() == pytest.approx(parts._rects(parts.bars[2], 66)[-1][1].right())  # shares
    scale = page.details._scale
    scale.setCurrentIndex(1)
    scale.activated.emit(1)
    assert (
        parts._rects(parts.bars[0], 6)[-1][1].right() < parts._rects(parts.bars[2], 66)[-1][1].right() - 100
    )
    qtbot.mouseClick(parts, Qt.MouseButton.LeftButton, pos=QPoint(200, 2 * 30 + 12))
    assert page.batch == 16
    assert "profiled pass took" in page.details._remarks.text()


def test_what_outliers_took_is_not_laid_to_the_profiler():
    events = profiled.gpu_events()

    def figures(profiled_ns, pass_ns):
        made = msgspec.structs.replace(
            profiled.measured("engine-cuda", events), profiled_ns=profiled_ns, pass_ns=pass_ns
        )
        return profile_details.bars([made])[0].figures

    assert figures((100e3, 120e3, 300e3), (90e3,)) == "174 µs, median 120 µs = 90.0 µs + 30.0 µs profiler"
    assert figures((100e3,), (150e3,)) == "174 µs, median 100 µs; 150 µs without a profiler"
    assert figures((), ()) == "174 µs"


def test_the_cold_start_is_told_apart(page):
    lines = page.details.cold.steps
    assert lines[0].title == "engine-cuda, batch 1: 300 ms to the steady state"
    assert [line.title for line in lines[1:4]] == ["context creation", "NVRTC compile", "first run"]
    assert "ort-cuda, batch 1: 450 ms" in lines[4].title
    assert cells(page.details.process, "max_rss_nbytes") == ["512.0 MiB", "512.0 MiB"]


def test_what_holds_an_operator_back_is_said(made, tmp_path):
    path = profiled.two_gpus(tmp_path / "profile", (1,))
    with_limits(path)
    page = made().open_profile(path)
    table = page.details.findings
    assert cells(table, "nodes") == ["conv2", "conv1", "fc1", "pool1"]
    assert "far from every limit (14 % of arithmetic)" in cells(table, "sentence")[0]
    assert "1.00 T" in page.details._note.text()
    page.details.setCurrentWidget(table.parentWidget())
    for width, spared in ((700, True), (1400, False)):
        table.setFixedWidth(width)
        QApplication.processEvents()
        QApplication.processEvents()
        at = [column.name for column in table.source.columns].index("launches")
        assert table.isColumnHidden(at) is spared, "figures give way to the sentence"


def test_operators_stand_under_the_roofline(made, tmp_path):
    path = profiled.two_gpus(tmp_path / "profile", (1,))
    with_limits(path)
    page = made().open_profile(path)
    chart = page.details.roofline.chart
    assert {series.label for series in chart.panels[0].series} >= {"measured limit", "conv2"}


def with_limits(path):
    """The profile's folder with what its machine reaches."""
    folder = PROFILE.open(path)
    limits = {"A GPU": MachineLimits("A GPU", 1e11, 1e12, "a copy", "a product", "A GPU", "")}
    folder.header = msgspec.structs.replace(folder.header, limits=limits)
    folder._write()


def test_a_profile_of_cpus_has_steps_and_no_calls(made, tmp_path):
    found = [
        (
            profiled.measured(backend, events, notes=("on a GPU the profile would also show every kernel",)),
            events,
        )
        for backend, events in (("engine-cpu", profiled.cpu_events()), ("ort-cpu", profiled.cpu_events(2.0)))
    ]
    page = made().open_profile(profiled.write(tmp_path / "profile", found))
    tables = page.details.tables
    assert tables.heading("activities").startswith("Steps")
    assert not tables.calls.isVisible()
    assert "engine-cpu, ort-cpu: on a GPU the profile" in page._notes.text()
    assert "On a GPU the profile would also show every kernel." in page.details._remarks.text()
    assert [track.title for track in page.view.groups[0].tracks][-1] == "steps, thread 1"


def test_what_cannot_be_read_is_one_sentence(made, tmp_path):
    shown = made()
    shown.session.open(tmp_path)
    shown.rest()
    assert shown.told == [f"{tmp_path} holds no profile (no such file or directory)"]
    path = profiled.two_gpus(tmp_path / "profile", (1,))
    events = next((path / "events").iterdir())
    events.write_bytes(events.read_bytes()[:-40])
    shown.open_profile(path)
    assert len(shown.told) == 2
    assert "cut short" in shown.told[1]
    assert shown.page.details.parts.bars  # what the record holds is shown all the same


def test_the_trace_is_saved_and_reads_back(made, tmp_path, qtbot):
    shown = made()
    shown.session.save_trace(tmp_path / "trace.json")
    assert "no profile" in shown.told[0]
    shown.open_profile(profiled.two_gpus(tmp_path / "profile", (1,)))
    shown.session.save_trace(tmp_path / "trace.json")
    qtbot.waitUntil(lambda: len(shown.told) == 2, timeout=30_000)
    assert shown.told[1].startswith(f"Saved {tmp_path / 'trace.json'}")
    found = profile_trace.read(tmp_path / "trace.json")
    assert [len(events.activities) for events in found] == [18, 18]


def test_the_window_has_the_page_and_its_actions(make_window, monkeypatch, tmp_path, qtbot):
    window = make_window("ok")
    page = next(page for page in window.pages if isinstance(page, TimelinePage))
    window.menu_actions.by_name["profile"].trigger()
    assert window.page is page
    window.redraw.flush()
    assert page.controls.chosen == ("engine-cpu", "ort-cpu")  # the fake worker's machine has no GPU
    path = profiled.two_gpus(tmp_path / "profile", (1,))
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(path))
    window.menu_actions.by_name["open-profile"].trigger()
    qtbot.waitUntil(lambda: bool(window.profiles.session.state.fine), timeout=10_000)
    window.redraw.flush()
    assert page.stack.currentIndex() == 1
    other = profiled.two_gpus(tmp_path / "other", (16,))
    assert drop(window, other / "results.jsonl")
    qtbot.waitUntil(lambda: window.profiles.session.state.batches == [16], timeout=10_000)
    window.profiles.session._supervisor = object()  # as while one is taken
    try:
        assert "profile is being recorded" in next(filter(None, (b() for b in window.session.blockers)))
    finally:
        window.profiles.session._supervisor = None


def test_tables_are_of_what_a_gpu_did_until_another_backend_is_chosen(made, tmp_path):
    cpu, gpu = profiled.cpu_events(), profiled.gpu_events()
    found = [
        (profiled.measured(backend, events, batch, device="cpu" if events is cpu else "A GPU"), events)
        for batch in (1, 4)
        for backend, events in (("engine-cpu", cpu), ("engine-cuda", gpu))
    ]
    page = made().open_profile(profiled.write(tmp_path / "profile", found))
    assert page.details.backend.currentText() == "engine-cuda"
    page.details.choose("engine-cpu")
    other = page.details._cases[::-1]
    page.details.show_cases(page.details._profile, page.details._fine, other, {})
    assert [page.details.backend.itemText(i) for i in range(2)] == ["engine-cuda", "engine-cpu"]
    assert page.details.backend.currentText() == "engine-cpu", "as it was chosen"
