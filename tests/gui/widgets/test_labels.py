"""Words that have little room: all that fits is shown, and nothing runs out of its place."""

from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget

from bench.views.charts.definitions import Axis
from gui.base.theme import Theming
from gui.plots.lines import LinePlot
from gui.widgets.controls import Lines

WORDS = "What is said here needs one line where there is room, and more of them where there is little."


def test_wrapped_words_grow_as_they_get_narrower(qtbot):
    box = QWidget()
    qtbot.addWidget(box)
    column = QVBoxLayout(box)
    words = Lines(3)
    words.setText(WORDS)
    column.addWidget(words)
    column.addStretch(1)
    box.resize(900, 200)
    with qtbot.waitExposed(box):
        box.show()
    one = words.height()
    for width, lines in ((330, 2), (200, 3), (330, 2), (900, 1)):
        box.resize(width, 200)
        qtbot.waitUntil(lambda width=width: box.width() == width)
        QApplication.processEvents()
        assert words.height() >= lines * (one - 4), width
        assert words.height() <= (words.most if lines > 1 else 1) * one, width
        assert words.toolTip() == WORDS


def test_an_axis_label_stays_within_its_axis(qtbot):
    plot = LinePlot(Theming("light"))
    qtbot.addWidget(plot)
    plot.y_axis.describe(Axis(label="images answered right", unit="%"), log=False)
    plot.resize(400, 400)
    with qtbot.waitExposed(plot):
        plot.show()
    qtbot.waitUntil(lambda: plot.y_axis.labelText == "images answered right")
    plot.resize(400, 120)
    qtbot.waitUntil(lambda: plot.y_axis.labelText.endswith("…"))
    assert plot.y_axis.label.boundingRect().width() <= plot.y_axis.size().height() + 1
    plot.resize(400, 400)
    qtbot.waitUntil(lambda: plot.y_axis.labelText == "images answered right")
    # What stands in brackets goes before a word is cut.
    plot.y_axis.describe(Axis(label="speed-up (over the reference, paired)", unit="×"), log=False)
    plot.resize(400, 160)
    qtbot.waitUntil(lambda: plot.y_axis.labelText == "speed-up")


def test_an_axis_label_has_the_theme_s_colour_whichever_came_first(qtbot):
    theming = Theming("light")
    plot = LinePlot(theming)
    qtbot.addWidget(plot)
    for name in ("light", "dark"):
        theming.choose(name)
        plot.restyle()
        muted = theming.theme.muted.lower()
        for label in ("time of one batch", "images a second"):
            plot.y_axis.describe(Axis(label=label), log=False)
            assert muted in plot.y_axis.label.toHtml().lower(), (name, label)
        plot.restyle()
        assert muted in plot.y_axis.label.toHtml().lower(), name


def test_words_are_written_smaller_before_they_are_cut(qtbot):
    words = "The largest part of a pass at batch 256: conv 46 % on ort-cpu, copy in 31 % on ort-cuda."
    cut, whole = Lines(most=2), Lines(most=2, smaller=2.0)
    for label in (cut, whole):
        qtbot.addWidget(label)
        label.setText(words)
    width = next(w for w in range(400, 60, -1) if cut._broken(w, cut.font())[1])
    for label in (cut, whole):
        label.resize(width, 60)
    assert cut.lines()[-1].endswith("…")
    assert " ".join(whole.lines()) == words
    whole.resize(80, 60)
    assert whole.lines()[-1].endswith("…"), "no letters are so small"
    assert whole.toolTip()
