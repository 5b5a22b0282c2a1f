"""Kernels' names as people read them: demangled by the system's own C++ library, and shortened."""

from __future__ import annotations

import ctypes
import functools
import re
import sys
from typing import Any

_LIBRARIES = {"darwin": ("libc++abi.dylib", "libc++.1.dylib"), "linux": ("libstdc++.so.6", "libc++abi.so.1")}
_CUTLASS = re.compile(r"\bcutlass::Kernel2?<")
_NOISE = re.compile(r"\b(void|const|static|inline)\s+|\((anonymous namespace|unnamed)\)::")


@functools.cache
def demangled(name: str) -> str:
    """ "_ZN3foo3barIfEEvi" as "void foo::bar<float>(int)"; a name that is not mangled, or that nothing here
    can read, as it is."""
    if not name.startswith("_Z"):
        return name
    library = _library()
    if library is None:
        return name
    status = ctypes.c_int(1)
    found = library.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    if not found:
        return name
    try:
        text = ctypes.cast(found, ctypes.c_char_p).value or b""
    finally:
        library.free(found)
    return text.decode("utf-8", "replace") if status.value == 0 else name


@functools.cache
def short(name: str, most: int = 0) -> str:
    """The function alone: without namespaces, template arguments, parameters and return type. CUTLASS's
    kernels, which all have one name, are called what they are made of. most: the most characters, cut with
    "…" (0: all)."""
    text = demangled(name)
    if wrapped := _CUTLASS.search(text):
        text = short(_first_argument(text[wrapped.end() :])) or text
    elif "(" in text or "<" in text:
        words = _without_brackets(_NOISE.sub("", text)).split()
        text = words[-1].rsplit("::", 1)[-1] if words else name
    return text if not most or len(text) <= most else text[: most - 1] + "…"


def _first_argument(text: str) -> str:
    """Of what follows a template's "<", all that is before its first comma or its end."""
    depth = 0
    for place, character in enumerate(text):
        if depth == 0 and character in ",>":
            return text[:place].strip()
        depth += (character in "<(") - (character in ">)")
    return ""


def _without_brackets(text: str) -> str:
    """What stands outside of <…> and (…); an operator< keeps its sign only in `demangled`."""
    found, depth = [], 0
    for character in text:
        if character in "<(":
            depth += 1
        elif character in ">)":
            depth = max(0, depth - 1)
        elif not depth:
            found.append(character)
    return "".join(found)


@functools.cache
def _library() -> Any:
    """The C++ library with `__cxa_demangle` and the `free` that belongs to it, or None."""
    for name in _LIBRARIES.get(sys.platform, ()):
        try:
            library = ctypes.CDLL(name)
            library.__cxa_demangle.restype = ctypes.c_void_p
            library.__cxa_demangle.argtypes = [
                ctypes.c_char_p,
                ctypes.c_char_p,
                ctypes.c_void_p,
                ctypes.POINTER(ctypes.c_int),
            ]
            library.free.restype = None
            library.free.argtypes = [ctypes.c_void_p]
        except (OSError, AttributeError):
            continue
        return library
    return None
