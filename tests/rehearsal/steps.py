"""The words of a rehearsal: a Step (what is run and what it must give) and an Outcome (what came of it)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import msgspec

PYTHON = "python"  # stands for this interpreter
WORK = re.compile(r"[^a-zA-Z0-9.]+")


@dataclass(frozen=True)
class Use:
    """Something the rehearsal made before: `fixture` by its name, wanted at the path `at` of the step."""

    fixture: str
    at: str


@dataclass(frozen=True)
class Expect:
    """What a step must give beside what every step must (see tests.rehearsal.checks).

    codes: exit codes that are right. bad: the disposition that the user's kernel must come to, and fault what
    it must be told ("": it must be right). made: paths that must be there afterwards. says: what standard
    output or error must hold. silent: nothing need be on standard output. pictures: a folder in which every
    page of the window must be seen.
    """

    codes: tuple[int, ...] = (0,)
    bad: str = ""
    fault: str = ""
    made: tuple[str, ...] = ()
    says: str = ""
    silent: bool = False
    pictures: str = ""

    @property
    def words(self) -> str:
        said = [f"exit code {' or '.join(map(str, self.codes))}"]
        if self.bad:
            said.append(f"own kernel {self.bad}" + (f" ({self.fault})" if self.fault else ""))
        if self.says:
            said.append(f"“{self.says}”")
        if self.made:
            said.append(f"writes {', '.join(self.made)}")
        if self.pictures:
            said.append("a picture of every page, none blank")
        return "; ".join(said)


NETS = "well-known nets"  # the group of those
LONG = frozenset(("tests.gui.screenshots", "--whole-model", "--watch", "--counters", "--report"))


@dataclass(frozen=True)
class Step:
    """name: its own among all. command: program and arguments (PYTHON first), () where nothing is run.
    written: as the document has it, where it differs; change: what was made small, in words. skip: why it is
    not run here; left: why it is never run. unknown: what of it the rehearsal does not know. alone: nothing
    runs beside it. after: a step that must have been run before, on this machine. fresh: a folder of the
    rehearsal's that is emptied before. environment: beside the process's own, {work} being the rehearsal's
    folder. watch: a file that is saved again once it waits,
    after which it is ended by Ctrl-C. into: where standard output goes."""

    name: str
    group: str
    command: tuple[str, ...] = ()
    expect: Expect = Expect()
    written: str = ""
    change: str = ""
    uses: tuple[Use, ...] = ()
    skip: str = ""
    left: str = ""
    unknown: str = ""
    alone: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    after: str = ""
    fresh: str = ""
    watch: str = ""
    into: str = ""
    timeout_s: float = 400.0

    @property
    def long(self) -> bool:
        """Whether it takes many times as long as most: large models, whole models, the window."""
        return self.group == NETS or any(word in LONG or word.startswith("alexnet") for word in self.command)

    @property
    def slug(self) -> str:
        """Fit for a folder."""
        return WORK.sub("-", self.name).strip("-")[:80]


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of a step. outcome: "ok", "failed", "skipped" (not on this machine), "left out" (never run)
    or "unknown"; before: why it failed the time before."""

    name: str
    outcome: str
    seconds: float = 0.0
    reason: str = ""
    before: str = ""
    at: str = ""


DONE = ("ok", "skipped", "left out")
BAD = ("failed", "unknown")
