"""`deploy.prototxt`, Caffe's description of a net: its text as nested dicts, these as a chain of layers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from kernels.errors import ModelError
from models.builders import Net

MOST_TOKENS, MOST_DEPTH, MOST_LAYERS = 100_000, 20, 500
MOST_SIZE = 1 << 16  # of an image, a window, or of a layer's outputs
_TOKEN = re.compile(r"""\s+|\#[^\n]*|("[^"\n]*"|'[^'\n]*'|[{}:;,\[\]]|[\w.+-]+)|(.)""")
_WORD = re.compile(r"[\w.+\-\"']")
Message = dict[str, list[Any]]


def parsed(text: str) -> Message:
    """A protocol buffer's text: every field with the list of its values. Raises ModelError."""
    tokens: list[str] = []
    for match in _TOKEN.finditer(text):
        if match[2] or len(tokens) > MOST_TOKENS:
            raise ModelError("its text is no description of a net as Caffe writes them")
        if match[1] and match[1] not in ",;":
            tokens.append(match[1])
    whole: Message = {}
    stack = [whole]
    place = 0
    while place < len(tokens):
        token, after = tokens[place], tokens[place + 1 : place + 3]
        if token == "}" and len(stack) > 1:
            stack.pop()
            place += 1
        elif after[:1] == ["{"] or after == [":", "{"]:
            inner: Message = {}
            stack[-1].setdefault(token, []).append(inner)
            stack.append(inner)
            place += 1 + len(after[: after.index("{") + 1])
            if len(stack) > MOST_DEPTH:
                raise ModelError("its text is nested deeper than a net is")
        elif after[:1] == [":"] and len(after) == 2 and all(map(_WORD.match, (token, after[1]))):
            stack[-1].setdefault(token, []).append(after[1].strip("\"'"))
            place += 3
        else:
            raise ModelError(f"its text cannot be understood at {token[:40]!r}")
    if len(stack) > 1:
        raise ModelError("its text is cut off")
    return whole


def net_of(whole: Message) -> tuple[Net, str]:
    """The net that is described, its nodes called as Caffe's layers, and the name that it has there."""
    layers = [layer for layer in [*whole.get("layer", []), *whole.get("layers", [])] if _in_use(layer)]
    if not layers or len(layers) > MOST_LAYERS:
        raise ModelError(f"it describes {len(layers)} layers; a net for use (deploy.prototxt) has some")
    net = Net(*_input(whole, layers))
    top = _text(layers[0], "top") if _kind(layers[0]) == "input" else _text(whole, "input")
    for layer in layers:
        name, kind = _text(layer, "name"), _kind(layer)
        if kind == "input":
            continue
        if kind not in _LAYERS:
            known = ", ".join(sorted(_LAYERS))
            raise ModelError(f"its layer {name[:60]} is a {kind[:40] or 'nameless one'}; known are {known}")
        if layer.get("bottom") != [top] or len(layer.get("top", [])) != 1:
            raise ModelError(f"its layer {name[:60]} does not stand in one chain with the others")
        if not name or any(node.name == name for node in net.nodes):
            raise ModelError(f"its layers have the name {name[:60]!r} more than once")
        _LAYERS[kind](net, name, layer)
        if min(net.shape) < 1:
            raise ModelError(f"its layer {name[:60]} leaves nothing of an image")
        top = _text(layer, "top")
    return net, _text(whole, "name")


def _in_use(layer: Any) -> bool:
    """Whether a layer is of a net in use, and not of its training alone."""
    rules = layer.get("include", []) if isinstance(layer, dict) else []
    return isinstance(layer, dict) and not any("TRAIN" in rule.get("phase", []) for rule in rules)


def _kind(layer: Message) -> str:
    return _text(layer, "type").lower().replace("_", "")


def _text(message: Message, key: str, otherwise: str = "") -> str:
    value = message.get(key, [otherwise])[-1]
    if not isinstance(value, str):
        raise ModelError(f"its {key} is no text")
    return value


def _number(message: Message, key: str, otherwise: str, most: int = MOST_SIZE) -> int:
    text = _text(message, key, otherwise)
    if not re.fullmatch(r"-?\d{1,9}", text) or not 0 <= int(text) <= most:
        raise ModelError(f"its {key} is {text[:20]!r}; 0 to {most:,} is understood")
    return int(text)


def _real(message: Message, key: str, otherwise: str) -> float:
    try:
        return float(_text(message, key, otherwise))
    except ValueError:
        raise ModelError(f"its {key} is no number") from None


