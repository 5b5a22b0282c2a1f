"""The ladder page with real CPU workers: planned, run, read, used in a comparison; a kernel of one's own."""

import time

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QFileDialog, QMenu

from bench.questions.ladder_questions import TASKS
from bench.results.ladder_records import REFERENCE
from bench.results.records import Job
from bench.run import defaults
from bench.run import watching as again
from bench.run.kinds.ladder import KIND as LADDER
from engine import net_rungs
from gui.menus.export import ExportActions
from gui.pages.ladder import LadderPage
from gui.pages.layers import LayersPage
from tests.gui import screenshots
from tests.gui.recorded import RECORDED

HEADER = '# op = "conv"\n# rung = 90\n# name = "mine"\n# idea = "Of a test."\n'
CRASH = """import os
import signal


def bind(p, inputs, output, workspace):
    os.kill(os.getpid(), signal.SIGSEGV)
"""


@pytest.fixture(autouse=True)
def _places(tmp_path, tmp_path_factory, monkeypatch):
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.chdir(tmp_path)
    # How well a kernel that was saved is timed is no part of what is seen of it.
    monkeypatch.setattr(again, "QUICK_BUDGET_S", 0.05)


def planned(window, qtbot):
    """The page in front, its ladder planned: that of the CPU, also where there is a GPU."""
    page = next(page for page in window.pages if isinstance(page, LadderPage))
    window.tabs.setCurrentWidget(page)
    qtbot.waitUntil(lambda: page.session.state.ladder is not None and page.at_rest)
    if page.session.state.ladder.job.device != "cpu":
        page.session.ask(msgspec.structs.replace(page.session.state.question, device="cpu"))
        qtbot.waitUntil(lambda: page.at_rest)
    window.redraw.flush()
    return page


def climb(window, page, qtbot, *rungs):
    """Run these rungs alone, with few samples."""
    qtbot.waitUntil(lambda: page.at_rest)
    page.session.ask(msgspec.structs.replace(page.session.state.question, rungs=rungs))
    qtbot.waitUntil(lambda: page.at_rest)
    ladder = page.session.state.ladder
    job = msgspec.structs.replace(ladder.job, budget_s=0.05, quick=True)
    page.session.state.ladder = msgspec.structs.replace(ladder, job=job)
    window.redraw.flush()
    page.bar.run_button.click()
    settled(window, page, qtbot)


def settled(window, page, qtbot):
    qtbot.waitUntil(lambda: page.at_rest)
    window.redraw.flush()


def result(page, rung):
    rows = page.table.source.rows
    return next((shown.result for shown in rows if shown.row.case.rung == rung), None)


def tab(page):
    return page.reader.tabs.tabText(page.reader.tabs.currentIndex())


