"""Its words, and its descriptor."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bench.kinds.options import Numbers, Option
from bench.kinds.registry import Kind, Told
from bench.results.messages import Hello
from bench.results.records import Environment, Record

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
    job=ToyJob,
    case=ToyCase,
    header=Toy,
    line=Square,
    schema=SCHEMA,
    worker=("tests.bench.kinds.fourth.toy.worker",),
    heard=heard,
    told=told,
    titled=lambda job: "toy",
    stages={"square": "squaring"},
    verb="toy",
    options=OPTIONS,
    thin="bench.toy.cli",
    saved="bench.toy.cli",
    report="bench.toy.cli",
)
