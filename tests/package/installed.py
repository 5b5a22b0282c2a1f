"""The wheel in an environment of its own, and a user who may not write there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.package import building

ROOT = building.ROOT
NOBODY = 65534
# What it starts is still opened with the rights of before; what that starts is not.
SETPRIV = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--", "env")


class BrokenError(Exception):
    """What a newcomer would meet."""


@dataclass(frozen=True)
class Installed:
    """folder: of the environment `venv` and of the user's home; wheel: what is installed; user: the words
    that make a command the user's (none where whoever runs this has no rights to give away)."""

    folder: Path
    wheel: Path
    user: tuple[str, ...]

    @property
    def venv(self) -> Path:
        return self.folder / "venv"

    @property
    def python(self) -> Path:
        return self.venv / "bin" / "python"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def environment(self) -> dict[str, str]:
        """Nothing of whoever runs this: no cache, no display, no path."""
        return {"HOME": str(self.home), "PATH": f"{self.venv / 'bin'}:/usr/bin:/bin", "LANG": "C.UTF-8"}

    def run(
        self, *words: str | Path, code: int | None = 0, seconds: float = 240, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """A command of the user in his home. Raises BrokenError where it ends not with `code` (None: any)."""
        told = [*self.user, *map(str, words)]
        done = subprocess.run(
            told,
            cwd=self.home,
            env={**self.environment, **variables},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        if code not in (None, done.returncode):
            said = f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}".strip()
            raise BrokenError(f"`{' '.join(map(str, words))}` ended with {done.returncode}:\n{said}")
        return done

    def install(self, *wanted: str | Path) -> None:
        """Of an administrator, in the environment, with the versions that this repository has locked. With
        bytecode, as pip does it: who may not write there would compile all of it at every start. Half of it
        is the tests of libraries, which nobody imports."""
        locks = ("-c", ROOT / "locks" / "cpu.txt", "-c", ROOT / "locks" / "numba.txt")
        building.run(building.uv(), "pip", "install", "-q", "--python", self.python, *locks, *wanted)
        compiling = (self.python, "-m", "compileall", "-qq", "-j", "0", "-x", "/tests?/", self.venv / "lib")
        subprocess.run(compiling, check=False)  # of files for other Pythons it is said that they are none

    def files(self) -> dict[str, tuple[int, int]]:
        """What lies in the environment: size and time of each file."""
        found = {}
        for here, _, names in os.walk(self.venv):
            for name in names:
                status = os.lstat(os.path.join(here, name))
                found[os.path.join(here, name)] = (status.st_size, status.st_mtime_ns)
        return found


def made(folder: Path, wheel: Path, extra: str = "cpu", python: str = "") -> Installed:
    """An environment with the wheel and one of its extras. python: the interpreter; default: that of here."""
    python, user = _who(python)
    there = Installed(folder, wheel, user)
    there.home.mkdir()
    folder.chmod(0o755)
    if user:
        os.chown(there.home, NOBODY, NOBODY)
    building.run(building.uv(), "venv", "-q", "--python", python, there.venv)
    there.install(f"{wheel}[{extra}]" if extra else wheel, "numba", "pandas")
    if not user:
        for here, _, _ in os.walk(there.venv):
            os.chmod(here, 0o555)
    return there


def _who(named: str) -> tuple[str, Sequence[str]]:
    """An interpreter, and the words that run it as somebody without rights; none where whoever runs this has
    none to give away, or where nobody else may run the one that was named."""
    own = os.path.realpath(named or sys.executable)
    if os.name != "posix" or os.geteuid() != 0 or shutil.which(SETPRIV[0]) is None:
        return own, ()
    others = (
        () if named else [shutil.which(f"python3.{minor}", path="/usr/bin") for minor in (14, 13, 12, 11)]
    )
    for python in filter(None, (own, *others)):
        if subprocess.run([*SETPRIV, python, "-c", ""], capture_output=True, check=False).returncode == 0:
            return python, SETPRIV
    return own, ()
