"""How a mistake is planted: a function `(p, y, *inputs)` that writes a wrong answer into y, with what a true
finding has to say of it; and the rung that it becomes, a file as the user's are."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from kernels import registry
from kernels.ops import Params
from kernels.ops.attention import Attention
from kernels.ops.binary import Binary
from kernels.ops.cast import Cast
from kernels.ops.compare import Compare
from kernels.ops.concat import Concat
from kernels.ops.conv import Conv
from kernels.ops.conv3d import Conv3d
from kernels.ops.conv_pool import ConvPool
from kernels.ops.conv_transpose import ConvTranspose
from kernels.ops.gather import Gather
from kernels.ops.gemm import Gemm
from kernels.ops.lrn import Lrn
from kernels.ops.lrn_pool import LrnPool
from kernels.ops.multiply_add import MultiplyAdd
from kernels.ops.normalize import Normalize
from kernels.ops.pad import Pad
from kernels.ops.pool import Pool
from kernels.ops.pool_index import PoolIndex
from kernels.ops.qadd import QAdd
from kernels.ops.qconv import QConv
from kernels.ops.qgemm import QGemm
from kernels.ops.quantize import Quantize
from kernels.ops.reduce import Reduce
from kernels.ops.resize import Resize
from kernels.ops.softmax import Softmax
from kernels.ops.transpose import Transpose
from kernels.ops.unary import Unary
from kernels.ops.where import Where
from tests.kernels import drawn_sequences

FIRST = 101  # the first planted rung's number

CONV = Conv(4, 6, 14, 17, 8, 3, 3, 7, 17, 2, 1, 1, 1, 1, 1, group=2, bias=True, activation="relu")
POOL = Pool("max", 2, 3, 11, 13, 3, 3, 6, 7, 2, 2, 1, 1, 1, 1)
MEAN = replace(POOL, kind="average")
LRN = Lrn(2, 7, 20, 5, alpha=0.3)
TIMED: dict[str, Params] = {
    "conv": CONV,
    "gemm": Gemm(6, 50, 40, trans_b=True, alpha=0.5, beta=0.25, bias=True, activation="relu"),
    "pool": POOL,
    "lrn": LRN,
    "lrn_pool": LrnPool.of(Lrn(2, 7, 143, 5, alpha=0.3), replace(POOL, c=7)),
    "conv_pool": ConvPool(CONV, Pool("max", 4, 8, 7, 17, 3, 2, 3, 8, 2, 2, activation="tanh")),
    "conv_transpose": ConvTranspose(3, 4, 5, 6, 6, 3, 2, 10, 7, 2, 1, 1, 1, 1, 1, 2, bias=True),
    "conv3d": Conv3d(2, 4, (5, 6, 7), 4, (3, 2, 3), (3, 4, 3), (2, 2, 2), (1, 1, 0), group=2, bias=True),
    "pool_index": PoolIndex(POOL),
    "softmax": Softmax(3, 10, 4),
    "unary": Unary("tanh", 100),
    "binary": Binary("sub", (3, 4, 5), (20, 5, 1), (0, 1, 0)),
    "compare": Compare("less", (3, 4, 5), (20, 5, 1), (0, 1, 0)),
    "where": Where((3, 4, 5), (0, 1, 0), (20, 5, 1), (5, 0, 1)),
    "concat": Concat(3, (7, 4, 2)),
    "multiply_add": MultiplyAdd((3, 4, 5), (20, 5, 1), (0, 1, 0), (0, 1, 0)),
    "transpose": Transpose((2, 3, 4), (2, 0, 1)),
    "pad": Pad((3, 5), (0, 2), (1, 1), value=0.5),
    "cast": Cast(100, "float32", "int32"),
    "resize": Resize(3, 6, 7, 9, 10, 9 / 6, 10 / 7, mode="linear"),
    "reduce": Reduce("sum", 3, 10, 4),
    "quantize": Quantize(3, 4, 10, "uint8"),
    "qadd": QAdd(100, 0.11, 128, 0.07, -20, 0.13, 120, other="int8"),
    "qconv": QConv(replace(CONV, bias=False, activation=None), weight_zeros=8, to="int8", out_scale=0.1,
                   out_zero=-9, low=-9, high=127),
    "qgemm": QGemm(Gemm(6, 50, 40, trans_b=True), weight_dtype="uint8", to="uint8", shifted=True,
                   out_zero=99),
    "gather": Gather(3, 10, 4, 7),
    "normalize": Normalize(6, 20, 5, 3, affine=True, epsilon=0.01),
    **drawn_sequences.PLAIN,
    "attention": Attention(2, 4, 6, 11, 8, 5, 2, scale=0.35, mask=(2, 1, 6, 11), latest=5),
}  # fmt: skip


@dataclass(frozen=True)
class Planted:
    """says: patterns, of which a true finding has one. An empty tuple: there is no name for it, and it is
    enough to say where and by how much."""

    op: str
    name: str
    says: tuple[str, ...]
    wrong: Callable[..., None]
    params: Params

    def told(self, reason: str) -> bool:
        return any(re.search(pattern, reason) for pattern in self.says)


ALL: dict[str, Planted] = {}
APART: dict[str, Planted] = {}  # several mistakes in one, each with a test of its own


def planted(
    op: str, name: str, *says: str, params: Params | None = None, into: dict[str, Planted] = ALL
) -> Callable[[Any], Any]:
    """A mistake that writes y itself."""

    def kept(wrong: Callable[..., None]) -> Callable[..., None]:
        assert name not in ALL | APART, name
        into[name] = Planted(op, name, says, wrong, params or TIMED[op])
        return wrong

    return kept


def answers(
    op: str,
    name: str,
    wrong: Callable[..., Any],
    *says: str,
    params: Params | None = None,
    into: dict[str, Planted] = ALL,
) -> None:
    """A mistake whose whole answer is what `wrong(p, *inputs)` returns."""

    def run(p: Params, y: np.ndarray, *inputs: np.ndarray) -> None:
        y[...] = wrong(p, *inputs)

    planted(op, name, *says, params=params, into=into)(run)


def bound(name: str, p: Params, inputs: Sequence[np.ndarray], output: np.ndarray) -> Callable[[], None]:
    """What a planted rung's `bind` returns."""
    shaped = [array.reshape(shape) for array, shape in zip(inputs, p.input_shapes, strict=True)]
    y = output.reshape(p.output_shape)
    wrong = (ALL | APART)[name].wrong

    def run() -> None:
        wrong(p, y, *shaped)

    return run


_TEXT = """\
# op = "{op}"
# rung = {number}
# name = "planted_{number}"
# idea = "Planted: {name}."
# [needs]
# dtype = ["{dtype}"]{to}
from tests.bench.judge import mistakes
from tests.bench.judge.planting import bound


def bind(p, inputs, output, workspace):
    return bound({name!r}, p, inputs, output)
"""


def rung_of(mistake: Planted, folder: Path) -> registry.Rung:
    """The mistake as a rung of the user's in a folder."""
    number = FIRST + list(ALL | APART).index(mistake.name)
    to = '\n# to = ["int32", "uint8", "bool"]' if mistake.op == "cast" else ""
    if mistake.op in ("qconv", "qgemm"):
        to = f'\n# to = ["{mistake.params.out_dtype}"]'
    dtype = mistake.params.dtype
    text = _TEXT.format(op=mistake.op, number=number, name=mistake.name, to=to, dtype=dtype)
    alone = folder / str(number)
    alone.mkdir(parents=True, exist_ok=True)
    (alone / f"{number}_planted_{number}.py").write_text(text, encoding="utf-8")
    return registry.find("cpu", mistake.op, number, [alone])
