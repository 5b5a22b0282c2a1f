"""A run of any kind made small enough to ship or to send, with every figure of its tables as it was.

All samples are kept, to the last bit, and packed (bench.results.results_file): whoever reads the copy derives
from them what was derived before, byte for byte, by today's rule or a later one. What else goes, step by step
until it fits, is each kind's own, in its view: `GRADES`, how much goes; `lines(folder, measurements, target,
grade)`, which gives the measurements with less in them and writes their other files; and what would make less
of it (`LESS`). A kind whose job names more files than folders of kernels has its own `public(header)`. What
is gone is told in the facts or notes of its case. Where the samples alone do not fit, nothing is written.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from bench.results import note
from bench.results.folders import open_folder
from bench.results.inside import inside
from bench.results.machine_limits import MachineLimits
from bench.results.records import Environment, Header
from bench.results.results_file import packed_line_of
from bench.results.store import RESULTS_FILE, write_atomically
from kernels.errors import InputError

MOST_NBYTES = 300_000


def thin(source: Path, target: Path, most_nbytes: int = MOST_NBYTES) -> int:
    """Write what lies in `source`, thinned as little as fits `most_nbytes`, to the new folder `target`; its
    size in bytes. Raises InputError where the source is none, the target exists or nothing
    fits."""
    held = open_folder(source)
    measurements = held.measurements()
    if not measurements:
        raise InputError(f"{source} holds no measurement yet, so there is nothing to thin")
    if target.exists():
        raise InputError(f"{target} exists already; name a new folder")
    kind = held.kind.part("view")
    header = getattr(kind, "public", public)(held.header)
    size = 0
    for grade in kind.GRADES:
        with tempfile.TemporaryDirectory(prefix="kernelscope-") as name:
            made = Path(name) / "thinned"
            lines = map(packed_line_of, kind.lines(held, measurements, made, grade))
            write_atomically(made / RESULTS_FILE, b"".join(lines))
            write_atomically(made / held.kind.file, msgspec.json.encode(header))
            size = sum(file.stat().st_size for file in made.rglob("*") if file.is_file())
            if size <= most_nbytes:
                try:
                    shutil.copytree(made, target)
                    if (told := note.read(source)) != note.Note():
                        note.write(target, told)
                except OSError as error:
                    raise InputError(f"cannot write {target}: {error.strerror or error}") from error
                return size
    raise InputError(
        f"{source} thinned takes {size:,} bytes at the least, above {most_nbytes:,}; {kind.LESS}"
    )


H = TypeVar("H", bound=Header[Any, Any])


def public(header: H) -> H:
    """A header without where its models and kernels lie, and without its GPU's serial number."""
    environment = header.environment
    return replace(
        header,
        job=replace(header.job, kernel_dirs=tuple(Path(folder).name for folder in header.job.kernel_dirs)),
        models=tuple(replace(info, path=Path(info.path).name) for info in header.models),
        limits={device: _limits(found, environment) for device, found in header.limits.items()},
        environment=replace(environment, gpu_uuid=""),
    )


def _limits(limits: MachineLimits, environment: Environment) -> MachineLimits:
    measured_on = limits.measured_on
    if environment.gpu_uuid:
        measured_on = measured_on.replace(f" {environment.gpu_uuid}", "")
    return replace(limits, measured_on=measured_on)


def keep(folder: Path, name: str, target: Path) -> bool:
    """Copy a file that a record of the run in `folder` names into the small copy; whether it is there."""
    with contextlib.suppress(FileNotFoundError):
        source, kept = inside(folder, name), target / name
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, kept)
        return True
    return False
