"""What whoever talks to the user needs to know of a model before anything runs: which cases a job means,
which node a name is, what a model consists of.

A model of the catalogue is of our own building and held to its SHA-256: it is looked at here. A file that the
user names may be anybody's: it is looked at by a process of its own (bench.questions.model_reader) under
limits of time and memory (bench.run.confined), which answers with records; the window and the command
line never load it.
"""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from typing import IO, TypeVar

import msgspec

from bench.questions.asked import Answer, Failed, Looking, WhichTakes, reader_command
from bench.questions.messages import (
    AnyAnswer,
    AnyQuestion,
    Cases,
    ModelFacts,
    NodeFound,
    ProfileCases,
    Quantized,
    WhichCases,
    WhichFacts,
    WhichNode,
    WhichProfile,
    WhichQuantized,
)
from bench.questions.preview import WhichPreview
from bench.results.messages import Progress
from bench.results.profile_records import ProfileJob
from bench.results.records import Case, Job
from bench.run import confined
from bench.run.client import worker_environment
from bench.run.supervisor import LINE_LIMIT_NBYTES
from kernels import errors
from kernels.errors import KernelscopeError, ModelError
from kernels.processes import exit_words, last_line, signal_name
from models import names

TICK_S = 0.05
_TAIL_NBYTES = 4000


class HarmfulFileError(ModelError):
    """A file that took its reader more time or memory than it may, or the reader's life. model: as the
    question names it, "" where none was being read."""

    def __init__(self, text: str, model: str) -> None:
        super().__init__(text)
        self.model = model


_A = TypeVar("_A", bound=Answer)
ProgressCallback = Callable[[str, float | None], None]


def received(models: Sequence[str]) -> bool:
    """Whether one of these is a file, which may be anybody's."""
    return any(name not in names.models() for name in models)


# ---------------------------------------------------------------------------------------------- the questions


def cases(
    job: Job,
    progress: ProgressCallback | None = None,
    go_on: Callable[[], None] | None = None,
    here: bool = True,
) -> tuple[Case, ...]:
    """As bench.measure.cases.plan, and raises as it does. go_on: called now and then; it may raise, too."""
    if not received(job.models):
        from bench.measure.cases import plan

        return plan(job, progress, here=here)
    limit_s, unread = min(confined.seconds(), job.timeout_s / 2), tuple[str, ...]()
    while True:
        try:
            return ask(WhichCases(job=job, unread=unread, here=here), Cases, progress, go_on, limit_s).cases
        except HarmfulFileError as error:
            # Among several it keeps its cases, which fail with the reason, and the others run.
            if len(set(job.models)) == 1 or error.model not in {*job.models} - {*unread}:
                raise
            unread = (*unread, error.model)


def profile(job: ProfileJob) -> tuple[ProfileJob, tuple[Case, ...]]:
    """As bench.questions.profile_plan.plan. Raises KernelscopeError."""
    if not received([job.model]):
        from bench.questions.profile_plan import plan

        return plan(job)
    answer = ask(WhichProfile(job=job), ProfileCases)
    return answer.job, answer.cases


def node(model: str, op: str, node: str, batch: int, device: str) -> NodeFound:
    """As bench.questions.ladder_plan.node_of. Raises KernelscopeError."""
    question = WhichNode(model=model, op=op, node=node, batch=batch, device=device)
    if not received([model]):
        from bench.questions.model_reader import node_found

        return node_found(question)
    return ask(question, NodeFound)


def facts(asked: WhichFacts, progress: ProgressCallback | None = None) -> ModelFacts:
    """As bench.questions.model_facts.facts. Raises KernelscopeError."""
    if not received([asked.model]):
        from bench.questions import model_facts

        return model_facts.facts(asked, progress)
    return ask(asked, ModelFacts, progress)


def quantized(asked: WhichQuantized, progress: ProgressCallback | None = None) -> Quantized:
    """As bench.questions.quantizing.quantize; always in a process of its own, for ONNX Runtime runs the
    model. Raises KernelscopeError."""
    return ask(asked, Quantized, progress)


# ------------------------------------------------------------------------------------------------ the process


