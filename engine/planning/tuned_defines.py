"""The values of defines that `ladder --tune` found fastest for a rung, by device and params. They are kept
with all that was tried, and used by whoever runs the rung on these params.

A rung whose text changes has another key: values that were found for the old text are not used.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from engine.planning import choices
from engine.planning.choices import Choice
from kernels.cache import Key
from kernels.ops import Params
from kernels.registry import Rung

DEVICE = "cuda"
Values = tuple[int, ...]
"""Of the defines that a rung lists under `[tune]`, in that order."""
DEFINES = choices.Part[Choice[Values]]("defines", Choice[Values])


def read(rung: Rung, params: Params) -> Choice[Values] | None:
    """What is kept for this rung on these params and this device, complete or not; None where nothing is."""
    if not rung.tune:
        return None
    choice = DEFINES.read(*_at(rung, params))
    listed = [*rung.tune.values()]
    if choice is None or any(
        len(t.variant) != len(listed) or any(v not in of for v, of in zip(t.variant, listed, strict=True))
        for t in choice.tried
    ):
        return None
    return choice


def keep(rung: Rung, params: Params, found: Choice[Values]) -> None:
    """Keep it for the next run. Raises KernelError where the cache cannot be written."""
    DEFINES.write(*_at(rung, params), found)


def forget(rung: Rung, params: Params) -> None:
    """Remove what is kept."""
    DEFINES.forget(*_at(rung, params))


def _at(rung: Rung, params: Params) -> tuple[Key | None, Key]:
    return choices.of_step(DEVICE, params, rung.precision), choices.on_rungs(DEVICE, (rung,))


def words(rung: Rung, params: Params) -> str:
    """ "tuned: TILE_K 16, the fastest of 12 (3 refused), 1.20 × its header's"; "" where nothing was found."""
    choice = read(rung, params)
    if choice is None or not choice.done:
        return ""
    best, own = choice.of(choice.best), choice.of(choice.default)
    if best is None or own is None:
        return ""
    values = ", ".join(f"{name} {value}" for name, value in zip(rung.tune, best.variant, strict=True))
    wrong = sum(bool(tried.refused) for tried in choice.tried)
    refused = f" ({wrong} refused)" if wrong else ""
    gain = (own.ns or 0.0) / (best.ns or 1.0)
    return f"tuned: {values}, the fastest of {len(choice.tried)}{refused}, {gain:.2f} × its header's"


def with_defines(rung: Rung, defines: dict[str, int]) -> Rung:
    """The rung with these defines instead of those of its header."""
    return replace(rung, defines=MappingProxyType({**rung.defines, **defines}))


def tuned(rung: Rung, params: Params) -> Rung:
    """The rung with the defines that were found fastest, if any were."""
    choice = read(rung, params)
    if choice is None or not choice.done or choice.best is None:
        return rung
    return with_defines(rung, dict(zip(rung.tune, choice.best, strict=True)))
