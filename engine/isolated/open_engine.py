"""Sessions of our engine, of whole nets and of one kernel, in an isolated process."""

from engine.cpu.session import CpuSession as opened
from engine.cpu.steps import Blas as ready  # for a process that will see no more which libraries it has

__all__ = ["opened", "ready"]
