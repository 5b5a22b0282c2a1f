"""What is sent to a place: this program as a wheel holds it, pip, and packages where no registry is reached.

A place has no tools to build a wheel and need not have pip (Debian's Python has none), so both go along.
"""

from __future__ import annotations

import fnmatch
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.words import version
from kernels.cache import atomic_file, cache_dir
from kernels.environment import PACKAGED
from kernels.errors import InputError, KernelscopeError, UnavailableError

INSIDE = "kernelscope/_program"
LOCKS = ("cpu", "cuda", "cuda12", "numba")
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # that a zip file can say: equal files make equal bytes


def folder() -> Path:
    """Where it is kept until it has been sent."""
    return cache_dir() / "remote"


def digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def lock(name: str) -> str:
    """The text of a lock file."""
    return (version.ROOT / "locks" / f"{name}.txt").read_text(encoding="utf-8")


def program() -> Path:
    """This program in a file, laid out as in a wheel; from an installed wheel as from a checkout."""
    files = dict(_installed() if PACKAGED else _of_checkout())
    commit = f"{INSIDE}/commit.txt"
    path = folder() / "program.zip"
    with atomic_file(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, source in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, _EARLIEST), source.read_bytes(), zipfile.ZIP_DEFLATED)
        if commit not in files and (told := version.commit()):
            archive.writestr(zipfile.ZipInfo(commit, _EARLIEST), told + "\n")
    return path


def _installed() -> Iterator[tuple[str, Path]]:
    top = version.ROOT.parents[1]
    for name in _below(version.ROOT.parent):
        yield str(Path("kernelscope", name).as_posix()), top / "kernelscope" / name


def _of_checkout() -> Iterator[tuple[str, Path]]:
    """As pyproject.toml says what a wheel gets, and from where."""
    wheel = tomllib.loads((version.ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"][
        "targets"
    ]
    wheel = wheel["wheel"]
    for room in wheel["only-include"]:
        for name in map("/".join, (Path(room, it).parts for it in _below(version.ROOT / room))):
            if not any(name.startswith(f"{left}/") for left in wheel["exclude"]):
                yield name.replace(room, wheel["sources"].get(room, room), 1), version.ROOT / name
    for name, inside in wheel["force-include"].items():
        yield inside, version.ROOT / name


def _below(top: Path) -> Iterator[str]:
    """The files below a folder, without what Python and editors leave there."""
    for here, rooms, names in os.walk(top):
        rooms[:] = [room for room in rooms if not room.startswith((".", "__pycache__"))]
        for name in names:
            if not name.startswith(".") and not fnmatch.fnmatch(name, "*.py[co]"):
                yield Path(here, name).relative_to(top).as_posix()


def pip() -> Path:
    """A pip that a Python runs from the file: what is installed here, else what comes with this Python.
    Raises UnavailableError where there is none."""
    spec = importlib.util.find_spec("pip")
    if spec is not None and spec.origin is not None:
        top = Path(spec.origin).parent
        path = folder() / "pip.zip"
        with atomic_file(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in sorted(_below(top)):
                held = zipfile.ZipInfo(f"pip/{name}", _EARLIEST)
                archive.writestr(held, (top / name).read_bytes(), zipfile.ZIP_DEFLATED)
        return path
    bundled = importlib.util.find_spec("ensurepip")
    places = [sysconfig.get_config_var("WHEEL_PKG_DIR") or ""]
    places += [str(Path(bundled.origin).parent / "_bundled")] if bundled and bundled.origin else []
    for place in filter(None, places):
        for found in sorted(Path(place).glob("pip-*.whl"), reverse=True):
            return found
    raise UnavailableError(f"{sys.executable} has no pip to be sent there: install pip here")


def wheels(locks: Sequence[str], there: Mapping[str, str], libc: str, version: str) -> list[Path]:
    """The packages of lock files for another machine, fetched here. there: its environment markers; libc,
    version: of its C library. Where those of the last lock file are not to be had, they are left out. Raises
    InputError for a system whose packages cannot be told from here, KernelscopeError where one cannot be
    fetched."""
    if there.get("sys_platform") != "linux" or libc != "glibc" or "." not in version:
        system = f"{there.get('platform_system') or 'another system'} ({libc or 'another C library'})"
        raise InputError(f"--offline serves a Linux with glibc, and that is {system}")
    kept = folder() / "wheels"
    shutil.rmtree(kept, ignore_errors=True)  # what was fetched before pip has in its own cache
    kept.mkdir(parents=True)
    for number, text in enumerate(locks):
        try:
            _fetch(_for(text, there), there, int(version.split(".")[1]), kept)
        except KernelscopeError:
            if number + 1 < len(locks):
                raise
    return sorted(kept.glob("*.whl"))


def _for(text: str, there: Mapping[str, str]) -> str:
    """A lock file, for a machine with these markers alone, and without them: pip would ask this machine."""
    from packaging.markers import Marker

    kept: list[str] = []
    wanted = False
    for line in text.splitlines():
        if line[:1].isalnum():
            package, sign, marker = line.removesuffix("\\").partition(";")
            try:
                wanted = not sign or Marker(marker.strip()).evaluate(dict(there))
            except ValueError as error:  # a version that is none
                raise KernelscopeError(
                    f"for which packages that machine asks is not to be told: {error}"
                ) from error
            line = f"{package.strip()} \\"
        if wanted and not line.lstrip().startswith("#"):
            kept.append(line)
    return "\n".join(kept) + "\n"


def _fetch(lock: str, there: Mapping[str, str], minor: int, kept: Path) -> None:
    """minor: of glibc's version, 2.minor."""
    machine = there.get("platform_machine", "")
    platforms = [f"manylinux_2_{it}_{machine}" for it in range(minor, 4, -1)]
    platforms += [f"{name}_{machine}" for name in ("manylinux2014", "manylinux2010", "manylinux1", "linux")]
    file = kept / ".lock.txt"
    file.write_text(lock, encoding="utf-8")
    told = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-input", "--no-deps"]
    told += ["--require-hashes", "--only-binary=:all:", "--implementation", "cp", "--progress-bar=off"]
    told += ["--python-version", there.get("python_version", ""), "--dest", str(kept), "-r", str(file)]
    told += [word for platform in platforms for word in ("--platform", platform)]
    variables = os.environ | {"PYTHONPATH": str(pip())}
    done = subprocess.run(told, env=variables, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR:")] or [
            done.stderr.strip()
        ]
        raise KernelscopeError(
            f"the packages could not be fetched here: {errors[0].removeprefix('ERROR:').strip()}"
        )
