"""The reference on an NVIDIA GPU in its fastest configuration whose every layer stays within the precision's
bound."""

from __future__ import annotations

from engine.backends.ort_cuda import BACKEND as ORT_CUDA
from engine.backends.ort_cuda_tuned import Tuned

BACKEND = Tuned(
    ORT_CUDA, "ort-cuda-tuned-strict", "ONNX Runtime (CUDA), tuned, every layer exact", strict=True
)
