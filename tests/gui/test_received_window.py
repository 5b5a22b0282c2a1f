"""In the window, too, kernels that a received record names are run only when the user has agreed."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

import gui
from bench.results.records import Job
from bench.run import confined
from bench.run.kinds.ladder import KIND as LADDER
from gui.shell.main_window import TRUST
from gui.widgets.controls import Elided, as_tip
from tests.bench.ladder.test_ladder import example
from tests.bench.questions.test_received_models import make_vast
from tests.bench.results import received
from tests.gui.sessions.test_session import JOB


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "90_evil.py").write_text(received.EVIL.format(mark=str(tmp_path / "mark")))
    return tmp_path / "kernels"


def test_a_run_that_names_kernels_goes_on_by_a_button(make_window, qtbot, tmp_path: Path, kernels: Path):
    window = make_window("ok")
    path = received.run(tmp_path / "received", kernel_dirs=(str(kernels),))
    window.session.go_on(path)
    assert not window.session.active
    assert str(kernels) in window.banner.text
    assert window.banner.button.text() == TRUST
    window.banner.dismiss()
    assert not window.banner.button.isVisible()
    window.banner.button.click()
    assert not window.session.active, "what was dismissed is not agreed to"
    window.session.go_on(path)
    with qtbot.waitSignal(window.session.ended):
        window.banner.button.click()
        assert window.session.active
    assert window.banner.button.isHidden()


def test_a_run_started_here_is_remembered(make_window, run_to_end, kernels: Path):
    from bench.results import trust

    window = make_window("ok")
    run_to_end(window, msgspec.structs.replace(JOB, kernel_dirs=(str(kernels),)))
    assert trust.doubt(window.state.folder, (str(kernels),)) == ""


def test_a_rung_of_a_received_ladder_is_not_put_into_the_form_unasked(
    make_window, qtbot, tmp_path: Path, kernels: Path
):
    made, measured = example()
    job = msgspec.structs.replace(made.job, model="lenet5-digits", node="conv1", kernel_dirs=(str(kernels),))
    folder = LADDER.create(tmp_path / "ladder", msgspec.structs.replace(made, job=job))
    for measurement in measured:
        folder.append(measurement)
    window = make_window("ok")
    session = window.ladders.session
    window.ladders.open(folder.path)
    qtbot.waitUntil(lambda: session.state.opened is not None)
    case = next(m.case for m in measured if m.case.user)
    window.ladders._use(case, False)
    assert window.form.rungs.folders == ()
    assert str(kernels) in window.banner.text
    window.banner.button.click()
    assert window.form.rungs.folders == (str(kernels),)


HTML = '<img src="file:///etc/passwd"><b>bold</b>'


def test_text_that_looks_like_html_is_shown_as_it_stands(make_window, qtbot, tmp_path: Path):
    window = make_window("ok")
    window.tell(HTML)
    assert window.banner.text == HTML
    labels = [label for label in window.findChildren(QLabel) if label.objectName() == ""]
    assert labels
    guessing = [label for label in labels if label.textFormat() == Qt.TextFormat.AutoText]
    ours = [label for label in guessing if type(label).__module__.startswith("gui")]
    assert ours == [], "every label of ours says what its text is"
    words = Elided(HTML)
    qtbot.addWidget(words)
    assert words.text() == HTML
    assert "<b>" not in words.toolTip()
    assert "&lt;b&gt;" in words.toolTip()
    assert as_tip("void gemm<float>(2 < 3)") == "void gemm<float>(2 < 3)", "Qt takes this for plain"
    assert as_tip("plain & simple") == "plain & simple"


def test_no_label_is_made_that_guesses():
    """Labels are made of gui.widgets.controls.Label, which says that its text is plain."""
    for file in sorted(Path(gui.__file__).parent.rglob("*.py")):
        if file.name != "labels.py":
            assert not re.search(r"\bQLabel\(", file.read_text(encoding="utf-8")), file


def test_a_model_that_takes_all_memory_is_a_sentence(make_window, run_to_end, tmp_path: Path, monkeypatch):
    monkeypatch.setenv(confined.MEMORY_VARIABLE, "300")
    window = make_window()
    path = make_vast(tmp_path)
    assert run_to_end(window, Job(models=(str(path),), backends=("engine-cpu",))) == {}
    assert "takes more than 300 MiB of memory to read" in window.banner.text
    assert not window.session.active
