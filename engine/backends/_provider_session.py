"""ONNX Runtime with any further execution provider, as the sessions of its own backends are: io binding, one
session a batch size, a CUDA graph where the provider has one, and never a silent fall-back."""

from __future__ import annotations

import contextlib
import importlib
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from engine.backends.ort_cpu import OrtCpuSession
from engine.graph.graph import Graph
from engine.isolated.device import OnDevice
from engine.options import Options
from engine.ort import sessions as ort
from engine.ort.cuda_session import OrtCudaSession
from kernels.errors import UnavailableError
from kernels.precision import FP32


def on_cpu(provider: Provider, graph: Graph, batch: int, options: Options) -> OrtCpuSession:
    """A session on a processor. Raises as OrtCpuSession, and UnavailableError where it falls back."""
    return _made(provider, OrtCpuSession, _settings=MappingProxyType(provider.of(FP32)))(
        graph, batch, options
    )


def on_cuda(provider: Provider, graph: Graph, batch: int, precision: str, options: Options) -> OrtCudaSession:
    """A session on an NVIDIA GPU. Raises as OrtCudaSession, and UnavailableError where it falls back."""

    def settings(self: Any, cuda_graph: bool) -> dict[str, str]:
        own = {
            provider.graph: str(int(cuda_graph)),
            provider.stream: str(self._stream.ptr),
            provider.device: str(self._cupy.cuda.runtime.getDevice()),
        }
        return {**provider.of(precision), **{name: value for name, value in own.items() if name}}

    for module in provider.loads:
        with contextlib.suppress(ImportError):  # then the provider does not load, which is told
            importlib.import_module(module)
    setting_names = tuple(name for name in provider.of(precision))
    behind = (*provider.behind, "CPUExecutionProvider")
    kind = _made(provider, OrtCudaSession, _settings=settings, _told=setting_names, _behind=behind)
    return kind(graph, batch, precision, options)


def _made(provider: Provider, session: Any, **own: Any) -> Any:
    """The session's class with this provider in the place of its own. Raises UnavailableError where the build
    has it not."""
    runtime = ort.import_onnxruntime()
    if provider.name not in runtime.get_available_providers():
        raise UnavailableError(
            f"ONNX Runtime {runtime.__version__} is built without {provider.name}: {provider.backend} is that"
        )
    members = {
        "backend": provider.backend,
        "provider": provider.name,
        "_library": provider.library,
        "_helps": provider.helps,
        **own,
    }
    return type(session.__name__, (session,), members)


def opened(provider: Provider, graph: Graph, batch: int, precision: str, options: Options, cuda: bool) -> Any:
    if not cuda:
        return on_cpu(provider, graph, batch, options)
    return OnDevice(on_cuda(provider, graph, batch, precision, options))


# ------------------------------------------------------------------------------------------------ providers


@dataclass(frozen=True)
class Provider:
    """backend: its name here. name: ONNX Runtime's; library: what its file is named for. settings: (name,
    value) pairs for it, by the precision that they are for ("": all). graph, stream, device: its names for
    those settings ("": it has none). loads: modules that load what it needs; behind: providers for what it
    does not run; helps: what would keep it from falling back."""

    backend: str
    name: str
    library: str
    settings: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    graph: str = ""
    stream: str = ""
    device: str = ""
    loads: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()
    helps: str = ""

    def of(self, precision: str) -> dict[str, str]:
        return {
            name: value for when, pairs in self.settings if when in ("", precision) for name, value in pairs
        }
