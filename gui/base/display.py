"""Whether a window can open on this machine. This is found out before Qt starts, because QApplication ends
the process if there is no display."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from collections.abc import Mapping

# What Qt needs on Linux that its wheel does not contain: library → Debian package.
LIBRARIES = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libfontconfig.so.1": "libfontconfig1",
    "libdbus-1.so.3": "libdbus-1-3",
    "libxkbcommon.so.0": "libxkbcommon0",
}
XCB_LIBRARIES = {
    "libX11-xcb.so.1": "libx11-xcb1",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-render.so.0": "libxcb-render0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-shm.so.0": "libxcb-shm0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
}

# The Python packages of the window: module → package.
PACKAGES = {"PySide6": "pyside6-essentials", "pyqtgraph": "pyqtgraph", "qtawesome": "qtawesome"}


def problem(environment: Mapping[str, str] | None = None, platform: str = sys.platform) -> str | None:
    """Why no window can open and what would help, in a sentence; None if one can.

    environment: os.environ unless given. Nothing of Qt is started.
    """
    environment = os.environ if environment is None else environment
    lacking = [module for module in PACKAGES if importlib.util.find_spec(module) is None]
    if lacking:
        be, them = ("is", "it") if len(lacking) == 1 else ("are", "them")
        install = f"`pip install {' '.join(PACKAGES[module] for module in lacking)}`"
        return f"no window can open: {', '.join(lacking)} {be} not installed; {install} brings {them}"
    if not platform.startswith("linux"):
        return None
    wanted = environment.get("QT_QPA_PLATFORM", "").partition(":")[0].partition(";")[0]
    if wanted and wanted not in ("xcb", "wayland"):
        return f"no window can open: QT_QPA_PLATFORM={wanted} draws on no screen; unset it"
    wayland = wanted != "xcb" and bool(environment.get("WAYLAND_DISPLAY"))
    if not wayland and not environment.get("DISPLAY"):
        return "no window can open: there is no display (neither DISPLAY nor WAYLAND_DISPLAY is set)"
    needed = LIBRARIES if wayland else LIBRARIES | XCB_LIBRARIES
    missing = [package for library, package in needed.items() if not _loads(library)]
    if missing:
        return (
            f"no window can open: Qt misses system libraries; on Debian and Ubuntu `apt-get install "
            f"{' '.join(missing)}` brings them"
        )
    if not wayland and not _answers(environment["DISPLAY"]):
        return f"no window can open: the display {environment['DISPLAY']} does not answer"
    return None


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _answers(display: str) -> bool:
    """Whether an X server accepts a connection at this display."""
    xcb = ctypes.CDLL("libxcb.so.1")
    xcb.xcb_connect.restype = ctypes.c_void_p
    xcb.xcb_connect.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    xcb.xcb_connection_has_error.argtypes = [ctypes.c_void_p]
    xcb.xcb_disconnect.argtypes = [ctypes.c_void_p]
    connection = xcb.xcb_connect(display.encode(), None)
    error = xcb.xcb_connection_has_error(connection)
    xcb.xcb_disconnect(connection)
    return not error
