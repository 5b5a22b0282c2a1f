"""Attention: the softmax of what queries and keys have in common, and the values that it weighs."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from engine.graph.graph import Node
from engine.ops._base import Lowered, Refused, Scope, operator, optional_input
from engine.ops._nodes import Nodes
from engine.ops.binary import one_type
from kernels.ops import FLOATS
from kernels.ops.attention import FAR, Attention

_SWAPPED = [0, 2, 1, 3]
_PRODUCT, _CAPPED, _MASKED, _WEIGHTS = range(4)  # what the fourth output may be


@operator("Attention")
def lower(node: Node, scope: Scope) -> Lowered:
    """q, k, v, mask, past keys, past values, valid keys → y, all keys, all values, scores.

    Of four axes (batch, heads, places, elements), or of three (batch, places, heads · elements): these are
    read as they lie. Raises Refused where shapes do not fit.
    """
    return _Lowering(node, scope).lowered()


@dataclass(frozen=True)
class _Sizes:
    batch: int
    heads: int
    places: int
    elements: int

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.batch, self.heads, self.places, self.elements)


class _Lowering:
    def __init__(self, node: Node, scope: Scope) -> None:
        self.node, self.nodes = node, Nodes(node, scope)
        self.scope = self.nodes.scope  # which knows what the nodes make, too
        self.dtype = one_type(node.inputs[:3], scope)
        if self.dtype not in FLOATS:
            raise Refused(f"it computes in {self.dtype}, and floating point is supported")
        self.flat = len(scope.shape(node.inputs[0])) == 3
        heads, kv_heads = (int(node.attributes.get(f"{of}_num_heads", 0)) for of in ("q", "kv"))
        q, k, v = node.inputs[:3]
        self.q, self.k, self.v = (
            self._sizes(name, count) for name, count in ((q, heads), (k, kv_heads), (v, kv_heads))
        )
        fitting = self.q.batch == self.k.batch == self.v.batch and self.q.elements == self.k.elements
        if not fitting or (self.k.heads, self.k.places) != (self.v.heads, self.v.places):
            shapes = ", ".join(str(sizes.shape) for sizes in (self.q, self.k, self.v))
            raise Refused(
                f"queries, keys and values of shapes {shapes} "
                "(batch, heads, places, elements) do not fit together"
            )
        if self.q.heads % self.k.heads:
            raise Refused(f"{self.q.heads} heads of queries do not divide among {self.k.heads} of keys")

    def _sizes(self, name: str, heads: int) -> _Sizes:
        shape = self.scope.shape(name)
        if self.flat and len(shape) == 3 and heads > 0 and shape[2] % heads == 0:
            return _Sizes(shape[0], heads, shape[1], shape[2] // heads)
        if not self.flat and len(shape) == 4:
            return _Sizes(*shape)
        raise Refused(f"its input {name!r} of shape {shape} does not divide into {heads} heads")

    def lowered(self) -> Lowered:
        node, past = self.node, optional_input(self.node, 4)
        key, key_apart = self._all(node.inputs[1], self.k, past, 1)
        value, value_apart = self._all(node.inputs[2], self.v, optional_input(node, 5), 2)
        before = self.scope.shape(past)[2] if past else 0
        keys = before + self.k.places
        earliest, latest = self._window(before)
        mask = self._mask(keys)
        if valid := optional_input(node, 6):
            seen = self._valid(valid, keys, earliest, latest)
            mask = self.nodes("Add", mask, seen) if mask else seen
            earliest, latest = -FAR, FAR
        shape = self._mask_shape(mask, keys) if mask else ()
        scale = node.attributes.get("scale")
        params = Attention(
            *(
                self.q.batch,
                self.q.heads,
                self.q.places,
                keys,
                self.q.elements,
                self.v.elements,
                self.k.heads,
            ),
            scale=1 / math.sqrt(self.q.elements) if scale is None else float(scale),
            softcap=float(node.attributes.get("softcap", 0.0)),
            earliest=earliest,
            latest=latest,
            guarded=True,
            mask=shape,
            swapped=(self.flat, key_apart, value_apart, self.flat),
            dtype=self.dtype,
        )
        out: tuple[int, ...] = (self.q.batch, self.q.heads, self.q.places, self.v.elements)
        if self.flat:
            out = (self.q.batch, self.q.places, self.q.heads * self.v.elements)
        inputs = (node.inputs[0], key, value, *((mask,) if mask else ()))
        self.nodes.kernel(params, inputs, out, node.outputs[0])
        if scores := self._wanted(3):
            self._scores(params, key, mask, scores)
        return self.nodes.lowered()

    def _wanted(self, place: int) -> str:
        """The name of an output that somebody reads, "" of any other."""
        name = self.node.outputs[place] if place < len(self.node.outputs) else ""
        return name if name in self.nodes.around.consumed else ""

    def _all(self, name: str, sizes: _Sizes, past: str, output: int) -> tuple[str, bool]:
        """All keys or values, those from before in front, and whether their heads lie apart in each place."""
        to = self._wanted(output)
        if not past:
            if to and self.flat:
                self._by_head(name, sizes, to)
            elif to:
                self.nodes("Identity", name, output=to)
            return name, self.flat
        known = self.scope.shape(past)
        if len(known) != 4 or (*known[:2], known[3]) != (sizes.batch, sizes.heads, sizes.elements):
            raise Refused(f"its {past!r} of shape {known} does not fit what comes behind it, {sizes.shape}")
        if self.flat:
            name = self._by_head(name, sizes)
        return self.nodes("Concat", past, name, output=to, axis=2), False

    def _by_head(self, name: str, sizes: _Sizes, to: str = "") -> str:
        apart = self.nodes.shaped(name, (sizes.batch, sizes.places, sizes.heads, sizes.elements))
        return self.nodes("Transpose", apart, output=to, perm=_SWAPPED)

    # --- what a query sees ---

    def _window(self, before: int) -> tuple[int, int]:
        """How far behind and ahead of its own place, counted from the first key."""
        left, right = (int(self.node.attributes.get(f"{w}_window_size", -1)) for w in ("left", "right"))
        latest = before if self.node.attributes.get("is_causal", 0) else FAR
        if right >= 0:
            latest = min(latest, before + right)
        return before - left if left >= 0 else -FAR, latest

    def _mask(self, keys: int) -> str:
        """What is added to the scores; "" where nothing is. Keys beyond the mask's last are not seen."""
        name = optional_input(self.node, 3)
        if not name:
            return ""
        nodes, shape, dtype = self.nodes, self.scope.shape(name), self.scope.spec(name).dtype
        if dtype not in ("bool", *FLOATS) or not shape:
            raise Refused(
                f"its mask is of {dtype} and shape {shape}, and truth values or floating point are wanted, "
                "along one axis at least"
            )
        missing = keys - shape[-1]
        known = self.scope.constants.get(name)
        if known is not None:
            added = np.where(known, 0, -np.inf) if dtype == "bool" else known.astype(np.float64)
            ends = [(0, 0)] * (len(shape) - 1) + [(0, max(0, missing))]
            return nodes.constant(np.pad(added, ends, constant_values=-np.inf), self.dtype)
        if dtype == "bool":
            name = self._added(name)
        elif dtype != self.dtype:
            raise Refused(f"its mask is of {dtype}, and its inputs of {self.dtype}")
        if missing > 0:
            pads = nodes.constant([0] * (2 * len(shape) - 1) + [missing], np.int64)
            name = nodes("Pad", name, pads, nodes.constant(-np.inf, self.dtype))
        return name

    def _added(self, seen: str) -> str:
        """0 where it is true, else −∞."""
        zero, nothing = (self.nodes.constant(value, self.dtype) for value in (0, -np.inf))
        return self.nodes("Where", seen, zero, nothing)

    def _mask_shape(self, mask: str, keys: int) -> tuple[int, ...]:
        shape = self.scope.shape(mask)
        whole = (1,) * (4 - len(shape)) + shape
        wanted = (self.q.batch, self.q.heads, self.q.places, keys)
        if len(whole) != 4 or any(size not in (1, of) for size, of in zip(whole, wanted, strict=True)):
            raise Refused(f"its mask of shape {shape} does not broadcast to scores of shape {wanted}")
        return whole

    def _valid(self, name: str, keys: int, earliest: int, latest: int) -> str:
        """What is added where an image has fewer keys than there is room for; the last query then stands at
        the last of them."""
        nodes, places = self.nodes, np.arange(keys, dtype=np.int64)
        away = places - np.arange(self.q.places)[:, None] + self.q.places  # (queries, keys): ≤ the count
        counts = self.scope.constants.get(name)
        if counts is not None:
            counts = counts.reshape(-1, 1, 1, 1)
            seen = (places < counts) & (away <= counts + latest) & (away >= counts + earliest)
            return nodes.constant(np.where(seen, 0, -np.inf), self.dtype)
        if self.scope.spec(name).dtype != "int64":
            raise Refused(f"its counts of keys are {self.scope.spec(name).dtype}, and int64 is wanted")
        by_image = nodes.shaped(name, (self.q.batch, 1, 1, 1))
        bounds = [("LessOrEqual", places + 1)]
        if latest != FAR:
            bounds.append(("LessOrEqual", away - latest))
        if earliest != -FAR:
            bounds.append(("GreaterOrEqual", away - earliest))
        visible = [nodes(kind, nodes.constant(bound), by_image) for kind, bound in bounds]
        return self._added(functools.reduce(partial(nodes, "And"), visible))

    # --- the scores themselves, where somebody wants them ---

    def _scores(self, p: Attention, key: str, mask: str, to: str) -> None:
        """Beside the answer: what the kernel never writes."""
        nodes, mode = self.nodes, int(self.node.attributes.get("qk_matmul_output_mode", 0))
        if mode not in range(4):
            raise Refused(f"its qk_matmul_output_mode is {mode}, and 0 to 3 are known")
        query = self.node.inputs[0]
        if self.flat:
            query = self._by_head(query, self.q)
        if p.swapped[1]:
            key = self._by_head(key, self.k)
        if p.heads != p.kv_heads:
            sharing = nodes.constant(np.repeat(np.arange(p.kv_heads), p.heads // p.kv_heads))
            key = nodes("Gather", key, sharing, axis=1)
        columns = nodes("Transpose", key, perm=[0, 1, 3, 2])
        steps: list[tuple[str, ...]] = [("Mul", nodes.constant(p.scale, self.dtype))]
        if p.softcap and mode >= _CAPPED:
            cap = nodes.constant(p.softcap, self.dtype)
            steps += [("Div", cap), ("Tanh",), ("Mul", cap)]
        if mode >= _MASKED:
            away = np.arange(p.keys) - np.arange(p.queries)[:, None]
            hidden = (away < p.earliest) | (away > p.latest)
            if hidden.any():
                steps.append(("Add", nodes.constant(np.where(hidden, -np.inf, 0), self.dtype)))
            if mask:
                steps.append(("Add", mask))
        scores = nodes("MatMul", query, columns)
        for number, (kind, *other) in enumerate(steps, start=1):
            last = to if number == len(steps) and mode != _WEIGHTS else ""
            scores = nodes(kind, scores, *other, output=last)
        if mode == _WEIGHTS:
            weights = nodes("Softmax", scores, axis=-1)
            nodes("Where", nodes("IsNaN", weights), nodes.constant(0, self.dtype), weights, output=to)
