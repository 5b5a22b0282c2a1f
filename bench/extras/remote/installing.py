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
from typing import Any

import msgspec

from bench.commands.checks import Check
from bench.extras.remote import packing, places
from bench.extras.remote.asking import Says, ask, lines, python_of
from bench.extras.remote.places import Place
from bench.run import pick_extra
from bench.words import units
from bench.words.called import CALLED
from bench.words.version import described
from kernels.errors import InputError, KernelscopeError, UnavailableError

FOLDER = ".kernelscope-place"  # below the home folder there
# What an environment and its packages take while they are installed, and a few models and runs.
ROOM_NBYTES = {"cpu": 3 << 30, "cuda": 12 << 30, "cuda12": 12 << 30}
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
    places.save(place)  # an installation that breaks goes on with `update`
    return _installed(place, seen, says)


def updated(place: Place, says: Says) -> Place:
    """This program installed there, the doctor asked again. Raises as `added`."""
    place, seen = _looked_at(place, place.python, says)
    return _installed(place, seen, says)


def examined(place: Place, says: Says) -> Place:
    """What its doctor says now, kept. Raises as `added`."""
    told = f"waiting for `{shlex.join(place.launch)}`" if place.launch else "asking its doctor"
    says(told)
    for line in lines(place, "bench.extras.remote.doctor", says=says):
        try:
            doctor = msgspec.json.decode(line, type=tuple[Check, ...])
        except (msgspec.DecodeError, RecursionError) as error:
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
    if not only_here and place.folder:
        try:
            found = bool(ask(place, "remove").get("removed"))
        except KernelscopeError as error:
            raise type(error)(f"{error}; --only-here forgets the place and leaves what is there") from error
    places.forget(place.name)
    return found


def _looked_at(place: Place, python: str, says: Says) -> tuple[Place, dict[str, Any]]:
    """The place with what was found out, its folder made; and what was found."""
    place, seen = _look(place, python)
    token = str(seen["token"]) or secrets.token_hex(16)
    ask(place, "begin", token=token)
    if place.launch and place.shared:
        says(f"waiting for `{shlex.join(place.launch)}`")
        launched = ask(place, "look", says=says, launched=True, pick_extra=_pick_extra())
        if launched["token"] == token:
            seen |= {name: launched[name] for name in ("extra", "why")}
        elif not place.host and launched["folder"] == seen["folder"] and launched["state"] != "new":
            raise InputError(
                f"{seen['folder']} of what `{shlex.join(place.launch)}` leads to is not of Kernelscope"
            )
        else:
            # It sees another folder, as in a container: all that is done there goes through it.
            ask(place, "remove")
            place = msgspec.structs.replace(place, shared=False)
            place, seen = _look(place, python)
            ask(place, "begin", token=token)
    if place.extra:
        seen["extra"] = place.extra
    return place, seen


def _look(place: Place, python: str) -> tuple[Place, dict[str, Any]]:
    place = msgspec.structs.replace(place, python=python_of(place, python))
    seen = ask(place, "look", pick_extra=_pick_extra())
    place = msgspec.structs.replace(place, folder=str(seen["folder"]))
    if seen["state"] == "strange":
        raise InputError(
            f"{place.folder} on {place.name} holds files of somebody else's; --folder names another one"
        )
    if not seen["writable"]:
        raise KernelscopeError(
            f"{seen['base']} on {place.name} cannot be written; --folder names another place there"
        )
    return place, seen


def _installed(place: Place, seen: dict[str, Any], says: Says) -> Place:
    extra = str(seen["extra"])
    locks = [packing.lock(extra), packing.lock("numba")]
    archive, pip = packing.program(), packing.pip()
    markers = seen["markers"]
    env = f"env-{extra}-{_short(*locks, place.python, markers['python_version'])}"
    program = f"program-{packing.digest(archive)[:12]}"
    says(
        f"Python {markers['python_full_version']}, {units.nbytes(seen['free'])} free, packages for {extra} "
        f"({seen['why']})"
    )
    files: list[Path] = [archive, pip]
    if env not in seen["whole"]:
        if seen["free"] < ROOM_NBYTES[extra]:
            raise KernelscopeError(
                f"{seen['base']} on {place.name} has {units.nbytes(seen['free'])} free, and the packages for "
                f"{extra} need about {units.nbytes(ROOM_NBYTES[extra])}: make room, or --folder names one "
                "on another disk"
            )
        if place.offline:
            says("fetching the packages here")
            files += packing.wheels(locks, markers, seen["libc"])
    _send(place, files, says)
    says(
        "installing there, which takes minutes the first time"
        if env not in seen["whole"]
        else "installing there"
    )
    old = [name for name in (place.env, place.program) if name]
    told = ask(
        place, "install", says=says, env=env, program=program, locks=locks, pip=pip.name,
        archive=archive.name, offline=place.offline, old=old,
    )  # fmt: skip
    if told.get("lacks"):
        says(str(told["lacks"]))
    place = msgspec.structs.replace(place, env=env, program=program, version=described())
    places.save(place)
    return examined(place, says)


def _send(place: Place, files: Sequence[Path], says: Says) -> None:
    """Files that are not there yet, by their content."""
    digests = {path.name: packing.digest(path) for path in files}
    lacking = ask(place, "lacking", files=digests)["names"]
    sent = [path for path in files if path.name in lacking]
    if sent:
        nbytes = sum(path.stat().st_size for path in sent)
        says(f"sending {len(sent)} {'file' if len(sent) == 1 else 'files'}, {units.nbytes(nbytes)}")
        ask(place, "put", sent, files=[(it.name, it.stat().st_size, digests[it.name]) for it in sent])


def _short(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]


def _pick_extra() -> str:
    return Path(pick_extra.__file__).read_text(encoding="utf-8")
