"""What the user typed → values: batch sizes, lists, names. Raises InputError, one sentence each."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kernels.errors import InputError
from kernels.nearest import did_you_mean

if TYPE_CHECKING:
    import typer

MOST_NUMBERS = 10_000


def integers(text: str, what: str) -> tuple[int, ...]:
    """ "1,2,16" or "1..1024" (by doubling, both ends included) or both mixed, in the order given, each
    once."""
    found: dict[int, None] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        first, dots, last = item.partition("..")
        if dots:
            low, high = _integer(first, what), _integer(last, what)
            if low < 1 or high < low:
                raise InputError(
                    f"--{what} {item!r} is no range: write it from 1 or more upwards, as in 1..1024"
                )
            while low < high and len(found) < MOST_NUMBERS:
                found[low] = None
                low *= 2
            found[high] = None
        else:
            found[_integer(item, what)] = None
    if not found:
        raise InputError(f"--{what} {text!r} names no number: write it as in 1,2,4 or 1..1024")
    return tuple(found)


def factors(text: str, what: str) -> tuple[float, ...]:
    """ "1,1.05,2": numbers of 1 or more, in the order given, each once."""
    found: dict[float, None] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        try:
            number = float(item)
        except ValueError:
            number = 0.0
        if not 1 <= number < math.inf:
            raise InputError(f"--{what} {item!r} is no number of 1 or more: write it as in 1,1.05,2")
        found[number] = None
    if not found:
        raise InputError(f"--{what} {text!r} names no number: write it as in 1,1.05,2")
    return tuple(found)


def sizes(
    values: Sequence[str], what: str, default: tuple[int, ...] = ()
) -> tuple[tuple[int, ...], dict[str, tuple[int, ...]]]:
    """An option that may be repeated → (for every model, by model): "1..256" is for all, "NAME=1,4" for that
    model. Without any for all, `default`."""
    general: dict[int, None] = {}
    own: dict[str, tuple[int, ...]] = {}
    for value in values:
        model, sign, numbers = value.rpartition("=")
        if not sign:
            general |= dict.fromkeys(integers(value, what))
        elif model.strip():
            own[model.strip()] = integers(numbers, what)
        else:
            raise InputError(f"--{what} {value!r} names no model: write it as in alexnet-digits=1,4")
    return tuple(general) or default, own


def integers_of(text: str, what: str) -> tuple[int, ...]:
    """ "1,3,28,28,6,5": every number in its place, those that repeat too."""
    return tuple(_integer(part, what) for part in text.split(","))


def _integer(text: str, what: str) -> int:
    try:
        return int(text.strip().replace("_", ""))
    except ValueError:
        raise InputError(
            f"--{what} {text!r} is not a whole number: write it as in 1,2,4 or 1..1024"
        ) from None


def names(values: Iterable[str]) -> tuple[str, ...]:
    """Names given by repeating an option, by commas, or both; each once."""
    parts = (part.strip() for value in values for part in value.split(","))
    return tuple(dict.fromkeys(filter(None, parts)))


def named(values: Sequence[str], what: str) -> tuple[str, ...]:
    """As `names`, of an option that may be left away. Raises InputError where it was given and names
    nothing."""
    found = names(values)
    if values and not found:
        raise InputError(f"--{what} names nothing; leave it away, or name one")
    return found


def given(context: typer.Context, name: str) -> bool:
    """Whether a parameter stands on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE" and context.params.get(name) not in (None, [])


def refuse_settings(context: typer.Context, allowed: Collection[str], why: str) -> None:
    """Raises InputError, in words, where something stands on the command line that is not allowed there."""
    for parameter in context.command.params:
        name = parameter.name or ""
        if name not in allowed and given(context, name):
            option = next((way for way in parameter.opts if way.startswith("--")), "")
            raise InputError(f"{why}; leave {option or name.upper()} away")


def one_of(value: str, known: Sequence[str], what: str) -> str:
    """`value`, if it is known; else InputError with the nearest name."""
    if value in known:
        return value
    hint = did_you_mean(value, known)
    raise InputError(f"{what} {value!r} is not known{hint}; known are {', '.join(known)}")


def formats(text: str, known: Sequence[str] = ()) -> tuple[str, ...]:
    """Chart formats, () for "none"; `known` are those of bench.show.draw unless given."""
    from bench.show.draw import FORMATS

    found = names([text])
    if found == ("none",):
        return ()
    return tuple(one_of(name, (*(known or FORMATS), "none"), "chart format") for name in found)


def rungs(values: Iterable[str]) -> dict[str, str]:
    """NODE=RUNG, each option one."""
    found = {}
    for value in values:
        node, sign, rung = value.rpartition("=")
        if not sign or not node or not rung:
            raise InputError(f"--rung {value!r} is not NODE=RUNG, as in --rung conv1=tiled")
        found[node] = rung
    return found


def inputs(values: Iterable[str]) -> dict[str, str]:
    """NAME=NUMBER or NAME=FILE, each option one; a file by its absolute path."""
    found = {}
    for value in values:
        name, sign, given_ = value.partition("=")
        if not sign or not name or not given_:
            raise InputError(
                f"--input {value!r} is not NAME=NUMBER or NAME=FILE.npy, as in --input scale=1.0"
            )
        try:
            float(given_)
        except ValueError:
            given_ = absolute(given_)
        found[name] = given_
    return found


def dims(values: Iterable[str]) -> dict[str, int]:
    """[MODEL:]NAME=SIZE, each option one."""
    found = {}
    for value in values:
        name, sign, size = value.rpartition("=")
        if not sign or not name or not size.strip().isdecimal():
            raise InputError(f"--dim {value!r} is not NAME=SIZE, as in --dim height=224")
        found[name] = int(size)
    return found


def absolute(file: str) -> str:
    """A file as a run that is gone on with finds it from any folder; "" stays what it is."""
    return str(Path(file).expanduser().absolute()) if file else ""


def check_cluster(cluster: str, gpu: str) -> None:
    """Raises InputError where a kind of GPU is named and no cluster."""
    if gpu and not cluster:
        raise InputError("--gpu says on which kind of GPU of a cluster; give --cluster too, or leave it away")
