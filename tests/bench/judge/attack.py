"""The whole corpus of kernels that cheat against the judge, as a user meets it: in ladders.

    python -m tests.bench.judge.attack [--device cpu] [--only NAME,…] [--out FILE] [--markdown FILE]

Each cheat runs in a ladder with the rung whose time is that of the full work; some that do nothing to others
share one. A cheat is let through where it is called right and its file does not allow that, or where it is
shown with less than LEAST of that time, or where the rung beside it came to harm. Exit status: 1 where one is
let through, or becomes something else than its file says, or where a right rung is accused (--honest).
`--resume FILE` goes on with what `--out` has written (what was said of right rungs is beside it, in a file
that ends in `.honest`); `--seed N --count N` takes so many, at least one of each family.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
from rich.console import Console
from rich.table import Table

from bench.questions import ladder_plan as plan
from bench.results.ladder_records import RungMeasurement
from bench.run import client
from bench.run.kinds.ladder import KIND as LADDER
from bench.words import units
from engine.machine import driver as cuda_driver
from kernels import registry
from kernels.errors import InputError
from tests.bench.judge import corpus, honest
from tests.bench.judge.corpus import Cheat

LEAST = 0.8  # of the full work's time: what is shown below it is not the work's
TOGETHER = {"cpu": 6, "cuda": 16}  # in a ladder, of those that do nothing to others
TIMEOUT_S = 30.0
MARK = "KERNELSCOPE_ATTACK"  # by which a process that is left behind is known


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of a cheat. shown_ns: its time, where it has one; full_ns: that of the full work, taken in
    the same ladder. harmed: what became of the rung beside it, where that is not right. left: processes that
    were still there when all had ended."""

    name: str
    device: str
    family: str
    expected: tuple[str, ...]
    disposition: str
    reason: str = ""
    shown_ns: float = 0.0
    full_ns: float = 0.0
    harmed: str = ""
    left: int = 0

    @property
    def share(self) -> float:
        return self.shown_ns / self.full_ns if self.shown_ns and self.full_ns else 0.0

    @property
    def through(self) -> str:
        """In which way it is let through, "" where it is not."""
        if self.harmed:
            return f"the rung beside it: {self.harmed}"
        if self.disposition != "ok":
            return ""
        if "ok" not in self.expected:
            return "is called right"
        return f"is shown with {self.share:.0%} of the full work's time" if self.short else ""

    @property
    def short(self) -> bool:
        return self.disposition == "ok" and 0 < self.share < LEAST

    @property
    def unexpected(self) -> bool:
        return not self.through and self.disposition not in self.expected

    @property
    def words(self) -> str:
        if self.through or self.disposition == "ok":
            return self.through or "right, with the time of the full work"
        return self.disposition.replace("_", " ")


# ------------------------------------------------------------------------------------------------- running


def attacked(
    cheats: Sequence[Cheat],
    folder: Path,
    *,
    together: int = TOGETHER["cpu"],
    instances: int = 2,
    quick: bool = True,
) -> Iterator[Outcome]:
    """What becomes of each, in groups that share a ladder. Of a group whose common rung comes to harm each is
    run again on its own, to tell whose doing it was; and so is one whose time is short, once more, as the
    machine may have been busy when the other's was taken."""
    for group in grouped(cheats, together):
        found = _laddered(group, folder, instances, quick)
        for cheat, one in zip(group, found, strict=True):
            again = one.short or (one.harmed and len(group) > 1)
            yield from _laddered([cheat], folder, instances, quick) if again else [one]


def grouped(cheats: Sequence[Cheat], together: int) -> list[list[Cheat]]:
    """Those of the same work, so many at a time; some alone."""
    groups: list[list[Cheat]] = []
    open_: dict[object, list[Cheat]] = {}
    for cheat in cheats:
        key = (cheat.device, cheat.params, cheat.beside, cheat.cold, cheat.seconds)
        if cheat.alone or len(open_.get(key, ())) in (0, together):
            groups.append([cheat])
            if not cheat.alone:
                open_[key] = groups[-1]
        else:
            open_[key].append(cheat)
    return groups


