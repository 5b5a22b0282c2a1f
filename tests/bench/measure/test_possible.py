"""A time that no machine can have is no result, and one that Winograd's way or a cache explains is."""

from __future__ import annotations

import msgspec
import pytest

from bench.measure import possible
from bench.measure.ladder import runner
from bench.questions import ladder_plan as plan
from bench.results import doubt
from bench.results.ladder_records import RungCase, RungMeasurement
from bench.results.ladder_rows import rows
from bench.results.machine_limits import MachineLimits
from bench.results.messages import Measured, Start
from bench.results.records import Case, Layer, Measurement
from bench.results.rows import FAILURES
from bench.views.tables.comparison_tables import layer_table
from engine import probe
from kernels.ops import Params, sized
from kernels.ops.conv import Conv
from kernels.ops.conv3d import Conv3d
from kernels.ops.conv_pool import ConvPool
from kernels.ops.conv_transpose import ConvTranspose
from kernels.ops.gemm import Gemm
from kernels.ops.pool import Pool
from kernels.ops.unary import Unary

GPU = MachineLimits(
    device="cuda", bytes_per_s=4e12, flops_per_s=6e13, copied_by="", multiplied_by="", measured_on="",
    measured_at="", matrix_flops_per_s={"tf32": 3e14, "fp16": 6e14}, cache_nbytes=50 << 20,
)  # fmt: skip
CPU = msgspec.structs.replace(
    GPU, device="cpu", bytes_per_s=2e10, flops_per_s=1e11, matrix_flops_per_s={}, cache_nbytes=8 << 20
)
CACHED_GPU = msgspec.structs.replace(GPU, cache_bytes_per_s=7e12)
CACHED_CPU = msgspec.structs.replace(CPU, cache_bytes_per_s=2e11, nearest_nbytes=96 << 10)


def measured(median_ns: float, rung: str = "it") -> RungMeasurement:
    return RungMeasurement(
        case=RungCase(rung=rung), disposition="ok", samples_ns=(median_ns,) * 5, rounds=(0,) * 5
    )


def disposition(params: object, median_ns: float, limits: MachineLimits | None, cold: bool = False) -> str:
    work = possible.of_params(params, method="direct")  # type: ignore[arg-type]
    return possible.held(measured(median_ns), work, limits, cold).disposition


CONV = sized(Conv(64, 256, 56, 56, 256, 3, 3, 0, 0, 1, 1, 1, 1, 1, 1))  # 237 GFLOP, 231 of them no padding


@pytest.mark.parametrize(
    ("params", "median_ns", "limits", "cold", "expected"),
    [
        # 800 MB of which 50 MiB lie in the cache: 187 µs at the rate measured.
        (Unary("relu", 100_000_000), 160_000, GPU, False, "invalid"),
        (Unary("relu", 100_000_000), 175_000, GPU, False, "ok"),
        # All of it in the cache: nothing is claimed, but where the cache is cold.
        (Unary("relu", 5_000_000), 100, GPU, False, "ok"),
        (Unary("relu", 5_000_000), 100, GPU, True, "invalid"),
        # A window of one in four pixels reads a sixteenth.
        (sized(Pool("max", 64, 256, 112, 112, 1, 1, 0, 0, 4, 4)), 20_000, GPU, False, "ok"),
        (Gemm(4096, 4096, 4096), 1_950_000, GPU, False, "invalid"),
        (Gemm(4096, 4096, 4096), 2_200_000, GPU, False, "ok"),
        (Gemm(512, 512, 512), 2_300_000, CPU, False, "invalid"),
        (Gemm(512, 512, 512), 2_500_000, CPU, False, "ok"),
        (Gemm(4096, 4096, 4096), 1, None, False, "ok"),
        (Unary("relu", 100_000_000), 1, msgspec.structs.replace(GPU, cache_nbytes=0), False, "ok"),
        # What a cache holds, at the cache's rate: on a GPU the larger of 20 MB read and 20 MB written.
        (Unary("relu", 5_000_000), 2_400, CACHED_GPU, False, "invalid"),
        (Unary("relu", 5_000_000), 2_700, CACHED_GPU, False, "ok"),
        # On a CPU both, without what may lie in the first-level caches.
        (Unary("relu", 100_000), 3_000, CACHED_CPU, False, "invalid"),
        (Unary("relu", 100_000), 3_300, CACHED_CPU, False, "ok"),
        (Unary("relu", 12_000), 1, CACHED_CPU, False, "ok"),
    ],
)
def test_only_what_cannot_be_is_invalid(
    params: object, median_ns: float, limits: MachineLimits | None, cold: bool, expected: str
) -> None:
    assert disposition(params, median_ns, limits, cold) == expected


