"""`profile`: where the time of a model goes on each backend, in tables, charts and a timeline."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from bench.profile.kind import ProfileFolder
    from bench.profile.records import CaseProfile, ProfileJob
    from bench.profile.show.saved import ShownProfile

TABLES = (
    "main",
    "all",
    "activities",
    "calls",
    "breakdown",
    "cold",
    "process",
    "findings",
    "counters",
    "report",
)
GROUPS = ("name", "operator", "node")
COPIES = ("pageable", "pinned", "managed")  # of memory that layers' outputs are copied over
WINDOWS = ("pass", "all", "create", "close")


def profile(
    context: typer.Context,
    model: str = typer.Argument("lenet5-digits", metavar="MODEL", help="A model name or an .onnx file."),
    backend: list[str] = typer.Option(
        [], metavar="NAME,NAME", help="A backend; may be repeated. Default: all that can run here."
    ),
    batch: str = typer.Option("1", metavar="N,N,…", help="Batch sizes; 1..1024 doubles from 1 to 1024."),
    precision: str = typer.Option("fp32", metavar="P", help="One of fp32, fp32-tc, tf32, fp16."),
    runs: int = typer.Option(0, metavar="K", show_default=False, help="Profiled passes; default: 5."),
    report: bool = typer.Option(
        False,
        "--report",
        help="The table of a course report: one pass per batch size, time by batch and by call.",
    ),
    copies: str = typer.Option(
        "",
        metavar="|".join(COPIES),
        help="On a GPU: also copy every layer's output to the host and back, over such memory.",
    ),
    trace: Path | None = typer.Option(
        None, metavar="FILE", help="Also write a trace for Perfetto or Chrome."
    ),
    counters: bool = typer.Option(
        False, "--counters", help="Also read the GPU's hardware counters, by Nsight Compute (ncu)."
    ),
    dataset: str = typer.Option(
        "", metavar="NAME|folder:DIR|random", help="Data set; default: the model's own."
    ),
    preprocess: str = typer.Option(
        "", metavar="P", help="unit (0 to 1), raw, imagenet, caffe, MEAN,STD or a .toml file."
    ),
    threads: int = typer.Option(
        0, metavar="N", show_default=False, help="CPU threads; default: one per core."
    ),
    rung: list[str] = typer.Option([], metavar="NODE=RUNG", help="Kernel for a node; may be repeated."),
    kernels: list[str] = typer.Option([], metavar="DIR", help="Folder of your own kernels; may be repeated."),
    budget: float = typer.Option(2.0, metavar="S", help="The most seconds of unprofiled samples per case."),
    timeout: float = typer.Option(
        600.0, metavar="S", help="Abandon a case that is still running after S seconds."
    ),
    table: str = typer.Option(
        "",
        metavar="|".join(TABLES),
        help="Which table; main: the parts of a pass and what holds operators back. Default: main in a "
        "terminal's form, all in the others.",
    ),
    by: str = typer.Option("name", metavar="|".join(GROUPS), help="How kernels are grouped."),
    window: str = typer.Option("pass", metavar="|".join(WINDOWS), help="Which part of the session."),
    match: str = typer.Option("", metavar="TEXT", help="Only kernels and calls whose name contains TEXT."),
    full_names: bool = typer.Option(
        False, "--full-names", help="Kernel names in full, with template arguments."
    ),
    load: Path | None = typer.Option(None, metavar="DIR", help="Show a profile that was saved before."),
    cluster: str = typer.Option(
        "", metavar="ADDRESS|local", help="Have a Ray cluster do it (needs the extra `cluster`)."
    ),
    gpu: str = typer.Option("", metavar="KIND", help="With --cluster: on this kind of GPU, such as H200."),
    out: Path | None = typer.Option(None, metavar="DIR", help="The folder; default: a dated one in ./runs."),
    charts: str = typer.Option("png,svg,pdf", metavar="F,F,…", help="Some of png, svg, pdf; or none."),
    output: str = typer.Option("table", "--format", metavar="table|csv|json|md", help="What goes to stdout."),
) -> None:
    """Show where the time of a model's forward pass goes.

    Kernels, copies, calls, the gaps between them, and what starting cold costs.
    Each case has its own process: a cold start in parts, times without profiling, then a profiled session.
    Exit code 0: all well; 1: a case failed; 2: bad input; 130: cancelled.
    """
    from bench.commands import parsing
    from bench.profile.records import ProfileJob
    from bench.profile.show.saved import ShownProfile
    from bench.show.table import FORMATS
    from kernels.errors import InputError

    shown = ShownProfile(
        format=parsing.one_of(output, FORMATS, "format"),
        table=parsing.one_of(table, TABLES, "table") if table else "report" if report else "",
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
        apart=report,
        copies=parsing.one_of(copies, COPIES, "kind of memory") if copies else "",  # type: ignore[arg-type]
        dataset=dataset or None,
        preprocess=preprocess or None,
        threads=threads if parsing.given(context, "threads") else None,
        rungs=parsing.rungs(rung),
        kernel_dirs=tuple(str(Path(folder).expanduser().absolute()) for folder in kernels),
        budget_s=budget,
        timeout_s=timeout,
        counters=counters,
    )
    parsing.check_cluster(cluster, gpu)
    raise typer.Exit(run(job, out, shown, formats, trace, cluster, gpu))


def run(
    job: ProfileJob,
    out: Path | None,
    shown: ShownProfile,
    formats: Sequence[str],
    trace: Path | None,
    cluster: str = "",
    gpu: str = "",
) -> int:
    """Profile a job's cases into a folder and show them. The exit code."""
    from bench.commands import measuring
    from bench.profile.kind import KIND as PROFILE
    from bench.profile.records import Profile
    from bench.profile.show import saved
    from bench.questions import model_questions

    job, cases = model_questions.profile(job)
    folder = measuring.begin(PROFILE, Profile(job=job, cases=cases), out)
    outcome = measuring.measure([folder], False, cluster, gpu)
    measurements = folder.measurements()
    saved.print_tables(folder, measurements, shown)
    print(f"profile: {folder.path}", file=sys.stderr)
    _write(folder, measurements, formats, trace)
    measuring.tell_baseline(folder)
    return outcome.status(
        len(measurements) == len(cases) and all(m.disposition == "ok" for m in measurements)
    )


