"""A worker that profiles nothing and says what it would have found: `fake_profiler.py [WORD] [--warm]`.

Words: "failing" (the second backend is given up, with a reason), "hang" (never ends its case, ends when
asked).
"""

import os
import sys
import time
from pathlib import Path

import msgspec

from bench.profile.event_files import write_events
from bench.profile.records import ProfileJob
from bench.results.messages import CaseStarted, Done, Hello, Measured, Start
from bench.results.records import Case, Environment
from bench.run.supervisor import RESTART_STATUS
from tests.gui.pages import profiled


def say(message: object) -> None:
    os.write(1, msgspec.json.encode(message) + b"\n")


def main() -> int:
    start = msgspec.json.decode(sys.stdin.buffer.readline(), type=Start[ProfileJob, Case])
    case = start.cases[0]
    say(Hello(environment=Environment(machine="fake")))
    say(CaseStarted(case=case, stage="profile"))
    if "hang" in sys.argv:
        sys.stdin.buffer.read()
        time.sleep(0.1)
        say(Done(reason="cancelled"))
        return 0
    events = profiled.gpu_events(1.0 if case.backend.startswith("engine") else 1.5, start.job.runs)
    made = profiled.measured(case.backend, events, case.batch, case.model)
    if "failing" in sys.argv and not case.backend.startswith("engine"):
        made = profiled.failed(case.backend, case.batch, case.model)
    else:
        made = msgspec.structs.replace(made, file=write_events(Path(start.folder), case.key, events))
    say(Measured(measurement=made))
    if len(start.cases) > 1:
        return RESTART_STATUS
    say(Done())
    return 0


if __name__ == "__main__":
    sys.exit(main())
