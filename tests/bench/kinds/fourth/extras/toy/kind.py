"""Its words, and its descriptor."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bench.results.kinds import Kind, Told
from bench.results.messages import Done, Hello, Log, Message, Progress
from bench.results.records import Environment, Record
from bench.words.option import Numbers, Option

SCHEMA = 3


OPTIONS = (Option("numbers", Numbers(), "What is squared.", fields=("numbers",), usual=(1,)),)


class ToyJob(Record, frozen=True):
    numbers: tuple[int, ...]
    timeout_s: float = 60.0


class ToyCase(Record, frozen=True):
    number: int

    @property
    def key(self) -> str:
        return f"n{self.number}"

    @property
    def words(self) -> str:
        return f"the square of {self.number}"


class Square(Record, frozen=True):
    case: ToyCase
    disposition: str
    reason: str = ""
    square: int = 0
    facts: dict[str, str] = msgspec.field(default_factory=dict)
    schema: int = SCHEMA


class Toy(Record, frozen=True):
    job: ToyJob
    cases: tuple[ToyCase, ...]
    command: str = ""
    created_at: str = ""
    environment: Environment = Environment()
    schema: int = SCHEMA


class ToyStart(Record, frozen=True):
    job: ToyJob
    cases: tuple[ToyCase, ...] = ()
    folder: str = ""


class Squaring(Message, frozen=True, tag="squaring"):
    case: ToyCase
    stage: str


class Squared(Message, frozen=True, tag="squared"):
    measurement: Square


def heard(toy: Toy, message: object) -> Toy:
    if isinstance(message, Hello):
        return msgspec.structs.replace(toy, environment=message.environment)
    return toy


def told(toy: Toy, cases: Sequence[ToyCase]) -> Told:
    return Told(
        what=f"toy: {len(cases)} numbers",
        models=(),
        backends=("head",),
        batches=tuple(case.number for case in cases),
        machine=toy.environment.machine,
    )


KIND: Kind[Toy, Square] = Kind(
    name="toy",
    file="toy.json",
    header=Toy,
    line=Square,
    schema=SCHEMA,
    worker=("tests.bench.kinds.fourth.extras.toy.worker",),
    start=ToyStart,
    message=Hello | Squaring | Squared | Progress | Log | Done,
    started=Squaring,
    measured=Squared,
    heard=heard,
    told=told,
    titled=lambda job: "toy",
    stages={"square": "squaring"},
    verb="toy",
    options=OPTIONS,
    thin="bench.extras.toy.command",
    saved="bench.extras.toy.command",
    report="bench.extras.toy.command",
)
