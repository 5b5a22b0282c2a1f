"""The stand-in put in the place of the driver's libraries and of the packages that speak to them.

Nothing is loaded before the program asks for it: a finder in front of Python's own answers for the modules by
their names, and `ctypes` for the driver's library. `tests.standin.site` does this at the start of a process.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from tests.bench import brief

_LIBRARY = "libcuda.so.1"


def _cupy() -> dict[str, Any]:
    from tests.standin.here import device
    from tests.standin.modules.cupy import Cupy

    cupy = Cupy(device())
    names = ("__version__", *(name for name in dir(cupy) if not name.startswith("_")))
    return {name: getattr(cupy, name) for name in names}


def _cupti() -> dict[str, Any]:
    from tests.standin.modules.cupti import Recording

    recording = Recording()
    return {name: getattr(recording, name) for name in {*vars(recording), *dir(Recording)}}


def _same(name: str) -> Callable[[], dict[str, Any]]:
    """A module of ours under another name."""
    return lambda: vars(importlib.import_module(name))


_MODULES: dict[str, Callable[[], dict[str, Any]]] = {
    "cupy": _cupy,
    "cupyx": _same("tests.standin.modules.cupyx"),
    "cupyx.scipy": dict,
    "cupyx.scipy.sparse": _same("tests.standin.modules.cupyx"),
    "cuda": dict,
    "cuda.bindings": dict,
    "cuda.bindings.nvrtc": _same("tests.standin.modules.nvrtc"),
    "cuda.bindings.driver": _same("tests.standin.modules.driver"),
    "cupti": dict,
    "cupti.cupti": _cupti,
    "cuda.pathfinder": _same("tests.standin.modules.cublas"),
}
# What is there is changed when it has been loaded.
_CHANGED = {"onnxruntime": "tests.standin.modules.onnxruntime"}


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname in _MODULES:
            is_package = any(name.startswith(fullname + ".") for name in _MODULES)
            return importlib.util.spec_from_loader(fullname, self, origin="stand-in", is_package=is_package)
        if fullname in _CHANGED:
            spec = importlib.machinery.PathFinder.find_spec(fullname, path)
            if spec is not None and spec.loader is not None:
                spec.loader = _Changing(spec.loader, _CHANGED[fullname])
            return spec
        return None

    def exec_module(self, module: ModuleType) -> None:
        special = {name: value for name, value in vars(module).items() if name.startswith("__")}
        vars(module).update(_MODULES[module.__name__]())
        vars(module).update(special)


class _Changing(importlib.abc.Loader):
    """Loads as `loader` does, then has a module of ours change what was loaded."""

    def __init__(self, loader: Any, by: str) -> None:
        self._loader, self._by = loader, by

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        importlib.import_module(self._by).change(module)


class _CDLL(ctypes.CDLL):
    """ctypes.CDLL, which finds the stand-in's libraries by their names."""

    def __new__(cls, name: Any = None, *rest: Any, **more: Any) -> Any:
        if name == _LIBRARY:
            from tests.standin.modules.driver import Library

            return Library()
        if name == "stand-in cuBLAS":
            from tests.standin.modules.cublas import Streamed

            return Streamed()
        return super().__new__(cls)


def install() -> None:
    sys.meta_path.insert(0, Finder())
    brief.install()
    ctypes.CDLL = _CDLL  # type: ignore[misc]
