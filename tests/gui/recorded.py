"""Pages that show a recorded run: two models on two backends, measured on two cores, thinned."""

import shutil
from pathlib import Path

from bench.run.kinds.comparison import KIND as COMPARISON
from gui.base.theme import Theming
from gui.sessions.run_state import RunState
from gui.shell.redraw import Redraw

RECORDED = Path(__file__).parents[1] / "data" / "two_models"


class Shown:
    """A page on a state of its own, drawn without a timer's help."""

    def __init__(self, qtbot, page_type, theme="light"):
        self.qtbot = qtbot
        self.state = RunState()
        self.theming = Theming(theme)
        self.page = page_type(self.state, self.theming)
        qtbot.addWidget(self.page)
        self.page.resize(1000, 700)
        self.redraw = Redraw(self.state)
        self.redraw.add(self.page)
        with qtbot.waitExposed(self.page):
            self.page.show()
        self.redraw.flush()

    def open(self, path=RECORDED, keep=lambda measurement: True):
        folder = COMPARISON.open(path)
        self.state.open(folder.header, folder.path, [m for m in folder.measurements() if keep(m)])
        self.redraw.flush()

    @property
    def empty_shown(self):
        return self.page._stack.currentWidget() is self.page._empty

    def choose(self, key, words):
        """Choose in one of the page's lists as the user does."""
        box = self.page._choices[key]
        at = box.findText(words)
        assert at >= 0, [box.itemText(i) for i in range(box.count())]
        box.setCurrentIndex(at)
        box.activated.emit(at)
        self.redraw.flush()

    def offered(self, key):
        box = self.page._choices[key]
        return [box.itemText(i) for i in range(box.count())]


def copied(tmp_path):
    """The recorded run where a test may change it."""
    return Path(shutil.copytree(RECORDED, tmp_path / "run"))
