"""`selfcheck`: backends against themselves, which the comparison must not call faster or slower."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from bench.selfcheck import Comparison

CANCELLED = 130


def selfcheck(
    models: list[str] | None = typer.Argument(
        None, metavar="MODEL", help="Names of the catalogue or .onnx files; without one, lenet5-digits."
    ),
    backend: list[str] = typer.Option(
        [], metavar="NAME", help="May be repeated; without it, all that can run here."
    ),
    batch: str = typer.Option("1,16,128", metavar="N,N,…", help="Batch sizes; 1..1024 goes by doubling."),
    precision: str = typer.Option("fp32", metavar="P,P,…", help="Of fp32, fp32-tc, tf32, fp16."),
    times: int = typer.Option(40, metavar="N", help="Comparisons in all; the cases take turns."),
    budget: float = typer.Option(15.0, metavar="S", help="The most seconds of samples a side."),
    threads: int | None = typer.Option(None, metavar="N", help="CPU threads; without it, one a core."),
    l2: str = typer.Option("warm", metavar="warm|cold", help="State of the L2 cache before a pass."),
    seed: int = typer.Option(0, metavar="N", min=0, help="Draws inputs and the order of turns."),
) -> None:
    """Compare backends with themselves, as `compare` compares them with each other.

    Exit code 0: at most 5 % of the comparisons say faster or slower; 1: more do.
    """
    from bench import selfcheck as check
    from bench.commands import parsing
    from bench.commands.terminal import console
    from bench.progress import callback
    from bench.records import Job
    from bench.stats import Verdict
    from bench.timing import Rules
    from kernels.errors import InputError

    if times < 1:
        raise InputError(f"--times {times} compares nothing; 1 or more works, and 40 say something")
    job = Job(
        models=tuple(models or ("lenet5-digits",)),
        backends=parsing.named(backend, "backend"),
        precisions=parsing.names([precision]),
        batches=parsing.integers(batch, "batch"),
        threads=threads,
        l2=parsing.one_of(l2, ("warm", "cold"), "L2 mode"),  # type: ignore[arg-type]
        budget_s=budget,
        seed=seed,
    )
    progress = callback()
    planned = check.plan(job, progress)
    rules = Rules(budget_s=job.budget_s, cold=job.l2 == "cold")
    found: list[Comparison] = []
    try:
        for comparison in check.run(planned, times, rules, check.Contenders(job, progress), seed):
            found.append(comparison)
            told = f"{comparison.case.words}: {comparison.verdict}, {comparison.ratio}"
            print(f"[{len(found)}/{times}] {told}", file=sys.stderr)
    except KeyboardInterrupt:
        print("cancelled", file=sys.stderr)
        if found:
            console().print(table(found))
        raise typer.Exit(CANCELLED) from None
    console().print(table(found))
    came_to = check.summary(found)
    unclear = came_to.verdicts.get(Verdict.UNCLEAR, 0)
    print(
        f"Of {came_to.comparisons} comparisons of a backend with itself {came_to.wrong} say faster or slower "
        f"(at most {came_to.allowed} may, {check.ALLOWED:.0%}) and {unclear} unclear: "
        f"{'passed' if came_to.passed else 'failed'}."
    )
    raise typer.Exit(0 if came_to.passed else 1)


def table(found: Sequence[Comparison]) -> RenderableType:
    """Verdicts by case, and all of them."""
    from rich import box
    from rich.table import Table

    from bench import units
    from bench.rows import label, title
    from bench.selfcheck import summary
    from bench.stats import Verdict

    made = Table("model", "backend", box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in ("batch", "compared", *(verdict.lower() for verdict in Verdict), "largest off", "interval ±"):
        made.add_column(name, justify="right")
    by_case: dict[tuple[str, str, str], list[Comparison]] = {}
    for comparison in found:
        case = comparison.case
        names = (title(case.model), label(case.backend, case.precision), f"{case.batch:,}")
        by_case.setdefault(names, []).append(comparison)
    for names, own in [*by_case.items(), (("all", "", ""), found)]:
        came_to = summary(own)
        if names[0] == "all":
            made.add_section()
        made.add_row(
            *names,
            str(came_to.comparisons),
            *(str(came_to.verdicts.get(verdict, 0)) for verdict in Verdict),
            units.percent(came_to.largest_off),
            units.percent(came_to.half_width) if math.isfinite(came_to.half_width) else "not known",
        )
    return made
