"""What a machine was measured to reach: the most bytes and operations a second, and what its caches hold."""

from __future__ import annotations

from typing import Literal

import msgspec

from bench.results.surroundings import Record
from kernels.precision import budget

SCHEMA = 1
# What was measured of a machine is not all that it can. Reads alone are faster than the copies that were
# measured, which on a CPU also fetch what they overwrite; a machine that was busy while it was probed reaches
# more than it did then.
MORE_BYTES = {"cpu": 2.0, "cuda": 1.25}
# A cache is read and written at once: on a GPU, where reads alone are measured, the larger of both counts.
MORE_CACHED = {"cpu": 3.0, "cuda": 1.25}
LEAST_RATE, MOST_RATE = 1.0, 1e24  # what a machine may reach: of the rest no chart can be drawn
OF_BYTES = ("qconv", "qgemm")  # operators that multiply eight-bit numbers
WHOLE = ("int8",)  # types of factors that are no floats
MARGIN = 0.9  # of what a machine takes at least: what is faster is a fault of measuring

# Whether bytes came faster than the memory gives them: out of the "cache", or faster than a cache explains.
Beyond = Literal["", "cache", "impossible"]


class MachineLimits(Record, frozen=True):
    """What a machine was measured to reach: bytes and float32 operations a second, by which means, when.
    matrix_flops_per_s: of the matrix units, by the type of the factors (WHOLE: whole numbers);
    matrix_missing: why that is not known ("" where it is, and for a device that has none). cache_nbytes: of
    the caches together; cache_bytes_per_s: how fast those of the second level are; nearest_nbytes: what may
    lie nearer than these from one pass to the next. 0 where not known."""

    device: str
    bytes_per_s: float
    flops_per_s: float
    copied_by: str
    multiplied_by: str
    measured_on: str
    measured_at: str
    matrix_flops_per_s: dict[str, float] = msgspec.field(default_factory=dict)
    matrix_by: str = ""
    matrix_missing: str = ""
    cache_nbytes: int = 0
    cache_bytes_per_s: float = 0.0
    nearest_nbytes: int = 0

    def __post_init__(self) -> None:
        known = (self.cache_bytes_per_s, *self.matrix_flops_per_s.values())
        reached = (self.bytes_per_s, self.flops_per_s, *filter(None, known))
        if not all(LEAST_RATE <= rate <= MOST_RATE for rate in reached):
            raise ValueError(
                f"limits that no machine has: rates lie within {LEAST_RATE:g} and {MOST_RATE:g} a second"
            )
        if self.cache_nbytes < 0 or self.nearest_nbytes < 0:
            raise ValueError("limits that no machine has: a cache of less than 0 bytes")

    def beyond(self, nbytes: int, written: int, seconds: float) -> Beyond:
        """What is to be said of so many bytes, of which these were written, in such a time, as a step does
        it again and again: "cache", where they came faster than the memory gives them; "impossible", where
        they do so by more than what a cache holds, or faster than the caches give them; else "", as where the
        caches are not known."""
        if not nbytes or not self.cache_nbytes or seconds <= 0:
            return ""
        came = self.bytes_per_s * MORE_BYTES[self.device] * seconds
        cached = self.cache_bytes_per_s * MORE_CACHED[self.device] * seconds
        through = nbytes if self.device == "cpu" else max(nbytes - written, nbytes // 2)
        if MARGIN * (nbytes - self.cache_nbytes) > came:
            return "impossible"
        if cached and MARGIN * (through - self.nearest_nbytes) > cached:
            return "impossible"
        return "cache" if nbytes > came else ""

    def cached(self, between: int) -> bool:
        """Whether bytes that are used again after so many, themselves among these, come out of the caches, of
        which it is known how fast they are."""
        return bool(self.cache_bytes_per_s) and between <= self.cache_nbytes

    def moved_per_s(self, between: int) -> float:
        """Bytes a second of what is used again after so many: the caches' rate, or the memory's."""
        return self.cache_bytes_per_s if self.cached(between) else self.bytes_per_s

    @property
    def matrix_most(self) -> float:
        """Operations a second of the matrix units in the fastest type that is no whole number; 0.0 where not
        known."""
        rates = self.matrix_flops_per_s.items()
        return max((rate for name, rate in rates if name not in WHOLE), default=0.0)

    def rate_of(self, op: str, precision: str) -> float:
        """The same of an operator: what multiplies eight-bit numbers stands on other units."""
        return self.matrix_flops_per_s.get("int8", 0.0) if op in OF_BYTES else self.rate(precision)

    def rate(self, precision: str) -> float:
        """Operations a second of the units that rungs of this precision stand on; 0.0 where not known."""
        if precision == "fp32-tc":  # three products of a lower precision make one of float32
            return self.matrix_most / 3
        if budget(precision) is not None:  # each layer has one of its own: no rate is above the highest
            return max(self.flops_per_s, self.matrix_most)
        return self.flops_per_s if precision == "fp32" else self.matrix_flops_per_s.get(precision, 0.0)
