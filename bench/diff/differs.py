"""What else is not the same in two runs: machine, driver, versions, settings, clocks, facts, kernels."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from bench.diff.records import Difference, Pair, Side
from bench.results.records import LEFT_OUT, Environment, Header, stem
from bench.results.stats import SAME_BOUND
from bench.words import units

# What tells one machine from another; the rest of an environment may change on the same.
MACHINE = ("machine", "cpu", "cores", "memory_nbytes", "gpu", "gpu_uuid")
_SHOWN = ("machine", "cpu", "cores", "gpu", "driver", "cuda", "os", "python", "kernelscope")
_WORDS = {"gpu": "GPU", "cpu": "CPU", "cuda": "CUDA", "os": "system", "kernelscope": "Kernelscope"}
# Facts that tell of how a record was kept or what was measured of the clock, and not of what was run.
_NO_FACTS = ("samples kept", LEFT_OUT, "killed by", "trigger")


def one_machine(a: Environment, b: Environment) -> bool:
    """As far as the two tell: what one does not say (a copy made to be sent leaves out the GPU's number)
    speaks for neither."""
    told = ((getattr(a, name), getattr(b, name)) for name in MACHINE)
    return all(not one or not other or one == other for one, other in told)


def environments(a: Environment, b: Environment) -> Iterator[Difference]:
    for name in _SHOWN:
        one, other = getattr(a, name), getattr(b, name)
        if one != other:
            yield Difference(_WORDS.get(name, name), str(one or ""), str(other or ""))
    if a.gpu_uuid and b.gpu_uuid and a.gpu_uuid != b.gpu_uuid:
        yield Difference("GPU's serial number", a.gpu_uuid, b.gpu_uuid)
    yield from _texts("version", a.packages, b.packages)


def jobs(a: Any, b: Any, besides: Collection[str] = ()) -> Iterator[Difference]:
    """Settings of the same name; `besides` those that only say which cases there are."""
    for field in type(a).__struct_fields__:
        one, other = getattr(a, field), getattr(b, field)
        if field not in besides and one != other:
            yield Difference(field.replace("_ns", "").replace("_", " "), _said(one), _said(other))


def models(a: Header[Any, Any], b: Header[Any, Any]) -> Iterator[Difference]:
    """SHA-256 of the files, by model."""
    ours, theirs = ({stem(model.name): model.sha256 for model in run.models} for run in (a, b))
    for name in ours:
        if ours[name] and theirs.get(name) and ours[name] != theirs[name]:
            yield Difference("the model's file", ours[name][:12], theirs[name][:12], name)


def clocks(pairs: Iterable[Pair]) -> Iterator[Difference]:
    """Of the device while it was timed: the medians over all cases that both have."""
    both = [pair for pair in pairs if pair.a is not None and pair.b is not None]
    read = [[mhz for pair in both for mhz in _side(pair, which).clock_mhz] for which in (0, 1)]
    if all(read):
        one, other = map(statistics.median, read)
        if abs(other / one - 1) > SAME_BOUND:
            yield Difference("SM clock", f"{one:,.0f} MHz", f"{other:,.0f} MHz")


def cases(pairs: Sequence[Pair]) -> Iterator[Difference]:
    """What is not the same of cases that were held against each other all the same, what they were held
    against, what sessions say they used, and which kernels ran."""
    both = [pair for pair in pairs if pair.a is not None and pair.b is not None]
    found: dict[tuple[str, str, str, str], list[Pair]] = {}
    for pair in both:
        a, b = _side(pair, 0), _side(pair, 1)
        if pair.other:
            one, _, other = pair.other.partition(" → ")
            found.setdefault(("the case", one, other, pair.who), []).append(pair)
        if a.against and b.against and a.against != b.against:
            found.setdefault(("reference", a.against, b.against, pair.who), []).append(pair)
        for what, ours, theirs in (("", a.facts, b.facts), ("kernel", a.rungs, b.rungs)):
            for name in ours.keys() & theirs.keys():
                if ours[name] != theirs[name] and name not in _NO_FACTS:
                    said = what or name.replace("_", " ")
                    of = f"{name} ({pair.who})" if what else pair.who
                    found.setdefault((said, ours[name], theirs[name], of), []).append(pair)
    known = {pair.batch for pair in both if pair.batch}
    for (what, one, other, of), where in sorted(found.items()):
        batches = {pair.batch for pair in where if pair.batch}
        at = f" at batch {units.spans(batches, known)}" if batches and batches != known else ""
        yield Difference(what, one, other, f"{of}{at}")


def _side(pair: Pair, which: int) -> Side:
    side = (pair.a, pair.b)[which]
    assert side is not None
    return side


def _texts(what: str, a: Mapping[str, str], b: Mapping[str, str]) -> Iterator[Difference]:
    for name in sorted({*a, *b}):
        if a.get(name) != b.get(name):
            yield Difference(what, a.get(name, ""), b.get(name, ""), name)


def _said(value: object) -> str:
    if value is None:
        return "default"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={_said(part)}" for key, part in value.items()) or "none"
    if isinstance(value, (tuple, list)):
        return ", ".join(map(_said, value)) or "none"
    return str(value) or "none"
