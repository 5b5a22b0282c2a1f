"""One kernel judged: is it right, and how fast is it?"""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, NoReturn

import msgspec

from kernelscope import kernel_text, records
from kernelscope.records import Against
from kernelscope.running import KernelscopeError, end, reason, started, texts

TIMEOUT_S = 60.0  # of the command, unless another is asked for
# How long an answer may take before the judge itself is taken to hang: as long as all cases of each
# kernel may take (its own, the reference, and those beside), and what starting anew takes.
CASES, STARTS_S = 3, 120.0


class Judgement(records.JudgementOutput, frozen=True, kw_only=True):
    """What came of a kernel. The fields are those of `judge --format json` (docs/formats.json)."""

    def __bool__(self) -> NoReturn:
        raise TypeError("a judgement has several answers: ask for its .right, .why or .grade")

    @property
    def reference(self) -> Against | None:
        """How it stands to the reference; None where that was not timed."""
        return self.beside("reference")

    def beside(self, name: str) -> Against | None:
        """How it stands to "reference", "baseline" or a kernel of the ladder, by its name or as it is shown
        ("stable" or "01 stable"); "best": the fastest of the kernels that were timed beside it. None where
        that was not timed."""
        others = [one for one in self.against if one.name not in ("reference", "baseline")]
        if name == "best":
            return min((one for one in others if one.time_s), key=lambda one: one.time_s or 0.0, default=None)
        return next((one for one in self.against if name in (one.name, one.title)), None)

    @property
    def speedup(self) -> float | None:
        """The reference's time over the kernel's; None where nothing was compared."""
        return self.reference.speedup if self.reference is not None else None

    @property
    def interval_s(self) -> tuple[float, float] | None:
        """The 95 % interval of its time."""
        if self.low_s is None or self.high_s is None:
            return None
        return self.low_s, self.high_s

    @property
    def registers(self) -> int | None:
        """Registers a thread of a CUDA kernel; None where the compiler does not tell."""
        found = self.compiled.get("registers")
        return None if found is None else int(found)

    def __str__(self) -> str:
        wrong = "wrong" if self.outcome == "incorrect" else self.outcome.replace("_", " ")
        how = {True: "right", False: f"{wrong}: {self.why}", None: f"not known to be right: {self.why}"}
        time = f", {duration(self.time_s)}" if self.time_s is not None else ""
        time = ", simulated: answers and counts, no times" if self.simulated else time
        beside = self.reference
        told = f", {beside.grade} beside {beside.title}" if beside is not None and self.right else ""
        # What is not decided has no number in a headline.
        decided = beside is not None and beside.grade in ("faster", "same", "slower")
        ratio = f" ({beside.speedup:.3g}×)" if told and decided and beside and beside.speedup else ""
        why = f": {beside.doubts[0]}" if told and not decided and beside and beside.doubts else ""
        return f"{self.name}: {how[self.right]}{time}{told}{ratio}{why}"

    def __repr__(self) -> str:
        return f"<Judgement {self}>"  # all fields would be pages of environment

    def _repr_html_(self) -> str:
        from html import escape

        shown: dict[str, Any] = {
            "kernel": self.name,
            "on": self.title,
            "right": {True: "yes", False: "no", None: "not known"}[self.right],
            "why": self.why,
            "time": "" if self.time_s is None else duration(self.time_s),
            "95 % interval": " to ".join(map(duration, self.interval_s or ())),
        }
        for one in self.against:
            ratio = (
                "" if one.speedup is None or one.grade in ("undecided", "none") else f", {one.speedup:.3g}×"
            )
            shown[f"beside {one.title}"] = f"{one.grade}{ratio}"
        shown["doubts"] = "; ".join(self.doubts)
        shown["costs"] = "; ".join(self.costs)
        rows = (
            f"<tr><th style='text-align:left'>{escape(name)}</th>"
            f"<td style='text-align:left'>{escape(str(value))}</td></tr>"
            for name, value in shown.items()
            if value
        )
        return f"<table class='kernelscope'>{''.join(rows)}</table>"


