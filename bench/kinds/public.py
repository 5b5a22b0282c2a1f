"""What a copy of a run that others may see leaves out: where things lie, what tells of one machine alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from bench.results.machine_limits import MachineLimits
from bench.results.records import Environment, Header

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
