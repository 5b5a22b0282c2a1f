"""The languages besides CUDA C++ that a CUDA rung can be written in."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from kernels.environment import PACKAGED, Environment, installing

FOLDER = Path(__file__).with_name("compilers")


@dataclass(frozen=True)
class Language:
    """name: in headers. title: for people. module: what must be importable. install: arguments of pip. warps:
    the define for the number of warps of a block, "" where only the launch gives it."""

    name: str
    title: str
    module: str
    install: str
    warps: str = ""

    @property
    def environment(self) -> Environment:
        """The environment of its compiler: this one, or that of `make languages`."""
        get = f"pip install {self.install}, or `make languages`"
        if PACKAGED:
            get = installing(*shlex.split(self.install))
        return Environment("languages", self.title, self.module, get)

    def unavailable(self) -> str | None:
        """Why it cannot be compiled here, in words that follow the rung's name; None if it can."""
        missing = self.environment.missing()
        if missing is None:
            return None
        if missing.startswith(self.environment.variable):
            return f"cannot be compiled: {missing}"
        return f"needs {self.title}: {self.environment.get}"


@functools.cache
def languages() -> Mapping[str, Language]:
    """All languages by name."""
    by_name = {}
    for module in sorted(info.name for info in pkgutil.iter_modules([str(FOLDER)])):
        language = importlib.import_module(f"kernels.languages.compilers.{module}").LANGUAGE
        by_name[language.name] = language
    return MappingProxyType(by_name)