def _input(whole: Message, layers: list[Message]) -> tuple[int, int, int]:
    first = _param(layers[0], "input_param") if _kind(layers[0]) == "input" else {}
    shapes = [*first.get("shape", []), *whole.get("input_shape", [])]
    sizes = shapes[0].get("dim", []) if shapes and isinstance(shapes[0], dict) else whole.get("input_dim", [])
    found = [_number({"input size": [size]}, "input size", "") for size in sizes]
    if len(found) != 4 or min(found[1:]) < 1:
        raise ModelError("it names no input of images (batch, channels, height, width); deploy.prototxt does")
    return found[1], found[2], found[3]


def _param(layer: Message, *keys: str) -> Message:
    for key in keys:
        value = layer.get(key, [None])[-1]
        if isinstance(value, dict):
            return value
    return {}


# ---------------------------------------------------------------------------------------------------- layers


def _window(param: Message, name: str) -> tuple[int, int, int]:
    """Size, stride and padding of a square window."""
    for key in ("kernel_h", "kernel_w", "stride_h", "stride_w", "pad_h", "pad_w"):
        if key in param:
            raise ModelError(f"its layer {name[:60]} has a {key}; square windows are understood")
    size, stride = _number(param, "kernel_size", "0"), _number(param, "stride", "1")
    if size < 1 or stride < 1 or _number(param, "dilation", "1") != 1:
        raise ModelError(f"its layer {name[:60]} has a window without a size, or with holes")
    return size, stride, _number(param, "pad", "0")


def _of_images(net: Net, name: str) -> None:
    if len(net.shape) != 3:
        raise ModelError(f"its layer {name[:60]} takes images, and stands behind one that gives none")


def _conv(net: Net, name: str, layer: Message) -> None:
    param = _param(layer, "convolution_param")
    _of_images(net, name)
    size, stride, pad = _window(param, name)
    maps, group = _number(param, "num_output", "0"), _number(param, "group", "1")
    if maps < 1 or group < 1 or maps % group or net.shape[0] % group:
        raise ModelError(f"its layer {name[:60]} makes {maps} maps of {net.shape[0]} in {group} groups")
    net.conv(name, maps, size, stride, pad, group, bias=_text(param, "bias_term", "true") == "true")


def _pool(net: Net, name: str, layer: Message) -> None:
    param = _param(layer, "pooling_param")
    _of_images(net, name)
    size, stride, pad = _window(param, name)
    way = _text(param, "pool", "MAX")
    if way not in ("MAX", "0") or pad:
        raise ModelError(
            f"its layer {name[:60]} pools by {way[:20]} with padding {pad}; MAX without is known"
        )
    _, height, width = net.shape
    if stride > size:
        raise ModelError(
            f"its layer {name[:60]} pools windows of {size} in steps of {stride}; up to {size} are known"
        )
    # Caffe's last window may reach beyond the image; where that is so, ONNX is told.
    net.max_pool(name, size, stride, beyond=bool((height - size) % stride or (width - size) % stride))


def _lrn(net: Net, name: str, layer: Message) -> None:
    param = _param(layer, "lrn_param")
    if _text(param, "norm_region", "ACROSS_CHANNELS") not in ("ACROSS_CHANNELS", "0"):
        raise ModelError(f"its layer {name[:60]} normalises within channels; across them is understood")
    size = _number(param, "local_size", "5")
    net.lrn(
        name,
        size,
        *(_real(param, key, usual) for key, usual in (("alpha", "1"), ("beta", "0.75"), ("k", "1"))),
    )


def _fc(net: Net, name: str, layer: Message) -> None:
    param = _param(layer, "inner_product_param")
    outputs = _number(param, "num_output", "0")
    if outputs < 1 or {"axis", "transpose"} & param.keys() or _text(param, "bias_term", "true") != "true":
        raise ModelError(f"its layer {name[:60]} is fully connected in a way that is not understood")
    if len(net.shape) > 1:
        net.flatten(f"{name}_flatten")
    net.fc(name, outputs)


def _relu(net: Net, name: str, layer: Message) -> None:
    if float(_real(_param(layer, "relu_param"), "negative_slope", "0")) != 0:
        raise ModelError(f"its layer {name[:60]} is a leaky ReLU; plain ones are understood")
    net.relu(name)


def _softmax(net: Net, name: str, layer: Message) -> None:
    if len(net.shape) != 1:
        raise ModelError(f"its layer {name[:60]} takes images; behind InnerProduct it is understood")
    net.softmax(name)


_LAYERS: dict[str, Callable[[Net, str, Message], Any]] = {
    "convolution": _conv,
    "pooling": _pool,
    "lrn": _lrn,
    "innerproduct": _fc,
    "relu": _relu,
    "tanh": lambda net, name, layer: net.tanh(name),
    "softmax": _softmax,
    "dropout": lambda net, name, layer: None,  # in use it passes on what it gets
}
