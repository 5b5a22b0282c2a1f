"""A data set in parts for accuracy: each part a comparison of its own, wherever there is a device, and what
they found counted together. Nothing is estimated: the parts are all images, each once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from bench.commands.measuring import Ending
from bench.extras.fleet import spread
from bench.extras.fleet.executor import Executor
from bench.extras.fleet.work import Said, Work
from bench.results import rates
from bench.results.records import Job, Measurement
from bench.run.kinds.comparison import KIND, RunFolder
from kernels.errors import DataError, InputError


@dataclass(frozen=True)
class Together:
    """What a backend's answers were worth over all parts. parts: how many were counted; top1, top5,
    agreement: fractions of the images, None where a part does not know."""

    backend: str
    precision: str
    parts: int
    images: int
    top1: float | None
    top5: float | None
    agreement: float | None

    @property
    def top1_interval(self) -> tuple[float, float] | None:
        return None if self.top1 is None else rates.interval(self.top1, self.images)


def jobs(job: Job, images: int, parts: int) -> list[Job]:
    """A job of each part. images: of all of them. Raises InputError where there are fewer than parts."""
    if not 1 <= parts <= images:
        raise InputError(f"{images:,} images cannot be had in {parts:,} parts")
    counts = [len(range(number, images, parts)) for number in range(parts)]
    return [
        msgspec.structs.replace(job, dataset=f"{job.dataset}@{number}of{parts}", images=(count,))
        for number, count in enumerate(counts, 1)
    ]


def measure(
    folders: Sequence[RunFolder],
    executor_of: Callable[[str], Executor],
    on_event: Callable[[Any], None],
    gpu: str = "",
) -> Ending:
    """Run what is missing of each part's folder. executor_of: by the kind of device."""
    works: list[Work] = []
    take = {}
    for number, folder in enumerate(folders, 1):
        folder.claim()
        for work in spread.works(folder, folder.missing(), gpu):
            named = replace(work, name=f"part {number}: {work.name}")
            works.append(named)
            take[named.name] = spread.receiver(folder, on_event)

    def heard(work: Work, said: Said) -> None:
        take[work.name](work, said)

    reasons: list[str] = []
    try:
        for device in sorted({work.device for work in works}):
            executor = executor_of(device)
            try:
                ended = executor.run([work for work in works if work.device == device], heard)
            finally:
                executor.close()
            reasons += ended.reasons
            if ended.cancelled:
                return Ending(True, tuple(reasons))
        for folder in folders:
            folder.check()
        return Ending(reasons=tuple(reasons))
    finally:
        for folder in folders:
            folder.close()


def together(found: Sequence[Measurement]) -> list[Together]:
    """What the parts found, by backend and precision, in the order of the first. Raises DataError where no
    part says anything of its images."""
    groups: dict[tuple[str, str], list[Measurement]] = {}
    for measurement in found:
        groups.setdefault((measurement.case.backend, measurement.case.precision), []).append(measurement)
    return [_together(*key, parts) for key, parts in groups.items()]


def _together(backend: str, precision: str, parts: Sequence[Measurement]) -> Together:
    worth = [m.accuracy for m in parts if m.accuracy is not None and m.accuracy.images]
    if not worth:
        why = next((m.reason for m in parts if m.reason), "no image was run")
        raise DataError(f"nothing is known of the answers of {backend}: {why}")
    images = sum(w.images for w in worth)

    def counted(name: str) -> float | None:
        shares = [getattr(w, name) for w in worth]
        if None in shares:
            return None
        return sum(round(share * w.images) for share, w in zip(shares, worth, strict=True)) / images

    return Together(backend, precision, len(worth), images, *map(counted, ("top1", "top5", "agreement")))


def folder_of(out: Path, number: int) -> Path:
    return out / f"part-{number}"


def opened(out: Path, wanted: Sequence[Job], cases: Callable[[Job], Any], command: str) -> list[RunFolder]:
    """A folder a part, begun, or gone on with where it is there. Raises InputError where it is another's."""
    from bench.results import folders
    from bench.results.records import Run

    found = []
    for number, job in enumerate(wanted, 1):
        path = folder_of(out, number)
        if (path / KIND.file).is_file():
            found.append(KIND.resume(path, job))
        else:
            found.append(folders.begin(KIND, Run(job=job, cases=cases(job)), path, out, command))
    return found
