"""What shows a rung: its source, its difference to another, its wrong answer; and the watch of its folder."""

import os
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication

from bench.questions.ladder_questions import CountsAnswer, LineCount
from bench.results.finding import Finding
from gui.base.theme import DARK, LIGHT, Theming
from gui.pages.ladder.error_map import ErrorMapView
from gui.pages.ladder.rung_source import RungDiff, SourceView, changes, pairs
from gui.sessions.ladder_session import KernelWatch
from kernels import registry
from tests.gui.mouse import move

CONV = Path(__file__).parents[3] / "kernels" / "cuda" / "conv"
NAIVE, REGISTER = (next(CONV.glob(f"{n:02d}_*.cu")).read_text() for n in (1, 2))


@pytest.fixture
def theming():
    return Theming("light")


def shown(qtbot, widget, size=(900, 500)):
    qtbot.addWidget(widget)
    widget.resize(*size)
    with qtbot.waitActive(widget):
        widget.show()
        widget.activateWindow()
    return widget


def colours(view, line):
    """The foregrounds of a line of the source, by its text."""
    block = view.document().findBlockByNumber(line)
    return {
        block.text()[f.start : f.start + f.length]: f.format.foreground().color().name().upper()
        for f in block.layout().formats()
    }


# ----------------------------------------------------------------------------------------------- the source


def test_the_source_is_shown_in_colours_of_the_theme_that_is_on(qtbot, theming):
    view = shown(qtbot, SourceView(theming))
    view.show_source(NAIVE, "01_naive.cu", ".cu")
    assert view.code.toPlainText() == NAIVE
    assert view.title.text() == "01_naive.cu"
    first = view.code.firstVisibleBlock().text()
    assert first == '#include "common.cuh"', "the kernel, and not its settings, is what one came to read"
    include = NAIVE.split("\n").index('#include "common.cuh"')
    before = colours(view.code, include)
    assert set(colours(view.code, 1).values()) == {LIGHT.muted.upper()}  # the header
    theming.choose("dark")
    after = colours(view.code, include)
    assert before.keys() == after.keys()
    assert not set(before.values()) & set(after.values())
    assert set(colours(view.code, 1).values()) == {DARK.muted.upper()}
    view.resize(900, 1200)
    short = 'op = "conv"\n' * 40
    view.show_source(f"/*\n{short}*/\n#include <a.h>\nint a;\n", "02.cu", ".cu")
    assert view.code.firstVisibleBlock().text() == "#include <a.h>", "also where the text ends soon below"
    assert view.code.at == 42, "an editor opens there"
    view.show_source("# op = 1\nfor x in 'abc':\n    pass\n", "1.py", ".py")
    assert "for" in colours(view.code, 1)


def test_the_headers_of_a_rung_are_read_in_its_place(qtbot, theming):
    view = shown(qtbot, SourceView(theming))
    rung = registry.find("cuda", "conv", "tensor_tf32")
    headers = [header.path for header in registry.headers(rung)]
    view.show_source(rung.source, rung.path.name, ".cu", headers=headers)
    assert view.files.isVisible()
    assert view.title.isHidden()
    assert [view.files.itemText(i) for i in range(view.files.count())] == [
        rung.path.name, *(path.name for path in headers)]  # fmt: skip
    kernel = view.files.findText("conv_tensor.cuh")
    view.files.setFocus()
    view.files.setCurrentIndex(kernel)
    view.files.activated.emit(kernel)
    assert "__global__" in view.code.toPlainText()
    view.show_source(rung.source, rung.path.name, ".cu", headers=headers)
    assert view.files.currentText() == "conv_tensor.cuh", "the same rung again: the reader stays where he is"
    view.show_source(rung.source, rung.path.name, ".cu", {3: "wrong"}, headers)
    assert view.code.toPlainText() == rung.source, "an error is in the rung's own file"
    view.show_source(NAIVE, "01_naive.cu", ".cu", headers=[*headers[:1], Path("gone.cuh")])
    assert view.code.toPlainText() == NAIVE
    view.files.setCurrentIndex(2)
    view.files.activated.emit(2)
    assert "cannot be read" in view.code.toPlainText()
    view.show_source("x = 1\n", "1.py", ".py")
    assert view.files.isHidden()
    assert view.title.text() == "1.py"


