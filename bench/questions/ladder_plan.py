"""What the user typed → a LadderJob and its cases: a node of a model or a shape, and the rungs that there
are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import msgspec

from bench.measure import cases as comparison
from bench.measure import net_operator as net
from bench.measure.answers import one_node
from bench.measure.images import model_file
from bench.measure.ladder.entrants import ENGINES, job_work
from bench.measure.net_operator import Net, Whole
from bench.results.ladder_records import OF_FUNCTION, OF_LIBRARY, REFERENCE, Ladder, LadderJob, RungCase
from bench.results.records import Job, compared_in
from bench.run import options
from bench.run.defaults import JOB
from bench.words.option import by_name, check, one_of
from engine import backends, net_rungs
from engine.backend import Options
from engine.graph.graph import Graph
from engine.graph.plan import Step
from engine.planning import planner
from kernels import registry
from kernels.errors import InputError, KernelError
from kernels.languages.known import languages
from kernels.nearest import did_you_mean
from kernels.ops import ACTIVATIONS, OPS, Params, sized
from kernels.ops.conv import Conv
from kernels.precision import FP32, NAMES
from kernels.registry import Rung
from kernels.tasks import TaskParams, is_known, learn, record_of, reference, shipped
from kernels.tasks.record import of
from kernels.tasks.spec import Task, unfit

DEVICES = tuple(ENGINES)
WITHOUT_GPU = (
    "on the CPU `ladder --device cuda` and `judge --simulated` judge them all the same, without times, and "
    "`ladder --compile` compiles them"
)


def device_of(asked: str) -> str:
    """The device asked for, else "cuda" where it can run, else "cpu". Raises InputError."""
    if asked:
        if reason := backends.get(ENGINES[one_of(asked, DEVICES, "device")]).unavailable():
            instead = f"; {WITHOUT_GPU}" if asked == "cuda" else ""
            raise InputError(f"kernels for {asked} cannot run here: {reason}{instead}")
        return asked
    return "cuda" if "cuda" in usable() else "cpu"


def usable() -> tuple[str, ...]:
    """The devices that a ladder can run on here."""
    return tuple(name for name in DEVICES if backends.get(ENGINES[name]).unavailable() is None)


def conv_of(
    shape: Sequence[int],
    stride: Sequence[int] = (1,),
    pad: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    group: int = 1,
    bias: bool = True,
    activation: str = "",
) -> Conv:
    """A convolution from N,C,H,W,M,K (or …,KH,KW), stride and dilation of one or two numbers, pad of one,
    two (height, width) or four (top, left, bottom, right). Raises InputError, one sentence."""
    if len(shape) not in (6, 7) or min(shape) < 1:
        raise InputError("--shape is N,C,H,W,M,K (or N,C,H,W,M,KH,KW), whole numbers from 1 upwards")
    n, c, h, w, m, kh = shape[:6]
    kw = shape[6] if len(shape) == 7 else kh
    pads = {1: tuple(pad) * 4, 2: tuple(pad) * 2, 4: tuple(pad)}.get(len(pad))
    if pads is None or min(pads) < 0:
        raise InputError("--pad is P, H,W or TOP,LEFT,BOTTOM,RIGHT, whole numbers from 0 upwards")
    (stride_h, stride_w), (dilation_h, dilation_w) = _pair(stride, "stride"), _pair(dilation, "dilation")
    if group < 1 or c % group or m % group:
        raise InputError(f"--group {group} does not divide the {c} input and {m} output channels")
    if activation:
        one_of(activation, ACTIVATIONS, "activation")
    made = Conv(
        n=n, c=c, h=h, w=w, m=m, kh=kh, kw=kw, out_h=0, out_w=0, stride_h=stride_h, stride_w=stride_w,
        pad_top=pads[0], pad_left=pads[1], pad_bottom=pads[2], pad_right=pads[3],
        dilation_h=dilation_h, dilation_w=dilation_w, group=group, bias=bias, activation=activation or None,
    )  # fmt: skip
    reach = (kh - 1) * dilation_h + 1, (kw - 1) * dilation_w + 1
    padded = h + pads[0] + pads[2], w + pads[1] + pads[3]
    if reach[0] > padded[0] or reach[1] > padded[1]:
        raise InputError(
            f"a kernel that reaches over {reach[0]}×{reach[1]} does not fit an image of "
            f"{padded[0]}×{padded[1]} with its padding"
        )
    return sized(made)


def _pair(values: Sequence[int], what: str) -> tuple[int, int]:
    if len(values) not in (1, 2) or min(values) < 1:
        raise InputError(f"--{what} is one number or two, H,W, from 1 upwards")
    return values[0], values[-1]


def steps_of(graph: Graph, batch: int, device: str) -> tuple[Step | Whole, ...]:
    """The steps of a model as ladders have them: an operator that can share a step with another has one of
    its own, and where they can, the two have one together before them; the whole net at the end. Raises
    InputError, UnsupportedError."""
    apart, joined = (
        planner.plan(graph, batch, device, options=Options(), joined=joined).steps for joined in (False, True)
    )
    alone = {(step.op, step.nodes) for step in apart}
    before = {step.nodes[0]: step for step in joined if (step.op, step.nodes) not in alone}
    found: list[Step] = []
    for step in apart:
        found += [before[step.nodes[0]]] if step.nodes[0] in before else []
        found.append(step)
    return (*found, net.whole(graph, batch, device))


def model_with(op: str, device: str, models: Sequence[str] = JOB.models) -> str:
    """What a ladder is climbed on where no model is named: the first of the default comparison's that has a
    node of this op. Raises InputError where none has."""
    for model in models:
        path = comparison.model_spec(model, Job(models=(model,), backends=())).file(None)
        if any(step.op == op for step in steps_of(model_file.read(path).graph, 1, device)):
            return model
    raise InputError(f"{' and '.join(models)} have no {op}; name a model that has one by --model")


def node_of(model: str, op: str, node: str, batch: int, device: str) -> tuple[Step | Whole, Path]:
    """The step of a model that covers a node, by the node's name or its 0-based index among this op's, and
    the model's file. Raises InputError naming those there are, ModelError, UnsupportedError."""
    by_name(options.LADDER, "batch").value.check(batch, "batch")
    spec = comparison.model_spec(model, Job(models=(model,), backends=()))
    path = spec.file(None)
    of_model = steps_of(model_file.read(path).graph, batch, device)
    steps = [step for step in of_model if step.op == op]
    if not steps:
        raise InputError(
            f"model {spec.name} has no {op}, it has {', '.join(sorted({s.op for s in of_model}))}; name one "
            "that has by --model"
        )
    if node.isdecimal() and not any(node in step.nodes for step in steps):
        if int(node) < len(steps):
            return steps[int(node)], path
        raise InputError(f"model {spec.name} has {len(steps)} nodes of {op}, counted from 0: no {node}")
    for step in steps:
        if node in step.nodes:
            return step, path
    known = [step.nodes[0] for step in steps]
    hint = did_you_mean(node, known)
    raise InputError(f"model {spec.name} has no {op} {node!r}{hint}; there are {', '.join(known)}")


