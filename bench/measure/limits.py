"""The machine's measured limits, kept in the cache with what they were measured on."""

from __future__ import annotations

import contextlib
import hashlib
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bench.measure import environment
from bench.measure.reporter import Reporter
from bench.results.machine_limits import MachineLimits
from bench.results.messages import LimitsMeasured
from engine import probe
from engine.machine import host
from kernels.cache import atomic_file, cache_dir
from kernels.errors import KernelscopeError

VERSION = 11  # of the probes


def limits(device: str, threads: int | None = None, again: bool = True) -> MachineLimits:
    """What "cpu" or "cuda" reaches on this machine, as far as was ever seen: measured now (half a second),
    and what is in the cache where that is more. again: also where the cache has it. Raises UnavailableError
    and KernelError where a GPU cannot be probed."""
    path, on = _kept_in(device, threads or host.physical_cores())
    held = known(device, threads)
    if held is not None and not again:
        return held
    reached = probe.cpu(threads or host.physical_cores()) if device == "cpu" else probe.cuda()
    made = MachineLimits(
        device=device,
        bytes_per_s=reached.bytes_per_s,
        flops_per_s=reached.flops_per_s,
        copied_by=reached.copied_by,
        multiplied_by=reached.multiplied_by,
        measured_on=on,
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        matrix_flops_per_s=dict(reached.matrix_flops_per_s),
        matrix_by=reached.matrix_by,
        matrix_missing=reached.matrix_missing,
        cache_nbytes=reached.cache_nbytes,
        cache_bytes_per_s=reached.cache_bytes_per_s,
        nearest_nbytes=reached.nearest_nbytes,
    )
    if held is not None:  # a busy machine reaches less than it could: the most that was seen counts
        made = msgspec.structs.replace(
            made,
            bytes_per_s=max(made.bytes_per_s, held.bytes_per_s),
            flops_per_s=max(made.flops_per_s, held.flops_per_s),
            cache_bytes_per_s=max(made.cache_bytes_per_s, held.cache_bytes_per_s),
            matrix_flops_per_s={
                precision: max(rate, held.matrix_flops_per_s.get(precision, 0.0))
                for precision, rate in made.matrix_flops_per_s.items()
            },
        )
    with contextlib.suppress(OSError), atomic_file(path) as temporary:
        temporary.write_bytes(msgspec.json.encode(made))
    return made


def tell(reporter: Reporter, device: str, threads: int | None, again: bool = True) -> MachineLimits | None:
    """As `limits`, and said to the parent; None, with a line in its log, where they cannot be measured."""
    try:
        found = limits(device, threads, again)
    except KernelscopeError as error:
        reporter.warn(f"the machine's limits are not known: {error}")
        return None
    reporter.say(LimitsMeasured(limits=found))
    return found


def known(device: str, threads: int | None = None) -> MachineLimits | None:
    """What the cache has of this machine; None where it was never measured."""
    path, _ = _kept_in(device, threads or host.physical_cores())
    with contextlib.suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(path.read_bytes(), type=MachineLimits)
    return None


def _kept_in(device: str, threads: int) -> tuple[Path, str]:
    """The file in the cache, and the machine in words."""
    found = environment.collect()
    if device == "cpu":
        on = f"{found.machine}, {found.cpu}, {threads} threads, NumPy {found.packages.get('numpy', '')}"
    else:
        on = f"{found.machine}, {found.gpu} {found.gpu_uuid}, driver {found.driver}"
    key = hashlib.sha256(f"{VERSION} {device} {on}".encode()).hexdigest()[:24]
    return cache_dir() / "limits" / f"{device}-{key}.json", on