@pytest.mark.parametrize(
    ("params", "method", "precision", "ms", "expected"),
    [
        # A direct convolution counts what it multiplies: 231 GFLOP at 60 TFLOP/s are 3.85 ms.
        (CONV, "direct", "fp32", 3.4, "invalid"),
        (CONV, "direct", "fp32", 3.6, "ok"),
        # Winograd's tiles of 6 × 6 do with a fifth of it, tiles of spectra with a sixth.
        (CONV, "winograd", "fp32", 0.8, "ok"),
        (CONV, "winograd", "fp32", 0.6, "invalid"),
        (CONV, "fft", "fp32", 0.6, "ok"),
        # Whose method nobody knows, as of a library, is held to the fewest, on any unit.
        (CONV, "", "fp32", 0.15, "ok"),
        (CONV, "", "fp32", 0.1, "invalid"),
        # Three products of tensor cores make one.
        (CONV, "split", "fp32-tc", 0.8, "ok"),
        (CONV, "split", "fp32-tc", 0.6, "invalid"),
        (CONV, "direct", "fp16", 0.24, "ok"),
        # Where strides leave nothing to share Winograd's way is none.
        (sized(Conv(64, 256, 56, 56, 256, 3, 3, 0, 0, 2, 2)), "winograd", "fp32", 0.4, "invalid"),
        (Gemm(4096, 4096, 4096), "strassen", "fp32", 1.0, "ok"),
        (Gemm(4096, 4096, 4096), "direct", "fp32", 1.0, "invalid"),
    ],
)
def test_multiplications_count_by_the_declared_method(
    params: Params, method: str, precision: str, ms: float, expected: str
) -> None:
    work = possible.of_params(params, precision, method)
    found = possible.held(measured(ms * 1e6), work, GPU)
    assert found.disposition == expected
    assert (method == "direct" and expected == "invalid") == ("the header says so" in found.reason)


def test_padding_is_not_multiplied() -> None:
    padded = sized(Conv(1, 8, 7, 7, 8, 3, 3, 0, 0, 1, 1, 1, 1, 1, 1))
    assert padded.least_flops("direct") == pytest.approx(padded.flops * (19 / 21) ** 2)
    seen = ConvPool(padded, Pool("max", 1, 8, 7, 7, 2, 2, 2, 2, 3, 3))
    assert 0 < seen.least_flops("direct") < padded.least_flops("direct") * (4 / 7) ** 2
    volume = Conv3d(1, 8, (7, 7, 7), 8, (3, 3, 3), (7, 7, 7), pad=(1, 1, 1))
    assert volume.least_flops("direct") == pytest.approx(volume.flops * (19 / 21) ** 3)
    spread = ConvTranspose(1, 8, 7, 7, 8, 3, 3, 7, 7, pad_top=1, pad_left=1)
    assert spread.least_flops("direct") == pytest.approx(spread.flops * (19 / 21) ** 2)


def test_what_may_be_too_fast_is_in_doubt_and_what_surely_is_is_invalid() -> None:
    work = possible.of_params(Gemm(512, 512, 512), "fp32", "direct")  # 2.68 ms on this machine
    spread = msgspec.structs.replace(
        measured(0), samples_ns=tuple(1e6 * x for x in (1.2, 3.9, 1.9, 2.6, 2.2)), rounds=(0, 1, 2, 3, 4)
    )
    found = possible.held(spread, work, CPU)
    assert found.disposition == "ok"
    assert any("may be faster than this machine can be" in warning for warning in found.validity.warnings)
    assert possible.held(measured(2.2e6), work, CPU).disposition == "invalid"


