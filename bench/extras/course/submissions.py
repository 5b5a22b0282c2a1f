"""What a class handed in, by student and exercise: each exercise's kernel is found by its header.

Nothing of it is run here, and nothing that is wrong with one student's is another's: what cannot be read is
told of the exercise that it would have been for. To be judged a kernel is copied under a number and a name
that are free (`staged`): whatever its file is called, two students' `90_mine` never meet, and none meets a
rung of the ladder.
"""

from __future__ import annotations

import datetime
import itertools
import math
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec

from bench.extras.course import alike, files, people
from bench.extras.course.files import Piece, Taken
from bench.extras.course.people import Owner, Person
from bench.extras.course.records import NAME, NUMBER, Answer, Exercise, GradeJob, Student, digest
from bench.words import plain
from kernels import toml
from kernels.errors import InputError, KernelError, system_words
from kernels.header import parse
from kernels.registry import SUFFIX, SUFFIXES, is_rung_file

ANSWERS = "answers.toml"
MOST_ENTRIES = 20_000
# The files that a kernel may lean on: they travel with it.
_HELPERS = {"cuda": (".cuh", ".h"), "cpu": ()}
_HELPER = re.compile(r"[A-Za-z0-9_][\w.+-]*", re.ASCII)  # a name that is the same on every system
_NUMBERED = re.compile(r"^([ \t#*]*)rung[ \t]*=[ \t]*\d+", re.MULTILINE)
_NAMED = re.compile(r'^([ \t#*]*)name[ \t]*=[ \t]*"[^"\n]*"', re.MULTILINE)
UNCHANGED = "this is the kernel that was handed out, unchanged: as it is, it gets no points"
HARDLY = "hardly more than one place of it differs from the kernel that was handed out"
OF_FILE = "the date of the file"  # says when it was handed in
_ANSWER = 10_000  # characters
_REASON = 600
_DAY_S = 86400


@dataclass(frozen=True)
class HandedIn:
    """One student's. texts: by exercise what is judged; helpers: by exercise the files that it may lean on,
    by name; unchanged: by exercise the kernel that was handed out, which is nobody's work and is not
    judged."""

    student: Student
    texts: dict[str, str] = field(default_factory=dict)
    helpers: dict[str, dict[str, str]] = field(default_factory=dict)
    unchanged: dict[str, str] = field(default_factory=dict)

    @property
    def tried(self) -> HandedIn:
        """The same, with what is unchanged judged as well."""
        problems = {name: why for name, why in self.student.problems.items() if name not in self.unchanged}
        student = msgspec.structs.replace(self.student, problems=problems)
        return replace(self, student=student, texts=self.texts | self.unchanged)

    def staged(self, exercise: str) -> dict[str, str]:
        """The files of an exercise to be judged by relative name, in the exercise's folder."""
        suffix = Path(self.student.files[exercise]).suffix
        made = {f"{exercise}/{name}": text for name, text in self.helpers.get(exercise, {}).items()}
        return made | {f"{exercise}/{NUMBER}_{NAME}{suffix}": renamed(self.texts[exercise])}


def renamed(text: str) -> str:
    """The text of a rung under the name that it is judged by, each line where it was."""
    text = _NUMBERED.sub(rf"\g<1>rung = {NUMBER}", text, count=1)
    return _NAMED.sub(rf'\g<1>name = "{NAME}"', text, count=1)


def wanted(job: GradeJob, name: str) -> bool:
    """Whether a file of a hand-in is read."""
    return name == ANSWERS or name.endswith((*SUFFIXES[job.device], *_HELPERS[job.device]))


def _helps(job: GradeJob, name: str) -> bool:
    """Whether a file is one that a kernel may lean on."""
    return wanted(job, name) and (name.endswith(_HELPERS[job.device]) or name.startswith("_"))


# -------------------------------------------------------------------------------------------------- the class


