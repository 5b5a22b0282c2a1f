"""The floor line: the least time of a GPU's arithmetic, where it is known, and nothing where it is not."""

from dataclasses import dataclass

import msgspec

from bench.results.records import Case, Environment, Job, Measurement, ModelInfo, Run
from bench.run.nvml import Gpu
from bench.views.charts import comparison_charts as charts
from bench.views.charts.builders import FLOOR as LABEL


def _run(rate: float, flops: int) -> Run:
    return Run(
        job=Job(models=("m",), backends=("engine-cuda", "engine-cpu")),
        cases=(),
        environment=Environment(gpu_fp32_flops_per_s=rate),
        models=(ModelInfo(name="m", flops_per_image=flops),),
    )


def _measured(backend: str, batch: int) -> Measurement:
    case = Case(model="m", backend=backend, precision="fp32", batch=batch)
    return Measurement(case=case, disposition="ok", samples_ns=(1e6, 1.1e6, 1e6), rounds=(0,))


def _floors(run: Run, measurements: list[Measurement]) -> list[tuple[float, float]]:
    chart = next(c for c in charts.charts([(run, measurements)]) if c.name.endswith("op-time"))
    return [(p.x, p.y) for s in chart.panels[0].series if s.label == LABEL for p in s.points]


def test_operations_over_the_rate_at_the_batches_that_a_gpu_ran() -> None:
    measurements = [_measured("engine-cuda", 1), _measured("engine-cuda", 4), _measured("engine-cpu", 8)]
    assert _floors(_run(2e10, 10**6), measurements) == [(1.0, 5e-5), (4.0, 2e-4)]


def test_nothing_far_below_every_time() -> None:
    measurements = [_measured("engine-cuda", 1), _measured("engine-cuda", 4)]  # 1 ms each
    assert _floors(_run(1e11, 10**6), measurements) == [(4.0, 4e-5)]


def test_nothing_where_it_is_not_known() -> None:
    assert _floors(_run(0.0, 10**6), [_measured("engine-cuda", 1)]) == []
    assert _floors(_run(2e10, 0), [_measured("engine-cuda", 1)]) == []
    assert _floors(_run(2e10, 10**6), [_measured("engine-cpu", 1)]) == []


def test_a_run_of_before_still_loads() -> None:
    old = msgspec.json.decode(b'{"gpu": "NVIDIA H200"}', type=Environment)
    assert old.gpu_fp32_flops_per_s == 0.0


@dataclass
class _Nvml:
    """Just what the rate asks for."""

    cores: int = 16896
    NVML_CLOCK_SM = 1
    NVMLError = RuntimeError

    def __getattr__(self, name: str):
        if name == "nvmlDeviceGetNumGpuCores":
            return lambda handle: self.cores
        if name == "nvmlDeviceGetMaxClockInfo":
            return lambda handle, clock: 1980
        return lambda *_: None


def test_cores_at_their_highest_clock() -> None:
    assert Gpu(_Nvml(), None).fp32_flops_per_s == 2 * 16896 * 1980e6
    assert Gpu(_Nvml(cores=0), None).fp32_flops_per_s == 0.0