def test_of_a_whole_model_nothing_is_claimed_of_the_caches() -> None:
    work = possible.Work(1 << 20, 0, surely=False)
    assert possible.least_s(work, CACHED_GPU)[0] == 0.0


def test_what_lies_in_a_cache_is_copied_faster_than_memory() -> None:
    reached = probe.cpu(1)
    if not reached.nearest_nbytes:
        pytest.skip("the system does not tell the caches' sizes")
    assert 0 < reached.nearest_nbytes < reached.cache_nbytes
    assert reached.cache_bytes_per_s > 0


def test_an_invalid_time_says_why_and_is_compared_with_nothing() -> None:
    work = possible.of_params(Unary("relu", 100_000_000))
    found = possible.held(measured(1_000), work, GPU)
    assert found.samples_ns == ()
    assert "1 µs a pass is faster than this machine can be" in found.reason.replace("1.00", "1")
    assert "that no cache holds at 4 TB/s" in found.reason.replace("4.00", "4")
    assert "invalid" in FAILURES, "as a wrong answer has it: the exit code is no 0"
    model = Measurement(case=Case("m", "ort-cuda", "fp32", 1), disposition="ok", samples_ns=(1_000.0,))
    assert possible.held(model, work, GPU).disposition == "invalid"
    assert possible.held(model, work, None) is model


