"""A CUDA rung on a machine without a GPU: it runs on the CPU (engine.cuda.simulated), is judged as every rung
is, and what it costs is counted. There are no times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec
import numpy as np

from bench import judge
from bench.measure.answers import of_tasks, samples
from bench.measure.ladder import counts
from bench.results.ladder_records import COUNTS, FLOOR, FLOOR_S, RungMeasurement
from bench.words.version import requirements
from engine.cuda.simulated import SimulatedRungSession
from engine.rung_session import POISONS
from kernels import gpus, numba_support, nvrtc
from kernels.environment import installing
from kernels.errors import KernelError, KernelscopeError, UnsupportedError
from kernels.gpus import Gpu
from kernels.ops import Params
from kernels.ptx.program import Report
from kernels.ptx.reads import Reads
from kernels.registry import Rung
from kernels.tasks import TaskParams

PADDINGS = (1, 2, 4)  # elements by which rows of an array in shared memory are made longer
PASSES = 6  # that follow each other as if they were timed
MOST_PRINTED = 10  # lines
MOST_FLOPS = 20_000_000  # of a shape that is run here
MOST_MOVED = 1 << 21  # numbers that a task reads and writes there


def missing() -> str:
    """Why no CUDA kernel can be run on this machine's CPU, with the command that mends it; "" if one can."""
    if nvrtc.unavailable():
        mends = installing(*requirements("nvrtc"))
        return f"to run them on the CPU takes NVIDIA's compiler: {mends} brings it"
    if reason := numba_support.unavailable():
        mends = installing(*requirements("numba"))
        return f"to run them on the CPU takes Numba ({reason}): {mends} brings it"
    return ""


def shape(rung: Rung, params: Params) -> Params:
    """What is run of a rung: `params`, or, where that takes too long here, its largest small shape; of a task
    the largest of the sizes that it is timed on elsewhere, if that does not."""
    small = [each.params for each in samples.small_shapes(rung, params)]
    if _short(params) or not small:
        return params
    timed = of_tasks.timed(params) if isinstance(params, TaskParams) else []
    able = [of for of in timed if _short(of) and rung.refusal(of, here=False) is None]
    return max(able, key=lambda of: of.nbytes, default=small[-1])


def _short(params: Params) -> bool:
    """Whether a pass can be run here. What a task's kernels do is known by what they move, too."""
    moved = params.nbytes // 4 if isinstance(params, TaskParams) else 0
    return params.flops <= MOST_FLOPS and moved <= MOST_MOVED


def judged(
    rung: Rung,
    params: Params,
    measured: RungMeasurement,
    seed: int = 0,
    quick: bool = False,
    arch: str = "",
) -> RungMeasurement:
    """What running it adds to a rung that compiles (bench.measure.ladder.compiled). arch: for which its code
    is made ("": the oldest that has all it needs)."""
    if measured.disposition != "ok":
        return measured
    if reason := missing():
        return _not_run(measured, reason)
    ran, how = shape(rung, params), arch or True
    try:
        with judge.examine(rung, ran, rung.precision, seed=seed, quick=quick, simulated=how) as trial:
            assert isinstance(trial.session, SimulatedRungSession)
            if failure := trial.check_unprepared("as if it were timed", PASSES):
                raise judge.Wrong(failure.finding, failure.error_map, failure)
            report, error, checks, notes = trial.session.report, trial.error, trial.checks, trial.notes
            found = counts.sentences(report, ran.words, rung.source, _reads(trial.session))
            if rung.user:
                found += _printed(report)
                found += _tried(rung, ran, report, trial)
    except judge.Wrong as wrong:
        finding = wrong.finding
        reason = f"{finding.reason} ({finding.when}, on {finding.params})"
        return msgspec.structs.replace(
            measured, disposition="incorrect", reason=reason, finding=finding, error=finding.error
        )
    except UnsupportedError as error_:
        return _not_run(measured, str(error_).removeprefix(f"{rung.label}: "))
    except KernelError as error_:
        return msgspec.structs.replace(measured, disposition="failed", reason=str(error_))
    if ran is not params:
        notes = ["run on small shapes only; the one that was asked for takes too long without a GPU", *notes]
    return msgspec.structs.replace(
        _noted(measured, *notes),
        error=error,
        checks=checks,
        counted=counts.totals(report),
        facts={**measured.facts, COUNTS: "\n".join(found)},
    )


def _printed(report: Report) -> list[str]:
    """What the kernel printed in the pass that was counted: the first lines, each once."""
    said = ("".join(c if c.isprintable() else " " for c in one.text).strip() for one in report.printed)
    texts = list(dict.fromkeys(said))
    more = ", and more" if len(texts) > MOST_PRINTED else ""
    return [f"printed: {' · '.join(texts[:MOST_PRINTED])}{more}"] if texts else []


