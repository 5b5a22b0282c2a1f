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

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import RenderableType

    from bench.measure.selfcheck import Selfcheck, SelfcheckSummary, SelfComparison
    from bench.results.stats import Verdict
    from bench.show.table import Column, Table

    # A case's names and what its comparisons came to.
    _Line = tuple[tuple[str, str, str], SelfcheckSummary]

CANCELLED = 130
FORMATS = ("table", "json", "markdown")
MAIN = Path(__file__).resolve().parents[2] / "main.py"
# Set for the process that measures a model's file: whether what it finds outlives it.
APART, _LOST = "KERNELSCOPE_SELFCHECK_APART", "lost"
LAST_S = 5.0  # that it may take to end after Ctrl-C
# What may be said beside --resume: everything else is in its file.
_WITH_RESUME = {"resume", "times", "output"}


def selfcheck(
    context: typer.Context,
    models: list[str] | None = typer.Argument(
        None, metavar="MODEL", help="Model names or .onnx files; default: lenet5-digits."
    ),
    backend: list[str] = typer.Option(
        [], metavar="NAME", help="A backend; may be repeated. Default: all that can run here."
    ),
    batch: str = typer.Option(
        "1,16,128", metavar="N,N,…", help="Batch sizes; 1..1024 doubles from 1 to 1024."
    ),
    precision: str = typer.Option("fp32", metavar="P,P,…", help="One or more of fp32, fp32-tc, tf32, fp16."),
    times: int = typer.Option(40, metavar="N", help="Comparisons in all; the cases take turns."),
    instances: int = typer.Option(
        5,
        metavar="N",
        min=1,
        max=100,
        help="Sessions on each side, alive at the same time and timed in turn.",
    ),
    budget: float = typer.Option(15.0, metavar="S", help="The most seconds of samples on each side."),
    threads: int | None = typer.Option(None, metavar="N", help="CPU threads; default: one per core."),
    slower: str = typer.Option(
        "1",
        metavar="X,X,…",
        help="Have the one side take so many times as long: 1.05 has to be found, 2 cannot be missed.",
    ),
    busy: str = typer.Option("0", metavar="N,N,…", help="Processes that keep a core busy beside the two."),
    whole: bool = typer.Option(
        False, "--whole", help="Spend the whole budget on each side, whatever is clear before."
    ),
    sample: float = typer.Option(
        4.0, metavar="MS", min=0.1, help="Milliseconds that are timed at once on the host's clock, at least."
    ),
    turn: float = typer.Option(
        0.0, metavar="MS", min=0.0, help="Milliseconds of each turn; default: as `compare` takes them."
    ),
    l2: str = typer.Option("warm", metavar="warm|cold", help="State of the L2 cache before a pass."),
    seed: int = typer.Option(
        0, metavar="N", min=0, help="Seed of the random inputs and of the order of turns."
    ),
    out: Path | None = typer.Option(
        None, metavar="FILE", help="Write the results there as JSON, after each comparison."
    ),
    resume: Path | None = typer.Option(
        None,
        metavar="FILE",
        help="Continue such a file until all its comparisons, or --times of them, are made.",
    ),
    rejudge: list[Path] = typer.Option(
        [],
        metavar="FILE",
        help="Judge the samples of such files again, each way; may be repeated.",
    ),
    output: str = typer.Option(
        "table", "--format", metavar="table|json|markdown", help="What goes to stdout."
    ),
) -> None:
    """Compare backends with themselves: is the judge right?

    It is done as `compare` compares them with each other, and the true ratio is 1.
    Exit code 0: the 95 % intervals miss the ratio of 1 no more often than chance explains; 1: they do; 130:
    cancelled.
    """
    import msgspec

    from bench.commands import parsing
    from bench.measure import environment
    from bench.measure import selfcheck as check
    from bench.results.records import Job
    from kernels.errors import InputError

    parsing.one_of(output, FORMATS, "format")
    if times < 1:
        raise InputError(f"--times {times} compares nothing; 1 or more works, and 40 say something")
    if rejudge:
        parsing.refuse_settings(context, {"rejudge"}, "--rejudge takes what its files hold")
        return _rejudge(rejudge)
    if resume is not None:
        parsing.refuse_settings(
            context, _WITH_RESUME, "--resume goes on with the settings that the check was started with"
        )
        held = check.held_in(resume)
        if parsing.given(context, "times"):
            held = msgspec.structs.replace(held, times=times)
        raise typer.Exit(_run(held, resume, output))
    if out is not None and out.exists():
        raise InputError(f"{out} is there already; go on with it by --resume, or name another file")
    job = Job(
        models=tuple(models or ("lenet5-digits",)),
        backends=parsing.named(backend, "backend"),
        precisions=parsing.names([precision]),
        batches=parsing.integers(batch, "batch"),
        threads=threads,
        l2=parsing.one_of(l2, ("warm", "cold"), "L2 mode"),  # type: ignore[arg-type]
        budget_s=budget,
        seed=seed,
    )
    besides = parsing.integers(busy, "busy")
    if min(besides, default=0) < 0:
        raise InputError(f"--busy {busy!r} has a number below 0; write it as in 0,1,4")
    held = check.Selfcheck(
        job=job,
        times=times,
        instances=instances,
        slower=parsing.factors(slower, "slower"),
        busy=besides,
        whole=whole,
        sample_ms=sample,
        turn_ms=turn,
        environment=environment.collect(),
    )
    raise typer.Exit(_run(held, out, output))


