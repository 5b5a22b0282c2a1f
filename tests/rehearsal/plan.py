"""All steps of a rehearsal, in order: the first command, the documents' commands, what lies beyond them;
before each what it needs made, and at the end what is never run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.rehearsal import beyond, documents, fixtures, reading
from tests.rehearsal.machine import Machine
from tests.rehearsal.steps import Step


def plan(machine: Machine, first_ever: bool = False) -> list[Step]:
    """Every step. first_ever: that part alone, which is none of the others'."""
    if first_ever:
        return beyond.first_ever(machine)
    told = [reading.step(command, machine) for command in documents.every()]
    typed = [step for step in told if step.command]
    steps = [beyond.default(), *_once(typed), *beyond.steps(machine)]
    known = fixtures.steps(machine)
    named = dict.fromkeys(use.fixture for step in steps for use in step.uses)
    known += [made for name in named if (made := fixtures.made_by_name(name, machine)) is not None]
    return [*with_needs(steps, known), *(step for step in told if not step.command)]


def _once(steps: Iterable[Step]) -> list[Step]:
    """Commands that come to the same are run once, where they are told first."""
    found: dict[tuple[object, ...], Step] = {}
    for step in steps:
        found.setdefault((step.command, step.uses, step.into), step)
    return list(found.values())


def with_needs(wanted: Sequence[Step], known: Iterable[Step]) -> list[Step]:
    """`wanted`, each behind what it needs of `known` and does not have before it."""
    by_name = {step.name: step for step in known}
    found: dict[str, Step] = {}

    def add(step: Step) -> None:
        for name in () if step.skip else needs(step):
            if name in by_name and name not in found:
                add(by_name[name])
        found.setdefault(step.name, step)

    for step in wanted:
        add(step)
    return list(found.values())


def needs(step: Step) -> list[str]:
    """Names of the steps that must have been run before."""
    return [use.fixture for use in step.uses] + ([step.after] if step.after else [])


def part(steps: Sequence[Step], number: int, of: int) -> list[Step]:
    """The number-th of so many equal pieces, from 1; what its steps need is not among them."""
    first, last = ((number - 1) * len(steps) // of, number * len(steps) // of)
    return list(steps[first:last])
