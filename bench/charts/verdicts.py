"""What a comparison says of one model, in a sentence made of its rows: who is faster by how much at which
batch sizes, where that is not decided and why, whether the answers are the same, what is left out, what is
to be doubted.

There is this one sentence: above the charts of the window, in the terminal, in the report and in what is
exported. Each of its clauses knows the cases that it speaks of, so that it leads to their points. A
difference is named only where the interval of the ratio lies outside ±2 % (FASTER, SLOWER); a wrong answer
is never called fast. Of more contenders than a sentence can hold there is one for each precision.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from bench.charts.series import most_images
from bench.ladder.records import compared_in
from bench.results import doubt
from bench.results.records import Case, Run
from bench.results.rows import Row, contenders, label, title
from bench.results.stats import SAME_BOUND
from bench.words import orders, units

# The kind of a clause, by the verdict that it tells.
KINDS = {"FASTER": "faster", "SLOWER": "slower", "SAME": "as fast", "UNCLEAR": "unclear"}
SHORT = f" ({doubt.MARK.strip()})"  # behind figures that are to be doubted
DOUBTFUL = f"doubtful{SHORT}"
CLOCK = ", forward pass"  # behind a model's name: ratios are of this clock, not of passes from end to end
CROWDED = 8  # contenders of a model; of more nobody sees which is which


@dataclass(frozen=True)
class Clause:
    """A part of the sentence and the cases whose points show it. kind: "faster", "slower", "as fast",
    "unclear", "missing", "answers", "differ" or "doubtful"; before: what stands between it and the clause
    before it; stress: the words of it that tell most; who: the contender whose comparison with its reference
    it is about, "" of what is said of all; doubtful: its figures are."""

    kind: str
    text: str
    cases: tuple[Case, ...] = ()
    before: str = "; "
    stress: str = ""
    who: str = ""
    doubtful: bool = False

    @property
    def role(self) -> str:
        """What its colour may say (bench.words.orders.Role), or its kind where it is about no order."""
        verdict = next((name for name, kind in KINDS.items() if kind == self.kind), "")
        return orders.role(verdict, ("doubtful",) if self.doubtful else ()) or self.kind


@dataclass(frozen=True)
class Verdict:
    """The clauses of a model's sentence, in order. precision: of which alone it is ("": of all)."""

    model: str
    clauses: tuple[Clause, ...] = ()
    precision: str = ""

    @property
    def text(self) -> str:
        """The sentence, "" where nothing was measured."""
        said = "".join(clause.before * bool(place) + clause.text for place, clause in enumerate(self.clauses))
        return f"{said}." if said else ""

    @property
    def line(self) -> str:
        """The same behind what it is of."""
        return f"{self.about}: {self.text}" if self.clauses else ""

    @property
    def about(self) -> str:
        """The model's name, the precision where there are sentences of others, and what was timed."""
        of = f", {self.precision}" if self.precision else ""
        return f"{title(self.model)}{of}{CLOCK}"

    def told_of(self, who: str) -> tuple[Clause, ...]:
        """What is said of one comparison, of "" what is said of all."""
        return tuple(clause for clause in self.clauses if clause.who == who)

    @property
    def whos(self) -> tuple[str, ...]:
        """The contenders that are compared."""
        return tuple(dict.fromkeys(clause.who for clause in self.clauses if clause.who))

    @property
    def role(self) -> str:
        """What one colour may say of the whole sentence: of several comparisons only what is true of all."""
        told = {clause.role for clause in self.clauses if clause.who}
        if not told:
            return self.clauses[0].role if self.clauses else ""
        return told.pop() if len(told) == 1 else "doubtful" if "doubtful" in told else "undecided"

    def reliable(self, who: str) -> bool:
        """Whether a comparison says at every batch size which is faster, and nothing speaks against it."""
        kinds = {clause.kind for clause in self.told_of(who)}
        return bool(kinds) and kinds <= {"faster", "slower", "as fast"}


