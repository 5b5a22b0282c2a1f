"""What a course report needs: runs that there are, of this machine, and those that are missing, taken now."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from bench.extras.reports.courses import program
from bench.extras.reports.courses.presets import Course, Need
from bench.extras.reports.whole_program import ProgramStart
from bench.kinds import folders
from bench.kinds.folder import Folder
from bench.kinds.registry import kind_of, kinds
from bench.results.records import Environment, stem
from kernels.errors import KernelscopeError

NEEDS_GPU = "needs a GPU"
DEVICES = ("cpu", "cuda")


@dataclass(frozen=True)
class Limits:
    """How much is measured: seconds of samples a case, the largest batch size on a CPU for what is asked over
    many, images at most."""

    budget_s: float = 2.0
    largest: int = 16
    images: int = 10_000


@dataclass
class Taken:
    """What there is for a course: by the name of a need its run's folder, or the program; why: where there is
    neither."""

    runs: dict[str, Folder[Any, Any]] = field(default_factory=dict)
    programs: dict[str, program.ProgramUse] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)
    measured: list[str] = field(default_factory=list)
    environment: Environment = field(default_factory=Environment)
    images: int = 10_000


def backend(need: Need, who: str) -> str:
    """Ours, or the reference, on the need's device."""
    return f"{'engine' if who == 'own' else 'ort'}-{need.device}"


def batches(need: Need, limits: Limits) -> tuple[int, ...]:
    """The batch sizes that are measured here."""
    if need.device == "cpu" and len(need.batches) > 1 and need.kind == "profile":
        return tuple(batch for batch in need.batches if batch <= limits.largest) or need.batches[:1]
    return tuple(dict.fromkeys(min(batch, limits.images) for batch in need.batches))


def job_of(need: Need, limits: Limits) -> Any:
    """The job of a run that a need asks for."""
    both = tuple(backend(need, who) for who in ("own", "reference"))
    if need.kind == "comparison":
        from bench.results.records import Job
        from bench.run.bounds import INSTANCES

        images = min(need.images, limits.images)
        return Job(
            models=(need.model,),
            backends=both,
            batches=batches(need, limits),
            images=(images,) if images else (),
            budget_s=limits.budget_s,
            instances=INSTANCES,
        )
    if need.kind == "profile":
        from bench.profile.records import ProfileJob

        job = ProfileJob(
            model=need.model,
            backends=both,
            batches=batches(need, limits),
            budget_s=min(limits.budget_s, 2.0),
        )
        # The table by batch size is of one pass with everything round it, and nothing before.
        return msgspec.structs.replace(job, runs=1, warm_up=0, apart=True) if need.all_calls else job
    from bench.ladder import plan
    from bench.ladder.measure.entrants import params_of
    from bench.questions import model_questions

    (batch,) = batches(need, limits)
    found = model_questions.node(need.model, "conv", need.node, batch, need.device)
    params, node = params_of("conv", found.params), found.node
    return plan.job_of(
        params,
        need.device,
        model=need.model,
        node=node,
        batch=batch,
        rungs=need.rungs,
        budget_s=limits.budget_s,
        timeout_s=120.0,
    )


def header_of(kind: str, job: Any) -> Any:
    """A run's header, as its command makes one."""
    from bench.questions import model_questions

    if kind == "comparison":
        from bench.results.records import Run

        return Run(job=job, cases=model_questions.cases(job, None))
    if kind == "profile":
        from bench.profile.records import Profile

        job, cases = model_questions.profile(job)
        return Profile(job=job, cases=cases)
    from bench.ladder import plan

    return plan.plan(job)


