"""Answers questions about ladders in a worker that times nothing: a model's nodes, its rungs, their text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import msgspec

from bench.measure import cases as comparison
from bench.measure import net_operator as net
from bench.measure.images import model_file
from bench.measure.ladder.entrants import ENGINES, capability
from bench.measure.net_operator import Whole
from bench.questions import ladder_plan, messages, model_questions
from bench.questions import rung_template as ladder_template
from bench.questions.ladder_questions import (
    TASKS,
    DeviceInfo,
    KernelProblem,
    LadderAnswer,
    LadderQuestion,
    NodeInfo,
    RungInfo,
)
from bench.results.ladder_records import Ladder
from bench.results.messages import Done
from bench.results.records import Job
from bench.run import confined, options
from bench.words.option import by_name
from engine import backends
from engine.graph.graph import Graph
from engine.graph.plan import Step
from kernels import numba_support, registry, tasks
from kernels.errors import InputError, KernelError, KernelscopeError
from kernels.precision import NAMES
from kernels.tasks import TaskParams

_KEPT = 2  # models whose weights are kept between two questions


def serve(say: Callable[[LadderAnswer | Done], None], read_line: Callable[[], bytes]) -> int:
    """Answer line after line until the input ends. The exit status."""
    while line := read_line():
        try:
            asked = msgspec.json.decode(line, type=LadderQuestion)
        except msgspec.DecodeError as error:
            say(Done(reason=f"the worker was asked what it cannot read ({error})"))
            return 2
        say(answer(asked))
    return 0


def answer(asked: LadderQuestion) -> LadderAnswer:
    """What can be said; an error of ours is its `error`, beside whatever is known before it."""
    found = LadderAnswer(number=asked.number, devices=asked.devices or devices())
    try:
        device = _device(asked)
        folders, _ = _folders(asked.kernel_dirs)
        tasks.forget({folder.absolute() for folder in folders})
        if asked.new_in:
            tasks.learn(folders, broken=[])
            op = ladder_plan.op_of(asked.op or "conv")
            wanted = asked.device if asked.device in ENGINES else device
            written = ladder_template.write(op, wanted, Path(asked.new_in))
            found = msgspec.structs.replace(found, created=str(written))
    except KernelscopeError as error:
        return msgspec.structs.replace(found, error=str(error))
    found = _of_device(found, asked, device)
    elsewhere = asked.device
    if not elsewhere and found.error and asked.model == TASKS:
        elsewhere = next(other for other in ENGINES if other != device)  # a task may have kernels there alone
    if elsewhere in ENGINES and elsewhere != device:
        to_read = _of_device(LadderAnswer(number=asked.number), asked, elsewhere)
        if not to_read.error:
            found = msgspec.structs.replace(found, to_read=to_read)
        elif asked.device and found.error:  # of the device that was asked for, which a template would be for
            found = msgspec.structs.replace(found, error=to_read.error)
    return found


def _of_device(found: LadderAnswer, asked: LadderQuestion, device: str) -> LadderAnswer:
    """The answer with what there is on a device, which need not be one that can run here."""
    try:
        folders, gone = _folders(asked.kernel_dirs)
        problems: list[KernelError] = []
        if asked.model == TASKS:
            steps = _tasks(device, folders, problems, asked.op)
        else:
            steps = _steps(asked.model, asked.batch, device)
        found = msgspec.structs.replace(found, nodes=tuple(_node(step) for step in steps))
        step = _chosen(steps, asked)
        precision = asked.precision if registry.offers(device, asked.precision) else ""
        rungs = ladder_plan.ladder_of(device, step.op, folders, problems, precision)
        found = msgspec.structs.replace(found, problems=(*gone, *_problems(problems)))
        ladder = _ladder(asked, device, step, rungs, folders)
        told = tuple(_rung(rung, step, device, here=not asked.on) for rung in rungs)
        return msgspec.structs.replace(
            found, ladder=ladder, rungs=told, precisions=_precisions(step, rungs, device)
        )
    except KernelscopeError as error:
        return msgspec.structs.replace(found, error=str(error))


@lru_cache(maxsize=1)
def devices() -> tuple[DeviceInfo, ...]:
    """Every device of the ladder, and why one of them cannot run here."""
    made = []
    for name, engine in ENGINES.items():
        backend = backends.get(engine)
        made.append(DeviceInfo(name=name, refused=backend.unavailable() or ""))
    return tuple(made)


def _usable(known: Sequence[DeviceInfo]) -> tuple[str, ...]:
    return tuple(info.name for info in known if not info.refused)


def _device(asked: LadderQuestion) -> str:
    """The device asked for where it can run, else the one that a ladder takes there. Raises InputError."""
    usable = _usable(asked.devices or devices())
    if asked.device in usable:
        return asked.device
    if not asked.devices:
        return ladder_plan.device_of("")
    if not usable:
        told = "; ".join(f"{info.name}: {info.refused}" for info in asked.devices)
        raise InputError(f"no ladder can run on {asked.on} ({told})")
    return "cuda" if "cuda" in usable else usable[0]


@lru_cache(maxsize=_KEPT)
def _graph(path: Path, mtime_ns: int) -> Graph:
    return model_file.read(path).graph


@lru_cache(maxsize=_KEPT)
def _looked_at(model: str, mtime_ns: int) -> None:
    """A file from elsewhere is first read by a process that may come to harm. Raises KernelscopeError."""
    model_questions.facts(messages.WhichFacts(model=model))


def _steps(model: str, batch: int, device: str) -> list[Step | Whole | _OfTask]:
    """The steps of a model that have rungs on the device. Raises InputError, ModelError, UnsupportedError."""
    by_name(options.LADDER, "batch").value.check(batch, "batch")
    path = comparison.model_spec(model, Job(models=(model,), backends=())).file(None)
    changed_ns = path.stat().st_mtime_ns
    if not model_questions.received([model]):
        steps = ladder_plan.steps_of(_graph(path, changed_ns), batch, device)
    else:
        _looked_at(model, changed_ns)
        try:
            with confined.confined(confined.seconds()):
                steps = ladder_plan.steps_of(_graph(path, changed_ns), batch, device)
        except MemoryError:
            raise InputError(confined.too_large(f"model file {model!r}")) from None
    return [step for step in steps if ladder_plan.ladder_of(device, step.op)]


@dataclass(frozen=True)
class _OfTask:
    """A task of some sizes, where a ladder looks for steps."""

    params: TaskParams

    @property
    def op(self) -> str:
        return self.params.op

    @property
    def nodes(self) -> tuple[str, ...]:
        return (self.params.words,)


def _tasks(
    device: str, folders: Sequence[Path], problems: list[KernelError], wanted: str
) -> list[Step | Whole | _OfTask]:
    """All tasks that have rungs on the device, in the sizes that they are timed on: those of the user's
    folders first. Files that are no tasks are added to `problems`. Raises InputError where the task wanted is
    one of the user's that cannot be read, or that has no rung on the device."""
    found = []
    for folder in folders:
        try:
            found += [tasks.find(folder)] if (folder / tasks.FILE).is_file() else []
        except InputError as error:
            if folder.name == wanted:
                raise
            problems.append(KernelError(str(error)))
    own = {of.op for of in found}
    found += [of for of in tasks.in_order() if of.op not in own]
    able = [of for of in found if ladder_plan.ladder_of(device, of.op, folders, [])]
    if wanted in own - {of.op for of in able}:
        others = [other for other in ENGINES if ladder_plan.ladder_of(other, wanted, folders, [])]
        has = f" (it has some for {others[0]})" if others else ""
        raise InputError(
            f"the task {wanted} has no kernel for {device} yet{has}; Kernels, New kernel from template… "
            "writes a first one into its folder"
        )
    return [_OfTask(of(**sizes)) for of in able for sizes in of.task.spec.time]


