"""How a user calls this program in a terminal, for the sentences and records that name a command."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from kernels.environment import PACKAGED

WORDS = ("kernelscope",) if PACKAGED else ("python", "main.py")
CALLED = " ".join(WORDS)


def command_line(arguments: Sequence[str]) -> str:
    """A whole command, quoted for a shell."""
    return shlex.join([*WORDS, *arguments])
