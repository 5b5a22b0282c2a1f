"""A place: a machine elsewhere that measures, what is known of it, and the command that runs something there.

Each place is a JSON file in the folder `places` beside the user's settings (bench.run.settings). What reaches
it is OpenSSH's own client with the user's own configuration: keys, jump hosts and the keys of hosts are its
business. It never asks anything here (BatchMode), takes no agent, no screen and no port along, and goes on
using one connection for some minutes.

Layout of the folder there; nothing is written outside of it:

    env-<digest>/       a virtual environment: the packages of a lock file
    program-<digest>/   a wheel of this program, unpacked
    cache/              KERNELSCOPE_CACHE of all that runs there, and the caches of its libraries
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from bench.commands.checks import Check
from bench.run import settings
from bench.words.called import CALLED
from bench.words.option import one_of
from bench.words.version import described
from kernels.cache import atomic_file
from kernels.errors import InputError, KernelscopeError, UnavailableError, system_words

LEASE_S = 3600.0
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
MOST_NBYTES = 4 << 20  # of a place's file
# No agent, no screen, no port of anybody goes along; ssh asks nothing, for nobody may be there to answer.
SSH: tuple[str, ...] = ("ssh", "-T", "-a", "-x", "-o", "ClearAllForwardings=yes", "-o", "BatchMode=yes")
SSH += ("-o", "ConnectTimeout=20", "-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=3")
# A path of a socket has 103 characters at most; ssh adds 17 while it makes one, and %C is 40.
_MOST_OF_A_FOLDER = 103 - 17 - len("/") - 40
CONTROL_S = 600


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """host: as ssh takes it, "user@host" ("": this machine, or whatever `launch` leads to). launch: the words
    before a command that measures there ("srun", "-p", "gpu"). shared: what is launched sees the folder that
    `host` sees, as the nodes of a queue do; else every command is launched, as into a container. folder:
    absolute, there. python: the interpreter there that environments are made with. env, program: names in the
    folder ("" until they are installed). extra: the set of packages (cpu, cuda, cuda12). offline: the host
    reaches no registry of packages. lease_s: how long a worker goes on there with nobody listening. version:
    of the program installed there, as `--version` says it. doctor: what its last doctor said, and when (ISO
    8601)."""

    name: str
    host: str = ""
    launch: tuple[str, ...] = ()
    shared: bool = True
    folder: str = ""
    python: str = ""
    env: str = ""
    program: str = ""
    extra: str = ""
    offline: bool = False
    lease_s: float = LEASE_S
    version: str = ""
    doctor: tuple[Check, ...] = ()
    looked: str = ""

    @property
    def gpu(self) -> str:
        """The name of its first GPU; "" where it has none or nobody has looked."""
        for check in self.doctor:
            if (check.topic, check.name) == ("gpu", "GPU"):
                return check.text.rpartition(" (")[0] or check.text
        return ""

    def refused(self) -> dict[str, str]:
        """Of each backend that its last doctor named, why it cannot run there; "" for one that can."""
        return {
            check.name: "" if check.status == "ok" else check.text
            for check in self.doctor
            if check.topic == "backends"
        }


def command(place: Place, *words: str, launched: bool = False) -> list[str]:
    """The command line that runs `words` there, with its standard streams. launched: through the launch
    prefix, as all that measures is; it may wait in a queue."""
    if place.launch and (launched or not place.shared):
        words = (*place.launch, *words)
    if not place.host:
        return list(words)
    return [*SSH, *_control(place.host), "--", place.host, shlex.join(words)]


def program(place: Place, module: str, *arguments: str) -> list[str]:
    """The words, for `command`, that run a module of the program that is installed there. Raises
    UnavailableError where none is, or where it is of another version than this one."""
    if not place.program or not place.env:
        raise UnavailableError(
            f"Kernelscope is not installed on {place.name} yet: `{CALLED} remote update {place.name}` does it"
        )
    same_version(place, place.version)
    root = f"{place.folder}/{place.program}/kernelscope/_program"
    cache = f"{place.folder}/cache"
    variables = [f"KERNELSCOPE_CACHE={cache}", f"PYTHONPATH={root}"]
    # Libraries keep files of their own, which would lie in the home there.
    variables += [f"XDG_CACHE_HOME={cache}", f"XDG_CONFIG_HOME={cache}", f"CUDA_CACHE_PATH={cache}/cuda"]
    python = f"{place.folder}/{place.env}/bin/python"
    return ["env", *variables, python, "-P", "-m", module, *arguments]


@functools.cache
def own_version() -> str:
    """This program's, as it was when this process asked first: files may be replaced while it goes on."""
    return described()


