"""The defines that `ladder --tune` found fastest for a rung, by device and params: kept with what they were
found among, and taken by whoever runs the rung on these params.

A rung whose text changes has another key: what was found for the old one is not taken for the new.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import msgspec

from engine import tuned_store
from engine.planning import choices
from kernels.ops import Params
from kernels.registry import Rung

KIND = "defines"
DEVICE = "cuda"


class Found(msgspec.Struct, frozen=True):
    """defines: of the fastest that was right; tried: how many were, the header's own among them; refused: how
    many of them did not compile, launch or answer rightly; gain: the own one's time divided by its."""

    defines: dict[str, int]
    tried: int
    refused: int
    gain: float

    @property
    def words(self) -> str:
        """ "tuned: TILE_K 16, the fastest of 12 (3 refused), 1.20 × its header's"."""
        chosen = ", ".join(f"{name} {value}" for name, value in self.defines.items())
        refused = f" ({self.refused} refused)" if self.refused else ""
        return f"tuned: {chosen}, the fastest of {self.tried}{refused}, {self.gain:.2f} × its header's"


def read(rung: Rung, params: Params) -> Found | None:
    """What was found for this rung on these params and this device; None where nothing was."""
    if not rung.tune:
        return None
    key = choices.key_of(DEVICE, params, rung.precision, (rung,))
    found = None if key is None else tuned_store.read(KIND, key, Found)
    if found is None or any(v not in rung.tune.get(name, ()) for name, v in found.defines.items()):
        return None
    return found


def keep(rung: Rung, params: Params, found: Found) -> None:
    """For the next run. Raises KernelError where the cache cannot be written."""
    key = choices.key_of(DEVICE, params, rung.precision, (rung,))
    if key is not None:
        tuned_store.write(KIND, key, found)


def with_defines(rung: Rung, defines: dict[str, int]) -> Rung:
    """The rung with these in the place of its header's."""
    return replace(rung, defines=MappingProxyType({**rung.defines, **defines}))


def tuned(rung: Rung, params: Params) -> Rung:
    """The rung as it was found fastest, where it was."""
    found = read(rung, params)
    return rung if found is None else with_defines(rung, found.defines)
