"""Its words, and its descriptor."""

from __future__ import annotations

from collections.abc import Sequence

from bench.results.kinds import Kind, Listing
from bench.results.records import Asked, CaseResult, Header, Record
from bench.words.option import Numbers, Option

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


def listing(toy: Toy, cases: Sequence[ToyCase]) -> Listing:
    return Listing(
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
    worker=("tests.bench.results.fourth.extras.toy.worker",),
    listing=listing,
    titled=lambda job: "toy",
    stages={"square": "squaring"},
    verb="toy",
    options=OPTIONS,
    view="bench.extras.toy.command",
    report="bench.extras.toy.command",
)
