"""What was rehearsed so far, on the disk after every step: a cut costs the steps in flight."""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from bench.results.records import Environment
from bench.results.store import write_atomically
from tests.rehearsal.steps import BAD, DONE, Outcome

FILE = "state.json"


class State(msgspec.Struct, kw_only=True):
    """content: the tree's hash; machine: its short name; gpu: its name ("": none). outcomes: by step."""

    content: str
    machine: str
    gpu: str = ""
    no_gpu: str = ""
    environment: Environment = Environment()
    outcomes: dict[str, Outcome] = {}

    def done(self, name: str) -> bool:
        """Whether a step need not be run again; one that failed is."""
        return name in self.outcomes and self.outcomes[name].outcome in DONE

    def add(self, outcome: Outcome) -> Outcome:
        """As it is kept: it remembers what the step failed of before."""
        before = self.outcomes.get(outcome.name)
        if before is not None and before.outcome in BAD and outcome.outcome not in BAD:
            outcome = msgspec.structs.replace(outcome, before=before.before or before.reason)
        self.outcomes[outcome.name] = outcome
        return outcome

    def save(self, folder: Path) -> None:
        write_atomically(folder / FILE, msgspec.json.format(msgspec.json.encode(self), indent=1))


def load(folder: Path, content: str, machine: str) -> State | None:
    """What is kept in a folder, where it is of this tree and of such a machine."""
    with contextlib.suppress(OSError, msgspec.DecodeError):
        held = msgspec.json.decode((folder / FILE).read_bytes(), type=State)
        if (held.content, held.machine) == (content, machine):
            return held
    return None
