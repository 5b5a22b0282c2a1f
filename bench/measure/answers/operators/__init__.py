"""Operators of the float64 oracle: those of onnx.reference with their known faults mended, and those that it
lacks."""
