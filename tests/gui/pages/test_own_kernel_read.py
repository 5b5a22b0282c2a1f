"""A kernel read closely: opened in the user's editor, held against its template or any rung, its compiled
code beside its source with the lines that belong together marked."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from PySide6.QtCore import Qt

from bench.questions import rung_template as template
from bench.questions.ladder_questions import AssemblyAnswer, Listing
from bench.run import settings
from gui.base.theme import Theming
from gui.menus import editor
from gui.pages.ladder.rung_source import AssemblyView
from gui.sessions.processes import ChildProcess
from kernels import numba_support, nvrtc
from tests.gui.pages.test_ladder_page import planned, settled

SOURCE = "/*\n# op\n*/\nint a = 1;\nint b = a + 1;\n\nint c;\n"
PTX = Listing(name="PTX", text="head\nmov\nadd\nbra\nadd", lines=(0, 4, 5, 0, 5))
SASS = Listing(name="SASS", text="0000 IADD\n0010 MOV", lines=(5, 4))


def marked(view):
    return [index for index, line in enumerate(view.lines) if line.role == "linked"]


def click_line(qtbot, view, index):
    """The mouse on a line."""
    view.bring(index)
    block = view.document().findBlockByNumber(index)
    at = view.blockBoundingGeometry(block).translated(view.contentOffset()).center().toPoint()
    at.setX(30)
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=at)


@pytest.fixture
def view(qtbot):
    made = AssemblyView(Theming("light"))
    qtbot.addWidget(made)
    made.resize(900, 500)
    with qtbot.waitExposed(made):
        made.show()
    return made


def test_the_line_under_the_cursor_is_marked_in_both(qtbot, view):
    view.show_source(SOURCE, ".cu")
    assert "Compiling" in view.words.text()
    view.show_answer(AssemblyAnswer(rung="mine", arch="sm_80", listings=(PTX,), missing="SASS takes a tool"))
    assert (marked(view.source), marked(view.code)) == ([3], [1]), "the first line that became something"
    assert view.problem.text() == "SASS takes a tool."
    assert view.words.text() == "sm_80: 3 instructions of 2 lines"
    click_line(qtbot, view.source, 4)
    assert (marked(view.source), marked(view.code)) == ([4], [2, 4])
    click_line(qtbot, view.code, 1)
    assert (marked(view.source), marked(view.code)) == ([3], [1])
    click_line(qtbot, view.source, 6)
    assert (marked(view.source), marked(view.code)) == ([6], []), "this line became nothing"
    click_line(qtbot, view.code, 3)
    assert marked(view.source) == [6], "an instruction of no line changes nothing"


def test_sass_is_a_choice_and_stays_one(qtbot, view):
    view.show_source(SOURCE, ".cu")
    answer = AssemblyAnswer(rung="mine", arch="sm_80", listings=(PTX, SASS))
    view.show_answer(answer)
    assert not view.problem.isVisible()
    click_line(qtbot, view.source, 4)
    view.which.setCurrentIndex(1)
    view.which.activated.emit(1)
    assert view.code.toPlainText().startswith("0000 IADD")
    assert marked(view.code) == [0], "of the line that was marked"
    view.show_source(SOURCE, ".cu")
    assert not view.code.toPlainText()
    view.show_answer(answer)
    assert view.which.currentText() == "SASS"
    view.show_answer(AssemblyAnswer(rung="mine", error="nothing can be compiled here"))
    assert view.problem.text() == "Nothing can be compiled here."
    assert not view.which.isVisible()


@pytest.mark.skipif(nvrtc.unavailable() is not None, reason="NVRTC is not installed")
def test_kernels_for_a_gpu_that_is_not_here_are_read_and_compiled_and_not_run(qtbot, make_window, tmp_path):
    window = make_window("ok")
    page = planned(window, qtbot)
    if not any(info.refused for info in page.session.state.answer.devices):
        pytest.skip("there is a GPU here")
    path = template.write("conv", "cuda", tmp_path / "kernels")
    window.ladders.add_folder(str(path.parent))
    settled(window, page, qtbot)
    at = page.bar.device.findData("cuda")
    assert page.bar.device.itemText(at) == "cuda (not here)"
    page.bar.device.setCurrentIndex(at)
    page.bar.device.activated.emit(at)
    state, session = page.session.state, page.session
    qtbot.waitUntil(lambda: state.ladder is not None and state.ladder.job.device == "cuda")
    settled(window, page, qtbot)
    assert {Path(info.path).suffix for info in state.rungs} == {".cu", ".py"}
    assert all(Path(info.path).suffix == ".cu" or info.case.language for info in state.rungs)
    assert not page.bar.run_button.isEnabled()
    assert "Kernels for cuda are read and compiled here, not run" in page.words.text()
    session.run()
    assert "not run" in window.banner.text
    assert not session.active
    page._on_picked("mine")
    window.redraw.flush()
    page.reader.tabs.setCurrentWidget(page.reader.assembly)
    qtbot.waitUntil(lambda: not session.assembly.busy)
    assembly = page.reader.assembly
    assert ".visible .entry conv" in assembly.code.toPlainText()
    assert len(marked(assembly.source)) == 1
    assert marked(assembly.code)
    # The compiler gives its memory back.
    qtbot.waitUntil(lambda: not session.assembly.findChildren(ChildProcess))
    # What its lines cost is counted on the CPU, once it is wanted.
    source = page.reader.source
    page.reader.tabs.setCurrentWidget(source)
    if numba_support.unavailable() is None:
        source.costs.setCurrentIndex(source.costs.findText("Executions"))
        source.costs.activated.emit(source.costs.currentIndex())
        qtbot.waitUntil(lambda: any(line.figure for line in source.code.lines), timeout=60_000)
        assert "no times" in source.told.text()
    page.reader.tabs.setCurrentWidget(page.reader.assembly)
    # Whatever is saved is compiled again, and what is wrong with it told.
    path.write_text(path.read_text() + "nonsense;\n")
    qtbot.waitUntil(lambda: "90_mine.cu" in page.reader.assembly.problem.text())
    assert not session.active, "and nothing is run"
    page.bar.device.setCurrentIndex(page.bar.device.findData("cpu"))
    page.bar.device.activated.emit(page.bar.device.currentIndex())
    qtbot.waitUntil(lambda: state.ladder.job.device == "cpu")
    settled(window, page, qtbot)
    assert page.bar.run_button.isEnabled()


def test_an_own_kernel_is_held_against_its_template_or_any_rung(qtbot, make_window, tmp_path, monkeypatch):
    window = make_window("ok")
    page = planned(window, qtbot)
    monkeypatch.setattr(type(page.session), "run_due", lambda self: None)  # it is read, not run
    path = template.write("conv", "cpu", tmp_path / "kernels")
    path.write_text(path.read_text() + "\n# my idea\n")
    window.ladders.add_folder(str(path.parent))
    qtbot.waitUntil(lambda: page.session.state.info("mine") is not None)
    settled(window, page, qtbot)
    page._on_picked("mine")
    window.redraw.flush()
    reader = page.reader
    assert not reader.tabs.isTabEnabled(reader.tabs.indexOf(reader.assembly)), "Python is not compiled"
    reader.tabs.setCurrentIndex(1)
    assert [title.text() for title in reader.diff.titles] == ["The template", "90 mine"]
    assert len(reader.diff.changes) == 1
    added = [row.right for row in reader.diff.rows if row.changed and row.right is not None]
    assert "# my idea" in [path.read_text().split("\n")[index] for index in added]
    box = reader._against
    assert box.count() > 2
    at = next(i for i in range(box.count()) if "im2col" in box.itemText(i))
    box.setCurrentIndex(at)
    box.activated.emit(at)
    assert reader.diff.titles[0].text() == box.itemText(at)

    opened = []
    page.edit_wanted.connect(lambda file, line: opened.append((file, line)))
    monkeypatch.setattr(editor, "open_in_editor", lambda *_: "")
    reader.tabs.setCurrentIndex(0)
    reader.source.code.go_to(6)
    qtbot.mouseClick(reader.edit_button, Qt.MouseButton.LeftButton)
    assert opened == [(path, 7)]


def recorder(folder: Path, name: str) -> tuple[Path, Path]:
    """A program that writes down how it was called."""
    folder.mkdir(exist_ok=True)
    said, program = folder / f"{name}.said", folder / name
    code = f"import sys; open({str(said)!r} + '.new', 'w').write('|'.join(sys.argv[1:]))"
    program.write_text(f"#!/bin/sh\n{sys.executable} -c \"{code}\" \"$@\"\nmv '{said}.new' '{said}'\n")
    program.chmod(0o755)
    return program, said


def test_a_file_opens_at_its_line_in_the_editor_that_is_named(qtbot, tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELSCOPE_CONFIG", str(tmp_path / "user.toml"))
    file = tmp_path / "a kernel.cu"
    file.write_text("")
    program, said = recorder(tmp_path / "bin", "code")
    monkeypatch.setenv("EDITOR", "nothing that there is")
    monkeypatch.setenv("VISUAL", str(program))
    assert editor.open_in_editor(file, 12) == ""
    qtbot.waitUntil(said.exists)
    assert said.read_text() == f"--goto|{file}:12"
    own, said = recorder(tmp_path / "bin", "mine")
    settings.store("editor", [f"{own} -n {{line}} {{file}}"])
    assert editor.open_in_editor(file, 3) == ""
    qtbot.waitUntil(said.exists)
    assert said.read_text() == f"-n|3|{file}"


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("/usr/bin/vim", ("/usr/bin/vim", "+7", "k.cu")),
        ("code --wait", ("code", "--wait", "--goto", "k.cu:7")),
        ("kate", ("kate", "--line", "7", "k.cu")),
        ("unknown", ("unknown", "k.cu")),
        ("'broken", ()),
        ("", ()),
    ],
)
def test_editors_are_told_the_line_as_they_take_it(named, expected):
    assert editor.command(named, Path("k.cu"), 7) == expected


def test_an_editor_of_the_terminal_gets_one(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert editor.in_terminal(("vim", "k.cu"), {}) is None
    recorder(tmp_path, "xterm")
    assert editor.in_terminal(("vim", "k.cu"), {}) == ("xterm", "-e", "vim", "k.cu")
    assert editor.in_terminal(("code", "k.cu"), {}) == ("code", "k.cu")


def test_without_an_editor_the_desktop_is_asked_and_what_hinders_is_told(
    qtbot, make_window, tmp_path, monkeypatch
):
    window = make_window("mute", begin=False)
    monkeypatch.delenv("EDITOR", raising=False)
    monkeypatch.delenv("VISUAL", raising=False)
    asked = []
    monkeypatch.setattr(editor.QDesktopServices, "openUrl", lambda url: asked.append(url.toLocalFile()))
    file = tmp_path / "k.cu"
    file.write_text("")
    window.ladders._page.edit_wanted.emit(file, 1)
    assert asked == [str(file)]
    assert "File → Preferences names one" in window.banner.text
    monkeypatch.setenv("EDITOR", "no-such-editor --flag")
    window.ladders._page.edit_wanted.emit(file, 1)
    assert "'no-such-editor --flag' is not found" in window.banner.text
    window.ladders._page.edit_wanted.emit(tmp_path / "gone.cu", 1)
    assert "is not there any more" in window.banner.text
