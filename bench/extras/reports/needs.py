"""What a report needs: the runs that there are, and those that are missing, taken now.

What a kill cut short is gone on with, case by case.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.extras.reports import program
from bench.extras.reports.presets import Need, Report
from bench.extras.reports.program import ProgramStart
from bench.results.folder import Folder
from bench.results.kinds import Kind, kind_of, kinds
from bench.results.machine_limits import MachineLimits
from bench.results.records import Environment, stem
from bench.run.kinds.comparison import KIND as COMPARISON
from kernels.errors import KernelscopeError

NEEDS_GPU = "needs a GPU"
LACKS_GPU = "it needs a GPU, and none was there"  # the same in a sentence
NOT_MEASURED = "not measured"
BEYOND = "left out: all its batch sizes are beyond --largest"
EXPECTED = (NEEDS_GPU, NOT_MEASURED, BEYOND)  # reasons that are no failure
AGAIN = "-again"
LADDER_S = 1.0  # of samples a rung, on a GPU: ten of a plain kernel over 10,000 images need that
COURSE = "course-"  # what the folders of course reports begin with

Run = Folder[Any, Any]


@dataclass(frozen=True)
class Limits:
    """How much is measured: seconds of samples a case, the largest batch size, images at most (0: as many as
    are asked for)."""

    budget_s: float = 2.0
    largest: int = 0
    images: int = 0


@dataclass
class Taken:
    """What there is. runs: of the first time and the second the folders, by the name of a need; where they
    were named by the user, by their paths. programs: by the name of a need. why: where a need has neither;
    limits: what machines were measured to reach, as far as it is known; images: how many at most (0: as many
    as were asked for)."""

    runs: tuple[dict[str, Run], dict[str, Run]] = field(default_factory=lambda: ({}, {}))
    programs: dict[str, program.ProgramUse] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)
    limits: tuple[MachineLimits, ...] = ()
    environment: Environment = field(default_factory=Environment)
    images: int = 0

    def run(self, need: str) -> Run:
        """The first run of a need."""
        return self.runs[0][need]


def asked_of(need: Need, batches: tuple[int, ...], limits: Limits, again: bool = False) -> dict[str, Any]:
    """The fields of a job that say what is measured. again: for the second time, which is to show that the
    figures of passes come again: where time goes the first run tells."""
    backends = need.backends or (need.backend("own"), need.backend("reference"))
    backends = tuple(name for name in backends if not again or name not in need.once)
    if need.kind == "comparison":
        counts = [count for count in (need.images, limits.images) if count]
        images = {"images": (min(counts),)} if counts else {}
        budget = {} if need.max_error is None else {"max_error": need.max_error}
        asked: dict[str, Any] = {"models": need.models, "backends": backends, "precisions": need.precisions}
        chosen = {"rungs": need.fixed, "swaps": need.swaps, "kernel_dirs": ()}
        return {**asked, "batches": batches, **images, **budget, **chosen}
    if need.kind == "profile":
        # Theirs are of one pass; the table by batch size with everything round it, and nothing before.
        passes = {"warm_up": 0, "apart": True} if need.all_calls else {"apart": False}
        asked = {"model": need.model, "backends": backends, "batches": batches, "runs": 1}
        return {**asked, **passes, "rungs": need.fixed, "kernel_dirs": ()}
    asked = {"model": need.model, "node": need.node, "device": need.device, "batch": batches[0]}
    return {**asked, "rungs": need.rungs, "precision": need.precisions[0]}


def job_of(need: Need, batches: tuple[int, ...], limits: Limits, again: bool = False) -> Any:
    """The job of a run that a need asks for. Layers are timed of ours alone, in the first run: all of them
    cost several times as long as the passes. Raises KernelscopeError where a model has no such node."""
    asked = asked_of(need, batches, limits, again)
    if need.kind == "comparison":
        from bench.results.records import Job
        from bench.run.options import INSTANCES

        ours = tuple(name for name in asked["backends"] if name.startswith("engine-"))
        layers = need.layers and not again and bool(ours)
        return Job(
            **asked,
            budget_s=limits.budget_s,
            instances=INSTANCES,
            layers=layers,
            layers_of=ours if layers else (),
            tune_reference=need.tune_reference,
            end_to_end=need.end_to_end,
        )
    if need.kind == "profile":
        from bench.results.profile_records import ProfileJob

        return ProfileJob(**asked, budget_s=min(limits.budget_s, 2.0))
    from bench.measure.ladder.entrants import params_of
    from bench.questions import ladder_plan as plan
    from bench.questions import model_questions

    found = model_questions.node(need.model, "conv", need.node, asked["batch"], need.device)
    named = {name: asked[name] for name in ("model", "batch", "rungs", "precision")}
    params = params_of("conv", found.params)
    all_on_gpu = need.device == "cuda" and not need.rungs
    return plan.job_of(
        params,
        need.device,
        **named,
        node=found.node,
        # Of all rungs on a GPU there are many, and each takes milliseconds.
        budget_s=min(limits.budget_s, LADDER_S) if all_on_gpu else limits.budget_s,
        timeout_s=120.0,
        limits_kept=True,
    )


def _header_of(kind: Kind[Any, Any], job: Any) -> Any:
    """A run's header, as its command makes one."""
    from bench.questions import model_questions

    if kind is COMPARISON:
        return kind.header(job=job, cases=model_questions.cases(job, None))
    if kind.name == "profile":
        job, cases = model_questions.profile(job)
        return kind.header(job=job, cases=cases)
    from bench.questions import ladder_plan as plan

    return plan.plan(job)


