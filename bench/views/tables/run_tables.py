"""The columns of a list of saved runs, ladders and profiles, in a terminal and in the window."""

from __future__ import annotations

from functools import partial

from bench.results.summaries import Summary
from bench.views.tables.table import Column
from bench.words import units


def _batches(summary: Summary) -> str:
    """Doublings in a row as a span; others are listed."""
    doublings = {1 << power for power in range(max(summary.batches, default=1).bit_length())}
    return units.spans(summary.batches, doublings.union(summary.batches))


def _done(summary: Summary) -> str:
    some, every = summary.measured, summary.cases
    return _known(summary, f"{some} of {every}" if some < every else f"{some}")


def _known(summary: Summary, text: str) -> str:
    """Of what cannot be read there is nothing to count."""
    return "" if summary.problem else text


_word = partial(Column[Summary], left=True)
COLUMNS: tuple[Column[Summary], ...] = (
    _word("created_at", cell=lambda s: s.started, title="started"),
    _word("kind"),
    _word("models", lambda s: s.problem or ", ".join(s.models)),
    _word("node"),
    _word("backends", lambda s: ", ".join(s.backends)),
    _word("batches", cell=_batches),
    _word("what"),
    _word("machine"),
    Column("meant", lambda s: s.cases, cell=lambda s: _known(s, str(s.cases)), title="cases"),
    Column("measured", cell=lambda s: _known(s, str(s.measured)), title="done"),
    Column("done", lambda s: s.measured, cell=_done, title="cases"),
    Column("ok", cell=lambda s: _known(s, str(s.ok))),
    Column("failed", text=lambda count: str(count) if count else ""),
    _word("called", title="name"),
    _word(
        "result", tip="Speed-ups over the reference, spanned over the batch sizes; “!” where one is doubted"
    ),
    _word("note", cell=lambda s: " ".join(s.note.split())),
    _word("path", text=str, title="run"),
    _word("name", title="run"),
)
