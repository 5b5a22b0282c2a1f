"""The process that looks at model files from elsewhere: a question of bench.questions.model_questions on
standard input, an answer on what was standard output, and between them whatever the file does, within limits
(bench.run.confined).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import msgspec

from bench.measure.parent_channel import ParentChannel, read_line
from bench.questions.messages import (
    Answer,
    AnyQuestion,
    Cases,
    Failed,
    Looking,
    NodeFound,
    ProfileCases,
    WhichCases,
    WhichFacts,
    WhichNode,
    WhichProfile,
    WhichQuantized,
    WhichTakes,
)
from bench.questions.preview import WhichPreview
from bench.results.messages import Progress
from bench.run import confined
from kernels.errors import KernelscopeError

LEFT_S = 5.0  # beyond the limit, for whoever waits to say it first


def main(limit_s: float) -> int:
    """Answer one question. Returns the exit status."""
    channel = ParentChannel()
    say: Callable[[Any], None] = channel.say
    question = msgspec.json.decode(read_line(0), type=AnyQuestion)
    # Imported here: what these pull in may print, and is no part of what a model may take.
    from bench.questions import (
        ladder_plan,  # noqa: F401
        model_facts,  # noqa: F401
        profile_plan,  # noqa: F401
    )

    def progress(text: str, fraction: float | None) -> None:
        confined.alarm(limit_s + LEFT_S)
        say(Progress(text=text, fraction=fraction))

    def look(model: str) -> None:
        confined.alarm(limit_s + LEFT_S)
        say(Looking(model=model))

    try:
        with confined.confined(limit_s + LEFT_S):
            reply = answer(question, progress, look)
    except KernelscopeError as error:
        say(Failed(kind=type(error).__name__, text=str(error)))
    except MemoryError:
        say(Failed(kind=MemoryError.__name__, text=""))
    else:
        say(reply)
    return 0


def answer(
    question: AnyQuestion, progress: Callable[[str, float | None], None], look: Callable[[str], None]
) -> Answer:
    """The answer to a question. look: called with each model before its file is read. Raises
    KernelscopeError."""
    match question:
        case WhichCases(job=job, unread=unread, here=here):
            from bench.measure import cases

            return Cases(cases=cases.plan(job, progress, look, unread, here))
        case WhichProfile(job=wanted):
            from bench.questions import profile_plan

            filled, profile_cases = profile_plan.plan(wanted)
            return ProfileCases(job=filled, cases=profile_cases)
        case WhichNode():
            return node_found(question)
        case WhichTakes():
            from bench.questions import model_takes

            return model_takes.takes(question.job)
        case WhichPreview():
            from bench.questions import model_preview

            return model_preview.preview(question, progress)
        case WhichFacts():
            from bench.questions import model_facts

            return model_facts.facts(question, progress)
        case WhichQuantized():
            from bench.questions import quantizing

            return quantizing.quantize(question, progress)


def node_found(asked: WhichNode) -> NodeFound:
    """Raises KernelscopeError."""
    from bench.questions import ladder_plan

    step, _ = ladder_plan.node_of(asked.model, asked.op, asked.node, asked.batch, asked.device)
    return NodeFound(params=asdict(step.params), node=step.nodes[0])


if __name__ == "__main__":
    status = main(float(sys.argv[1]))
    sys.stderr.flush()
    os._exit(status)  # what the file did to this process is no longer anybody's