def test_errors_stand_at_their_lines_and_in_a_list(qtbot, theming):
    view = shown(qtbot, SourceView(theming), (700, 300))
    text = "\n".join(f"int line{i};" for i in range(1, 201))
    view.show_source(text, "x.cu", ".cu", {150: "a second", 90: 'identifier "y" is undefined', 999: "beyond"})
    assert view.code.textCursor().blockNumber() == 89
    assert view.code.viewport().rect().contains(view.code.cursorRect())
    assert [view.errors.item(i).text() for i in range(3)] == [
        'line 90: identifier "y" is undefined', "line 150: a second", "line 999: beyond"]  # fmt: skip
    marked = [line.number for line in view.code.lines if line.role == "error"]
    assert marked == [90, 150]
    view.errors.itemClicked.emit(view.errors.item(1))
    assert view.code.textCursor().blockNumber() == 149
    pixels = view.code.viewport().grab().toImage()
    failed = QColor(LIGHT.failed)
    assert any(
        pixels.pixelColor(x, view.code.cursorRect().center().y()).red() > 200
        and pixels.pixelColor(x, view.code.cursorRect().center().y()).green() < 230
        for x in range(pixels.width())
    ), failed.name()
    at = view.code.verticalScrollBar().value()
    view.show_source(text, "x.cu", ".cu")
    assert view.errors.isHidden()
    assert view.code.verticalScrollBar().value() == at  # mended: the reader stays where he is


