"""What this machine can run; for what it cannot, why and what would help. Changes nothing and starts no
device."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.run import pick_extra
from bench.words.version import of_package, requirements
from kernels import numba_support
from kernels.environment import installing
from kernels.errors import system_words

Status = Literal["ok", "note", "missing"]
RUNTIMES = ("onnxruntime", "onnxruntime-gpu")  # the two builds of ONNX Runtime that extras bring
ROOM_NBYTES = 2 << 30  # what models, data sets and a few runs take at the most


@dataclass(frozen=True)
class Check:
    """One line of the report. "ok"; "note": not there and not needed for everything; "missing": nothing runs
    without it, or what is there is broken. text says what was found, and what would help."""

    topic: str
    name: str
    status: Status
    text: str


def checks(display: str | None = None) -> list[Check]:
    """Every check, in the order of the report; `display` is why no window can open (None: one can).

    A check that fails in a way nobody foresaw is a line of the report and not the end of it.
    """
    found: list[Check] = []
    window = Check("window", "display", "note" if display else "ok", display or "a window can open")
    parts: tuple[tuple[str, Callable[[], Iterable[Check]]], ...] = (
        ("python", _python),
        ("system", _system),
        ("packages", _packages),
        ("gpu", _gpu),
        ("backends", _backends),
        ("rivals", _rivals),
        ("nvrtc", _nvrtc),
        ("window", lambda: [window]),
        ("models", _models),
        ("data sets", _datasets),
        ("disk", _disk),
    )
    for topic, part in parts:
        try:
            found += part()
        except Exception as error:
            found.append(
                Check(topic, topic, "missing", f"could not be looked at: {type(error).__name__}: {error}")
            )
    return found


def runs_anything(found: Iterable[Check]) -> bool:
    """Whether at least one backend can run."""
    return any(check.topic == "backends" and check.status == "ok" for check in found)


def runtime_problem() -> str | None:
    """Why ONNX Runtime is not as it must be, and the commands that mend it: neither build of it is installed,
    or both are, which overwrite each other's files. None where all is well."""
    there = [name for name in RUNTIMES if of_package(name)]
    if len(there) == 1 or (not there and importlib.util.find_spec("onnxruntime") is not None):
        return None  # a build of another name has the module, too
    if there:
        from engine.ort.sessions import two_builds

        if two_builds() is None:
            return None  # they lie in different folders
    extra, why = pick_extra.wanted()
    mends = installing(*requirements(extra), without=RUNTIMES if there else ())
    if there:
        told = "onnxruntime and onnxruntime-gpu are both installed and overwrite each other's files"
    else:
        told = "ONNX Runtime is not installed, so there is nothing to compare with"
    return f"{told}; {mends} brings what fits this machine ({why})"


def _python() -> Iterable[Check]:
    version = ".".join(map(str, sys.version_info[:3]))
    good = sys.version_info >= (3, 11)
    text = version if good else f"{version} is too old; Kernelscope needs 3.11 or newer"
    yield Check("python", "Python", "ok" if good else "missing", f"{text} ({sys.executable})")


def _system() -> Iterable[Check]:
    """What this system lacks of all that the program uses, and what is done instead; no line where it lacks
    nothing, as Linux does."""
    from bench.run import confined
    from engine.isolated.forked import starting
    from engine.machine import host, load
    from kernels import cache, processes

    instead = {
        "stopping": (
            processes.STOPS_ITSELF,
            "a process cannot be waited for to stop: a Python kernel's passes are timed by messages, its "
            "process runs on between them, and what it does there is not found",
        ),
        "walls": (
            sys.platform == "linux",
            "no Landlock, no seccomp and no namespaces: kernels and files of others are not shut in, so run "
            "only those that you trust",
        ),
        "forking": (
            starting.possible(),
            "isolated processes cannot be forked from a ready one: each is started anew and takes longer",
        ),
        "memory limits": (
            confined.limits_memory(),
            "the memory that reading a model file takes cannot be limited, only the time",
        ),
        "cores": (
            processes.LINUX,
            "a process cannot be kept on one core: small models vary more in time, and a kernel that changes "
            "cores or priorities is not found",
        ),
        "load": (
            load.reading([os.getpid()], host.usable_cores()) is not None,
            "what other programs take of the cores during a run is not counted",
        ),
        "caches": (
            host.all_caches_nbytes() > 0,
            "the sizes of the caches are not told: the limits of the machine leave them out",
        ),
        "file locks": (
            cache.fcntl is not None,
            "processes that write the same into the cache do not wait for each other: work may be done twice",
        ),
    }
    for name, (there, text) in instead.items():
        if not there:
            yield Check("system", name, "note", text)


def _packages() -> Iterable[Check]:
    """Each package that pyproject.toml requires; of onnxruntime's two builds, one."""
    for name in required():
        found = of_package(name)
        helps = f"not installed; {installing(name)} brings it"
        yield Check("packages", name, "ok" if found else "missing", found or helps)
    reason = numba_support.unavailable()
    without = f"{reason}; engine-cpu runs its kernels in NumPy, which are slower"
    if not of_package("numba"):
        without += f"; {installing('numba')} brings it"
    yield Check("packages", "numba", "note" if reason else "ok", without if reason else of_package("numba"))
    if (sentence := runtime_problem()) is not None:
        yield Check("packages", "onnxruntime", "missing", sentence)
    for name in filter(of_package, RUNTIMES if sentence is None else ()):
        yield Check("packages", name, "ok", of_package(name))


