"""What printf in a kernel says, of its format and of its values as they lie in memory (CUDA C++ Programming
Guide, "Formatted Output")."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

MOST_WIDTH = 200  # characters to which a value is filled up
_PART = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\*|\d*)(?:\.(?P<digits>\*|\d*))?(?P<size>hh|h|ll|l|j|z|t|L)?(?P<kind>.)",
    re.S,
)
_WHOLE, _FLOAT = "diuoxXcp", "fFeEgGaA"


def formatted(text: str, values: bytes, texts: Callable[[int], str]) -> str:
    """texts: what stands at an address, for %s. What cannot be formatted stays as it is."""
    at = 0

    def value(nbytes: int, code: str) -> int | float:
        nonlocal at
        at = -(-at // nbytes) * nbytes
        part = values[at : at + nbytes]
        at += nbytes
        return struct.unpack(code, part.ljust(nbytes, b"\0"))[0]

    def one(found: re.Match[str]) -> str:
        kind, flags = found["kind"], "".join(dict.fromkeys(found["flags"]))
        if kind == "%":
            return "%"
        if kind not in _WHOLE + _FLOAT + "s":
            return found[0]
        width = int(value(4, "<i")) if found["width"] == "*" else int(found["width"] or 0)
        digits = found["digits"]
        if digits == "*":
            digits = str(max(0, int(value(4, "<i"))))
        if width < 0:
            flags, width = flags + "-", -width
        of = f"%{flags}{min(width, MOST_WIDTH) or ''}"
        of += f".{min(int(digits or 0), MOST_WIDTH)}" if digits is not None else ""
        if kind in _FLOAT:
            number = value(8, "<d")
            return number.hex() if kind in "aA" and isinstance(number, float) else f"{of}{kind}" % number
        if kind == "s":
            return f"{of}s" % texts(int(value(8, "<Q")))
        wide = kind == "p" or found["size"] in ("l", "ll", "j", "z", "t")
        code = ("q" if wide else "i") if kind in "di" else ("Q" if wide else "I")
        whole = int(value(8 if wide else 4, f"<{code}"))
        narrow = {"h": 16, "hh": 8}.get(found["size"] or "", 0)
        if narrow:
            whole &= (1 << narrow) - 1
            whole -= (1 << narrow) if kind in "di" and whole >> narrow - 1 else 0
        if kind == "c":
            return f"{of}s" % chr(whole & 255)
        return f"{of}s" % f"{whole:#x}" if kind == "p" else f"{of}{'d' if kind == 'u' else kind}" % whole

    return _PART.sub(one, text)
