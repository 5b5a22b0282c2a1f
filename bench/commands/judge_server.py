"""Judges kernels that a program hands over, one after the other (`judge --serve`): requests on standard
input, answers on standard output, a line of JSON each.

Each kernel has a worker of its own, which was started before (bench.run.warm): nothing that a kernel does to
its process reaches the next one.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from bench.commands.given import read
from bench.commands.ladder import work_asked
from bench.measure.outcomes import trace
from bench.measure.parent_channel import ParentChannel
from bench.questions import given_kernel, ladder_plan
from bench.questions.given_kernel import GivenKernel
from bench.results.ladder_records import Ladder, RungCase, RungMeasurement
from bench.results.messages import CaseStarted, Log, Message, Progress
from bench.results.records import compared_in
from bench.run import options
from bench.run.kinds.ladder import KIND as LADDER
from bench.run.warm import Warm
from bench.views.tables import judgement_tables
from bench.views.tables.judgement_tables import JudgementOutput
from bench.words.option import usual
from bench.words.version import version
from engine.machine import driver
from kernels import registry, tasks
from kernels.errors import InputError, KernelError, KernelscopeError, UnavailableError, UnsupportedError
from kernels.registry import Rung

OF_THE_COMMAND = ("serve", "junit", "format", "baseline")  # options that no request has
BEST = "best"  # by which --beside names the rung that the engine takes by itself


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A line that `judge --serve` reads. id: comes back with the answer. file: of the kernel; text: its text,
    where the file is not to be read (then `file` is its name, or ""). options: those of the command, by name
    without dashes; each the texts that one would type, or whether a switch is on. baseline: an earlier
    judgement that the kernel is held against."""

    id: int
    file: str = ""
    text: str | None = None
    options: dict[str, bool | tuple[str, ...]] = {}
    baseline: JudgementOutput | None = None


class Ready(Message, frozen=True, tag="ready"):
    """The first line: it reads requests. kernelscope: its version."""

    kernelscope: str


class Said(Message, frozen=True, tag="said"):
    """What it is at, or a warning, while it judges the request `id`."""

    id: int
    text: str
    level: str = "progress"


class Judged(Message, frozen=True, tag="judged"):
    """The answer to a request."""

    id: int
    judgement: JudgementOutput


class Refused(Message, frozen=True, tag="refused"):
    """A request that cannot be judged, because of what was asked and not because of the kernel. exit_code: as
    of the command."""

    id: int
    reason: str
    exit_code: int


@dataclass(frozen=True)
class Asked:
    """How a kernel is judged. fields: of the job, as the options set them; conv: the options of a convolution
    of one's own, by name; beside: rungs that are timed, too; reference: whether it is; baseline: an earlier
    judgement to hold it against; task: by name or folder, what it is a kernel of."""

    fields: dict[str, Any]
    conv: dict[str, Any]
    beside: tuple[str, ...] = ()
    reference: bool = True
    baseline: JudgementOutput | None = None
    task: str = ""


def judged_by(
    warm: Warm[Ladder, RungMeasurement],
    kernel: GivenKernel,
    asked: Asked,
    on_event: Callable[[Any], None],
    on_said: Callable[[tuple[str, ...]], None] = lambda _: None,
) -> JudgementOutput:
    """Judge a kernel in a worker of `warm`. on_said: gets the first lines that came on standard error. Raises
    KernelscopeError for what is asked for and cannot be had, KeyboardInterrupt where it was cancelled."""
    began = time.monotonic()
    op, device = asked.fields["op"], asked.fields["device"]
    if asked.task:
        of_task = tasks.find(asked.task)
        if op not in ("", of_task.op):
            raise InputError(f"--op {op} and --task {asked.task} say two things; give one of them")
        op = of_task.op
    with tempfile.TemporaryDirectory(prefix="kernelscope-", ignore_cleanup_errors=True) as folder:
        try:
            rung = given_kernel.placed(kernel, Path(folder), op, device)
        except KernelError as error:
            why = str(error).replace(f"{folder}/", "")
            name = Path(kernel.file).stem or given_kernel.NAME
            return judgement_tables.no_kernel(name, op, device, why, time.monotonic() - began)
        ladder = _planned(rung, asked)
        if asked.baseline is not None:
            judgement_tables.check_baseline(asked.baseline, ladder, rung.precision)
        failed = threading.Event()

        def hear(event: Any) -> None:
            # Of a kernel that is wrong nobody wants to know how fast the reference is.
            if isinstance(event, LADDER.line) and event.case.rung == rung.name and event.disposition != "ok":
                failed.set()
            on_event(event)

        ran = warm.run(ladder, hear, failed)
    if ran.outcome.cancelled and not failed.is_set():
        raise KeyboardInterrupt
    if not any(m.case.rung == rung.name for m in ran.measurements):
        raise UnavailableError(ran.outcome.reason or "the worker ended without judging the kernel")
    on_said(ran.said)
    took_s = time.monotonic() - began
    judged = judgement_tables.judgement(ran.header, ran.measurements, rung.name, took_s)
    judged = msgspec.structs.replace(judged, why=judged.why.replace(f"{folder}/", ""))  # which is gone
    return judged if asked.baseline is None else judgement_tables.with_baseline(judged, asked.baseline)


