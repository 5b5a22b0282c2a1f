"""Operators of the float64 oracle: those of onnx.reference with their known faults corrected, and those that
it lacks."""
