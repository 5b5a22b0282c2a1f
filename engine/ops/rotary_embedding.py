"""RotaryEmbedding: pairs of elements turned by an angle that grows with their place."""

from __future__ import annotations

import numpy as np

from engine.graph.graph import Node
from engine.ops._base import Refused, optional_input
from engine.ops._nodes import Nodes, written


@written("RotaryEmbedding")
def _rotary(node: Node, nodes: Nodes) -> None:
    """x, cosines, sines, places → y of x's shape, (batch, heads, places, elements) or (batch, places, heads ·
    elements). Cosines and sines of half the elements that are turned: by place, or by image and place
    where no places are given."""
    x, cosines, sines = node.inputs[:3]
    rotated(nodes, x, cosines, sines, optional_input(node, 3))


def rotated(nodes: Nodes, x: str, cosines: str, sines: str, places: str) -> None:
    """y = x · cos + (x with each pair's two changed for each other) · ±sin."""
    node, scope = nodes.node, nodes.scope
    shape = scope.shape(x)
    if len(shape) == 3:
        heads = int(node.attributes.get("num_heads", 0))
        if heads < 1 or shape[2] % heads:
            raise Refused(f"its input of shape {shape} does not divide into {heads} heads")
        whole: tuple[int, ...] = (shape[0], shape[1], heads, shape[2] // heads)
    elif len(shape) == 4:
        whole = shape
    else:
        raise Refused(f"its input of shape {shape} has neither three axes nor four")
    turned = int(node.attributes.get("rotary_embedding_dim", 0)) or whole[3]
    half = turned // 2
    if turned % 2 or turned > whole[3]:
        raise Refused(f"{turned} of {whole[3]} elements are to be turned in pairs, and that does not divide")
    first, second = np.arange(half), np.arange(half, turned)
    if node.attributes.get("interleaved", 0):
        first, second = 2 * np.arange(half), 2 * np.arange(half) + 1
    pair, other = np.empty(turned, np.int64), np.empty(turned, np.int64)
    pair[first], pair[second] = np.arange(half), np.arange(half)
    other[first], other[second] = second, first
    sign = np.where(np.isin(np.arange(turned), first), -1, 1)
    dtype = scope.spec(x).dtype

    def spread(name: str, signed: bool) -> str:
        """(batch or 1, …, turned), the axis of the heads 1."""
        size = scope.shape(name)
        if size[-1] != half or len(size) != (2 if places else 3):
            raise Refused(f"its {name!r} of shape {size} does not fit {turned} elements that are turned")
        known, at = scope.constants.get(name), scope.constants.get(places)
        if known is not None and (at is not None or not places):
            angles = (known[at] if at is not None else known)[..., pair] * (sign if signed else 1)
            return nodes.constant(angles.reshape(by_place(angles.shape)), dtype)
        by = name
        if places:
            by = nodes("Gather", by, places, axis=0)
        by = nodes("Gather", by, nodes.constant(pair), axis=-1)
        if signed:
            by = nodes("Mul", by, nodes.constant(sign, dtype))
        return nodes.shaped(by, by_place(scope.shape(by)))

    def by_place(size: tuple[int, ...]) -> tuple[int, ...]:
        at = (size[0], size[1], 1, turned) if len(shape) == 3 else (size[0], 1, size[1], turned)
        if any(of not in (1, there) for of, there in zip(at[:3], whole[:3], strict=True)):
            raise Refused(f"angles of shape {size} do not fit an input of shape {shape}")
        return at

    cosine, sine = spread(cosines, False), spread(sines, True)
    apart = nodes.shaped(x, whole)
    part = apart
    if turned < whole[3]:
        part = nodes("Gather", apart, nodes.constant(np.arange(turned)), axis=-1)
    changed = nodes("Gather", part, nodes.constant(other), axis=-1)
    y = nodes("Add", nodes("Mul", part, cosine), nodes("Mul", changed, sine))
    if turned < whole[3]:
        rest = nodes("Gather", apart, nodes.constant(np.arange(turned, whole[3])), axis=-1)
        y = nodes("Concat", y, rest, axis=3)
    nodes.shaped(y, shape, output=node.outputs[0])
