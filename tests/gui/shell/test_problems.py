"""Problems open by themselves for whatever leaves a point out, and stay closed once they were closed."""

from pathlib import Path

import pytest

from bench.results.messages import Log
from tests.bench import synthetic


@pytest.mark.parametrize("disposition", ["crashed", "unsupported"])
def test_they_open_for_a_failure_and_for_a_refusal(make_window, disposition):
    window = make_window("ok", begin=False)
    assert window.problems_dock.isHidden()
    failures = {
        ("engine-cpu", 4): (disposition, "the operator is not known"),
        ("engine-cpu", 16): (disposition, "x"),
    }
    run, measurements = synthetic.run(
        backends=("engine-cpu", "ort-cpu"), batches=(1, 4, 16), failures=failures
    )
    window.state.open(run, Path("a-run"), measurements[:4])
    window.redraw.flush()
    assert not window.problems_dock.isHidden()
    assert window.problems_dock.windowTitle() == "Problems (1)"
    window.problems_dock.close()
    window.state.add(measurements[4:])
    window.redraw.flush()
    assert window.problems_dock.windowTitle() == "Problems (2)"
    assert window.problems_dock.isHidden(), "the user has seen them"
    window.state.open(*synthetic.run(batches=(1,))[:1], Path("fine"), ())
    window.redraw.flush()
    window.state.open(run, Path("a-run"), measurements)
    window.redraw.flush()
    assert not window.problems_dock.isHidden(), "another run's are others"


def test_they_open_for_what_a_worker_complains_of(make_window):
    window = make_window("ok", begin=False)
    window.problems.logged(Log(level="warning", text="no memory is left for a second instance"))
    assert not window.problems_dock.isHidden()


def test_pause_has_room_for_both_of_its_words(make_window):
    button = make_window("ok", begin=False).progress.pause_button
    for words in ("Pause", "Go on"):
        button.setText(words)
        assert button.minimumWidth() >= button.sizeHint().width()
        assert button.minimumHeight() >= button.sizeHint().height()
