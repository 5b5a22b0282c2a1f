"""`runs diff`: two runs held against each other, or one against the baseline; and `runs baseline`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from bench.words.called import CALLED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from bench.views.diff.records import Diff

RUNS = Path("runs")
baseline = typer.Typer(
    no_args_is_help=True, help="The run with which others are compared.", rich_markup_mode=None
)


def diff(
    runs: list[Path] = typer.Argument(
        metavar="[A] B", help="The run before and the run after; B alone is compared with its baseline."
    ),
    fail_on: str = typer.Option(
        "",
        metavar="slower|wrong|any",
        help="Exit code 1 if a case of B is; several by commas. any: also one with worse answers, or that A "
        "alone has.",
    ),
    bound: str = typer.Option(
        "2%",
        metavar="P%",
        help="Within this much two are as fast; slower is beyond it, with 95 % confidence.",
    ),
    output: str = typer.Option(
        "table", "--format", metavar="table|csv|json|md|junit", help="What goes to stdout."
    ),
    junit: Path | None = typer.Option(
        None, metavar="FILE.xml", help="Also write JUnit's XML, for a CI server."
    ),
    charts: str = typer.Option(
        "none", metavar="F,F,…", help="Of profiles: draw the waterfalls, as some of png, svg, pdf."
    ),
    out: Path | None = typer.Option(None, metavar="DIR", help="Where charts go; default: charts/ in B."),
    where: Path | None = typer.Option(
        None,
        "--runs",
        metavar="DIR",
        help="The folder whose baseline is meant; default: ./runs, else B's own.",
    ),
) -> None:
    """Compare two saved runs: is B faster than A?

    Also whether B is still right, what else differs, and of profiles which part made the difference.
    Cases are matched by model, backend, precision and batch size (or by rung), and compared by their
    speed-ups over the reference that ran beside them. Exit code 0: nothing that --fail-on names; 1:
    something; 2: bad input.
    """
    from bench.results.store import write_atomically
    from bench.run.options import COMPARE
    from bench.views import junit as junit_writer
    from bench.views.diff import judging, tables
    from bench.views.diff import junit as junit_xml
    from bench.views.diff.between import between
    from bench.views.show import show
    from bench.views.tables.table import FORMATS
    from bench.words.option import by_name, names, one_of
    from kernels.errors import InputError, KernelscopeError

    try:
        wanted = one_of(output, (*FORMATS, "junit"), "--format")
        gates = tuple(one_of(name, judging.FAIL_ON, "--fail-on") for name in names([fail_on]))
        formats = by_name(COMPARE, "charts").value.read([charts], "--charts")
        a, b = _two(runs, where)
        found = between(a, b, _fraction(bound))
    except KernelscopeError as error:  # a CI server reads the file: it is never one of before, nor green
        told = junit_writer.of_error(junit_xml.COMMAND, " → ".join(map(str, runs)), str(error))
        if junit is not None:
            write_atomically(junit, told.encode())
        if output == "junit":
            sys.stdout.write(told)
        raise
    failing = {change.pair.key: why for change in found.changes if (why := judging.reason(change, gates))}
    not_judged = "" if failing else judging.cannot_fail(found, gates)
    xml = junit_xml.to_xml(found, failing, gates, not_judged)
    if wanted == "junit":
        sys.stdout.write(xml)
    else:
        show(
            wanted,
            csv=lambda: [tables.cases(found)],
            output=lambda: tables.output(found, failing, gates),
            paper=lambda: _markdown(found),
            drawn=lambda: _drawn(found),
        )
    if junit is not None:
        write_atomically(junit, xml.encode())
    if formats:
        _draw(found, formats, out or b / "charts")
    for key, why in failing.items():
        words = next(change.pair.words for change in found.changes if change.pair.key == key)
        print(f"failed: {words}: {why}", file=sys.stderr)
    if failing:
        raise typer.Exit(1)
    if not_judged:
        raise InputError(not_judged)


def _two(runs: Sequence[Path], where: Path | None) -> tuple[Path, Path]:
    from bench.results import baseline as baselines
    from bench.results.summaries import summary
    from bench.run import settings
    from kernels.errors import InputError

    if len(runs) == 2:
        return runs[0], runs[1]
    if len(runs) > 2:
        raise InputError(f"two runs are held against each other, and {len(runs)} are named")
    usual = settings.runs_folder()
    places = (usual, runs[0].absolute().parent) if where is None else (where,)
    kept = baselines.anywhere(summary(runs[0]), *places)
    if kept is None:
        raise InputError(
            f"there is no baseline in {where or usual} for {runs[0]}; `{CALLED} runs baseline set RUN` "
            "keeps one, or name the run to hold it against first"
        )
    return kept, runs[0]


def _fraction(text: str) -> float:
    """ "5%", "5 %" or "0.05"."""
    from kernels.errors import InputError

    number, percent, rest = text.strip().partition("%")
    try:
        value = float(number) / (100 if percent else 1)
    except ValueError:
        value = -1.0
    if rest or not 0 < value < 1:
        raise InputError(f"--bound {text!r} is no share of a time: write it as in 5%")
    return value


def _drawn(found: Diff) -> Iterator[RenderableType]:
    from rich.text import Text

    from bench.views.diff import tables
    from bench.views.sentences import diff_sentences as sentences
    from bench.views.tables.grid import Grid, stacked, width

    for line in sentences.heading(found):
        yield Text(line, style="bold")
    for line in (*sentences.differences(found), "", sentences.verdict(found), ""):
        yield Text(line)
    table = tables.readable(found).telling()
    whole = {column.name: max(len(column.heading), width(column, table.rows)) for column in table.columns}
    spared = ("agreement", "top1", "error", "a_speedup", "b_speedup", "b_s", "a_s")
    yield Grid(table, least=whole, spared=spared)
    for line in sentences.remarks(found):
        yield Text(line, style="dim")
    if found.waterfalls:
        several = len(found.waterfalls) > 1
        yield ""
        yield stacked([tables.readable_steps(each, several) for each in found.waterfalls])


def _markdown(found: Diff) -> str:
    from bench.views.diff import tables
    from bench.views.sentences import diff_sentences as sentences
    from bench.views.tables.table import to_markdown, with_headings
    from bench.words import plain

    lines = [f"# {plain.markdown(found.b.name)} against {plain.markdown(found.a.name)}", ""]
    lines += [f"- {plain.markdown(line)}" for line in sentences.heading(found)]
    text = "\n".join(lines) + "\n\n"
    text += (
        with_headings([tables.differences(found)])
        if found.differences
        else ("".join(f"{plain.markdown(line)}\n\n" for line in sentences.differences(found)))
    )
    text += f"\n## What came of it\n\n{plain.cell(sentences.verdict(found))}\n\n"
    text += f"{to_markdown(tables.readable(found))}\n"
    text += "".join(f"- {plain.markdown(line)}\n" for line in sentences.remarks(found))
    if found.waterfalls:
        several = len(found.waterfalls) > 1
        text += "\n" + with_headings([tables.readable_steps(each, several) for each in found.waterfalls])
    return text


def _draw(found: Diff, formats: Sequence[str], folder: Path) -> None:
    from bench.results.store import write_atomically
    from bench.views.diff.waterfall import charts
    from bench.views.drawing import draw_together
    from kernels.errors import InputError

    made = charts(found)
    if not made:
        raise InputError(
            f"--charts draws where the time of profiles goes, and these are of the kind {found.kind}"
        )
    for chart, drawn in draw_together.rendered(made, formats):
        for name in formats:
            path = folder / f"{chart.name}.{name}"
            write_atomically(path, drawn[name])
            print(f"chart: {path}", file=sys.stderr)


# ------------------------------------------------------------------------------------------------- baseline

_WHERE = typer.Option(RUNS, "--runs", metavar="DIR", help="The folder of runs that it is of.")


@baseline.command("set")
def set_command(
    run: Path = typer.Argument(metavar="RUN", help="A run's, a ladder's or a profile's folder."),
    where: Path = _WHERE,
) -> None:
    """Compare further runs of these models with this one.

    `runs diff B` then means: with this baseline."""
    from bench.results import baseline as baselines

    made = baselines.keep(where, run)
    of = ", ".join(filter(None, (*made.models, made.node)))
    print(f"{run} is the baseline of every {made.kind} of {of or 'its kind'} in {where}")


@baseline.command("show")
def show_command(where: Path = _WHERE) -> None:
    """List the baselines, one of each kind of run and its models."""
    from bench.results import baseline as baselines
    from bench.results.summaries import listed
    from bench.words.terminal import console
    from kernels.errors import InputError

    kept = baselines.read(where)
    if not kept:
        raise InputError(f"there is no baseline in {where}; `{CALLED} runs baseline set RUN` keeps one")
    for path, of in kept:
        found = listed(path)
        state = "is not there any more" if found is None else found.problem or found.started
        name = f" ({found.called})" if found is not None and found.called else ""
        what = ", ".join(filter(None, (*of.models, of.node)))
        console().print(f"{of.kind} of {what}: {path}{name}, {state}", markup=False)


@baseline.command("clear")
def clear_command(
    run: Path | None = typer.Argument(None, metavar="[RUN]", help="Only where it is this run; default: all."),
    where: Path = _WHERE,
) -> None:
    """Let go of the baselines; the runs themselves stay."""
    from bench.results import baseline as baselines
    from kernels.errors import InputError

    count = baselines.clear(where, run)
    if not count:
        raise InputError(f"{run} is no baseline in {where}" if run else f"there is no baseline in {where}")
    print(f"{count} {'baseline' if count == 1 else 'baselines'} cleared")
