"""An option: how it is called, what it takes, and what is said of it, once for command line, form and checks.

Which options there are stands in `bench.run.options`. Errors of a value begin with `called`, the name of its
option ("--batch" where it was typed in a terminal, "" beside a field of the form), and say what would work.
"""

from __future__ import annotations

import itertools
import pkgutil
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from kernels.errors import InputError
from kernels.nearest import did_you_mean

MOST_NUMBERS = 10_000
MUCH = 1 << 40  # a number that is no limit
_UNSET: Any = object()


@dataclass(frozen=True)
class Text:
    """Text as it is. nothing: what an empty text means; keep: text → what is kept of it; known: which there
    are (() any), as a mapping with what each means; look: raises InputError, naming it, for what means
    nothing. These may be named, "module:name", to be loaded when they are wanted. repeated: whether the
    option may be given several times; between: what parts its texts in a line of the form ("": a line is one
    text)."""

    nothing: Any = None
    keep: Callable[[str], Any] | str = str
    known: Collection[str] | str = ()
    look: Callable[[str], object] | str = str
    repeated: bool = False
    between: ClassVar[str] = ""

    def read(self, texts: Sequence[str], called: str) -> Any:
        """What was typed → a value. Raises InputError."""
        value = _loaded(self.keep)(texts[-1]) if texts and texts[-1] else self.nothing
        if self.known:
            self.check(value, called)
        return value

    def write(self, value: Any) -> list[str]:
        """A value → the texts that `read` makes it of."""
        return [",".join(map(str, value)) if isinstance(value, tuple) else str(value)]

    def check(self, value: Any, called: str) -> None:
        """Raises InputError for a value with which nothing can be measured."""
        if value != self.nothing:
            self.check_one(value, called)

    def check_one(self, text: str, called: str) -> None:
        if self.known:
            one_of(text, _loaded(self.known), called)
        else:
            _loaded(self.look)(text)

    def begun(self, text: str) -> list[str]:
        """The known values that begin with a text."""
        return [name for name in _loaded(self.known) if name.startswith(text)]

    def read_line(self, line: str) -> Any:
        """A line of the form → a value that passes its check. Raises InputError."""
        parts = line.split(self.between) if self.between else [line]
        value = self.read([part.strip() for part in parts if part.strip()], "")
        self.check(value, "")
        return value

    def line(self, value: Any) -> str:
        """A value → the line that `read_line` makes it of."""
        return "" if value == self.nothing else (self.between.strip() + " ").join(self.write(value))


@dataclass(frozen=True)
class Switch(Text):
    """On or off. both: there is a --no-NAME, too."""

    on: Any = True
    off: Any = False
    both: bool = False


@dataclass(frozen=True)
class Number(Text):
    """A number, int or float, from least to most. words: what the form calls none."""

    kind: type[int] | type[float] = int
    least: float = 1
    most: int = MUCH
    words: str = ""

    def read(self, texts: Sequence[str], called: str) -> Any:
        value = _number(texts[-1], called, "4" if self.kind is int else "2.5", self.kind)
        self.within([value], called)
        return value

    def write(self, value: Any) -> list[str]:
        return [f"{value:.15g}"]

    def check_one(self, value: Any, called: str) -> None:
        self.within([value], called)

    def within(self, values: Iterable[float], called: str) -> None:
        """Raises InputError for a number out of range."""
        to = "or more works" if self.most == MUCH else f"to {self.most:,} works"
        for value in values:
            if not self.least <= value <= self.most:
                least = f"{self.least:,.6f}".rstrip("0").rstrip(".")
                raise said(called, f"{value:,.15g} is out of range; {least} {to}")


@dataclass(frozen=True)
class Numbers(Number):
    """ "1,2,16" or "1..1024" → whole numbers, each from least to most."""

    def read(self, texts: Sequence[str], called: str) -> Any:
        found = integers(texts[-1], called)
        self.check(found, called)
        return found

    def write(self, value: Any) -> list[str]:
        return [numbers_text(value)]

    def check(self, value: Any, called: str) -> None:
        if not value:
            raise said(called, "names no number: write it as in 1,2,4 or 1..1024")
        self.within(value, called)


