"""`compare`: run models on backends over batch sizes, then a table, charts and a run folder."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.commands import measuring
from bench.commands.given import Given, command
from bench.run import options

if TYPE_CHECKING:
    from bench.results.records import Job, Measurement, Run
    from bench.run.client import StandbyWorker
    from bench.run.kinds.comparison import RunFolder


@dataclass(frozen=True)
class Output:
    """What comes of a run beside its folder, and where it is measured. charts: formats, () for none."""

    format: str = "table"
    charts: tuple[str, ...] = measuring.CHARTS
    layers: bool = False
    bisect: bool = False
    where: measuring.Where = measuring.HERE


@command(options.COMPARE, "comparison")
def compare(
    given: Given,
    layers: bool = False,
    bisect: bool = False,
    resume: Path | None = None,
    retry: bool = False,
    trust_kernels: bool = False,
    cluster: str = "",
    gpu: str = "",
    on: tuple[str, ...] = (),
    out: Path | None = None,
    charts: tuple[str, ...] = Output.charts,
    format: str = Output.format,
) -> int:
    """Run models on backends, check the answers, measure the times.

    Leaves a run folder with the measurements and charts; the table goes to standard output. Exit code 0: all
    well; 1: a case failed; 2: bad input; 130: cancelled (what was measured is kept).
    """
    import msgspec

    from bench.results.names import with_distinct_stems
    from bench.results.records import Job
    from bench.words.option import usual
    from kernels.errors import InputError

    wanted = Output(format, charts, layers, bisect, measuring.Where(cluster, gpu, on))
    job = Job(**usual(options.COMPARE) | given.lasting | given.fields)
    job = msgspec.structs.replace(job, models=with_distinct_stems(job.models))
    for option, asked in (("layers", layers), ("bisect", bisect), ("layer-pass-of", job.layers_of)):
        if asked and not job.layers:
            raise InputError(
                f"--{option} is of the layer pass, which --no-layer-pass skips; leave one of them away"
            )
    if resume is None:
        return run_jobs([(job, out)], wanted)
    if out is not None:
        raise InputError("--resume writes into the run it goes on with; leave --out away")
    return go_on(resume, job, list(given.fields), wanted, trust_kernels, retry)


def default() -> int:
    """The default comparison; the exit code. Its charts are pictures alone: whoever wants them for a paper
    exports them, and who wants to see what this program does waits for half as long."""
    from bench.run import defaults

    return run_jobs([(defaults.job(), None)], Output(charts=("png",)))


def run_jobs(jobs: Sequence[tuple[Job, Path | None]], output: Output) -> int:
    """Run each job into its folder (None: a new one under ./runs), then show all of it. The exit code."""
    from bench.results.records import Run
    from bench.run import client
    from bench.run.kinds.comparison import KIND as COMPARISON

    if len(output.where.on) == 1:  # what can run there, its worker knows
        planned = [(Run(job=job, cases=()), out) for job, out in jobs]
        return _run([measuring.begin(COMPARISON, run, out) for run, out in planned], output)
    # Its libraries are loaded while the cases are planned, which takes as long.
    here = not output.where.on
    jobs = [(_with_backends(job, output.where), out) for job, out in jobs]
    with client.StandbyWorker(COMPARISON, renewed=False) if here else contextlib.nullcontext() as spare:
        from bench.questions import model_questions
        from bench.run import progress

        planned = [
            (Run(job=job, cases=model_questions.cases(job, progress.callback(), here=here)), out)
            for job, out in jobs
        ]
        if here:
            _tell_uninvited(planned)
        return _run([measuring.begin(COMPARISON, run, out) for run, out in planned], output, spare=spare)


def _tell_uninvited(planned: Sequence[tuple[Run, Path | None]]) -> None:
    """Say once which library would have taken the kernels that are swapped in, and is not here."""
    if any(run.job.swaps for run, _ in planned):
        from bench.measure import cases

        for reason in dict.fromkeys(filter(None, (cases.uninvited(it.job, it.cases) for it, _ in planned))):
            print(f"note: the kernel is tried in ONNX Runtime alone: {reason}", file=sys.stderr)


def _with_backends(job: Job, where: measuring.Where) -> Job:
    """With the backends that can run at one of the places, where none was asked for."""
    import msgspec

    from bench.run import elsewhere

    if not where.on or job.backends:
        return job
    return msgspec.structs.replace(job, backends=elsewhere.backends(where.on))


def go_on(
    path: Path, job: Job, fields: Sequence[str], output: Output, trusted: bool = False, retry: bool = False
) -> int:
    """Run what is missing of a run; `fields` of `job` were given and must be those it was started with.
    trusted: the user has agreed to run the kernels that it names, as he has where he named them again. retry:
    what crashed or timed out is missing too."""
    import msgspec

    from bench.run.kinds.comparison import KIND as COMPARISON

    held = COMPARISON.open(path).job
    wanted = msgspec.structs.replace(held, **{field: getattr(job, field) for field in fields})
    with measuring.gone_on(COMPARISON, path, wanted, trusted or "kernel_dirs" in fields, retry) as folder:
        return _run([folder], output, retry)


def _run(
    folders: Sequence[RunFolder], output: Output, retry: bool = False, spare: StandbyWorker | None = None
) -> int:
    from bench.views.comparison import show_runs
    from bench.views.drawing import draw_together

    if output.charts and any(folder.missing(retry) for folder in folders):
        draw_together.expect()
    outcome = measuring.measure(folders, retry, output.where, spare)
    found = [(folder.header, folder.measurements()) for folder in folders]
    show_runs(found, output.format, output.layers, output.bisect)
    for (_, measurements), folder in zip(found, folders, strict=True):
        measuring.leave(folder, output.charts if measurements else ())
    return outcome.status(not failed(found))


def failed(found: Sequence[tuple[Run, Sequence[Measurement]]]) -> bool:
    """Whether a case failed, nothing at all of a model could be measured, or every engine of ours that was
    asked for by name refused a model: that was what was asked, and there is no answer."""
    from bench.results.rows import FAILURES
    from engine import backends

    for run, measured in found:
        named = [name for name in run.job.backends if backends.get(name).reference != name]
        for model in dict.fromkeys(m.case.model for m in measured):
            of = [m for m in measured if m.case.model == model]
            right = any(m.disposition in ("ok", "untimed") for m in of)
            if any(m.disposition in FAILURES for m in of) or not right:
                return True
            ours = [m for m in of if m.case.backend in named]
            if ours and all(m.disposition == "unsupported" for m in ours):
                return True
    return not any(measured for _, measured in found)