@pytest.mark.sampled(4, "long")
def test_an_invalid_rung_tops_no_ladder(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = msgspec.structs.replace(CPU, bytes_per_s=1.0, cache_nbytes=1)
    monkeypatch.setattr(runner.limits, "limits", lambda *_: slow)
    job = plan.job_of(Unary("relu", 6000), "cpu", budget_s=0.02, quick=True)
    planned = plan.plan(job)
    told: list[object] = []
    runner.LadderRunner(Start(job=job, cases=planned.cases), told.append, lambda: False).run()
    found = [said.measurement for said in told if isinstance(said, Measured)]
    assert len(found) == len(planned.cases)
    # Some rungs are for other functions.
    ran = [m.disposition for m in found if m.disposition != "unsupported"]
    assert len(ran) > 1
    assert set(ran) == {"invalid"}
    shown = rows(msgspec.structs.replace(planned, limits={"cpu": slow}), found)
    assert all(row.time is None and row.speedup is None and row.gain is None for row in shown)


def test_a_whole_net_is_held_to_what_its_model_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = msgspec.structs.replace(CPU, bytes_per_s=1.0, cache_nbytes=1)
    monkeypatch.setattr(runner.limits, "limits", lambda *_: slow)
    step, _ = plan.node_of("lenet5-digits", "net", "0", 1, "cpu")
    job = plan.job_of(
        step.params, "cpu", model="lenet5-digits", node=step.nodes[0], batch=1, rungs=("numpy_call_a_step",),
        budget_s=0.02, quick=True, instances=1, threads=1,
    )  # fmt: skip
    told: list[object] = []
    cases = plan.plan(job).cases
    runner.LadderRunner(Start(job=job, cases=cases), told.append, lambda: False).run()
    found = [said.measurement for said in told if isinstance(said, Measured)]
    assert {m.case.key: m.disposition for m in found} == dict.fromkeys(
        ("numpy_call_a_step", "reference"), "invalid"
    )


H100 = msgspec.structs.replace(GPU, bytes_per_s=2.8e12, cache_bytes_per_s=5.5e12)
FC7 = 4096 * 4096


def layer(nbytes: int, us: float, **more: object) -> Layer:
    return Layer(
        nodes=("fc7",), op_type="Gemm", output="fc7", shape=(1, 4096), flops=2 * FC7, nbytes=nbytes,
        time_ns=us * 1e3, clock="events", **more,  # type: ignore[arg-type]
    )  # fmt: skip


def flagged(one: Layer, limits: MachineLimits | None = H100) -> str:
    of = Measurement(case=Case("m", "engine-cuda", "fp16", 1), disposition="ok", layers=(one,))
    return possible.layers(of, limits).layers[0].beyond


def test_a_rate_beyond_the_memory_is_told_from_the_cache_where_a_cache_explains_it() -> None:
    """AlexNet's fc7 in fp16: 33.5 MB, which lie in an L2 cache of 50 MiB."""
    assert flagged(layer(2 * FC7, 12.0)) == "", "the memory gives them in that time"
    assert flagged(layer(2 * FC7, 7.8)) == "cache"
    assert flagged(layer(4 * FC7, 7.8)) == "impossible", "counted as float32, 8.6 TB/s"
    # fc6 has no room there: 2.5 times what the memory gives.
    assert flagged(layer(4 * 9216 * 4096, 21.5)) == "impossible"
    assert flagged(layer(2 * 9216 * 4096, 26.0)) == ""


def test_nothing_is_said_of_a_rate_where_nothing_is_known() -> None:
    assert flagged(layer(4 * FC7, 0.1), None) == ""
    assert flagged(layer(4 * FC7, 0.1), msgspec.structs.replace(H100, cache_nbytes=0)) == ""
    assert flagged(layer(0, 0.1)) == ""
    assert flagged(layer(4 * FC7, 0.1, unread=4 * FC7)) == "", "what no window reaches need not come"
    share = msgspec.structs.replace(layer(4 * FC7, 0.1), clock="stamps")
    assert flagged(share) == "", "its share of a kernel's time is not when its bytes came"


def test_an_impossible_rate_is_marked_in_the_table() -> None:
    layers = tuple(layer(nbytes, 7.8, beyond=beyond) for nbytes, beyond in (
        (4 * FC7, "impossible"), (2 * FC7, "cache"), (0, ""),
    ))  # fmt: skip
    of = Measurement(case=Case("m", "engine-cuda", "fp16", 1), disposition="ok", layers=layers)
    table = layer_table([of])
    rate = next(column for column in table.columns if column.name == "gb_per_s")
    assert [rate.doubted(row) for row in table.rows] == [(doubt.IMPOSSIBLE,), (), ()]
    assert [rate.of(row) is None for row in table.rows] == [False, False, True], (
        "what is not known is not shown"
    )
    told = next(column for column in table.columns if column.name == "beyond_memory")
    assert [told.of(row) for row in table.rows] == ["impossible", "cache", None]


def test_a_rung_counts_its_own_bytes_and_an_old_record_those_of_float32() -> None:
    job = plan.job_of(Gemm(m=1, n=4096, k=4096, trans_b=True), "cpu")
    ladder = msgspec.structs.replace(plan.plan(job), limits={"cpu": H100})
    assert ladder.least("fp32") == ladder.nbytes > ladder.least("fp32-tc") > ladder.least("tf32") > 2 * FC7
    own = msgspec.structs.replace(measured(7_800.0, "own"), nbytes=2 * FC7)
    wrong = msgspec.structs.replace(measured(7_800.0, "wrong"), nbytes=4 * FC7 + 9 * 10**7)
    unknown = msgspec.structs.replace(measured(7_800.0, "unknown"), nbytes=0)
    old = measured(7_800.0, "old")
    found = {row.name: row for row in rows(ladder, [own, wrong, unknown, old])}
    assert found["own"].bytes_per_s == pytest.approx(2 * FC7 / 7.8e-6)
    assert found["own"].beyond == "cache"
    assert doubt.IMPOSSIBLE not in found["own"].doubts
    assert doubt.IMPOSSIBLE in found["wrong"].doubts
    assert found["unknown"].bytes_per_s is None
    assert found["old"].bytes_per_s == pytest.approx(ladder.nbytes / 7.8e-6)
    assert msgspec.json.decode(msgspec.json.encode(old), type=RungMeasurement).nbytes is None
