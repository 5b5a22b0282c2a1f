"""Which configuration of ONNX Runtime was measured to be the fastest, and what that is kept for."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.metadata

import onnx

from engine.graph.graph import Graph
from engine.machine import driver as cuda_driver
from engine.options import Configuration
from engine.ort.fused_conv import fused
from engine.planning import choices
from engine.planning.choices import Choice

_OF_CONVOLUTIONS = ("cudnn_conv_algo_search", "fuse_conv_bias")  # provider options that these alone heed
_PACKAGES = ("onnxruntime-gpu", "onnxruntime", "nvidia-cudnn-cu13", "nvidia-cudnn-cu12")


REFERENCE = choices.Part[Choice[Configuration]]("reference", Choice[Configuration])


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
    """The case of a model on a backend, with this machine's GPU, driver and libraries."""
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
    versions = {}
    for package in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    return versions


def read(backend: str, graph: Graph, batch: int, precision: str) -> Choice[Configuration] | None:
    """What is kept for a case on this machine, done or not."""
    return REFERENCE.read(key(backend, graph, batch, precision), {})


def write(backend: str, graph: Graph, batch: int, precision: str, choice: Choice[Configuration]) -> None:
    """Keep it. Raises KernelError where the cache cannot be written."""
    REFERENCE.write(key(backend, graph, batch, precision), {}, choice)
