"""`ladder`: every rung of one operator checked, timed beside the reference, and what each one gains."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from bench.ladder.kind import LadderFolder
    from bench.ladder.net import Net
    from bench.ladder.records import LadderJob
    from kernels.ops import Params


def ladder(
    context: typer.Context,
    op: str = typer.Argument("conv", metavar="OP", help="Operator: conv, gemm, pool, lrn, …, or net."),
    folder: Path | None = typer.Argument(None, metavar="[DIR]", help="With --new: where the template goes."),
    model: str = typer.Option(
        "", metavar="M", help="A model name or an .onnx file; default: one of the default comparison's."
    ),
    node: str = typer.Option(
        "0", metavar="NAME|INDEX", help="Its node: a name, or a number among its nodes of OP, from 0."
    ),
    shape: str = typer.Option("", metavar="N,C,H,W,M,K", help="conv: this shape instead of a model's node."),
    stride: str = typer.Option("1", metavar="S|H,W", help="With --shape."),
    pad: str = typer.Option("0", metavar="P|H,W|T,L,B,R", help="With --shape."),
    dilation: str = typer.Option("1", metavar="D|H,W", help="With --shape."),
    group: int = typer.Option(1, metavar="G", help="With --shape."),
    bias: bool = typer.Option(True, "--bias/--no-bias", help="With --shape."),
    activation: str = typer.Option("", metavar="A", help="With --shape: relu, tanh, sigmoid or relu6."),
    batch: int = typer.Option(1, metavar="N", help="With --model."),
    device: str = typer.Option("", metavar="cpu|cuda", help="Default: cuda where it can run, else cpu."),
    rung: list[str] = typer.Option([], metavar="N", help="A rung by number or name; may be repeated."),
    precision: str = typer.Option("", metavar="P", help="Only rungs in fp32 and in P: tf32, fp16, …"),
    kernels: list[str] = typer.Option([], metavar="DIR", help="Folder of your own kernels; may be repeated."),
    threads: int = typer.Option(
        0, metavar="N", show_default=False, help="CPU threads; default: one per core."
    ),
    l2: str = typer.Option("warm", metavar="warm|cold", help="State of the L2 cache before a pass."),
    budget: float = typer.Option(3.0, metavar="S", help="The most seconds of samples per rung."),
    timeout: float = typer.Option(
        60.0, metavar="S", help="Abandon a rung that is still running after S seconds."
    ),
    instances: int = typer.Option(
        0,
        metavar="N",
        show_default=False,
        help="Sessions of each rung at least, timed in turn; default: 3, and more where they are quickly "
        "made.",
    ),
    whole_model: bool = typer.Option(False, "--whole-model", help="Also run the model with each rung in it."),
    tune: bool = typer.Option(
        False, "--tune", help="First search the fastest of what CUDA rungs list under [tune], and keep it."
    ),
    new: bool = typer.Option(False, "--new", help="Write a template for your own kernel into DIR."),
    watch: bool = typer.Option(False, "--watch", help="Run your own rungs again whenever you save a file."),
    saves: Path | None = typer.Option(
        None,
        metavar="DIR",
        help="Show what each save in this folder of kernels gained or lost under --watch.",
    ),
    compile_only: bool = typer.Option(False, "--compile", help="Only compile the CUDA rungs: needs no GPU."),
    arch: str = typer.Option(
        "", metavar="A,A,…", help="With --compile: sm_80, …; default: this GPU's, or what a rung asks for."
    ),
    resume: Path | None = typer.Option(None, metavar="RUN", help="Continue an unfinished ladder."),
    retry: bool = typer.Option(
        False, "--retry", help="With --resume: also repeat what crashed or timed out."
    ),
    trust_kernels: bool = typer.Option(
        False, "--trust-kernels", help="With --resume: run the kernels of others that the ladder names."
    ),
    cluster: str = typer.Option(
        "", metavar="ADDRESS|local", help="Have a Ray cluster do it (needs the extra `cluster`)."
    ),
    gpu: str = typer.Option("", metavar="KIND", help="With --cluster: on this kind of GPU, such as H200."),
    out: Path | None = typer.Option(None, metavar="DIR", help="The folder; default: a dated one in ./runs."),
    charts: str = typer.Option("png,svg,pdf", metavar="F,F,…", help="Some of png, svg, pdf; or none."),
    output: str = typer.Option("table", "--format", metavar="table|csv|json|md", help="What goes to stdout."),
) -> None:
    """Check and time all kernels (rungs) of an operator.

    Those that are right are timed, and for each is said what it gains over the one below.
    On a node of a model, or on a shape of your own. The time to beat is the reference's for the same work.
    Exit code 0: all rungs right or refused; 1: one was wrong, crashed, hung or does not compile; 2: bad
    input; 130: cancelled.
    """
    from bench.commands import parsing
    from bench.ladder import compiling
    from bench.ladder import plan as ladder_plan
    from bench.ladder import template as ladder_template
    from bench.ladder.measure.entrants import work_of
    from bench.questions import model_questions
    from bench.results import trust
    from bench.show.table import FORMATS
    from kernels.errors import InputError

    if saves is not None:
        raise typer.Exit(_show_saves(saves, parsing.one_of(output, FORMATS, "format")))
    parsing.check_cluster(cluster, gpu)
    if resume is not None:
        parsing.refuse_settings(
            context, _WITH_RESUME, "--resume goes on with the settings that the ladder was started with"
        )
        wanted = parsing.one_of(output, FORMATS, "format"), parsing.formats(charts)
        raise typer.Exit(go_on(resume, *wanted, trust_kernels, retry, (cluster, gpu)))
    for option, given in ((trust.OPTION, trust_kernels), ("--retry", retry)):
        if given:
            raise InputError(f"{option} is of a ladder that is gone on with; give --resume too")
    ladder_plan.op_of(op, kernels=new or compile_only)
    if new:
        if folder is None:
            raise InputError("ladder --new needs the operator and a folder: ladder --new conv my_kernels")
        where = device if device in ladder_plan.DEVICES else ladder_plan.device_of(device)
        path = ladder_template.write(op, where, folder)
        print(path)
        only = "--compile " if where not in ladder_plan.usable() else f"--device {where} "
        rest = f"{only}--kernels {shlex.quote(str(folder))} --watch"
        print(f"try it: python main.py ladder {op} {_on(op)}{rest}", file=sys.stderr)
        raise typer.Exit(0)
    if compile_only:
        if folder is not None:
            raise InputError(
                f"--compile takes no {folder}; architectures are named by --arch, as in --arch sm_80"
            )
        parsing.refuse_settings(context, _WITH_COMPILE, "--compile runs nothing and keeps nothing")
        if device not in ("", compiling.DEVICE):
            raise InputError(f"--compile is of CUDA kernels; leave --device {device} away")
    elif arch:
        raise InputError("--arch says what --compile compiles for; give --compile too, or leave it away")
    if folder is not None:
        raise InputError(f"{folder} is only read with --new; kernels of your own join by --kernels {folder}")
    shown = parsing.one_of(output, FORMATS, "format")
    formats = parsing.formats(charts)
    where = compiling.DEVICE if compile_only else ladder_plan.device_of(device)
    name = model
    params: Params | Net
    if shape:
        if model:
            raise InputError("--shape and --model say two things; give one of them")
        if op != "conv":
            raise InputError(f"--shape is of a conv; for {op} name a node: --model M --node NAME")
        params = ladder_plan.conv_of(
            parsing.integers_of(shape, "shape"),
            parsing.integers_of(stride, "stride"),
            parsing.integers_of(pad, "pad"),
            parsing.integers_of(dilation, "dilation"),
            group,
            bias,
            activation,
        )
        node = ""
    else:
        name = model or ladder_plan.model_with(op, where)
        found = model_questions.node(name, op, node, batch, where)
        params, node = work_of(op, found.params), found.node
    job = ladder_plan.job_of(
        params,
        where,
        model=name,
        node=node,
        batch=batch if name else getattr(params, "n", 1),
        precision=precision,
        rungs=tuple(rung),
        kernel_dirs=tuple(str(Path(k).expanduser().absolute()) for k in kernels),
        whole_model=whole_model,
        tune=tune,
        threads=threads if parsing.given(context, "threads") else None,
        l2=parsing.one_of(l2, ("warm", "cold"), "L2 mode"),
        budget_s=budget,
        timeout_s=timeout,
        **({"instances": instances} if parsing.given(context, "instances") else {}),
    )
    if tune and where != "cuda":
        print("--tune searches what CUDA rungs list; on the CPU there is nothing to search", file=sys.stderr)
    if kernels and (told := _left_out(job, named=bool(device))):
        print(told, file=sys.stderr)
    if compile_only:
        archs = parsing.named([arch] if parsing.given(context, "arch") else [], "arch")
        if watch:
            raise typer.Exit(compiling.watch(job, archs))
        raise typer.Exit(compiling.run(job, archs, shown))
    if watch:
        from bench.ladder import watch as ladder_watch

        raise typer.Exit(ladder_watch.watch(job))
    raise typer.Exit(climb(job, out, shown, formats, (cluster, gpu)))


def _left_out(job: LadderJob, named: bool) -> str:
    """What whoever gave folders of kernels is to know of them: CUDA kernels that cannot run here (unless the
    device was named), or none at all; "" where there is nothing to say."""
    from bench.ladder import compiling
    from bench.ladder import plan as ladder_plan
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
    )


def _show_saves(folder: Path, output: str) -> int:
    """The log of saves on standard output. The exit code."""
    from bench.commands.terminal import console
    from bench.ladder import saves as log
    from bench.show.grid import stacked
    from bench.show.table import records, to_csv, to_json, with_headings

    kept = log.read(folder)
    found = log.table(kept)
    if output == "csv":
        sys.stdout.write(to_csv(found))
    elif output == "json":
        sys.stdout.write(to_json(log.saves_output(folder, records(found))))
    elif output == "md":
        sys.stdout.write(with_headings(log.readable(kept)))
    else:
        console().print(stacked(log.readable(kept)))
    return 0


def _on(op: str) -> str:
    """The option that names a model, where the default one, which is small, has no node of this operator."""
    from bench.ladder import plan as ladder_plan
    from kernels.errors import InputError
    from models.names import DEFAULT_MODEL

    try:
        ladder_plan.model_with(op, "cpu", (DEFAULT_MODEL,))
    except InputError:
        return "--model MODEL "
    return ""


HERE = ("", "")  # the address of a cluster, and on which kind of its GPUs


def climb(
    job: LadderJob, out: Path | None, output: str, formats: Sequence[str], where: tuple[str, str] = HERE
) -> int:
    """Run a ladder into its folder and show it. The exit code."""
    from bench.commands import measuring
    from bench.ladder import plan as ladder_plan
    from bench.ladder.kind import KIND as LADDER

    return _run(measuring.begin(LADDER, ladder_plan.plan(job), out), output, formats, where=where)


# What may be said beside --resume: everything else is in the ladder's folder.
_WITH_RESUME = {"resume", "retry", "trust_kernels", "output", "charts", "cluster", "gpu"}
# What may be said beside --compile: which rungs, on what, and how it is shown.
_WITH_COMPILE = {
    *("compile_only", "arch", "op", "model", "node", "batch", "shape", "stride", "pad", "dilation", "group"),
    *("bias", "activation", "device", "rung", "precision", "kernels", "watch", "output"),
}


def go_on(
    path: Path,
    output: str,
    formats: Sequence[str],
    trusted: bool = False,
    retry: bool = False,
    where: tuple[str, str] = HERE,
) -> int:
    """Run what is missing of a ladder. The exit code. trusted: the user has agreed to run the kernels that it
    names. retry: what crashed or hung is missing too."""
    from bench.commands import measuring
    from bench.ladder.kind import KIND as LADDER

    with measuring.gone_on(LADDER, path, None, trusted, retry) as folder:
        return _run(folder, output, formats, retry, where)


def _run(
    folder: LadderFolder,
    output: str,
    formats: Sequence[str],
    retry: bool = False,
    where: tuple[str, str] = HERE,
) -> int:
    """Run the cases that are left, show all that there are, draw the charts. The exit code."""
    from bench.commands import measuring
    from bench.ladder.show import charts as ladder_charts
    from bench.ladder.show import saved
    from bench.ladder.show.rows import rows
    from bench.show import draw_together

    outcome = measuring.measure([folder], retry, *where)
    measurements = folder.measurements()
    saved.print_tables(folder, measurements, output)
    print(f"ladder: {folder.path}", file=sys.stderr)
    if formats and measurements:
        made = ladder_charts.charts(folder.header, rows(folder.header, measurements))
        measuring.tell_charts(folder.path, len(draw_together.write(made, folder.path / "charts", formats)))
    measuring.tell_left(folder)
    measuring.tell_baseline(folder)
    right = any(m.disposition == "ok" and not m.case.is_reference for m in measurements)
    return outcome.status(right and all(m.disposition in ("ok", "unsupported") for m in measurements))


COMMAND = ladder  # as main.py finds it
