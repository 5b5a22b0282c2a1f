"""An assignment's exercises as params of operators, everything that it names looked up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import msgspec

from bench.extras.course.assignment import Assignment, ExerciseEntry, Side, Work
from bench.extras.course.records import REFERENCE, CountLimit, Exercise, GradeJob
from bench.measure.ladder.counts import LEAST, LEAST_OF, NAMES_OF_COUNTS
from bench.measure.ladder.entrants import params_of
from bench.questions import ladder_plan, model_questions
from bench.words.option import one_of
from kernels import registry
from kernels.errors import InputError, KernelscopeError
from kernels.ops import Params, sized
from kernels.precision import NAMES
from kernels.tasks import TaskParams, record_of, shipped

MOST_MODEL_NBYTES = 4 << 20  # they travel with each student's job


def job_of(made: Assignment, hidden: bool = True) -> GradeJob:
    """What a class is judged by. hidden: with the shapes that students are not told. Raises InputError naming
    the exercise that cannot be had."""
    return GradeJob(
        name=made.name,
        title=made.title,
        device=made.device,
        exercises=tuple(_exercise(made, entry, hidden) for entry in made.exercise),
        threads=made.threads,
        budget_s=made.limits.budget,
        timeout_s=made.limits.seconds,
        mib=made.limits.memory_mib,
        seed=made.seed,
        questions=tuple(q if hidden else msgspec.structs.replace(q, answer=None) for q in made.question),
        deadline=made.deadline.isoformat() if made.deadline is not None else "",
        modules=made.modules,
    )


def _exercise(made: Assignment, entry: ExerciseEntry, hidden: bool) -> Exercise:
    try:
        ladder_plan.op_of(entry.op)
        params = _params(entry, entry, made.device)
        others = tuple(_params(entry, work, made.device) for work in entry.hidden if hidden)
        for threshold in entry.threshold:
            if threshold.rung == REFERENCE:
                if not ladder_plan.beside(params, made.device):
                    raise InputError(
                        f"no reference is timed beside {made.device} kernels for {entry.op}, whose own is a "
                        "function of NumPy: name a rung, or in task.toml an ONNX model as yardstick"
                    )
                continue
            rung = registry.find(made.device, entry.op, threshold.rung)
            if refused := rung.refusal(params):
                raise InputError(f"its threshold's rung cannot run it: {refused}")
        for limit in entry.count:
            _check_count(limit, entry.op, params)
        if unknown := set(entry.precision) - set(NAMES):
            raise InputError(f"precision {sorted(unknown)[0]!r} is not known")
    except KernelscopeError as error:
        raise InputError(f"exercise {entry.name!r}: {error}") from error
    record = record_of(entry.op)
    own = record.task if issubclass(record, TaskParams) and entry.op not in shipped() else None
    models = dict(own.models) if own is not None else {}
    if (nbytes := sum(map(len, models.values()))) > MOST_MODEL_NBYTES:
        raise InputError(
            f"exercise {entry.name!r}: the ONNX models of {entry.op} have {nbytes:,} bytes, in a course "
            f"{MOST_MODEL_NBYTES:,} at most; give it what they multiply by as inputs"
        )
    return Exercise(
        folder=str(own.folder) if own is not None else "",
        text=own.text if own is not None else "",
        reference=own.answers if own is not None else "",
        models=models,
        name=entry.name,
        op=entry.op,
        params=asdict(params),
        title=entry.title or params.words,
        hidden=tuple(asdict(other) for other in others),
        precisions=entry.precision,
        quick=entry.checks == "quick",
        points=entry.points,
        thresholds=entry.threshold,
        hints=dict(made.hints) | dict(entry.hints),
        file=entry.file,
        counts=entry.count,
    )


def _check_count(limit: CountLimit, op: str, params: Params) -> None:
    """Raises KernelscopeError, InputError for a count that there is not."""
    one_of(limit.what, NAMES_OF_COUNTS, "count")
    if limit.of == LEAST and limit.what not in LEAST_OF:
        raise InputError(f"there is no least number of {limit.what}; there is of {' and '.join(LEAST_OF)}")
    if limit.of not in ("", LEAST):
        rung = registry.find("cuda", op, limit.of)
        if refused := rung.refusal(params):
            raise InputError(f"its count's rung cannot run it: {refused}")


def _params(entry: ExerciseEntry, work: Work, device: str) -> Params:
    """The params of the exercise, or of one of its hidden shapes, which has of the exercise's what it does
    not say itself."""
    if work.shape:
        if entry.op != "conv":
            raise InputError(f"shape is of a conv; {entry.op} takes params, or a model and its node")
        return ladder_plan.conv_of(
            work.shape, _sides(work.stride), _sides(work.pad), _sides(work.dilation),
            work.group, work.bias, work.activation,
        )  # fmt: skip
    model, node, batch = work.model or entry.model, work.node or entry.node, work.batch or entry.batch or 1
    if work.params or not model:
        return _given(entry.op, {**entry.params, **work.params})
    name = str(Path(model).expanduser().absolute()) if model.endswith(".onnx") else model
    found = model_questions.node(name, entry.op, node or "0", batch, device)
    return params_of(entry.op, found.params)


def _given(op: str, params: Mapping[str, Any]) -> Params:
    """Params as the file has them; an output's size that follows from the others may be left out."""
    known = {field.name for field in fields(record_of(op))}
    if not params:
        raise InputError("it says no problem: give shape, params, or a model and its node")
    if unknown := sorted(set(params) - known):
        raise InputError(f"{op} has no {unknown[0]!r}; its params are {', '.join(sorted(known))}")
    follows = {"out_h", "out_w"} & known - set(params)
    record = record_of(op)
    if issubclass(record, TaskParams):
        return ladder_plan.task_of(record, [params.get(name, -1) for name in record.task.spec.symbols])
    try:
        made = params_of(op, {**params, **dict.fromkeys(follows, 0)})
        if follows:
            made = made.sized() if hasattr(made, "sized") else sized(made)  # type: ignore[type-var]
    except TypeError as error:
        raise InputError(f"its params are not those of {op}: {str(error).rpartition('() ')[2]}") from error
    return made


def _sides(value: Side) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else tuple(value)
