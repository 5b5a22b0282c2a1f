"""A worker that misbehaves on command: `fake_worker.py STATE PLAN…`, one word of the plan a process started.

STATE is a file counting the processes. Words: "ok" measures everything; "segv", "kill", "exit3" die in the
middle of a line of the second case; "hang" never ends its first case; "garbage" and "flood" write nonsense
first; "deaf" measures slowly and ignores requests to stop; "slow" measures slowly and stops when asked;
"mute" dies before it says anything; "anew" measures one case and asks for a restart; "quit" gives up with a
reason.
"""

import os
import signal
import sys
import threading
import time

import msgspec

from bench.results.messages import CaseStarted, Done, Hello, Log, Measured, Start
from bench.results.records import Case, Environment, Job, Measurement

DEATHS = {"segv": signal.SIGSEGV, "kill": signal.SIGKILL}


def say(message) -> None:
    os.write(1, msgspec.json.encode(message) + b"\n")


def main() -> None:
    state, *plan = sys.argv[1:]
    with open(state, "a+") as file:
        file.write("x")
        file.flush()
        file.seek(0)
        turn = len(file.read()) - 1
    word = plan[min(turn, len(plan) - 1)]
    start = msgspec.json.decode(sys.stdin.buffer.readline(), type=Start[Job, Case])
    closed = threading.Event()
    if word != "deaf":
        threading.Thread(target=lambda: (os.read(0, 1), closed.set()), daemon=True).start()
    if word == "mute":
        print("cannot load libnothing.so", file=sys.stderr)
        sys.exit(4)
    say(Hello(environment=Environment(machine="fake"), cases=start.cases))
    if word == "quit":
        say(Done(reason="the model has no inputs"))
        return
    if word == "garbage":
        os.write(1, b'\xff\xfe not json\n[1, 2]\n{"type": "unheard"}\n\n')
    if word == "flood":
        os.write(1, b"printf from a kernel\n" * 20_000 + b"x" * 3_000_000 + b"\n")
        say(Log(level="info", text="after the flood"))
    for index, case in enumerate(start.cases):
        say(CaseStarted(case=case, stage="time"))
        if word == "hang":
            time.sleep(60)
        if word in ("slow", "deaf"):
            end = time.monotonic() + (0.4 if word == "slow" else 60)
            while time.monotonic() < end and not closed.is_set():
                time.sleep(0.01)
        if closed.is_set():
            say(Measured(measurement=Measurement(case=case, disposition="cancelled")))
            continue
        line = msgspec.json.encode(
            Measured(measurement=Measurement(case=case, disposition="ok", samples_ns=(1.0, 2.0)))
        )
        if index == 1 and word in DEATHS:
            print("before the end\nillegal address in conv/04", file=sys.stderr, flush=True)
            os.write(1, line[: len(line) // 2])
            os.kill(os.getpid(), DEATHS[word])
        if index == 1 and word == "exit3":
            os._exit(3)
        os.write(1, line + b"\n")
        if word == "anew":
            sys.exit(75)
    say(Done())


main()