def required() -> list[str]:
    """Names of the distributions in pyproject.toml's dependencies."""
    return [re.split(r"[\[<>=!~; ]", item, maxsplit=1)[0] for item in requirements()]


def _gpu() -> Iterable[Check]:
    from bench.run import nvml

    version, why = pick_extra.ask_driver()
    driver, cuda = nvml.versions()
    if version is None:
        text = f"{why}; the CUDA backends need an NVIDIA GPU with driver 525 or newer, everything else works"
        yield Check("gpu", "driver", "note", text)
        return
    yield Check("gpu", "driver", "ok", f"{driver or 'answers'}, CUDA {cuda or version // 1000}")
    gpu = nvml.Gpu.first()
    if gpu is None:
        text = "NVML tells nothing, so clocks, power and temperature go unrecorded; nvidia-ml-py would tell"
        yield Check("gpu", "NVML", "note", text)
    else:
        yield Check("gpu", "GPU", "ok", f"{gpu.name} ({gpu.uuid})")
    extra, reason = pick_extra.choose(version, why)
    wanted = "onnxruntime-gpu"
    if not of_package(wanted):
        helps = f"{installing(*requirements(extra), without=RUNTIMES[:1])} brings the CUDA set"
        text = f"{wanted} is not installed though {reason}; {helps}"
        yield Check("gpu", "packages", "note", text)


def _backends() -> Iterable[Check]:
    from bench.measure.environment import backend_infos

    for info in backend_infos():
        if info.variant_of or info.rival:
            continue  # a variant can run where the one that it is a variant of can
        text = info.unavailable or f"can run ({', '.join(info.precisions)})"
        yield Check("backends", info.name, "note" if info.unavailable else "ok", text)
    if importlib.util.find_spec("onnxruntime") is not None:
        import onnxruntime

        providers = ", ".join(
            name.removesuffix("ExecutionProvider") for name in onnxruntime.get_available_providers()
        )
        yield Check("providers", "ONNX Runtime", "ok", f"built with {providers}")


def _rivals() -> Iterable[Check]:
    """What else there is to compare with, where it is asked for by name, and how to get it."""
    from bench.measure.environment import backend_infos

    told: set[str] = set()
    for info in backend_infos():
        if not info.rival:
            continue
        text = info.unavailable or f"can run ({', '.join(info.precisions)}) where it is named: --backend"
        if info.unavailable and info.get and info.get not in text and info.get not in told:
            text += f"; {info.get}"
        told.add(info.get)
        text += f"; untried: {info.untried}" if info.untried else ""
        yield Check("rivals", info.name, "note" if info.unavailable else "ok", text)


def _nvrtc() -> Iterable[Check]:
    try:
        from cuda.bindings import nvrtc

        status, major, minor = nvrtc.nvrtcVersion()
    except Exception as error:
        text = f"not to be had ({str(error) or type(error).__name__}); "
        text += f"{installing(*requirements('nvrtc'))} brings it"
        yield Check("nvrtc", "compiler", "note", text)
        return
    good = int(status) == 0
    text = (
        f"{major}.{minor}, compiles kernels with or without a GPU"
        if good
        else f"answers with error {int(status)}"
    )
    yield Check("nvrtc", "compiler", "ok" if good else "note", text)


def _models() -> Iterable[Check]:
    from bench.words import units
    from kernels.cache import cache_dir
    from models import names

    root = cache_dir()
    files = [path for path in root.rglob("*") if path.is_file()] if root.is_dir() else []
    parts: dict[str, int] = {}
    for path in files:
        part = path.relative_to(root).parts[0]
        parts[part] = parts.get(part, 0) + path.stat().st_size
    sizes = ", ".join(f"{name} {units.nbytes(size)}" for name, size in sorted(parts.items()))
    yield Check("models", "catalogue", "ok", f"{len(names.models())} models")
    again = "; a folder deleted there is made anew when it is needed" if sizes else ""
    yield Check("models", "cache", "ok", f"{root}: {sizes or 'empty'}{again}")


def _datasets() -> Iterable[Check]:
    from models import datasets, names

    for name in names.datasets():
        reason = datasets.available(name)
        yield Check("data sets", name, "note" if reason else "ok", reason or "here")


def _disk() -> Iterable[Check]:
    from bench.words import units
    from kernels.cache import cache_dir

    places = {"cache": cache_dir(), "runs": Path("runs").absolute()}
    for name, place in places.items():
        base = next(path for path in (place, *place.parents) if path.exists())
        if reason := _unwritable(base):
            cache = name == "cache"
            helps = "set KERNELSCOPE_CACHE to a folder that can" if cache else "--out names one that can"
            text = f"{base} cannot be written ({reason}); {helps}"
            yield Check("disk", name, "missing" if cache else "note", text)
            continue
        free = shutil.disk_usage(base).free
        text = f"{units.nbytes(free)} free at {base}"
        if free < ROOM_NBYTES:
            text += f"; {units.nbytes(ROOM_NBYTES)} would be comfortable"
        yield Check("disk", name, "ok" if free >= ROOM_NBYTES else "note", text)


def _unwritable(folder: Path) -> str:
    """Why nothing can be written in a folder; "" where it can. Leaves nothing there."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return system_words(error)
