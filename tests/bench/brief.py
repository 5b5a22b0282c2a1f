"""Processes that tests start measure as the program does, only for less long: a warm-up is busy for all the
time that it takes, and so is a probe of the machine, which is most of what a small run costs.

What is looked at is what comes of a run, of which no test knows the times. The modules of _CHANGES are
changed as they are loaded; tests/bench/site does this at the start of a process.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

SITE = Path(__file__).parent / "site"
Put = Callable[[Any, str, Any], None]
WARMUP_S, REWARM_S = 0.01, 0.002
PROBE_S = 0.02
# What fits a cache, and is quickly multiplied: a machine is then said to reach rather more than it does.
PROBED = {"SECONDS": PROBE_S, "COPIED_NBYTES": 8 << 20, "CACHES": 0, "MATRIX": 768}
TRAINS = 12  # of a turn at most
# Caches of hundreds of megabytes take a tenth of a second to overwrite, before every pass on cold ones.
FLUSHED = 1 / 64


def environment() -> str:
    """PYTHONPATH of a process that is to be brief."""
    return os.pathsep.join(filter(None, [str(SITE), os.environ.get("PYTHONPATH", "")]))


def left_out() -> str:
    """PYTHONPATH of one that is to take as long as the program."""
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return os.pathsep.join(path for path in paths if path != str(SITE))


def shorten_rules(timing: Any, put: Put = setattr) -> None:
    """put: what takes it back, where only some tests of a process are to be brief."""
    # A frozen dataclass takes what was not given from the defaults of its __init__.
    rules = timing.Rules
    brief = {"warmup_s": WARMUP_S, "rewarm_s": REWARM_S}
    names = list(rules.__dataclass_fields__)
    defaults = rules.__init__.__defaults__
    assert len(names) == len(defaults), "each of them has one"
    shorter = tuple(brief.get(name, default) for name, default in zip(names, defaults, strict=True))
    put(rules.__init__, "__defaults__", shorter)


def shorten_probes(probe: Any, put: Put = setattr) -> None:
    for name, value in PROBED.items():
        put(probe, name, value)


def shorten_turns(renewed: Any, put: Put = setattr) -> None:
    put(renewed, "REWARM_S", REWARM_S)
    put(renewed, "TRAINS", TRAINS)


def shorten_flushes(host: Any, put: Put = setattr) -> None:
    put(host, "FLUSHED", FLUSHED)


_CHANGES: dict[str, Callable[[Any], None]] = {
    "bench.measure.timing": shorten_rules,
    "bench.measure.answers.renewed": shorten_turns,
    "engine.probe": shorten_probes,
    "engine.machine.host": shorten_flushes,
}


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in _CHANGES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is not None and spec.loader is not None:
            spec.loader = _Changing(spec.loader, _CHANGES[fullname])
        return spec


class _Changing(importlib.abc.Loader):
    def __init__(self, loader: Any, change: Callable[[Any], None]) -> None:
        self._loader, self._change = loader, change

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        found: ModuleType | None = self._loader.create_module(spec)
        return found

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        self._change(module)


def install() -> None:
    sys.meta_path.insert(0, _Finder())
