"""Kernels that share their tokens: with a rung of the ladder, or with another student's. It is told to the
teacher, and decides nothing.

What is compared are runs of tokens, as MOSS does (S. Schleimer, D. Wilkerson, A. Aiken, "Winnowing: local
algorithms for document fingerprinting", SIGMOD 2003), each run kept. Comments, the header, the names of
variables and the values of numbers make no difference, and what stands in the kernel that was handed out
counts for nobody.
"""

from __future__ import annotations

import functools
import keyword
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.extras.course.records import Alike, GradeJob
from bench.questions import rung_template
from kernels import registry
from kernels.header import parse

RUN = 8  # tokens in a row that are looked for
LEAST = 40  # runs that both have to have beyond what was handed out: less is no work of anybody
SHARE = 0.8  # of the runs of the shorter one that the other has as well
MOST = 3  # others that are named of one kernel
TEXTS = 1000  # characters in texts, of which a teacher is told

Text = tuple[str, str]  # of a kernel, and the ending of its name

_STRING = r"\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n])*'?"
_REST = r"|(?P<name>[^\W\d]\w*)|(?P<number>\d[\w.]*)|(?P<sign>[^\w\s])"
_TOKENS = {
    ".py": re.compile(
        rf"#[^\n]*|(?P<string>\"\"\".*?(?:\"\"\"|\Z)|'''.*?(?:'''|\Z)|{_STRING}){_REST}", re.DOTALL
    ),
    ".cu": re.compile(rf"//[^\n]*|/\*.*?(?:\*/|\Z)|(?P<string>{_STRING}){_REST}", re.DOTALL),
}
_C_WORDS = frozenset(
    """
    auto bool break case char const constexpr continue default do double else extern float for goto if inline
    int long return short signed sizeof static struct switch template typedef union unsigned void volatile
    while half threadIdx blockIdx blockDim gridDim
    """.split()  # noqa: SIM905 - a list of as many words is no easier to read
)


def tokens(text: str, suffix: str) -> list[str]:
    """The tokens of a kernel: every name of its own the same, and every number, and every text."""
    found = []
    before = ""
    for match in _matches(text, suffix):
        token = match[0]
        match match.lastgroup:
            case "string":
                token = "s"
            case "number":
                token = "0"
            case "name" if not _kept(token, before, suffix):
                token = "v"
        found.append(token)
        before = match[0]
    return found


def _matches(text: str, suffix: str) -> Iterator[re.Match[str]]:
    """All but comments."""
    return (match for match in _TOKENS[suffix].finditer(text) if match.lastgroup)


def unchanged(text: str, suffix: str, device: str, header: Mapping[str, Any]) -> bool:
    """Whether a kernel is the one that was handed out: the same tokens in the same launch, whatever its
    comments say and its spaces are. header: as kernels.header.parse has it of its text."""
    return _said(text, suffix, header) == _said_at_first(device, header["op"], suffix)


def hardly_changed(text: str, suffix: str, device: str, op: str) -> bool:
    """Whether little more than one place of a kernel differs from the one that was handed out."""
    return len(runs(text, suffix) - _handed_out(device, op)) < 2 * RUN


def in_texts(text: str, suffix: str, device: str, op: str) -> str:
    """In words, how much of a kernel stands in texts, which are compared with nothing and may be programs; ""
    where that is little. What stands so in the kernel that was handed out does not count."""
    given, of = _given(device, op)
    known = set(_texts(given, of))
    count = sum(len(held) for held in _texts(text, suffix) if held not in known)
    return f"{count:,} characters of it are texts, which are not compared" if count > TEXTS else ""


def _texts(text: str, suffix: str) -> Iterator[str]:
    return (match[0] for match in _matches(text, suffix) if match.lastgroup == "string")


@functools.cache
def _said_at_first(device: str, op: str, suffix: str) -> tuple[object, ...]:
    given, of = _given(device, op)
    if of != suffix:
        return ()
    return _said(given, suffix, parse(Path(f"{rung_template.FIRST}_mine{suffix}"), device, given))


def _said(text: str, suffix: str, header: Mapping[str, Any]) -> tuple[object, ...]:
    words = [m[0] for m in _matches(text, suffix) if not m[0].startswith(('"""', "'''"))]
    return tuple(words), header.get("launch"), header["defines"], header["tune"]


def _kept(name: str, before: str, suffix: str) -> bool:
    """Whether a name says what is done: a word of the language, or what an object is asked for."""
    if suffix == ".py":
        return keyword.iskeyword(name) or before == "."
    return name in _C_WORDS or name.startswith("__")


def runs(text: str, suffix: str) -> frozenset[int]:
    """Hashes of all runs of tokens."""
    found = tokens(text, suffix)
    return frozenset(hash(tuple(found[at : at + RUN])) for at in range(len(found) - RUN + 1))


def share(one: frozenset[int], other: frozenset[int]) -> float:
    """The part of the runs of the shorter one that both have; 0 where one has too few to tell anything."""
    least = min(len(one), len(other))
    return len(one & other) / least if least >= LEAST else 0.0


def alike(job: GradeJob, texts: Mapping[tuple[str, str], Text]) -> tuple[Alike, ...]:
    """What is to be looked at. texts: by student's key and exercise."""
    found: list[Alike] = []
    for exercise in job.exercises:
        given = _handed_out(job.device, exercise.op)
        own = {key: held for (key, of), held in texts.items() if of == exercise.name}
        found_in = {held: runs(*held) - given for held in set(own.values())}
        rungs = {
            rung.label: runs(rung.source, rung.path.suffix) - given
            for rung in registry.rungs(job.device, exercise.op)
        }
        names = sorted(own)
        pairs: dict[str, list[tuple[float, str]]] = {name: [] for name in names}
        shares: dict[tuple[Text, Text], float] = {}  # of texts: many students may have handed in the same
        for place, name in enumerate(names):
            for other in names[place + 1 :]:
                both = own[name], own[other]
                if both not in shares:
                    shares[both] = share(found_in[both[0]], found_in[both[1]])
                if (part := shares[both]) >= SHARE:
                    pairs[name].append((part, other))
                    pairs[other].append((part, name))
        for name in names:
            near = sorted((-share(found_in[own[name]], held), label) for label, held in rungs.items())
            found += [
                Alike(exercise=exercise.name, student=name, other=label, rung=True, share=-part)
                for part, label in near[:1]
                if -part >= SHARE
            ]
            found += [
                Alike(exercise=exercise.name, student=name, other=other, rung=False, share=part)
                for part, other in sorted(pairs[name], reverse=True)[:MOST]
            ]
    return tuple(found)


@functools.cache
def _handed_out(device: str, op: str) -> frozenset[int]:
    return runs(*_given(device, op))


@functools.cache
def _given(device: str, op: str) -> Text:
    """What students get to begin with."""
    with tempfile.TemporaryDirectory() as folder:
        path = rung_template.write(op, device, Path(folder))
        return path.read_text(encoding="utf-8"), path.suffix


def kept(folder: Path) -> Iterator[tuple[Path, str, str]]:
    """What a grading keeps of what it judged: each kernel's file, the student's key and the exercise."""
    for path in sorted(folder.glob("*/*/kernel.*")):
        yield path, path.parts[-3], path.parts[-2]
