"""What is no keeper: `python -m tests.bench.extras.remote.hostile HOW …`, in place of one."""

from __future__ import annotations

import os
import struct
import sys
import time
import zlib

import msgspec

from bench.extras.remote.frames import MAGIC, PROTOCOL, Ended, Heard, Missing, Opened, Piece, packed
from bench.results.messages import Log
from bench.words.version import described


def opened(protocol: int = PROTOCOL, version: str = "") -> bytes:
    return (
        MAGIC
        + packed(Opened(protocol, version or described(), "/there", False, 0, False))
        + packed(Missing(()))
    )


def main(how: str) -> None:
    os.read(0, 1 << 16)
    match how:
        case "garbage":
            said = [b"\x00garbage\xff" * (1 << 17)] * 4
        case "outside":
            said = [opened(), packed(Piece(0, "predictions/../../outside", b"x", True, True))]
        case "elsewhere":
            said = [opened(), packed(Piece(0, "results.jsonl", b"x", True, True))]
        case "bomb":
            small = zlib.compress(bytes(100 << 20), 9)
            said = [opened(), struct.pack(">I", len(small) | 1 << 31) + small]
        case "long":
            said = [opened(), struct.pack(">I", 0x7FFFFFFF)]
        case "newer":
            said = [opened(PROTOCOL + 1, "9.0")]
        case "lines":  # a worker that says what no worker says
            lines = [
                b"\x1b]0;x\x07",
                b'{"type":"measured","measurement":1}',
                b"[" * 100_000,
                b'{"type":"done"}',
            ]
            lines.insert(0, msgspec.json.encode(Log(level="info", text="\x1b[2J")))
            said = [opened(), *(packed(Heard(n, line)) for n, line in enumerate(lines)), packed(Ended(9, 0))]
    for data in said:
        while data:
            data = data[os.write(1, data) :]
    time.sleep(20)


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except BrokenPipeError:
        os._exit(0)
