"""The result of a comparison for one model: its scoreboard, and one sentence above it. The sentence says who
is faster, by how much and at how many batch sizes; where this is not decided; whether the answers are the
same; and what is left out.

The same sentence is used everywhere: above the charts of the window, in the terminal, in the report and in
exports. It consists of clauses. Each clause knows its cases, so that the window can lead from it to their
points. A difference is named only if it is decided and nothing speaks against it. A contender with wrong
answers is never called fast.

The sentence is about MOST contenders at most. If there are more, it is about those of our engine (if there
are none, about the first ones). It tells of wrong answers of any contender. The scoreboard has all of them.
If a model has more than CROWDED contenders, it gets one sentence and one scoreboard for each precision.
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
    """A part of the sentence.

    - kind: "faster", "slower", "as fast", "unclear" (not decided), "missing" (something was not measured or
      compared), "answers" (they are identical, or as float64's), "differ" (they are wrong or not the
      reference's) or "doubtful".
    - text: its words.
    - cases: the cases that it is about.
    - before: what separates it from the clause before it.
    - stress: the part of `text` that says most, for emphasis.
    - who: the contender whose comparison it is about; "" if it is not about a single comparison.
    """

    kind: str
    text: str
    cases: tuple[Case, ...] = ()
    before: str = "; "
    stress: str = ""
    who: str = ""

    @property
    def role(self) -> str:
        """Which colour it may have: a bench.words.orders.Role; or its `kind`, if it is not about who is
        faster."""
        return {"as fast": "same", "unclear": "undecided"}.get(self.kind, self.kind)


@dataclass(frozen=True)
class ModelVerdict:
    """The scoreboard of a model, and the clauses of the sentence above it, in order."""

    board: Scoreboard
    clauses: tuple[Clause, ...] = ()

    @property
    def model(self) -> str:
        return self.board.model

    @property
    def precision(self) -> str:
        """The only precision that the scoreboard is about; "" if it is about all."""
        return self.board.precision

    @property
    def text(self) -> str:
        """The whole sentence, "" if there is nothing to say."""
        said = "".join(clause.before * bool(place) + clause.text for place, clause in enumerate(self.clauses))
        return f"{said}." if said else ""

    @property
    def line(self) -> str:
        """The sentence after its subject (`subject`) and a colon; "" if there is nothing to say."""
        return f"{self.subject}: {self.text}" if self.clauses else ""

    @property
    def subject(self) -> str:
        """The subject of the sentence: the model's name, the precision if there is one sentence for each, and
        what was timed."""
        of = f", {self.precision}" if self.precision else ""
        return f"{title(self.model)}{of}{CLOCK}"

    def clauses_of(self, who: str) -> tuple[Clause, ...]:
        """The clauses about one contender; for "" those that are not about a single comparison."""
        return tuple(clause for clause in self.clauses if clause.who == who)

    @property
    def contenders(self) -> tuple[str, ...]:
        """The contenders that the sentence is about, each once."""
        return tuple(dict.fromkeys(clause.who for clause in self.clauses if clause.who))

    @property
    def role(self) -> str:
        """Which colour the whole sentence may have. If its clauses about comparisons do not agree, it is
        "doubtful" if one of them is, else "undecided". "" if there are no clauses."""
        told = {clause.role for clause in self.clauses if clause.who}
        if not told:
            return self.clauses[0].role if self.clauses else ""
        return told.pop() if len(told) == 1 else "doubtful" if "doubtful" in told else "undecided"


def verdicts(items: Sequence[Row], runs: Iterable[Run] = ()) -> list[ModelVerdict]:
    """One ModelVerdict for each model, in the order of the rows; for a crowded model one for each precision.
    items: the rows of any models. runs: the runs that they come from, which may plan more cases than were
    measured."""
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
    """Whether these cases of one model have too many contenders for one sentence and one picture: more than
    CROWDED."""
    return len({(case.backend, case.precision) for case in cases}) > CROWDED


def by_precision(items: Sequence[Row], runs: Iterable[Run]) -> dict[str, tuple[list[Row], list[Run]]]:
    """The rows of one model, divided by the precision of the reference that they are compared with. For each
    precision: its rows, and the runs as if they had planned only its cases. If a backend supports other
    precisions but not this one, its cases are left out."""
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
    """The part of `by_precision` for one precision, empty if there is none. For "" all rows and runs,
    unchanged."""
    return by_precision(items, runs).get(precision, ([], [])) if precision else (items, runs)


def precisions(cases: Sequence[Case]) -> tuple[str, ...]:
    """The precisions that each get a sentence and pictures of their own, in the order of the cases. () if the
    model is not crowded, or if there is only one. cases: of one model."""
    found = tuple(dict.fromkeys(compared_in(case.precision) for case in cases))
    return found if len(found) > 1 and crowded(cases) else ()


def verdict(model: str, items: Sequence[Row], runs: Iterable[Run] = (), precision: str = "") -> ModelVerdict:
    """The verdict of one model. items: rows of this model alone; runs, precision: as for `scoreboard`."""
    runs, timed = tuple(runs), most_images(items)
    board = scoreboard(model, items, runs, precision)
    compared = [line for line in board.lines if not line.is_reference]
    told = compared
    if len(compared) > MOST:
        ours = [line for line in compared if line.backend.startswith("engine-")]
        told = (ours or compared)[:MOST]
    clauses: list[Clause] = []
    for line in compared:  # a wrong answer is told of whoever it is
        clauses += _about_contender(line, timed, tuple(KINDS) if line in told else ("wrong",))
    spoken = {clause.who for clause in clauses}
    if left := sum(line.contender not in spoken for line in compared if line not in told):
        clauses.append(Clause("missing", f"{left} other{'s' * (left != 1)} on the scoreboard"))
    clauses += _about_references(timed, {row.case.batch for row in items})
    clauses += answers(items)
    clauses += _not_measured(model, items, runs)
    return ModelVerdict(board, tuple(clauses))


# ------------------------------------------------------------------------------------------------ who wins


def _about_contender(line: Line, timed: Sequence[Row], grades: Sequence[Grade]) -> list[Clause]:
    """The clauses about one contender: its line of the scoreboard in a few words. Only cells of the grades
    `grades` count. A number is given only if it is decided and not doubtful."""
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
    """Why a cell has no plain number, in sentences. Reasons that contain a ratio are left out: it would look
    like a result."""
    if cell.grade == "undecided":
        first = cell.why.partition("\n")[0]
        return (orders.reason(first),) if first != orders.NOT_DECIDED and "×" not in first else ()
    return cell.doubts if cell.grade == "doubtful" else ()


_VERB = dict.fromkeys(("faster", "same", "slower", "wrong"), " is")
_LINK = {"faster": "than", "slower": "than", "same": "as", "undecided": "beside", "doubtful": "beside"}


def _amount(grade: Grade, found: Sequence[Cell]) -> str:
    """How much: "1.30× to 2.41× faster", "as fast"; for a cell without a time, why it has none."""
    if grade in ("faster", "slower"):
        return orders.range_words(grade.upper(), [cell.speedup for cell in found])
    if grade == "none":
        return f"no time ({doubt.in_short([found[0].why])})"
    return {"same": "as fast", "undecided": orders.NOT_DECIDED, "doubtful": DOUBTFUL}.get(
        grade, found[0].text
    )


def _where(batches: Sequence[int], known: Sequence[int]) -> str:
    """At which batch sizes: " at all 6 batch sizes", " at batch 1–16". known: all batch sizes of this
    contender."""
    if len(known) > 1 and len(batches) == len(known):
        return f" at all {len(known)} batch sizes" if len(known) > 2 else " at both batch sizes"
    return f" at batch {units.spans(batches, known)}"


# ------------------------------------------------------------------------------------------- what is left out


def _about_references(timed: Sequence[Row], known: set[int]) -> Iterator[Clause]:
    """Clauses about references that failed, and about references with which nothing is compared."""
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
    if own and len(own) == len(timed) and any(row.completed for row in own):
        who = " and ".join(dict.fromkeys(row.contender for row in own))
        yield Clause("missing", f"{who} alone was measured, with nothing to compare")


def _not_measured(model: str, items: Sequence[Row], runs: Iterable[Run]) -> Iterator[Clause]:
    """A clause about planned cases that have no row yet."""
    planned = {case for run in runs for case in run.cases if case.model == model}
    left = len(planned - {row.case for row in items})
    if items and left:
        yield Clause("missing", f"{left:,} of {len(planned):,} cases {_are(left)} not measured yet")


# ------------------------------------------------------------------------------------------------- answers


def answers(items: Sequence[Row]) -> list[Clause]:
    """Clauses on whether each contender gives the same answers as its reference, for all images that were
    compared. items: rows of one model. No clause if there is nothing to say."""
    sound = [row for row in items if not row.is_reference and row.completed]
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
        cases = tuple(row.case for row in unknown)
        if all(_as_float64(row) for row in unknown):
            text = "answers as float64's, each within its bound"
            found.append(Clause("answers", text, cases, stress="answers as float64's"))
        else:
            found.append(Clause("missing", "answers were not compared", cases))
    return found


def _as_float64(row: Row) -> bool:
    """Whether outputs were held against float64, as those of a model without classes are."""
    accuracy = row.measurement.accuracy
    return accuracy is not None and accuracy.output is not None and accuracy.output.ok


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
