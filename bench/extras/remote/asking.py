"""A request to the Python of a place (bench.extras.remote.there), and what is said where nobody answers."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

from bench.extras.remote import places, there
from bench.extras.remote.places import Place
from bench.words import plain
from kernels.errors import InputError, KernelscopeError, UnavailableError

Says = Callable[[str], None]

NEEDS = (3, 11)
# In the order in which they are taken; the system's own is the one that is kept up to date.
PYTHONS = ("python3", "python3.13", "python3.12", "python3.11", "python3.14")
# Each of one line and without "!", for the shell there may be any. None needs a file there.
_FIND = (
    'for p in "$@"; do case $p in "~/"*) p=$HOME/${p#"~/"};; esac; '
    'v=$("$p" -c "import sys; print(sys.version.split()[0], sys.executable)" 2>/dev/null) '
    f'&& echo && echo "{there.MARK}$v"; done; true'
)
_SHOW = f'if test -f "$1"; then echo; echo "{there.MARK}$(cat "$1")"; fi'
_RUN = "import sys; exec(sys.stdin.buffer.read(int(sys.argv[1])))"
MOST_NBYTES = 16 << 20  # of all that is said there; an answer has some kilobytes
TAIL_NBYTES = 4000
_PIECE_NBYTES = 1 << 18


def python_of(place: Place, named: str = "") -> str:
    """The path of a Python there that is new enough. named: the only one to try. Raises UnavailableError."""
    found: list[tuple[str, str]] = []
    with _Running(
        place, ("sh", "-c", _FIND, "sh", *([named] if named else PYTHONS)), launched=False
    ) as asked:
        told = (re.fullmatch(r"(\d+(?:\.\d+)*\S*) (/.*)", line) for line in asked.answers())
        found += [(it[1], it[2]) for it in told if it]
    wanted = ".".join(map(str, NEEDS))
    other = "--python names another there: one of conda, of a module, or `uv python install 3.13`"
    for version, path in found:
        if tuple(map(int, re.findall(r"\d+", version)[:2])) >= NEEDS:
            return path
    if found:
        version, path = max(found, key=lambda it: list(map(int, re.findall(r"\d+", it[0])[:2])))
        raise UnavailableError(
            f"Python {version} ({path}) is too old on {place.name}: {wanted} or newer is needed; {other}"
        )
    if named:
        raise UnavailableError(f"{named} is no Python that runs on {place.name}")
    raise UnavailableError(f"there is no Python on {place.name}: {wanted} or newer is needed; {other}")


def token_of(place: Place, says: Says) -> str:
    """What stands in the file that marks the place's folder, as a command sees it that is launched; "" where
    it sees no such file."""
    words = ("sh", "-c", _SHOW, "sh", f"{place.folder}/{there.OURS}")
    with _Running(place, words, launched=True, says=says) as asked:
        return next(asked.answers(), "").strip()


def ask(
    place: Place,
    do: str,
    sent: Sequence[Path] = (),
    says: Says | None = None,
    launched: bool = False,
    **request: Any,
) -> dict[str, Any]:
    """What `there` answers to a request for this place's folder. sent: files whose bytes follow it; says: is
    told how far it is. Raises UnavailableError where nobody answers, KernelscopeError for what is refused."""
    source = Path(there.__file__).read_bytes()
    told = json.dumps({"do": do, "folder": place.folder, **request}).encode() + b"\n"
    with _Running(place, (place.python, "-I", "-c", _RUN, str(len(source))), launched, says) as asked:
        asked.send((source, told), sent)
        for line in asked.answers():
            try:
                found = msgspec.json.decode(line, type=dict[str, Any])
            except (msgspec.DecodeError, RecursionError) as error:
                raise KernelscopeError(f"{place.name} answered {plain.printable(line[:200])!r}") from error
            if "answer" in found:
                return _table(found["answer"], place)
            if "refused" in found:
                raise KernelscopeError(f"{place.name}: {found['refused']}")
            if says is not None and "says" in found:
                says(plain.printable(str(found["says"])[:200]))
    raise UnavailableError(asked.why("it ended without an answer"))


def lines(place: Place, module: str, *arguments: str, says: Says | None = None) -> list[str]:
    """The answers of a module of the program that is installed there, run where it measures."""
    with _Running(place, places.program(place, module, *arguments), launched=True, says=says) as asked:
        return list(asked.answers())


class _Running:
    """A command there, for `with`: it is ended when the block is. says: is told what comes on standard error
    meanwhile, such as that a queue is waited for."""

    def __init__(self, place: Place, words: Sequence[str], launched: bool, says: Says | None = None) -> None:
        self._place, self._words, self._says = place, words, says
        self._through = place.launch if launched or not place.shared else ()
        self._launched = launched
        self._tail = b""

    def __enter__(self) -> _Running:
        told = places.command(self._place, *self._words, launched=self._launched)
        try:
            self._process = subprocess.Popen(
                told, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        except OSError as error:
            if told[0] == "ssh":
                raise UnavailableError("ssh is not installed here: OpenSSH's client is needed") from error
            raise UnavailableError(f"{told[0]} cannot be started: {error.strerror}") from error
        self._reader = threading.Thread(target=self._read_errors, daemon=True)
        self._reader.start()
        return self

    def __exit__(self, *told: object) -> None:
        process = self._process
        process.kill()  # what it is may go on: the connection that ssh keeps is another process
        process.wait()
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.close()
        with contextlib.suppress(OSError):  # what was not sent has nobody to go to
            process.stdin.close()

    def send(self, texts: Sequence[bytes], files: Sequence[Path]) -> None:
        """Begin to write all of this to standard input, which stays open."""

        def write() -> None:
            stream: IO[bytes] | None = self._process.stdin
            assert stream is not None
            try:
                for text in texts:
                    stream.write(text)
                stream.flush()
                for path in files:
                    with path.open("rb") as read:
                        while piece := read.read(_PIECE_NBYTES):
                            stream.write(piece)
                stream.flush()
            except OSError:
                pass  # it has ended, and why is known elsewhere

        threading.Thread(target=write, daemon=True).start()

    def answers(self) -> Iterator[str]:
        """The answers, without their mark, until it ends. Raises UnavailableError where it fails."""
        stream, held = self._process.stdout, 0
        assert stream is not None
        while line := stream.readline(MOST_NBYTES):
            held += len(line)
            if held > MOST_NBYTES:
                raise KernelscopeError(
                    f"{self._place.name} says more than {MOST_NBYTES:,} bytes, which is no answer"
                )
            text = line.decode(errors="replace").rstrip("\r\n")
            if text.startswith(there.MARK):
                yield text.removeprefix(there.MARK)
        if self._process.wait():
            raise UnavailableError(self.why(f"exit code {self._process.returncode}"))

    def why(self, otherwise: str) -> str:
        """Why nothing came, in the words of ssh or of the launch prefix, and what would help."""
        self._reader.join(1.0)  # a connection that ssh keeps may hold it open
        said = (
            " ".join(plain.printable(self._tail.decode(errors="replace").replace("\r", "")).split())
            or otherwise
        )
        place = self._place
        if not place.host or self._process.returncode != 255:
            by = f" (through `{shlex.join(self._through)}`)" if self._through else ""
            return f"{place.name} could not run {self._words[0]}{by}: {said}"
        helps = ""
        if "IDENTIFICATION HAS CHANGED" in said:
            helps = "; ask who runs it whether that is right before you remove the old key"
        elif "Host key verification failed" in said:
            helps = f"; `ssh {place.host}` once shows its key and asks you about it"
        elif "Permission denied" in said or "Too many authentication failures" in said:
            helps = (
                "; it takes none of your keys, or asks for a password, which Kernelscope never does: "
                f"`ssh-copy-id {place.host}` gives it your key; an ssh-agent, or a connection that your own "
                "ssh configuration keeps (ControlMaster), serves as well"
            )
        return f"{place.name} cannot be reached; ssh says: {said}{helps}"

    def _read_errors(self) -> None:
        stream = self._process.stderr
        assert stream is not None
        with stream:
            for line in stream:
                self._tail = (self._tail + line)[-TAIL_NBYTES:]
                if self._says is not None and (
                    text := plain.printable(line.decode(errors="replace").strip())
                ):
                    self._says(text)


def _table(value: object, place: Place) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{place.name} answered {value!r:.200}, which is no answer")
    return value
