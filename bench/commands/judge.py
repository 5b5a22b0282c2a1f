"""`judge`: one kernel, right or not, and how fast beside the reference; with --serve one after the other."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.commands.given import Given, command
from bench.run import options
from kernels.errors import InputError, system_words

if TYPE_CHECKING:
    from bench.views.tables.judgement_tables import JudgementOutput


@command(options.JUDGE, "ladder")
def judge(
    given: Given,
    kernel: Path | None = None,
    task: str = "",
    beside: tuple[str, ...] = (),
    reference: bool = True,
    shape: tuple[int, ...] = (),
    stride: tuple[int, ...] = (1,),
    pad: tuple[int, ...] = (0,),
    dilation: tuple[int, ...] = (1,),
    group: int = 1,
    bias: bool = True,
    activation: str = "",
    baseline: Path | None = None,
    serve: bool = False,
    junit: Path | None = None,
    format: str = "table",
) -> int:
    """Judge one kernel: is it right, and how fast is it?

    It is checked and timed as a rung of a ladder is, beside the reference. Exit code 0: it is right, and not
    slower than the baseline, if one is given; 1: it is slower, wrong, crashes, hangs, does not compile or is
    refused; 2: bad input; 130: cancelled.
    """
    if serve:
        given.refuse_others({"serve"}, "--serve takes each kernel with its options from standard input")
        from bench.commands.judge_server import serve as serve_requests

        return serve_requests()
    if kernel is None:
        raise InputError("name the file of a kernel; `ladder --new OP DIR` writes one to begin with")
    from bench.commands.judge_server import Asked, judged_by
    from bench.questions.given_kernel import GivenKernel
    from bench.run.kinds.ladder import KIND as LADDER
    from bench.run.warm import Warm
    from bench.words.option import usual

    asked = Asked(
        usual(options.JUDGE) | given.lasting | given.fields,
        {
            "shape": shape,
            "stride": stride,
            "pad": pad,
            "dilation": dilation,
            "group": group,
            "bias": bias,
            "activation": activation,
        },
        beside,
        reference,
        _earlier(baseline) if baseline is not None else None,
        task,
    )
    with Warm(LADDER) as warm:
        judged = judged_by(warm, GivenKernel(file=str(kernel)), asked, Telling(), _tell_printed)
    _show(judged, format)
    if junit is not None:
        from bench.results.store import write_atomically

        write_atomically(junit, _as_test(judged).encode())
    return 1 if not judged.right or slower(judged) else 0


def slower(judged: JudgementOutput) -> str:
    """How much slower than the baseline it is; "" where that is not decided, or not so."""
    from bench.views.sentences import judgement as sentences
    from bench.views.tables.judgement_tables import BASELINE

    for other in judged.against:
        if other.name == BASELINE and other.verdict == "SLOWER":
            return sentences.beside(judged, other)
    return ""


def _earlier(file: Path) -> JudgementOutput:
    """What `judge --format json` wrote. Raises InputError."""
    import msgspec

    from bench.results import reading
    from bench.views.tables.judgement_tables import JudgementOutput

    try:
        return reading.decoded(file.read_bytes(), msgspec.json.Decoder(JudgementOutput))
    except OSError as error:
        raise InputError(f"the baseline {file} cannot be read: {system_words(error)}") from error
    except reading.Unreadable as error:
        raise InputError(f"{file} is no output of `judge --format json`: {error}") from error


def _tell_printed(lines: tuple[str, ...]) -> None:
    """What the kernel printed, on standard error: its print() is how many look into a kernel."""
    from bench.words import plain

    if lines:
        print(f"printed: {plain.printable(' · '.join(lines))}", file=sys.stderr)


class Telling:
    """Says on standard error what a worker warns of, and what it is at, where that may take long."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def __call__(self, event: Any) -> None:
        from bench.results.messages import Log, Progress

        match event:
            case Log(level=level, text=text) if level in ("warning", "error"):
                print(f"{level}: {text}", file=sys.stderr)
            case Progress(text=text) if text not in self._said:
                self._said.add(text)
                print(f"{text} …", file=sys.stderr, flush=True)


def _show(judged: JudgementOutput, output: str) -> None:
    from rich.text import Text

    from bench.views.sentences import judgement as sentences
    from bench.views.tables.table import to_json
    from bench.words import plain
    from bench.words.terminal import console

    if output == "json":
        sys.stdout.write(to_json(judged))
        return
    console().print(Text(plain.printable(sentences.heading(judged)), style="bold"))
    for line in sentences.lines(judged):
        console().print(Text(plain.printable(line)))


def _as_test(judged: JudgementOutput) -> str:
    """JUnit's XML: one test."""
    from bench.views import junit
    from bench.views.sentences import judgement as sentences

    why = judged.why or sentences.result(judged)
    one = junit.Case(
        of=f"judge.{judged.op}.{judged.device}",
        name=judged.name,
        time_s=judged.time_s or 0.0,
        failure=why if judged.right is False else slower(judged),
        error=why if judged.right is None else "",
        kind="slower" if judged.right else judged.outcome,
        text="\n".join(sentences.lines(judged)),
    )
    return junit.to_xml("judge", judged.title or judged.name, [one])
