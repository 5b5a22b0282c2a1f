"""Opens a file in the user's editor at a line.

The editor is that of a configuration file (the preferences write one), else VISUAL or EDITOR, else what the
desktop opens the file with.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from PySide6.QtCore import QProcess, QUrl
from PySide6.QtGui import QDesktopServices

from bench.run import settings
from gui.pages.ladder import LadderPage
from gui.shell.main_window import Actions, MainWindow
from kernels.errors import InputError

SETTING = "editor"
_OPTION = settings.LASTING[SETTING]
FILE, LINE = "{file}", "{line}"  # placeholders in a command
# The arguments with which editors open a file at a line.
_GOTO = ("--goto", f"{FILE}:{LINE}")
_COLON = (f"{FILE}:{LINE}",)
_PLUS = (f"+{LINE}", FILE)
_LONG = ("--line", LINE, FILE)
_WAYS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("code", "code-insiders", "codium", "cursor", "windsurf"), _GOTO),
    **dict.fromkeys(("subl", "sublime_text", "zed", "hx", "helix", "micro"), _COLON),
    **dict.fromkeys(
        ("vi", "vim", "nvim", "gvim", "nano", "emacs", "emacsclient", "gedit", "ne", "joe"), _PLUS
    ),
    **dict.fromkeys(("kate", "kwrite", "clion", "pycharm", "idea"), _LONG),
    "mcedit": (f"{FILE}:{LINE}",),
}
IN_TERMINAL = ("vi", "vim", "nvim", "nano", "hx", "helix", "micro", "ne", "joe", "mcedit", "ed")
# Terminals, and the arguments before the command that they run.
_TERMINALS: Mapping[str, tuple[str, ...]] = {
    "x-terminal-emulator": ("-e",),
    "gnome-terminal": ("--",),
    "konsole": ("-e",),
    "xfce4-terminal": ("-x",),
    "kitty": (),
    "alacritty": ("-e",),
    "foot": (),
    "wezterm": ("start", "--"),
    "xterm": ("-e",),
}


def editor_command(environment: Mapping[str, str] = os.environ) -> str:
    """The command of the user's editor, "" if none is set. Raises InputError as `bench.run.settings` does."""
    named = settings.values([_OPTION]).get(SETTING, "")
    return named or environment.get("VISUAL", "").strip() or environment.get("EDITOR", "").strip()


def command(editor: str, file: Path, line: int = 1) -> tuple[str, ...]:
    """The program and its arguments that open a file at a line. "{file}" and "{line}" in the editor's
    command are replaced; without them the arguments follow, as this editor takes them. () if `editor`
    is no command."""
    try:
        words = shlex.split(editor, posix=os.name != "nt")
    except ValueError:
        return ()
    if not words:
        return ()
    if not any(FILE in word for word in words):
        words += _WAYS.get(_program_name(words[0]), (FILE,))
    return tuple(word.replace(FILE, str(file)).replace(LINE, str(max(1, line))) for word in words)


def in_terminal(words: Sequence[str], environment: Mapping[str, str] = os.environ) -> tuple[str, ...] | None:
    """The same command, run inside a terminal if its editor needs one. None if no terminal is installed."""
    if _program_name(words[0]) not in IN_TERMINAL and "-nw" not in words:
        return tuple(words)
    named = environment.get("TERMINAL", "").strip()
    for terminal in (*((named,) if named else ()), *_TERMINALS):
        if shutil.which(terminal):
            return (terminal, *_TERMINALS.get(_program_name(terminal), ("-e",)), *words)
    return None


def open_in_editor(file: Path, line: int) -> str:
    """Open a file at a line. Returns "" or, in a sentence, what prevented it and what helps."""
    helps = "; File → Preferences names one"
    if not file.is_file():
        return f"{file} is not there any more."
    try:
        editor = editor_command()
    except InputError as error:
        return f"{error}."
    if not editor:
        if QDesktopServices.openUrl(QUrl.fromLocalFile(str(file))):
            return ""
        return f"No editor is known for {file}{helps}."
    words = command(editor, file, line)
    if not words or shutil.which(words[0]) is None:
        return f"The editor {editor!r} is not found{helps}."
    ready = in_terminal(words)
    if ready is None:
        return f"{words[0]} takes a terminal, and none is found{helps} that has a window."
    started = QProcess.startDetached(ready[0], list(ready[1:]), str(file.parent))
    if not (started[0] if isinstance(started, tuple) else started):
        return f"The editor {editor!r} could not be started{helps}."
    return ""


def _program_name(program: str) -> str:
    return Path(program).stem.lower() if program.lower().endswith(".exe") else Path(program).name


ORDER = 16


def add_to(window: MainWindow, actions: Actions) -> None:
    def edit(file: Path, line: int) -> None:
        if reason := open_in_editor(Path(file), line):
            window.tell(reason, "failed")

    window.page_of(LadderPage).edit_wanted.connect(edit)
