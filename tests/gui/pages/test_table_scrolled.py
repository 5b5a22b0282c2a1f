"""A table that is scrolled right when another run begins paints over nobody, and is not scrolled back."""

from pathlib import Path

from gui.widgets.table_view import TableView
from tests.bench import synthetic


def _opened(window, backends, batches):
    run, measurements = synthetic.run(models=("lenet5-digits",), backends=backends, batches=batches)
    window.state.open(run, Path("a-run"), measurements)
    window.redraw.flush()


def _scrolled(make_window, qtbot):
    """A window, its table, and the bar by which that is scrolled to the right."""
    window = make_window("ok", begin=False)
    window.resize(760, 560)
    _opened(window, ("engine-cpu", "ort-cpu"), (1, 4, 16))
    table = window.pages[0].table
    bar = table.horizontalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0)
    bar.setValue(bar.maximum())
    return window, table, bar


def test_no_column_goes_while_the_header_is_scrolled(make_window, qtbot, monkeypatch):
    """Qt moves a scrolled header as a picture then: on a screen a grey strip lay over the inspector."""
    window, _, bar = _scrolled(make_window, qtbot)
    offsets = []
    hide = TableView.setColumnHidden
    monkeypatch.setattr(
        TableView,
        "setColumnHidden",
        lambda self, place, hidden: (offsets.append(bar.value()), hide(self, place, hidden)),
    )
    _opened(window, ("ort-cpu",), (1,))
    assert offsets, "a run of one backend has no speed-up"
    assert set(offsets) == {0}


def test_a_row_that_is_followed_leaves_the_columns_where_they_are(make_window, qtbot):
    window, table, bar = _scrolled(make_window, qtbot)
    window.state.select(window.state.measurements[-1].case)
    window.redraw.flush()
    assert table.currentIndex().isValid()
    assert bar.value() == bar.maximum()
