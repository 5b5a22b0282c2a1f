"""Products between quantized tensors, drawn: what the engine and ONNX Runtime say of them beside exact
arithmetic.

    python -m tests.engine.quantized_nets --count 2000

prints how many numbers differ, and by how many quanta at most.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from bench.measure.answers import oracle
from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from tests.engine.harness import make_model, run_ort, run_plan

EIGHT = ("uint8", "int8")
BATCH = 2


@dataclass(frozen=True)
class Net:
    """x → Q → DQ → a product by dequantized weights → what follows → Q → DQ → y.

    kind: "Conv", "Gemm" or "MatMul". bias: "none", "whole" (int32, dequantized), "real" or "added". after: an
    op type or "". scales: "powers" of two, or "alike" (y's is 64 times x's, the weights' are powers of two),
    so that many answers are ties, or "any". last: whether the product is quantized again. outputs: tensors
    that the graph gives out beside y."""

    kind: str = "Conv"
    x: str = "uint8"
    w: str = "int8"
    y: str = "uint8"
    several: bool = False
    bias: str = "whole"
    after: str = ""
    scales: str = "powers"
    last: bool = True
    seed: int = 0
    outputs: tuple[str, ...] = ()

    def graph(self) -> Graph:
        random, conv = np.random.default_rng(self.seed), self.kind == "Conv"
        shape = (BATCH, 3, 6, 5) if conv else (BATCH, 9)
        m, axis = 4, 0 if conv else 1
        w = whole(random, (m, 3, 3, 2) if conv else (9, m), self.w)
        channels = (m,) if self.several else ()
        scales = {
            "xs": self._scale(random, (), self.scales == "powers"),
            "ws": self._scale(random, channels, self.scales != "any"),
        }
        other = scales["xs"] if self.scales == "alike" else self._scale(random, (), self.scales == "powers")
        scales["ys"] = np.asarray(np.float32(64) * other)
        zeros = {
            "xz": whole(random, (), self.x),
            "wz": whole(random, channels, self.w),
            "yz": whole(random, (), self.y),
        }
        constants: dict[str, Any] = {**scales, **zeros, "w": w}
        node = helper.make_node
        along = {"axis": axis} if self.several else {}
        nodes = [
            node("QuantizeLinear", ["x", "xs", "xz"], ["q"], "q"),
            node("DequantizeLinear", ["q", "xs", "xz"], ["d"], "d"),
            node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], "wd", **along),
        ]
        factors = ["d", "wd"]
        if self.bias == "whole":
            constants["b"] = random.integers(-3000, 3000, m).astype(np.int32)
            constants["bs"] = np.float32(scales["xs"] * scales["ws"])
            nodes.append(
                node("DequantizeLinear", ["b", "bs"], ["bd"], "bd", **({"axis": 0} if channels else {}))
            )
        elif self.bias in ("real", "added"):
            constants["bd"] = (random.integers(-99, 99, m) / 8).astype(np.float32)
        with_bias = self.bias in ("whole", "real") and self.kind != "MatMul"
        how = {"pads": [1, 0, 1, 1]} if conv else {}
        nodes.append(node(self.kind, [*factors, *["bd"] * with_bias], ["p"], "p", **how))
        name = "p"
        if self.bias != "none" and not with_bias:
            if conv:
                constants["shape"] = np.array([m, 1, 1])
                nodes.append(node("Reshape", ["bd", "shape"], ["column"], "column"))
            nodes.append(node("Add", ["column" if conv else "bd", name], ["added"], "added"))
            name = "added"
        if self.after:
            further = []
            if self.after == "Clip":
                constants |= {"least": np.float32(-1.5), "most": np.float32(2.25)}
                further = ["least", "most"]
            nodes.append(node(self.after, [name, *further], ["held"], "held"))
            name = "held"
        if self.last:
            nodes.append(node("QuantizeLinear", [name, "ys", "yz"], ["r"], "r"))
            nodes.append(node("DequantizeLinear", ["r", "ys", "yz"], ["y"], "y"))
        else:
            nodes.append(node("Identity", [name], ["y"], "y"))
        types = {"r": TensorProto.UINT8 if self.y == "uint8" else TensorProto.INT8,
                 "q": TensorProto.UINT8 if self.x == "uint8" else TensorProto.INT8}  # fmt: skip
        outputs = ["y", *self.outputs]
        ranks = dict.fromkeys(outputs, len(shape))
        return from_proto(
            make_model(nodes, {"x": ("N", *shape[1:])}, outputs, constants, 17, ranks, types), "net"
        )

    @staticmethod
    def _scale(random: np.random.Generator, shape: tuple[int, ...], power: bool) -> np.ndarray:
        drawn = np.exp2(random.integers(-5, -2, shape)) if power else random.uniform(0.02, 0.2, shape)
        return np.asarray(drawn, np.float32)

    def fed(self) -> np.ndarray:
        shape = (BATCH, 3, 6, 5) if self.kind == "Conv" else (BATCH, 9)
        return np.random.default_rng(self.seed + 1).normal(0, 4, shape).astype(np.float32)


def whole(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    held = np.iinfo(dtype)
    return np.asarray(random.integers(held.min, held.max + 1, shape), dtype)


@st.composite
def nets(draw: Any) -> Net:
    kind = draw(st.sampled_from(["Conv", "Gemm", "MatMul"]))
    return Net(
        kind=kind,
        **{name: draw(st.sampled_from(EIGHT)) for name in "xwy"},
        several=draw(st.booleans()),
        bias=draw(st.sampled_from(["none", "whole", "real", "added"])),
        after=draw(st.sampled_from(["", "Relu", "Clip"])),
        scales=draw(st.sampled_from(["powers", "alike", "any"])),
        seed=draw(st.integers(0, 1 << 16)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    told: Counter[str] = Counter()
    worst = {"ours": 0.0, "theirs": 0.0}

    @seed(asked.seed)
    @settings(max_examples=asked.count, database=None, phases=(Phase.generate,), deadline=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(nets())
    def look(net: Net) -> None:
        graph, fed = net.graph(), {"x": net.fed()}
        scale = float(next(v for k, v in graph.initializers.items() if k == "ys"))
        right = oracle.run(graph, fed, ["y"])["y"]
        found = {"ours": run_plan(graph, BATCH, fed)["y"], "theirs": run_ort(graph, fed)["y"]}
        told["nets"] += 1
        told["numbers"] += right.size
        for who, y in found.items():
            off = np.rint(np.abs(y - right) / scale)
            told[who] += int(np.count_nonzero(off))
            worst[who] = max(worst[who], float(off.max()))

    look()
    print(f"{told['nets']:,} nets, {told['numbers']:,} numbers")
    for who, name in (("ours", "engine-cpu"), ("theirs", "ONNX Runtime, node by node")):
        print(f"{name}: {told[who]:,} differ from exact arithmetic, by up to {worst[who]:g} quanta")


if __name__ == "__main__":
    main()
