"""The exit codes of every command."""

from __future__ import annotations

OK, FAILED, REFUSED, CANCELLED = 0, 1, 2, 130

TABLE = {
    OK: "all well",
    FAILED: "a case failed, every engine that was named refused a model, or what `--fail-on` names was found",
    REFUSED: "wrong usage or input, or something that is not available here, explained in one sentence",
    CANCELLED: "cancelled by Ctrl-C; what was measured is kept",  # as a shell reports it
}
