"""A process that compiles rungs for another one, which it ends with."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys

from kernels import nvrtc, processes


def main() -> int:
    """Compile what standard input says until it ends; a byte for each on standard output."""
    processes.die_with_parent(int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # heard by whoever waits for this one
    questions, answers = sys.stdin.buffer, os.dup(1)
    os.dup2(2, 1)
    while True:
        try:
            rung, arch, defines = pickle.load(questions)
        except EOFError:
            return 0
        with contextlib.suppress(Exception):  # it is told to whoever asks for it next
            nvrtc.compile_rung(rung, arch, defines)
        os.write(answers, b".")


if __name__ == "__main__":
    sys.exit(main())
