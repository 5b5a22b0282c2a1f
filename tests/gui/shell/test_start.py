"""From the second start on the first page shows what was done last, and leads to it."""

from PySide6.QtCore import Qt

from bench.results.store import RESULTS_FILE
from gui.pages.compare import ComparePage
from gui.shell.library import Library
from gui.shell.start import Recent
from tests.bench import synthetic
from tests.bench.results.test_thin import saved
from tests.gui.pages.test_runs_page import settle


def test_a_newcomer_is_told_what_the_page_is_for_and_later_starts_show_what_was_done(
    qtbot, make_window, tmp_path, settings_file
):
    window = make_window("mute", begin=False)
    page, recent = window.page_of(ComparePage), window.findChild(Recent)
    assert "which of them is faster" not in page._empty.text(), "nobody is called new before it is known"
    window.library.refresh()
    settle(qtbot, window)
    assert "which of them is faster" in page._empty.text()
    assert not recent.runs

    backends = ("engine-cpu", "ort-cpu")
    for name in ("first", "second"):
        saved(tmp_path / "runs" / name, *synthetic.run(backends=backends, batches=(1, 2)))
    results = tmp_path / "runs" / "first" / RESULTS_FILE
    results.write_text("".join(results.read_text().splitlines(keepends=True)[:-1]))
    model = tmp_path / "mine.onnx"
    model.write_bytes(b"")
    window.settings.setValue("recent", [str(model), str(tmp_path / "gone.onnx")])
    again = make_window("mute", begin=False)
    again.library.refresh()
    settle(qtbot, again)
    page, recent = again.page_of(ComparePage), again.findChild(Recent)
    assert "which of them is faster" not in page._empty.text()
    assert [path.name for path in recent.runs] == ["first", "second"], "what can be gone on with comes first"
    assert [path.name for path in recent.going_on] == ["first"]
    assert [*recent.models] == [str(model)]
    told = {label.text() for label in recent.findChildren(type(again.progress.words))}
    assert any("slower than ort-cpu" in words or "faster than ort-cpu" in words for words in told)
    assert any(words.startswith("interrupted: 3 of 4") for words in told)

    qtbot.mouseClick(recent.models[str(model)], Qt.MouseButton.LeftButton)
    assert again.form.models.checked == (str(model),)
    qtbot.mouseClick(recent.runs[tmp_path / "runs" / "second"], Qt.MouseButton.LeftButton)
    settle(qtbot, again)
    assert again.state.folder == tmp_path / "runs" / "second"
    assert not recent.isVisible()
    assert again.findChild(Library) is again.library
