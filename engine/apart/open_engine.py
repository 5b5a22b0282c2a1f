"""Sessions of our engine, in a process apart."""

from engine.cpu.session import CpuSession as opened

__all__ = ["opened"]