def _laddered(group: Sequence[Cheat], folder: Path, instances: int, quick: bool) -> list[Outcome]:
    first = group[0]
    names = [cheat.name for cheat in group if cheat.name != first.beside]
    job = plan.job_of(
        first.params, first.device, rungs=(first.beside, *names), budget_s=first.seconds, quick=quick,
        kernel_dirs=(str(corpus.FOLDER / first.device),), threads=1, timeout_s=TIMEOUT_S, instances=instances,
        l2="cold" if first.cold else "warm",
    )  # fmt: skip
    with _marked() as left, tempfile.TemporaryDirectory(dir=folder) as place:
        planned = plan.plan(job)
        kept = LADDER.create(Path(place) / "ladder", planned)
        try:
            client.run(job, planned.cases, kept)
        except InputError as error:  # one of them has changed the run's own files, which ends it
            return [
                Outcome(one.name, one.device, one.family, one.expected, "failed", str(error)) for one in group
            ]
        found = {measured.case.rung: measured for measured in kept.measurements()}
    beside = found[first.beside]
    harmed = "" if beside.disposition == "ok" else f"{beside.disposition} ({beside.reason})"
    return [_outcome(cheat, found[cheat.name], beside, harmed, left()) for cheat in group]


def _outcome(
    cheat: Cheat, measured: RungMeasurement, beside: RungMeasurement, harmed: str, left: int
) -> Outcome:
    # What others take from the machine makes both longer. So the time of the full work is a low one; where
    # the cheat itself may have made it longer, it is the median.
    quantile = 0.5 if cheat.alone else 0.25
    shown, full = (
        float(np.quantile(m.samples_ns, q)) if m.samples_ns else 0.0
        for m, q in ((measured, 0.5), (beside, quantile))
    )
    return Outcome(
        cheat.name, cheat.device, cheat.family, cheat.expected, measured.disposition, measured.reason,
        shown, full, harmed=harmed, left=left,
    )  # fmt: skip


@contextlib.contextmanager
def _marked() -> Iterator[Callable[[], int]]:
    """Within, everything that is started is known by a mark; afterwards what is left of it is ended. Yields
    what tells how many there were."""
    mark, counted = secrets.token_hex(8), [0]
    before = os.environ.get(MARK)
    os.environ[MARK] = mark
    try:
        yield lambda: counted[0]
    finally:
        if before is None:
            del os.environ[MARK]
        else:
            os.environ[MARK] = before
        counted[0] = _swept(f"{MARK}={mark}".encode())


def _swept(mark: bytes) -> int:
    """End what has this in its environment; how many there were."""
    ended = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if int(folder.name) != os.getpid() and mark in (folder / "environ").read_bytes().split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)
                ended += 1
        except OSError:  # it has ended, or is another user's
            continue
    return ended


def sample(cheats: Sequence[Cheat], count: int, seed: int) -> list[Cheat]:
    """So many, at least one of each family, drawn by the seed; in their order."""
    drawn = random.Random(seed)
    families = corpus.of_each_family(cheats)
    taken = {drawn.choice(of).name for of in families.values()}
    others = [cheat.name for cheat in cheats if cheat.name not in taken]
    taken |= set(drawn.sample(others, max(0, min(len(others), count - len(taken)))))
    return [cheat for cheat in cheats if cheat.name in taken]


# ------------------------------------------------------------------------------------------------- telling


def shown(outcomes: Sequence[Outcome]) -> Table:
    table = Table("cheat", "family", "expected", "what became of it", "shown", "full work")
    for one in outcomes:
        style = "red" if one.through else "yellow" if one.unexpected else ""
        table.add_row(*_cells(one), style=style)
    return table


def _cells(one: Outcome) -> tuple[str, ...]:
    times = [units.duration(ns) if ns else "" for ns in (one.shown_ns, one.full_ns)]
    return one.name, one.family, ", ".join(one.expected), one.words, *times


def counts(outcomes: Sequence[Outcome]) -> str:
    through = [one.name for one in outcomes if one.through]
    other = [one.name for one in outcomes if one.unexpected]
    told = f"{len(outcomes)} cheats: {len(through)} let through{_named(through)}"
    return told + (
        f"; {len(other)} became something else than their files say{_named(other)}" if other else ""
    )


def _named(names: Sequence[str]) -> str:
    return f" ({', '.join(names)})" if names else ""


