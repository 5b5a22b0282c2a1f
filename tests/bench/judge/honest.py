"""Rungs that are right, on shapes drawn anew: the judge must accuse none.

    python -m tests.bench.judge.honest --count 500 [--device cpu] [--seed 1] [--jobs 4] [--state FILE]

Every rung of the registry that this device runs takes its turn, on shapes drawn for its operator (strides,
padding, groups, dilation, odd sizes, batches; for a rung that takes some alone, those nearest to what was
drawn), each through the whole judge: the first time on all small shapes of its operator, later on those that
say most. Prints each accusation with its shape and seed, and the counts; exit code 1 where there is one.

--jobs: processes that judge side by side; what they take is not told then, and nobody is accused for it.
--state: a file that keeps what was judged, a line each, and from which the same command goes on.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import multiprocessing
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from bench import judge
from bench.measure.answers.samples import small_shapes
from engine.machine import driver as cuda_driver
from engine.machine import host
from kernels import launch, nvrtc, registry
from kernels.errors import KernelError, UnavailableError, UnsupportedError
from kernels.ops import OPS, Params, sized
from kernels.ops.conv import Conv
from kernels.ops.conv_pool import ConvPool
from kernels.ops.pool import Pool
from kernels.registry import Rung
from tests.kernels.drawn import DRAWN

TRIES = 40  # shapes that are drawn for one that a rung takes
Capability = tuple[int, int] | None


@dataclass(frozen=True)
class Judged:
    """A rung on a shape, and what the judge said of it ("" where it was right)."""

    rung: Rung
    params: Params
    seed: int
    said: str

    @property
    def line(self) -> str:
        """As a state file has it."""
        told = [self.seed, self.rung.device, self.rung.op, self.rung.name, repr(self.params), self.said]
        return json.dumps(told)


Turn = tuple[Rung, Params, int]


def judged(
    count: int,
    device: str = "cpu",
    first: int = 1,
    jobs: int = 1,
    state: Path | None = None,
    kept: slice = slice(None),
) -> Iterator[Judged]:
    """So many of them, in turn; the same ones for the same first seed. jobs, state: see the module; kept:
    which of them are judged."""
    known = _known(state)
    wanted = list(turns(count, device, first))[kept]
    left: list[tuple[Turn, bool]] = []
    seen: set[Rung] = set()
    for rung, params, number in wanted:
        if (line := Judged(rung, params, number, "").line) in known:
            yield Judged(rung, params, number, known[line])
        else:
            left.append(((rung, params, number), rung in seen))
        seen.add(rung)
    if device == "cuda":
        _compile_ahead(left)
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(state.open("a", encoding="utf-8")) if state is not None else None
        if file is not None and file.tell():
            file.write("\n")  # behind a line that was not written to its end
        for one in _each(left, jobs, stack):
            if file is not None:
                file.write(one.line + "\n")
                file.flush()
            yield one


def _each(left: Sequence[tuple[Turn, bool]], jobs: int, stack: contextlib.ExitStack) -> Iterator[Judged]:
    asked = [
        (rung.device, rung.op, rung.name, params, number, quick) for (rung, params, number), quick in left
    ]
    told: Iterator[str] = itertools.starmap(_judged, asked)
    if jobs > 1 and asked:
        pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"))
        stack.callback(pool.shutdown, cancel_futures=True)
        told = pool.map(_judged, *zip(*asked, strict=True))
    for ((rung, params, number), _), said in zip(left, told, strict=True):
        yield Judged(rung, params, number, said)


def _judged(device: str, op: str, name: str, params: Params, number: int, quick: bool) -> str:
    return _said(registry.find(device, op, name), params, number, quick)


def _known(state: Path | None) -> dict[str, str]:
    """What a state file has: by the line of what was judged, without what was said, what was said."""
    found = {}
    if state is not None and state.exists():
        for line in state.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(ValueError):  # one that was not written to its end
                *what, said = json.loads(line)
                found[json.dumps([*what, ""])] = said
    return found


def _compile_ahead(left: Sequence[tuple[Turn, bool]]) -> None:
    """What the compiler takes is most of what a CUDA rung takes: side by side, on all cores."""
    gpu = cuda_driver.device()
    assert gpu is not None
    wanted: list[tuple[Rung, Any]] = []
    for (rung, params, _), quick in left:
        shapes = [*(shape.params for shape in small_shapes(rung, params, quick)), params]
        fit = [p for p in shapes if rung.refusal(p, gpu.capability) is None]
        wanted += [(rung, launch.launch(p, rung).defines) for p in fit if launch.refusal(p, rung) is None]
    arch = "sm_{}{}".format(*gpu.capability)
    nvrtc.compile_ahead(wanted, arch, host.physical_cores(), lambda done, of: None)


def turns(count: int, device: str, first: int) -> Iterator[Turn]:
    """Which rung is judged on which shape, and by which seed."""
    found = cuda_driver.device() if device == "cuda" else None
    have = found.capability if found else None
    rungs = {op: registry.rungs(device, op) for op in OPS}
    every = sum(map(len, rungs.values()))
    shapes = {op: cycle(_drawn(op, TRIES + 3 * count * len(rungs[op]) // every, first)) for op in OPS}
    in_turn = cycle(rung for op in OPS for rung in rungs[op])
    unfit: set[Rung] = set()
    for number in range(count):
        while True:
            rung = next(in_turn)
            if params := _fitting(rung, shapes[rung.op], have):
                break
            unfit.add(rung)
            if len(unfit) == every:
                raise KernelError(f"no rung of {device} takes any of the shapes drawn")
        yield rung, params, first + number


def _said(rung: Rung, params: Params, number: int, quick: bool) -> str:
    try:
        with judge.examine(rung, params, rung.precision, seed=number, quick=quick) as trial:
            failure = trial.check_new("after timing")
            if failure is not None:
                return f"{failure.finding.fault}: {failure.finding.reason} (on {failure.finding.params})"
            if told := trial.renewal.told:
                print(f"{rung.label}, seed {number}, {params.words}: {told}", file=sys.stderr)
    except judge.Wrong as wrong:
        return f"{wrong.finding.fault}: {wrong.finding.reason} (on {wrong.finding.params})"
    except (UnsupportedError, UnavailableError):  # a shape that it refuses; a compiler that is not there
        return ""
    return ""


def _fitting(rung: Rung, shapes: Iterator[Params], have: Capability) -> Params | None:
    for params in islice(shapes, TRIES):
        suited = _suited(rung, params)
        if suited is None or rung.refusal(suited, have) is not None:
            continue
        if rung.device != "cuda" or launch.refusal(suited, rung) is None:
            return suited
    return None


def _drawn(op: str, count: int, number: int) -> list[Params]:
    """Shapes by the strategies that hold our kernels against ONNX Runtime as well."""
    found: list[Params] = []

    @seed(number)
    @settings(max_examples=min(count, 400), database=None, phases=(Phase.generate,), deadline=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(DRAWN[op])
    def collect(p: Params) -> None:
        found.append(p)

    collect()
    return found


# ------------------------------------------------------------------------------- what a rung's needs ask for


def _suited(rung: Rung, p: Params) -> Params | None:
    """The params with what the rung's header asks for; None where that cannot be."""
    if isinstance(p, ConvPool):
        conv = _windowed(rung, p.conv)
        pool = replace(p.pool, n=conv.n, c=conv.m, h=conv.out_h, w=conv.out_w)
        kinds = rung.needs.get("kind", [pool.kind])
        pool = replace(pool, kind=pool.kind if pool.kind in kinds else kinds[0])
        if (pool.kh - 1) * pool.dilation_h >= pool.h or (pool.kw - 1) * pool.dilation_w >= pool.w:
            return None
        return ConvPool(conv, sized(pool))
    if isinstance(p, Conv):
        return _windowed(rung, p)
    changed: dict[str, Any] = {}
    for key, value in rung.needs.items():
        if key in ("kind", "mode", "activation") and (getattr(p, key) or "none") not in value:
            changed[key] = None if value[0] == "none" else value[0]
        elif isinstance(value, bool):
            changed[key] = value
        elif key.endswith("_max"):
            changed[key[:-4]] = min(value, getattr(p, key[:-4], value))
        elif key.endswith("_min"):
            changed[key[:-4]] = max(value, getattr(p, key[:-4], value))
    if isinstance(p, Pool) and (side := rung.needs.get("side_by_side")):
        changed |= {"kw": side, "stride_w": side, "dilation_w": 1, "pad_left": 0, "pad_right": 0,
                    "w": p.out_w * side}  # fmt: skip
    fields = set(type(p).__dataclass_fields__)
    suited = replace(p, **{key: value for key, value in changed.items() if key in fields})
    for key, by in rung.needs.get("multiple_of", {}).items():
        suited = replace(suited, **{key: -(-getattr(suited, key) // by) * by})
    return sized(suited) if isinstance(suited, Pool) and suited != p else suited


_EXACT: dict[str, Callable[[Any], dict[str, Any]]] = {
    "kernel": lambda k: {"kh": k, "kw": k},
    "stride": lambda s: {"stride_h": s, "stride_w": s},
    "dilation": lambda d: {"dilation_h": d, "dilation_w": d},
    "group": lambda g: {"group": g},
    "batch": lambda n: {"n": n},
    "bias": lambda b: {"bias": b},
    "pad": lambda b: dict.fromkeys(("pad_top", "pad_left", "pad_bottom", "pad_right"), b),
}


def _windowed(rung: Rung, p: Conv) -> Conv:
    changed: dict[str, Any] = {}
    for key, value in rung.needs.items():
        changed |= _EXACT[key](value) if key in _EXACT else {}
    if rung.needs.get("depthwise"):
        p = replace(p, c=max(2, p.group), m=p.m // p.group * max(2, p.group), group=max(2, p.group))
    p = replace(p, **changed)
    if p.c % p.group or p.m % p.group:
        p = replace(p, c=p.c * p.group, m=p.m * p.group)
    for key, by in rung.needs.get("multiple_of", {}).items():
        p = replace(p, **{key: -(-getattr(p, key) // by) * by})
    p = replace(p, m=max(p.m, rung.needs.get("m_min", 1)), kh=min(p.kh, rung.needs.get("kernel_max", p.kh)),
                kw=min(p.kw, rung.needs.get("kernel_max", p.kw)))  # fmt: skip
    least_h = (p.kh - 1) * p.dilation_h + 1 - p.pad_top - p.pad_bottom
    least_w = (p.kw - 1) * p.dilation_w + 1 - p.pad_left - p.pad_right
    return sized(replace(p, h=max(p.h, least_h), w=max(p.w, least_w)))


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Right rungs on shapes drawn anew: how many the judge accuses."
    )
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--device", choices=sorted(registry.SUFFIX), default="cpu")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--state", type=Path, metavar="FILE")
    given_ = parser.parse_args()
    if given_.count < 1:
        parser.error(f"--count {given_.count} tries nothing; 1 or more works")
    if given_.device == "cuda" and (reason := cuda_driver.unavailable()):
        print(f"no rung of CUDA can be judged here: {reason}", file=sys.stderr)
        return 2
    counts: Counter[str] = Counter()
    accused = 0
    for one in judged(given_.count, given_.device, given_.seed, given_.jobs, given_.state):
        counts[one.rung.label] += 1
        if one.said:
            accused += 1
            print(
                f"{one.rung.label}, seed {one.seed}, {one.params.words}: {one.said}\n  {one.params!r}",
                flush=True,
            )
    fewest, most = min(counts.values()), max(counts.values())
    print(
        f"seed {given_.seed}: {accused} of {given_.count} accused; {len(counts)} rungs, each on {fewest} to "
        f"{most} shapes of its own and on the small ones of its operator each time"
    )
    return 1 if accused else 0


if __name__ == "__main__":
    sys.exit(main())
