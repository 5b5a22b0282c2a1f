"""What each line of a CUDA rung costs, counted on the CPU (bench.measure.ladder.simulated), with a GPU or
without.

A process (`bench.questions.ladder_questions.counts_command`): one CountsQuestion on standard input, one
CountsAnswer on what was standard output, and the end."""

from __future__ import annotations

import sys
from pathlib import PurePosixPath

import msgspec

from bench.measure.ladder import assembly, simulated
from bench.measure.ladder.entrants import job_params
from bench.measure.parent_channel import ParentChannel, read_line
from bench.questions.ladder_questions import CountsAnswer, CountsQuestion, LineCount
from bench.results.messages import Done
from kernels.errors import KernelscopeError
from kernels.ptx.program import LineCounts


def main() -> int:
    channel = ParentChannel()
    try:
        asked = msgspec.json.decode(read_line(0), type=CountsQuestion)
    except msgspec.DecodeError as error:
        channel.say(Done(reason=f"the process was asked what it cannot read ({error})"))
        return 2
    channel.say(answer(asked))
    return 0


def answer(asked: CountsQuestion) -> CountsAnswer:
    """What there is; an error of ours is its `error`, and so is a mistake that was found."""
    try:
        job, rung = asked.job, assembly.rung_of(asked)
        params, report = simulated.ran(rung, job_params(job), job.seed)
    except KernelscopeError as error:
        return CountsAnswer(rung=asked.rung, error=str(error))
    wrong = next((finding.words for finding in report.findings), "")
    own = {line: its for (file, line), its in report.lines.items() if _name(file) == rung.path.name}
    lines = tuple(_line(line, its) for line, its in sorted(own.items()))
    return CountsAnswer(rung=asked.rung, on=params.words, lines=lines, error=wrong)


def _name(file: str) -> str:
    return PurePosixPath(file.replace("\\", "/")).name


def _line(line: int, its: LineCounts) -> LineCount:
    def of(counts: dict[str, int], space: str) -> int:
        return counts.get(space, 0)

    return LineCount(
        line=line,
        instructions=its.instructions,
        divergent=its.divergent,
        requests=of(its.requests, "global"),
        sectors=of(its.units, "global"),
        least_sectors=of(its.least, "global"),
        wavefronts=of(its.units, "shared"),
        least_wavefronts=of(its.least, "shared"),
    )


if __name__ == "__main__":
    sys.exit(main())