def _chosen(steps: Sequence[Step | Whole | _OfTask], asked: LadderQuestion) -> Step | Whole | _OfTask:
    """The step asked for, of this operator if the node has one; else of the steps that do the least beside
    what was asked for, the heaviest; else the first of the operator; else the first convolution, or of the
    operator with the most rungs. Raises InputError where there is nothing."""
    if not steps:
        raise InputError(f"model {asked.model} has no node that a ladder has rungs for")
    for wanted in ((asked.node,), asked.nodes):
        fit = [step for step in steps if set(wanted) & set(step.nodes)]
        if fit:
            of_op = [step for step in fit if step.op == asked.op]
            beside = [len(set(step.nodes) - set(wanted)) for step in fit]
            least = [step for step, count in zip(fit, beside, strict=True) if count == min(beside)]
            return max(of_op or least, key=lambda step: step.params.flops)
    fit = [step for step in steps if step.op == (asked.op or "conv")]
    # Of a model without it, what there is most to compare of.
    single = [step for step in steps if step.op != net.OP] or steps
    return fit[0] if fit else max(single, key=lambda step: len(_ours(asked, step.op)))


def _ours(asked: LadderQuestion, op: str) -> Sequence[registry.Rung]:
    return ladder_plan.ladder_of(_device(asked), op)