def job_of(params: Params | Net, device: str, **fields: Any) -> LadderJob:
    """A job on these params, its title in words. Raises InputError for what means nothing."""
    fields = {"instances": options.INSTANCES} | fields
    if isinstance(params, Net):
        for asked in ("whole_model", "tune"):
            if fields.get(asked):
                option = f"--{asked.replace('_', '-')}"
                raise InputError(f"{option} is of one operator's rungs; {net.OP} is all of a model")
        fields["precision"] = fields.get("precision") or FP32  # that of all its rungs
    job = LadderJob(op=params.op, params=asdict(params), device=device, **fields)
    check(job, options.LADDER)
    if job.whole_model and not job.model:
        raise InputError("--whole-model needs --model and --node")
    where = f"{Path(job.model).stem} {job.node}, batch {job.batch}: " if job.model else ""
    return msgspec.structs.replace(job, title=where + params.words)


def plan(job: LadderJob, broken: list[KernelError] | None = None) -> Ladder:
    """The ladder of a job: its cases in the order of the rungs, then the reference in each precision that a
    rung has (fp32-tc is held against fp32's); whole models after.

    Raises InputError for a rung or a precision that is not there, and naming a file of the user's that is no
    rung; with a list `broken` that file's error is put there.
    """
    ladder = rungs_of(job, broken)
    if job.rungs:
        wanted = [rung_of(job, name) for name in job.rungs]
        ladder = tuple(rung for rung in ladder if rung in wanted)
    elif job.precision and job.op != net.OP:
        computed = sorted({rung.precision for rung in ladder}, key=NAMES.index)
        if job.precision not in computed:
            raise InputError(
                f"no rung of {job.op} on {job.device} computes in {job.precision}; they compute in "
                f"{', '.join(computed)}"
            )
        ladder = tuple(rung for rung in ladder if rung.precision in (FP32, job.precision))
    cases = [case_of(rung) for rung in ladder]
    work = job_work(job)
    title = beside(work, job.device)
    is_model = isinstance(work, Net) or one_node.is_graph(work)
    held_against = {compared_in(rung.precision) for rung in ladder}
    held_against |= {FP32} if job.op != net.OP else set()
    held_against |= {compared_in(job.precision)} if job.precision else set()
    cases += [
        RungCase(rung=REFERENCE, scope="reference", idea=title, precision=precision)
        for precision in NAMES
        if precision in held_against and title and (is_model or precision == FP32)
    ]
    if job.whole_model:
        cases += [msgspec.structs.replace(case, scope="model") for case in cases]
    return Ladder(
        job=job,
        cases=tuple(cases),
        flops=work.flops,
        nbytes=work.nbytes,
        unread=work.unread,
        # A rung alone is given float32, and gives that.
        least_nbytes={precision: work.least_nbytes(precision, given=True) for precision in NAMES},
        reference=title,
    )


