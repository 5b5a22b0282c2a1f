"""Messages for the user, laid over the lower right of the pages: nothing moves when one comes.

A notice has a severity, which a sign, a word and a colour tell. It may have a button for what it offers.
It goes with its cause: what is said about a matter is taken back when that is over. What comes often can be
turned off, which the settings keep.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QObject, QSettings, Qt
from PySide6.QtGui import QAccessible, QAccessibleEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from gui.base.boxes import filled, fitting_height, kept_list, scrolled
from gui.base.theme import GAP, TIGHT, WIDE
from gui.widgets.controls import Label, push_button, tool_button

MOST = 3  # messages shown at once; older ones are in the log, but for those that offer something
WIDEST = 560  # pixels
HIGHEST = 0.6  # of the pages' height; beyond it they scroll
SIGNS = {"info": ("i", "Note"), "warning": ("!", "Attention"), "failed": ("✕", "Failed")}  # by severity

# Matters that can be turned off, as the preferences call them.
MACHINE, BASELINE, INTERRUPTED = "machine", "baseline", "interrupted"
MATTERS = {
    MACHINE: "What disturbs measuring on this machine",
    BASELINE: "How a run that ended stands beside its baseline",
    INTERRUPTED: "Runs that were interrupted and can be gone on with",
}
BUSY = "busy"  # true while something is measured
_HUSHED = "notices/hushed"


class Notice(QFrame):
    """One message. `button` does what it offers, if it offers anything."""

    def __init__(self, owner: Banner, text: str, severity: str, about: str, words: str) -> None:
        super().__init__()
        self.message, self.severity, self.about, self.count = text, severity, about, 1
        self.setProperty("role", "notice")
        self.setProperty("severity", severity)
        sign, called = SIGNS[severity]
        mark = Label(sign, role=f"sign-{severity}", centred=True)
        mark.setFixedWidth(5 * TIGHT)
        mark.setAccessibleName(called)
        self.label = Label(text, wrap=True, selectable=True)
        self.button = push_button(words, lambda: owner.agree(self))
        self.button.setVisible(bool(words))
        self.hush = push_button(
            "Don't tell again", lambda: owner.hush(about), "File → Preferences takes it back", "link"
        )
        self.hush.setVisible(about in MATTERS)
        close = tool_button(
            "✕", lambda: owner.close_notice(self), flat=True, tip="Dismiss (Esc)", name="Dismiss the message"
        )
        ways = filled(QHBoxLayout(), self.button, self.hush, 1, margins=(0, TIGHT, 0, 0), spacing=GAP)
        column = filled(QVBoxLayout(), self.label)
        if words or about in MATTERS:
            column.addLayout(ways)
        top = Qt.AlignmentFlag.AlignTop
        filled(QHBoxLayout(self), (mark, 0, top), (column, 1), (close, 0, top), margins=(GAP, GAP, GAP, GAP))
        self.setAccessibleName(called)
        self.setAccessibleDescription(text)

    def repeat(self) -> None:
        self.count += 1
        self.label.setText(self.shown)

    @property
    def shown(self) -> str:
        return self.message if self.count == 1 else f"{self.message} ({self.count} times)"


class Banner(QFrame):
    """The notices of a window: the last few. It blocks nothing. Repeated ones are counted. over: what they
    are laid over; settings: keep what the user turned off."""

    def __init__(self, over: QWidget, settings: QSettings | None = None) -> None:
        super().__init__(over)
        self.setProperty("role", "banner")
        self.setAccessibleName("Messages")
        self._over, self._settings = over, settings
        self._notices: list[Notice] = []
        self._agreed: dict[Notice, Callable[[], object]] = {}
        self._none = QPushButton(self)
        self._none.hide()
        self._column = QWidget()
        self._layout = filled(QVBoxLayout(self._column), margins=(0, 0, 0, 0), spacing=TIGHT)
        self._area = scrolled(self._column, "Messages", sideways=False, focus=False)
        filled(QVBoxLayout(self), self._area, margins=(0, 0, 0, 0))
        over.installEventFilter(self)
        self.hide()

    @property
    def text(self) -> str:
        return "\n".join(notice.shown for notice in self._notices)

    @property
    def notices(self) -> Sequence[Notice]:
        return tuple(self._notices)

    @property
    def button(self) -> QPushButton:
        """The button of the newest notice that offers something; a hidden one without."""
        offering = [notice for notice in self._notices if notice in self._agreed]
        return offering[-1].button if offering else self._none

    def show_message(self, text: str, severity: str = "info", about: str = "") -> None:
        """Show a sentence. severity: of SIGNS; about: the matter, "" for none."""
        self._show(text, severity, about)

    def show_fault(self, text: str) -> None:
        self._show(text, "failed", "")

    def replace(self, matter: str, texts: Sequence[str], severity: str = "warning") -> None:
        """Show these messages about a matter, in place of earlier ones. None: just remove those, because
        what they told of is over."""
        for notice in [notice for notice in self._notices if notice.about == matter]:
            self._forget(notice)
        for text in texts:
            self._show(text, severity, matter)
        self._place()

    def ask(
        self, text: str, words: str, agreed: Callable[[], object], about: str = "", severity: str = "info"
    ) -> None:
        """Show a message with a button. agreed: called when the button is pressed. A later one about the
        matter replaces it."""
        for notice in [n for n in self._notices if n.message == text or (about and n.about == about)]:
            self._forget(notice)
        shown = self._show(text, severity, about, words)
        if shown is not None:
            self._agreed[shown] = agreed

    def dismiss(self) -> None:
        while self._notices:
            self._forget(self._notices[0])
        self._place()

    def close_notice(self, notice: Notice) -> None:
        self._forget(notice)
        self._place()

    def agree(self, notice: Notice) -> None:
        agreed = self._agreed.get(notice)
        self.close_notice(notice)
        if agreed is not None:
            agreed()

    # ------------------------------------------------------------------------------------- what is turned off

    @property
    def hushed(self) -> list[str]:
        """The matters (of MATTERS) that the user turned off."""
        return kept_list(self._settings, _HUSHED) if self._settings is not None else []

    def hush(self, about: str, on: bool = True) -> None:
        """Tell no more about a matter, or tell again. Stored at once."""
        rest = [matter for matter in self.hushed if matter != about]
        if self._settings is not None:
            self._settings.setValue(_HUSHED, [*rest, about] if on else rest)
        if on:
            self.replace(about, ())

    # ------------------------------------------------------------------------------------------ the inside

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize and watched is self._over:
            self._place()
        return False

    def _show(self, text: str, severity: str, about: str, words: str = "") -> Notice | None:
        if about in MATTERS and about in self.hushed:
            return None
        notice = next((n for n in self._notices if (n.message, n.about) == (text, about) and not words), None)
        if notice is not None:
            notice.repeat()
            self._notices.remove(notice)
            self._layout.removeWidget(notice)
        else:
            notice = Notice(self, text, severity, about, words)
        self._notices.append(notice)
        self._layout.addWidget(notice)
        for old in self._too_many(notice):
            self._forget(old)
        self._place()
        QAccessible.updateAccessibility(QAccessibleEvent(notice, QAccessible.Event.Alert))
        return notice

    def _too_many(self, newest: Notice) -> Sequence[Notice]:
        """The oldest beyond MOST. What waits for the user's answer stays: with it would go what it offers."""
        silent = [n for n in self._notices if n not in self._agreed and n is not newest]
        return silent[: max(0, len(self._notices) - MOST)]

    def _forget(self, notice: Notice) -> None:
        self._notices.remove(notice)
        self._agreed.pop(notice, None)
        self._layout.removeWidget(notice)
        notice.hide()
        notice.deleteLater()

    def _place(self) -> None:
        """Lie at the lower right, as high as the messages."""
        self.setVisible(bool(self._notices))
        if not self._notices:
            return
        wide = min(WIDEST, self._over.width() - 2 * WIDE)
        for notice in self._notices:
            notice.setFixedHeight(fitting_height(notice, wide))
        spaces = TIGHT * (len(self._notices) - 1)
        whole = sum(notice.height() for notice in self._notices) + spaces
        high = min(whole, int(HIGHEST * self._over.height()))
        self.setGeometry(self._over.width() - wide - WIDE, self._over.height() - high - WIDE, wide, high)
        self._area.verticalScrollBar().setValue(self._area.verticalScrollBar().maximum())
        self.raise_()