def fits(need: Need, job: Any, limits: Limits) -> bool:
    """Whether a run that there is measured what is needed: as many batch sizes and images, or more."""
    wanted = set(batches(need, limits))
    both = {backend(need, who) for who in ("own", "reference")}
    if need.kind == "ladder":
        return bool(
            stem(job.model) == need.model
            and job.device == need.device
            and {job.batch} == wanted
            and job.node == need.node
            and (not job.rungs or set(need.rungs) <= set(job.rungs) != set())
            and not job.precision
        )
    models = job.models if need.kind == "comparison" else (job.model,)
    if (
        tuple(map(stem, models)) != (need.model,)
        or not both <= set(job.backends)
        or job.rungs
        or job.kernel_dirs
    ):
        return False
    if not wanted <= set(job.batches):
        return False
    if need.kind == "comparison":
        images = min(need.images, limits.images)
        return not images or images in job.images
    return bool((job.warm_up == 0) == need.all_calls == job.apart)


def there(need: Need, places: Sequence[Path], limits: Limits, machine: str) -> Folder[Any, Any] | None:
    """The newest run among these that has all of it, measured on this machine."""
    found = []
    for path in places:
        kind = kind_of(path)
        if kind is None or kind.name != need.kind:
            continue
        try:
            folder = kind.open(path)
            whole = fits(need, folder.job, limits) and folder.measurements() and not folder.missing()
            if whole and folder.header.environment.machine == machine:
                found.append(folder)
        except KernelscopeError:
            continue  # one that cannot be read is none
    return max(found, key=lambda folder: str(folder.header.created_at), default=None)


def take(course: Course, own: Path, runs: Path, limits: Limits, measures: bool = True) -> Taken:
    """All that a course needs. own: the course's folder, into which goes what is measured now; runs: where
    others are looked for; measures: whether anything is measured."""
    from bench.ladder.plan import usable
    from bench.measure import environment

    taken = Taken(environment=environment.collect(), images=limits.images)
    devices = usable()
    places = [
        path for place in (own, runs) if place.is_dir() for path in sorted(place.iterdir()) if path.is_dir()
    ]
    for need in course.needs:
        if need.device not in devices:
            taken.why[need.name] = NEEDS_GPU
        elif need.kind == "program":
            _program(need, own, limits, taken, measures)
        else:
            _run(need, own, places, limits, taken, measures)
    return taken


def _program(need: Need, own: Path, limits: Limits, taken: Taken, measures: bool) -> None:
    images = min(need.images, limits.images)
    start = ProgramStart(
        model=need.model,
        backend=backend(need, need.who),
        batch=min(need.batches[0], images),
        images=images,
    )
    known = program.kept(own)
    machine = taken.environment.machine
    found = next((one for one in known if one.start == start and one.environment.machine == machine), None)
    if found is None and measures:
        _tell(f"{need.name}: {start.model} on {start.backend}, {start.images:,} images, as a whole program")
        found = program.run(start, taken.environment)
        own.mkdir(parents=True, exist_ok=True)
        program.keep(own, [*(one for one in known if one.start != start), found])
        taken.measured.append(need.name)
    if found is None:
        taken.why[need.name] = "not measured"
    elif found.error:
        taken.why[need.name] = found.error
    else:
        taken.programs[need.name] = found


def _run(need: Need, own: Path, places: Sequence[Path], limits: Limits, taken: Taken, measures: bool) -> None:
    machine = taken.environment.machine
    found = there(need, [*places, own / need.name], limits, machine)
    if found is None and measures:
        from bench.commands import measuring

        kind = next(kind for kind in kinds() if kind.name == need.kind)
        try:
            job = job_of(need, limits)
            header = header_of(need.kind, job)
            _tell(f"{need.name}: {kind.command_line(header.job)}")
            path = own / need.name
            number = 1
            while path.exists():
                number += 1
                path = own / f"{need.name}-{number}"
            found = folders.begin(kind, header, path, own, kind.command_line(header.job))
            ending = measuring.measure([found])
        except KernelscopeError as error:
            taken.why[need.name] = str(error)
            return
        if ending.cancelled:
            raise KeyboardInterrupt
        found = kind.open(found.path)
        taken.measured.append(need.name)
    if found is None:
        taken.why[need.name] = "not measured"
    else:
        taken.runs[need.name] = found


_tell = partial(print, file=sys.stderr, flush=True)