def fits(asked: dict[str, Any], job: Any) -> bool:
    """Whether a run's job has all that is asked for: as many batch sizes, images and rungs, or more."""

    def has(name: str, wanted: Any) -> bool:
        held = getattr(job, name)
        if name in ("rungs", "precision") and isinstance(wanted, tuple | str) and not held:
            return True  # all that there are
        if isinstance(wanted, tuple) and wanted:
            return set(map(_named, wanted)) <= set(map(_named, held))
        return bool(_named(held) == _named(wanted))

    return all(has(name, wanted) for name, wanted in asked.items()) and (
        "warm_up" in asked or getattr(job, "warm_up", 1) > 0
    )


def _named(value: Any) -> Any:
    return stem(value) if isinstance(value, str) else value


def there(need: Need, asked: dict[str, Any], places: Sequence[Path], machine: str) -> Run | None:
    """The newest run among these that has all of it, measured on this machine."""
    found = []
    for path in places:
        kind = kind_of(path)
        if kind is None or kind.name != need.kind:
            continue
        try:
            folder = kind.open(path)
            whole = fits(asked, folder.job) and folder.measurements() and not folder.missing()
            if whole and folder.header.environment.machine == machine:
                found.append(folder)
        except KernelscopeError:
            continue  # one that cannot be read is none
    return max(found, key=lambda folder: str(folder.header.created_at), default=None)


def take(
    report: Report,
    own: Path,
    limits: Limits,
    measures: bool = True,
    among: Path | None = None,
    times: int = 1,
) -> Taken:
    """All that a report needs. own: its folder, into which goes what is measured now; measures: whether
    anything is; among: where other runs are looked for that serve as well, also those of other reports there
    (None: only those in `own` do, each by its need's name); times: how often each is measured. Raises
    KeyboardInterrupt where the user cancelled."""
    from bench.measure import environment
    from engine import backends

    taken = Taken(environment=environment.collect(), images=limits.images)
    refused = {need.device: backends.get(need.backend("own")).unavailable() for need in report.needs}
    folders = _folders(own, among)
    places = [path for folder in folders for path in folder.iterdir()] if among else []
    for again in range(times):
        for need in report.needs:
            batches = report.batches(need, limits)
            why = refused[need.device]
            lacking = "" if why is None else NEEDS_GPU if need.device == "cuda" else why
            try:
                if not batches:
                    taken.why[need.name] = BEYOND
                elif need.kind == "program":
                    _program(need, own, folders, limits, taken, measures and not lacking)
                else:
                    asked = asked_of(need, batches, limits, again > 0)
                    folder = there(need, asked, places, taken.environment.machine) if among else None
                    path = own / f"{need.name}{AGAIN * again}"
                    kind = next(kind for kind in kinds() if kind.name == need.kind)
                    if folder is None and measures and not lacking:
                        job = job_of(need, batches, limits, again > 0)
                        path = _free(kind, path, job, taken) if among else path
                        _measure(kind, path, job)
                        folder = kind.open(path)
                    elif folder is None and not among and kind_of(path) is kind:
                        folder = kind.open(path)
                    if folder is not None:
                        taken.runs[again][need.name] = folder
            except KernelscopeError as error:
                taken.why[need.name] = str(error)
            if not any(need.name in had for had in (*taken.runs, taken.programs)):
                taken.why.setdefault(need.name, lacking or NOT_MEASURED)
    # Runs of a GPU may have come from elsewhere: then it is not for want of one that others are missing.
    measured_on = {need.device for need in report.needs if any(need.name in runs for runs in taken.runs)}
    for need in report.needs:
        if need.device in measured_on and taken.why.get(need.name) == NEEDS_GPU:
            taken.why[need.name] = NOT_MEASURED
    return taken


