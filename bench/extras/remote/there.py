"""What is done on a machine elsewhere before the program is there, with the standard library alone. Its text
is sent, and run by the Python there.

A request is one line of JSON on standard input, `do` names the function; after it come the bytes of files,
where the request tells of some. An answer is one line that begins with MARK; what else is on standard output
(a shell that greets) is nobody's. When standard input ends, whoever asked is gone, and all that was started
is ended.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path
from typing import IO, Any

MARK = "kernelscope-there: "
OURS = "kernelscope-place"  # a file by which a folder is known as one of ours
WHOLE = "complete"  # in an environment or a program: nothing of it is missing
INCOMING = "incoming"
PIECE_NBYTES = 1 << 20


class Refused(Exception):
    """Why it cannot be done, in a sentence."""


def look(request: dict[str, Any]) -> dict[str, Any]:
    """What is here, without a change of anything. request: folder; pick_extra, the text of the module that
    asks the driver."""
    folder = _folder(request)
    base = next(path for path in (folder, *folder.parents) if path.exists())
    asked: dict[str, Any] = {"__name__": "pick_extra"}
    exec(request["pick_extra"], asked)
    try:
        extra, why = asked["wanted"]()
    except SystemExit as error:
        raise Refused(str(error)) from error
    state = "new" if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())) else "strange"
    return {
        "folder": str(folder),
        "base": str(base),
        "state": "ours" if (folder / OURS).is_file() else state,
        "token": (folder / OURS).read_text() if (folder / OURS).is_file() else "",
        "writable": os.access(base, os.W_OK | os.X_OK),
        "free": shutil.disk_usage(base).free,
        "extra": extra,
        "why": why,
        "whole": sorted(path.parent.name for path in folder.glob(f"*/{WHOLE}")),
        "libc": list(platform.libc_ver()),
        "markers": {
            "implementation_name": sys.implementation.name,
            "implementation_version": platform.python_version(),
            "os_name": os.name,
            "platform_machine": platform.machine(),
            "platform_python_implementation": platform.python_implementation(),
            "platform_release": platform.release(),
            "platform_system": platform.system(),
            "platform_version": platform.version(),
            "python_full_version": platform.python_version(),
            "python_version": ".".join(platform.python_version_tuple()[:2]),
            "sys_platform": sys.platform,
        },
    }


def begin(request: dict[str, Any]) -> dict[str, Any]:
    """Make the folder, which only this user may look into, and mark it. request: folder, token."""
    folder = _folder(request)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    (folder / OURS).write_text(request["token"])
    return {}


def lacking(request: dict[str, Any]) -> dict[str, Any]:
    """Which files have not come yet. request: folder, files as {name: SHA-256}. Other files that came once
    are removed."""
    incoming = _folder(request) / INCOMING
    for path in incoming.glob("*"):
        if path.name not in request["files"]:
            path.unlink()
    there = [name for name, digest in request["files"].items() if _digest(incoming / _plain(name)) == digest]
    return {"names": [name for name in request["files"] if name not in there]}


def put(request: dict[str, Any]) -> dict[str, Any]:
    """Take files: their bytes follow, in this order. request: folder, files as [name, bytes, SHA-256]. A file
    that came whole stays, should the connection break at the next."""
    incoming = _folder(request) / INCOMING
    incoming.mkdir(exist_ok=True)
    for name, nbytes, digest in request["files"]:
        path, found, left = incoming / _plain(name), hashlib.sha256(), nbytes
        part = path.with_name(f".{path.name}.part")
        with part.open("wb") as stream:
            while left:
                piece = sys.stdin.buffer.read(min(PIECE_NBYTES, left))
                if not piece:
                    raise Refused(f"the connection ended before {name} was here")
                found.update(piece)
                stream.write(piece)
                left -= len(piece)
        if found.hexdigest() != digest:
            raise Refused(f"{name} came damaged")
        part.replace(path)
    return {}


def install(request: dict[str, Any]) -> dict[str, Any]:
    """Make an environment and a program of files that came. request: folder; env, program: names in it;
    locks: the texts of lock files, where the last may fail; pip, archive: names of files that came; offline;
    old: names of those that are not needed any more."""
    import fcntl  # Windows has none, where this is only read to be sent

    folder = _folder(request)
    _end_with_input()
    with (folder / ".installing").open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise Refused("an installation is going on there already; try again when it has ended") from error
        lacks = _environment(folder, request)
        if request["archive"]:
            _program(folder, request)
        shutil.rmtree(folder / INCOMING, ignore_errors=True)
        for name in request["old"]:
            if name not in (request["env"], request["program"]) and not _in_use(folder / _plain(name)):
                shutil.rmtree(folder / name, ignore_errors=True)
    return {"lacks": lacks}


def remove(request: dict[str, Any]) -> dict[str, Any]:
    """Remove the folder with all that is in it. request: folder. One that is not marked as ours stays."""
    folder = _folder(request)
    if not folder.exists():
        return {"removed": False}
    if not (folder / OURS).is_file():
        raise Refused(f"{folder} was not made by Kernelscope, so it stays; remove it yourself")
    if any(_in_use(path.parent) for path in folder.glob(f"*/{WHOLE}")):
        raise Refused("a measurement is going on there; cancel it, or wait for its end")
    mark = (folder / OURS).read_text()
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():  # half a folder is still known as ours, so that it can be tried again
        (folder / OURS).write_text(mark)
        raise Refused(f"{folder} could not be removed whole: some of it is in use, or another user's")
    return {"removed": True}


def hold() -> IO[str] | None:
    """Of a process that measures here: as long as what this returns is open, neither `install` nor
    `remove` takes its program away. None where it was not installed by these."""
    import fcntl

    try:
        held = Path(__file__).parents[5].joinpath(WHOLE).open()
    except OSError:
        return None
    fcntl.flock(held, fcntl.LOCK_SH)
    return held


def _in_use(program: Path) -> bool:
    import fcntl

    try:
        with (program / WHOLE).open() as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _environment(folder: Path, request: dict[str, Any]) -> str:
    """What it goes without, in a sentence, or ""."""
    place = folder / _plain(request["env"])
    if (place / WHOLE).is_file():
        return (place / WHOLE).read_text()
    shutil.rmtree(place, ignore_errors=True)
    if problem := _run([sys.executable, "-m", "venv", "--without-pip", str(place)], dict(os.environ), 0):
        raise Refused(
            f"{sys.executable} makes no virtual environment: {problem}; --python names another Python there"
        )
    incoming, work = folder / INCOMING, folder / "installing"
    shutil.rmtree(work, ignore_errors=True)
    with zipfile.ZipFile(incoming / _plain(request["pip"])) as archive:
        archive.extractall(work / "pip")  # out of the file it would be compiled anew each time
    variables = os.environ | {
        "PYTHONPATH": str(work / "pip"),
        "TMPDIR": str(work),  # a small /tmp holds no CUDA library
    }
    variables.pop("PYTHONHOME", None)
    pip = [str(place / "bin/python"), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    pip += ["--progress-bar=off", "--no-cache-dir", "--require-hashes", "--no-warn-script-location"]
    pip += ["--only-binary=:all:", "--retries=2"]
    if request["offline"]:
        pip += ["--no-index", "--find-links", str(incoming)]
    *needed, wanted = request["locks"]
    try:
        for text in needed:
            if problem := _pip(pip, text, work, variables):
                raise Refused(f"the packages could not be installed there: {problem}")
        lacks = _pip(pip, wanted, work, variables)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    lacks = f"Numba could not be installed: {lacks}; engine-cpu runs its kernels in NumPy" if lacks else ""
    (place / WHOLE).write_text(lacks)
    return lacks


def _program(folder: Path, request: dict[str, Any]) -> None:
    place = folder / _plain(request["program"])
    if (place / WHOLE).is_file():
        return
    shutil.rmtree(place, ignore_errors=True)
    with zipfile.ZipFile(folder / INCOMING / _plain(request["archive"])) as archive:
        archive.extractall(place)
    (place / WHOLE).write_text("")


def _pip(words: list[str], lock: str, work: Path, variables: dict[str, str]) -> str:
    (work / "lock.txt").write_text(lock)
    wanted = len(re.findall(r"^[A-Za-z0-9]", lock, re.MULTILINE))
    return _run([*words, "-r", str(work / "lock.txt")], variables, wanted)


def _run(words: list[str], variables: dict[str, str], wanted: int) -> str:
    """What a command said that failed, in a line; "" where it did not. wanted: of how many packages it tells
    how far it is."""
    global running
    running = subprocess.Popen(
        words, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", start_new_session=True,
    )  # fmt: skip
    assert running.stdout is not None
    said: list[str] = []
    collected, told = 0, time.monotonic()
    for line in running.stdout:
        said = [*said[-40:], line.strip()]
        collected += line.startswith("Collecting ")
        if wanted and time.monotonic() > told + 5:
            told = time.monotonic()
            _say({"says": "installing" if "Installing" in line else f"{collected} of {wanted} packages"})
    if running.wait() == 0:
        return ""
    full = [line for line in said if os.strerror(errno.ENOSPC) in line or os.strerror(errno.EDQUOT) in line]
    errors = [line for line in said if line.startswith("ERROR:")]
    why = (full or errors or [line for line in said if line] or [f"exit code {running.returncode}"])[0]
    return why.removeprefix("ERROR:").strip()[:500]


running: subprocess.Popen[str] | None = None


def _end_with_input() -> None:
    """When whoever asked is gone, so is this, and what it started."""

    def wait() -> None:
        while sys.stdin.buffer.read(1):
            pass
        if running is not None and running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _folder(request: dict[str, Any]) -> Path:
    try:
        path = Path(request["folder"]).expanduser()
        return path if path.is_absolute() else Path.home() / path
    except RuntimeError as error:
        raise Refused(
            f"there is no home folder: {error}; --folder names a folder with its whole path"
        ) from error


def _plain(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._+-]*", name):
        raise Refused(f"{name!r} is no name of a file here")
    return name


def _digest(path: Path) -> str:
    found = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            while piece := stream.read(PIECE_NBYTES):
                found.update(piece)
    except OSError:
        return ""
    return found.hexdigest()


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(f"\n{MARK}{json.dumps(answer)}\n")  # a greeting may have ended without a new line
    sys.stdout.flush()


def main(lines: IO[bytes]) -> None:
    """Do what the first line asks for, and answer."""
    request = json.loads(lines.readline())
    done = {it.__name__: it for it in (look, begin, lacking, put, install, remove)}[request["do"]]
    try:
        answer = done(request)
    except Refused as error:
        answer = {"refused": str(error)}
    except OSError as error:
        where = error.filename or request["folder"]
        answer = {"refused": f"{where}: {(error.strerror or str(error)).lower()}"}
    _say({"answer": answer} if "refused" not in answer else answer)
    sys.stdout.flush()
    os._exit(0)  # a thread may still wait for input


if __name__ == "__main__":
    main(sys.stdin.buffer)
