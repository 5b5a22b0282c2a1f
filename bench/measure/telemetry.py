"""What the device did while it was timed, sampled by a thread at 20 Hz and kept apart by contender.

In a round the contenders take turns on one device, so a reading belongs to the contender whose turn it is.
"""

from __future__ import annotations

import dataclasses
import os
import statistics
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import psutil

from bench.results.records import Telemetry
from bench.run import nvml
from bench.run.beforehand import GPU_MUCH
from engine.isolated import pool
from engine.machine.host import usable_cores
from engine.machine.load import Reading, Spent, difference, reading

PERIOD_S = 0.05
USERS_EVERY = 10  # periods; NVML itself looks no more often than every sixth of a second
KEPT = 200
# Of turns that are shorter, all together, hundredths of a second do not say who used the cores.
LEAST_S = 0.2
# A device slower than this fraction of its default clock is flagged.
CLOCK_FLOOR = 0.75


@dataclass
class _Readings:
    gpu: list[nvml.Reading] = field(default_factory=list)
    cpu_percent: list[float] = field(default_factory=list)
    resident_nbytes: int = 0
    turn_start: int = 0  # index into `gpu` where the turn in progress began
    turns: list[Spent] = field(default_factory=list)  # or parts of them


class Sampler:
    """Use as a context; `turn` says whose readings follow, `throttled` judges the turn in progress.

    devices: "cpu" or "cuda" by contender. Where NVML is missing, telemetry of a GPU stays empty.
    """

    def __init__(self, devices: dict[str, str], gpu_uuid: str = "", period_s: float = PERIOD_S) -> None:
        self._devices = devices
        self._period_s = period_s
        self._gpu = nvml.Gpu.first(gpu_uuid) if "cuda" in devices.values() else None
        self._readings = {key: _Readings() for key in devices}
        self._current = ""
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True, name="telemetry")
        self._process = psutil.Process()
        self._cores = usable_cores()  # now: while they are timed our threads may be kept on one of them
        self._users: dict[int, float] = {}  # of the GPU: processes by number, and their highest share
        self._own: set[int] = set()  # processes of ours, also those that have ended
        self._known_us = 0
        self._began: Reading | None = None  # the turn in progress, of a contender on the host

    def __enter__(self) -> Sampler:
        psutil.cpu_percent(None)  # the first answer is meaningless
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join(timeout=2)

    def turn(self, key: str, number: int = 0) -> None:
        """From now on readings belong to `key`."""
        with self._lock:
            self._current = key
            readings = self._readings[key]
            readings.turn_start = len(readings.gpu)
        self._began = self._read(key)

    def throttled(self, key: str) -> str:
        """Why the device was held back since the turn began, in words, or "". Begins the next turn."""
        now = self._read(key)
        if now is not None and self._began is not None:
            self._readings[key].turns.append(difference(self._began, now))
        self._began = now
        with self._lock:
            readings = self._readings[key]
            recent = readings.gpu[readings.turn_start :]
            readings.turn_start = len(readings.gpu)
        default = self._gpu.default_clock_mhz if self._gpu else None
        return held_back(recent, default)

    def load(self, key: str) -> dict[str, float]:
        """Who used the host's cores in all turns of a contender that is timed on its clock; {} of others, and
        where that is not known (see Measurement in bench.results.records)."""
        turns = self._readings[key].turns
        spent = sum(turns, Spent())
        if spent.wall_s < LEAST_S:
            return {}
        # Seconds of cores are counted in ticks: other programs may seem to have used less than none.
        seconds = {name: round(max(0.0, value), 6) for name, value in dataclasses.asdict(spent).items()}
        return {"cores": float(len(self._cores)), **seconds}

    def _read(self, key: str) -> Reading | None:
        return reading((os.getpid(), *pool.pids()), self._cores) if self._devices[key] == "cpu" else None

    def others(self, key: str) -> str:
        """Which other programs used the GPU while it was timed, in words; "" of contenders on the host, and
        where NVML does not tell, or numbers processes otherwise than this system, as in some containers."""
        if self._devices[key] != "cuda" or os.getpid() not in self._users:
            return ""
        told = [
            f"{_name(pid)} ({share:.0%} of it at most)"
            for pid, share in sorted(self._users.items())
            if pid not in self._own and share >= GPU_MUCH
        ]
        return f"other programs used the GPU meanwhile: {', '.join(told)}" if told else ""

    def result(self, key: str) -> Telemetry:
        """The readings of one contender, thinned to at most 200."""
        with self._lock:
            readings = self._readings[key]
            gpu, cpu = list(readings.gpu), list(readings.cpu_percent)
        on_gpu = self._devices[key] == "cuda"
        used = (
            max((r.memory_used_nbytes or 0 for r in gpu), default=0) if on_gpu else readings.resident_nbytes
        )
        return Telemetry(
            device=(self._gpu.name if self._gpu else "") if on_gpu else "cpu",
            sm_clock_mhz=_series([r.sm_clock_mhz for r in gpu]),
            power_w=_series([r.power_w for r in gpu]),
            temperature_c=_series([r.temperature_c for r in gpu]),
            throttle=tuple(dict.fromkeys(words for r in gpu for words in r.reasons)),
            cpu_percent=round(statistics.fmean(cpu), 1) if cpu else None,
            memory_used_nbytes=used or None,
        )

    def _sample(self) -> None:
        looked = time.monotonic()
        if self._gpu is not None:
            _, self._known_us = self._gpu.users(0)  # what was before is nobody's matter
        while not self._end.wait(self._period_s):
            if self._gpu is not None and time.monotonic() > looked + self._period_s * USERS_EVERY:
                looked = time.monotonic()
                found, self._known_us = self._gpu.users(self._known_us)
                self._own |= {os.getpid(), *pool.pids()}
                self._users |= {pid: max(share, self._users.get(pid, 0.0)) for pid, share in found.items()}
            with self._lock:
                key = self._current
            if not key:
                continue
            reading = self._gpu.read() if self._gpu and self._devices[key] == "cuda" else None
            cpu = psutil.cpu_percent(None)
            resident = self._process.memory_info().rss
            with self._lock:
                if key != self._current:
                    continue  # read across the change of turns: nobody's
                readings = self._readings[key]
                if reading is not None:
                    readings.gpu.append(reading)
                readings.cpu_percent.append(cpu)
                readings.resident_nbytes = max(readings.resident_nbytes, resident)