def verdicts(items: Sequence[Row], runs: Iterable[Run] = ()) -> list[Verdict]:
    """One a model, in the rows' order, or one for each precision of a model that is crowded. runs: in which
    they were measured, and which mean further cases."""
    runs, found = tuple(runs), []
    for model in dict.fromkeys(row.case.model for row in items):
        own = [row for row in items if row.case.model == model]
        if not crowded(row.case for row in own):
            found.append(verdict(model, own, runs))
            continue
        for precision, (rows, among) in by_precision(own, runs).items():
            found.append(replace(verdict(model, rows, among), precision=precision))
    return found


def crowded(cases: Iterable[Case]) -> bool:
    """Whether one model's cases are of too many contenders for one sentence and one picture."""
    return len({(case.backend, case.precision) for case in cases}) > CROWDED


def by_precision(items: Sequence[Row], runs: Iterable[Run]) -> dict[str, tuple[list[Row], list[Run]]]:
    """Rows by the precision of the references that they are held against, without what nobody offers; and
    the runs as if they had meant those cases alone."""
    runs, found = tuple(runs), dict[str, list[Row]]()
    for row in items:
        if row.measurement.disposition != "unsupported":
            found.setdefault(compared_in(row.case.precision), []).append(row)
    left_out = {row.case for row in items if row.measurement.disposition == "unsupported"}

    def cut(run: Run, precision: str) -> Run:
        cases = (case for case in run.cases if compared_in(case.precision) == precision)
        return msgspec.structs.replace(run, cases=tuple(case for case in cases if case not in left_out))

    return {precision: (rows, [cut(run, precision) for run in runs]) for precision, rows in found.items()}


def of_precision(
    items: Sequence[Row], runs: Sequence[Run], precision: str
) -> tuple[Sequence[Row], Sequence[Run]]:
    """What `by_precision` has of one precision; of "" all, as it is."""
    return by_precision(items, runs).get(precision, ([], [])) if precision else (items, runs)


def precisions(cases: Sequence[Case]) -> tuple[str, ...]:
    """Those that one model's sentence and pictures are made for one by one, in the order of the cases; none
    where one holds them all."""
    found = tuple(dict.fromkeys(compared_in(case.precision) for case in cases))
    return found if len(found) > 1 and crowded(cases) else ()


def verdict(model: str, items: Sequence[Row], runs: Iterable[Run] = ()) -> Verdict:
    """Of one model's rows."""
    timed = most_images(items)
    known = {row.case.batch for row in items}
    clauses: list[Clause] = []
    whos = [label(*pair) for pair in contenders(row for row in timed if not row.is_reference)]
    for who in whos:
        own = sorted((r for r in timed if r.contender == who), key=lambda r: r.case.batch)
        clauses += _of_one(who, own, known)
        clauses += _doubts(own, known, who)
    clauses += _references(timed, known)
    clauses += answers(items)
    clauses += _not_measured(model, items, runs)
    held = {row.against.case for row in timed if row.against is not None}
    clauses += _doubts([row for row in timed if row.is_reference and row.case not in held], known)
    return Verdict(model, tuple(clauses))


# ------------------------------------------------------------------------------------------------ who wins


def _of_one(who: str, own: Sequence[Row], known: set[int]) -> list[Clause]:
    """Where a contender is faster, slower, as fast, where none of these is decided, and where nothing is
    known of it. What is to be doubted is never in one breath with what is not."""
    parts: list[tuple[str, str, list[Row], str, bool]] = []
    compared = [r for r in own if r.speedup is not None and r.measurement.disposition == "ok"]
    for name, word in KINDS.items():
        told = [r for r in compared if r.verdict == name]
        # Of what is not decided the reason is told, and nothing more is to be doubted.
        doubtful = [r for r in told if r.speedup_doubts and word != "unclear"]
        for found in ([r for r in told if r not in doubtful], doubtful):
            if found:
                amount = orders.amounts(name, [row.speedup for row in found])
                how = _how(amount, word, found, known)
                parts.append((word, how + SHORT * (found is doubtful), found, amount, found is doubtful))
    against = next((r.against for r in compared if r.against is not None), None)
    if against is not None:
        reference = label(against.case.backend, against.case.precision)
        kind, text, rows, amount, unsure = parts[0]
        parts[0] = (kind, _beside(kind, text, who, reference), rows, amount, unsure)
    lone = [r for r in own if r.measurement.disposition == "ok" and r.speedup is None]
    if lone:
        where = units.spans((r.case.batch for r in lone), known)
        reference = lone[0].measurement.reference
        text = f"not compared at batch {where} ({reference} has no time there)"
        parts.append(("missing", text, lone, "", False))
    parts += [("missing", text, rows, "", False) for text, rows in _without(own, known)]
    last = len(parts) - 1
    return [
        Clause(
            kind,
            text if place or (kind == "unclear" and against is not None) else f"{who} is {text}",
            tuple(r.case for r in rows),
            "; " if place == 0 else " and " if place == last else ", ",
            amount,
            who,
            unsure,
        )
        for place, (kind, text, rows, amount, unsure) in enumerate(parts)
    ]