def same_version(place: Place, theirs: str) -> None:
    """Raises UnavailableError where the program there is of another version than this one."""
    if theirs != (ours := own_version()):
        raise UnavailableError(
            f"{place.name} has Kernelscope {theirs or 'of an unknown version'}, and this is {ours}: "
            f"`{CALLED} remote update {place.name}` installs this one there"
        )


def folder() -> Path:
    """Where places are kept; it need not exist."""
    return settings.user_file().parent / "places"


def names() -> list[str]:
    return sorted(path.stem for path in folder().glob("*.json") if NAME.fullmatch(path.stem))


def load(name: str) -> Place:
    """Raises InputError for a place that nobody has added, or whose file cannot be read."""
    known = names()
    if not known:
        raise InputError(f"no place is known: `{CALLED} remote add {name or 'lab'} user@host` adds one")
    one_of(name, known, "place")
    file = path(name)
    again = f"remove it and add the place again: `{CALLED} remote add {name} user@host`"
    try:
        with file.open("rb") as stream:
            return msgspec.json.decode(stream.read(MOST_NBYTES), type=Place)
    except OSError as error:
        raise InputError(f"{file} cannot be read: {system_words(error)}") from error
    except msgspec.DecodeError as error:
        raise InputError(f"{file} describes no place ({error}); {again}") from error


def path(name: str) -> Path:
    """Of a place's file. Raises InputError for a name that no file can have."""
    if not NAME.fullmatch(name):
        raise InputError(
            f"{name!r} is no name for a place: letters, digits, '.', '-' and '_' make one, 40 at most, and "
            "it begins with a letter or a digit"
        )
    return folder() / f"{name}.json"


def save(place: Place) -> None:
    """Raises InputError as `path`, KernelscopeError where nothing can be written."""
    file = path(place.name)
    try:
        with atomic_file(file) as temporary:
            temporary.write_bytes(msgspec.json.format(msgspec.json.encode(place), indent=1) + b"\n")
    except OSError as error:
        raise KernelscopeError(f"{file} cannot be written: {system_words(error)}") from error


def forget(name: str) -> None:
    path(name).unlink(missing_ok=True)


def _control(host: str) -> tuple[str, ...]:
    """Options with which later commands use the connection of the first, as a key exchange takes half a
    second and more. Where the user's configuration says so already, that holds."""
    # Windows' OpenSSH cannot. The folder is looked at each time: old files may be cleared meanwhile.
    if sys.platform == "win32" or _keeps_one(host) or (place := _sockets()) is None:
        return ()
    path = f"ControlPath={place}/%C"
    return ("-o", "ControlMaster=auto", "-o", path, "-o", f"ControlPersist={CONTROL_S}")


@functools.cache
def _keeps_one(host: str) -> bool:
    """Whether the user's configuration has connections of this host shared."""
    try:
        asked = subprocess.run(
            ["ssh", "-G", "--", host], capture_output=True, text=True, timeout=10, check=False
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return False
    return re.search(r"^controlpath (?!none$)", asked, re.MULTILINE) is not None


def _sockets() -> Path | None:
    """A folder for sockets that nobody else can look into; None where there is none with a short name."""
    own = os.getuid()
    for base, name in (
        (os.environ.get("XDG_RUNTIME_DIR", ""), "kernelscope-ssh"),
        (tempfile.gettempdir(), f"kernelscope-ssh-{own}"),
    ):
        place = Path(base) / name
        if not base or len(str(place)) > _MOST_OF_A_FOLDER:
            continue
        try:
            place.mkdir(mode=0o700, exist_ok=True)
            held = place.lstat()
        except OSError:
            continue
        if stat.S_ISDIR(held.st_mode) and (held.st_uid, held.st_mode & 0o077) == (own, 0):
            return place
    return None