def students(
    folder: Path, job: GradeJob, roster: Sequence[Person] = (), known: Iterable[Student] = ()
) -> tuple[HandedIn, ...]:
    """All that was handed in, by student's name; everybody on the roster has one. known: students of an
    earlier grading, who keep their keys. Raises InputError where there is nothing."""
    folder = Path(folder)
    try:
        with os.scandir(folder) as found:
            entries = sorted(itertools.islice(found, MOST_ENTRIES + 1), key=lambda entry: entry.name)
    except OSError as error:
        raise InputError(f"the submissions {folder} cannot be read: {system_words(error)}") from error
    if len(entries) > MOST_ENTRIES:
        raise InputError(f"{folder} has more than {MOST_ENTRIES:,} entries; grade a class at a time")
    metadata = people.metadata(folder / people.METADATA)
    known_people = people.Matched(roster)
    by_owner: dict[str, list[tuple[Owner, Taken]]] = {person.who: [] for person in roster}
    for entry in entries:
        if entry.name.startswith(".") or entry.name in (people.ROSTER, people.METADATA, "__MACOSX"):
            continue
        owner = people.owner_of(entry.name, metadata, _is_file(entry))
        owner.entry = files.shown(entry.name)
        if roster:
            known_people.find(owner)
        taken = files.taken(Path(entry.path), lambda name: wanted(job, name), owner.file)
        by_owner.setdefault(owner.who, []).append((owner, taken))
    if not by_owner:
        raise InputError(
            f"there is no submission in {folder}: a folder, an archive or a {SUFFIX[job.device]} file "
            "a student"
        )
    by_who = {person.who: person for person in roster}
    told = [
        (who, *((by_who[who].name, by_who[who].id) if who in by_who else (owned[0][0].name, owned[0][0].id)))
        for who, owned in by_owner.items()
    ]
    keys = people.keys(told, known)
    made = [
        _of_one(key, who, name, owned, by_who.get(who), job)
        for key, (who, name, _), owned in zip(keys, told, by_owner.values(), strict=True)
    ]
    return tuple(sorted(made, key=lambda one: (people.folded(one.student.name), one.student.key)))


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return not entry.is_dir(follow_symlinks=False)
    except OSError:
        return True


def _of_one(
    key: str,
    who: str,
    name: str,
    owned: Sequence[tuple[Owner, Taken]],
    person: Person | None,
    job: GradeJob,
) -> HandedIn:
    """What one student handed in, in all entries that are theirs."""
    pieces = [piece for _, taken in owned for piece in taken.pieces]
    said = [words for _, taken in owned for words in taken.said]
    owner = owned[0][0] if owned else Owner(who, name)
    at, at_by, late_s = _times(owned, person, job)
    student = Student(
        key=key,
        name=name,
        who=who,
        id=person.id if person is not None else owner.id,
        email=person.email if person is not None else owner.email,
        section=person.section if person is not None else "",
        sources=tuple(owner.entry for owner, _ in owned),
        at=at,
        at_by=at_by,
        late_s=late_s,
        remarks=tuple(dict.fromkeys(words for owner, _ in owned for words in owner.remarks)),
    )
    return of_pieces(student, pieces, job, said)


def _times(
    owned: Sequence[tuple[Owner, Taken]], person: Person | None, job: GradeJob
) -> tuple[str, str, float | None]:
    """When it was handed in, who says so, and how many seconds after the deadline that is."""
    if not owned:
        return "", "", None
    told = [made for owner, _ in owned if (made := people.parsed(owner.at)) is not None]
    newest = max((taken.at for _, taken in owned), default=0.0)
    marked = any(owner.late for owner, _ in owned)
    if told:
        at, by = max(told), "Gradescope"
    elif person is not None and (made := people.parsed(person.at)) is not None:
        at, by = made, "the roster"
    elif newest:
        at, by = _local(newest), OF_FILE
    else:
        return "", "", 0.0 if marked else None
    deadline = people.parsed(job.deadline)
    late = (at - deadline).total_seconds() if deadline is not None else 0.0
    words = at.isoformat(timespec="seconds")
    if marked and (by == OF_FILE or late <= 0):  # the platform knows better than the date of a file
        return words, by, 0.0
    return words, by, late if late > 0 else None


def _local(seconds: float) -> datetime.datetime:
    """A time of a file; one that no calendar has is the beginning of 1970."""
    if not math.isfinite(seconds) or not 0 <= seconds < 200 * 365 * _DAY_S:
        seconds = 0.0
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).astimezone()


# --------------------------------------------------------------------------------------------- of one student


def of_files(student: str, paths: Sequence[Path], job: GradeJob, beside: Path | None = None) -> HandedIn:
    """One student's, out of these files and folders. beside: a folder in which lies what they may lean on."""
    taken = [files.taken(path, lambda name: wanted(job, name)) for path in paths]
    if beside is not None:
        taken.append(files.taken(beside, lambda name: _helps(job, name)))
    pieces = list(dict.fromkeys(piece for one in taken for piece in one.pieces))
    said = [words for one in taken for words in one.said]
    return of_pieces(Student(key=student, name=student, who=student), pieces, job, said)


