"""One sweep for all that is chosen by time: with planted times and faults it takes what anybody would who
knew them, and goes on after it was ended anywhere."""

from __future__ import annotations

import contextlib
import random
from dataclasses import dataclass, replace

import msgspec
import pytest

from bench.measure import timing
from bench.measure.tuned.sweep import ATTEMPTS, SLOWER, UNTRIED, Judge, Looks, Sweep
from engine.planning.choices import Choice, Tried
from kernels.errors import KernelError, OutOfMemoryError

BRIEF = timing.Rules(warmup_s=0.0, rewarm_s=0.0, rounds=1, min_s=0.0001, min_samples=1, budget_s=0.001)
OPEN = Looks(final=BRIEF, first_s=0.0, short_ns=1e6, far=4.0, worth=0.02, open=True)  # as of rungs
ANEW = Looks(final=BRIEF, first_s=0.0, near=1.25, default=True)  # as of configurations
FAULTS = (
    *("prepare", "first", "timed", "again", "timed raises", "layers raise"),
    *(LENIENT := ("layers", "output", "later")),  # an answer by the loosest bound it is
)


@dataclass
class Planted:
    """A variant: nanoseconds a pass, and where it is found wrong ("": nowhere)."""

    ns: float
    fault: str = ""
    opened: int = 0
    most: int = 0

    def time_runs(self, count: int, cold: bool = False) -> int:
        return round(count * self.ns)

    def close(self) -> None:
        self.opened -= 1


class Told(Judge[str, Planted]):
    def first(self, session: Planted, tried: Tried[str]) -> Tried[str]:
        wrong = "wrong at once" if session.fault == "first" else ""
        return msgspec.structs.replace(tried, refused=wrong, within=session.fault != "output")

    def timed(self, session: Planted) -> str:
        if session.fault == "timed raises":
            raise KernelError("it failed after timing")
        return "wrong after timing" if session.fault == "timed" else ""

    def again(self, session: Planted) -> tuple[str, str]:
        if session.fault in ("again", "timed", "timed raises"):  # what one alone was not timed for shows here
            return "wrong in full", ""
        return "", "off in another session" if session.fault == "later" else ""

    def __init__(self, variants: dict[str, Planted]) -> None:
        self.variants = variants

    def closely(self, tried: Tried[str], whole: bool = False) -> Tried[str]:
        fault = self.variants[tried.variant].fault
        if fault == "layers raise" or (fault == "all layers raise" and whole):
            raise KernelError("a layer failed alone")
        return msgspec.structs.replace(tried, strict=fault not in ("layers", "all layers raise"))


class Killed(BaseException):
    pass


def swept(variants: dict[str, Planted], looks: Looks, known=None, room=99, end=-1, **more):
    """The choice, and all that was stored; ended where so much was stored. room: for so many sessions."""
    stored: list[Choice[str]] = []

    def prepare(name: str) -> Planted:
        made = variants[name]
        if made.fault == "prepare":
            raise KernelError("it does not compile")
        if sum(each.opened for each in variants.values()) >= room:
            raise OutOfMemoryError("no memory is left")
        made.opened += 1
        return made

    def store(choice: Choice[str]) -> None:
        stored.append(choice)
        if len(stored) == end:
            raise Killed

    sweep = Sweep(
        [*variants], prepare, Told(variants), store, looks, "kernels", lambda *_: None, known=known, **more
    )
    with contextlib.suppress(Killed):
        sweep.run()
    assert not any(each.opened for each in variants.values()), "no session is left open"
    return stored[-1], stored


def expected(variants: dict[str, Planted], worth: float, faults: tuple[str, ...]) -> str | None:
    """The fastest of those whose fault is none of these; the first of them where that gains too little."""
    left = {name: each.ns for name, each in variants.items() if each.fault not in faults}
    best = min(left, key=lambda name: left[name], default=None)
    return best if best is None or left[best] * (1 + worth) < left[(own := next(iter(left)))] else own


def drawn(seed: int) -> dict[str, Planted]:
    """Variants none of which is so slow that others are not tried for it, a few of them nearly alike."""
    rng = random.Random(seed)
    times = [1e5 * 1.03 ** rng.randrange(46) for _ in range(rng.randint(1, 12))]
    return {
        f"v{i}": Planted(ns + i, rng.choice(FAULTS) if rng.random() < 0.45 else "")
        for i, ns in enumerate(times)
    }


@pytest.mark.parametrize("looks", [OPEN, ANEW], ids=["open", "anew"])
@pytest.mark.parametrize("seed", range(40))
def test_what_is_chosen_is_the_fastest_that_is_right(seed: int, looks: Looks) -> None:
    variants = drawn(seed)
    choice, _ = swept(variants, looks)
    assert choice.done
    assert choice.best == expected(variants, looks.worth, FAULTS)
    hard = tuple(fault for fault in FAULTS if fault not in LENIENT)
    assert choice.lenient == expected(variants, looks.worth, hard)


