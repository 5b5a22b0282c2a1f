"""A place that is this machine, by a launch prefix and no ssh: a folder, a home and a cache of its own."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import psutil

from bench.extras.remote import elsewhere, places
from bench.results.records import Case, Job, Run
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.words.version import described
from tests.bench.extras.remote.scripted import SAID

ROOT = Path(__file__).resolve().parents[4]
SCRIPTED = ("tests.bench.extras.remote.scripted",)


def make(folder: Path, name: str = "lab", **fields) -> places.Place:
    """Add a place whose program is this one. KERNELSCOPE_CONFIG says where places are kept."""
    root = folder / name
    (root / "program-here" / "kernelscope").mkdir(parents=True)
    (root / "program-here" / "kernelscope" / "_program").symlink_to(ROOT)
    (root / "home").mkdir()
    (root / "env-here").symlink_to(sys.prefix)
    launch = ("env", f"HOME={root / 'home'}", f"{SAID}={root / 'said'}")
    given = {"launch": launch, "shared": False, "version": described(), "lease_s": 30.0} | fields
    place = places.Place(name=name, folder=str(root), env="env-here", program="program-here", **given)
    places.save(place)
    return place


def run_of(count: int = 3, *models: str, **fields) -> Run:
    """A comparison of so many cases, all of the first model."""
    job = Job(models=models or ("net",), backends=("one",), **({"timeout_s": 60.0} | fields))
    cases = tuple(
        Case(model=job.models[0], backend="one", precision="fp32", batch=n) for n in range(1, count + 1)
    )
    return Run(job=job, cases=cases)


def command(place: places.Place, worker=SCRIPTED, **options) -> list[str]:
    return elsewhere.worker_command(place.name, worker, COMPARISON.parts, **options)


def said(place: places.Place) -> list[tuple[str, float]]:
    """What workers there have measured: key and figure."""
    try:
        lines = Path(place.folder, "said").read_text().splitlines()
    except FileNotFoundError:
        return []
    return [(key, float(figure)) for key, figure in (line.split() for line in lines)]


def processes(place: places.Place) -> list[psutil.Process]:
    """All that runs there or leads there: keepers, workers, connections, lines and what guards them."""
    config = os.environ["KERNELSCOPE_CONFIG"]
    found = []
    for pid in psutil.pids():
        try:
            said = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
            line = "bench.extras.remote.line" in said
            if pid == os.getpid() or not (line or any(place.folder in word for word in said)):
                continue
            process = psutil.Process(pid)
            if (
                any(place.folder in word for word in said)
                or process.environ().get("KERNELSCOPE_CONFIG") == config
            ):
                found.append(process)
        except (OSError, psutil.Error):
            continue
    return found


def words(process: psutil.Process) -> list[str]:
    """Its command line; nothing of one that is gone."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def workers(place: places.Place) -> list[psutil.Process]:
    """Of `processes`, those that measure known figures, and the lines to them."""
    return [process for process in processes(place) if SCRIPTED[0] in words(process)]


def until(what, seconds: float = 60.0) -> None:
    """Wait until `what()` holds. Raises AssertionError where it does not in time. It is asked less often the
    longer it takes: to look through all processes costs more than most of what is waited for."""
    end, pause = time.monotonic() + seconds, 0.01
    while not what():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(pause)
        pause = min(0.2, 1.3 * pause)
