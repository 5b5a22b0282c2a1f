"""`profile`: where the time of a model goes on each backend, in tables, charts and a timeline."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.commands import measuring
from bench.commands.given import Given, command
from bench.run import options

if TYPE_CHECKING:
    from bench.results.profile_records import ProfileJob
    from bench.results.records import Case
    from bench.run.kinds.profile import ProfileFolder
    from bench.views.profile import ShownProfile


@command(options.PROFILE, "profile")
def profile(
    given: Given,
    table: str = "",
    by: str = "name",
    window: str = "pass",
    match: str = "",
    full_names: bool = False,
    trace: Path | None = None,
    load: Path | None = None,
    cluster: str = "",
    gpu: str = "",
    on: tuple[str, ...] = (),
    out: Path | None = None,
    charts: tuple[str, ...] = measuring.CHARTS,
    format: str = "table",
) -> int:
    """Show where the time of a model's forward pass goes.

    Kernels, copies, calls, the gaps between them, and what starting cold costs.
    Each case has its own process: a cold start in parts, times without profiling, then a profiled session.
    Exit code 0: all well; 1: a case failed; 2: bad input; 130: cancelled.
    """
    from bench.results.profile_records import ProfileJob
    from bench.views.profile import ShownProfile
    from bench.words.option import usual
    from kernels.errors import InputError

    report = "report" in given.names
    table = table or ("report" if report else "")
    shown = ShownProfile(format, table, by, window, match, full_names)
    if trace is not None and trace.is_dir():
        raise InputError(f"--trace {trace} is a folder: name a file in it")
    if load is not None:
        return again(load, shown, trace)
    one_pass = {"runs": 1, "warm_up": 0} if report else {}
    job = ProfileJob(**usual(options.PROFILE) | given.lasting | one_pass | given.fields)
    return run(job, out, shown, charts, trace, measuring.Where(cluster, gpu, on))


def run(
    job: ProfileJob,
    out: Path | None,
    shown: ShownProfile,
    formats: Sequence[str],
    trace: Path | None,
    where: measuring.Where = measuring.HERE,
) -> int:
    """Profile a job's cases into a folder and show them. The exit code."""
    from bench.questions import model_questions
    from bench.results.profile_records import Profile
    from bench.run.kinds.profile import KIND as PROFILE

    job, cases = model_questions.profile(job) if not where.on else _elsewhere(job, where.on)
    folder = measuring.begin(PROFILE, Profile(job=job, cases=cases), out)
    outcome = measuring.measure([folder], False, where)
    fine = _show(folder, shown, trace)
    measuring.leave(folder, formats if fine else ())
    return outcome.status(fine == len(cases))


def _elsewhere(job: ProfileJob, places: Sequence[str]) -> tuple[ProfileJob, tuple[Case, ...]]:
    """The job with its backends filled in, and its cases, for machines elsewhere: what can run there is not
    what can run here. What else may be wrong with it is told there."""
    import msgspec

    from bench.measure import cases
    from bench.results.profile_records import planned
    from bench.results.records import Job
    from bench.run import elsewhere
    from bench.words.option import check
    from engine import backends

    check(job, options.PROFILE)
    asked = [backends.get(name).name for name in dict.fromkeys(job.backends)]
    spec = cases.model_spec(job.model, Job(models=(job.model,), backends=()))
    job = msgspec.structs.replace(
        job,
        model=spec.name,
        backends=tuple(asked) or elsewhere.backends(places),
        batches=tuple(sorted(set(job.batches))),
    )
    return job, planned(job)


def again(path: Path, shown: ShownProfile, trace: Path | None) -> int:
    """Show a profile that was saved before."""
    from bench.run.kinds.profile import KIND as PROFILE

    folder = PROFILE.open(path)
    return 0 if _show(folder, shown, trace) == len(folder.measurements()) else 1


def _show(folder: ProfileFolder, shown: ShownProfile, trace: Path | None) -> int:
    """Print what is asked for, and write the trace; how many cases went well."""
    from bench.results.event_files import events_in
    from bench.views import trace as profile_trace
    from bench.views.profile import show_chosen

    show_chosen(folder, shown)
    fine = [made for made in folder.measurements() if made.disposition == "ok"]
    if trace is not None and fine:
        profile_trace.write(trace, [(made, events_in(folder.path, made)) for made in fine])
        print(f"trace: {trace} (open it at ui.perfetto.dev)", file=sys.stderr)
    return len(fine)
