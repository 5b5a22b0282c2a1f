"""Rungs that are right, on shapes drawn anew: the judge must accuse none.

    python -m tests.bench.judge.honest --count 500 [--device cpu] [--seed 1]

Every rung of the registry that this device runs takes its turn, on shapes drawn for its operator (strides,
padding, groups, dilation, odd sizes, batches; for a rung that takes some alone, those nearest to what was
drawn), each through the whole judge. Prints each accusation with its shape and seed, and the counts; exit
code 1 where there is one.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from bench import judge
from engine.machine import driver as cuda_driver
from kernels import launch, registry
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


def judged(count: int, device: str = "cpu", first: int = 1, kept: slice = slice(None)) -> Iterator[Judged]:
    """So many of them, in turn; the same ones for the same first seed. kept: which of them are judged."""
    for rung, params, number in islice(turns(count, device, first), kept.start, kept.stop, kept.step):
        yield Judged(rung, params, number, _said(rung, params, number))


def turns(count: int, device: str, first: int) -> Iterator[tuple[Rung, Params, int]]:
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


def _said(rung: Rung, params: Params, number: int) -> str:
    try:
        with judge.examine(rung, params, rung.precision, seed=number) as trial:
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
    given_ = parser.parse_args()
    if given_.count < 1:
        parser.error(f"--count {given_.count} tries nothing; 1 or more works")
    if given_.device == "cuda" and (reason := cuda_driver.unavailable()):
        print(f"no rung of CUDA can be judged here: {reason}", file=sys.stderr)
        return 2
    counts: Counter[str] = Counter()
    accused = 0
    for one in judged(given_.count, given_.device, given_.seed):
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
