"""A place set up, renewed and removed. What is there is looked at, then this program is installed, then its
doctor is asked."""

from __future__ import annotations

import datetime
import hashlib
import re
import secrets
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from bench.commands.checks import Check
from bench.extras.remote import packing, places
from bench.extras.remote.asking import Says, ask, lines, python_of, token_of
from bench.extras.remote.doctor import COMPILE
from bench.extras.remote.places import Place
from bench.results import reading
from bench.run import pick_extra
from bench.words import units
from bench.words.called import CALLED
from bench.words.version import described
from kernels.errors import InputError, KernelscopeError, UnavailableError

FOLDER = ".kernelscope-place"  # below the home folder there
# What an environment and its packages take while they are installed, and a few models and runs.
ROOM_NBYTES = {"cpu": 2 << 30, "cuda": 12 << 30, "cuda12": 12 << 30}


class Libc(msgspec.Struct, frozen=True, array_like=True):
    """Of the C library there: its name, "" where it is none that tells one, and its version."""

    name: Annotated[str, msgspec.Meta(max_length=40)]
    version: Annotated[str, msgspec.Meta(pattern=r"^(\d+\.\d+)?[0-9.]{0,20}$")]


class Looked(msgspec.Struct, frozen=True):
    """What a machine elsewhere says of itself (bench.extras.remote.there.look). Nothing of it names a file
    here."""

    folder: Annotated[str, msgspec.Meta(pattern="^/", max_length=1000)]
    base: str
    state: Literal["new", "ours", "strange"]
    token: Annotated[str, msgspec.Meta(max_length=100)]
    writable: bool
    free: int
    extra: Literal["cpu", "cuda", "cuda12"]
    why: str
    whole: tuple[str, ...]
    libc: Libc
    markers: dict[str, Annotated[str, msgspec.Meta(max_length=300)]]

    @property
    def python(self) -> str:
        return self.markers.get("python_version", "")


_HOST = re.compile(r"(?!-)[^\s\x00-\x1f]+")


def added(place: Place, python: str, says: Says) -> Place:
    """A place that is new: looked at, set up, kept. place: without what is found out there; python: the only
    one that is to be tried ("": any). Raises InputError, UnavailableError and KernelscopeError, whose text
    says what is missing there."""
    if place.name in places.names():
        known = places.load(place.name)
        raise InputError(
            f"{place.name} is known already ({known.host or shlex.join(known.launch)}): "
            f"`{CALLED} remote update {place.name}` installs again there, "
            f"`{CALLED} remote remove {place.name}` forgets it"
        )
    if place.host and not _HOST.fullmatch(place.host):
        raise InputError(f"{place.host!r} is no host: write it as ssh takes it, lab or user@host")
    if not place.host and not place.launch:
        raise InputError("a place needs a host, or --launch with the words that lead to it")
    places.path(place.name)
    place, seen = _looked_at(place, python, says)
    places.save(place)
    try:
        return _installed(place, seen, says)
    except KernelscopeError as error:
        raise type(error)(f"{error}; `{CALLED} remote update {place.name}` goes on") from error


def updated(place: Place, python: str, says: Says) -> Place:
    """This program installed there, the doctor asked again. python: as for `added`; "": as before. Raises as
    `added`."""
    place, seen = _looked_at(place, python or place.python, says)
    return _installed(place, seen, says)


def examined(place: Place, says: Says, new: bool = False) -> Place:
    """What its doctor says now, kept. new: it was installed just now, and compiles what all runs need first.
    Raises as `added`."""
    told = f"waiting for `{shlex.join(place.launch)}`" if place.launch else "asking its doctor"
    says(told)
    asked = [COMPILE] if new else []
    for line in lines(place, "bench.extras.remote.doctor", *asked, says=says):
        try:
            doctor = reading.decoded(line.encode(), tuple[Check, ...])
        except reading.Unreadable as error:
            raise KernelscopeError(
                f"the doctor of {place.name} says nothing that is understood: {error}"
            ) from error
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        place = msgspec.structs.replace(place, doctor=doctor, looked=now)
        places.save(place)
        return place
    raise UnavailableError(f"the doctor of {place.name} says nothing")


def removed(place: Place, only_here: bool) -> bool:
    """Whether there was something there to be removed. Raises as `added`; the place stays known then."""
    found = False
    if not only_here:
        for other in map(places.load, places.names()):
            same = (other.host, other.folder, other.shared) == (place.host, place.folder, place.shared)
            if same and other.name != place.name:
                raise InputError(
                    f"{other.name} uses the same folder there; --only-here forgets {place.name} alone"
                )
        try:
            found = bool(ask(place, "remove").get("removed"))
        except KernelscopeError as error:
            raise type(error)(f"{error}; --only-here forgets the place and leaves what is there") from error
    places.forget(place.name)
    return found


