"""`selfcheck`: backends against themselves, where the intervals of the ratio have to hold 1."""

from __future__ import annotations

import contextlib
import math
import os
import shlex
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.commands.given import Given, command
from bench.run import options
from bench.words import called
from bench.words.exits import CANCELLED
from bench.words.option import arguments, usual
from kernels.errors import InputError, KernelscopeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import RenderableType

    from bench.measure.selfcheck import Selfcheck, SelfcheckSummary, SelfComparison
    from bench.results.records import Environment
    from bench.results.stats import Verdict
    from bench.views.tables.table import Column, Table

    # A case's names and what its comparisons came to.
    _Line = tuple[tuple[str, str, str], SelfcheckSummary]

MAIN = Path(__file__).resolve().parents[2] / "main.py"
# Set for the process that measures a model's file: whether what it finds outlives it.
APART, _LOST = "KERNELSCOPE_SELFCHECK_APART", "lost"
LAST_S = 5.0  # that it may take to end after Ctrl-C


@command(options.SELFCHECK, "comparison")
def selfcheck(
    given: Given,
    times: int = 40,
    instances: int = 5,
    slower: tuple[float, ...] = (1.0,),
    busy: tuple[int, ...] = (0,),
    whole: bool = False,
    sample: float = 4.0,
    turn: float = 0.0,
    out: Path | None = None,
    resume: Path | None = None,
    rejudge: tuple[Path, ...] = (),
    on: tuple[str, ...] = (),
    format: str = "table",
) -> int:
    """Compare backends with themselves: is the judge right?

    It is done as `compare` compares them with each other, and the true ratio is 1.
    Exit code 0: the 95 % intervals miss the ratio of 1 no more often than chance explains; 1: they do; 130:
    cancelled.
    """
    import msgspec

    from bench.measure import environment
    from bench.measure import selfcheck as check
    from bench.results.records import Job

    if rejudge:
        given.refuse_others({"rejudge"}, "--rejudge takes what its files hold")
        _rejudge(rejudge)
        return 0
    if resume is not None:
        given.refuse_others(
            {"resume", "times", "on", "format"},
            "--resume goes on with the settings that the check was started with",
        )
        held = check.held_in(resume)
        if "times" in given.names:
            held = msgspec.structs.replace(held, times=times)
        return _run(held, resume, format, on)
    if out is not None and out.exists():
        raise InputError(f"{out} is there already; go on with it by --resume, or name another file")
    held = check.Selfcheck(
        job=Job(**usual(options.SELFCHECK) | given.lasting | given.fields),
        times=times,
        instances=instances,
        slower=slower,
        busy=busy,
        whole=whole,
        sample_ms=sample,
        turn_ms=turn,
        environment=environment.collect(),
    )
    return _run(held, out, format, on)


def _rejudge(paths: Sequence[Path]) -> None:
    from bench.measure.selfcheck import again, held_in

    comparisons = [one for path in paths for one in held_in(path).comparisons]
    print("\n".join(again.lines(list(again.judged(comparisons)))))


def _run(held: Selfcheck, path: Path | None, output: str, on: Sequence[str] = ()) -> int:
    """Make the comparisons that are missing, keep and show all of them. on: the place where they are made
    (none: here). The exit code."""
    import msgspec

    from bench.measure import selfcheck as check
    from bench.questions import model_questions
    from bench.run.progress import callback
    from bench.views.tables.table import to_json
    from bench.words import orders
    from bench.words.terminal import console

    job, progress = held.job, callback()
    found: Iterator[SelfComparison] = iter(())
    # One that is complete is shown on any machine.
    if len(held.comparisons) < held.times:
        if on:
            machine, found = _elsewhere(held, on)
            held = msgspec.structs.replace(held, environment=machine)
        else:
            planned = check.plan(job, progress)
            if model_questions.received(job.models) and APART not in os.environ:
                return _apart(held, path, output)
            found = check.missing(
                held, planned, progress, lambda why: print(f"left out: {why}", file=sys.stderr)
            )
    cancelled = False
    try:
        for comparison in found:
            held = msgspec.structs.replace(held, comparisons=(*held.comparisons, comparison))
            if path is not None:
                check.keep(path, held)
            told = f"{comparison.case.words}: {orders.WORDS[comparison.verdict]}, {comparison.ratio}"
            print(f"[{len(held.comparisons)}/{held.times}] {told}", file=sys.stderr)
    except KeyboardInterrupt:
        cancelled = True
        lasts = path is not None and os.environ.get(APART) != _LOST
        again = f": {called.CALLED} selfcheck --resume {shlex.quote(str(path))} goes on" if lasts else ""
        print(f"cancelled{again}", file=sys.stderr)
    if not held.comparisons:
        return CANCELLED
    came_to = check.summary(held.comparisons)
    if output == "json":
        sys.stdout.write(to_json(held))
        print(sentence(came_to), file=sys.stderr)
    elif output == "markdown":
        sys.stdout.write(page(held))
    else:
        console().print(table(held.comparisons))
        print(sentence(came_to))
    if cancelled:
        return CANCELLED
    return 0 if came_to.passed else 1