def beside(work: Params | Net, device: str) -> str:
    """The title of what kernels for this work are timed beside; "" where there is nothing. The reference of a
    task that is a function is no rival of a GPU."""
    if isinstance(work, Net) or one_node.is_graph(work):
        return backends.get(backends.get(ENGINES[device]).reference).title
    assert isinstance(work, TaskParams)
    if device == "cpu":
        return OF_FUNCTION.format(reference.library(work.task))
    return OF_LIBRARY if work.task.function is not None else ""


def rungs_of(job: LadderJob, broken: list[KernelError] | None = None) -> tuple[Rung, ...]:
    """The rungs of a job's operator and device, ours and the user's. Raises as `plan` does."""
    try:
        return ladder_of(job.device, job.op, job.kernel_dirs, broken, job.precision)
    except KernelError as error:
        raise InputError(str(error)) from error


def ladder_of(
    device: str,
    op: str,
    kernel_dirs: Sequence[str | Path] = (),
    broken: list[KernelError] | None = None,
    precision: str = "",
) -> tuple[Rung, ...]:
    """The rungs of an operator, or of a whole net in this precision. Raises as kernels.registry.rungs."""
    if op == net.OP:
        return net_rungs.rungs(device, precision or FP32)
    return registry.rungs(device, op, [Path(folder) for folder in kernel_dirs], broken)


def rung_of(job: LadderJob, name: str) -> Rung:
    """One of a job's rungs. Another file of the user's that is no rung is no fault of this one. Raises
    InputError."""
    if job.op == net.OP:
        return net_rungs.find(job.device, name, job.precision or FP32)
    dirs = [Path(d) for d in job.kernel_dirs]
    return registry.find(job.device, job.op, name, dirs, broken=[], precision=job.precision or "")


def case_of(rung: Rung) -> RungCase:
    """The case of a rung's own."""
    return RungCase(
        rung=rung.name,
        number=rung.number,
        user=rung.user,
        side=rung.side,
        idea=rung.idea,
        precision=rung.precision,
        yardstick=rung.yardstick,
        language=languages()[rung.language].title if rung.language else "",
    )


def op_of(name: str, kernels: bool = True) -> str:
    """An operator of the ladder by name; `kernels`: one that has kernels of its own, which a whole net has
    not. Raises InputError with the nearest."""
    if kernels and name == net.OP:
        raise InputError(f"{net.OP} has no kernels but those of other operators; name one of these")
    return name if is_known(name) else one_of(name, (*OPS, *shipped(), net.OP), "operator or task")


def task_of(record: type[TaskParams], shape: Sequence[int] = ()) -> TaskParams:
    """A task of these sizes, in the order of its symbols; () those that it is timed on first. Raises
    InputError."""
    spec = record.task.spec
    if not shape:
        return record(**spec.time[0])
    if len(shape) != len(spec.symbols):
        named = ",".join(spec.symbols)
        raise InputError(f"--shape of {record.op} is {named}: {len(spec.symbols)} whole numbers")
    sizes = dict(zip(spec.symbols, shape, strict=True))
    for told in unfit(spec, sizes):
        raise InputError(f"--shape of {record.op} ({','.join(spec.symbols)}): {told}")
    return record(**sizes)


def task_now(job: LadderJob) -> Task | None:
    """The task that a job is climbed on, as its files say it now; None of an operator. Another folder that
    is no task is no fault of this one. Raises InputError."""
    learn(folder for folder in job.kernel_dirs if Path(folder).resolve().name == job.op)
    record = record_of(job.op) if job.op != net.OP else None
    return record.task if record is not None and issubclass(record, TaskParams) else None


def on_task(job: LadderJob, before: Task, now: Task) -> LadderJob:
    """A job on a task whose files have changed: on the same sizes, but for the first of those it was timed
    on, and for sizes that it has no longer."""
    sizes = cast("dict[str, int]", job.params)
    kept = sizes != before.spec.time[0] and not any(unfit(now.spec, sizes))
    return job_of(of(now)(**(sizes if kept else now.spec.time[0])), job.device, **_beside_params(job))


def _beside_params(job: LadderJob) -> dict[str, Any]:
    derived = ("op", "params", "device", "title")
    return {name: getattr(job, name) for name in job.__struct_fields__ if name not in derived}


def sources(job: LadderJob) -> dict[str, str]:
    """The text of every rung that the job's ladder has, by its name."""
    return {rung.name: rung.source for rung in rungs_of(job)}
