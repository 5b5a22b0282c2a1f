"""What a line here and a keeper there say to each other: frames, each a length and a message.

A frame is four bytes, the length of what follows (its highest bit: that is compressed), and a message in
MessagePack. Whatever a shell prints before the keeper's first word is passed over. A frame that is too long,
unpacks to too much, or is no message breaks the connection: nothing that comes is believed beyond its limits.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any

import msgspec

PROTOCOL = 1
MAGIC = b"\nkernelscope keeper\n"
NOISE_NBYTES = 1 << 20  # that a shell may print before MAGIC
LINE_NBYTES = 64 << 20  # of a line of a worker (bench.run.supervisor)
FRAME_NBYTES = LINE_NBYTES + (1 << 16)
PIECE_NBYTES = 1 << 20  # of a file, in one frame
BEAT_S = 3.0  # how often each side says that it is there
DEAD_S = 20.0  # a connection that says nothing for so long is given up
_COMPRESSED = 1 << 31
_LEAST = 512  # bytes that are worth compressing


class Frame(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Base of all that is said."""


# --------------------------------------------------------------------------------------- from here to there


class Open(Frame, frozen=True):
    """First of each connection. version: of the program; session: which; have: the number of the last word
    that came (-1: none did). words: the worker's command there, where the session is to be begun now (() : it
    is there already). lease_s: how long it goes on with nobody listening."""

    protocol: int
    version: str
    session: str
    have: int = -1
    words: tuple[str, ...] = ()
    lease_s: float = 3600.0


class Offer(Frame, frozen=True):
    """SHA-256 of files that are needed there."""

    files: tuple[str, ...]


class Put(Frame, frozen=True):
    """A part of a file; its last part has `last`."""

    digest: str
    data: bytes
    last: bool = False


class Input(Frame, frozen=True):
    """The worker's job. trees: folders of files, by their name there, each by relative name → SHA-256. files:
    laid into the run's folder there first."""

    line: bytes
    trees: dict[str, dict[str, str]] = {}
    files: dict[str, str] = {}


class Stop(Frame, frozen=True):
    """The worker is to end after its current pass."""


class Kill(Frame, frozen=True):
    """It is to end now."""


class Bye(Frame, frozen=True):
    """All was heard: the session is needed no more."""


class Beat(Frame, frozen=True):
    """I am here. have: as in `Open`."""

    have: int = -1


# --------------------------------------------------------------------------------------- from there to here


class Opened(Frame, frozen=True):
    """The answer to Open. folder: the place's, absolute. told: whether the worker has its job. said: how much
    was said so far; ended: the worker has."""

    protocol: int
    version: str
    folder: str
    told: bool
    said: int
    ended: bool


class Refused(Frame, frozen=True):
    """This connection is not served, and why. again: whether it may be tried later."""

    why: str
    again: bool = False


class Missing(Frame, frozen=True):
    """Of an Offer, what is not there."""

    files: tuple[str, ...]


class Warned(Frame, frozen=True):
    """Something that the user is to know."""

    text: str


class Heard(Frame, frozen=True):
    """A line that the worker wrote, without its end. number: of the word, as in all that follow."""

    number: int
    line: bytes


class Errors(Frame, frozen=True):
    """What came on its standard error."""

    number: int
    data: bytes


class Piece(Frame, frozen=True):
    """A part of a file that it wrote into the run's folder. first, last: of its parts."""

    number: int
    name: str
    data: bytes
    first: bool
    last: bool


class Ended(Frame, frozen=True):
    """It has ended. code: its exit status (negative: the signal that ended it)."""

    number: int
    code: int


Down = Open | Offer | Put | Input | Stop | Kill | Bye | Beat
Up = Opened | Refused | Missing | Warned | Heard | Errors | Piece | Ended | Beat
Numbered = (Heard, Errors, Piece, Ended)


class Broken(ValueError):
    """What comes is no frame; the text says why."""


def packed(frame: Frame) -> bytes:
    """As it travels."""
    data = msgspec.msgpack.encode(frame)
    if len(data) >= _LEAST and len(smaller := zlib.compress(data, 1)) < len(data):
        return struct.pack(">I", len(smaller) | _COMPRESSED) + smaller
    return struct.pack(">I", len(data)) + data


class Frames:
    """Takes bytes, and gives the frames in them. of: what may come. magic: whether MAGIC comes first."""

    def __init__(self, of: Any, magic: bool = False) -> None:
        self._decoder = msgspec.msgpack.Decoder(of)
        self._data = bytearray()
        self._magic = magic
        self._noise = bytearray()

    @property
    def noise(self) -> str:
        """The last line of what came before MAGIC."""
        lines = self._noise.decode("utf-8", "replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")[:300]

    @property
    def rest(self) -> bytes:
        """What came and is no whole frame yet."""
        return bytes(self._data)

    def feed(self, data: bytes) -> Iterator[Any]:
        """Raises Broken."""
        self._data += data
        if self._magic and not self._found_magic():
            return
        while len(self._data) >= 4:
            (head,) = struct.unpack_from(">I", self._data)
            length = head & ~_COMPRESSED
            if length > FRAME_NBYTES:
                raise Broken(f"a frame of {length:,} bytes")
            if len(self._data) < 4 + length:
                return
            content = bytes(self._data[4 : 4 + length])
            del self._data[: 4 + length]
            yield self._decoded(content, bool(head & _COMPRESSED))

    def _found_magic(self) -> bool:
        at = self._data.find(MAGIC)
        if at < 0:
            keep = len(MAGIC) - 1
            self._noise += self._data[:-keep]
            del self._data[:-keep]
            if len(self._noise) > NOISE_NBYTES:
                raise Broken(f"more than {NOISE_NBYTES:,} bytes that are none of a keeper's")
            return False
        self._magic = False
        self._noise += self._data[:at]
        del self._data[: at + len(MAGIC)]
        return True

    def _decoded(self, content: bytes, compressed: bool) -> Any:
        try:
            if compressed:
                unpacker = zlib.decompressobj()
                content = unpacker.decompress(content, FRAME_NBYTES)
                if unpacker.unconsumed_tail or not unpacker.eof:
                    raise Broken(f"a frame that unpacks to more than {FRAME_NBYTES:,} bytes, or is cut off")
            return self._decoder.decode(content)
        except (zlib.error, msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise Broken(f"a frame that is no message: {' '.join(str(error).split())}") from error