def _ends(found: Sequence[Row]) -> str:
    """ " (least at 16, most at 1)": a range over batch sizes is no interval, and its ends are seldom the
    first and the last of them. Nothing where they are of one size."""
    least, most = _least_and_most(found)
    if units.times(orders.above_one(least.speedup or 1.0)) == units.times(
        orders.above_one(most.speedup or 1.0)
    ):
        return ""
    return f" (least at {least.case.batch:,}, most at {most.case.batch:,})"


def _least_and_most(found: Sequence[Row]) -> tuple[Row, Row]:
    ranked = sorted(found, key=lambda row: orders.above_one(row.speedup or 1.0))
    return ranked[0], ranked[-1]


def _how(amount: str, word: str, found: Sequence[Row], known: set[int]) -> str:
    """The amount and where, with what is to be said of it."""
    where = f"at batch {units.spans((r.case.batch for r in found), known)}"
    if word == "as fast":
        return f"{amount} {where} (within {SAME_BOUND * 100:.0f} %)"
    if word == "unclear":
        return f"{amount} {where} ({why_unclear(found)})"
    return f"{amount} {where}{_ends(found)}"


def _beside(kind: str, text: str, who: str, reference: str) -> str:
    """The clause that names whom all of them are against."""
    if kind == "unclear":
        return text.replace(orders.NOT_DECIDED, orders.between((who, reference)), 1)
    link = "as" if kind == "as fast" else "than"
    return text.replace(kind, f"{kind} {link} {reference}", 1)


def why_unclear(found: Sequence[Row]) -> str:
    """Why rows have no verdict, each reason once; without the ratios that are not decided."""
    told = list(dict.fromkeys(orders.reason(row.undecided) for row in found if row.undecided))
    if any(row.measurement.validity.stop_reason == "budget" for row in found):
        told.append("the time budget was spent")
    return ", ".join(told)


# ------------------------------------------------------------------------------------------- what is left out


def _without(own: Sequence[Row], known: set[int]) -> Iterator[tuple[str, list[Row]]]:
    """Cases that have no time, by what became of them."""
    ended: dict[str, list[Row]] = {}
    for row in own:
        if row.measurement.disposition != "ok":
            ended.setdefault(row.measurement.disposition, []).append(row)
    for disposition, rows in ended.items():
        where = units.spans((r.case.batch for r in rows), known)
        if disposition == "incorrect":
            yield f"wrong at batch {where}", rows
        else:
            yield f"without a time at batch {where} ({disposition.replace('_', ' ')})", rows


def _references(timed: Sequence[Row], known: set[int]) -> Iterator[Clause]:
    """References that failed, and those that nobody is compared with."""
    own = [row for row in timed if row.is_reference]
    for who in dict.fromkeys(row.contender for row in own):
        rows = [row for row in own if row.contender == who]
        for text, found in _without(rows, known):
            yield Clause("missing", f"{who} is {text}", tuple(r.case for r in found))
    if own and len(own) == len(timed) and any(row.sound for row in own):
        who = " and ".join(dict.fromkeys(row.contender for row in own))
        yield Clause("missing", f"{who} alone was measured, with nothing to compare")


def _not_measured(model: str, items: Sequence[Row], runs: Iterable[Run]) -> Iterator[Clause]:
    planned = {case for run in runs for case in run.cases if case.model == model}
    left = len(planned - {row.case for row in items})
    if items and left:
        yield Clause("missing", f"{left:,} of {len(planned):,} cases {_are(left)} not measured yet")


# ------------------------------------------------------------------------------------------------- answers


