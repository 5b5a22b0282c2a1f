"""Sessions of our engine, of whole nets and of one kernel, in an isolated process."""

from engine.cpu.session import CpuSession as opened

__all__ = ["opened"]
