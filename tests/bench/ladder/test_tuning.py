"""`ladder --tune`: what a header may list, how it is searched, and that what was found is taken for those
params alone."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path

import pytest

from bench.ladder.measure import tuning
from bench.ladder.records import LadderJob
from engine.cuda.stages import Launches
from engine.options import Options
from engine.planning import choices, tuned_defines
from kernels import registry
from kernels.errors import KernelError
from kernels.ops.gemm import Gemm
from kernels.registry import Rung

PARAMS = Gemm(m=64, n=64, k=64)
JOB = LadderJob(op="gemm", params={}, device="cuda", tune=True)
HEADER = '/*\nop = "gemm"\nrung = 90\nname = "mine"\nidea = "Mine."\nlaunch = "gemm_tiles"\n{}\n*/\n'


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(choices, "machine", lambda device, threads: {"gpu": "a GPU"})


def rung() -> Rung:
    return registry.find("cuda", "gemm", "shared_tiles")


def timed_by(monkeypatch: pytest.MonkeyPatch, time_of) -> list[dict[str, int]]:
    """Every combination that is tried, in order, timed by a formula."""
    tried: list[dict[str, int]] = []

    def time_ns(rung, params, job, precision, defines):
        tried.append(defines)
        return time_of(defines)

    monkeypatch.setattr(tuning, "_time_ns", time_ns)
    return tried


def tune(what: Rung) -> tuned_defines.Found | None:
    tuning.tune(what, PARAMS, JOB, "fp32", lambda text, fraction: None)
    return tuned_defines.read(what, PARAMS)


def test_few_combinations_are_all_tried_and_the_fastest_right_one_is_kept(monkeypatch):
    what = replace(rung(), tune={"TILE_K": (16, 32, 64), "ROWS": (2, 4)})
    tried = timed_by(
        monkeypatch, lambda d: math.inf if d["TILE_K"] == 64 else 100 / d["TILE_K"] / d["ROWS"] * 2
    )
    found = tune(what)
    assert tried[0] == {"TILE_K": 32, "ROWS": 4}, "the header's own first"
    assert {tuple(d.values()) for d in tried} == set(itertools.product((16, 32, 64), (2, 4)))
    assert len(tried) == 6
    assert found is not None
    assert (found.defines, found.tried, found.refused) == ({"TILE_K": 32, "ROWS": 4}, 6, 2)
    assert "2 refused" in found.words


def test_what_was_found_runs_on_those_params_and_is_not_searched_again(monkeypatch):
    what = rung()
    tried = timed_by(monkeypatch, lambda d: 1000.0 + d["TILE_K"])
    found = tune(what)
    assert found is not None
    assert found.defines["TILE_K"] == min(what.tune["TILE_K"])
    made = tuned_defines.tuned(what, PARAMS)
    assert made.defines["TILE_K"] == min(what.tune["TILE_K"])
    assert made.source == what.source
    other = replace(PARAMS, k=128)
    assert tuned_defines.tuned(what, other) is what
    assert tuned_defines.tuned(replace(what, source="// another text"), PARAMS).defines == what.defines
    before = len(tried)
    tune(what)
    assert len(tried) == before


def test_a_model_s_session_takes_what_was_found_unless_it_is_told_not_to(monkeypatch):
    timed_by(monkeypatch, lambda d: 1000.0 + d["TILE_K"])
    found = tune(rung())
    assert found is not None
    made, _ = Launches(Options()).of(PARAMS, "shared_tiles")
    assert {name: made.defines[name] for name in found.defines} == found.defines
    plain, _ = Launches(Options(tuned=False)).of(PARAMS, "shared_tiles")
    assert plain.defines == rung().defines != made.defines


def test_what_is_hardly_faster_leaves_the_header_s_own(monkeypatch):
    what = replace(rung(), tune={"TILE_K": (16, 32)})
    timed_by(monkeypatch, lambda d: 100.0 if d["TILE_K"] == 32 else 99.0)
    found = tune(what)
    assert found is not None
    assert (found.defines, found.gain) == ({"TILE_K": 32}, 1.0)


def test_a_rung_that_is_wrong_as_it_is_keeps_nothing(monkeypatch):
    timed_by(monkeypatch, lambda d: math.inf)
    assert tune(rung()) is None


def test_of_many_combinations_neighbours_are_followed_to_the_fastest(monkeypatch):
    values = (1, 2, 4, 8, 16, 32)
    own = {"TILE_M": 32, "TILE_N": 32, "ROWS": 4}
    what = replace(rung(), tune=dict.fromkeys(own, values), defines={**rung().defines, **own})
    tried = timed_by(monkeypatch, lambda d: 1.0 + sum((v - 8) ** 2 for v in d.values()))
    found = tune(what)
    assert found is not None
    assert set(found.defines.values()) == {8}
    assert len(tried) <= tuning.ALL < len(values) ** 3
    assert len({tuple(d.values()) for d in tried}) == len(tried), "none twice"


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("[defines]\nROWS = 4\n[tune]\nROW = [4]", "is of no define of this header"),
        ("[defines]\nROWS = 4\n[tune]\nROWS = [2, 8]", "has to name its own 4"),
        ("[defines]\nROWS = 4\n[tune]\nROWS = [4, 4]", "each value once"),
        ("[defines]\nROWS = 4\n[tune]\nROWS = [4, -1]", "whole numbers above 0"),
        ("[defines]\nROWS = 4\n[tune]\nROWS = 4", "whole numbers above 0"),
    ],
)
def test_a_header_that_lists_what_cannot_be_is_refused(tmp_path, lines, told):
    (tmp_path / "90_mine.cu").write_text(HEADER.format(lines))
    with pytest.raises(KernelError, match=r"90_mine\.cu: tune ROWS?") as caught:
        registry.find("cuda", "gemm", "mine", [tmp_path])
    assert told in str(caught.value)


def test_only_cuda_rungs_have_something_to_tune(tmp_path):
    text = 'op = "gemm"\nrung = 90\nname = "mine"\nidea = "Mine."\n[tune]\nROWS = [4]\n'
    (tmp_path / "90_mine.py").write_text("".join(f"# {line}\n" for line in text.splitlines()))
    with pytest.raises(KernelError, match="only CUDA rungs have defines"):
        registry.find("cpu", "gemm", "mine", [tmp_path])
