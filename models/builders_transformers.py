"""Transformers, written as exporters write them, with random weights from a seed.

ViT-Tiny (Dosovitskiy et al. 2021, sizes of Touvron et al. 2021), an encoder like BERT's (Devlin et al. 2019)
and blocks like GPT-2's (Radford et al. 2019). The last two take tokens that are embedded already, as an image
of one channel (1, tokens, width). The draw is NumPy's frozen legacy generator: the same everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import helper, numpy_helper

from models.builders import INPUT, Net

SEED = 2017


class Transformer(Net):
    """Like Net, but each node names its inputs. fans: for each weight matrix, how many of its elements are in
    one sum."""

    def __init__(self, channels: int, height: int, width: int) -> None:
        super().__init__(channels, height, width)
        self.fans: dict[str, int] = {}

    def put(self, op_type: str, name: str, inputs: Sequence[str], **attributes: Any) -> str:
        self.nodes.append(helper.make_node(op_type, list(inputs), [name], name=name, **attributes))
        self.tensor = name
        return name

    def constant(self, name: str, values: object, dtype: str = "float32") -> str:
        """A constant as a node, as exporters write it."""
        tensor = numpy_helper.from_array(np.array(values, dtype), f"{name}.value")
        self.nodes.append(helper.make_node("Constant", [], [name], name=name, value=tensor))
        return name

    def parameter(self, name: str, shape: tuple[int, ...], fan: int = 0) -> str:
        self.parameters[name] = shape
        if fan:
            self.fans[name] = fan
        return name

    def linear(self, name: str, x: str, inputs: int, outputs: int) -> str:
        """x · weight + bias with weight (inputs, outputs)."""
        weight = self.parameter(f"{name}.weight", (inputs, outputs), inputs)
        product = self.put("MatMul", f"{name}.product", [x, weight])
        return self.put("Add", name, [product, self.parameter(f"{name}.bias", (outputs,))])

    def norm(self, name: str, x: str, width: int, epsilon: float) -> str:
        scales = [self.parameter(f"{name}.{part}", (width,)) for part in ("scale", "bias")]
        return self.put("LayerNormalization", name, [x, *scales], axis=-1, epsilon=epsilon)

    def reshaped(self, name: str, x: str, shape: Sequence[int]) -> str:
        return self.put("Reshape", name, [x, self.constant(f"{name}.shape", shape, "int64")])

    def gelu(self, name: str, x: str) -> str:
        """x · (1 + erf(x / √2)) / 2."""
        root, one, half = (
            self.constant(f"{name}.{part}", value)
            for part, value in (("root", math.sqrt(2)), ("one", 1), ("half", 0.5))
        )
        erf = self.put("Erf", f"{name}.erf", [self.put("Div", f"{name}.divided", [x, root])])
        gate = self.put("Add", f"{name}.gate", [erf, one])
        return self.put("Mul", name, [self.put("Mul", f"{name}.twice", [x, gate]), half])

    def gelu_by_tanh(self, name: str, x: str) -> str:
        """x · (1 + tanh(√(2/π) · (x + 0.044715 x³))) / 2."""
        numbers = {"three": 3, "cubic": 0.044715, "root": math.sqrt(2 / math.pi), "one": 1, "half": 0.5}
        three, cubic, root, one, half = (self.constant(f"{name}.{p}", v) for p, v in numbers.items())
        cubed = self.put("Mul", f"{name}.cubed", [self.put("Pow", f"{name}.power", [x, three]), cubic])
        inner = self.put("Mul", f"{name}.inner", [self.put("Add", f"{name}.sum", [x, cubed]), root])
        gate = self.put("Add", f"{name}.gate", [self.put("Tanh", f"{name}.tanh", [inner]), one])
        halved = self.put("Mul", f"{name}.halved", [x, half])
        return self.put("Mul", name, [halved, gate])

    def attention(self, name: str, x: str, tokens: int, width: int, heads: int, causal: bool) -> str:
        """Attention of every token to all tokens, or (causal) to itself and those before it; x (N, tokens,
        width)."""
        depth = width // heads
        apart = {
            of: self.reshaped(
                f"{name}.{of}_heads",
                self.linear(f"{name}.{of}", x, width, width),
                [0, tokens, heads, depth],
            )
            for of in ("query", "key", "value")
        }
        turned = {
            of: self.put("Transpose", f"{name}.{of}_turned", [made], perm=perm)
            for (of, made), perm in zip(
                apart.items(), ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]), strict=True
            )
        }
        product = self.put("MatMul", f"{name}.product", [turned["query"], turned["key"]])
        root = self.constant(f"{name}.root", math.sqrt(depth))
        scores = self.put("Div", f"{name}.scores", [product, root])
        if causal:
            hidden = np.triu(np.full((1, 1, tokens, tokens), -np.inf, np.float32), 1)
            scores = self.put("Add", f"{name}.masked", [scores, self.constant(f"{name}.mask", hidden)])
        weights = self.put("Softmax", f"{name}.weights", [scores], axis=-1)
        weighed = self.put("MatMul", f"{name}.weighed", [weights, turned["value"]])
        back = self.put("Transpose", f"{name}.back", [weighed], perm=[0, 2, 1, 3])
        whole = self.reshaped(f"{name}.whole", back, [0, tokens, width])
        return self.linear(f"{name}.out", whole, width, width)

    def first_token(self, x: str, place: int, width: int) -> None:
        """Keep only one token's row."""
        self.put("Gather", "token", [x, self.constant("place", place, "int64")], axis=1)
        self.shape = (width,)

    def drawn(self) -> dict[str, np.ndarray]:
        """float32 weights that keep the scale of activations, drawn in the order of the parameters."""
        random = np.random.RandomState(SEED)
        weights = {}
        for key, shape in self.parameters.items():
            even = 2.0 * random.random_sample(math.prod(shape)).astype(np.float64) - 1.0
            bound = math.sqrt(3.0 / self.fans[key]) if key in self.fans else 0.1
            values = bound * even + (1.0 if key.endswith(".scale") else 0.0)
            weights[key] = values.astype(np.float32).reshape(shape)
        return weights


