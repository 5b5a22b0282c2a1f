"""Which nets there are, from which exporters and in which forms; light, so that a page can be written
anywhere."""

from __future__ import annotations

from dataclasses import dataclass

PYTORCH = ("torchscript", "dynamo")
FORMS = ("fixed", "dynamic")  # batch size 1 alone, or any
# By exporter, how a page calls it; the package to whose version that belongs.
EXPORTERS = {
    "torchscript": "PyTorch, `dynamo=False`",
    "dynamo": "PyTorch, `dynamo=True`",
    "keras": 'Keras, `export(format="onnx")`',
    "scikit": "scikit-learn, skl2onnx",
    "built": "`models/builders_transformers.py`",
}


@dataclass(frozen=True)
class Net:
    """name: in file names. shape: of its input, without the batch. exporters: names of EXPORTERS."""

    name: str
    title: str
    shape: tuple[int, ...] = (3, 224, 224)
    exporters: tuple[str, ...] = PYTORCH


NETS = (
    Net("lenet_view", "LeNet-5, `x.view(x.size(0), -1)`", (1, 28, 28)),
    Net("lenet_flatten", "LeNet-5, `torch.flatten`", (1, 28, 28)),
    Net("lenet_keras", "LeNet-5, images as (N, H, W, C)", (28, 28, 1), ("keras",)),
    Net("mlp_classifier", "`MLPClassifier`, digits 8×8", (64,), ("scikit",)),
    Net("mlp_regressor", "`MLPRegressor`, digits 8×8", (64,), ("scikit",)),
    Net("vgg11", "VGG-11"),
    Net("vgg16", "VGG-16"),
    Net("squeezenet", "SqueezeNet 1.1"),
    Net("googlenet", "GoogLeNet"),
    Net("inception_v3", "Inception v3", (3, 299, 299)),
    Net("resnet18", "ResNet-18"),
    Net("resnet50", "ResNet-50"),
    Net("densenet121", "DenseNet-121"),
    Net("shufflenet_v2", "ShuffleNet v2 ×1.0"),
    Net("mobilenet_v1", "MobileNet v1"),
    Net("mobilenet_v2", "MobileNet v2"),
    Net("mobilenet_v3", "MobileNet v3 large"),
    Net("mnasnet", "MNASNet 1.0"),
    Net("efficientnet_b0", "EfficientNet-B0"),
    Net("regnet_y", "RegNet-Y 400MF"),
    Net("convnext_tiny", "ConvNeXt-Tiny"),
    Net("vit_tiny", "ViT-Tiny", exporters=("built",)),
    Net("bert_small", "Encoder like BERT, four layers", (1, 128, 256), ("built",)),
    Net("gpt_small", "Two blocks like GPT-2's", (1, 128, 256), ("built",)),
)


@dataclass(frozen=True)
class Export:
    """One file of a net."""

    net: Net
    exporter: str
    form: str

    @property
    def stem(self) -> str:
        """What the file is called, without .onnx."""
        return f"{self.net.name}-{self.exporter}-{self.form}"


def exports(names: tuple[str, ...] = ()) -> list[Export]:
    """Every file of the nets of these names, of all without any. Raises ValueError for an unknown name."""
    known = [net.name for net in NETS]
    for name in names:
        if name not in known:
            raise ValueError(f"there is no net {name}; there are {', '.join(known)}")
    return [
        Export(net, exporter, form)
        for net in NETS
        if not names or net.name in names
        for exporter in net.exporters
        for form in FORMS
    ]