def of_pieces(student: Student, pieces: Sequence[Piece], job: GradeJob, said: Sequence[str]) -> HandedIn:
    """One student's, out of what was read. said: what was left out."""
    kernels: list[tuple[dict[str, Any], Piece]] = []  # header, file
    helpers: list[Piece] = []
    broken: list[str] = []
    others: list[str] = []  # of Python that is no kernel for this device
    answers: list[Piece] = []
    for piece in pieces:
        if piece.name == ANSWERS:
            answers.append(piece)
        elif piece.why:
            broken.append(piece.why)
        elif any(piece.text == exercise.reference for exercise in job.exercises):
            continue  # what was handed out beside the kernel
        elif _helps(job, piece.name):
            helpers.append(piece)
        elif not is_rung_file(job.device, piece.name, piece.text):
            others.append(piece.name)
        else:
            try:
                kernels.append((parse(Path(piece.name), job.device, piece.text), piece))
            except KernelError as error:
                broken.append(str(error))
    texts: dict[str, str] = {}
    leans: dict[str, dict[str, str]] = {}
    names: dict[str, str] = {}
    problems: dict[str, str] = {}
    unchanged: dict[str, str] = {}
    remarks: dict[str, None] = dict.fromkeys(student.remarks)
    for exercise in job.exercises:
        fitting = [
            (header, piece)
            for header, piece in kernels
            if header["op"] == exercise.op and (not exercise.file or fnmatchcase(piece.name, exercise.file))
        ]
        same = {piece.text for _, piece in fitting}
        if len(same) == 1:  # in a folder and once more in an archive of it
            header, piece = fitting[0]
            names[exercise.name] = piece.name
            if alike.unchanged(piece.text, Path(piece.name).suffix, job.device, header):
                unchanged[exercise.name], problems[exercise.name] = piece.text, UNCHANGED
            else:
                texts[exercise.name] = piece.text
                about = piece.text, Path(piece.name).suffix, job.device, exercise.op
                if told := alike.in_texts(*about):
                    remarks[f"{exercise.name}: {told}"] = None
                if alike.hardly_changed(*about):
                    remarks[f"{exercise.name}: {HARDLY}"] = None
            leans[exercise.name] = _beside(piece, helpers)
        elif pieces or said:
            why = _problem(exercise, [p.name for _, p in fitting], broken, SUFFIX[job.device], others, said)
            problems[exercise.name] = _short(why)
        else:
            problems[exercise.name] = "nothing was handed in"
    digests = {exercise: _digest(text, leans[exercise]) for exercise, text in (texts | unchanged).items()}
    digests |= {
        exercise: digest(why.encode()) for exercise, why in problems.items() if exercise not in unchanged
    }
    given, why = _answers(answers, job)
    student = msgspec.structs.replace(
        student, files=names, digests=digests, problems=problems, answers=given, answers_problem=why,
        remarks=tuple(remarks),
    )  # fmt: skip
    return HandedIn(student, texts, leans, unchanged)


def _digest(text: str, helpers: dict[str, str]) -> str:
    return digest(msgspec.json.encode([text, sorted(helpers.items())])) if helpers else digest(text.encode())


def _beside(kernel: Piece, helpers: Sequence[Piece]) -> dict[str, str]:
    """The files that a kernel may lean on: of several of one name that in its own folder."""
    far_first = sorted(helpers, key=lambda helper: helper.folder == kernel.folder)
    return {helper.name: helper.text for helper in far_first if _HELPER.fullmatch(helper.name)}


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _REASON else f"{text[: _REASON - 1]}…"


def _problem(
    exercise: Exercise,
    names: Sequence[str],
    broken: Sequence[str],
    suffix: str,
    others: Sequence[str],
    said: Sequence[str],
) -> str:
    if names:
        return f"there are {len(names)} kernels for {exercise.op}, and one is wanted: {', '.join(names)}"
    if broken:
        return "; ".join((*broken, *said))
    wanted = f" called {exercise.file}" if exercise.file else ""
    nothing = "; ".join((f"no {suffix} file{wanted} for {exercise.op} was handed in", *said))
    if not others:
        return nothing
    be = "is no kernel for this device" if len(others) == 1 else "are no kernels for this device"
    return f"{nothing}; {', '.join(others)} {be}: for CUDA the header of a .py names its language"


def _answers(found: Sequence[Piece], job: GradeJob) -> tuple[dict[str, Answer], str]:
    """What was answered to the assignment's questions, and why not all of it could be read."""
    if not found:
        return {}, ""
    if len({piece.text for piece in found}) > 1:
        return {}, f"there are {len(found)} files {ANSWERS}, and one is wanted"
    (piece, *_) = found
    if piece.why:
        return {}, _short(piece.why)
    try:
        held = toml.read(piece.text.removeprefix("\ufeff"))
    except toml.UnreadableTomlError as error:
        return {}, _short(f"{ANSWERS} {error}")
    given: dict[str, Answer] = {}
    why = []
    for question in job.questions:
        answer = held.get(question.name)
        if isinstance(answer, str):
            given[question.name] = plain.printable(answer)[:_ANSWER]
        elif isinstance(answer, bool | int) or (isinstance(answer, float) and math.isfinite(answer)):
            given[question.name] = answer
        elif answer is not None:
            why.append(f"{ANSWERS}: {question.name} is neither a text nor a number")
    return given, "; ".join(why)