@dataclass(frozen=True)
class Sizes(Numbers):
    """Numbers for every model, and others by model: "1..256", "alexnet-digits=1,4" → ((1, …), {"alexnet-…":
    (1, 4)}). missing: those for every model where only a model's own are given; () there may be none."""

    between = ";"
    repeated: bool = True
    missing: tuple[int, ...] = ()

    def read(self, texts: Sequence[str], called: str) -> Any:
        general: dict[int, None] = {}
        own: dict[str, tuple[int, ...]] = {}
        for text in texts or [""] * bool(self.missing):
            model, sign, numbers = text.rpartition("=")
            if not sign:
                general |= dict.fromkeys(
                    integers(text, called, "1..256, or alexnet-digits=1,4 for one model")
                )
            elif model.strip():
                own[model.strip()] = integers(numbers, called)
            else:
                raise said(called, f"{text!r} names no model: write it as in alexnet-digits=1,4")
        found = tuple(general) or self.missing, own
        self.check(found, called)
        return found

    def write(self, value: Any) -> list[str]:
        general, own = value
        texts = [numbers_text(general)] if general else []
        return [*texts, *(f"{model}={numbers_text(numbers)}" for model, numbers in own.items())]

    def check(self, value: Any, called: str) -> None:
        general, own = value
        if self.missing and not general:
            super().check(general, called)
        self.within(itertools.chain(general, *own.values()), called)


@dataclass(frozen=True)
class Names(Text):
    """Names by repeating the option, each once; commas: and by commas, joined: written with them; none: the
    word for none of them."""

    repeated: bool = True
    commas: bool = True
    joined: bool = False
    none: str = ""

    def read(self, texts: Sequence[str], called: str) -> Any:
        found = tuple(map(_loaded(self.keep), dict.fromkeys(names(texts) if self.commas else texts)))
        if not found:
            raise said(called, "names nothing; leave it away, or name one")
        if found == (self.none,):
            return ()
        if self.known:
            self.check(found, called)
        return found

    def write(self, value: Any) -> list[str]:
        return [",".join(value)] if self.joined else list(value)

    def check(self, value: Any, called: str) -> None:
        for name in value or [""] * bool(self.known):
            self.check_one(name, called)


@dataclass(frozen=True)
class Pairs(Text):
    """NAME=VALUE by repeating the option → {name: value}. form: what is written, with an example; last: the
    last "=" parts the two; number: the value is a whole number from 1 to `most`."""

    between = " "
    repeated: bool = True
    form: str = "NAME=VALUE"
    last: bool = True
    most: int = 0

    def read(self, texts: Sequence[str], called: str) -> Any:
        found: dict[str, Any] = {}
        for text in texts:
            name, sign, value = text.rpartition("=") if self.last else text.partition("=")
            if not sign or not name or not value or (self.most and not value.strip().isdecimal()):
                raise said(called, f"{text!r} is not {self.form}")
            found[name] = int(value) if self.most else _loaded(self.keep)(value)
        return found

    def write(self, value: Any) -> list[str]:
        return [f"{name}={part}" for name, part in value.items()]

    def check(self, value: Any, called: str) -> None:
        for name, number in value.items() if self.most else ():
            Number(most=self.most).within([number], f"{called} {name}".strip())


@dataclass(frozen=True)
class Option:
    """name: as it is typed, without dashes; of an argument its place's name. metavar: what stands for its
    value. on: the commands that have it; group: the heading that it stands under; needs: the option that it
    belongs to. fields: of the job, which it sets (two where the value is of two parts); () where it is no
    part of the job. usual: what applies where it is not given, where that is not what a record without the
    field means. always: it is written though it has its usual value. label: its name in the window's form,
    with "&" before the letter that leads there ("": it has no field); hint: what the form's empty field says,
    or what follows a number there. lasting: it may stand in a configuration file (bench.run.settings); runs:
    such a value has a program or a machine of somebody's run. jobless: with it the command makes no job of
    the options, and settings of a job do not hold."""

    name: str
    value: Text
    help: str
    metavar: str = ""
    on: tuple[str, ...] = ()
    group: str = ""
    needs: str = ""
    fields: tuple[str, ...] = ()
    usual: Any = _UNSET
    always: bool = False
    argument: bool = False
    label: str = ""
    hint: str = ""
    lasting: bool = False
    runs: bool = False
    jobless: bool = False

    @property
    def typed(self) -> str:
        """As it stands on a command line."""
        return self.metavar if self.argument else f"--{self.name}"

    @property
    def parameter(self) -> str:
        """As a function's parameter."""
        return self.name.replace("-", "_")

    def of(self, job: Any) -> Any:
        """Its value in a job."""
        found = tuple(getattr(job, field) for field in self.fields)
        return found if len(found) > 1 else found[0]

    def as_fields(self, value: Any) -> dict[str, Any]:
        """A value as fields of a job."""
        return dict(zip(self.fields, value if len(self.fields) > 1 else (value,), strict=True))

    def default(self, job: type) -> Any:
        """What applies where it is not given; None where there is nothing that does."""
        if self.usual is not _UNSET:
            return self.usual
        import msgspec

        unset = msgspec.NODEFAULT
        found = [
            field for field in msgspec.structs.fields(job) if field.name in self.fields and not field.required
        ]
        values = [f.default if f.default_factory is unset else f.default_factory() for f in found]
        return tuple(values) if len(self.fields) > 1 else next(iter(values), None)

    def words(self, value: Any) -> list[str]:
        """As words of a command line."""
        if isinstance(self.value, Switch):
            return [f"--{self.name}" if value == self.value.on else f"--no-{self.name}"]
        texts = self.value.write(value)
        return texts if self.argument else [word for text in texts for word in (f"--{self.name}", text)]


