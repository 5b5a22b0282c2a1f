"""`profile`: where the time of a model goes on each backend, in tables, charts and a timeline."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from bench.profile.records import CaseProfile, ProfileJob
    from bench.profile.show.columns import ProfileTable
    from bench.profile.store import ProfileFolder

RUNS = Path("runs")
CANCELLED = 130
WINDOWS = ("pass", "all", "create", "close")
TABLES = ("all", "activities", "calls", "breakdown", "cold", "process", "findings", "counters", "report")
GROUPS = ("name", "operator", "node")


@dataclass(frozen=True)
class Shown:
    """What goes to standard output."""

    format: str = "table"
    table: str = "all"
    by: str = "name"
    window: str = "pass"
    match: str = ""
    full_names: bool = False


def profile(
    context: typer.Context,
    model: str = typer.Argument("lenet5-digits", metavar="MODEL", help="Of the catalogue, or an .onnx file."),
    backend: list[str] = typer.Option(
        [], metavar="NAME,NAME", help="May be repeated; without it, all that can run here."
    ),
    batch: str = typer.Option("1", metavar="N,N,…", help="Batch sizes; 1..1024 goes by doubling."),
    precision: str = typer.Option("fp32", metavar="P", help="One of fp32, fp32-tc, tf32, fp16."),
    runs: int = typer.Option(0, metavar="K", show_default=False, help="Profiled passes; else 5."),
    report: bool = typer.Option(
        False, "--report", help="The course report's table: one pass each, time by batch and by call."
    ),
    trace: Path | None = typer.Option(None, metavar="FILE", help="Also a trace for Perfetto or Chrome."),
    counters: bool = typer.Option(
        False, "--counters", help="Also what the GPU's hardware counts, by Nsight Compute (ncu)."
    ),
    dataset: str = typer.Option("", metavar="NAME|folder:DIR|random", help="Images; else the model's own."),
    preprocess: str = typer.Option("", metavar="P", help="raw, unit (0 to 1) or MEAN,STD."),
    threads: int = typer.Option(0, metavar="N", show_default=False, help="CPU threads; else one a core."),
    rung: list[str] = typer.Option([], metavar="NODE=RUNG", help="Kernel for a node; may be repeated."),
    kernels: list[str] = typer.Option([], metavar="DIR", help="Folder of your own kernels; may be repeated."),
    budget: float = typer.Option(2.0, metavar="S", help="The most seconds of unprofiled samples a case."),
    timeout: float = typer.Option(600.0, metavar="S", help="Seconds after which a case is given up."),
    table: str = typer.Option("all", metavar="|".join(TABLES), help="Which table."),
    by: str = typer.Option("name", metavar="|".join(GROUPS), help="How kernels are put together."),
    window: str = typer.Option("pass", metavar="|".join(WINDOWS), help="Which part of the session."),
    match: str = typer.Option("", metavar="TEXT", help="Only kernels and calls whose name holds it."),
    full_names: bool = typer.Option(False, "--full-names", help="Kernels' names with templates and all."),
    load: Path | None = typer.Option(None, metavar="DIR", help="Show a profile that was made before."),
    out: Path | None = typer.Option(None, metavar="DIR", help="The folder; else a dated one in ./runs."),
    charts: str = typer.Option("png,svg,pdf", metavar="F,F,…", help="Of png, svg, pdf; or none."),
    output: str = typer.Option("table", "--format", metavar="table|csv|json|md", help="What goes to stdout."),
) -> None:
    """Profile a model's forward pass: kernels, copies, calls, gaps; and what starting cold costs.

    Each case has a process of its own: a cold start told apart, unprofiled times, then a profiled session.
    Exit code 0: all well; 1: a case failed; 2: bad input; 130: cancelled.
    """
    from bench.commands import parsing
    from bench.profile.records import ProfileJob
    from bench.show.table import FORMATS
    from kernels.errors import InputError

    shown = Shown(
        format=parsing.one_of(output, FORMATS, "format"),
        table=parsing.one_of("report" if report and table == "all" else table, TABLES, "table"),
        by=parsing.one_of(by, GROUPS, "grouping"),
        window=parsing.one_of(window, WINDOWS, "window"),
        match=match,
        full_names=full_names,
    )
    formats = parsing.formats(charts)
    if trace is not None and trace.is_dir():
        raise InputError(f"--trace {trace} is a folder: name a file in it")
    if load is not None:
        raise typer.Exit(again(load, shown, trace))
    usual = ProfileJob(model="", backends=())
    job = ProfileJob(
        model=model,
        backends=parsing.named(backend, "backend"),
        batches=parsing.integers(batch, "batch"),
        precision=precision,
        runs=runs if parsing.given(context, "runs") else 1 if report else usual.runs,
        warm_up=0 if report else usual.warm_up,
        dataset=dataset or None,
        preprocess=preprocess or None,
        threads=threads if parsing.given(context, "threads") else None,
        rungs=parsing.rungs(rung),
        kernel_dirs=tuple(str(Path(folder).expanduser().absolute()) for folder in kernels),
        budget_s=budget,
        timeout_s=timeout,
        counters=counters,
    )
    raise typer.Exit(run(job, out, shown, formats, trace))


def run(job: ProfileJob, out: Path | None, shown: Shown, formats: Sequence[str], trace: Path | None) -> int:
    """Profile a job's cases into a folder and show them. The exit code."""
    from bench.commands.compare import command_line
    from bench.profile import client as profile_client
    from bench.profile.progress import ProfileProgress
    from bench.profile.records import Profile
    from bench.profile.store import ProfileFolder
    from bench.questions import model_questions

    stamp = datetime.datetime.now().astimezone()
    job, cases = model_questions.profile(job)
    planned = Profile(
        job=job, cases=cases, command=command_line(), created_at=stamp.isoformat(timespec="seconds")
    )
    folder = ProfileFolder.create(out or _new_folder(stamp, job), planned)
    with ProfileProgress(len(cases)) as progress:
        outcome = profile_client.run(job, cases, folder, progress)
    measurements = folder.measurements()
    show(folder, measurements, shown)
    print(f"profile: {folder.path}", file=sys.stderr)
    _write(folder, measurements, formats, trace)
    if outcome.reason:
        print(outcome.reason, file=sys.stderr)
    if outcome.cancelled:
        return CANCELLED
    fine = len(measurements) == len(cases) and all(m.disposition == "ok" for m in measurements)
    return 0 if fine and not outcome.reason else 1


