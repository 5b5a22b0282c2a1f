"""The machine and the software of a run, collected without starting a device or importing what is heavy."""

from __future__ import annotations

import platform

import psutil

from bench.results.records import BackendInfo, Environment
from bench.run import nvml
from bench.words.version import of_package, version
from engine import backends
from engine.backend import Answering, Backend, Rival, Swapping, Variant
from engine.machine import host

# Whose versions a reader of a chart wants to know; those not installed are left out.
PACKAGES = (
    "numpy",
    "numba",
    "onnx",
    "onnxruntime",
    "onnxruntime-gpu",
    "cupy-cuda13x",
    "cupy-cuda12x",
    "cuda-bindings",
    "cupti-python",
    "nvidia-cudnn-cu13",
    "nvidia-cudnn-cu12",
    "nvidia-ml-py",
)


def collect() -> Environment:
    """The Environment of this machine. Cheap (tens of milliseconds) and never raises for what is missing."""
    gpu = nvml.Gpu.first()
    driver, cuda = nvml.versions()
    return Environment(
        machine=platform.node(),
        os=_os(),
        python=platform.python_version(),
        cpu=host.cpu_name(),
        cores=host.physical_cores(),
        memory_nbytes=psutil.virtual_memory().total,
        gpu=gpu.name if gpu else "",
        gpu_uuid=gpu.uuid if gpu else "",
        gpu_fp32_flops_per_s=gpu.fp32_flops_per_s if gpu else 0.0,
        driver=driver,
        cuda=cuda,
        packages=packages(),
        backends=backend_infos(),
        kernelscope=version(),
    )


def packages() -> dict[str, str]:
    """Installed version by distribution name."""
    return {name: found for name in PACKAGES if (found := of_package(name))}


def backend_infos() -> tuple[BackendInfo, ...]:
    """Every backend there is, with the reason where it cannot run here."""
    return tuple(
        BackendInfo(
            name=backend.name,
            device=backend.device,
            precisions=tuple(backend.precisions),
            reference=backend.reference,
            unavailable=backend.unavailable() or "",
            variant_of=_variant_of(backend),
            swaps=isinstance(backend, Swapping),
            invited=isinstance(backend, Swapping) and backend.invited,
            rival=isinstance(backend, Rival | Answering),  # only where it is named
            get=getattr(backend, "get", ""),
            untried=getattr(backend, "untried", ""),
        )
        for backend in backends.all_backends().values()
    )


def _variant_of(backend: Backend) -> str:
    if isinstance(backend, Swapping):
        return backend.swaps_in
    return backend.variant_of if isinstance(backend, Variant) else ""


def _os() -> str:
    if platform.system() == "Linux":
        try:
            name = platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
        except OSError:
            name = "Linux"
        return f"{name}, kernel {platform.release()}"
    return f"{platform.system()} {platform.release()}"