def _name(pid: int) -> str:
    try:
        return f"{psutil.Process(pid).name()}, process {pid}"
    except psutil.Error:  # another user's, or gone
        return f"process {pid}"


def held_back(readings: Sequence[nvml.Reading], default_clock_mhz: float | None) -> str:
    """Whether these readings show a device held back: a thermal reason, or a median clock under 75 % of the
    default; in words, or ""."""
    thermal = sorted({words for r in readings for words in r.reasons} & nvml.THERMAL)
    if thermal:
        return f"the GPU was held back: {', '.join(thermal)}"
    clocks = [r.sm_clock_mhz for r in readings if r.sm_clock_mhz is not None]
    if clocks and default_clock_mhz:
        clock = statistics.median(clocks)
        if clock < CLOCK_FLOOR * default_clock_mhz:
            return (
                f"the GPU ran at {clock:.0f} MHz, under {CLOCK_FLOOR:.0%} of its {default_clock_mhz:.0f} MHz"
            )
    return ""


def thin(values: Sequence[float], most: int = KEPT) -> tuple[float, ...]:
    """At most `most` of the values, evenly spread, both ends kept."""
    if len(values) <= most:
        return tuple(values)
    step = (len(values) - 1) / (most - 1)
    return tuple(values[round(i * step)] for i in range(most))


def _series(values: Sequence[float | None]) -> tuple[float, ...]:
    return thin([round(value, 2) for value in values if value is not None])
