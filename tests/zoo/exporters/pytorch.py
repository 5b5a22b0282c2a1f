"""The nets of torchvision, and those that it lacks, by PyTorch's two exporters."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn
from torchvision import models

from tests.zoo.nets import Export


class LeNet(nn.Module):
    """LeNet-5; `flatten`: how a batch of maps becomes one of rows."""

    def __init__(self, flatten: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2)),
            *(nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2)),
        )
        self.head = nn.Sequential(
            *(nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, 10))
        )
        self.flatten = flatten

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.head(self.flatten(self.body(x))), dim=1)


def mobilenet_v1() -> nn.Module:
    """Howard et al. 2017, table 1: convolutions of one channel each, then of one pixel each."""
    layers: list[nn.Module] = []

    def conv(maps: int, out: int, kernel: int, stride: int, groups: int = 1) -> None:
        layers.append(nn.Conv2d(maps, out, kernel, stride, kernel // 2, groups=groups, bias=False))
        layers.extend((nn.BatchNorm2d(out), nn.ReLU()))

    conv(3, 32, 3, 2)
    maps = 32
    halved = (False, True, False, True, False, True, *[False] * 5, True, False)
    for out, half in zip((64, 128, 128, 256, 256, 512, *[512] * 5, 1024, 1024), halved, strict=True):
        conv(maps, maps, 3, 2 if half else 1, groups=maps)
        conv(maps, out, 1, 1)
        maps = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(), nn.Linear(maps, 1000))


# GoogLeNet and Inception v3 prepare the image as those with trained weights do.
BUILDERS: dict[str, Callable[[], nn.Module]] = {
    "lenet_view": lambda: LeNet(lambda x: x.view(x.size(0), -1)),
    "lenet_flatten": lambda: LeNet(lambda x: torch.flatten(x, 1)),
    "vgg11": models.vgg11,
    "vgg16": models.vgg16,
    "squeezenet": models.squeezenet1_1,
    "googlenet": lambda: models.googlenet(transform_input=True, aux_logits=False, init_weights=False),
    "inception_v3": lambda: models.inception_v3(transform_input=True, init_weights=False),
    "resnet18": models.resnet18,
    "resnet50": models.resnet50,
    "densenet121": models.densenet121,
    "shufflenet_v2": models.shufflenet_v2_x1_0,
    "mobilenet_v1": mobilenet_v1,
    "mobilenet_v2": models.mobilenet_v2,
    "mobilenet_v3": models.mobilenet_v3_large,
    "mnasnet": models.mnasnet1_0,
    "efficientnet_b0": models.efficientnet_b0,
    "regnet_y": models.regnet_y_400mf,
    "convnext_tiny": models.convnext_tiny,
}


def export(wanted: Export, path: Path) -> None:
    """Write the file. Its weights are any, but no two the same: exporters join what is equal."""
    torch.manual_seed(0)
    net = BUILDERS[wanted.net.name]().eval()
    for tensor in (*net.parameters(), *(b for b in net.buffers() if b.is_floating_point())):
        torch.nn.init.uniform_(tensor, 0.5, 1.5)
    dynamic = wanted.form == "dynamic"
    image = torch.rand(2 if dynamic else 1, *wanted.net.shape)
    dynamo = wanted.exporter == "dynamo"
    more: dict[str, object] = {}
    if dynamic and dynamo:
        more = {"dynamic_shapes": ({0: torch.export.Dim("batch")},)}
    elif dynamic:
        more = {"dynamic_axes": {"input": {0: "batch"}, "output": {0: "batch"}}}
    if dynamo:
        more |= {"external_data": False, "verbose": False}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            net, (image,), path, dynamo=dynamo, input_names=["input"], output_names=["output"], **more
        )