def _node(step: Step | Whole | _OfTask) -> NodeInfo:
    return NodeInfo(
        node=step.nodes[0],
        op=step.op,
        words=step.params.words,
        nodes=step.nodes,
        flops=step.params.flops,
    )


def _precisions(step: Step | Whole | _OfTask, rungs: Iterable[registry.Rung], device: str) -> tuple[str, ...]:
    """Of a whole net those that it can be asked to compute in."""
    if isinstance(step, Whole):
        return registry.precisions(device)
    return tuple(sorted({rung.precision for rung in rungs}, key=NAMES.index))


def _ladder(
    asked: LadderQuestion,
    device: str,
    step: Step | Whole | _OfTask,
    rungs: Sequence[registry.Rung],
    folders: Sequence[Path],
) -> Ladder:
    names = {rung.name for rung in rungs}
    job = ladder_plan.job_of(
        step.params,
        device,
        model=asked.model if not isinstance(step, _OfTask) else "",
        node=step.nodes[0] if not isinstance(step, _OfTask) else "",
        batch=asked.batch,
        precision=asked.precision if asked.precision in _precisions(step, rungs, device) else "",
        rungs=tuple(name for name in asked.rungs if name in names),
        kernel_dirs=tuple(map(str, folders)),
        whole_model=asked.whole_model and not isinstance(step, Whole | _OfTask),
    )
    return ladder_plan.plan(job, broken=[])


def _rung(rung: registry.Rung, step: Step | Whole | _OfTask, device: str, here: bool) -> RungInfo:
    if isinstance(step, Whole):  # what a net cannot have shows when it is prepared
        refused = numba_support.unavailable() if rung.compiled and here else None
    else:
        able = here and device in _usable(devices())
        refused = rung.refusal(step.params, capability(device) if able else None, here)
    return RungInfo(
        case=ladder_plan.case_of(rung),
        path=str(rung.path),
        source=rung.source,
        headers=tuple(str(header.path) for header in registry.headers(rung)),
        refused=(refused or "").removeprefix(f"{rung.label} "),
        template=ladder_template.of(rung) if rung.user else "",
        whole=isinstance(step, Whole | _OfTask),
        net=isinstance(step, Whole),
    )


def _folders(asked: Iterable[str]) -> tuple[list[Path], list[KernelProblem]]:
    """Those that are there, and a problem for each that is not."""
    there = [Path(name) for name in asked if Path(name).is_dir()]
    gone = [
        KernelProblem(path=name, reason="the folder of your own kernels does not exist any more")
        for name in asked
        if not Path(name).is_dir()
    ]
    return there, gone


def _problems(errors: Iterable[KernelscopeError]) -> list[KernelProblem]:
    """Which file each error is about: it begins with the file's path."""
    made = []
    for error in errors:
        path, colon, reason = str(error).partition(": ")
        file = Path(path)
        try:
            source = file.read_text(encoding="utf-8") if colon and file.is_file() else ""
        except (OSError, UnicodeDecodeError):
            source = ""
        made.append(KernelProblem(path=path if colon else "", reason=reason or path, source=source))
    return made
