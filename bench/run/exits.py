"""How a process ended, in words."""

from __future__ import annotations

import signal


def signal_name(code: int) -> str:
    """The signal of a negative exit status."""
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def exit_words(code: int) -> str:
    """An exit status in words: "was killed by SIGSEGV (segmentation fault)", "ended with exit code 3"."""
    if code >= 0:
        # Windows reports a fault by its NTSTATUS.
        known = {0xC0000005: " (access violation)", 0xC00000FD: " (stack overflow)"}
        return f"ended with exit code {code}{known.get(code & 0xFFFFFFFF, '')}"
    try:
        number = signal.Signals(-code)
    except ValueError:
        return f"was killed by signal {-code}"
    text = (signal.strsignal(number) or "").lower()
    hint = ", which is how the system ends a process when memory runs out" if number.name == "SIGKILL" else ""
    return f"was killed by {number.name} ({text}){hint}"


def last_line(stderr: str) -> str:
    """The last line with something on it, shortened to what fits in a sentence.

    What Python's fault handler adds when a process dies says where, not why, and is left to the log.
    """
    stderr = stderr.partition("Fatal Python error:")[0]
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""
