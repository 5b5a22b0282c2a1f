"""Who handed in what: the names that a learning platform writes, and the roster of the class.

Files of the platforms, as they were found: Canvas writes `doejane_[LATE_]12345_678901_90_mine-1.cu` (the
number of the person, of the hand-in, and which attempt it was), Moodle a folder
`Jane Doe_12345_assignsubmission_file`, Gradescope folders `submission_304512873` beside a
`submission_metadata.yml`. Whatever else a file or a folder is called, that is somebody's name.
"""

from __future__ import annotations

import csv
import datetime
import io
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.extras.course.files import archive, shown
from bench.extras.course.records import Student, digest
from bench.results import reading
from kernels.errors import InputError

ROSTER = "roster.csv"
METADATA = "submission_metadata.yml"
ROSTER_NBYTES = 4 << 20
MOST_PEOPLE = 20_000
NAMELESS = "(no name)"  # whose entry is called by spaces alone
_CANVAS = re.compile(r"(?P<name>[^_]+)(?P<late>_LATE)?_(?P<id>\d{1,18})_\d{1,18}_(?P<file>.+)", re.DOTALL)
_ATTEMPT = re.compile(r"-\d{1,3}(?=\.[^.]+$|\.tar\.gz$)")
_MOODLE = re.compile(r"(?P<name>.+)_(?P<id>\d{1,18})_assignsubmission_\w+", re.DOTALL)
_GRADESCOPE = re.compile(r"submission_\d{1,18}")
# The headings of a roster, as the platforms and people write them, folded.
_HEADINGS = {
    "name": ("name", "student", "fullname", "studentname"),
    "first": ("firstname", "givenname"),
    "last": ("lastname", "surname", "familyname"),
    "id": ("id", "sid", "studentid", "userid", "canvasuserid", "matriculationnumber"),
    "email": ("email", "mail", "emailaddress"),
    "section": ("section", "sections", "group"),
    "at": ("handedin", "submittedat", "handinday", "handintime"),
}


@dataclass(frozen=True)
class Person:
    """A line of a roster. at: when they handed in, where it says so (ISO 8601)."""

    name: str
    id: str = ""
    email: str = ""
    section: str = ""
    at: str = ""

    @property
    def who(self) -> str:
        return f"roster {self.id or self.email or self.name}"


@dataclass
class Owner:
    """Whose an entry of the submissions is, as far as its name tells. entry: that name; file: what it was
    called when it was handed in; late: the platform marks it so; at: when, where the platform says it."""

    who: str
    name: str
    id: str = ""
    email: str = ""
    entry: str = ""
    file: str = ""
    late: bool = False
    at: str = ""
    person: Person | None = None
    remarks: list[str] = field(default_factory=list)


def folded(text: str) -> str:
    """A name without case, accents, spaces and signs, as people and platforms differ in them."""
    apart = unicodedata.normalize("NFKD", text)
    return "".join(c for c in apart if c.isalnum()).casefold()


def owner_of(name: str, metadata: dict[str, Owner], is_file: bool) -> Owner:
    """Whose the entry called `name` is."""
    called = shown(name)
    if (found := _CANVAS.fullmatch(called)) is not None:
        file = _ATTEMPT.sub("", found["file"])
        return Owner(f"canvas {found['id']}", found["name"], found["id"], file=file, late=bool(found["late"]))
    if (found := _MOODLE.fullmatch(called)) is not None:
        return Owner(f"moodle {found['id']}", found["name"], found["id"])
    if _GRADESCOPE.fullmatch(called) and called in metadata:
        return metadata[called]
    ending = archive(called) or (Path(called).suffix if is_file else "")
    return Owner(f"entry {name!a}", called.removesuffix(called[len(called) - len(ending) :]) or NAMELESS)


# ------------------------------------------------------------------------------------------------- the roster


def remembered(students: Iterable[Student]) -> tuple[Person, ...]:
    """The roster that a class was graded with before."""
    people = (Person(one.name, one.id, one.email, one.section) for one in students)
    known = {one.who for one in students}
    return tuple(person for person in people if person.who in known)


def roster(path: Path) -> tuple[Person, ...]:
    """The people of a class, from a CSV file with a line of headings: name (or first and last name), and what
    there is of id, e-mail, section and handed in. Raises InputError."""
    try:
        text = reading.text(path, ROSTER_NBYTES).removeprefix("\ufeff")
    except (OSError, reading.Unreadable) as error:
        raise InputError(f"the roster {path} cannot be read: {reading.words(error)}") from error
    head = text.partition("\n")[0]
    by = max(",;\t", key=head.count)
    found: list[Person] = []
    try:
        lines = csv.reader(io.StringIO(text), delimiter=by)
        places = _places(next(lines, []), path)
        for number, line in enumerate(lines, 2):
            if any(map(str.strip, line)):
                found.append(_person(line, places, f"{path}, line {number}"))
            if number > MOST_PEOPLE:
                raise InputError(f"the roster {path} has more than {MOST_PEOPLE:,} lines")
    except csv.Error as error:
        raise InputError(f"the roster {path} cannot be read: {error}") from error
    seen: dict[str, Person] = {}
    for one in found:
        if one.who in seen:
            raise InputError(
                f"the roster {path} has {one.name!r} twice; give each line an id or an e-mail of its own"
            )
        seen[one.who] = one
    return tuple(found)


