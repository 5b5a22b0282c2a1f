"""Operators of transformers in float64: ONNX Runtime's own as its documentation (docs/ContribOperators.md)
says what they compute, for `onnx.reference` has none of them; and Attention, where that departs from ONNX's
text."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx.reference.ops.op_attention import Attention as ReferenceAttention
from onnx.reference.ops.op_rotary_embedding import rotary_embedding

from bench.measure.answers.operators.rows import Mended
from engine.ort.fused_conv import DOMAIN


class _Contrib(Mended):
    op_domain = DOMAIN

    def _some(self, *results: np.ndarray) -> tuple[np.ndarray, ...]:
        """As many as the node has outputs."""
        return results[: len(self.onnx_node.output)]


class Attention(ReferenceAttention):
    """is_causal: "a lower triangular square matrix" for all queries, however many the mask has; the reference
    takes as many queries as the mask. qk_matmul_output_mode 0: "raw QK matmul result"; the reference caps it.
    """

    op_domain = ""
    _validate_attention25 = False

    def _run(self, *given: Any, **told: Any) -> Any:
        mask = given[3] if len(given) > 3 else None
        if mask is not None and mask.ndim > 1 and told.get("is_causal"):
            shape = (*mask.shape[:-2], given[0].shape[-2], mask.shape[-1])
            given = (*given[:3], np.broadcast_to(mask, shape).copy(), *given[4:])
        found: Any = super()._run(*given, **told)
        if told.get("softcap") and not told.get("qk_matmul_output_mode"):
            plain: Any = super()._run(*given, **{**told, "softcap": None})
            return (*found[:3], plain[3])
        return found


class Gelu(_Contrib):
    """ "y = 0.5 · x · (1 + erf(x / √2))" """

    def _run(self, x, **_):
        return (_gelu(x),)


class BiasGelu(_Contrib):
    """ "Bias Gelu": Gelu of x + bias."""

    def _run(self, x, bias, **_):
        return (_gelu(x + bias),)


class FastGelu(_Contrib):
    """ "GELU (Gaussian Error Linear Unit) approximation: Y = 0.5 · X · (1 + tanh(0.797885 · X + 0.035677 · X
    · X · X)) with an optional input of bias that will be added to X before GELU": √(2/π), and that times
    0.044715."""

    def _run(self, x, bias=None, **_):
        x = x if bias is None else x + bias
        return (0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),)


class QuickGelu(_Contrib):
    """ "Compute x · Sigmoid(alpha · x)" """

    def _run(self, x, **_):
        return (x * np.exp(-np.logaddexp(0, -self._get("alpha", 1.702) * x)),)


class SkipLayerNormalization(_Contrib):
    """ "Skip and Layer Normalization Fusion": of input + skip + bias, which is the fourth output."""

    def _run(self, x, skip, gamma, beta=None, bias=None, **_):
        total = x + skip + (0 if bias is None else bias)
        mean = total.mean(axis=-1, keepdims=True)
        factor = 1 / np.sqrt(total.var(axis=-1, keepdims=True) + self._get("epsilon", 1e-12))
        y = (total - mean) * factor * gamma + (0 if beta is None else beta)
        return self._some(y, mean, factor, total)


class SkipSimplifiedLayerNormalization(_Contrib):
    """ "Skip and Root Mean Square Layer Normalization" """

    def _run(self, x, skip, gamma, bias=None, **_):
        total = x + skip + (0 if bias is None else bias)
        square = np.square(total).mean(axis=-1, keepdims=True)
        factor = 1 / np.sqrt(square + self._get("epsilon", 1e-5))
        return self._some(total * factor * gamma, np.zeros_like(factor), factor, total)


class SimplifiedLayerNormalization(_Contrib):
    """Root mean square normalisation over the axes from `axis` on; ONNX Runtime has it in ONNX's domain."""

    op_domain = ""

    def _run(self, x, scale, **_):
        axes = tuple(range(self._get("axis", -1) % x.ndim, x.ndim))
        square = np.square(x).mean(axis=axes, keepdims=True)
        factor = 1 / np.sqrt(square + self._get("epsilon", 1e-5))
        return self._some(x * factor * scale, factor)


class RotaryEmbedding(_Contrib):
    """As ONNX's; "position_ids: 1D tensor with shape (1) or 2D tensor with shape (batch_size,
    sequence_length)", the first place and each."""

    def _run(self, x, places, cosines, sines, **_):
        along = x.shape[1] if x.ndim == 3 else x.shape[2]
        if places.shape == (1,):
            places = np.broadcast_to(places + np.arange(along), (x.shape[0], along))
        told = (self._get(name, 0) or None for name in ("interleaved", "rotary_embedding_dim", "num_heads"))
        return (rotary_embedding(x, cosines, sines, places, *told),)


def _gelu(x: np.ndarray) -> np.ndarray:
    erf = np.vectorize(math.erf, otypes=[np.float64])
    return np.asarray(0.5 * x * (1 + erf(x / np.sqrt(2.0))))


OPERATORS = (
    Attention,
    BiasGelu,
    FastGelu,
    Gelu,
    QuickGelu,
    RotaryEmbedding,
    SimplifiedLayerNormalization,
    SkipLayerNormalization,
    SkipSimplifiedLayerNormalization,
)