def arguments(job: Any, options: Iterable[Option]) -> list[str]:
    """What of a job is not as usual, as words of a command line, in the order of the options."""
    return [
        word
        for option in options
        if option.fields and (option.always or option.of(job) != option.default(type(job)))
        for word in option.words(option.of(job))
    ]


def usual(options: Iterable[Option]) -> dict[str, Any]:
    """The fields of a job that is asked for without a word, where its record says otherwise."""
    return {
        field: value
        for option in options
        if option.fields and option.usual is not _UNSET
        for field, value in option.as_fields(option.usual).items()
    }


def by_name(options: Iterable[Option], name: str) -> Option:
    """The option of that name."""
    return next(option for option in options if option.name == name)


def check(job: Any, options: Iterable[Option]) -> None:
    """Raises InputError, one sentence that names the option, for a job that means nothing."""
    for option in options:
        if option.fields:
            option.value.check(option.of(job), option.name)


# ------------------------------------------------------------------------------------------------------ texts


def _loaded(found: Any) -> Any:
    """What a name "module:name" stands for; anything else as it is."""
    return pkgutil.resolve_name(found) if isinstance(found, str) else found


def said(called: str, sentence: str) -> InputError:
    """What is wrong with an option's value."""
    return InputError(f"{called} {sentence}".strip())


def integers(text: str, called: str, example: str = "1,2,4 or 1..1024") -> tuple[int, ...]:
    """ "1,2,16" or "1..1024" (by doubling, both ends included) or both mixed, in the order given, each once.
    Raises InputError."""
    found: dict[int, None] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        first, dots, last = item.partition("..")
        if dots:
            low, high = _number(first, called, example), _number(last, called, example)
            if low < 1 or high < low:
                raise said(called, f"{item!r} is no range: write it from 1 or more upwards, as in 1..1024")
            while low < high and len(found) < MOST_NUMBERS:
                found[low] = None
                low *= 2
            found[high] = None
        else:
            found[_number(item, called, example)] = None
    if not found:
        raise said(called, f"{text!r} names no number: write it as in {example}")
    return tuple(found)


def integers_of(text: str, called: str) -> tuple[int, ...]:
    """ "1,3,28,28,6,5": every number in its place, those that repeat too. Raises InputError."""
    return tuple(_number(part, called, "1,3,28,28") for part in text.split(","))


def _number(text: str, called: str, example: str, kind: type[Any] = int) -> Any:
    try:
        return kind(text.strip().replace("_", ""))
    except ValueError:
        whole = "whole " if kind is int else ""
        raise said(called, f"{text!r} is not a {whole}number: write it as in {example}") from None


def numbers_text(values: tuple[int, ...]) -> str:
    """Numbers as an option takes them: "1..256" where they double, else "1,100,10000"."""
    doubling = all(later == 2 * earlier for earlier, later in itertools.pairwise(values))
    return f"{values[0]}..{values[-1]}" if len(values) > 2 and doubling else ",".join(map(str, values))


def names(values: Iterable[str]) -> tuple[str, ...]:
    """Names given by repeating an option, by commas, or both; each once."""
    parts = (part.strip() for value in values for part in value.split(","))
    return tuple(dict.fromkeys(filter(None, parts)))


def one_of(value: str, known: Collection[str], called: str) -> str:
    """`value`, if it is known. Raises InputError with the nearest name."""
    if value in known:
        return value
    raise said(called, f"{value!r} is not known{did_you_mean(value, known)}; known are {', '.join(known)}")


def absolute(file: str) -> str:
    """A file as a run that is gone on with finds it from any folder."""
    return str(Path(file).expanduser().absolute())
