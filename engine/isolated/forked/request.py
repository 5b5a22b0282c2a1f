"""What a template (engine.isolated.forked.template) is asked."""

from __future__ import annotations

from dataclasses import dataclass

MESSAGE_NBYTES = 1 << 17


@dataclass(frozen=True)
class Fork:
    """An isolated process is wanted, as one that was started from here would be. With its socket and its
    standard error come two descriptors. The answer is its number, 0 where none can be forked."""

    opens: str
    environment: dict[str, str]
    folder: str
    umask: int
    cores: frozenset[int]
    niceness: int
