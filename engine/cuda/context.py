"""Settings of a device's context that change the time of a kernel: how much of the L2 cache is reserved for
lines that persist, how much is fetched at once, and which lines a stream keeps there.

A kernel has no code on the host, and its compiler runs in an isolated process. But what a library sets in
this process stays set for everything after it. So these settings are looked at before each train, put back,
and reported.
"""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any

from engine.machine import driver

_LIMITS = {  # CUlimit
    0x05: "how much the L2 cache fetches at once",
    0x06: "how much of the L2 cache is kept for lines that persist",
}
_WINDOW = 1  # CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
_WINDOW_WORDS = "which lines of a stream stay in the L2 cache"


class _Window(ctypes.Structure):
    """CUaccessPolicyWindow, in the room of a CUlaunchAttributeValue."""

    _fields_ = (
        ("base", ctypes.c_void_p),
        ("nbytes", ctypes.c_size_t),
        ("hit_ratio", ctypes.c_float),
        ("hit", ctypes.c_int),
        ("miss", ctypes.c_int),
        ("room", ctypes.c_char * 32),
    )


class Context:
    """The current one, as it is when this is made. cuda: libcuda. undone: what was changed since, in words,
    and put back. Of what a driver does not know nothing is looked at."""

    def __init__(self, cuda: Any = None) -> None:
        self.undone: list[str] = []
        self._cuda = cuda if cuda is not None else driver.library()
        self._limits = {limit: held for limit in _LIMITS if (held := self._limit(limit)) is not None}

    def look(self, stream: int) -> None:
        """Put back what is otherwise than it was; a stream of ours has no lines that stay."""
        for limit, held in self._limits.items():
            if self._limit(limit) != held:
                self._call("cuCtxSetLimit", limit, ctypes.c_size_t(held))
                self._told(_LIMITS[limit])
        window = _Window()
        known = self._call("cuStreamGetAttribute", ctypes.c_void_p(stream), _WINDOW, ctypes.byref(window))
        if known and window.nbytes:
            self._call("cuStreamSetAttribute", ctypes.c_void_p(stream), _WINDOW, ctypes.byref(_Window()))
            self._told(_WINDOW_WORDS)

    def forget_lines(self) -> None:
        """Lines that were to persist in the L2 cache are as all others from now on."""
        self._call("cuCtxResetPersistingL2Cache")

    def _told(self, words: str) -> None:
        self.forget_lines()
        if words not in self.undone:
            self.undone.append(words)

    def _limit(self, limit: int) -> int | None:
        held = ctypes.c_size_t(0)
        return held.value if self._call("cuCtxGetLimit", ctypes.byref(held), limit) else None

    def _call(self, name: str, *arguments: Any) -> bool:
        """Whether it was done."""
        with contextlib.suppress(AttributeError):
            return bool(getattr(self._cuda, name)(*arguments) == 0)
        return False
