"""What a report is filled in with: the words that all of them share, of files data/NAME.toml.

The figures in these files are other people's. Nothing in them was measured here.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from bench.words.option import one_of

if TYPE_CHECKING:
    from bench.extras.reports.needs import Limits

Who = Literal["own", "reference", "swapped"]
R = TypeVar("R", bound="Report")


class Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A word that nobody reads is a mistake in the file."""


class Need(Words, frozen=True, kw_only=True):
    """Something to measure on one device. kind "comparison", "ladder" or "profile" is a run of that kind;
    "program" a whole program on the backend of `who`. backends: () are ours and the reference. batches,
    precisions, images, max_error, tune_reference, end_to_end: as in bench.results.records.Job; layers: also
    the times of our own layers; trained: the name of a model that a user can import; where it is there, it is
    measured in place of `models`; fixed: the rungs that are not chosen, by node (not of a ladder); swaps: of
    a comparison the kernels in the place of nodes in the reference; node, rungs: of a ladder (() all),
    whose precision is the first of `precisions`; all_calls: of a profile, one pass from creation to close,
    for the table by batch size. once: of `backends`, those that are left out of a second run. each (of
    goals): whether it stands for a need of each model alone, so that one whose file is missing keeps no other
    from being measured."""

    name: str
    device: Literal["cpu", "cuda"]
    models: tuple[str, ...]
    trained: str = ""
    kind: Literal["comparison", "ladder", "profile", "program"] = "comparison"
    who: Who = "own"
    backends: tuple[str, ...] = ()
    batches: tuple[int, ...] = (1,)
    precisions: tuple[str, ...] = ("fp32",)
    images: int = 0
    max_error: float | None = None
    tune_reference: bool = False
    end_to_end: bool = False
    layers: bool = True
    fixed: dict[str, str] = msgspec.field(default_factory=dict)
    swaps: dict[str, str] = msgspec.field(default_factory=dict)
    once: tuple[str, ...] = ()
    node: str = ""
    rungs: tuple[str, ...] = ()
    all_calls: bool = False
    each: bool = False

    @property
    def model(self) -> str:
        return self.models[0]

    def backend(self, who: Who) -> str:
        """Ours, or the reference, on its device; or that with our kernels in it."""
        return f"{'engine' if who == 'own' else 'ort'}-{self.device}{'-swapped' * (who == 'swapped')}"


class Report(Words, frozen=True, kw_only=True):
    """One file: what is to be measured, and what else its kind has. name: the file's, as `load` knows it."""

    title: str
    name: str = ""
    needs: tuple[Need, ...]
    notes: tuple[str, ...] = ()

    def need(self, name: str) -> Need:
        return next(need for need in self.needs if need.name == name)

    def batches(self, need: Need, limits: Limits) -> tuple[int, ...]:
        """The batch sizes that are measured here."""
        return tuple(batch for batch in need.batches if not limits.largest or batch <= limits.largest)


def names(folder: Path) -> tuple[str, ...]:
    """The reports whose files lie in this folder."""
    return tuple(sorted(path.stem for path in folder.glob("*.toml")))


def load(folder: Path, name: str, kind: type[R], what: str) -> R:
    """The report of that name. what: as one calls it. Raises InputError where there is none."""
    one_of(name, names(folder), what)
    found: Any = tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8"))
    return msgspec.convert(found | {"name": name}, kind)