@pytest.mark.off_screen
def test_at_first_the_default_model_s_first_convolution_is_ready_to_run(make_window, qtbot):
    window = make_window("ok")
    page = planned(window, qtbot)
    assert page.bar.model.currentData() == defaults.JOB.models[0]
    assert page.bar.op.currentData() == "conv"
    assert page.bar.node.currentData() == "conv1"
    assert page.bar.run_button.isEnabled()
    assert page.bar.run_button.isVisible()
    names = [shown.row.case.rung for shown in page.table.source.rows]
    assert names[0] == "shift_and_add"
    assert names[-1] == "reference"
    # While others are compiled and checked, one that was right so far says that it waits for them.
    first, state = page.table.source.rows[0].row.case, page.session.state
    for step in (state.found_right, lambda case: state.turn(case, "preparing")):
        step(first)
        window.redraw.flush()
        assert page.table.source.rows[0].result == "right, not timed yet"
        assert page.speed.chart.panels[0].bars[0].total == "right"
    state.turn(first, "timing")
    window.redraw.flush()
    assert page.table.source.rows[0].result == "timing…"
    state.end()
    window.redraw.flush()
    # What cannot run says why before anything is run.
    winograd = next(shown for shown in page.table.source.rows if shown.row.case.rung == "winograd")
    assert winograd.result == "refused"
    assert "kernel = 3" in winograd.why
    # Reading a rung: its idea, its source, and the difference to the one below.
    page.table.setCurrentIndex(page.table.model().index(1, 1))
    window.redraw.flush()
    assert page.reader.title.text() == "02 im2col"
    assert "GEMM" in page.reader.words.text()
    assert "def bind" in page.reader.source.code.toPlainText()
    qtbot.keyClick(page.table, Qt.Key.Key_Return)  # where the source is behind the table, it is in front now
    qtbot.mouseClick(page.reader.steps[1], Qt.MouseButton.LeftButton)
    window.redraw.flush()
    assert page.reader.title.text() == "03 batched_im2col"
    qtbot.mouseClick(page.reader.steps[0], Qt.MouseButton.LeftButton)
    window.redraw.flush()
    assert page.reader.title.text() == "02 im2col"
    page.reader.tabs.setCurrentIndex(1)
    assert page.reader.diff.titles[0].text() == "01 shift_and_add"
    assert page.reader.diff.changes
    # Another model, whose operator is one with rungs to compare; and back.
    for model in ("lenet5-fashion", defaults.JOB.models[0]):
        page.bar.model.setCurrentIndex(page.bar.model.findData(model))
        page.bar.model.activated.emit(page.bar.model.currentIndex())
        qtbot.waitUntil(lambda model=model: page.session.state.ladder.job.model == model and page.at_rest)
        window.redraw.flush()
        assert page.session.state.ladder.job.op == "conv"
        assert len(page.session.state.rungs) > 2
    # Another node of the model, by its name.
    page.bar.node.setCurrentIndex(page.bar.node.findData("conv2"))
    page.bar.node.activated.emit(page.bar.node.currentIndex())
    qtbot.waitUntil(lambda: page.session.state.ladder.job.node == "conv2")
    # The whole net as an operator: no node takes its rungs, and there is no more of the model to run.
    page.bar.op.setCurrentIndex(page.bar.op.findData("net"))
    page.bar.op.activated.emit(page.bar.op.currentIndex())
    qtbot.waitUntil(lambda: page.session.state.ladder.job.op == "net" and page.at_rest)
    window.redraw.flush()
    names = [shown.row.case.rung for shown in page.table.source.rows]
    assert names == [*(rung.name for rung in net_rungs.rungs("cpu")), "reference"]
    page.table.setCurrentIndex(page.table.model().index(0, 1))
    window.redraw.flush()
    assert page.reader.source.code.toPlainText()
    assert not page.reader.use_button.isVisible()
    assert not page.bar.whole_model.isEnabled()
    # Tasks, which stand in no model: each in its sizes, and these stay as they were chosen.
    sizes = "scan n 1,048,576"
    for field, wanted in ((page.bar.model, TASKS), (page.bar.op, "scan"), (page.bar.node, sizes)):
        assert field.findData(wanted) >= 0
        field.setCurrentIndex(field.findData(wanted))
        field.activated.emit(field.currentIndex())
        qtbot.waitUntil(lambda: page.session.state.ladder.job.op != "net" and page.at_rest)
        window.redraw.flush()
    assert page.session.state.ladder.job.title == page.bar.node.currentData() == sizes
    assert [shown.row.case.rung for shown in page.table.source.rows] == ["numpy", "pieces", "reference"]
    page.table.setCurrentIndex(page.table.model().index(0, 1))
    window.redraw.flush()
    assert page.reader.title.text() == "01 numpy"
    assert not page.reader.use_button.isVisible()
    assert not page.bar.whole_model.isEnabled()


