"""What kind of device the stand-in is: told in the environment, so that every child process knows it."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass

VARIABLE = "KERNELSCOPE_STANDIN"
NAME = "Stand-in GPU"
CUDA = 13000  # what the driver speaks
DRIVER = "580.0"


@dataclass(frozen=True)
class Settings:
    """capability: compute capability, as digits. memory_mib: of the device; beyond it allocations fail."""

    capability: tuple[int, int] = (9, 0)
    memory_mib: int = 4096
    multiprocessors: int = 132
    l2_nbytes: int = 1 << 20

    def as_text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def here(cls) -> Settings:
        """Those of this process."""
        given = json.loads(os.environ.get(VARIABLE) or "{}")
        if "capability" in given:
            given["capability"] = tuple(given["capability"])
        return cls(**given)
