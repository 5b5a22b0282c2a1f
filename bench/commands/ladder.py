"""`ladder`: every rung of one operator checked, timed beside the reference, and what each one gains."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.commands import measuring
from bench.commands.given import Given, command
from bench.run import options
from bench.words.called import CALLED

if TYPE_CHECKING:
    from bench.measure.net_operator import Net
    from bench.results.ladder_records import LadderJob
    from bench.run.kinds.ladder import LadderFolder
    from kernels.ops import Params


@command(options.LADDER, "ladder")
def ladder(
    given: Given,
    folder: Path | None = None,
    shape: tuple[int, ...] = (),
    stride: tuple[int, ...] = (1,),
    pad: tuple[int, ...] = (0,),
    dilation: tuple[int, ...] = (1,),
    group: int = 1,
    bias: bool = True,
    activation: str = "",
    new: bool = False,
    watch: bool = False,
    saves: Path | None = None,
    compile: bool = False,
    arch: tuple[str, ...] = (),
    simulate: bool = False,
    resume: Path | None = None,
    retry: bool = False,
    trust_kernels: bool = False,
    cluster: str = "",
    gpu: str = "",
    on: tuple[str, ...] = (),
    out: Path | None = None,
    charts: tuple[str, ...] = measuring.CHARTS,
    format: str = "table",
    junit: Path | None = None,
) -> int:
    """Check and time all kernels (rungs) of an operator.

    Those that are right are timed, and for each is said what it gains over the one below.
    On a node of a model, or on a shape of your own. The time to beat is the reference's for the same work.
    Exit code 0: all rungs right or refused; 1: one was wrong, crashed, hung or does not compile; 2: bad
    input; 130: cancelled.
    """
    import msgspec

    from bench.commands import ladder_compile as compiling
    from bench.questions import ladder_plan
    from bench.questions import rung_template as ladder_template
    from bench.run import elsewhere
    from bench.words.option import usual
    from kernels import gpus
    from kernels.errors import InputError

    if not cluster and "gpu" not in given.names:
        gpu = ""
    where = measuring.Where(cluster, gpu if cluster else "", on)
    if saves is not None:
        return _show_saves(saves, format)
    if resume is not None:
        given.refuse_others(
            _WITH_RESUME, "--resume goes on with the settings that the ladder was started with"
        )
        return go_on(resume, format, charts, trust_kernels, retry, where, junit)
    asked = usual(options.LADDER) | given.lasting | given.fields
    op, device, name = asked.pop("op"), asked.pop("device"), asked.pop("model", "")
    typed = op
    op, own = task_named(op, asked.get("kernel_dirs", ()))
    asked["kernel_dirs"] = own
    node, batch = asked.pop("node"), asked.pop("batch")
    ladder_plan.op_of(op, kernels=new or compile)
    if new:
        if folder is None:
            raise InputError("ladder --new needs the operator and a folder: ladder --new conv my_kernels")
        from kernels import tasks

        meant = device or ladder_plan.device_of("")
        path = ladder_template.write(op, meant, folder)
        print(path)
        here = meant in ladder_plan.usable()
        only = f"--device {meant} " if here or not compiling.lacking() else "--compile "
        rest = f"{only}--kernels {shlex.quote(str(folder))} --watch"
        on_model = _on(op)
        print(f"try it: {CALLED} ladder {shlex.quote(typed)} {on_model}{rest}", file=sys.stderr)
        judged = f"{CALLED} judge {shlex.quote(str(path))} {on_model}".rstrip()
        judged += f" --task {shlex.quote(typed)}" if tasks.own_folder(op) else ""
        if here:
            print(f"is it right, and how fast? {judged}", file=sys.stderr)
        elif only != "--compile ":
            print(f"is it right? {judged} --simulated", file=sys.stderr)
        return 0
    if folder is not None:
        raise InputError(
            f"{folder} is only read with --new; kernels of your own join by --kernels {folder}, "
            "architectures by --arch, as in --arch sm_80"
        )
    if gpu and not cluster:
        gpus.find(gpu)  # whose floor is to be told
        if not (simulate or (device == compiling.DEVICE and compiling.no_gpu(device))):
            raise InputError("--gpu belongs to --cluster, or to --device cuda on a machine without a GPU")
    elsewhere_or_net = on or cluster or op == "net"
    without = "" if elsewhere_or_net or compile else compiling.no_gpu(device)
    if without:
        compiling.instead(given, without)
    if compile:
        given.refuse_others(compiling.WITH_COMPILE, "--compile runs nothing and keeps nothing")
        if device not in ("", compiling.DEVICE):
            raise InputError(f"--compile is of CUDA kernels; leave --device {device} away")
    compile = compile or bool(without)
    if compile:
        asked["simulated"] = simulate or bool(without)
        runs_on = compiling.DEVICE
    else:
        runs_on = elsewhere.device(on[0], device) if on else ladder_plan.device_of(device)
    work = work_asked(op, runs_on, name, node, batch, shape, stride, pad, dilation, group, bias, activation)
    job = ladder_plan.job_of(
        work.params, runs_on, model=work.model, node=work.node, batch=work.batch, **asked
    )
    if job.tune and runs_on != "cuda":
        print("--tune searches what CUDA rungs list; on the CPU there is nothing to search", file=sys.stderr)
    if job.counts and runs_on != "cuda":
        print("--counts is of CUDA rungs; on the CPU there is nothing to count", file=sys.stderr)
        job = msgspec.structs.replace(job, counts=False)
    if job.kernel_dirs and (told := _left_out(job, named=bool(device or on))):
        print(told, file=sys.stderr)
    if compile:
        of = gpus.find(gpu) if gpu and job.simulated else None
        if watch:
            return compiling.watch(job, arch, of)
        return compiling.run(job, arch, format, of)
    if watch:
        from bench.commands import ladder_watch

        if len(on) > 1:
            raise InputError(f"--watch measures at one place; name one of {', '.join(on)}")

        return ladder_watch.watch(job, on)
    return climb(job, out, format, charts, where, junit)


def task_named(op: str, kernel_dirs: Sequence[str] = ()) -> tuple[str, tuple[str, ...]]:
    """The name of an operator or a task that was typed, and the folders of kernels: of a task of the user's,
    which is named by its folder, with that. Raises InputError."""
    from kernels import tasks

    tasks.learn(kernel_dirs)
    if tasks.is_known(op) or not (Path(op).is_dir() or Path(op).name == tasks.FILE):
        return op, tuple(kernel_dirs)
    record = tasks.find(op)
    folder = str(record.task.folder)
    if record.op in tasks.shipped():
        return record.op, tuple(kernel_dirs)
    return record.op, tuple(dict.fromkeys((folder, *kernel_dirs)))


@dataclass(frozen=True)
class Work:
    """What a ladder is climbed on, and where it comes from: "" for a shape given by hand."""

    params: Params | Net
    model: str
    node: str
    batch: int


def work_asked(
    op: str,
    device: str,
    model: str = "",
    node: str = "0",
    batch: int = 1,
    shape: tuple[int, ...] = (),
    stride: tuple[int, ...] = (1,),
    pad: tuple[int, ...] = (0,),
    dilation: tuple[int, ...] = (1,),
    group: int = 1,
    bias: bool = True,
    activation: str = "",
) -> Work:
    """The node of a model, or the convolution, that options ask for. Raises KernelscopeError."""
    from bench.measure.ladder.entrants import work_of
    from bench.questions import ladder_plan, model_questions
    from kernels import tasks
    from kernels.errors import InputError

    record = tasks.record_of(op) if op != "net" else None
    if record is not None and issubclass(record, tasks.TaskParams):
        if model:
            raise InputError(f"{op} is a task, which no model has; leave --model {model} away")
        return Work(ladder_plan.task_of(record, shape), "", "", 1)
    if shape:
        if model:
            raise InputError("--shape and --model say two things; give one of them")
        if op != "conv":
            raise InputError(f"--shape is of a conv; for {op} name a node: --model M --node NAME")
        conv = ladder_plan.conv_of(shape, stride, pad, dilation, group, bias, activation)
        return Work(conv, "", "", conv.n)
    model = model or ladder_plan.model_with(op, device)
    found = model_questions.node(model, op, node, batch, device)
    return Work(work_of(op, found.params), model, found.node, batch)


def _left_out(job: LadderJob, named: bool) -> str:
    """What whoever gave folders of kernels is to know of them: CUDA kernels that cannot run here (unless the
    device was named), or none at all; "" where there is nothing to say."""
    from bench.commands import ladder_compile as compiling
    from bench.questions import ladder_plan
    from kernels.errors import KernelError
    from kernels.languages.known import languages
    from kernels.registry import SUFFIX

    instead = job.device != compiling.DEVICE and not named  # of a GPU that is not there
    if instead and (told := compiling.hint(job.op, job.kernel_dirs)):
        return told
    broken: list[KernelError] = []
    if any(rung.user for rung in ladder_plan.rungs_of(job, broken)) or broken:
        return ""  # a file that is no rung is told by whoever reads it next
    folders, ending = " and ".join(job.kernel_dirs), SUFFIX[job.device]
    python = f", or NN_name.py with its language ({', '.join(languages())})" if job.device == "cuda" else ""
    return (
        f"there is no kernel for {job.op} on {job.device} in {folders}: it is called NN_name{ending}{python}"
        "; `ladder --new` writes one to begin from"
    )


def _show_saves(folder: Path, output: str) -> int:
    """The log of saves on standard output. The exit code."""
    from bench.results import saves as log
    from bench.views import show as views
    from bench.views.tables import save_tables as tables
    from bench.views.tables.grid import stacked
    from bench.views.tables.table import records, with_headings

    kept = log.read(folder)
    found = tables.table(kept)
    if not kept and output == "table":
        print(f"no saves yet; `ladder --watch --kernels {folder}` notes each in {folder / log.FILE}")
        return 0
    views.show(
        output,
        csv=lambda: [found],
        output=lambda: tables.saves_output(folder, records(found)),
        paper=lambda: with_headings(tables.readable(kept)),
        drawn=lambda: [stacked(tables.readable(kept))],
    )
    return 0


def _on(op: str) -> str:
    """The option that names a model, where the default one, which is small, has no node of this operator."""
    from bench.questions import ladder_plan
    from kernels import tasks
    from kernels.errors import InputError
    from models.names import DEFAULT_MODEL

    if tasks.folder_of(op) is not None:
        return ""
    try:
        ladder_plan.model_with(op, "cpu", (DEFAULT_MODEL,))
    except InputError:
        return "--model MODEL "
    return ""


def climb(
    job: LadderJob,
    out: Path | None,
    output: str,
    formats: Sequence[str],
    where: measuring.Where = measuring.HERE,
    junit: Path | None = None,
) -> int:
    """Run a ladder into its folder and show it. junit: the file that a CI server reads. The exit code."""
    from bench.questions import ladder_plan
    from bench.run.kinds.ladder import KIND as LADDER

    return _run(
        measuring.begin(LADDER, ladder_plan.plan(job), out), output, formats, where=where, junit=junit
    )


# What may be said beside --resume: everything else is in the ladder's folder.
_WITH_RESUME = {"resume", "retry", "trust-kernels", "cluster", "gpu", "on", "charts", "format", "junit"}


def go_on(
    path: Path,
    output: str,
    formats: Sequence[str],
    trusted: bool = False,
    retry: bool = False,
    where: measuring.Where = measuring.HERE,
    junit: Path | None = None,
) -> int:
    """Run what is missing of a ladder. The exit code. trusted: the user has agreed to run the kernels that it
    names. retry: what crashed or hung is missing too."""
    from bench.run.kinds.ladder import KIND as LADDER

    with measuring.gone_on(LADDER, path, None, trusted, retry) as folder:
        return _run(folder, output, formats, retry, where, junit)


def _run(
    folder: LadderFolder,
    output: str,
    formats: Sequence[str],
    retry: bool = False,
    where: measuring.Where = measuring.HERE,
    junit: Path | None = None,
) -> int:
    """Run the cases that are left, show all that there are, draw the charts. The exit code."""
    from bench.questions import ladder_plan
    from bench.results import saves
    from bench.results.store import write_atomically
    from bench.views.ladder import as_tests, show
    from kernels.errors import KernelscopeError

    sources = {}
    if folder.job.kernel_dirs:
        with contextlib.suppress(KernelscopeError):  # kernels that are not here, of a run from elsewhere
            sources = ladder_plan.sources(folder.job)
    outcome = measuring.measure([folder], retry, where)
    measurements = folder.measurements()
    saves.keep(folder.path, folder.header, measurements, sources)
    show(folder, output)
    if junit is not None:
        write_atomically(junit, as_tests(folder).encode())
    measuring.leave(folder, formats if measurements else ())
    right = any(m.disposition == "ok" and not m.case.is_reference for m in measurements)
    return outcome.status(right and all(m.disposition in ("ok", "unsupported") for m in measurements))
