"""What a runner times (bench.measure.runner): one case made ready, and what came of it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

import msgspec

from bench.measure import unrest
from bench.measure.answers.renewed import Renewal
from bench.measure.instances import Succession
from bench.measure.outcomes import outcome
from bench.measure.timing import Timeable, Timing, few
from bench.results.records import Disposition, Telemetry, Validity


class Contender:
    """A case from its preparation to its record. The steps are called in this order: `prepare`, `multiply`,
    `check_between` before each turn, `check_again`, `close`, `measured`. What one of them raises ends the
    case: it is closed, and its record is `failed`.

    case: what it is called in messages and records; device: "cpu" or "cuda"; job: what the user asked for.
    first, others: its instances that are open. recorded: fields of the record that recorders fill
    (bench.measure.recorder); warnings: of the record.
    """

    record: ClassVar[Any]  # the type of the record
    last_stage: ClassVar[str] = "check"  # what it is at once it was timed

    def __init__(self, case: Any, device: str, job: Any) -> None:
        self.case, self.device = case, device
        self.first: Any = None
        self.others: list[Any] = []
        self.recorded: dict[str, Any] = {}
        self.warnings: list[str] = []
        self._job = job
        self._facts: dict[str, str] = {}
        self._started_at = datetime.now(UTC).isoformat(timespec="seconds")

    @property
    def is_reference(self) -> bool:
        """Whether its answers judge others: it is checked before them."""
        return False

    @property
    def session(self) -> Any:
        """The first instance's, None where none is open."""
        return self.first

    @property
    def facts(self) -> dict[str, str]:
        """What its session really uses, or used."""
        return dict(self.session.facts) if self.session is not None else self._facts

    @property
    def timed(self) -> Succession[Timeable] | Sequence[Timeable]:
        """All instances, open or to come."""
        return (self.first, *self.others)

    def prepare(self) -> None:
        """Make it ready, and check it. Raises what is wrong with it."""
        raise NotImplementedError

    def multiply(self) -> None:
        """Prepare the further instances that the job asks for, each checked. Raises as `prepare`."""

    def check_between(self, turn: int) -> None:
        """Look at what it did in the turn before this one, by number. What is wrong is told when it is timed
        next."""

    def check_again(self) -> None:
        """Once it was timed: raises what was wrong with its passes, or is wrong now."""

    def measured(self, timing: Timing, telemetry: Telemetry) -> Any:
        """The record of a case that went well and is closed."""
        own, renewal = self._own(), self._renewal
        shown = renewal or timing
        warnings = [*timing.warnings, *self.warnings, *few(timing), *filter(None, [unrest.warning(timing)])]
        if reason := self.facts.get("stirring"):
            warnings.append(f"all timed passes were given the same inputs: {reason.removeprefix('no: ')}")
        made = self._made(
            "ok",
            samples_ns=tuple(shown.samples_ns),
            runs_per_sample=timing.runs_per_sample,
            rounds=tuple(shown.rounds),
            instances=tuple(shown.instances),
            quantile=timing.quantile,
            load=dict(timing.load),
            telemetry=telemetry,
            validity=Validity(
                stop_reason=timing.stop_reason,
                retries=timing.retries,
                warnings=(*warnings, *self._doubts()),
            ),
            **self.recorded,
            **own,
        )
        if renewal is not None and self._job.l2 == "cold":  # over new inputs caches are warm
            return msgspec.structs.replace(
                made, disposition="invalid", reason=renewal.untaken, samples_ns=(), rounds=(), instances=()
            )
        return made

    def failed(self, error: BaseException) -> Any:
        """The record of a case that `error` ended, and that is closed."""
        disposition, reason = outcome(error)
        return self._made(disposition, reason=reason)

    def close(self) -> None:
        """Close all instances, the first one last; once more is no fault."""
        instances, session = (self.first, *self.others), self.session
        self.first, self.others = None, []
        with contextlib.ExitStack() as stack:
            for instance in instances:
                if instance is not None:
                    stack.callback(instance.close)
            if session is not None:
                self._facts = dict(session.facts)

    # What a kind of contender knows beside its times:

    @property
    def _renewal(self) -> Renewal | None:
        """Passes over inputs that are all new, where its time hangs on how much of them changed."""
        return None

    def _own(self) -> dict[str, Any]:
        """Fields of the record."""
        return {}

    def _doubts(self) -> list[str]:
        """What else speaks against its answers or its times."""
        return []

    def _made(self, disposition: Disposition, **fields: Any) -> Any:
        return self.record(case=self.case, disposition=disposition, started_at=self._started_at, **fields)
