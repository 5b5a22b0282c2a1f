"""Telemetry: readings go to the contender whose turn it is, and a device held back is said in words."""

import os
import subprocess
import sys
import time
import types

import pytest

from bench.measure.telemetry import Sampler, held_back, thin
from bench.run import nvml
from bench.run.nvml import Reading


class FakeNvml(types.ModuleType):
    """As much of pynvml as is used; what a GPU cannot tell raises, as NVML does."""

    NVML_CLOCK_SM = 1
    NVML_TEMPERATURE_GPU = 0

    class NVMLError(Exception):
        pass

    def __init__(self, clock=1900, reasons=0):
        super().__init__("pynvml")
        self.clock = clock
        self.reasons = reasons
        self.asked = None

    def nvmlInit(self):
        pass

    def nvmlDeviceGetHandleByIndex(self, index):
        if index > 3:
            raise self.NVMLError("no such GPU")
        self.asked = index
        return index

    def nvmlDeviceGetHandleByUUID(self, uuid):
        self.asked = uuid
        return uuid

    def nvmlDeviceGetName(self, handle):
        return "Fake H100"

    def nvmlDeviceGetUUID(self, handle):
        return "GPU-fake"

    def nvmlDeviceGetDefaultApplicationsClock(self, handle, kind):
        raise self.NVMLError("not supported")

    def nvmlDeviceGetMaxClockInfo(self, handle, kind):
        return 1980

    def nvmlDeviceGetPowerUsage(self, handle):
        return 350_500

    def nvmlDeviceGetMemoryInfo(self, handle):
        return types.SimpleNamespace(used=3 << 30)

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle):
        return self.reasons

    def nvmlDeviceGetClockInfo(self, handle, kind):
        return self.clock

    def nvmlDeviceGetTemperature(self, handle, kind):
        raise self.NVMLError("not supported")

    def nvmlSystemGetDriverVersion(self):
        return "580.65"

    def nvmlSystemGetCudaDriverVersion(self):
        return 13000


@pytest.fixture
def gpu(monkeypatch):
    fake = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return fake


def wait_for(condition):
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, "the sampler took no reading"
        time.sleep(0.01)


def test_readings_belong_to_the_contender_whose_turn_it_is(gpu):
    with Sampler({"ours": "cuda", "host": "cpu"}, period_s=0.005) as sampler:
        sampler.turn("ours")
        wait_for(lambda: len(sampler.result("ours").power_w) >= 3)
        sampler.turn("host")
        wait_for(lambda: sampler.result("host").cpu_percent is not None)
    ours, host = sampler.result("ours"), sampler.result("host")
    assert ours.device == "Fake H100"
    assert set(ours.sm_clock_mhz) == {1900.0}
    assert set(ours.power_w) == {350.5}
    assert ours.temperature_c == ()
    assert ours.memory_used_nbytes == 3 << 30
    assert host.device == "cpu"
    assert host.power_w == ()
    assert host.memory_used_nbytes is not None