@pytest.mark.sampled(6, "longest")
@pytest.mark.off_screen
def test_a_ladder_is_run_kept_and_a_rung_of_it_used_in_the_model(make_window, qtbot, monkeypatch, tmp_path):
    window = make_window("ok")
    page = planned(window, qtbot)
    climb(window, page, qtbot, "shift_and_add", "im2col")
    assert result(page, "im2col") == "ok"
    assert result(page, "reference") == "ok"
    (kept,) = window.session.runs.glob("*-ladder-conv")
    assert len(LADDER.open(kept).measurements()) == 3
    assert kept.name in page.words.text()
    panel = page.speed.chart.panels[0]
    assert [bool(bar.parts) for bar in panel.bars] == [True, True]
    assert panel.baselines  # the reference's line
    assert page.limits.chart is not None
    assert page.exported().folder == kept.absolute(), "which File → Export takes"
    assert page.exported().charts == (page.speed.chart, page.limits.chart)
    orders, menu = [], QMenu()
    monkeypatch.setattr(window.findChild(ExportActions).exporter, "start", orders.append)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "bars.svg"), ""))
    page.speed.menu_opened.emit(menu, page.speed.chart)  # a chart's own menu
    next(action for action in menu.actions() if action.text() == "Export as &SVG…").trigger()
    assert orders[0].arguments[:4] == ("export", str(kept.absolute()), "--chart", page.speed.chart.name)
    page.speed.picked.emit("", 1.0)  # its bar clicked
    window.redraw.flush()
    assert page.reader.title.text() == "02 im2col"
    (plot,) = page.limits.plots.values()
    assert [name.text for name in plot.names.names if name.strong] == ["02 im2col"]
    qtbot.mouseClick(page.reader.use_button, Qt.MouseButton.LeftButton)
    job = window.form.job()
    assert job.rungs == {"lenet5-digits:conv1": "cpu/im2col"}
    assert window.form.rungs.words == ["conv1 of lenet5-digits: im2col (cpu)"]
    assert window.form.rungs.isVisible()
    window.form.copy_command()
    assert "--rung lenet5-digits:conv1=cpu/im2col" in QApplication.clipboard().text()
    window.redraw.flush()
    assert not page.reader.use_button.isEnabled()
    window.form.rungs.remove("lenet5-digits:conv1")
    assert window.form.job().rungs == {}
    # In the place of the node in the reference.
    qtbot.mouseClick(page.reader.swap_button, Qt.MouseButton.LeftButton)
    job = window.form.job()
    assert (job.rungs, job.swaps) == ({}, {"lenet5-digits:conv1": "cpu/im2col"})
    assert window.form.rungs.words == ["conv1 of lenet5-digits: im2col (cpu), in the reference"]
    window.form.copy_command()
    assert "--swap lenet5-digits:conv1=cpu/im2col" in QApplication.clipboard().text()
    window.form.set_job(job)
    assert window.form.job().swaps == job.swaps
    window.form.rungs.remove("lenet5-digits:conv1", swap=True)
    assert window.form.job().swaps == {}
    assert not window.form.rungs.isVisible()