def again(path: Path, shown: Shown, trace: Path | None) -> int:
    """Show a profile that was made before."""
    from bench.profile.store import ProfileFolder

    folder = ProfileFolder.open(path)
    measurements = folder.measurements()
    show(folder, measurements, shown)
    _write(folder, measurements, (), trace)
    return 0 if all(m.disposition == "ok" for m in measurements) else 1


def tables_of(folder: ProfileFolder, measurements: Sequence[CaseProfile], shown: Shown) -> list[ProfileTable]:
    """The tables that were asked for, case by case those of events; none where no case went well."""
    from bench.profile.measure import counters as profile_counters
    from bench.profile.show import course as profile_course
    from bench.profile.show import findings as profile_findings
    from bench.profile.show import tables as profile_tables

    fine = [made for made in measurements if made.disposition == "ok"]
    found: list[ProfileTable] = []
    rows = []
    if not fine:
        return found
    for made in fine:
        events = folder.events(made)
        if shown.table in ("all", "activities"):
            found.append(profile_tables.activities(made, events, shown.by, shown.window, shown.match))  # type: ignore[arg-type]
        if shown.table in ("all", "calls") and events.calls:
            found.append(profile_tables.calls(made, events, shown.window, shown.match))
        if shown.table in ("all", "findings"):
            limits = folder.profile.limits.get(made.device)
            found.append(profile_findings.table(made, events, limits))
        if shown.table in ("all", "counters") and (table := profile_counters.table(made, events)).rows:
            found.append(table)
        if shown.table == "report":
            rows.append(profile_course.row(made, events))
    if shown.table == "report":
        found.append(profile_course.table(rows, folder.profile.job.runs))
    if shown.table in ("all", "breakdown", "report"):
        found.append(profile_tables.breakdown(fine, shown.window))
    if shown.table in ("all", "cold"):
        found.append(profile_tables.cold(fine, shown.table == "cold"))
    if shown.table in ("all", "process", "report"):
        found.append(profile_tables.process(fine))
    return found


def show(folder: ProfileFolder, measurements: Sequence[CaseProfile], shown: Shown) -> None:
    """The tables on standard output, and nothing else there; what went wrong, on standard error."""
    from bench.commands.terminal import console
    from bench.profile.show import output as profile_output
    from bench.profile.show import remarks as profile_remarks
    from bench.show.table import to_csv, with_headings

    found = tables_of(folder, measurements, shown)
    if shown.format == "csv":
        sys.stdout.write("\n".join(map(to_csv, found)))
    elif shown.format == "json":
        sys.stdout.write(profile_output.to_json(folder.profile, measurements, found))
    elif shown.format == "md":
        sys.stdout.write(with_headings(found))
    else:
        out = console()
        out.print(profile_output.terminal(found, not shown.full_names, out.width))
    said = [
        (made.case.words, sentence) for made in measurements for sentence in profile_remarks.remarks(made)
    ]
    for sentence in dict.fromkeys(sentence for _, sentence in said):
        cases = [words for words, other in said if other == sentence]
        every = len(cases) == len(measurements) > 1
        for words in [""] if every else [f"{case}: " for case in cases]:
            print(f"{words}{sentence}", file=sys.stderr)


def _write(
    folder: ProfileFolder, measurements: Sequence[CaseProfile], formats: Sequence[str], trace: Path | None
) -> None:
    from bench.charts import profile as profile_charts
    from bench.profile.show import draw_timeline
    from bench.profile.show import trace as profile_trace
    from bench.show import draw

    fine = [made for made in measurements if made.disposition == "ok"]
    if trace is not None and fine:
        profile_trace.write(trace, [(made, folder.events(made)) for made in fine])
        print(f"trace: {trace} (open it at ui.perfetto.dev)", file=sys.stderr)
    if formats and fine:
        made = profile_charts.charts(folder.profile, fine, folder.events)
        written = draw.write(made, folder.path / "charts", formats)
        shown = [(case, folder.events(case)) for case in fine]
        written += draw_timeline.write(folder.profile, shown, folder.path / "charts", formats)
        print(f"charts: {folder.path / 'charts'} ({len(written)} files)", file=sys.stderr)


def _new_folder(stamp: datetime.datetime, job: ProfileJob) -> Path:
    from bench.results.records import stem

    base = RUNS / f"{stamp:%Y%m%d-%H%M%S}-profile-{stem(job.model)}"
    path, number = base, 1
    while path.exists():
        number += 1
        path = base.with_name(f"{base.name}-{number}")
    return path
