"""Entries at the end of File (quit) and of Help (about the program)."""

from __future__ import annotations

import platform

from PySide6.QtCore import Qt, qVersion
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QDialogButtonBox,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from bench.results.messages import Hello
from bench.results.records import Environment
from bench.words import units
from bench.words.version import ROOT, described, of_package, version
from gui.base.boxes import filled
from gui.base.theme import resized
from gui.shell.main_window import Actions, MainWindow
from gui.widgets.controls import Label, fixed_text

ORDER = 90


def add_to(window: MainWindow, actions: Actions) -> None:
    known: list[Environment] = []

    def greeted(hello: Hello) -> None:
        known[:] = [hello.environment]

    def show() -> About:
        dialog = About(known[0] if known else None, window)
        dialog.show()
        return dialog

    window.session.greeted.connect(greeted)
    actions.add("file", "quit", "&Quit", window.close, "Ctrl+Q")
    actions.add("help", "about", "&About Kernelscope", show)


IDEA = "Is my kernel right, how fast is it beside the reference, and what holds it back?"
PACKAGES = ("PySide6-Essentials", "pyqtgraph", "matplotlib", "numpy", "msgspec")  # what the window runs on


class About(QDialog):
    """The dialog about the program. environment: of this machine, None if no worker has said it yet."""

    def __init__(self, environment: Environment | None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("About Kernelscope")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.text = facts(environment)
        name = Label(f"Kernelscope {version()}".rstrip(), selectable=True)
        name.setFont(resized(name.font(), 1.5, bold=True))
        idea = Label(IDEA, role="muted")
        panes = {"&Versions and machine": self.text, "&Licence": licence()}
        self.tabs = QTabWidget()
        for words, text in panes.items():
            self.tabs.addTab(fixed_text(text, words.replace("&", "")), words)
        buttons = QDialogButtonBox()
        buttons.addButton("Close", QDialogButtonBox.ButtonRole.RejectRole)
        buttons.rejected.connect(self.reject)
        self.copy_button = buttons.addButton("&Copy", QDialogButtonBox.ButtonRole.ActionRole)
        self.copy_button.setToolTip("Copy versions and machine, for a bug report")
        self.copy_button.clicked.connect(self.copy)
        layout = filled(QVBoxLayout(self), name, idea, margins=(16, 14, 16, 12))
        layout.addSpacing(8)
        layout.addWidget(self.tabs, 1)
        layout.addWidget(buttons)
        self.resize(620, 480)

    def copy(self) -> None:
        QApplication.clipboard().setText(self.text)
        self.copy_button.setText("Copied")


def facts(environment: Environment | None) -> str:
    """Versions and facts of the machine, one in each line."""
    lines = [
        f"Kernelscope {described()}".rstrip(),
        f"Python {platform.python_version()}",
        f"Qt {qVersion()} on {QApplication.platformName()}",
    ]
    lines += [f"{name} {number}" for name in PACKAGES if (number := of_package(name))]
    if environment is None:
        return "\n".join([*lines, "", "The machine is read by the worker, which has not started yet."])
    listed = {name.lower() for name in PACKAGES}
    lines += [f"{name} {v}" for name, v in environment.packages.items() if name.lower() not in listed]
    machine = (
        ("machine", environment.machine),
        ("system", environment.os),
        ("CPU", f"{environment.cpu} ({environment.cores} cores)" if environment.cores else environment.cpu),
        ("memory", units.nbytes(environment.memory_nbytes) if environment.memory_nbytes else ""),
        ("GPU", environment.gpu or "none found"),
        ("driver", environment.driver),
        ("CUDA", environment.cuda),
    )
    lines += ["", *(f"{name}: {value}" for name, value in machine if value), ""]
    lines += [f"{backend.name}: {backend.unavailable or 'available'}" for backend in environment.backends]
    return "\n".join(lines).rstrip()


def licence() -> str:
    """The text of the licence."""
    try:
        return (ROOT / "LICENSE").read_text(encoding="utf-8")
    except OSError:
        return "The file LICENSE that comes with the program is missing here."