def duration(seconds: float) -> str:
    """ "10.1 µs"."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


class Judge:
    """Judges kernels one after the other, with a worker that is ready before the next one comes.

        with ks.Judge(op="softmax") as judge:
            for kernel in kernels:
                judgement = judge(kernel)

    options: of every judgement, as of `judge`. Each kernel runs in processes of its own; one that hangs,
    crashes or breaks out of its process costs itself, and the next one is judged as if it had not been. One
    thread at a time may ask.
    """

    def __init__(self, **options: Any) -> None:
        self._options = options
        self._server: _Server | None = None
        self._asked = 0
        self.closed = False
        self._lock = threading.Lock()
        self._process_id = os.getpid()

    def __enter__(self) -> Judge:
        self._running()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End its processes. It judges no more."""
        self.closed = True
        self._drop()

    def _drop(self) -> None:
        """End its processes; the next kernel has new ones."""
        self._forget_if_forked()
        server, self._server = self._server, None
        if server is not None:
            server.close()

    def __call__(self, kernel: Any, op: str | None = None, **options: Any) -> Judgement:
        """Judge a kernel; see `judge`."""
        return self.judge(kernel, op, **options)

    def judge(
        self, kernel: Any, op: str | None = None, *, baseline: Judgement | None = None, **options: Any
    ) -> Judgement:
        """Judge a kernel; see the function `judge`. Raises KernelscopeError where what is asked for cannot be
        had; a kernel that is no kernel is a judgement, too."""
        asked = self._options | {name: value for name, value in options.items() if value is not None}
        asked |= {"op": op} if op is not None else {}
        kernels = 2 + len(texts(asked.get("beside") or ()))
        limit_s = kernels * CASES * float(asked.get("timeout") or TIMEOUT_S) + STARTS_S
        request: dict[str, Any] = {**kernel_text.given(kernel), "options": _typed(asked)}
        if baseline is not None:
            request["baseline"] = msgspec.to_builtins(baseline)
        self._forget_if_forked()
        with self._lock:
            self._asked += 1
            began = time.monotonic()
            try:
                answer = self._answer({"id": self._asked} | request, limit_s)
            except _Gone as gone:
                if not gone.was_ready:
                    raise KernelscopeError(gone.why, 2) from None
                return _lost(request, asked, gone, time.monotonic() - began)
        if answer["type"] == "refused":
            raise KernelscopeError(answer["reason"], answer["exit_code"])
        return msgspec.convert(answer["judgement"], Judgement)

    def _answer(self, request: dict[str, Any], limit_s: float) -> dict[str, Any]:
        """Ask; once more where the judge ends meanwhile, since what ended it may be left of the kernel
        before. Raises _Gone."""
        for last in (False, True):
            try:
                return self._running().ask(request, limit_s)
            except _Gone as gone:
                self._drop()
                if last or gone.hangs or not gone.was_ready:
                    raise
            except BaseException:
                self._drop()
                raise
        raise AssertionError("not reached")

    def _forget_if_forked(self) -> None:
        """In a process that was forked off, the judge is the other process's, and a lock may be held by a
        thread that there is not: both are left as they are."""
        if self._process_id != os.getpid():
            self._process_id, self._server, self._lock = os.getpid(), None, threading.Lock()

    def _running(self) -> _Server:
        if self.closed:
            raise KernelscopeError("this Judge is closed; make another one", 2)
        self._forget_if_forked()
        if self._server is not None and not self._server.alive:
            self._drop()
        if self._server is None:
            self._server = _Server()
        return self._server


def judge(
    kernel: Any,
    op: str | None = None,
    *,
    task: str | os.PathLike[str] | None = None,
    shape: Sequence[int] | None = None,
    model: str | os.PathLike[str] | None = None,
    node: str | int | None = None,
    batch: int | None = None,
    device: str | None = None,
    beside: str | Sequence[str] | None = None,
    reference: bool | None = None,
    budget: float | None = None,
    timeout: float | None = None,
    baseline: Judgement | None = None,
    simulated: bool | None = None,
    **options: Any,
) -> Judgement:
    """Judge one kernel: is it right, and how fast is it beside the reference?

    - kernel: the path of its file, its text, or a Python function (p, inputs, output, workspace) that is
      taken by its source. A file or text begins with the header of a kernel (docs/writing-a-kernel.md); one
      for the CPU may do without, and so does a function.
    - op: its operator, as the ladder names it; what the header says unless given.
    - task: in the place of an operator, the folder of a task of yours, or the name of one of the ladder's own
      (docs/tasks.md).
    - shape: of a convolution, N, C, H, W, M, K, with stride, pad and so on; of a task its sizes. Or model,
      node and batch: of which node; the first of that operator in the default models unless given.
    - device: "cpu" or "cuda"; what the kernel is written for.
    - beside: kernels of the ladder that are timed, too; "best" is the one that the engine takes. reference:
      whether ONNX Runtime is.
    - budget: the most seconds of samples of each. timeout: seconds after which a kernel is given up.
    - baseline: an earlier judgement of the same work, to hold it against: `beside("baseline")`.
    - simulated: a CUDA kernel runs on the CPU, without a GPU: right or wrong, what is wrong with its accesses
      to memory, and counts (`counted`, `costs`); no times.
    - options: the others of `kernelscope judge --help`, with _ for -.

    For several kernels keep a `Judge`. Raises KernelscopeError where what is asked for cannot be had.
    """
    given = {
        "task": task,
        "shape": shape,
        "model": model,
        "node": node,
        "batch": batch,
        "device": device,
        "beside": beside,
        "reference": reference,
        "budget": budget,
        "timeout": timeout,
        "simulated": simulated,
    }
    with Judge() as one:
        return one.judge(kernel, op, baseline=baseline, **given, **options)


