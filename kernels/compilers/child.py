"""A process that compiles rungs for another one, which it ends with."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
from typing import IO

import msgspec

from kernels import confine, nvrtc, processes
from kernels.compilers import LENGTH, Answer
from kernels.errors import KernelscopeError


def main() -> int:
    """Compile what standard input says until it ends; a byte for each on standard output, or an Answer for
    what strangers wrote."""
    processes.die_with_parent(int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # heard by whoever waits for this one
    questions, answers = sys.stdin.buffer, os.dup(1)
    os.dup2(2, 1)
    if confine.walled():
        nvrtc.unavailable()  # what it loads, now
        confine.shut_in(answers)
        processes.die_with_parent(int(sys.argv[1]))
        return _of_strangers(questions, answers)
    while True:
        try:
            rung, arch, defines = pickle.load(questions)
        except EOFError:
            return 0
        with contextlib.suppress(Exception):  # it is told to whoever asks for it next
            nvrtc.compile_rung(rung, arch, defines)
        os.write(answers, b".")


def _of_strangers(questions: IO[bytes], answers: int) -> int:
    while True:
        try:
            asked = pickle.load(questions)
        except EOFError:
            return 0
        try:
            answer = Answer(*nvrtc.compiled(*asked))
        except KernelscopeError as error:
            answer = Answer(error=str(error))
        data = msgspec.msgpack.encode(answer)
        with os.fdopen(os.dup(answers), "wb") as stream:
            stream.write(LENGTH.pack(len(data)) + data)


if __name__ == "__main__":
    sys.exit(main())