def again(path: Path, shown: ShownProfile, trace: Path | None) -> int:
    """Show a profile that was saved before."""
    from bench.profile.kind import KIND as PROFILE
    from bench.profile.show import saved

    folder = PROFILE.open(path)
    measurements = folder.measurements()
    saved.print_tables(folder, measurements, shown)
    _write(folder, measurements, (), trace)
    return 0 if all(m.disposition == "ok" for m in measurements) else 1


def _write(
    folder: ProfileFolder, measurements: Sequence[CaseProfile], formats: Sequence[str], trace: Path | None
) -> None:
    from bench.commands import measuring
    from bench.profile.event_files import events_in
    from bench.profile.show import charts as profile_charts
    from bench.profile.show import saved
    from bench.profile.show import trace as profile_trace
    from bench.show import draw_together

    fine = [made for made in measurements if made.disposition == "ok"]
    if trace is not None and fine:
        profile_trace.write(trace, [(made, events_in(folder.path, made)) for made in fine])
        print(f"trace: {trace} (open it at ui.perfetto.dev)", file=sys.stderr)
    if formats and fine:
        made = profile_charts.charts(folder.header, fine, partial(events_in, folder.path))
        written = draw_together.write(made, folder.path / "charts", formats)
        written += saved.pictures(folder, formats, folder.path / "charts")
        measuring.tell_charts(folder.path, len(written))


COMMAND = profile  # as main.py finds it
