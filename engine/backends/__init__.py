"""All backends, found by folder: a module here that defines `BACKEND`, or `BACKENDS` for several (see
engine.backend); and by the entry point `kernelscope.backends`, with which an installed package names such a
module (docs/writing-a-backend.md).

Importing this package imports no GPU library, no ONNX Runtime and no rival: the modules do that when they
run.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from engine.backend import Backend, Options, Session
from engine.graph.graph import Graph
from kernels.errors import InputError, UnavailableError
from kernels.nearest import did_you_mean
from kernels.precision import FP32

ENTRY_POINTS = "kernelscope.backends"
_MEMBERS = ("name", "title", "device", "reference", "precisions", "apart")
_METHODS = ("unavailable", "supports", "prepare")
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_DEVICES = ("cpu", "cuda")


@functools.cache
def _found() -> dict[str, Backend]:
    files = sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name[0] != "_")
    places: list[tuple[str, str, Callable[[], Any]]] = [
        (name, f"the file engine/backends/{name}.py", partial(importlib.import_module, f"{__name__}.{name}"))
        for name in files
    ]
    points = sorted(importlib.metadata.entry_points(group=ENTRY_POINTS), key=lambda it: it.name)
    places += [(point.name, f"the plugin {point.name} ({point.value})", point.load) for point in points]
    by_name: dict[str, Backend] = {}
    for name, where, load in places:
        for backend in _loaded(name, where, load, by_name):
            by_name[backend.name] = backend
    return by_name


def _of(module: Any) -> tuple[Any, ...]:
    several = getattr(module, "BACKENDS", None)
    return tuple(several) if several is not None else (module.BACKEND,)


def _loaded(
    name: str, where: str, load: Callable[[], Any], known: Mapping[str, Backend]
) -> Iterable[Backend]:
    """The backends of a module. If it cannot be loaded, or what it has is no backend, one that says why:
    `doctor` shows it, and all else goes on. name, where: the module in a word, and for the sentence."""
    try:
        found = _of(load())
        for number, backend in enumerate(found):
            names_taken = known.keys() | {other.name for other in found[:number]}
            if wrong := _wrong(backend, names_taken):
                raise InputError(wrong)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whoever wrote it may end the process by it, too
        name = name.replace("_", "-")
        name = name if name not in known and _NAME.fullmatch(name) else "plugin"
        while name in known:
            name += "-x"
        return [Broken(name, f"{where} gives no backend: {_reason(error)}")]
    return found


def _reason(error: BaseException) -> str:
    """In a line, with the place of a mistake in the text."""
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {error.msg}"
    if isinstance(error, SystemExit):
        return f"it ends the program ({error})"
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__


def _wrong(backend: Any, taken: Iterable[str]) -> str:
    """What is wrong with a backend, "" if nothing."""
    missing = [it for it in _MEMBERS if not hasattr(backend, it)]
    missing += [it for it in _METHODS if not callable(getattr(backend, it, None))]
    if missing:
        return f"it has no {', '.join(missing)}"
    if not _NAME.fullmatch(str(backend.name)):
        return f"its name {backend.name!r} is not small letters, digits and single hyphens"
    if backend.name in taken:
        return f"there is a backend named {backend.name} already"
    if backend.device not in _DEVICES:
        return f"its device {backend.device!r} is neither {' nor '.join(_DEVICES)}"
    if getattr(backend, "asked_only", False):  # of those that nobody else here has tried
        said = backend.unavailable()
        if said is not None and not isinstance(said, str):
            return f"its unavailable() gives {said!r}, neither None nor a sentence"
    return ""


def all_backends() -> dict[str, Backend]:
    """Every backend by its name, in the order of their files, those of plugins behind them, whether or not it
    can run on this machine."""
    return dict(_found())


def get(name: str) -> Backend:
    """The backend of that name. Raises InputError with the nearest name where there is none."""
    backends = _found()
    if name in backends:
        return backends[name]
    hint = did_you_mean(name, backends, otherwise=f"; there are {', '.join(backends)}")
    raise InputError(f"no backend {name!r}{hint}")


def prepared_within(backend: Backend, graph: Graph, batch: int, precision: str, options: Options) -> Session:
    """A session that can be looked at from within, for a profile: in this process where it would be in one
    apart, unless the user's own kernels may take part in it. Raises as `Backend.prepare`."""
    of_users = bool(options.kernel_dirs) and backend.name != backend.reference
    within = getattr(backend, "prepare_here", backend.prepare)
    session: Session = (backend.prepare if of_users else within)(graph, batch, precision, options)
    return session


class Broken:
    """Stands in the list of backends for a module that gives none, with the reason; see
    engine.backend.Backend."""

    device = "cpu"
    reference = "ort-cpu"
    precisions: tuple[str, ...] = (FP32,)
    apart = ""
    asked_only = True
    get = ""
    untried = ""

    def __init__(self, name: str, reason: str) -> None:
        self.name = self.title = name
        self._reason = reason

    def unavailable(self) -> str | None:
        return self._reason

    def supports(self, graph: Graph, batch: int, precision: str) -> str | None:
        return self._reason

    def prepare(
        self, graph: Graph, batch: int, precision: str = FP32, options: Options | None = None
    ) -> Session:
        raise UnavailableError(f"{self.name} cannot run here: {self._reason}")
