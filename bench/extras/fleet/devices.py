"""The devices of this machine that work is handed to."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, field
from pathlib import Path

from bench.extras.fleet import device_lock


@dataclass(frozen=True)
class Place:
    """A device of a machine. name: as told; device: "cpu" or "cuda"; environment: what a worker on it has
    beside ours; lock: the file by which it is had alone."""

    name: str
    device: str
    lock: Path
    environment: dict[str, str] = field(default_factory=dict)
    gpu: str = ""


def cpu() -> Place:
    """This machine's processor, whichever of its cores."""
    return Place(platform.node() or "this machine", "cpu", device_lock.path_of("cpu"))


def gpus() -> tuple[Place, ...]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves, in its order."""
    from bench.run.nvml import Gpu
    from engine.machine import driver

    count = driver.count()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").strip()
    names = [name.strip() for name in visible.split(",") if name.strip()] or [str(n) for n in range(count)]
    found = []
    for name in names[:count]:
        gpu = Gpu.first(name)
        uuid = gpu.uuid if gpu is not None else ""
        found.append(
            Place(
                f"{platform.node()} GPU {name}",
                "cuda",
                device_lock.path_of(uuid or f"gpu-{name}"),
                {"CUDA_VISIBLE_DEVICES": name},
                gpu.name if gpu is not None else "",
            )
        )
    return tuple(found)


def places(device: str) -> tuple[Place, ...]:
    """The devices of one kind on this machine."""
    return gpus() if device == "cuda" else (cpu(),)
