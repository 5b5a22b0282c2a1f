"""Its worker: squares numbers; dies of 13, in the middle of a line."""

import os
import sys

import msgspec

from bench.results.messages import CaseStarted, Done, Hello, Measured, Start
from bench.results.records import Environment
from tests.bench.kinds.fourth.toy.kind import Square, ToyCase, ToyJob


def say(message: object) -> None:
    os.write(1, msgspec.json.encode(message) + b"\n")


def main() -> None:
    if "--warm" in sys.argv:
        say(Hello(environment=Environment(machine="a head")))
    line = sys.stdin.buffer.readline()
    if not line:
        return
    start = msgspec.json.decode(line, type=Start[ToyJob, ToyCase])
    say(Hello(environment=Environment(machine="a head")))
    for case in start.cases:
        say(CaseStarted(case=case, stage="square"))
        if case.number == 13:
            os.write(1, b'{"type":"measured"')
            print("bad luck", file=sys.stderr, flush=True)
            os._exit(3)
        say(Measured(measurement=Square(case=case, disposition="ok", square=case.number**2)))
    say(Done())


if __name__ == "__main__":
    main()
