"""What a comparison says of one model: its scoreboard, and in one line above that what it comes to: who is
faster by how much at how many batch sizes, where that is not decided, whether the answers are the same, what
is left out.

There is this one line: above the charts of the window, in the terminal, in the report and in what is
exported. Each of its clauses knows the cases that it speaks of, so that it leads to their points. A
difference is named only where it is decided and nothing speaks against it; a wrong answer is never called
fast. Of more contenders than it has room for it tells of our engine's; the scoreboard has them all. Of a
model that is crowded there is one for each precision.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from bench.results import doubt
from bench.results.records import Case, Run, compared_in
from bench.results.rows import Row, title
from bench.views.charts.scoreboard import Cell, Grade, Line, Scoreboard, scoreboard
from bench.views.charts.series import most_images
from bench.words import orders, units

DOUBTFUL = f"doubtful ({doubt.MARK.strip()})"
# The grades of cells that a line speaks of, in its order, and the kinds of their clauses.
KINDS: dict[Grade, str] = {
    "faster": "faster",
    "same": "as fast",
    "slower": "slower",
    "doubtful": "doubtful",
    "undecided": "unclear",
    "wrong": "differ",
    "none": "missing",
}
CLOCK = ", forward pass"  # behind a model's name: ratios are of this clock, not of passes from end to end
MOST = 4  # contenders that the line tells of
CROWDED = 8  # contenders of a model; of more nobody sees which is which


@dataclass(frozen=True)
class Clause:
    """A part of the sentence and the cases whose points show it. kind: "faster", "slower", "as fast",
    "unclear", "missing", "answers", "differ" or "doubtful"; before: what stands between it and the clause
    before it; stress: the words of it that tell most; who: the contender whose comparison with its reference
    it is about, "" of what is said of all."""

    kind: str
    text: str
    cases: tuple[Case, ...] = ()
    before: str = "; "
    stress: str = ""
    who: str = ""

    @property
    def role(self) -> str:
        """What its colour may say (bench.words.orders.Role), or its kind where it is about no order."""
        return {"as fast": "same", "unclear": "undecided"}.get(self.kind, self.kind)


@dataclass(frozen=True)
class Verdict:
    """A model's scoreboard and the clauses of the line above it, in order. precision: of which alone they are
    ("": of all)."""

    board: Scoreboard
    clauses: tuple[Clause, ...] = ()

    @property
    def model(self) -> str:
        return self.board.model

    @property
    def precision(self) -> str:
        return self.board.precision

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

    def clauses_of(self, who: str) -> tuple[Clause, ...]:
        """What is said of one comparison, of "" what is said of all."""
        return tuple(clause for clause in self.clauses if clause.who == who)

    @property
    def contenders(self) -> tuple[str, ...]:
        """The contenders that are compared."""
        return tuple(dict.fromkeys(clause.who for clause in self.clauses if clause.who))

    @property
    def role(self) -> str:
        """What one colour may say of the whole line: of several comparisons only what is true of all."""
        told = {clause.role for clause in self.clauses if clause.who}
        if not told:
            return self.clauses[0].role if self.clauses else ""
        return told.pop() if len(told) == 1 else "doubtful" if "doubtful" in told else "undecided"

    def reliable(self, who: str) -> bool:
        """Whether a comparison says at every batch size which is faster, and nothing speaks against it."""
        kinds = {clause.kind for clause in self.clauses_of(who)}
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
            found.append(verdict(model, rows, among, precision))
    return found


def crowded(cases: Iterable[Case]) -> bool:
    """Whether one model's cases are of too many contenders for one sentence and one picture."""
    return len({(case.backend, case.precision) for case in cases}) > CROWDED


def by_precision(items: Sequence[Row], runs: Iterable[Run]) -> dict[str, tuple[list[Row], list[Run]]]:
    """Rows by the precision of the references that they are held against, without precisions that a backend
    does not offer; and the runs as if they had meant those cases alone."""
    runs, found = tuple(runs), dict[str, list[Row]]()
    offered = {
        (row.case.backend, row.case.precision)
        for row in items
        if row.measurement.disposition != "unsupported"
    }
    some = {backend for backend, _ in offered}
    # A backend that refuses the model in all precisions is told of; one that lacks a precision is not.
    left_out = {
        row.case
        for row in items
        if row.case.backend in some and (row.case.backend, row.case.precision) not in offered
    }
    for row in items:
        if row.case not in left_out:
            found.setdefault(compared_in(row.case.precision), []).append(row)

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


