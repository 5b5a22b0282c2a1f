"""AlexNet and the VGGs as torchvision has them: every node is called as the module that it comes from, so
that the weights of its files are the nets' by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from bench.extras.weights.parts import FilePart, Found, divided, fitted
from kernels.errors import ModelError
from models.builders import Net

SIDE = 224
_VGG = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
MAPS = 64  # of the first layer of each of these
MOST_HALVED = 7


def alexnet(classes: int = 1000, thin: int = 1) -> Net:
    """64/192/384/256/256 maps, no groups and no normalisation; answers are logits."""
    net = Net(3, SIDE, SIDE)
    net.conv("features.0", MAPS // thin, 11, stride=4, pad=2).relu("features.1").max_pool("features.2", 3, 2)
    net.conv("features.3", 192 // thin, 5, pad=2).relu("features.4").max_pool("features.5", 3, 2)
    for place, maps in ((6, 384), (8, 256), (10, 256)):
        net.conv(f"features.{place}", maps // thin, 3, pad=1).relu(f"features.{place + 1}")
    net.max_pool("features.12", 3, 2).flatten("flatten")
    net.fc("classifier.1", 4096 // thin).relu("classifier.2")
    net.fc("classifier.4", 4096 // thin).relu("classifier.5")
    return net.fc("classifier.6", classes)


def vgg(layers: int, norm: bool, classes: int = 1000, thin: int = 1) -> Net:
    """VGG-11 to VGG-19, with batch normalisation or without; answers are logits."""
    net = Net(3, SIDE, SIDE)
    place = 0
    for level, count in enumerate(_VGG[layers]):
        for _ in range(count):
            net.conv(f"features.{place}", min(MAPS << level, 512) // thin, 3, pad=1)
            if norm:
                net.batch_norm(f"features.{place + 1}")
                place += 1
            net.relu(f"features.{place + 1}")
            place += 2
        net.max_pool(f"features.{place}", 2, 2)
        place += 1
    net.flatten("flatten").fc("classifier.0", 4096 // thin).relu("classifier.1")
    net.fc("classifier.3", 4096 // thin).relu("classifier.4")
    return net.fc("classifier.6", classes)


NETS: dict[str, Callable[..., Net]] = {"AlexNet": alexnet} | {
    f"VGG-{layers}" + (" with batch normalisation" if norm else ""): partial(vgg, layers, norm)
    for layers in _VGG
    for norm in (False, True)
}


def recognised(parts: Mapping[str, FilePart]) -> Found:
    """The net whose weights these are. Raises ModelError, in words that fit behind the file's name."""
    parts = {
        name.removeprefix("module."): part  # as of nets that were trained on several GPUs
        for name, part in parts.items()
        if not name.endswith("num_batches_tracked")
    }
    named = {name: frozenset(make().parameters) for name, make in NETS.items()}
    title = min(named, key=lambda name: len(named[name] ^ parts.keys()))
    if len(named[title] ^ parts.keys()) > len(named[title]) // 2:
        raise ModelError(
            f"its {len(parts)} tensors are of no net that is known; torchvision's {', '.join(NETS)} are, and "
            "any other net can be exported with torch.onnx.export"
        )
    first, last = (parts.get(f"{layer}.weight") for layer in ("features.0", "classifier.6"))
    thin = divided(MAPS, first.shape[0], MOST_HALVED) if first and first.shape else 1
    classes = last.shape[0] if last and last.shape and last.shape[0] > 0 else 1000
    net = NETS[title](classes=classes, thin=thin)
    told = f"torchvision's {title}" + (f" at 1/{thin} of its width" if thin > 1 else "")
    return Found(told, net, fitted(net, parts, told), "imagenet")