def _looked_at(place: Place, python: str, says: Says) -> tuple[Place, Looked]:
    """The place with what was found out, its folder made; and what was found."""
    outside, seen = place, None
    try:
        place, seen = _look(place, python)
    except UnavailableError:
        if not place.launch or not place.shared:
            raise
        seen = None  # it may be no more than the way to a container
    token = (seen.token if seen else "") or secrets.token_hex(16)
    if seen:
        ask(place, "begin", token=token)
    if place.launch and place.shared:
        says(f"waiting for `{shlex.join(place.launch)}`")
        if seen and token == token_of(place, says):
            launched = _looked(place, launched=True, says=says)
            return place, msgspec.structs.replace(seen, extra=launched.extra, why=launched.why)
        # It sees another folder, as in a container does: all that is done there goes through it.
        if seen and seen.state == "new":
            ask(place, "remove")
        place, seen = _look(msgspec.structs.replace(outside, shared=False), python)
        ask(place, "begin", token=token)
    assert seen is not None
    return place, seen


def _look(place: Place, python: str) -> tuple[Place, Looked]:
    place = msgspec.structs.replace(place, python=python_of(place, python))
    seen = _looked(place)
    place = msgspec.structs.replace(place, folder=seen.folder)
    if seen.state == "strange":
        raise InputError(
            f"{place.folder} on {place.name} holds files of somebody else's; --folder names another one"
        )
    if not seen.writable:
        raise KernelscopeError(
            f"{seen.base} on {place.name} cannot be written; --folder names another place there"
        )
    return place, seen


def _installed(place: Place, seen: Looked, says: Says) -> Place:
    extra = seen.extra
    locks = [packing.lock(extra), packing.lock("numba")]
    env = environment(extra, place.python, seen.python)
    says(f"Python {seen.python}, {units.nbytes(seen.free)} free, packages for {extra} ({seen.why})")
    made = env in seen.whole
    if not made and seen.free < ROOM_NBYTES[extra]:
        raise KernelscopeError(
            f"{seen.base} on {place.name} has {units.nbytes(seen.free)} free, and the packages for "
            f"{extra} need about {units.nbytes(ROOM_NBYTES[extra])}: make room, or --folder names one "
            "on another disk"
        )
    archive, pip = packing.program(), packing.pip()
    program = f"program-{packing.digest(archive)[:12]}"
    files = [] if program in seen.whole else [archive]
    if not made:
        files.append(pip)
        if place.offline:
            says("fetching the packages here")
            files += packing.wheels(locks, seen.markers, seen.libc.name, seen.libc.version)
    _send(place, files, says)
    if not made:
        says("installing the packages there, which may take minutes")
    old = [name for name in (place.env, place.program) if name]
    told = ask(
        place, "install", says=says, env=env, program=program, locks=locks, pip=pip.name,
        archive=archive.name if archive in files else "", offline=place.offline, old=old,
    )  # fmt: skip
    if told.get("lacks"):
        says(str(told["lacks"]))
    place = msgspec.structs.replace(place, env=env, program=program, extra=extra, version=described())
    places.save(place)
    return examined(place, says, new=True)


def _send(place: Place, files: Sequence[Path], says: Says) -> None:
    """Files that are not there yet, by their content."""
    digests = {path.name: packing.digest(path) for path in files}
    names = ask(place, "lacking", files=digests).get("names")
    sent = [path for path in files if not isinstance(names, list) or path.name in names]
    if sent:
        nbytes = sum(path.stat().st_size for path in sent)
        says(f"sending {len(sent)} {'file' if len(sent) == 1 else 'files'}, {units.nbytes(nbytes)}")
        ask(place, "put", sent, files=[(it.name, it.stat().st_size, digests[it.name]) for it in sent])


def environment(extra: str, python: str, version: str) -> str:
    """The name of an environment there: of these packages, made with that Python."""
    texts = (packing.lock(extra), packing.lock("numba"), python, version)
    return f"env-{extra}-{hashlib.sha256(chr(0).join(texts).encode()).hexdigest()[:12]}"


def _looked(place: Place, launched: bool = False, says: Says | None = None) -> Looked:
    """Raises KernelscopeError for an answer that is none."""
    asks_driver = Path(pick_extra.__file__).read_text(encoding="utf-8")
    told = ask(place, "look", says=says, launched=launched, pick_extra=asks_driver)
    try:
        return msgspec.convert(told, Looked)
    except msgspec.ValidationError as error:
        raise KernelscopeError(f"{place.name} says of itself what cannot be: {error}") from error
