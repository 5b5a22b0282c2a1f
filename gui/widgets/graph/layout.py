"""Where the boxes of a directed graph go, top to bottom, and which way its edges take.

Sugiyama's method (Sugiyama, Tagawa, Toda, "Methods for visual understanding of hierarchical system
structures", 1981): longest-path layers, points of passage for edges that skip layers, an order in each layer
by barycentres, and positions that pull neighbours under each other as far as the order allows. Nothing of Qt.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

GAP_X = 28.0
GAP_Y = 34.0
_SWEEPS = 8


@dataclass(frozen=True)
class PlacedNode:
    """centres: (x, y) by node; routes: the points an edge passes, from the source's bottom to the target's
    top, by (source, target); rows: the nodes of each layer, from left to right, for moving by keys."""

    centres: Mapping[str, tuple[float, float]]
    routes: Mapping[tuple[str, str], tuple[tuple[float, float], ...]]
    rows: tuple[tuple[str, ...], ...]


@dataclass(eq=False)
class _Spot:
    """A node, or a point where a long edge passes a layer."""

    key: str | None
    width: float
    height: float
    above: list[_Spot] = field(default_factory=list)
    below: list[_Spot] = field(default_factory=list)
    place: int = 0
    x: float = 0.0


def layout(sizes: Mapping[str, tuple[float, float]], edges: Sequence[tuple[str, str]]) -> PlacedNode:
    """Places for nodes of (width, height), in units of the drawing; equal graphs are placed equally.

    `sizes` lists nodes in an order in which every edge leads forward, as a model's layers run; ValueError for
    an edge that does not, so that no cycle can come in. Edges that stand twice count once.
    """
    edges = list(dict.fromkeys(edges))
    place = {key: index for index, key in enumerate(sizes)}
    for source, target in edges:
        if place[source] >= place[target]:
            raise ValueError(f"edge {source} → {target} leads backwards")
    layers, paths = _layered(sizes, edges)
    for layer in layers:
        _number(layer)
    _order(layers)
    _position(layers)
    return _placed(layers, paths)


def _layered(
    sizes: Mapping[str, tuple[float, float]], edges: Sequence[tuple[str, str]]
) -> tuple[list[list[_Spot]], dict[tuple[str, str], list[_Spot]]]:
    parents: dict[str, list[str]] = {key: [] for key in sizes}
    children: dict[str, list[str]] = {key: [] for key in sizes}
    for source, target in edges:
        parents[target].append(source)
        children[source].append(target)
    depth: dict[str, int] = {}
    for key in sizes:
        depth[key] = max((depth[parent] + 1 for parent in parents[key]), default=0)
    for key in sizes:  # an input that is first read far below stands just above its reader
        if not parents[key] and children[key]:
            depth[key] = min(depth[child] for child in children[key]) - 1
    layers: list[list[_Spot]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    spots = {key: _Spot(key, *size) for key, size in sizes.items()}
    for key, spot in spots.items():
        layers[depth[key]].append(spot)
    paths = {}
    for source, target in edges:
        path = [spots[source]]
        for level in range(depth[source] + 1, depth[target]):
            passage = _Spot(None, 10.0, 0.0)
            layers[level].append(passage)
            path.append(passage)
        path.append(spots[target])
        for upper, lower in itertools.pairwise(path):
            upper.below.append(lower)
            lower.above.append(upper)
        paths[source, target] = path
    return layers, paths


def _number(layer: list[_Spot]) -> None:
    for index, spot in enumerate(layer):
        spot.place = index


def _order(layers: list[list[_Spot]]) -> None:
    """Barycentre sweeps, down and up; the order with the fewest crossings is kept."""
    best, fewest = [list(layer) for layer in layers], _crossings(layers)
    for sweep in range(_SWEEPS):
        if fewest == 0:
            break
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            wanted = {}
            for spot in layer:
                near = spot.above if down else spot.below
                wanted[spot] = sum(other.place for other in near) / len(near) if near else spot.place
            layer.sort(key=lambda spot: wanted[spot])
            _number(layer)
        count = _crossings(layers)
        if count < fewest:
            best, fewest = [list(layer) for layer in layers], count
    for layer, kept in zip(layers, best, strict=True):
        layer[:] = kept
        _number(layer)


def _crossings(layers: list[list[_Spot]]) -> int:
    count = 0
    for layer in layers:
        ends = [lower.place for spot in layer for lower in sorted(spot.below, key=lambda s: s.place)]
        for index, end in enumerate(ends):
            count += sum(1 for other in ends[index + 1 :] if other < end)
    return count


def _position(layers: list[list[_Spot]]) -> None:
    for layer in layers:
        x = 0.0
        for spot in layer:
            spot.x = x + spot.width / 2
            x += spot.width + GAP_X
        for spot in layer:
            spot.x -= (x - GAP_X) / 2
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            _align(layer, down)


def _align(layer: list[_Spot], down: bool) -> None:
    """The x of least squared distance from where each spot's neighbours are, in order and without overlap:
    with the least distances taken off this is isotonic regression, solved by pooling adjacent violators."""
    offsets, wanted, weights = [], [], []
    offset = 0.0
    for index, spot in enumerate(layer):
        if index:
            offset += (layer[index - 1].width + spot.width) / 2 + GAP_X
        near = (spot.above if down else spot.below) or (spot.below if down else spot.above)
        # Beside a long edge that joins it a node stays below the node before it: else a deep net of many such
        # drifts sideways at each.
        near = [other for other in near if other.key is not None] or near if spot.key is not None else near
        offsets.append(offset)
        wanted.append((sum(other.x for other in near) / len(near) if near else spot.x) - offset)
        # A column of nodes that is straight reads best: it is the edges past them that make way.
        weights.append(1.0 if spot.key is None else 1000.0)
    pools: list[tuple[float, float, int]] = []  # mean, weight, members
    for value, weight in zip(wanted, weights, strict=True):
        pool = (value, weight, 1)
        while pools and pools[-1][0] > pool[0]:
            mean, mass, members = pools.pop()
            total = mass + pool[1]
            pool = ((mean * mass + pool[0] * pool[1]) / total, total, members + pool[2])
        pools.append(pool)
    means = [mean for mean, _, members in pools for _ in range(members)]
    for spot, mean, base in zip(layer, means, offsets, strict=True):
        spot.x = mean + base


def _placed(layers: list[list[_Spot]], paths: dict[tuple[str, str], list[_Spot]]) -> PlacedNode:
    middle: dict[_Spot, float] = {}
    y = 0.0
    for layer in layers:
        height = max(spot.height for spot in layer)
        for spot in layer:
            middle[spot] = y + height / 2
            if spot.key is None:
                spot.height = height  # an edge goes past the layer upright, and not behind its boxes
        y += height + GAP_Y
    centres = {spot.key: (spot.x, middle[spot]) for layer in layers for spot in layer if spot.key is not None}
    routes = {}
    for ends, path in paths.items():
        first, last = path[0], path[-1]
        points = [(first.x, middle[first] + first.height / 2)]
        for spot in path[1:-1]:
            points += [
                (spot.x, middle[spot] - spot.height / 2),
                (spot.x, middle[spot] + spot.height / 2),
            ]
        points.append((last.x, middle[last] - last.height / 2))
        routes[ends] = tuple(points)
    rows = tuple(tuple(spot.key for spot in layer if spot.key is not None) for layer in layers)
    return PlacedNode(centres, routes, rows)