@pytest.mark.parametrize("looks", [OPEN, ANEW], ids=["open", "anew"])
@pytest.mark.parametrize("seed", range(8))
def test_one_that_is_ended_anywhere_comes_to_the_same(seed: int, looks: Looks) -> None:
    whole, stored = swept(drawn(seed), looks)
    for end in range(1, len(stored) + 1):
        known, _ = swept(drawn(seed), looks, end=end)
        choice, _ = swept(drawn(seed), looks, known)
        assert (choice.best, choice.lenient) == (whole.best, whole.lenient), end


@pytest.mark.parametrize("room", [1, 2])
def test_little_memory_changes_no_choice(room: int) -> None:
    for seed in range(8):
        for looks in (OPEN, ANEW):
            choice, _ = swept(drawn(seed), looks, room=room)
            assert choice.best == swept(drawn(seed), looks)[0].best
            assert not any("memory" in tried.refused for tried in choice.tried)


def test_what_has_twice_taken_the_process_with_it_is_passed_over_wherever_it_did() -> None:
    variants = {"default": Planted(3e5), "fatal": Planted(1e5), "good": Planted(2e5)}
    _, stored = swept(variants, OPEN)
    at = [choice for choice in stored if choice.trying == "fatal"]
    assert len(at) == 2, "as it is tried, and as it is confirmed"
    for known in at:
        once, _ = swept(variants, OPEN, msgspec.structs.replace(known, attempts=ATTEMPTS - 1))
        assert once.best == "fatal", "once may have been anybody's doing"
        twice, _ = swept(variants, OPEN, msgspec.structs.replace(known, attempts=ATTEMPTS))
        assert twice.best == "good"
        assert "process ended" in twice.of("fatal").refused


def test_paces_of_elsewhere_leave_out_and_are_no_verdict() -> None:
    variants = {"default": Planted(3e5), "slow": Planted(2.9e5), "far": Planted(9e5), "good": Planted(2e5)}
    choice, _ = swept(variants, OPEN, paces={"slow": 1.5, "far": 5.0})
    assert {t.variant for t in choice.tried if t.refused == UNTRIED} == {"slow", "far"}
    alone = {name: replace(each, fault="" if name == "slow" else "again") for name, each in variants.items()}
    choice, _ = swept(alone, OPEN, paces={"slow": 1.5, "far": 5.0})
    assert choice.best == "slow", "what all others are wrong beside is tried after all"
    assert choice.of("far").refused != SLOWER


def test_each_process_that_ends_at_a_variant_is_counted() -> None:
    variants = {"default": Planted(3e5), "fatal": Planted(1e5)}
    known, ended = None, 0
    while ended < 9:
        _, stored = swept(variants, OPEN, known)
        if not any(choice.trying == "fatal" for choice in stored):
            break
        end = next(n for n, choice in enumerate(stored, 1) if choice.trying == "fatal")
        known, _ = swept(variants, OPEN, known, end=end)
        ended += 1
        assert known.attempts == ended
    assert ended == ATTEMPTS


def test_a_gain_that_is_noise_leaves_the_default() -> None:
    for gain, best in ((1.01, "default"), (1.03, "other")):
        choice, _ = swept({"default": Planted(1e5 * gain), "other": Planted(1e5)}, OPEN)
        assert choice.best == best
        assert swept({"default": Planted(1e5 * gain), "other": Planted(1e5)}, ANEW)[0].best == "other"


def test_an_answer_that_is_wrong_after_the_timed_passes_is_none() -> None:
    for looks in (OPEN, ANEW):
        choice, _ = swept({"default": Planted(1e5), "late": Planted(0.99e5, "timed")}, looks)
        assert choice.of("late").refused == "wrong after timing"
        assert choice.of("default").time_ns is not None


@pytest.mark.parametrize("looks", [OPEN, ANEW], ids=["open", "anew"])
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("timed raises", "it failed after timing"),
        ("layers raise", "a layer failed alone"),
        ("all layers raise", "a layer failed alone"),
    ],
)
def test_who_fails_while_it_is_checked_is_refused_and_the_others_are_not(
    looks: Looks, fault: str, reason: str
) -> None:
    variants = {"default": Planted(1.1e5), "loose": Planted(1.05e5, "layers"), "failing": Planted(1e5, fault)}
    choice, _ = swept(variants, looks)
    assert choice.done
    assert choice.of("failing").refused == reason
    assert (choice.best, choice.lenient) == ("default", "loose")