def test_the_source_is_searched_and_copied(qtbot, theming):
    view = shown(qtbot, SourceView(theming))
    view.show_source("alpha\nbeta\nAlpha beta\n", "x.cu", ".cu")
    view.code.setFocus()
    qtbot.keyClick(view.code, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert view.find_bar.isVisible()
    qtbot.keyClicks(view.find_bar.field, "alpha")
    assert (view.code.textCursor().blockNumber(), view.find_bar.count.text()) == (0, "1 of 2")
    qtbot.keyClick(view.find_bar.field, Qt.Key.Key_Return)
    assert (view.code.textCursor().blockNumber(), view.find_bar.count.text()) == (2, "2 of 2")
    qtbot.keyClick(view.find_bar.field, Qt.Key.Key_Return)
    assert view.code.textCursor().blockNumber() == 0  # round the end
    qtbot.keyClicks(view.find_bar.field, "x")
    assert view.find_bar.count.text() == "not found"
    qtbot.keyClick(view.find_bar.field, Qt.Key.Key_Escape)
    assert view.find_bar.isHidden()
    view.code.selectAll()
    view.code.copy()
    assert QApplication.clipboard().text() == "alpha\nbeta\nAlpha beta\n"


# ------------------------------------------------------------------------------------------- the difference


def test_lines_that_were_changed_stand_beside_each_other():
    left = ["a", "float sum = 0;", "gone", "z"]
    right = ["a", "double sum = 0;", "z", "new"]
    rows = pairs(left, right)
    assert [(row.left, row.right, row.changed) for row in rows] == [
        (0, 0, False), (1, 1, True), (2, None, True), (3, 2, False), (None, 3, True)]  # fmt: skip
    assert rows[1].left_spans == ((0, 5),)
    assert rows[1].right_spans == ((0, 6),)
    assert changes(rows) == [(1, 2), (4, 1)]
    assert pairs([], ["x"])[0].right == 0


def test_two_rungs_are_scrolled_as_one_and_gone_through(qtbot, theming):
    view = shown(qtbot, RungDiff(theming), (900, 260))
    view.show_pair("01", NAIVE, "02", REGISTER, ".cu")
    assert view.left.blockCount() == view.right.blockCount() == len(view.rows)
    shown_left = [line.text for line in view.left.lines if line.number is not None]
    assert "\n".join(shown_left) == NAIVE
    assert [line.number for line in view.right.lines if line.number is not None] == list(
        range(1, REGISTER.count("\n") + 2)
    )
    view.right.verticalScrollBar().setValue(7)
    assert view.left.verticalScrollBar().value() == 7
    view.left.horizontalScrollBar().setValue(11)
    assert view.right.horizontalScrollBar().value() == 11
    assert view.at == 0
    for _ in range(len(view.changes)):
        qtbot.keyClick(view.left, Qt.Key.Key_Down, Qt.KeyboardModifier.AltModifier)
    assert view.at == len(view.changes) - 1
    assert view.left.textCursor().blockNumber() == view.changes[-1][0]
    assert not view.buttons[1].isEnabled()
    qtbot.mouseClick(view.buttons[0], Qt.MouseButton.LeftButton)
    assert view.at == len(view.changes) - 2


def test_a_rung_beside_itself_has_no_change(qtbot, theming):
    view = shown(qtbot, RungDiff(theming))
    view.show_pair("01", NAIVE, "01", NAIVE, ".cu")
    assert view.changes == []
    assert "same" in view._words.text()
    view.step(1)
    assert not any(button.isEnabled() for button in view.buttons)


# ------------------------------------------------------------------------------------------ the wrong answer

FINDING = Finding(
    fault="pad",
    reason="the padding is off by one",
    when="before timing",
    params="3×4×5×6",
    index=(2, 1, 3, 4),
    expected="0.5",
    got="1.5",
    wrong=3,
    elements=240,
    map="errors/x.npz",
)


@pytest.fixture
def kept(tmp_path):
    expected = np.linspace(-1, 1, 2 * 4 * 5 * 6, dtype=np.float32).reshape(2, 4, 5, 6)
    got = expected.copy()
    got[1, 1, 3, 4] += 1
    got[0, 2, 0, 0] = np.nan
    path = tmp_path / "x.npz"
    np.savez(
        path, error_map=np.abs(got - expected).max(axis=(0, 1)), expected=expected, got=got,
        images=np.array([1, 2]), channels=np.arange(4), row=np.array(0), at=np.array([2, 1, 3, 4]),
        tolerance=np.array(1e-5),
    )  # fmt: skip
    return path, expected, got


def test_a_wrong_answer_in_words_and_images(qtbot, theming, kept):
    path, expected, got = kept
    view = shown(qtbot, ErrorMapView(theming), (800, 600))
    view.show_finding(FINDING, path)
    words = view.words.text()
    for part in ("The padding is off by one", "(2, 1, 3, 4)", "expected 0.5, got 1.5", "3 of 240", "1.2 %",
                 "before timing", "3×4×5×6"):  # fmt: skip
        assert part in words
    assert (view.image.currentText(), view.channel.currentText()) == ("2: 1 wrong", "1: 1 wrong")
    assert "n 2, m 1, row 3, column 4" in view.readout.text()  # the finding's, until another is pointed at
    assert view.readout.text().endswith("wrong")
    mask = view.panels["wrong"].picture.image
    assert mask.pixelColor(4, 3) == QColor(LIGHT.failed)
    assert mask.pixelColor(3, 3) != QColor(LIGHT.failed)
    picture = view.panels["expected"].picture
    corner = picture.frame().topLeft().toPoint()
    move(picture, corner + (picture.frame().center().toPoint() - corner) / 8)
    assert f"expected {expected[1, 1, 0, 0]:.6g}, got {got[1, 1, 0, 0]:.6g}" in view.readout.text()
    assert view.readout.text().endswith("right")


def test_another_image_and_channel_and_what_is_no_number(qtbot, theming, kept):
    view = shown(qtbot, ErrorMapView(theming), (800, 600))
    view.show_finding(FINDING, kept[0])
    view.image.setCurrentIndex(0)
    view.image.activated.emit(0)
    view.channel.setCurrentIndex(2)
    view.channel.activated.emit(2)
    assert view.panels["got"].picture.image.pixelColor(0, 0) == QColor(LIGHT.failed)
    assert ("no number", LIGHT.failed) in view.panels["got"].legend.scale.marks
    theming.choose("dark")
    assert view.panels["got"].picture.image.pixelColor(0, 0) == QColor(DARK.failed)
    qtbot.keyClick(view.panels["got"].picture, Qt.Key.Key_Right)
    assert "row 0, column 1" in view.readout.text()


def test_the_map_alone_and_files_that_cannot_be_read(qtbot, theming, tmp_path, kept):
    view = shown(qtbot, ErrorMapView(theming), (800, 600))
    only = tmp_path / "only.npz"
    np.savez(only, error_map=np.eye(4))
    view.show_finding(FINDING, only)
    assert [name for name, panel in view.panels.items() if panel.isVisible()] == ["difference"]
    view.show_finding(FINDING, kept[0])
    assert all(panel.isVisible() for panel in view.panels.values())
    broken = tmp_path / "broken.npz"
    broken.write_bytes(kept[0].read_bytes()[:700])
    for path, said in ((broken, "broken"), (tmp_path / "none.npz", "cannot be read"), (None, "no image")):
        view.show_finding(FINDING, path)
        assert said in view.note.text()
        assert view._pictures.isHidden()


# ------------------------------------------------------------------------------------------------ the watch


def test_saving_by_any_means_is_noticed(qtbot, tmp_path):
    folder = tmp_path / "kernels"
    folder.mkdir()
    rung = folder / "1_mine.cu"
    rung.write_text("one")
    watch = KernelWatch()
    watch.watch([folder])

    def after(do):
        with qtbot.waitSignal(watch.changed) as caught:
            do()
        return caught.args[0]

    def replace(text):
        spare = folder / ".1_mine.cu.swp"
        spare.write_text(text)
        os.replace(spare, rung)

    assert after(lambda: rung.write_text("two, in place")) == [rung]
    assert after(lambda: replace("three, by another file")) == [rung]
    assert after(lambda: rung.write_text("four, in place of the new file")) == [rung]
    assert after(lambda: replace("five, by another file again")) == [rung]
    helper = folder / "more" / "helpers.cuh"
    helper.parent.mkdir()
    qtbot.waitUntil(lambda: str(helper.parent) in watch._watcher.directories())
    assert after(lambda: helper.write_text("new")) == [helper]
    assert after(rung.unlink) == [rung]


def test_one_save_is_told_once_and_other_files_not_at_all(qtbot, tmp_path):
    rung = tmp_path / "1_mine.cu"
    rung.write_text("one")
    watch = KernelWatch()
    watch.watch([tmp_path])
    told = []
    watch.changed.connect(told.append)
    (tmp_path / "notes.txt").write_text("nothing of a kernel")
    qtbot.wait(300)
    assert told == []
    with qtbot.waitSignal(watch.changed):
        for text in ("a", "ab", "abc"):
            rung.write_text(text)
    qtbot.wait(300)
    assert told == [[rung]]


def test_a_folder_that_comes_later(qtbot, tmp_path):
    folder = tmp_path / "later"
    watch = KernelWatch()
    watch.watch([folder])
    with qtbot.waitSignal(watch.changed) as caught:
        folder.mkdir()
        (folder / "1_mine.py").write_text("pass")
    assert caught.args[0] == [folder / "1_mine.py"]
    watch.watch([])
    assert watch.folders == ()


def test_what_lines_cost_stands_in_front_of_them_and_is_asked_for_once(qtbot, theming):
    text = "__global__ void mine() {\n    y[i] = tile[tx][k];\n    __syncthreads();\n}\n"
    view = shown(qtbot, SourceView(theming))
    asked: list[int] = []
    view.counts_wanted.connect(lambda: asked.append(1))
    view.show_source(text, "90_mine.cu", ".cu", counted=True)
    narrow = view.code.gutter_width()
    assert view.costs.isVisible()
    assert asked == [], "nothing runs before it is wanted"

    def choose(title: str) -> None:
        index = view.costs.findText(title)
        view.costs.setCurrentIndex(index)
        view.costs.activated.emit(index)

    choose("Bank conflicts")
    assert view.told.text() == "Counting on the CPU …"
    lines = (
        LineCount(line=2, instructions=64, requests=2, sectors=8, wavefronts=64, least_wavefronts=2),
        LineCount(line=3, instructions=2),
    )
    view.show_counts(CountsAnswer(rung="mine", on="32×32", lines=lines))
    assert [line.figure for line in view.code.lines] == ["", "32.0", "", "", ""]
    assert view.code.lines[1].heat == 1.0
    assert view.code.gutter_width() > narrow
    choose("Executions")
    assert [line.figure for line in view.code.lines] == ["", "64", "2", "", ""]
    assert view.code.lines[2].heat < 0.1
    choose("No counts")
    assert not any(line.figure for line in view.code.lines)
    assert view.code.gutter_width() == narrow
    assert asked == [1], "switching does not run it again"
    choose("Divergence")
    view.show_source(text.replace("tx", "ty"), "90_mine.cu", ".cu", counted=True)
    assert asked == [1, 1], "it was saved: what it cost is another's"
    assert not any(line.figure for line in view.code.lines)
    view.show_counts(CountsAnswer(rung="mine", error="the instruction wgmma is missing"))
    assert "wgmma" in view.told.text()
    view.show_source("import numpy\n", "90_mine.py", ".py")
    assert not view.costs.isVisible()