def _elsewhere(held: Selfcheck, on: Sequence[str]) -> tuple[Environment, Iterator[SelfComparison]]:
    """What another machine is, and the comparisons as they are made there. Raises KernelscopeError."""
    import msgspec

    from bench.measure import selfcheck as check
    from bench.results.messages import Done, Hello, Log, Progress
    from bench.run import elsewhere

    if len(on) > 1:
        raise InputError(f"a selfcheck is of one machine; name one of {', '.join(on)}")
    said = elsewhere.said(
        on[0],
        ("bench.measure.selfcheck.worker",),
        held.job,
        {check.FILE: msgspec.json.encode(held)},
        Hello | check.Compared | Log | Progress | Done,
    )

    def compared() -> Iterator[SelfComparison]:
        for message in said:
            match message:
                case check.Compared(comparison=comparison):
                    yield comparison
                case Log(level="warning" | "error", text=text):
                    print(text, file=sys.stderr)
                case Done(reason=reason) if reason:
                    raise KernelscopeError(reason)

    for message in said:
        match message:
            case Hello(environment=machine):
                return machine, compared()
            case Log(level="warning" | "error", text=text):
                print(text, file=sys.stderr)
            case Done(reason=reason):
                raise KernelscopeError(reason or f"{on[0]} made no comparison")
    raise KernelscopeError(f"{on[0]} said nothing")


def _apart(held: Selfcheck, path: Path | None, output: str) -> int:
    """The same by a process of its own: a model's file may be anybody's, and is never loaded in the
    command's. The exit code."""
    from bench.measure import selfcheck as check
    from kernels.errors import ModelError
    from kernels.processes import exit_words

    with tempfile.TemporaryDirectory() as folder:
        kept = path or Path(folder) / "selfcheck.json"
        check.keep(kept, held)
        words = [str(MAIN), "selfcheck", "--resume", str(kept), "--format", output]
        # Nothing of it is buffered: this process's own words stand in front of the other's.
        sys.stdout.flush()
        apart = {APART: _LOST if path is None else "kept"}
        process = subprocess.Popen([sys.executable, *words], env={**os.environ, **apart})
        try:
            status = process.wait()
        except KeyboardInterrupt:  # which the other has heard as well
            with contextlib.suppress(KeyboardInterrupt, subprocess.TimeoutExpired):
                status = process.wait(LAST_S)
        finally:
            process.kill()
            status = process.wait()
    if status < 0 or status not in (0, 1, 2, CANCELLED):
        raise ModelError(f"the process that measured {', '.join(held.job.models)} {exit_words(status)}")
    return status


def sentence(came_to: SelfcheckSummary) -> str:
    """What it all came to, with how sure that is."""
    from bench.measure.selfcheck import ALLOWED

    return (
        f"Of {came_to.comparisons} comparisons of a backend with itself, the interval misses the truth in "
        f"{_rate(came_to.missed, came_to.comparisons)} and the verdict is wrong in "
        f"{_rate(came_to.wrong, came_to.comparisons)}: {'passed' if came_to.passed else 'failed'}, as "
        f"{100 * ALLOWED:.0f} % of misses {'can' if came_to.passed else 'can hardly'} come to that."
    )


def _rate(hits: int, of: int) -> str:
    from bench.results import rates

    least, most = 100 * rates.at_least(hits, of), 100 * rates.at_most(hits, of)
    return f"{hits} ({100 * hits / of:.1f} %; at least {least:.1f} % and at most {most:.1f} %, each by 95 %)"


def page(held: Selfcheck) -> str:
    """All of it as a Markdown page: the machine, how it was asked for, the table, what it came to."""
    from bench.measure.selfcheck import summary
    from bench.views.sentences.footer import machine, versions
    from bench.views.tables.table import to_markdown

    return "\n".join(
        (
            f"# Backends against themselves: {held.environment.gpu or held.environment.cpu}",
            "",
            f"`{_command(held)}`",
            "",
            f"- {machine(held)}",
            f"- {versions(held)}",
            "",
            to_markdown(_table(held.comparisons)),
            sentence(summary(held.comparisons)),
            "",
        )
    )


def _command(held: Selfcheck) -> str:
    """The command that makes it."""
    words = ["selfcheck", *arguments(held.job, options.SELFCHECK)]
    return called.command_line([*words, "--times", str(held.times), "--instances", str(held.instances)])


def table(found: Sequence[SelfComparison]) -> RenderableType:
    """Verdicts by case, and all of them."""
    from bench.views.tables.grid import Grid

    made = _table(found)
    return Grid(made, wraps={column.name for column in made.columns}, airy=True, last_apart=True)


def _verdicts(verdict: Verdict, came_to: SelfcheckSummary) -> int:
    return came_to.verdicts.get(verdict, 0)


def _table(found: Sequence[SelfComparison]) -> Table[_Line]:
    """A case a row; the last is of all."""
    from bench.measure.selfcheck import summary
    from bench.results.rows import label, title
    from bench.results.stats import Verdict
    from bench.views.tables.table import Column, Table
    from bench.words import orders, units

    def count(name: str, of: Callable[[SelfcheckSummary], int], title: str = "") -> Column[_Line]:
        return Column(name, lambda line: of(line[1]), str, title=title)

    columns: list[Column[_Line]] = [
        Column("model", lambda line: line[0][0], left=True),
        Column("backend", lambda line: line[0][1], left=True),
        Column("batch", lambda line: line[0][2]),
        count("compared", lambda came_to: came_to.comparisons),
        *(count(v.lower(), partial(_verdicts, v), orders.SHORT[v]) for v in Verdict),
        count("missed", lambda came_to: came_to.missed),
        Column("largest_off", lambda line: line[1].largest_off, units.percent),
        Column(
            "half_width",
            lambda line: line[1].half_width,
            lambda width: units.percent(width) if math.isfinite(width) else "not known",
            title="interval ±",
        ),
    ]
    by_case: dict[tuple[str, str, str], list[SelfComparison]] = {}
    for comparison in found:
        case = comparison.case
        names = (title(case.model), label(case.backend, case.precision), f"{case.batch:,}")
        by_case.setdefault(names, []).append(comparison)
    lines = [(names, summary(own)) for names, own in by_case.items()]
    return Table(columns, [*lines, (("all", "", ""), summary(found))])