def _before(net: Transformer, name: str, x: str, tokens: int, width: int, heads: int, causal: bool,
            epsilon: float, gelu: Callable[[str, str], str]) -> str:  # fmt: skip
    """A block that normalises the input of the attention and of the two products after it."""
    seen = net.norm(f"{name}.norm1", x, width, epsilon)
    x = net.put(
        "Add", f"{name}.sum1", [x, net.attention(f"{name}.attention", seen, tokens, width, heads, causal)]
    )
    seen = net.norm(f"{name}.norm2", x, width, epsilon)
    inner = gelu(f"{name}.gelu", net.linear(f"{name}.wide", seen, width, 4 * width))
    return net.put("Add", f"{name}.sum2", [x, net.linear(f"{name}.narrow", inner, 4 * width, width)])


def vit_tiny() -> Transformer:
    """Patches of 16×16 of 224×224×3 as 196 tokens and one for the class, 192 wide; 12 blocks, 3 heads."""
    net, width, patches = Transformer(3, 224, 224), 192, 196
    weights = [net.parameter("patches.weight", (width, 3, 16, 16), 3 * 16 * 16)]
    weights.append(net.parameter("patches.bias", (width,)))
    sizes = {"kernel_shape": [16, 16], "strides": [16, 16]}
    image = net.put("Conv", "patches", [INPUT, *weights], **sizes)
    x = net.put("Transpose", "tokens", [net.reshaped("rows", image, [0, width, patches])], perm=[0, 2, 1])
    # One for each image, however many these are.
    axes, whole = net.constant("batch.axes", [0], "int64"), net.constant("class.size", [1, width], "int64")
    first = net.put("Gather", "batch", [net.put("Shape", "tokens.shape", [x]), axes], axis=0)
    size = net.put("Concat", "class.shape", [first, whole], axis=0)
    own = net.put("Expand", "class", [net.parameter("class.token", (1, 1, width)), size])
    x = net.put("Concat", "all", [own, x], axis=1)
    x = net.put("Add", "placed", [x, net.parameter("places", (1, patches + 1, width))])
    for number in range(12):
        x = _before(net, f"block{number}", x, patches + 1, width, 3, False, 1e-6, net.gelu)
    net.first_token(net.norm("norm", x, width, 1e-6), 0, width)
    net.fc("head", 1000).softmax("prob")
    net.fans["head.weight"] = width
    return net


def bert_small() -> Transformer:
    """128 embedded tokens, 256 wide; 4 layers, 4 heads, each sum normalised; 1,000 scores by the first."""
    tokens, width, heads = 128, 256, 4
    net = Transformer(1, tokens, width)
    x = net.reshaped("tokens", INPUT, [0, tokens, width])
    x = net.put("Add", "placed", [x, net.parameter("places", (1, tokens, width))])
    x = net.norm("norm", x, width, 1e-12)
    for number in range(4):
        name = f"layer{number}"
        seen = net.attention(f"{name}.attention", x, tokens, width, heads, False)
        x = net.norm(f"{name}.norm1", net.put("Add", f"{name}.sum1", [seen, x]), width, 1e-12)
        inner = net.gelu(f"{name}.gelu", net.linear(f"{name}.wide", x, width, 4 * width))
        narrow = net.linear(f"{name}.narrow", inner, 4 * width, width)
        x = net.norm(f"{name}.norm2", net.put("Add", f"{name}.sum2", [narrow, x]), width, 1e-12)
    net.first_token(x, 0, width)
    net.fc("pooler", width).tanh("pooled").fc("head", 1000).softmax("prob")
    net.fans |= {"pooler.weight": width, "head.weight": width}
    return net


def gpt_small() -> Transformer:
    """128 embedded tokens, 256 wide; 2 blocks, 4 heads, each token attends to those before it; 1,000 scores
    from the last token."""
    tokens, width, heads = 128, 256, 4
    net = Transformer(1, tokens, width)
    x = net.reshaped("tokens", INPUT, [0, tokens, width])
    x = net.put("Add", "placed", [x, net.parameter("places", (1, tokens, width))])
    for number in range(2):
        x = _before(net, f"block{number}", x, tokens, width, heads, True, 1e-5, net.gelu_by_tanh)
    net.first_token(net.norm("norm", x, width, 1e-5), tokens - 1, width)
    net.fc("head", 1000).softmax("prob")
    net.fans["head.weight"] = width
    return net


NETS: dict[str, Callable[[], Transformer]] = {f.__name__: f for f in (vit_tiny, bert_small, gpt_small)}
