"""What was measured of the nets on a machine: docs/results/models-<machine>.json."""

from __future__ import annotations

from pathlib import Path

import msgspec

from kernels.cache import atomic_file

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One file on one backend at one batch size, as `compare` tells it. result: a disposition. Times are the
    median and its 95 % interval; speedup is the reference's time over this."""

    file: str
    backend: str
    batch: int
    result: str
    reason: str = ""
    error: float | None = None
    bound: float | None = None
    median_s: float | None = None
    low_s: float | None = None
    high_s: float | None = None
    speedup: float | None = None
    verdict: str = ""
    doubtful: bool = False


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """words: the machine and its software, a line each."""

    device: str
    words: tuple[str, ...]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked of `compare` for a file, and on which day."""

    settings: str
    day: str


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """exported: by exporter, what wrote its files, as they say. asked: by file."""

    machine: Machine
    exported: dict[str, str]
    asked: dict[str, Asked]
    outcomes: tuple[Outcome, ...]


def file_of(machine: str) -> Path:
    """Where what was measured on a machine of this short name lies."""
    return RESULTS / f"models-{machine}.json"


def load(path: Path) -> Kept | None:
    """None where there is no such file yet."""
    return msgspec.json.decode(path.read_bytes(), type=Kept) if path.is_file() else None


def save(kept: Kept, path: Path) -> None:
    text = msgspec.json.format(msgspec.json.encode(kept), indent=1)
    with atomic_file(path) as temporary:
        temporary.write_bytes(text + b"\n")


def every() -> dict[str, Kept]:
    """By short name of its machine."""
    found = {path.stem.removeprefix("models-"): load(path) for path in sorted(RESULTS.glob("models-*.json"))}
    return {name: kept for name, kept in found.items() if kept is not None}