def verdict(model: str, items: Sequence[Row], runs: Iterable[Run] = (), precision: str = "") -> Verdict:
    """Of one model's rows."""
    runs, timed = tuple(runs), most_images(items)
    board = scoreboard(model, items, runs, precision)
    compared = [line for line in board.lines if not line.is_reference]
    told = compared
    if len(compared) > MOST:
        ours = [line for line in compared if line.backend.startswith("engine-")]
        told = (ours or compared)[:MOST]
    clauses: list[Clause] = []
    for line in compared:  # a wrong answer is told of whoever it is
        clauses += _of_one(line, timed, tuple(KINDS) if line in told else ("wrong",))
    spoken = {clause.who for clause in clauses}
    if left := sum(line.contender not in spoken for line in compared if line not in told):
        clauses.append(Clause("missing", f"{left} other{'s' * (left != 1)} on the scoreboard"))
    clauses += _references(timed, {row.case.batch for row in items})
    clauses += answers(items)
    clauses += _not_measured(model, items, runs)
    return Verdict(board, tuple(clauses))


# ------------------------------------------------------------------------------------------------ who wins


def _of_one(line: Line, timed: Sequence[Row], grades: Sequence[Grade]) -> list[Clause]:
    """A contender's line of the scoreboard in a few words, of cells of these grades. What is not decided, or
    is to be doubted, has no number here."""
    known = [cell.batch for cell in line.cells if cell.grade != "absent"]
    cases = {row.case.batch: row.case for row in timed if row.contender == line.contender}
    parts: list[tuple[Grade, str, list[Cell]]] = []
    for grade in grades:
        alike: dict[str, list[Cell]] = {}  # cells that share their words
        for cell in (cell for cell in line.cells if cell.grade == grade):
            words = {"wrong": cell.text, "none": cell.why}.get(grade, "")
            alike.setdefault(words, []).append(cell)
        parts += [(grade, _amount(grade, found), found) for found in alike.values()]
    clauses = []
    for place, (grade, amount, found) in enumerate(parts):
        beside = "" if place or grade in ("wrong", "none") else f" {_LINK[grade]} {line.reference}"
        why = doubt.in_short(text for cell in found for text in _reasons(cell))
        text = f"{amount}{beside}{_where([cell.batch for cell in found], known)}{f' ({why})' if why else ''}"
        clauses.append(
            Clause(
                KINDS[grade],
                text if place else f"{line.contender}{_VERB.get(grade, ':')} {text}",
                tuple(cases[cell.batch] for cell in found if cell.batch in cases),
                ", " if place else "; ",
                amount,
                line.contender,
            )
        )
    return clauses


def _reasons(cell: Cell) -> tuple[str, ...]:
    """Why a cell is no plain figure, without figures of ratios, which are no headline then."""
    if cell.grade == "undecided":
        first = cell.why.partition("\n")[0]
        return (orders.reason(first),) if first != orders.NOT_DECIDED and "×" not in first else ()
    return cell.doubts if cell.grade == "doubtful" else ()


_VERB = dict.fromkeys(("faster", "same", "slower", "wrong"), " is")
_LINK = {"faster": "than", "slower": "than", "same": "as", "undecided": "beside", "doubtful": "beside"}


def _amount(grade: Grade, found: Sequence[Cell]) -> str:
    """ "1.30× to 2.41× faster", "as fast"; of what has no time why."""
    if grade in ("faster", "slower"):
        return orders.range_words(grade.upper(), [cell.speedup for cell in found])
    if grade == "none":
        return f"no time ({doubt.in_short([found[0].why])})"
    return {"same": "as fast", "undecided": orders.NOT_DECIDED, "doubtful": DOUBTFUL}.get(
        grade, found[0].text
    )


def _where(batches: Sequence[int], known: Sequence[int]) -> str:
    """ " at all 6 batch sizes", " at batch 1–16"."""
    if len(known) > 1 and len(batches) == len(known):
        return f" at all {len(known)} batch sizes" if len(known) > 2 else " at both batch sizes"
    return f" at batch {units.spans(batches, known)}"


# ------------------------------------------------------------------------------------------- what is left out


def _references(timed: Sequence[Row], known: set[int]) -> Iterator[Clause]:
    """References that failed, and those that nobody is compared with."""
    own = [row for row in timed if row.is_reference]
    for who in dict.fromkeys(row.contender for row in own):
        rows = [row for row in own if row.contender == who]
        ended: dict[str, list[Row]] = {}
        for row in rows:
            if row.measurement.disposition != "ok":
                ended.setdefault(row.measurement.disposition.replace("_", " "), []).append(row)
        for text, found in ended.items():
            where = units.spans((row.case.batch for row in found), known)
            told = " is wrong" if text == "incorrect" else f": no time ({text})"
            yield Clause("missing", f"{who}{told} at batch {where}", tuple(row.case for row in found))
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


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
