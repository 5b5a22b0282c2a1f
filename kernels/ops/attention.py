"""Attention: what its kernels are told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from kernels.ops._axes import contiguous
from kernels.ops._base import Params, Scalar, Shape, int32

FAR = 2**30  # a distance that no place of a row is away


@dataclass(frozen=True)
class Attention(Params):
    """y = softmax(cap(scale · q kᵀ) + mask) · v, for each head of each image.

    Tensors in order: q (batch, heads, queries, depth); k (batch, kv_heads, keys, depth); v (batch, kv_heads,
    keys, depth_v); mask, added, of the shape `mask` (batch or 1, heads or 1, queries or 1, keys or 1), ()
    where there is none; y (batch, heads, queries, depth_v). swapped: which of q, k, v and y lie with their
    second and third axes in the other order, (batch, queries, heads, depth), as products leave them.

    Neighbouring heads, heads / kv_heads of them, share one of k and v. cap(s) = softcap · tanh(s / softcap),
    or s where softcap is 0. Query i sees key j where earliest ≤ j − i ≤ latest; other scores are −∞. A query
    all of whose scores are −∞ has no weights: its y is NaN, as a softmax of them is, or 0 where `guarded`.

    packed: q, k and v are one tensor (batch, queries, width), each row with those of all heads side by side:
    all of q, then of k, then of v. Then there are as many keys as queries, and the first three are swapped.
    """

    op: ClassVar[str] = "attention"
    struct: ClassVar[str] = (
        "int batch, heads, kv_heads, queries, keys, depth, depth_v; float scale, softcap;"
        "int earliest, latest, guarded, swapped;"
        "index_t mask_image, mask_head, mask_query, mask_key"
    )
    units: ClassVar[str] = "batch"
    most_inputs: ClassVar[int] = 4
    axes: ClassVar[tuple[str, ...]] = ("image", "head", "query", "element")

    batch: int
    heads: int
    queries: int
    keys: int
    depth: int
    depth_v: int
    kv_heads: int
    scale: float = 1.0
    softcap: float = 0.0
    earliest: int = -FAR
    latest: int = FAR
    guarded: bool = False
    mask: tuple[int, ...] = ()
    swapped: tuple[bool, bool, bool, bool] = (False, False, False, False)
    packed: bool = False
    dtype: str = "float32"

    @property
    def flops(self) -> int:
        """Two products, and about five operations for each weight."""
        pairs = self.batch * self.heads * self.queries * self.keys
        return pairs * (2 * self.depth + 2 * self.depth_v + 5)

    def least_flops(self, method: str) -> float:
        """A query need not look at keys that it does not see; what a mask hides is not known here."""
        if self.mask:
            return 0.0
        first = np.clip(np.arange(self.queries, dtype=np.int64) + self.earliest, 0, self.keys)
        last = np.clip(np.arange(self.queries, dtype=np.int64) + self.latest + 1, 0, self.keys)
        seen = int(np.maximum(last - first, 0).sum())
        return 2.0 * self.batch * self.heads * seen * (self.depth + self.depth_v)

    def least_read(self) -> int:
        """Keys and values that no query sees need not be read, nor what a mask says of them."""
        seen = max(0, min(self.keys, self.queries + self.latest) - max(0, self.earliest))
        q = self.batch * self.heads * self.queries * self.depth if seen else 0
        return q + self.batch * self.kv_heads * seen * (self.depth + self.depth_v)

    @property
    def width(self) -> int:
        """Elements of a row of q, k and v together."""
        return self.heads * self.depth + self.kv_heads * (self.depth + self.depth_v)

    def apart(self, inputs: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """q (batch, heads, queries, depth), k, v, and the mask if there is one, as views."""
        if not self.packed:
            laid = zip(inputs[:3], self.input_shapes, self.swapped, strict=False)
            parts = [(x.reshape(shape), way) for x, shape, way in laid]
            return (*(x.swapaxes(1, 2) if way else x for x, way in parts), *inputs[3:])
        rows = inputs[0].reshape(self.input_shapes[0])
        ends = np.cumsum([self.heads * self.depth, self.kv_heads * self.depth])
        several = zip(np.split(rows, ends, axis=2), (self.heads, self.kv_heads, self.kv_heads), strict=True)
        by_head = [x.reshape(self.batch, self.queries, heads, -1).swapaxes(1, 2) for x, heads in several]
        return (*by_head, *inputs[1:])

    @property
    def plain(self) -> Attention:
        """The same of what `apart` gives."""
        return replace(self, packed=False, swapped=(False, False, False, self.swapped[3]))

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        masks = (self.mask,) if self.mask else ()
        if self.packed:
            return ((self.batch, self.queries, self.width), *masks)
        shapes = (
            (self.batch, self.heads, self.queries, self.depth),
            (self.batch, self.kv_heads, self.keys, self.depth),
            (self.batch, self.kv_heads, self.keys, self.depth_v),
        )
        lying = tuple(_lying(shape, way) for shape, way in zip(shapes, self.swapped, strict=False))
        return (*lying, *masks)

    @property
    def output_shape(self) -> tuple[int, ...]:
        return _lying((self.batch, self.heads, self.queries, self.depth_v), self.swapped[3])

    @property
    def laid(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        rows = self.batch * self.queries
        given = (1, rows, self.width) if self.packed else self.input_shapes[0]
        return given, (1, rows, self.heads * self.depth_v) if self.swapped[3] else self.output_shape

    @property
    def mask_strides(self) -> tuple[int, ...]:
        """Elements of the mask from one image, head, query and key to the next; 0 where one serves all."""
        if not self.mask:
            return (0, 0, 0, 0)
        steps = contiguous(self.mask)
        return tuple(step if size > 1 else 0 for size, step in zip(self.mask, steps, strict=True))

    def _of_rows(self, count: int) -> Attention:
        mask = (count if self.mask[0] > 1 else 1, *self.mask[1:]) if self.mask else ()
        return replace(self, batch=count, mask=mask)

    def has_rows(self, place: int) -> bool:
        return place < (1 if self.packed else 3) or self.mask[0] > 1

    def scalars(self) -> tuple[Scalar, ...]:
        sizes = (self.batch, self.heads, self.kv_heads, self.queries, self.keys, self.depth, self.depth_v)
        ways = sum(1 << place for place, way in enumerate((*self.swapped, self.packed)) if way)
        return (
            *int32(*sizes),
            np.float32(self.scale),
            np.float32(self.softcap),
            *int32(self.earliest, self.latest, self.guarded, ways),
            *(np.int64(step) for step in self.mask_strides),
        )

    def small_shapes(self) -> Iterator[Shape]:
        p, few, many = self, 7, 131
        if p.packed:
            few, many = 5, 67
        plain = replace(p, batch=2, heads=2, kv_heads=2, queries=5, keys=few, depth=8, depth_v=8, mask=(),
                        earliest=-FAR, latest=FAR, softcap=0.0)  # fmt: skip
        yield Shape("plain", plain)
        yield Shape("size", replace(plain, batch=1, queries=67, keys=many, depth=min(p.depth, 33), depth_v=9))
        yield Shape("mask", replace(plain, mask=(2, 1, 5, few)))
        if p.latest != FAR or p.earliest != -FAR:
            low = -2 if p.earliest != -FAR else -FAR
            yield Shape("causal", replace(plain, earliest=low, latest=1 if p.latest != FAR else FAR))
        if p.heads != p.kv_heads:
            yield Shape("group", replace(plain, heads=4))
        if p.softcap:
            yield Shape("softcap", replace(plain, softcap=2.0))
        small = replace(plain, heads=4, latest=1, mask=(1, 4, 1, few), depth=12, depth_v=20)
        yield Shape("all", replace(small, softcap=p.softcap))


def _lying(shape: tuple[int, ...], swapped: bool) -> tuple[int, ...]:
    return (shape[0], shape[2], shape[1], shape[3]) if swapped else shape