def _planned(rung: Rung, asked: Asked) -> Ladder:
    """The ladder of one kernel, and of what is timed beside it."""
    simulated = asked.fields.get("simulated", False)
    if simulated:
        _check_simulated(rung, asked)
    else:
        ladder_plan.device_of(rung.device)
    fields = {name: value for name, value in asked.fields.items() if name not in ("op", "device")}
    model, node, batch = fields.pop("model", ""), fields.pop("node"), fields.pop("batch")
    work = work_asked(rung.op, rung.device, model, node, batch, **asked.conv)
    names = [rung.name, *(name for name in asked.beside if name != BEST)]
    if BEST in asked.beside:
        gpu = driver.device() if rung.device == "cuda" else None
        params: Any = work.params
        names.append(
            registry.default(rung.device, params, gpu.capability if gpu else None, rung.precision).name
        )
    job = ladder_plan.job_of(
        work.params,
        rung.device,
        model=work.model,
        node=work.node,
        batch=work.batch,
        rungs=tuple(dict.fromkeys(names)),
        kernel_dirs=tuple(dict.fromkeys((str(rung.path.parent), *_task_folder(rung.op)))),
        limits_kept=True,
        **fields,
    )
    found = ladder_plan.plan(job, broken=[])
    own = compared_in(rung.precision) if asked.reference and not simulated else ""

    def wanted(case: RungCase) -> bool:
        return not case.is_reference or case.precision == own

    return msgspec.structs.replace(
        found,
        cases=tuple(filter(wanted, found.cases)),
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _task_folder(op: str) -> tuple[str, ...]:
    """The folder of a user's task, which is among those of his kernels."""
    folder = tasks.folder_of(op)
    return () if folder is None or op in tasks.shipped() else (str(folder),)


def _check_simulated(rung: Rung, asked: Asked) -> None:
    """Raises InputError for what has nothing to do with a kernel that is not timed, UnavailableError where
    nothing can run it here."""
    from bench.measure.ladder import simulated

    if rung.device != "cuda":
        raise InputError("--simulated is of CUDA kernels; one for the CPU is judged here as it is")
    if asked.beside or asked.baseline is not None:
        given = "--beside" if asked.beside else "a baseline"
        raise InputError(f"--simulated times nothing that could be compared; leave {given} away")
    if missing := simulated.missing():
        raise UnavailableError(f"CUDA kernels cannot be simulated here; {missing}")


def serve() -> int:
    """Answer requests until standard input ends. The exit code."""
    channel = ParentChannel()  # nothing else that is printed goes to standard output
    with Warm(LADDER) as warm:
        warm.start()
        channel.say(Ready(kernelscope=version()))
        for line in sys.stdin.buffer:
            channel.say(_answer(warm, line, channel.say))
    return 0


def _answer(warm: Warm[Ladder, RungMeasurement], line: bytes, say: Callable[[Any], None]) -> Judged | Refused:
    """The answer to one line."""
    try:
        request = msgspec.json.decode(line, type=Request)
    except msgspec.DecodeError as error:
        return Refused(id=-1, reason=f"a request that cannot be read: {error}", exit_code=2)

    def tell(event: Any) -> None:
        match event:
            case CaseStarted(case=case, stage=stage):
                say(Said(id=request.id, text=f"{stage} {case.words}"))
            case Progress(text=text):
                say(Said(id=request.id, text=text))
            case Log(level=level, text=text) if level in ("warning", "error"):
                say(Said(id=request.id, text=text, level=level))

    try:
        typed = {name.replace("-", "_"): value for name, value in request.options.items()}
        known = {
            option.parameter
            for option in options.JUDGE
            if not option.argument and option.name not in OF_THE_COMMAND
        }
        for name in sorted(typed.keys() - known):
            raise InputError(f"judge has no option {name}; it has {', '.join(sorted(known))}")
        given, others = read(
            options.JUDGE,
            {name: list(value) if isinstance(value, tuple) else value for name, value in typed.items()},
        )
        asked = Asked(
            usual(options.JUDGE) | given.fields,
            {name: value for name, value in others.items() if name not in ("beside", "reference", "task")},
            others.get("beside", ()),
            others.get("reference", True),
            request.baseline,
            others.get("task", ""),
        )
        judged = judged_by(warm, GivenKernel(text=request.text, file=request.file), asked, tell)
    except KernelscopeError as error:
        to_be_had = not isinstance(error, InputError | UnsupportedError | UnavailableError)
        return Refused(id=request.id, reason=str(error), exit_code=1 if to_be_had else 2)
    except Exception as error:  # a bug of ours costs this answer, and not the ones to come
        print(trace(error), file=sys.stderr)
        return Refused(id=request.id, reason=f"{type(error).__name__}: {error}", exit_code=1)
    return Judged(id=request.id, judgement=judged)