def _typed(options: Mapping[str, Any]) -> dict[str, bool | list[str]]:
    """Options as a request has them."""
    return {
        name.replace("_", "-"): value if isinstance(value, bool) else texts(value)
        for name, value in options.items()
        if value is not None
    }


class _Gone(Exception):
    """The judge ended, or hangs. was_ready: whether it had begun to read requests."""

    def __init__(self, why: str, was_ready: bool, hangs: bool = False) -> None:
        super().__init__(why)
        self.why, self.was_ready, self.hangs = why, was_ready, hangs


class _Server:
    """`judge --serve`. What it says is heard by a thread."""

    def __init__(self) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        self._process = started(["judge", "--serve"], stdin=subprocess.PIPE, stderr=self._errors)
        self._heard: queue.Queue[bytes] = queue.Queue()
        self._ready = False
        threading.Thread(target=self._listen, daemon=True, name="kernelscope judge").start()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, request: dict[str, Any], limit_s: float) -> dict[str, Any]:
        """The answer to a request. Raises _Gone."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(msgspec.json.encode(request) + b"\n")
            self._process.stdin.flush()
        except OSError:  # it has ended, which is heard
            pass
        until = time.monotonic() + limit_s
        while (left_s := until - time.monotonic()) > 0:
            try:
                line = self._heard.get(timeout=min(left_s, 0.5))
            except queue.Empty:
                continue
            if not line:
                raise _Gone(self._why(), self._ready)
            # A line that is no answer to this request is of no interest, whoever wrote it.
            with contextlib.suppress(msgspec.DecodeError):
                answer = msgspec.json.decode(line)
                match answer:
                    case {"type": "ready"}:
                        self._ready = True
                    case {"type": "judged" | "refused", "id": number} if number == request["id"]:
                        return dict(answer)
                    case {"type": "refused", "id": -1}:  # it could not read the request
                        return dict(answer)
        raise _Gone(f"no answer came within {limit_s:.0f} s", self._ready, hangs=True)

    def close(self) -> None:
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.5)
        end(self._process)
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._errors.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(OSError, ValueError):
            for line in self._process.stdout:
                if line.strip():
                    self._heard.put(line)
        self._heard.put(b"")

    def _why(self) -> str:
        code = self._process.wait()
        self._errors.seek(0)
        return reason(self._errors.read().decode("utf-8", "replace").splitlines(), code)


def _lost(request: dict[str, Any], asked: Mapping[str, Any], gone: _Gone, took_s: float) -> Judgement:
    """Of a kernel with which the judge itself ended, or hung: nothing is known of it but that."""
    what = "hung" if gone.hangs else "ended"
    return Judgement(
        name=request.get("file", "").rpartition("/")[2] or "kernel",
        op=str(asked.get("op", "")),
        device=str(asked.get("device", "")),
        precision="",
        title="",
        right=None if gone.hangs else False,
        outcome="timed_out" if gone.hangs else "crashed",
        why=f"the judge itself {what} while this kernel was judged: {gone.why}",
        grade="none" if gone.hangs else "wrong",
        finding=None,
        time_s=None,
        low_s=None,
        high_s=None,
        against=(),
        doubts=(),
        unsteady=(),
        notes=(),
        rel_l2_error=None,
        error_bound=None,
        checks=0,
        samples=0,
        compiled={},
        took_s=took_s,
    )