@pytest.mark.sampled(6, "longest")
@pytest.mark.off_screen
def test_a_kernel_of_one_s_own_is_run_again_whenever_it_is_saved(make_window, qtbot, tmp_path):
    window = make_window("ok")
    page = planned(window, qtbot)
    folder = tmp_path / "kernels"
    page.session.write_template(folder)
    qtbot.waitUntil(lambda: result(page, "mine") == "ok")
    settled(window, page, qtbot)
    assert page.reader.title.text() == "90 mine (your own)"
    qtbot.waitUntil(lambda: page.session.state.measurement(REFERENCE) is not None)  # beside it, at once
    settled(window, page, qtbot)
    # With a rung of one's own its folder goes into the job as well.
    qtbot.mouseClick(page.reader.use_button, Qt.MouseButton.LeftButton)
    assert window.form.job().kernel_dirs == (str(folder),)
    (file,) = folder.glob("*.py")
    template = file.read_text()
    header = "".join(line for line in file.read_text().splitlines(keepends=True) if line.startswith("#"))
    climb(window, page, qtbot, "mine")
    climbed = page.session.state.run_folder
    _saved_again(page, qtbot, window, file)

    def save(text, until):
        file.write_text(text)
        qtbot.waitUntil(lambda: until(result(page, "mine")))
        settled(window, page, qtbot)

    save(
        header + "def bind(p, inputs, output, workspace):\n    return lambda: output.fill(1)\n",
        lambda r: r is not None and r.startswith("wrong"),
    )
    assert page.reader.tabs.isTabEnabled(2)
    page.reader.tabs.setCurrentIndex(2)
    assert page.reader.finding.words.text()
    save(header + "def bind(p, inputs, output, workspace):\n    return (\n", lambda r: r == "failed")
    line = len(header.splitlines()) + 2
    page.reader.tabs.setCurrentIndex(0)
    assert page.reader.source.errors.item(0).text().startswith(f"line {line}:")
    save(header + CRASH, lambda r: r == "crashed")
    assert "SIGSEGV" in page.reader.state.text()
    # A header that is not valid is no rung: it is shown, and never run.
    file.write_text("# op = conv\n")
    qtbot.waitUntil(lambda: bool(page.session.state.problems))
    settled(window, page, qtbot)
    assert result(page, "mine") is None
    assert "header" in page.reader.state.text()

    # Every version is kept with what it came to; and a ladder opened again has the source that it measured.
    log = page.session.saves
    qtbot.waitUntil(lambda: len(log.all) == 5)
    assert [save.disposition for save in log.all] == ["ok", "ok", "incorrect", "failed", "crashed"]
    assert [save.source for save in log.all[:2]] == [template, template + "\n"]
    assert log.all[0].time_s
    assert log.all[1].gain, "held against the version before"
    page.session.open(climbed)
    qtbot.waitUntil(lambda: page.session.state.opened is not None and bool(log.shown))
    settled(window, page, qtbot)
    page._on_picked("mine")
    window.redraw.flush()
    page.reader.tabs.setCurrentWidget(page.reader.source)
    assert page.reader.source.code.toPlainText().rstrip() == template.rstrip()
    page.reader.tabs.setCurrentWidget(page.reader.versions)
    assert [save.source for save in page.reader.history.table.source.rows] == [template]


def _saved_again(page, qtbot, window, file):
    """What a saved kernel is compared with is timed again while its verdict is shown."""
    state = page.session.state
    before = state.measurement(REFERENCE)
    assert before is not None
    seen = []

    def look():
        mine, reference = state.measurement("mine"), state.measurement(REFERENCE)
        if mine is not None and "mine" not in state.going:
            seen.append((mine.samples_ns, reference.samples_ns, again.EARLIER in reference.validity.warnings))

    state.changed.connect(look)
    file.write_text(file.read_text() + "\n")
    qtbot.waitUntil(lambda: state.measurement(REFERENCE).samples_ns != before.samples_ns)
    settled(window, page, qtbot)
    state.changed.disconnect(look)
    mine, reference = state.measurement("mine"), state.measurement(REFERENCE)
    doubted = [(own, other) for own, other, earlier in seen if earlier]
    assert doubted, "the verdict is shown first, its reference doubted"
    assert {other for _, other in doubted} == {before.samples_ns}
    assert mine.samples_ns not in {own for own, _ in doubted}, "it was timed again as well"
    assert again.EARLIER not in reference.validity.warnings
    assert result(page, "mine") == "ok"


