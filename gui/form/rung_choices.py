"""The rungs chosen for nodes of models, as the job has them: seen in the form, and taken away there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from bench.run import chosen_rungs
from gui.base.boxes import as_row, filled
from gui.form.form_fields import heading
from gui.widgets.controls import tool_button
from gui.widgets.labels import Elided, as_tip


class RungChoices(QWidget):
    """Hidden while nothing is chosen. `chosen` when that changes."""

    chosen = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rungs: dict[str, str] = {}
        self._folders: tuple[str, ...] = ()
        self._models: tuple[str, ...] = ()
        self._lines: list[QWidget] = []
        self._column = filled(QVBoxLayout(self), heading("Kernels chosen"), margins=(0, 0, 0, 0), spacing=2)
        self.hide()

    @property
    def rungs(self) -> dict[str, str]:
        """As bench.results.records.Job.rungs."""
        return dict(self._rungs)

    @property
    def folders(self) -> tuple[str, ...]:
        """As bench.results.records.Job.kernel_dirs."""
        return self._folders

    @property
    def words(self) -> list[str]:
        """The lines as they are read."""
        return [
            label.text()
            for line in self._lines
            if (label := line.findChild(Elided)) is not None and not line.isHidden()
        ]

    def set_chosen(self, rungs: Mapping[str, str], folders: Sequence[str], models: Sequence[str]) -> None:
        """Make these the choices; models: those that keys may name."""
        self._rungs, self._folders, self._models = dict(rungs), tuple(folders), tuple(models)
        self._show()

    def choose(self, key: str, rung: str, folders: Sequence[str], models: Sequence[str]) -> None:
        """Choose one rung more, or another for its node."""
        self._rungs[key] = rung
        self._folders = tuple(dict.fromkeys([*self._folders, *folders]))
        self._models = tuple(models)
        self._show()
        self.chosen.emit()

    def remove(self, key: str) -> None:
        """Let the backend choose for this node again; folders go with the last rung."""
        self._rungs.pop(key, None)
        if not self._rungs:
            self._folders = ()
        self._show()
        self.chosen.emit()

    def remove_folder(self, folder: str) -> None:
        self._folders = tuple(known for known in self._folders if known != folder)
        self._show()
        self.chosen.emit()

    def _show(self) -> None:
        for line in self._lines:
            self._column.removeWidget(line)
            line.hide()
            line.deleteLater()
        self._lines = []
        for key, rung in self._rungs.items():
            self._add(sentence(key, rung, self._models), partial(self.remove, key))
        for folder in self._folders:
            self._add(f"kernels of {Path(folder).name}", partial(self.remove_folder, folder), folder)
        self.setVisible(bool(self._lines))

    def _add(self, words: str, remove: Callable[[], None], tip: str = "") -> None:
        label = Elided(words)
        if tip:
            label.setToolTip(as_tip(tip))
        away = as_tip(f"Take this away: {words}")
        button = tool_button("✕", lambda: remove(), away, "switch", name=f"Take away: {words}")
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        line = as_row((label, 1), button)
        self._column.addWidget(line)
        self._lines.append(line)


def sentence(key: str, rung: str, models: Sequence[str]) -> str:
    """ "conv1 of lenet5-digits: im2col (cpu)"."""
    owner, node, device, name = chosen_rungs.parts(key, rung, models)
    of = f" of {owner}" if owner else ""
    on = f" ({device})" if device else ""
    return f"{node}{of}: {name}{on}"
