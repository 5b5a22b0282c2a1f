"""The devices that work is handed to: of this machine, and machines elsewhere."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from bench.extras.fleet import device_lock
from kernels.errors import InputError


@dataclass(frozen=True)
class Place:
    """A device of a machine, or a machine elsewhere. name: as told; device: "cpu" or "cuda", "" where it has
    both; environment: what a worker on it has beside ours; lock: the file by which it is had alone; on: the
    name by which a worker is started there (bench.run.elsewhere), "" for this machine; refused: the backends
    that cannot run there."""

    name: str
    device: str
    lock: Path
    environment: dict[str, str] = field(default_factory=dict)
    gpu: str = ""
    on: str = ""
    refused: frozenset[str] = frozenset()

    def serves(self, device: str, gpu: str, backends: Iterable[str]) -> bool:
        """Whether it can do what needs this device, this kind of GPU ("": any), and all of these backends."""
        right = self.device in ("", device) and gpu.lower() in self.gpu.lower()
        return right and self.refused.isdisjoint(backends)


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


def elsewhere(name: str) -> Place:
    """A machine elsewhere. Whoever measures there from this machine waits for the others who do. Raises
    InputError where it is not known, or cannot measure now."""
    from bench.run import elsewhere as there
    from bench.words.option import one_of

    known = {place.name: place for place in there.offered()}
    if not known:
        there.device(name, "cpu")  # which says how to add one
    place = known[one_of(name, list(known), "--on")]
    if place.refused:
        raise InputError(place.refused)
    refused = frozenset(info.name for info in place.backends if info.unavailable)
    lock = device_lock.path_of(f"on-{name}")
    return Place(name, "", lock, gpu=place.gpu, on=name, refused=refused)


def places(device: str) -> tuple[Place, ...]:
    """The devices of one kind on this machine."""
    return gpus() if device == "cuda" else (cpu(),)
