"""An NVIDIA GPU as NVML reports it: clocks, power, temperature, why it slows down. Starts no CUDA.

pynvml (nvidia-ml-py) is imported when needed; a value that it cannot read on a GPU is None.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# Bits of nvmlDeviceGetCurrentClocksEventReasons (nvml.h), those that say the device was held back.
REASONS = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x10: "sync boost",
    0x20: "thermal slowdown (software)",
    0x40: "thermal slowdown (hardware)",
    0x80: "power brake",
}
THERMAL = frozenset({REASONS[0x08], REASONS[0x20], REASONS[0x40]})


@dataclass(frozen=True)
class Reading:
    """The GPU at one moment."""

    sm_clock_mhz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    reasons: tuple[str, ...] = ()
    memory_used_nbytes: int | None = None


class Gpu:
    """One GPU. `first` finds the one that CUDA takes by default; None where there is none to be seen."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle
        self.name = str(self._ask(nvml.nvmlDeviceGetName) or "")
        self.uuid = str(self._ask(nvml.nvmlDeviceGetUUID) or "")
        self.default_clock_mhz = self._default_clock()

    @classmethod
    def first(cls, uuid: str = "") -> Gpu | None:
        """The GPU of that UUID, else the first that CUDA_VISIBLE_DEVICES leaves."""
        nvml = _nvml()
        if nvml is None:
            return None
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
        wanted = uuid or visible
        try:
            if wanted.isdigit():
                return cls(nvml, nvml.nvmlDeviceGetHandleByIndex(int(wanted)))
            if wanted.startswith(("GPU-", "MIG-")):
                return cls(nvml, nvml.nvmlDeviceGetHandleByUUID(wanted))
        except nvml.NVMLError:
            return None
        return None

    def read(self) -> Reading:
        """All values now; takes about 0.1 ms."""
        nvml = self._nvml
        power = self._ask(nvml.nvmlDeviceGetPowerUsage)
        memory = self._ask(nvml.nvmlDeviceGetMemoryInfo)
        bits = int(self._ask(getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)) or 0)
        return Reading(
            sm_clock_mhz=_number(self._ask(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_SM)),
            power_w=None if power is None else power / 1000,
            temperature_c=_number(self._ask(nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU)),
            reasons=tuple(words for bit, words in REASONS.items() if bits & bit),
            memory_used_nbytes=None if memory is None else int(memory.used),
        )

    @property
    def busy(self) -> float | None:
        """The share of the last moments (a sixth of a second to one second) in which any kernel ran."""
        rates = self._ask(getattr(self._nvml, "nvmlDeviceGetUtilizationRates", None))
        return None if rates is None else float(rates.gpu) / 100

    def users(self, since_us: int) -> tuple[dict[int, float], int]:
        """Which processes ran kernels since then, by number: the highest share of a moment that each had the
        cores for; and until when this is known (microseconds, of NVML's clock; 0: as long ago as it keeps).
        Empty where NVML does not tell."""
        found: dict[int, float] = {}
        ask = getattr(self._nvml, "nvmlDeviceGetProcessUtilization", None)
        for sample in self._ask(ask, since_us) or ():
            found[sample.pid] = max(found.get(sample.pid, 0.0), sample.smUtil / 100)
            since_us = max(since_us, sample.timeStamp)
        return found, since_us

    @property
    def fp32_flops_per_s(self) -> float:
        """Operations a second of all cores at their highest clock; a multiply-add counts as two. 0 where NVML
        does not say."""
        cores = _number(self._ask(getattr(self._nvml, "nvmlDeviceGetNumGpuCores", None)))
        clock_mhz = _number(self._ask(self._nvml.nvmlDeviceGetMaxClockInfo, self._nvml.NVML_CLOCK_SM))
        return 2 * cores * clock_mhz * 1e6 if cores and clock_mhz else 0.0

    def _default_clock(self) -> float | None:
        """The clock that applications get unless someone set another; the highest where NVML won't say."""
        nvml = self._nvml
        for ask in (nvml.nvmlDeviceGetDefaultApplicationsClock, nvml.nvmlDeviceGetMaxClockInfo):
            clock = _number(self._ask(ask, nvml.NVML_CLOCK_SM))
            if clock:
                return clock
        return None

    def _ask(self, function: Callable[..., Any] | None, *arguments: Any) -> Any:
        if function is None:
            return None
        try:
            return function(self._handle, *arguments)
        except self._nvml.NVMLError:
            return None


def versions() -> tuple[str, str]:
    """(driver, newest CUDA that the driver speaks), "" where not known."""
    nvml = _nvml()
    if nvml is None:
        return "", ""
    driver = cuda = ""
    with contextlib.suppress(nvml.NVMLError):
        driver = str(nvml.nvmlSystemGetDriverVersion())
    with contextlib.suppress(nvml.NVMLError):
        number = int(nvml.nvmlSystemGetCudaDriverVersion())
        cuda = f"{number // 1000}.{number % 1000 // 10}"
    return driver, cuda


def _nvml() -> Any:
    """pynvml, initialised (NVML counts; once more does no harm), or None."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
