"""The exception for a wrong answer of a rung: it carries the finding, and what is kept of the answer for
display."""

from __future__ import annotations

import numpy as np

from bench.judge.failure import Failure
from bench.judge.pictures import pictures
from bench.results.finding import Finding


class Wrong(Exception):
    """A rung's answer is wrong; carries the finding and the error map (None: there is nothing to map)."""

    def __init__(
        self, finding: Finding, error_map: np.ndarray | None = None, failure: Failure | None = None
    ) -> None:
        super().__init__(finding.reason)
        self.finding = finding
        self.error_map = error_map
        self._failure = failure

    def pictures(self) -> dict[str, np.ndarray]:
        """What to keep of the answer, as bench.judge.pictures has it; of less the error map alone, or
        nothing."""
        if self._failure is not None:
            return pictures(self._failure)
        return {} if self.error_map is None else {"error_map": self.error_map}
