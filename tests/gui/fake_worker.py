"""A worker for the window's tests: `fake_worker.py STATE PLAN… [--warm]`, one word of the plan a process.

STATE is a file counting the processes. It replays what a worker would say of its cases (made by
tests.bench.synthetic, which needs no machine). Words: "ok"; "failing" (first case out of memory, the second
incorrect); "segv" (killed by SIGSEGV in the middle of the second case's line); "garbage" (writes what is no
message before and after); "flood" (1,000 messages a second for 1.5 s); "hang" (never ends its first
case, ends when asked); "deaf" (the same, and does not listen); "held" (measures the first case and says no
more until it is asked to end); "quit" (gives the job up with a reason); "stream" (1,000 messages a second all
along, a measurement every 100 ms); "mute" (dies before it says anything); "soon" (says what each case
takes so far and ends all but the first). With MACHINE in the environment it is on a machine of that name,
which has a GPU.
"""

import os
import signal
import sys
import threading
import time

import msgspec

from bench.results.messages import (
    CaseStarted,
    Done,
    Hello,
    Log,
    Measured,
    ModelLoaded,
    Progress,
    Provisional,
    Start,
)
from bench.results.records import BackendInfo, Case, Environment, Job, ModelInfo
from tests.bench import synthetic

MACHINE = os.environ.get("MACHINE", "")
BACKENDS = tuple(
    BackendInfo(
        name=name,
        device=name.split("-")[1],
        precisions=("fp32", "tf32") if name == "ort-cuda" else ("fp32",),
        reference=synthetic.REFERENCE[name],
        unavailable="no NVIDIA driver is installed" if name.endswith("cuda") and not MACHINE else "",
    )
    for name in synthetic.BACKENDS
)
HELD_S = 600  # longer than any test
ENVIRONMENT = Environment(
    machine=MACHINE or "fake",
    cpu="Example CPU 9000",
    gpu="NVIDIA H100 80GB HBM3" if MACHINE else "",
    backends=BACKENDS,
)


def say(message: object) -> None:
    os.write(1, msgspec.json.encode(message) + b"\n")


def cases_of(start: Start) -> tuple[Case, ...]:
    job = start.job
    backends = job.backends or tuple(info.name for info in BACKENDS if not info.unavailable)
    return start.cases or tuple(
        Case(model=model, backend=backend, precision=precision, batch=batch, images=100)
        for model in job.models
        for precision in job.precisions
        for batch in job.batches_of(model)
        for backend in backends
    )


def main() -> None:
    warm = "--warm" in sys.argv
    state, *plan = [word for word in sys.argv[1:] if word != "--warm"]
    with open(state, "a+") as file:
        file.write("x")
        file.flush()
        file.seek(0)
        turn = len(file.read()) - 1
    word = plan[min(turn, len(plan) - 1)]
    if word == "mute":
        print("cannot load libnothing.so", file=sys.stderr)
        sys.exit(4)
    if warm:
        say(Hello(environment=ENVIRONMENT))
    line = sys.stdin.buffer.readline()
    if not line:
        return
    start = msgspec.json.decode(line, type=Start[Job, Case])
    closed = threading.Event()
    if word != "deaf":
        threading.Thread(target=lambda: (os.read(0, 1), closed.set()), daemon=True).start()
    if word == "quit":
        say(Done(reason="the model has no inputs"))
        return
    cases = cases_of(start)
    say(Hello(environment=ENVIRONMENT, cases=cases))
    for model in dict.fromkeys(case.model for case in cases):
        say(ModelLoaded(model=ModelInfo(name=model, title=f"The net {model}")))
    if word == "garbage":
        os.write(1, b'\xff\xfe not json\n[1, 2]\n{"type": "unheard"}\n\n')
    for index, case in enumerate(cases):
        run(word, index, case, closed)
        if closed.is_set():
            break
    if word == "garbage":
        os.write(1, b"printf from a kernel\n" * 1000)
    say(Done(reason="cancelled" if closed.is_set() else ""))


def run(word: str, index: int, case: Case, closed: threading.Event) -> None:
    say(CaseStarted(case=case, stage="time"))
    if word in ("hang", "deaf"):
        closed.wait(HELD_S)
        return
    say(Provisional(case=case, median_ns=50_000.0))
    if word == "soon":
        if index == 1:
            say(Measured(measurement=synthetic.measurement(case)))
        elif index == 3:
            closed.wait(HELD_S)
        return
    if word == "held" and index:
        closed.wait(HELD_S)
    if word == "flood" and index == 0:
        flood(1.5)
    if word == "stream":
        flood(0.1)
    failures = {0: ("out_of_memory", "40 GiB were asked for"), 1: ("incorrect", "relative error 3.4e-02")}
    disposition, reason = failures.get(index, ("ok", "")) if word == "failing" else ("ok", "")
    line = msgspec.json.encode(Measured(measurement=synthetic.measurement(case, disposition, reason))) + b"\n"
    if index == 1 and word == "segv":
        print("illegal address in conv/04", file=sys.stderr, flush=True)
        os.write(1, line[: len(line) // 2])
        os.kill(os.getpid(), signal.SIGSEGV)
    if not closed.is_set():
        os.write(1, line)


def flood(seconds: float, rate: int = 1000) -> None:
    """That many messages a second, in bursts as a pipe delivers them; all of them, however long it takes."""
    started, said, total = time.monotonic(), 0, round(seconds * rate)
    while said < total:
        due = min(total, round((time.monotonic() - started) * rate))
        while said < due:
            fraction = said / total
            message = (
                Progress(text=f"round {said}", fraction=fraction) if said % 5 else Log(level="info", text="x")
            )
            say(message)
            said += 1
        time.sleep(0.005)


main()