def answers(items: Sequence[Row]) -> list[Clause]:
    """Whether every contender answers each image as its reference does, of those that were asked."""
    sound = [row for row in items if not row.is_reference and row.sound]
    differing: dict[str, list[tuple[int, int, Row]]] = {}
    unknown, alike = [], []
    for row in sound:
        accuracy = row.measurement.accuracy
        if accuracy is None or accuracy.agreement is None or not accuracy.images:
            unknown.append(row)
        elif accuracy.agreement < 1:
            count = round((1 - accuracy.agreement) * accuracy.images)
            differing.setdefault(row.contender, []).append((count, accuracy.images, row))
        else:
            alike.append(row)
    found = []
    for who, told in differing.items():
        count, images, worst = max(told, key=lambda item: item[:2])
        of = f"{count:,} of {images:,} images"
        said = f"{who} answers {of} unlike its reference at batch {worst.case.batch:,}"
        cases = tuple(row.case for _, _, row in told)
        found.append(Clause("differ", said, cases, stress=f"{of} unlike"))
    if alike and not differing and not any(row.failed for row in sound):
        counts = units.spans({row.case.images for row in alike}, ())
        some = " where they were compared" if unknown else ""
        text = f"answers identical on {counts} images{some}"
        found.append(Clause("answers", text, tuple(row.case for row in alike), stress="answers identical"))
    elif unknown and not (alike or differing):
        found.append(Clause("missing", "answers were not compared", tuple(row.case for row in unknown)))
    return found


# -------------------------------------------------------------------------------------------------- doubts


def _doubts(timed: Sequence[Row], known: set[int], who: str = "") -> Iterator[Clause]:
    """What speaks against ratios; apart, what speaks against times and was divided out of their ratio. Of a
    contender's rows, its references looked at with them, or of references by themselves."""
    names = {row.case: row.contender for row in timed}
    texts = {row.case: row.own_doubts for row in timed}
    held: set[Case] = set()  # those that a ratio was made of
    weighing: set[tuple[Case, str]] = set()
    for row in timed:
        if row.against is None:
            continue
        other = row.against.case
        if other not in texts:
            names[other] = label(other.backend, other.precision)
            texts[other] = doubt.own(row.against)
        held |= {row.case, other}
        speaking = set(row.speedup_doubts)
        weighing |= {(row.case, text) for text in texts[row.case] if text in speaking}
        weighing |= {
            (other, text) for text in texts[other] if any(t.startswith(f"{text} (of ") for t in speaking)
        }
    told: dict[Case, tuple[str, list[str]]] = {}
    apart: dict[Case, tuple[str, list[str]]] = {}
    for case, found in texts.items():
        few = any(text.startswith("only ") for text in found)  # which says as much of one
        for text in found:
            if few and text == doubt.ONE_SAMPLE:
                continue
            into = told if case not in held or (case, text) in weighing else apart
            into.setdefault(case, (names[case], []))[1].append(text)
    if told:
        yield Clause("doubtful", f"{DOUBTFUL}: {_named(told, known)}", tuple(told), stress=DOUBTFUL, who=who)
    if apart:
        text = f"{DOUBTFUL} as times, while their ratio is steady: {_named(apart, known)}"
        yield Clause("doubtful", text, tuple(apart), stress=f"{DOUBTFUL} as times", who=who)


def _named(told: dict[Case, tuple[str, list[str]]], known: set[int]) -> str:
    """ "engine-cpu and ort-cpu at batch 4–16 (only 3–5 samples fit the budget)", and so on."""
    by_who: dict[str, tuple[list[int], list[str]]] = {}
    for case, (who, texts) in told.items():
        batches, all_texts = by_who.setdefault(who, ([], []))
        batches.append(case.batch)
        all_texts += texts
    by_why: dict[str, dict[str, list[str]]] = {}
    for who, (batches, texts) in by_who.items():
        places = by_why.setdefault(doubt.in_short(texts), {})
        places.setdefault(f"at batch {units.spans(batches, known)}", []).append(who)
    return ", ".join(
        f"{_and([f'{_and(whos)} {where}' for where, whos in places.items()])} ({why})"
        for why, places in by_why.items()
    )


def _and(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