def _rejudge(paths: Sequence[Path]) -> None:
    from bench.measure.selfcheck import again, held_in

    comparisons = [one for path in paths for one in held_in(path).comparisons]
    print("\n".join(again.lines(list(again.judged(comparisons)))))


def _run(held: Selfcheck, path: Path | None, output: str) -> int:
    """Make the comparisons that are missing, keep and show all of them. The exit code."""
    import msgspec

    from bench.commands.terminal import console
    from bench.measure import selfcheck as check
    from bench.questions import model_questions
    from bench.run.progress import callback
    from bench.show.table import to_json
    from bench.words import orders

    job, progress = held.job, callback()
    # One that is complete is shown on any machine.
    planned = check.plan(job, progress) if len(held.comparisons) < held.times else ()
    if planned and model_questions.received(job.models) and APART not in os.environ:
        return _apart(held, path, output)
    rules = check.rules(held)
    pairs = check.Contenders(job, progress, held.instances)
    cancelled = False
    try:
        for comparison in check.run(
            check.conditions(planned, held),
            held.times,
            rules,
            pairs,
            job.seed,
            held.comparisons,
            refused=lambda why: print(f"left out: {why}", file=sys.stderr),
            whole=held.whole,
        ):
            held = msgspec.structs.replace(held, comparisons=(*held.comparisons, comparison))
            if path is not None:
                check.keep(path, held)
            told = f"{comparison.case.words}: {orders.WORDS[comparison.verdict]}, {comparison.ratio}"
            print(f"[{len(held.comparisons)}/{held.times}] {told}", file=sys.stderr)
    except KeyboardInterrupt:
        cancelled = True
        lasts = path is not None and os.environ.get(APART) != _LOST
        again = f": python main.py selfcheck --resume {shlex.quote(str(path))} goes on" if lasts else ""
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


def _apart(held: Selfcheck, path: Path | None, output: str) -> int:
    """The same by a process of its own: a model's file may be anybody's, and is never loaded in the
    command's. The exit code."""
    from bench.measure import selfcheck as check
    from bench.run.exits import exit_words
    from kernels.errors import ModelError

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
    from bench.charts.footer import machine, versions
    from bench.measure.selfcheck import summary
    from bench.show.table import to_markdown

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

    job = held.job
    words = ["python", "main.py", "selfcheck", *job.models]
    for backend in job.backends:
        words += ["--backend", backend]
    from bench.kinds import options

    words += ["--batch", options.batches(job.batches), "--precision", ",".join(job.precisions)]
    words += ["--times", str(held.times), "--instances", str(held.instances)]
    return shlex.join([*words, *options.arguments(job, options.MEASURING)])


def table(found: Sequence[SelfComparison]) -> RenderableType:
    """Verdicts by case, and all of them."""
    from bench.show.grid import Grid

    made = _table(found)
    return Grid(made, wraps={column.name for column in made.columns}, airy=True, last_apart=True)


def _verdicts(verdict: Verdict, came_to: SelfcheckSummary) -> int:
    return came_to.verdicts.get(verdict, 0)


def _table(found: Sequence[SelfComparison]) -> Table[_Line]:
    """A case a row; the last is of all."""
    from bench.measure.selfcheck import summary
    from bench.results.rows import label, title
    from bench.results.stats import Verdict
    from bench.show.table import Column, Table
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
