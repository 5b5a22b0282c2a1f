"""In the window, too, kernels that a received record names are run only when the user has agreed."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bench.ladder.store import LadderFolder
from gui.main_window import TRUST
from tests.bench import received
from tests.gui.test_shell_session import JOB
from tests.ladder.test_ladder import example


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
    from bench import trust

    window = make_window("ok")
    run_to_end(window, msgspec.structs.replace(JOB, kernel_dirs=(str(kernels),)))
    assert trust.doubt(window.state.folder, (str(kernels),)) == ""


def test_a_rung_of_a_received_ladder_is_not_put_into_the_form_unasked(
    make_window, qtbot, tmp_path: Path, kernels: Path
):
    made, measured = example()
    job = msgspec.structs.replace(made.job, model="lenet5-digits", node="conv1", kernel_dirs=(str(kernels),))
    folder = LadderFolder.create(tmp_path / "ladder", msgspec.structs.replace(made, job=job))
    for measurement in measured:
        folder.append(measurement)
    window = make_window("ok")
    session = window.ladders.session
    window.ladders.open(folder.path)
    qtbot.waitUntil(lambda: session.state.opened is not None)
    case = next(m.case for m in measured if m.case.user)
    window.ladders._use(case)
    assert window.form.rungs.folders == ()
    assert str(kernels) in window.banner.text
    window.banner.button.click()
    assert window.form.rungs.folders == (str(kernels),)
