"""Operators of transformers in float64: those of ONNX Runtime, as its documentation
(docs/ContribOperators.md) defines them, because `onnx.reference` lacks them; and Attention, where
`onnx.reference` departs from ONNX's text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx.reference.ops.op_attention import Attention as ReferenceAttention
from onnx.reference.ops.op_rotary_embedding import rotary_embedding

from bench.measure.answers.operators.mended import Conv
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


class FusedMatMul(_Contrib):
    """ "Matrix product that behaves like numpy.matmul", its sides transposed by transA and transB, times
    alpha."""

    def _run(self, a, b, **_):
        a, b = (
            np.swapaxes(side, -1, -2) if self._get(name, 0) and side.ndim > 1 else side
            for side, name in ((a, "transA"), (b, "transB"))
        )
        if self._get("transBatchA", 0) or self._get("transBatchB", 0):
            raise NotImplementedError("FusedMatMul with its batch transposed")
        return (self._get("alpha", 1.0) * (a @ b),)


class FusedGemm(_Contrib):
    """ "The FusedGemm operator schema is the same as Gemm besides it includes attributes activation"."""

    def _run(self, a, b, c=None, **_):
        a, b = (side.T if self._get(name, 0) else side for side, name in ((a, "transA"), (b, "transB")))
        y = self._get("alpha", 1.0) * (a @ b) + (0 if c is None else self._get("beta", 1.0) * c)
        told = [self._get(f"activation_{name}", None) for name in ("alpha", "beta")]
        return (_activated(self.onnx_node, y, [value for value in told if value is not None]),)


class FusedConv(Conv):
    """ "The fused convolution operator schema is the same as Conv besides it includes an attribute
    activation", and a fourth input that is added before it."""

    op_domain = DOMAIN

    def _run(self, x, w, b=None, z=None, **_):
        (y,) = super()._run(x, w, b)
        return (_activated(self.onnx_node, y if z is None else y + z, self._get("activation_params") or ()),)


def _activated(node: onnx.NodeProto, x: np.ndarray, told: Sequence[float]) -> np.ndarray:
    kind = next((it.s.decode() for it in node.attribute if it.name == "activation"), "")
    if kind == "Relu":
        return np.maximum(x, 0)
    if kind == "Tanh":
        return np.tanh(x)
    if kind == "Sigmoid":
        return np.asarray(np.exp(-np.logaddexp(0, -x)))
    if kind == "LeakyRelu":
        return np.where(x < 0, (*told, 0.01)[0] * x, x)
    if kind == "Clip":
        low, high = (*told, 0.0, 1.0)[:2]
        return np.clip(x, low, high)
    if kind == "HardSigmoid":
        alpha, beta = (*told, *(0.2, 0.5)[len(told) :])[:2]
        return np.clip(alpha * x + beta, 0, 1)
    if kind:
        raise NotImplementedError(f"the activation {kind}")
    return x


class _Heads(_Contrib):
    """Softmax of queries times keys, as (batch, places, heads · elements). "mask_filter_value: The value to
    be filled in the attention mask. Default value is -10000.0f"; a mask is of each key, or of each image how
    many of its keys are seen."""

    def _weighed(self, q, k, v, mask, bias):
        if len([name for name in self.onnx_node.output if name]) > 1:
            raise NotImplementedError(f"{self.op_type} with more than one output")
        heads, (batch, keys) = self._get("num_heads", 1), k.shape[:2]
        q, k, v = (x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3) for x in (q, k, v))
        scores = (self._get("scale", 0.0) or 1 / math.sqrt(q.shape[-1])) * (q @ k.transpose(0, 1, 3, 2))
        if mask is not None:
            if mask.shape == (batch,):
                mask = np.arange(keys) < mask[:, None]
            if mask.shape != (batch, keys):
                raise NotImplementedError(f"a mask of shape {mask.shape}")
            away = self._get("mask_filter_value", -10000.0)
            scores = scores + np.where(mask.astype(bool), 0.0, away)[:, None, None]
        scores = scores if bias is None else scores + bias
        if self._get("unidirectional", 0):
            ahead = np.triu(np.ones(scores.shape[-2:], bool), 1 + scores.shape[-1] - scores.shape[-2])
            scores = np.where(ahead, -np.inf, scores)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        y = (weights / weights.sum(axis=-1, keepdims=True)) @ v
        return (y.transpose(0, 2, 1, 3).reshape(batch, y.shape[2], -1),)


class MultiHeadAttention(_Heads):
    """Inputs: query, key, value, bias of all three, key_padding_mask, attention_bias."""

    def _run(self, q, k=None, v=None, bias=None, mask=None, more=None, *past, **_):
        if k is None or v is None or q.ndim != 3 or any(each is not None for each in past):
            raise NotImplementedError("MultiHeadAttention of packed inputs, or with what was before")
        if bias is not None:
            q, k, v = (side + part for side, part in zip((q, k, v), np.split(bias, 3), strict=True))
        return self._weighed(q, k, v, mask, more)


class _OfAll(_Heads):
    """ "input: (batch_size, sequence_length, input_hidden_size), weights: Merged Q/K/V weights, bias,
    mask_index, past, attention_bias"."""

    def _run(self, x, weights, bias=None, mask=None, past=None, more=None, *_, **__):
        if past is not None:
            raise NotImplementedError("Attention with what was before")
        product = x @ weights + (0 if bias is None else bias)
        q, k, v = np.split(product, 3, axis=-1)
        return self._weighed(q, k, v, mask, more)


_OfAll.__name__ = "Attention"  # as the evaluator looks for it; ONNX's own has the same name


class EmbedLayerNormalization(_Contrib):
    """ "EmbedLayerNormalization is the fusion of embedding layer in BERT model": the sum of the embeddings of
    words, places and segments, normalised; "mask_index", how many places of each image the mask holds."""

    def _run(
        self, words, segments, of_words, of_places, of_segments, scale, bias, mask=None, places=None, **_
    ):
        first = np.arange(words.shape[1])[None] if places is None else places
        total = of_words[words] + of_places[first]
        if segments is not None and of_segments is not None:
            total = total + of_segments[segments]
        off = total - total.mean(axis=-1, keepdims=True)
        y = off / np.sqrt(total.var(axis=-1, keepdims=True) + self._get("epsilon", 1e-12)) * scale + bias
        counts = np.zeros(len(words), np.int32) if mask is None else mask.sum(axis=1).astype(np.int32)
        return self._some(y, counts, total)


def _gelu(x: np.ndarray) -> np.ndarray:
    erf = np.vectorize(math.erf, otypes=[np.float64])
    return np.asarray(0.5 * x * (1 + erf(x / np.sqrt(2.0))))


OPERATORS = (
    Attention,
    BiasGelu,
    EmbedLayerNormalization,
    FastGelu,
    FusedConv,
    FusedGemm,
    FusedMatMul,
    Gelu,
    MultiHeadAttention,
    QuickGelu,
    _OfAll,
    RotaryEmbedding,
    SimplifiedLayerNormalization,
    SkipLayerNormalization,
    SkipSimplifiedLayerNormalization,
)