def page(outcomes: Sequence[Outcome], accused: str, command: str, machine: str) -> str:
    """The results as Markdown."""
    by: dict[str, list[Outcome]] = {}
    for one in outcomes:
        by.setdefault(one.family, []).append(one)
    lines = [
        "# Kernels that cheat, against the judge", "", f"`{command}`", "",
        f"- {machine}", f"- {counts(outcomes)}", *([f"- {accused}"] if accused else []), "",
        "| kind | what such a kernel does | cheats | incorrect, crashed, failed or timed out | invalid | "
        "right, with the time of the full work | let through |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    for family, ones in [*by.items(), ("all", list(outcomes))]:
        let = [one for one in ones if one.through]
        ok = [one for one in ones if one.disposition == "ok" and not one.through]
        invalid = [one for one in ones if one.disposition == "invalid" and not one.through]
        rest = len(ones) - len(let) - len(ok) - len(invalid)
        does = corpus.FAMILIES.get(family, "")
        numbers = (len(ones), rest, len(invalid), len(ok), len(let))
        lines.append(f"| {family} | {does} | {' | '.join(map(str, numbers))} |")
    lines += ["", "| cheat | kind | expected | what became of it | shown | full work | the judge's words |",
              "| --- | --- | --- | --- | ---: | ---: | --- |"]  # fmt: skip
    for one in outcomes:
        reason = one.reason.replace(f"{corpus.FOLDER.parents[3]}/", "").replace("|", "\\|")
        reason = re.sub(r"'/[^']*'", "'…'", reason)  # of this machine
        words = " ".join(reason.split())[:160]
        lines.append(f"| {' | '.join((*_cells(one), words))} |")
    return "\n".join(lines) + "\n"


# ---------------------------------------------------------------------------------------- the command


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.judge.attack", description=__doc__)
    parser.add_argument("--device", choices=sorted(registry.SUFFIX), default=_default())
    parser.add_argument("--only", default="", metavar="NAME,…", help="these, or all of a family")
    parser.add_argument("--seed", type=int, default=None, metavar="N", help="of the sample that is drawn")
    parser.add_argument("--count", type=int, default=None, metavar="N", help="how many; without it, all")
    parser.add_argument("--together", type=int, default=None, metavar="N", help="in one ladder")
    parser.add_argument("--instances", type=int, default=2, metavar="N")
    parser.add_argument("--honest", type=int, default=0, metavar="N", help="and so many right rungs")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="right rungs at once")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write what became of each, as JSON")
    parser.add_argument("--resume", type=Path, metavar="FILE", help="go on with this file")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    if given.device == "cuda" and (reason := cuda_driver.unavailable()):
        parser.error(f"there is no GPU here: {reason}")
    wanted = _wanted(parser, given)
    out = given.out or given.resume
    done = _done(given.resume)
    left = [cheat for cheat in wanted if cheat.name not in done]
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        together = given.together or TOGETHER[given.device]
        for one in attacked(left, Path(folder), together=together, instances=given.instances):
            done[one.name] = one
            print(f"{len(done)}/{len(wanted)} {one.name}: {one.words}", file=sys.stderr, flush=True)
            if out:
                out.write_bytes(msgspec.json.format(msgspec.json.encode([*done.values()])))
    outcomes = [done[cheat.name] for cheat in wanted]
    Console(width=160).print(shown(outcomes))
    print(f"{counts(outcomes)}; {time.monotonic() - started:.0f} s")
    accused, told = 0, ""
    if given.honest:
        state = out.with_suffix(".honest") if out else None
        judged = list(honest.judged(given.honest, given.device, given.seed or 1, given.jobs, state))
        accused = sum(bool(one.said) for one in judged)
        told = f"{len(judged)} right rungs on shapes drawn anew: {accused} accused"
        for one in judged:
            if one.said:
                print(f"{one.rung.label}, seed {one.seed}, {one.params.words}: {one.said}")
        print(told)
    if given.markdown:
        command = "python -m tests.bench.judge.attack " + " ".join(arguments or sys.argv[1:])
        given.markdown.write_text(page(outcomes, told, command.strip(), _machine(given.device)))
    return 1 if accused or any(one.through or one.unexpected for one in outcomes) else 0


def _default() -> str:
    return "cpu" if cuda_driver.unavailable() else "cuda"


def _wanted(parser: argparse.ArgumentParser, given: argparse.Namespace) -> list[Cheat]:
    every = corpus.planted(given.device)
    if given.only:
        asked = given.only.split(",")
        known = {cheat.name for cheat in every} | {cheat.family for cheat in every}
        if unknown := [name for name in asked if name not in known]:
            parser.error(f"no cheat and no family {unknown[0]!r} of {given.device}")
        every = tuple(cheat for cheat in every if cheat.name in asked or cheat.family in asked)
    if given.count is None:
        return list(every)
    seed = secrets.randbelow(1 << 31) if given.seed is None else given.seed
    print(f"drawn by --seed {seed}", file=sys.stderr)
    return sample(every, given.count, seed)


def _done(file: Path | None) -> dict[str, Outcome]:
    if file is None or not file.exists():
        return {}
    return {one.name: one for one in msgspec.json.decode(file.read_bytes(), type=list[Outcome])}


def _machine(device: str) -> str:
    from bench.measure import environment

    told = environment.collect()
    return f"{told.gpu if device == 'cuda' else told.cpu}, {told.os}, Python {told.python}"


if __name__ == "__main__":
    sys.exit(main())
