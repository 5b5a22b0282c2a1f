"""`ladder --tune`: what a header may list, how it is searched, and that what was found is taken for those
params alone."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from bench.measure import timing
from bench.measure.ladder import tuning
from bench.results.ladder_records import LadderJob
from engine.cuda.stages import Launches
from engine.options import Options
from engine.planning import choices, tuned_defines
from engine.planning.choices import Choice
from kernels import registry
from kernels.errors import KernelError
from kernels.ops.gemm import Gemm
from kernels.registry import Rung

PARAMS = Gemm(m=64, n=64, k=64)
JOB = LadderJob(op="gemm", params={}, device="cuda", tune=True)
QUICK = replace(
    tuning.LOOKS, first_s=0.0, final=timing.Rules(warmup_s=0.0, rewarm_s=0.0, min_s=0.001, budget_s=0.01)
)
HEADER = '/*\nop = "gemm"\nrung = 90\nname = "mine"\nidea = "Mine."\nlaunch = "gemm_tiles"\n{}\n*/\n'


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(choices, "machine", lambda device, threads: {"gpu": "a GPU"})


def rung() -> Rung:
    return registry.find("cuda", "gemm", "shared_tiles")


class Timed:
    """A trial that takes so many nanoseconds a pass."""

    def __init__(self, ns: float) -> None:
        self.ns = ns

    def time_runs(self, count: int, cold: bool = False) -> int:
        return int(count * self.ns)

    def close(self) -> None:
        pass


@dataclass
class Tuner:
    """Tunes with trials that take what a formula says, in µs; infinity: it is wrong. tried: every
    combination, in the order in which it first was."""

    time_of: Callable[[Mapping[str, Any]], float]
    tried: list[dict[str, Any]] = field(default_factory=list)

    def examine(self, rung: Rung, *_: Any, **more: Any) -> Any:
        values = {name: rung.defines[name] for name in rung.tune}
        self.tried += [] if values in self.tried else [values]
        if math.isinf(us := self.time_of(values)):
            raise KernelError("it is wrong")
        return Timed(1000 * us)

    def __call__(self, what: Rung) -> Choice[tuple[int, ...]] | None:
        tuning.tune(what, PARAMS, JOB, "fp32", lambda *_: None, self.examine, QUICK)
        return tuned_defines.read(what, PARAMS)


def test_few_combinations_are_all_tried_and_the_fastest_right_one_is_kept():
    what = replace(rung(), tune={"TILE_K": (16, 32, 64), "ROWS": (2, 4)})
    tune = Tuner(lambda d: math.inf if d["TILE_K"] == 64 else 100 / d["TILE_K"] / d["ROWS"] * 2)
    found = tune(what)
    tried = tune.tried
    assert tried[0] == {"TILE_K": 32, "ROWS": 4}, "the header's own first"
    assert {tuple(d.values()) for d in tried} == set(itertools.product((16, 32, 64), (2, 4)))
    assert len(tried) == 6
    assert found is not None
    assert found.best == (32, 4)
    words = tuned_defines.words(what, PARAMS)
    assert words == "tuned: TILE_K 32, ROWS 4, the fastest of 6 (2 refused), 1.00 × its header's"


def test_what_was_found_runs_on_those_params_and_is_not_searched_again():
    what = rung()
    tune = Tuner(lambda d: 100.0 + 10 * d["TILE_K"])
    assert tune(what) is not None
    made = tuned_defines.tuned(what, PARAMS)
    assert made.defines["TILE_K"] == min(what.tune["TILE_K"])
    assert made.source == what.source
    other = replace(PARAMS, k=128)
    assert tuned_defines.tuned(what, other) is what
    assert tuned_defines.tuned(replace(what, source="// another text"), PARAMS).defines == what.defines
    again = Tuner(tune.time_of)
    assert again(what) is not None
    assert not again.tried


def test_a_model_s_session_takes_what_was_found_unless_it_is_told_not_to():
    found = Tuner(lambda d: 100.0 + 10 * d["TILE_K"])(rung())
    assert found is not None
    made, _ = Launches(Options()).of(PARAMS, "shared_tiles")
    assert tuple(made.defines[name] for name in rung().tune) == found.best
    plain, _ = Launches(Options(tuned=False)).of(PARAMS, "shared_tiles")
    assert plain.defines == rung().defines != made.defines


def test_what_is_hardly_faster_leaves_the_header_s_own():
    what = replace(rung(), tune={"TILE_K": (16, 32)})
    found = Tuner(lambda d: 100.0 if d["TILE_K"] == 32 else 99.0)(what)
    assert found is not None
    assert found.best == (32,)
    assert tuned_defines.words(what, PARAMS).endswith("the fastest of 2, 1.00 × its header's")


def test_a_rung_that_is_wrong_as_it_is_keeps_nothing():
    assert Tuner(lambda d: math.inf)(rung()) is None
    own = rung().defines["TILE_K"]
    assert Tuner(lambda d: math.inf if d["TILE_K"] == own else 1.0)(rung()) is None


def test_a_search_that_was_ended_is_gone_on_with():
    what = replace(rung(), tune={"TILE_K": (16, 32, 64)})

    class Ended(Tuner):
        def examine(self, rung: Rung, *_: Any, **more: Any) -> Any:
            if rung.defines["TILE_K"] == 64:
                raise KeyboardInterrupt
            return super().examine(rung)

    first = Ended(lambda d: float(d["TILE_K"]))
    with pytest.raises(KeyboardInterrupt):
        first(what)
    assert tuned_defines.tuned(what, PARAMS) is what, "it is not taken before it is done"
    found = (again := Tuner(first.time_of))(what)
    assert found is not None
    assert found.best == (16,)
    assert again.tried[0] == {"TILE_K": 64}


def test_of_many_combinations_neighbours_are_followed_to_the_fastest():
    values = (1, 2, 4, 8, 16, 32)
    own = {"TILE_M": 32, "TILE_N": 32, "ROWS": 4}
    what = replace(rung(), tune=dict.fromkeys(own, values), defines={**rung().defines, **own})
    tune = Tuner(lambda d: 50.0 + sum((v - 8) ** 2 for v in d.values()))
    found, tried = tune(what), tune.tried
    assert found is not None
    assert found.best == (8, 8, 8)
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