def _reads(session: SimulatedRungSession) -> Mapping[tuple[str, int], Reads]:
    """What a block reads; nothing where that cannot be found out, which is no fault of the kernel."""
    try:
        return session.reads()
    except KernelscopeError:
        return {}


def tried_on(
    rung: Rung, params: Params, measured: RungMeasurement, when: str, seed: int = 0
) -> RungMeasurement:
    """One more shape of a rung that was found right (or its largest small one, as `shape` says): `measured`,
    or what is wrong there. Raises UnsupportedError, KernelError."""
    with judge.Trial(rung, shape(rung, params), rung.precision, seed=seed, simulated=True) as trial:
        failure = trial.check(when, trial.fresh())
    if failure is None:
        return measured
    finding = failure.finding
    return msgspec.structs.replace(
        measured, disposition="incorrect", reason=finding.reason, finding=finding, counted={}, facts={}
    )


def ran(rung: Rung, params: Params, seed: int = 0) -> tuple[Params, Report]:
    """One pass of a rung, whose answer is not looked at: on what (`shape`), and what was found and counted.
    Raises UnsupportedError and KernelError where it cannot be run here."""
    if reason := missing():
        raise UnsupportedError(reason)
    on = shape(rung, params)
    session = SimulatedRungSession(rung, on, samples.draw(on, np.random.default_rng(seed)).given(on))
    session.poison(POISONS[0])
    session.run()
    return on, session.report


def counted(rung: Rung, params: Params, seed: int = 0) -> dict[str, int]:
    """What a pass of a rung costs. One of a user's has to be right here as well: a kernel can tell that no
    GPU runs it, and would cost least by doing nothing. Raises as `ran` does."""
    if not rung.user or missing():
        return counts.totals(ran(rung, params, seed)[1])
    on = shape(rung, params)
    sample = samples.draw(on, np.random.default_rng(seed))
    with judge.Trial(rung, on, rung.precision, seed=seed, given=sample, simulated=True) as trial:
        if failure := trial.check("as it is counted", sample):
            fault = failure.finding.fault.replace("_", " ")
            raise KernelError(f"without a GPU, where it is counted, its answer is wrong ({fault})")
        assert isinstance(trial.session, SimulatedRungSession)
        return counts.totals(trial.session.report)


def with_floor(rung: Rung, params: Params, measured: RungMeasurement, gpu: Gpu) -> RungMeasurement:
    """With the time below which no pass stays on a GPU, where it was counted."""
    if not measured.counted:
        return measured
    nbytes = shape(rung, params).nbytes
    floor = gpus.floor(gpu, measured.counted, nbytes)
    words = counts.floor(gpu, floor, measured.counted, nbytes)
    facts = {**measured.facts, FLOOR: words, FLOOR_S: f"{floor.seconds:.9g}"}
    return msgspec.structs.replace(measured, facts=facts)


def _tried(rung: Rung, params: Params, report: Report, trial: judge.Trial) -> list[str]:
    """What longer rows of an array in shared memory come to, where it has bank conflicts: run with them,
    until there are none left."""
    for cost in counts.costs(report, rung.source, {}):
        before, best = report.total.units.get("shared", 0), (0, "")
        for more in PADDINGS:
            if not (cost.array and (padded := counts.padding(cost.array, rung.source, more))):
                break
            text = rung.source.replace(*padded)
            try:
                session = SimulatedRungSession(replace(rung, source=text), params, trial.sample.given(params))
                session.poison(POISONS[0])
                session.run()
            except KernelscopeError:  # which says nothing of the kernel as it is
                break
            totals = counts.totals(session.report)
            if not best[1] or totals["wavefronts"] < best[0]:
                best = totals["wavefronts"], padded[1]
            if totals["wavefronts"] == totals["least_wavefronts"]:
                break
        if best[1]:
            now, declared = best
            return [
                f"tried: with `{declared}` a pass has {now:,} wavefronts of shared memory, and not {before:,}"
            ]
    return []


def _not_run(measured: RungMeasurement, why: str) -> RungMeasurement:
    """It compiles, and whether it is right is not known."""
    reason = f"compiles, and cannot be run without a GPU: {why}"
    return msgspec.structs.replace(measured, disposition="unsupported", reason=reason)


def _noted(measured: RungMeasurement, *words: str) -> RungMeasurement:
    return msgspec.structs.replace(measured, notes=(*measured.notes, *words))