def _folders(own: Path, among: Path | None) -> list[Path]:
    """Where runs lie: the report's own folder, the one where others are, and those of other reports there."""
    others = [among, *sorted(among.glob(f"{COURSE}*"))] if among is not None else []
    return [folder for folder in dict.fromkeys((own, *others)) if folder.is_dir()]


def _free(kind: Kind[Any, Any], path: Path, job: Any, taken: Taken) -> Path:
    """Where this job goes: the folder, or with a number where there is another's."""
    for number in itertools.count(1):
        one = path if number == 1 else path.with_name(f"{path.name}-{number}")
        if not one.exists() or not any(one.iterdir()):  # begun, and cut before its first line
            return one
        if kind_of(one) is kind:
            header = kind.open(one).header
            if header.job == job and header.environment.machine in ("", taken.environment.machine):
                return one
    raise AssertionError


def _measure(kind: Kind[Any, Any], path: Path, job: Any) -> None:
    """A run begun, or gone on with. Raises KernelscopeError where it was started as another job."""
    from bench.commands import measuring
    from bench.results import folders

    begun = kind_of(path) is not kind
    if begun:
        header = _header_of(kind, job)
        line = kind.command_line(header.job)
        print(f"{path.name}: {line}", file=sys.stderr, flush=True)
        folders.begin(kind, header, path, path.parent, line).close()
    with measuring.gone_on(kind, path, None if begun else job) as folder:
        if folder.missing() and measuring.measure([folder]).cancelled:
            raise KeyboardInterrupt


def _program(
    need: Need, own: Path, folders: Sequence[Path], limits: Limits, taken: Taken, measures: bool
) -> None:
    images = min(need.images, limits.images or need.images)
    batch = min(need.batches[0], images)
    backend = need.backend(need.who)
    start = ProgramStart(model=need.model, backend=backend, batch=batch, images=images, rungs=need.fixed)
    known, machine = program.kept(own), taken.environment.machine
    elsewhere = [one for folder in folders if folder != own for one in program.kept(folder)]
    fit = [one for one in (*known, *elsewhere) if one.start == start and one.environment.machine == machine]
    # One that came to nothing is taken again: what stopped it may have been on the machine then.
    found = next((one for one in fit if not one.error), None)
    if found is None and measures:
        words = f"{need.name}: {start.model} on {start.backend}, {start.images:,} images, as a whole program"
        print(words, file=sys.stderr, flush=True)
        found = program.run(start, taken.environment)
        own.mkdir(parents=True, exist_ok=True)
        program.keep(own, [*(one for one in known if one.start != start), found])
    found = found or next(iter(fit), None)
    if found is not None and found.error:
        taken.why[need.name] = found.error
    elif found is not None:
        taken.programs[need.name] = found


def given(first: Sequence[Path], second: Sequence[Path] = ()) -> Taken:
    """Comparisons that the user names. Raises InputError where one is none."""
    by_path = [{str(path): COMPARISON.open(path) for path in paths} for paths in (first, second)]
    return Taken(runs=(by_path[0], by_path[1]))