def _places(head: Sequence[str], path: Path) -> dict[str, int]:
    wanted = {heading: what for what, headings in _HEADINGS.items() for heading in headings}
    places: dict[str, int] = {}
    for place, heading in enumerate(head):
        if (what := wanted.get(folded(heading))) is not None:
            places.setdefault(what, place)
    if "name" not in places and not {"first", "last"} <= set(places):
        raise InputError(
            f"the roster {path} has no column `name`; its first line is to name the columns: name, id, "
            "e-mail, section"
        )
    return places


def _person(line: Sequence[str], places: dict[str, int], where: str) -> Person:
    def cell(what: str) -> str:
        place = places.get(what, len(line))
        return shown(line[place]) if place < len(line) else ""

    name = cell("name") or " ".join(filter(None, (cell("first"), cell("last"))))
    if not name:
        raise InputError(f"{where}: there is no name")
    at = cell("at")
    if at and parsed(at) is None:
        raise InputError(f"{where}: {at!r} is no time; write it as 2026-11-30T23:59:00+01:00")
    return Person(name, cell("id"), cell("email"), cell("section"), at)


def parsed(text: str) -> datetime.datetime | None:
    """A time as ISO 8601 or Gradescope's metadata write it; without an offset it is this machine's time."""
    text = re.sub(r"\s+UTC$", "+00:00", text.strip())
    text = re.sub(r"\s+([+-]\d{2}:?\d{2})$", r"\1", text)
    try:
        return datetime.datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError, OSError):
        return None


class Matched:
    """Finds the line of a roster that an owner's name means."""

    def __init__(self, people: Iterable[Person]) -> None:
        self._exact: dict[str, set[Person]] = {}
        self._folded: dict[str, set[Person]] = {}
        for one in people:
            local = one.email.partition("@")[0]
            for known in filter(None, (one.id, one.email, one.name, local)):
                self._exact.setdefault(known.casefold(), set()).add(one)
            for known in filter(None, map(folded, (one.id, one.email, local, *_spelt(one.name)))):
                self._folded.setdefault(known, set()).add(one)

    def find(self, owner: Owner) -> None:
        """Set the owner's person, or say why there is none."""
        for known in filter(None, (owner.id, owner.email, owner.name)):
            for found in (self._exact.get(known.casefold(), set()), self._folded.get(folded(known), set())):
                if len(found) == 1:
                    (owner.person,) = found
                    owner.who, owner.name = owner.person.who, owner.person.name
                    return
                if found:
                    names = ", ".join(sorted(one.id or one.email or one.name for one in found))
                    owner.remarks.append(f"{known} may be one of several on the roster: {names}")
                    return
        owner.remarks.append("not on the roster")


def _spelt(name: str) -> Iterable[str]:
    """A name as it may be written elsewhere: the family name first, or last."""
    yield name
    last, comma, first = name.partition(",")
    if comma:
        yield f"{first} {last}"
    elif len(words := name.split()) > 1:
        yield " ".join((words[-1], *words[:-1]))
        yield " ".join((*words[1:], words[0]))


# ----------------------------------------------------------------------------------------- Gradescope's names


def metadata(path: Path) -> dict[str, Owner]:
    """By folder whose it is, from Gradescope's submission_metadata.yml: of each submission the first of its
    submitters, and when it was made. What is not understood is left out."""
    try:
        lines = reading.text(path, ROSTER_NBYTES).splitlines()
    except (OSError, reading.Unreadable):
        return {}
    found: dict[str, Owner] = {}
    owner: Owner | None = None
    for line in lines:
        if (key := re.fullmatch(r"(submission_\d{1,18}):\s*", line)) is not None:
            owner = found.setdefault(key[1], Owner(f"gradescope {key[1]}", key[1]))
            continue
        said = re.fullmatch(r"[\s-]*:(name|sid|email|created_at):\s*(.+?)\s*", line)
        if owner is None or said is None:
            continue
        value = shown(said[2].strip("'\""))
        match said[1]:
            case "name" if owner.name.startswith("submission_"):
                owner.name = value
            case "sid" if not owner.id:
                owner.id = value
            case "email" if not owner.email:
                owner.email = value
            case "created_at" if not owner.at and parsed(value) is not None:
                owner.at = value
    return found


# ------------------------------------------------------------------------------------------------- their keys

_UNFIT = re.compile(r"[^\w@+-]+")
_KEY_NBYTES = 60
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)$", re.IGNORECASE)  # no file on Windows


def keys(people: Sequence[tuple[str, str, str]], known: Iterable[Student]) -> list[str]:
    """For each (who, name, id) what its files are called: the name as far as a file may have it, no two alike
    on a system that knows no case and no accents. known: of an earlier grading; they keep theirs."""
    before = {student.who: student.key for student in known}
    used = {folded(key) for key in before.values()}
    made = []
    for who, name, number in people:
        key = before.get(who)
        if key is None:
            plain = _UNFIT.sub("_", name).strip("_").encode()[:_KEY_NBYTES].decode("utf-8", "ignore") or "_"
            tries = [plain, f"{plain}-{_UNFIT.sub('_', number)[:20]}"] if number else [plain]
            tries += [f"{plain}-{digest(who.encode())[:size]}" for size in (6, 12, 64)]
            free = (t for t in tries if folded(t) not in used and not _RESERVED.match(t) and folded(t))
            key = next(free, f"student-{digest(who.encode())[:40]}")
            used.add(folded(key))
        made.append(key)
    return made
