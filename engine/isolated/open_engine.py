"""Sessions of our engine, in an isolated process."""

from engine.cpu.session import CpuSession as opened

__all__ = ["opened"]
