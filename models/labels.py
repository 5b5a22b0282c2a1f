"""The order in which a model scores its classes, and how labels of a data set are brought into that order.

An order comes from the model's metadata, from a file of the user's, or from names that are numbers. If it
cannot be matched with a data set's names, no accuracy is given: a wrong order would give a wrong one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernels.errors import InputError

MOST_NBYTES = 4 << 20
MOST_CLASSES = 100_000
ALPHABETICAL = "alphabetical"  # --labels: as a model that was trained on folders in the order of their names
SHIPPED = Path(__file__).parent / "data"  # NAME.txt: an order that is known by its name
GIVE = (
    "give --labels FILE, a class a line in the model's order, --labels imagenet for the usual 1,000, or "
    "--labels alphabetical where it was trained on folders in the order of their names, or name the folders "
    "by number"
)
WORDNET = re.compile(r"(n\d{8})\b[\s,:]*")
FAR_BETTER, LEAST = (
    0.3,
    20,
)  # by how much of all answers another order is worth a word, and on how many images
SOME = 4


@dataclass(frozen=True, eq=False)
class Matched:
    """numbers: the model's class for each class of the data set; None where the orders cannot be matched, and
    then `refused` says why and what would help."""

    numbers: np.ndarray | None
    refused: str = ""


def shipped() -> dict[str, Path]:
    """The orders that are known by name, and their files."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.txt"))}


def file_of(text: str) -> str:
    """The form in which --labels is stored: a name as it is, a file by its absolute path."""
    return text if not text or text in (ALPHABETICAL, *shipped()) else str(Path(text).expanduser().absolute())


def check(given: str) -> None:
    """Raise InputError where a stored --labels gives no order."""
    if given != ALPHABETICAL:
        read(given)


def read(given: str | Path) -> tuple[str, ...]:
    """The classes of a file, or of a known order, in the model's order; one on each line. Raises
    InputError."""
    path = shipped().get(str(given), Path(given).expanduser())
    try:
        if (size := path.stat().st_size) > MOST_NBYTES:
            raise InputError(f"labels {path} has {size:,} bytes, and at most {MOST_NBYTES:,} are read")
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"labels {path} cannot be read ({reason}): give a text file, a class a line, or "
            f"{' or '.join((*shipped(), ALPHABETICAL))}"
        ) from None
    return of_text(text, f"labels {path}")


def of_text(text: str, where: str) -> tuple[str, ...]:
    """The classes of a text, one on each line, without blank lines at the end. Raises InputError for two
    lines that mean the same class."""
    names = tuple(line.strip() for line in text.rstrip().splitlines())
    if len(names) < 2 or len(names) > MOST_CLASSES:
        raise InputError(f"{where}: {len(names):,} lines; a class a line, 2 to {MOST_CLASSES:,}, works")
    if (blank := next((i for i, name in enumerate(names, 1) if not plain(name)), 0)) != 0:
        raise InputError(f"{where}: line {blank} names no class; a class a line works")
    return names


def of_metadata(text: str) -> tuple[str, ...]:
    """Class names as exporters write them: one on each line, or a Python dictionary {0: 'tench', …}; () for
    any other text."""
    if len(text) > MOST_NBYTES:
        return ()
    if text.lstrip().startswith("{"):
        try:
            table = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return ()
        if not isinstance(table, dict) or sorted(table, key=str) != sorted(range(len(table)), key=str):
            return ()
        return tuple(str(table[index]) for index in range(len(table)))
    try:
        return of_text(text, "metadata")
    except InputError:
        return ()


def plain(word: str) -> str:
    """A name without case, blanks and punctuation."""
    return "".join(c for c in word.casefold() if c.isalnum())


def called(name: str) -> list[str]:
    """All names of a class that stands on one line: the line, its WordNet number, the text after that, and
    each of several names between commas."""
    names = [name]
    rest = name
    if number := WORDNET.match(name):
        rest = name[number.end() :]
        names.append(number[1])
    names += [rest, *rest.split(",")]
    return list(dict.fromkeys(filter(None, map(plain, names))))


def matched(classes: Sequence[str], order: Sequence[str], model: str) -> Matched:
    """The place of each of `classes` (of a data set) in `order` (of a model), by name: first by the whole
    line, then by any name that no other line has."""
    whole: dict[str, int | None] = {}
    parts: dict[str, int | None] = {}
    for place, name in enumerate(order):
        for known, words in ((whole, [plain(name)]), (parts, called(name))):
            for word in words:
                known[word] = place if known.get(word, place) == place else None  # None: of two classes
    numbers: list[int] = []
    missing: list[str] = []
    for name in classes:
        places = (parts.get(word) for word in called(name))
        matches = {place for place in places if place is not None}
        exact = whole.get(plain(name))
        if exact is not None:
            numbers.append(exact)
        elif len(matches) == 1:
            numbers.append(matches.pop())
        else:
            missing.append(name)
    if not missing and len(set(numbers)) == len(classes):
        return Matched(np.array(numbers, np.int64))
    what = (
        f"{named(missing)} of the data set {'is' if len(missing) == 1 else 'are'} not among"
        if missing else "two classes of the data set are one among"
    )  # fmt: skip
    return Matched(
        None,
        f"{what} the {len(order):,} classes of model {model} ({named(order)}), so it is not known which "
        f"answer is "
        f"right: {GIVE}",
    )


def named(names: Sequence[str]) -> str:
    """A few of many names."""
    text = ", ".join(name[:40] for name in names[:SOME])
    return text if len(names) <= SOME else f"{text}, … ({len(names):,})"


@dataclass(frozen=True)
class Hint:
    """An order that explains the answers far better. right: the accuracy that it would give; order: for each
    class of the model, which class of the data set it seems to mean."""

    right: float
    order: dict[int, int]


def explained(truth: np.ndarray, predicted: np.ndarray, shown: float | None) -> Hint | None:
    """Another order of the classes that would explain the answers far better than the shown accuracy `shown`
    (None: none is shown), or None. truth: the right class of each image; predicted: the model's. Each class
    gets the answer that is most common for it, the surest first; no answer is used for two classes."""
    if len(truth) < LEAST:
        return None
    pairs, counts = np.unique(np.stack([truth, predicted]), axis=1, return_counts=True)
    by_position: dict[int, int] = {}
    answered: set[int] = set()
    right = 0
    for place in np.argsort(-counts, kind="stable"):
        mine, answer = (int(number) for number in pairs[:, place])
        if mine not in answered and answer not in by_position:
            by_position[answer] = mine
            answered.add(mine)
            right += int(counts[place])
    fraction = right / len(truth)
    chance = 1 / max(2, len(np.unique(truth)))
    # Few images a class can be explained by any order: what counts is beyond that.
    worth = fraction - max(shown or 0.0, chance) >= FAR_BETTER and len(truth) >= 3 * len(np.unique(truth))
    return Hint(fraction, by_position) if worth else None
