"""Sessions of ONNX Runtime, in a process apart."""

from engine.backends.ort_cpu import OrtCpuSession as opened

__all__ = ["opened"]
