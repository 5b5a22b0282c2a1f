"""Its words, and its descriptor."""

from __future__ import annotations

from collections.abc import Sequence

from bench.kinds.options import Numbers, Option
from bench.kinds.registry import Kind, Told
from bench.results.records import Asked, CaseResult, Header, Record

SCHEMA = 3


OPTIONS = (Option("numbers", Numbers(), "What is squared.", fields=("numbers",), usual=(1,)),)


class ToyJob(Asked, frozen=True):
    numbers: tuple[int, ...]


class ToyCase(Record, frozen=True):
    number: int

    @property
    def key(self) -> str:
        return f"n{self.number}"

    @property
    def words(self) -> str:
        return f"the square of {self.number}"


class Square(CaseResult[ToyCase], frozen=True):
    square: int = 0


class Toy(Header[ToyJob, ToyCase], frozen=True):
    pass


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
    told=told,
    titled=lambda job: "toy",
    stages={"square": "squaring"},
    verb="toy",
    options=OPTIONS,
    thin="bench.toy.cli",
    saved="bench.toy.cli",
    report="bench.toy.cli",
)