def test_without_nvml_a_comparison_still_has_telemetry_of_the_host(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with Sampler({"ours": "cuda"}, period_s=0.005) as sampler:
        sampler.turn("ours")
        wait_for(lambda: sampler.result("ours").cpu_percent is not None)
        assert sampler.throttled("ours") == ""
    assert sampler.result("ours").sm_clock_mhz == ()
    assert nvml.versions() == ("", "")


def test_a_slow_clock_is_noticed_once_for_its_turn(gpu):
    gpu.clock = 900
    with Sampler({"ours": "cuda"}, period_s=0.005) as sampler:
        sampler.turn("ours")
        wait_for(lambda: len(sampler.result("ours").sm_clock_mhz) >= 2)
        assert "900 MHz, under 75% of its 1980 MHz" in sampler.throttled("ours")


@pytest.mark.parametrize(
    ("readings", "words"),
    [
        ([Reading(sm_clock_mhz=1900.0)] * 3, ""),
        ([Reading(sm_clock_mhz=1900.0)] * 2 + [Reading(sm_clock_mhz=300.0)], ""),
        ([Reading(sm_clock_mhz=1400.0)] * 3, "under 75%"),
        ([Reading(sm_clock_mhz=1900.0, reasons=(nvml.REASONS[0x40],))], "thermal slowdown"),
        ([Reading(sm_clock_mhz=1900.0, reasons=(nvml.REASONS[0x04],))], ""),
        ([], ""),
    ],
)
def test_held_back(readings, words):
    told = held_back(readings, 1980.0)
    assert words in told
    assert bool(told) == bool(words)


def test_throttle_reasons_are_kept_in_words(gpu):
    gpu.reasons = 0x04 | 0x20 | 0x01
    reading = nvml.Gpu.first().read()
    assert reading.reasons == ("power cap", "thermal slowdown (software)")


def test_the_gpu_is_the_one_cuda_would_take(gpu, monkeypatch):
    assert nvml.Gpu.first().uuid == "GPU-fake"
    assert gpu.asked == 0
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    nvml.Gpu.first()
    assert gpu.asked == 2
    nvml.Gpu.first("GPU-other")
    assert gpu.asked == "GPU-other"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "9")
    assert nvml.Gpu.first() is None
    assert nvml.versions() == ("580.65", "13.0")


def test_thinning_keeps_both_ends():
    values = list(range(1001))
    kept = thin(values)
    assert len(kept) == 200
    assert (kept[0], kept[-1]) == (0, 1000)
    assert thin([1.0, 2.0]) == (1.0, 2.0)


def test_other_programs_on_the_gpu_are_named(gpu, monkeypatch):
    """Where NVML numbers processes as this system does; idle ones, and ours, are nobody's matter."""
    own = os.getpid()
    seen = {own: 90, 1: 40, 2_000_000_000: 12, 3: 5}
    asked = []

    def utilization(handle, since_us):
        asked.append(since_us)
        if len(asked) == 1:
            return [types.SimpleNamespace(pid=77, smUtil=99, timeStamp=500)]  # before anything was timed
        return [types.SimpleNamespace(pid=p, smUtil=u, timeStamp=500 + len(asked)) for p, u in seen.items()]

    def told() -> str:
        asked.clear()
        with Sampler({"ours": "cuda", "host": "cpu"}, period_s=0.002) as sampler:
            sampler.turn("ours")
            until = time.monotonic() + 10
            while len(asked) < 3 and time.monotonic() < until:
                time.sleep(0.005)
        assert sampler.others("host") == ""
        return sampler.others("ours")

    monkeypatch.setattr(gpu, "nvmlDeviceGetProcessUtilization", utilization, raising=False)
    sentence = told()
    assert sentence.startswith("other programs used the GPU meanwhile: ")
    assert "process 1 (40% of it at most), process 2000000000 (12% of it at most)" in sentence
    assert not {"process 3", "77"} & set(sentence.replace(" (", ", ").split(", "))
    assert asked[1:3] == [500, 502], "what was known was asked again"
    del seen[own]  # as in a container whose processes have other numbers
    assert told() == ""
    monkeypatch.delattr(gpu, "nvmlDeviceGetProcessUtilization")
    with Sampler({"ours": "cuda"}) as sampler:
        assert sampler.others("ours") == ""


BUSY = """
import cupy
x = cupy.ones((4096, 4096), "f")
print(flush=True)
while True:
    x @ x
    cupy.cuda.Device().synchronize()
"""


@pytest.mark.gpu
@pytest.mark.real_gpu
def test_a_program_beside_ours_on_a_gpu_is_seen():
    import cupy

    x = cupy.ones((4096, 4096), "f")
    with subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with Sampler({"ours": "cuda"}) as sampler:
            sampler.turn("ours")
            until = time.monotonic() + 4
            while time.monotonic() < until:
                x @ x
                cupy.cuda.Device().synchronize()
        other.kill()
    gpu = nvml.Gpu.first()
    assert gpu is not None
    if os.getpid() not in gpu.users(0)[0]:
        assert sampler.others("ours") == ""
        pytest.skip("NVML numbers processes otherwise than this system, or does not tell of them")
    assert f"process {other.pid}" in sampler.others("ours")
