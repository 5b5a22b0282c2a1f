"""Which Python a rival, or the compiler of a language, runs in: one that the user names, this one if the
package is installed here, or an environment that `make` has set up."""

from __future__ import annotations

import functools
import importlib.util
import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from kernels.errors import UnavailableError

_PROGRAM = Path(__file__).resolve().parents[1]
ROOT = _PROGRAM  # where its environments lie
PACKAGED = _PROGRAM.name == "_program"  # this is what a wheel brought, and no checkout with its make
NEEDED = ("msgspec", "numpy", "onnx", "platformdirs", "psutil")  # of an isolated process itself


def for_children(*folders: Path) -> dict[str, str]:
    """The environment variables with which a Python that we start finds this program, and modules in these
    folders."""
    places = [str(_PROGRAM), *map(str, folders), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(places)}


@dataclass(frozen=True)
class Environment:
    """name: of the folder `.venv-<name>` beside this program, and of the variable KERNELSCOPE_PYTHON_<NAME>;
    title, module: of what must be importable there; needs: further modules; holds: a package, and a pattern
    of a file that it must have; get: how to install it."""

    name: str
    title: str
    module: str
    get: str
    needs: tuple[str, ...] = ()
    holds: tuple[str, str] = ("", "")

    @property
    def variable(self) -> str:
        return f"KERNELSCOPE_PYTHON_{self.name.upper().replace('-', '_')}"

    def interpreter(self) -> str:
        """The path of a Python that has the module. Raises UnavailableError."""
        named = os.environ.get(self.variable, "")
        if named:
            if missing := self._missing(named):
                raise UnavailableError(f"{self.variable} names {named}, {missing}")
            return named
        folder = "Scripts/python.exe" if sys.platform == "win32" else "bin/python"
        for python in (sys.executable, str(ROOT / f".venv-{self.name}" / folder)):
            if not self._missing(python):
                return python
        raise UnavailableError(f"{self.title} is not installed: {self.get}")

    def missing(self) -> str | None:
        """Why there is none, in a sentence, or None. Starts no process."""
        try:
            self.interpreter()
        except UnavailableError as error:
            return str(error)
        return None

    def place(self, module: str) -> Path | None:
        """The folder of a module in that environment."""
        return _place(self.interpreter(), module)

    def version(self) -> str:
        """The installed version, by the name of its dist-info folder: "triton-3.9.0"; "" where not known."""
        place = None if self.missing() else self.place(self.module)
        infos = place.parent.glob(f"{self.module}-*.dist-info") if place is not None else ()
        return next((path.stem for path in infos), "")

    def _missing(self, python: str) -> str:
        if python != sys.executable and not Path(python).is_file():
            return "which is no file"
        lacking = [it for it in (self.module, *self.needs) if _place(python, it) is None]
        if lacking:
            return f"which has no {', '.join(lacking)}"
        package, pattern = self.holds
        place = _place(python, package) if package else None
        fits = place is None or any(place.glob(pattern))
        return "" if fits else f"whose {package} is built without it"


def how_to_install(name: str, package: str = "") -> str:
    """How to set up an environment that `make` knows, for `get`. package: what pip calls it ("": as make)."""
    package = package or name
    if PACKAGED:
        return (
            f"{installing(package)} brings it into this one, and the variable "
            f"KERNELSCOPE_PYTHON_{name.upper()} names another Python that has it"
        )
    return (
        f"`make {name}` sets up an environment for it, `pip install {package}` brings it into this one, and "
        f"the variable KERNELSCOPE_PYTHON_{name.upper()} names another Python that has it"
    )


def installing(*packages: str, without: tuple[str, ...] = ()) -> str:
    """The commands that bring packages into the Python in use, by pip and by uv, each in backquotes. without:
    packages that are to be removed before."""
    quoted = '"{}"'.format if os.name == "nt" else shlex.quote
    python, wanted = quoted(sys.executable), " ".join(map(quoted, packages))
    pip, uv = f"{python} -m pip", "uv pip"
    removed = f"{pip} uninstall -y {' '.join(without)} && " * bool(without)
    with_uv = f"{uv} uninstall --python {python} {' '.join(without)} && " * bool(without)
    return f"`{removed}{pip} install {wanted}` or `{with_uv}{uv} install --python {python} {wanted}`"


@functools.lru_cache(maxsize=256)
def _place(python: str, module: str) -> Path | None:
    """The folder of a package of an interpreter, found by its folders: asking the interpreter takes
    seconds."""
    if python == sys.executable:
        spec = importlib.util.find_spec(module)
        where = list(spec.submodule_search_locations or ()) if spec is not None else []
        return Path(where[0]) if where else None
    home = Path(python).absolute().parent.parent
    for pattern in ("lib/python3*/site-packages", "Lib/site-packages", "lib/python3*/dist-packages"):
        for folder in home.glob(pattern):
            if (folder / module).is_dir():
                return folder / module
    return None
