"""A fault that was found in a rung's answer, and the shape and inputs on which it was found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.judge.samples import Sample
from bench.results.finding import Finding
from kernels.ops import Params


@dataclass(frozen=True)
class Failure:
    """A finding with what it was found on, for a diagnosis; got is the whole batch's answer."""

    finding: Finding
    params: Params
    sample: Sample
    got: np.ndarray
    error_map: np.ndarray | None = None

    @property
    def where(self) -> str:
        """How many elements are wrong and which is the first, or what was seen to be wrong."""
        if self.finding.fault != "stale":
            return self.finding.reason
        found = self.finding
        return (
            f"{found.wrong:,} of {found.elements:,} elements are wrong, first {found.index}: {found.got} "
            f"instead of {found.expected}"
        )
