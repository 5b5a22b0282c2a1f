"""Sessions of ONNX Runtime, in an isolated process."""

from engine.backends.ort_cpu import OrtCpuSession as opened

__all__ = ["opened"]
