"""`models import`: an ONNX model made of trained weights."""

from __future__ import annotations

from pathlib import Path

import typer


def import_weights(
    file: Path = typer.Argument(
        metavar="FILE",
        help="Weights: bvlc_alexnet.npy, deploy.prototxt with its .caffemodel, or AlexNet and VGG of "
        "torchvision as .pth or .safetensors; or a folder with one of these.",
    ),
    name: str | None = typer.Option(None, "--as", metavar="NAME", help="Its name in the catalogue."),
    labels: str = typer.Option(
        "",
        metavar="FILE|imagenet",
        help="Its classes: a text file, one a line, in the model's order; default: ImageNet's where it "
        "answers 1,000.",
    ),
) -> None:
    """Make an ONNX model of trained weights.

    It is added to the catalogue, and its name is printed. No code of the file is run."""
    from bench.extras.weights.importing import import_file
    from bench.run.progress import callback

    print(import_file(file.expanduser(), name, labels or None, callback()))


COMMAND, GROUP, NAME = import_weights, "models", "import"
