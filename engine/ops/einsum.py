"""Einsum: operands two by two, each pair one matrix product over what they share and nobody else reads."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from engine.graph.graph import Node
from engine.ops._base import Refused, Scope
from engine.ops._nodes import Nodes, written


@written("Einsum")
def _einsum(node: Node, nodes: Nodes) -> None:
    """x0, x1, … with an axis a letter → y."""
    terms, result = _parsed(node, nodes.around)
    operands = [_plain(nodes, name, term) for name, term in zip(node.inputs, terms, strict=True)]
    sizes = _sizes(nodes, operands)
    (x, labels), *others = (_without_ones(nodes, *operand, sizes) for operand in operands)
    for index, (y, of_y) in enumerate(others):
        wanted = set(result).union(*(of for _, of in others[index + 1 :]))
        x, labels = _product(nodes, x, labels, y, of_y, wanted)
    x, labels = _summed(nodes, x, labels, set(result))
    if missing := set(result) - set(labels):
        # Letters of axes of one element, which were left out.
        x, labels = nodes.shaped(x, (*nodes.shape(x), *(1 for _ in missing))), [*labels, *sorted(missing)]
    perm = [labels.index(label) for label in result]
    nodes("Transpose", x, output=node.outputs[0], perm=perm)


def _parsed(node: Node, scope: Scope) -> tuple[list[list[str]], list[str]]:
    """The letters of each operand's axes and of the answer's; those of an ellipsis are numbers. Raises
    Refused."""
    equation = str(node.attributes["equation"]).replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(node.inputs) or not re.fullmatch(r"[A-Za-z.,]*", left + right):
        raise Refused(f"its equation {equation!r} does not fit {len(node.inputs)} operands")
    labels_of_terms = []
    for term, name in zip(terms, node.inputs, strict=True):
        extra = len(scope.shape(name)) - len(term.replace("...", ""))
        if extra < 0 or (extra and "..." not in term):
            raise Refused(f"its equation {equation!r} does not fit a tensor of shape {scope.shape(name)}")
        labels_of_terms.append(_letters(term, extra))
    most = max((sum(label.isdigit() for label in labels) for labels in labels_of_terms), default=0)
    if arrow:
        return labels_of_terms, _letters(right, most)
    once = [c for c in sorted(set(left) - {",", "."}) if left.count(c) == 1]
    return labels_of_terms, [*_letters("...", most), *once]


def _letters(term: str, extra: int) -> list[str]:
    """An ellipsis' axes are numbered from the last, with which those of other operands line up."""
    before, dots, behind = term.partition("...")
    return [*before, *(str(i) for i in reversed(range(extra)) if dots), *behind]


def _plain(nodes: Nodes, x: str, labels: list[str]) -> tuple[str, list[str]]:
    """With each letter once: of two axes of one letter only the diagonal is left."""
    distinct = list(dict.fromkeys(labels))
    if len(distinct) == len(labels):
        return x, labels
    shape = nodes.shape(x)
    sizes = dict(zip(labels, shape, strict=True))
    if any(sizes[label] != size for label, size in zip(labels, shape, strict=True)):
        raise Refused(f"a letter stands for axes of different sizes of a tensor of shape {shape}")
    grid = dict(zip(distinct, np.indices([sizes[label] for label in distinct]), strict=True))
    places = np.ravel_multi_index([grid[label] for label in labels], shape)
    flat = nodes.shaped(x, (math.prod(shape),))
    return nodes("Gather", flat, nodes.constant(places, np.int64), axis=0), distinct


def _sizes(nodes: Nodes, operands: Sequence[tuple[str, list[str]]]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for name, labels in operands:
        for label, size in zip(labels, nodes.shape(name), strict=True):
            if size not in (1, sizes.get(label, 1), size if sizes.get(label, 1) == 1 else 1):
                raise Refused(f"its letter {label!r} stands for {sizes[label]} and for {size}")
            sizes[label] = max(size, sizes.get(label, 1))
    return sizes


def _without_ones(nodes: Nodes, x: str, labels: list[str], sizes: dict[str, int]) -> tuple[str, list[str]]:
    """Without the axes of one element, which are broadcast."""
    shape = nodes.shape(x)
    axes_kept = [i for i, size in enumerate(shape) if size != 1]
    if len(axes_kept) == len(shape):
        return x, labels
    return nodes.shaped(x, tuple(shape[i] for i in axes_kept)), [labels[i] for i in axes_kept]


def _summed(nodes: Nodes, x: str, labels: list[str], wanted: set[str]) -> tuple[str, list[str]]:
    """Along the axes whose letters nobody wants."""
    axes = [i for i, label in enumerate(labels) if label not in wanted]
    if not axes:
        return x, labels
    y = nodes("ReduceSum", x, nodes.constant(axes, np.int64), keepdims=0)
    return y, [label for label in labels if label in wanted]


def _product(
    nodes: Nodes, a: str, of_a: list[str], b: str, of_b: list[str], wanted: set[str]
) -> tuple[str, list[str]]:
    a, of_a = _summed(nodes, a, of_a, wanted | set(of_b))
    b, of_b = _summed(nodes, b, of_b, wanted | set(of_a))
    both = [label for label in of_a if label in of_b]
    batch, inner = [x for x in both if x in wanted], [x for x in both if x not in wanted]
    left, right = [x for x in of_a if x not in both], [x for x in of_b if x not in both]
    sizes = dict(zip((*of_a, *of_b), (*nodes.shape(a), *nodes.shape(b)), strict=True))
    lead, m, k, n = (math.prod(sizes[x] for x in part) for part in (batch, left, inner, right))
    a = nodes.shaped(_turned(nodes, a, of_a, [*batch, *left, *inner]), (lead, m, k))
    if inner:
        b = nodes.shaped(_turned(nodes, b, of_b, [*batch, *inner, *right]), (lead, k, n))
        y = nodes("MatMul", a, b)
    else:
        b = nodes.shaped(_turned(nodes, b, of_b, [*batch, *right]), (lead, 1, n))
        y = nodes("Mul", a, b)
    labels = [*batch, *left, *right]
    return nodes.shaped(y, tuple(sizes[x] for x in labels)), labels


def _turned(nodes: Nodes, x: str, labels: list[str], wanted: list[str]) -> str:
    return nodes("Transpose", x, perm=[labels.index(label) for label in wanted])