def ask(
    question: AnyQuestion,
    of: type[_A],
    progress: ProgressCallback | None = None,
    go_on: Callable[[], None] | None = None,
    limit_s: float | None = None,
) -> _A:
    """Ask a process of its own, and end it, whatever comes. Raises what the question itself raises, and
    ModelError where reading a model took too long, too much, or the process with it."""
    limit_s = confined.seconds() if limit_s is None else limit_s
    with tempfile.TemporaryFile() as stderr:
        # A session of its own: Ctrl-C in the terminal reaches us alone, and ends the wait at once.
        process = subprocess.Popen(
            [*reader_command(), str(limit_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=worker_environment(),
            start_new_session=True,
        )
        try:
            return _Asking(process, limit_s, progress, go_on).answer(question, of, stderr)
        finally:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()


class _Asking:
    """One question and the process that looks for its answer."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        limit_s: float,
        progress: ProgressCallback | None,
        go_on: Callable[[], None] | None,
    ) -> None:
        self._process, self._limit_s = process, limit_s
        self._progress = progress or (lambda text, fraction: None)
        self._go_on = go_on or (lambda: None)
        self._looking = self._model = ""
        self._heard: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True, name="model reader").start()

    def answer(self, question: AnyQuestion, of: type[_A], said: IO[bytes]) -> _A:
        assert self._process.stdin is not None
        self._looking = _named(question)
        with contextlib.suppress(OSError):  # it died at once, which its end tells
            self._process.stdin.write(msgspec.json.encode(question) + b"\n")
            self._process.stdin.flush()
        since = time.monotonic()
        while time.monotonic() - since < self._limit_s:
            self._go_on()
            try:
                line = self._heard.get(timeout=TICK_S)
            except queue.Empty:
                continue
            since = time.monotonic()
            if not line:
                raise HarmfulFileError(self._ended(said), self._model)
            match msgspec.json.decode(line, type=AnyAnswer):
                case Progress(text=text, fraction=fraction):
                    self._progress(text, fraction)
                case Looking(model=model):
                    self._looking, self._model = f"model file {model!r}", model
                case Failed(kind="MemoryError"):
                    raise HarmfulFileError(confined.too_large(self._looking), self._model)
                case Failed(kind=kind, text=text):
                    raise error_of(kind, text)
                case found if isinstance(found, of):
                    return found
        raise HarmfulFileError(confined.too_long(self._looking, self._limit_s), self._model)

    def _listen(self) -> None:
        """Line after line, and an empty one at the end, which a line that is longer than any is too."""
        assert self._process.stdout is not None
        with contextlib.suppress(OSError, ValueError):
            while (line := self._process.stdout.readline(LINE_LIMIT_NBYTES)).endswith(b"\n"):
                self._heard.put(line)
        self._heard.put(b"")

    def _ended(self, said: IO[bytes]) -> str:
        """Why there is no answer: the process has ended."""
        try:
            code = self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return f"reading {self._looking} gave an answer that cannot be read"
        if code < 0 and signal_name(code) == "SIGALRM":
            return confined.too_long(self._looking, self._limit_s)
        size = said.seek(0, os.SEEK_END)
        said.seek(max(0, size - _TAIL_NBYTES))
        text = said.read().decode("utf-8", "replace")
        if "bad_alloc" in text or "MemoryError" in text:
            return confined.too_large(self._looking)
        last = last_line(text)
        return f"reading {self._looking} failed: the process {exit_words(code)}" + (
            f": {last}" if last else ""
        )


def _named(question: AnyQuestion) -> str:
    """The file that a question is about, as sentences name it."""
    match question:
        case WhichCases(job=job):
            return f"model file {next(name for name in job.models if received([name]))!r}"
        case WhichTakes(job=job) | WhichPreview(job=job):
            return f"model file {job.models[0]!r}"
        case WhichProfile(job=wanted):
            return f"model file {wanted.model!r}"
        case _:
            return f"model file {question.model!r}"


def error_of(kind: str, text: str) -> KernelscopeError:
    """The error that a sentence came from."""
    kind_of_error = getattr(errors, kind, KernelscopeError)
    return kind_of_error(text) if issubclass(kind_of_error, KernelscopeError) else KernelscopeError(text)
