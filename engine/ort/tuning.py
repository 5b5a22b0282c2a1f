"""What a sweep over ONNX Runtime's configurations found, and where it is kept."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.metadata

import msgspec
import onnx

from engine import tuned_store
from engine.graph.graph import Graph
from engine.machine import driver as cuda_driver
from engine.options import Configuration
from engine.ort.fused_conv import fused

KIND = "reference"
_OF_CONVOLUTIONS = ("cudnn_conv_algo_search", "fuse_conv_bias")  # provider options that these alone heed
_PACKAGES = ("onnxruntime-gpu", "onnxruntime", "nvidia-cudnn-cu13", "nvidia-cudnn-cu12")


class Tried(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One configuration of a sweep.

    refused: why it was not timed, or no further ("": it was). first_ns: a pass by the short first look;
    time_ns: the median among the best, interleaved. error: relative L2 of the whole model's output against
    float64. layer, layer_error: the group that is furthest off when it is fed right inputs, at the case's
    batch; strict: whether every group stays within the precision's bound (None: not looked at). within:
    whether the whole model's output does, in the first session. doubt: how it was wrong in a later one though
    all of that was right ("": it was not): what a session chooses as it is created, another may not.
    """

    configuration: Configuration
    refused: str = ""
    first_ns: float | None = None
    time_ns: float | None = None
    error: float | None = None
    layer: str = ""
    layer_error: float | None = None
    strict: bool | None = None
    within: bool | None = None
    doubt: str = ""

    @property
    def eligible(self) -> bool | None:
        """Whether it may be the strict winner, as far as it was looked at (None: its layers were not)."""
        if self.refused or self.first_ns is None or self.within is False or self.doubt:
            return False
        return self.strict


class Sweep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A sweep, under way or done. trying, attempts: the configuration that the process was at when this was
    written, and how often; fastest, strict: the winners whatever their error and with every layer right."""

    tried: tuple[Tried, ...] = ()
    trying: Configuration | None = None
    attempts: int = 0
    done: bool = False
    fastest: Configuration | None = None
    strict: Configuration | None = None
    tuned_at: str = ""

    def of(self, configuration: Configuration | None) -> Tried | None:
        """What came of a configuration."""
        return next((t for t in self.tried if t.configuration == configuration), None)

    @property
    def unfinished(self) -> bool:
        """Whether to go on with it may find a winner: it is not done, or its strict ones came to be doubted
        while there are others that were not looked at."""
        lost = self.strict is None and any(tried.doubt for tried in self.tried)
        return not self.done or (lost and any(tried.eligible is None for tried in self.tried))

    def without(self, configuration: Configuration, reason: str, strict: bool) -> Sweep:
        """The sweep after a configuration came wrong in a case: what is next best by the times that there are
        wins in its place, where anything does. strict: it was wrong by the precision's own bound, and may
        still be right by the loosest."""
        wrong = {"doubt": reason} if strict else {"refused": reason, "time_ns": None}
        tried = tuple(
            msgspec.structs.replace(t, **wrong) if t.configuration == configuration else t for t in self.tried
        )
        ranked = sorted((t for t in tried if t.first_ns is not None and not t.refused), key=_rank)
        fastest, best = self.fastest, self.strict
        if configuration == fastest and not strict:
            fastest = next((t.configuration for t in ranked), None)
        if configuration == best:
            best = next((t.configuration for t in ranked if t.eligible), None)
        return msgspec.structs.replace(self, tried=tried, fastest=fastest, strict=best)


def _rank(tried: Tried) -> tuple[bool, float]:
    """What was timed among the best before what was only looked at."""
    return (False, tried.time_ns) if tried.time_ns is not None else (True, tried.first_ns or 0.0)


def bearing(configuration: Configuration, graph: Graph) -> Configuration:
    """A configuration as far as it bears on this model: two that are the same then run it the same way."""
    convolves = any(
        "Conv" in node.op_type
        or any(isinstance(value, onnx.GraphProto) for value in node.attributes.values())
        for node in graph.nodes
    )
    return dataclasses.replace(
        configuration,
        provider_options=tuple(
            (name, value)
            for name, value in configuration.provider_options
            if convolves or name not in _OF_CONVOLUTIONS
        ),
        fused_conv=configuration.fused_conv and fused(graph) is not graph,
    )


def key(backend: str, graph: Graph, batch: int, precision: str) -> dict[str, str]:
    """What a sweep holds for: this machine's GPU, driver and libraries, the model's content, the case."""
    device = cuda_driver.device()
    return {
        "backend": backend,
        "gpu": device.name if device else "",
        "driver": cuda_driver.driver_version(),
        "model": graph.sha256,
        "batch": str(batch),
        "precision": precision,
        **_packages(),
    }


def machine() -> str:
    """What a sweep of this machine is made on, in words."""
    device = cuda_driver.device()
    libraries = [f"{package} {version}" for package, version in _packages().items()]
    driver = cuda_driver.driver_version()
    return ", ".join(filter(None, (device.name if device else "", driver and f"driver {driver}", *libraries)))


@functools.cache
def _packages() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    return found


def read(backend: str, graph: Graph, batch: int, precision: str) -> Sweep | None:
    """The sweep kept for a case on this machine, done or not."""
    return tuned_store.read(KIND, key(backend, graph, batch, precision), Sweep)


def write(backend: str, graph: Graph, batch: int, precision: str, sweep: Sweep) -> None:
    """Keep it. Raises KernelError where the cache cannot be written."""
    tuned_store.write(KIND, key(backend, graph, batch, precision), sweep)
