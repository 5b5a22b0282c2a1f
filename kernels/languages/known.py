"""The languages beside CUDA C++ that a CUDA rung can be written in."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from kernels.environment import Environment

FOLDER = Path(__file__).with_name("compilers")


@dataclass(frozen=True)
class Language:
    """name: in headers. title: for people. module: what has to be importable. install: what pip is told.
    warps: the define that says how many warps a block has, "" where the launch alone says it."""

    name: str
    title: str
    module: str
    install: str
    warps: str = ""

    @property
    def environment(self) -> Environment:
        """Where its compiler is: beside us, or in the environment of `make languages`."""
        get = f"pip install {self.install}, or `make languages`"
        return Environment("languages", self.title, self.module, get)

    def unavailable(self) -> str | None:
        """Why it cannot be compiled here, in words that follow the rung's name, or None."""
        missing = self.environment.missing()
        if missing is None:
            return None
        if missing.startswith(self.environment.variable):
            return f"cannot be compiled: {missing}"
        return f"needs {self.title}: {self.environment.get}"


@functools.cache
def languages() -> Mapping[str, Language]:
    """All of them by name."""
    by_name = {}
    for module in sorted(info.name for info in pkgutil.iter_modules([str(FOLDER)])):
        language = importlib.import_module(f"kernels.languages.compilers.{module}").LANGUAGE
        by_name[language.name] = language
    return MappingProxyType(by_name)