@pytest.mark.gpu
@pytest.mark.real_gpu
def test_a_cuda_kernel_of_one_s_own_is_blamed_at_its_line_and_costs_itself_alone(
    make_window, qtbot, tmp_path
):
    window = make_window("ok")
    page = next(page for page in window.pages if isinstance(page, LadderPage))
    window.tabs.setCurrentWidget(page)
    qtbot.waitUntil(lambda: page.session.state.ladder is not None and page.at_rest)
    if page.session.state.ladder.job.device != "cuda":
        devices = page.session.state.answer.devices
        pytest.skip(next(device.refused for device in devices if device.name == "cuda"))
    folder = tmp_path / "kernels"
    page.session.write_template(folder)
    qtbot.waitUntil(lambda: result(page, "mine") == "ok")
    settled(window, page, qtbot)
    (file,) = folder.glob("*.cu")
    right = file.read_text()

    def save(text, wanted, pause_s=0.0):
        qtbot.wait(int(1000 * pause_s))
        started = time.monotonic()
        file.write_text(f"{text}\n// {started}\n")  # never compiled before
        qtbot.waitUntil(lambda: result(page, "mine") == wanted)
        shown = time.monotonic() - started
        settled(window, page, qtbot)
        ended = time.monotonic() - started
        print(
            f"{wanted} {shown:.2f} s after saving, its worker gone {ended:.2f} s; before it {pause_s} s idle"
        )

    body = right.index("{", right.index('extern "C" __global__')) + 1
    stray = right[:body] + " *(volatile float*)16 = 1.0f; " + right[body:]
    # At once, while the next worker is still loading, and as one who types saves.
    for pause_s in (0.0, 3.0):
        save(right + "\nint broken = ;\n", "failed", pause_s)
        line = len(right.splitlines()) + 2
        page.reader.tabs.setCurrentIndex(0)
        assert page.reader.source.errors.item(0).text().startswith(f"line {line}:")
        save(stray, "crashed", pause_s)
        save(right, "ok", pause_s)


def test_a_layer_is_opened_in_the_ladder(make_window, qtbot):
    window = make_window("ok")
    screenshots.open_run(window, RECORDED)
    screenshots.select(window)
    layers = next(page for page in window.pages if isinstance(page, LayersPage))
    window.tabs.setCurrentWidget(layers)
    window.redraw.flush()
    measurement = window.state.measurement(window.state.case)
    layer = next(layer for layer in measurement.layers if "conv2" in layer.nodes)
    window.state.select(window.state.case, layer.output)
    window.redraw.flush()
    layers.ladder_action.trigger()
    page = window.tabs.currentWidget()
    assert isinstance(page, LadderPage)
    qtbot.waitUntil(lambda: page.session.state.ladder is not None and page.at_rest)
    job = page.session.state.ladder.job
    assert (job.node, job.op, job.batch) == ("conv2", "conv", window.state.case.batch)


@pytest.mark.sampled(4, "long")
@pytest.mark.off_screen
def test_a_ladder_and_a_comparison_do_not_run_at_once(make_window, qtbot, tmp_path):
    (tmp_path / "90_mine.py").write_text(HEADER + "raise ValueError\n")
    window = make_window("hang")
    window.start(Job(models=("lenet5-digits",), backends=("engine-cpu",)))
    ladder, cancel = (window.menu_actions.by_name[name] for name in ("ladder", "cancel-ladder"))
    ladder.trigger()
    page = window.tabs.currentWidget()
    assert isinstance(page, LadderPage)
    assert not page.session.active
    assert "comparison is running" in window.banner.text
    qtbot.waitUntil(lambda: page.session.state.ladder is not None)
    device = msgspec.structs.replace(page.session.state.question, device="cpu")
    page.session.ask(device)
    window.ladders.add_folder(str(tmp_path))
    qtbot.waitUntil(lambda: "as soon as" in page.session.standing.ended)
    with qtbot.waitSignal(window.session.ended):
        window.session.cancel()
    # What was saved meanwhile is run now.
    qtbot.waitUntil(lambda: result(page, "mine") == "failed")
    settled(window, page, qtbot)
    page.session.ask(msgspec.structs.replace(page.session.state.question, batch=2))
    ladder.trigger()  # before it is planned: it runs as soon as it is
    qtbot.waitUntil(lambda: page.session.active)
    assert page.session.state.ladder.job.batch == 2
    window.start(Job(models=("lenet5-digits",), backends=("engine-cpu",)))
    assert not window.session.active
    assert "ladder is running" in window.banner.text
    assert cancel.isEnabled()
    with qtbot.waitSignal(page.session.ended):
        cancel.trigger()
    assert "Cancelled" in page.words.text()
