"""Every backend, found by folder: a module here that defines `BACKEND` (see engine.backend) is on the list.

Importing this package imports no GPU library and no ONNX Runtime: the modules do that when asked to run.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil

from engine.backend import Backend, Options, Session
from engine.graph.graph import Graph
from kernels.errors import InputError
from kernels.nearest import did_you_mean


@functools.cache
def _found() -> dict[str, Backend]:
    modules = sorted(module.name for module in pkgutil.iter_modules(__path__))
    backends = [importlib.import_module(f"{__name__}.{name}").BACKEND for name in modules if name[0] != "_"]
    return {backend.name: backend for backend in backends}


def all_backends() -> dict[str, Backend]:
    """Every backend by its name, in the order of their files, whether or not it can run on this machine."""
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
    made: Session = (backend.prepare if of_users else within)(graph, batch, precision, options)
    return made
