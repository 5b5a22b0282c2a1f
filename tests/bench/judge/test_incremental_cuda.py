"""Kernels on a GPU that compute anew only what changed: they are right and
shown with the time over new inputs."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from bench import judge
from bench.judge.trial import Trial
from engine.cuda import rung as rung_cuda
from engine.stirring import Renewable
from kernels import nvrtc, registry
from kernels.ops import Params, sized
from kernels.ops.conv import Conv
from kernels.ops.unary import Unary
from tests.bench.judge import corpus, on_the_host

PLANTED = [
    corpus.find(name, "cuda")
    for name in (
        "incremental_conv",
        "incremental_gemm",
        "gemm_honest_for_a_while",
        "gemm_honest_for_a_short_while",
        "gemm_honest_for_a_long_while",
        "gemm_honest_after_two_in_a_row",
    )
]
TIMED: tuple[Params, ...] = tuple({cheat.params: None for cheat in PLANTED})


@pytest.mark.gpu
@pytest.mark.real_gpu
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("cheat", PLANTED, ids=lambda cheat: cheat.name)
def test_an_incremental_kernel_is_right_and_timed_over_new_inputs(cheat: corpus.Cheat) -> None:
    with judge.examine(cheat.rung, cheat.params, quick=True) as trial:
        taken: list[float] = []
        for count in (1, 20, 70, 20, 20):
            taken += [trial.time_runs(count) / count for _ in range(4)]
            assert trial.spot_check("during timing", thorough=True) is None
        assert trial.check("after timing") is None
        assert trial.check_new("after timing") is None
        new_ns = statistics.median(trial.renewal.samples_ns)
        timed_ns = statistics.median(taken)
        print(f"{cheat.name}: timed {timed_ns:.0f} ns, over new inputs {new_ns:.0f} ns; "
              f"{trial.renewal.told}")  # fmt: skip
        assert trial.renewal.told or timed_ns > 0.8 * new_ns


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    "params",
    [
        *TIMED,
        # What is large says something of a clock alone, which the simulated one has not.
        *(
            pytest.param(large, marks=pytest.mark.real_gpu)
            for large in (Unary("relu", 1 << 20), Unary("tanh", 1 << 25))
        ),
    ],
    ids=lambda p: p.op,
)
def test_who_computes_is_not_told_to_be_faster(params: Params) -> None:
    with judge.examine(registry.rungs("cuda", params.op)[0], params, quick=True) as trial:
        assert isinstance(trial.session, Renewable)
        trial.renewal.settle(trial.mixing)
        assert trial.renewal.told == ""


@pytest.mark.skipif(on_the_host.COMPILER is None, reason="no compiler for the host")
@pytest.mark.parametrize(("name", "found"), [("naive", None), ("only_where_poisoned", "wrong")])
def test_answers_over_new_inputs_are_looked_at(
    name: str, found: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a kernel run on the host: what it left in the last pass over inputs that were all new."""
    hosted = on_the_host.Hosted(tmp_path)
    monkeypatch.setattr(rung_cuda, "import_cupy", lambda: hosted)
    monkeypatch.setattr(nvrtc, "compile_rung", hosted.compiled)
    monkeypatch.setattr(nvrtc, "resources", lambda *_: None)
    params = sized(Conv(8, 6, 14, 17, 8, 3, 3, 0, 0, 1, 1, 1, 1, 1, 1, group=2, bias=True, activation="relu"))
    rung = registry.find("cuda", "conv", name, [corpus.FOLDER / "cuda"])
    with Trial(rung, params) as trial:
        failure = trial.check_new("after timing")
        assert (failure.finding.fault if failure else None) == found
        if failure is None:
            assert trial.check("after timing") is None
