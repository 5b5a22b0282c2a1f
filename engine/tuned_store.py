"""What was measured once on a machine and is kept for the next run: the engine's entries in the user's cache
(kernels.kept), under a kind ("reference", "rungs") and a key that says what they were measured on.
"""

from __future__ import annotations

from kernels.kept import Key, Store

__all__ = ["VERSION", "Key", "folder", "forget", "path", "read", "write"]

VERSION = 1  # of the entries: goes up where their meaning changes, so that no old one is read
_STORE = Store("tuned", VERSION, "what was tuned")
folder, path, read, write, forget = _STORE.folder, _STORE.path, _STORE.read, _STORE.write, _STORE.forget
