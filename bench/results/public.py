"""What a copy of a run that others may see leaves out: where things lie, what tells of one machine alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.results.machine_limits import MachineLimits
from bench.results.records import Environment


def public_dirs(folders: Sequence[str]) -> tuple[str, ...]:
    """The names of folders, without where they lie."""
    return tuple(Path(folder).name for folder in folders)


def public(environment: Environment) -> Environment:
    """Without what tells of one machine alone: the GPU's serial number."""
    return msgspec.structs.replace(environment, gpu_uuid="")


def public_limits(limits: MachineLimits, environment: Environment) -> MachineLimits:
    """What a machine was measured to reach, without its GPU's serial number."""
    measured_on = limits.measured_on
    if environment.gpu_uuid:
        measured_on = measured_on.replace(f" {environment.gpu_uuid}", "")
    return msgspec.structs.replace(limits, measured_on=measured_on)
