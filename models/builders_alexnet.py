"""AlexNet after Krizhevsky, Sutskever and Hinton 2012, with weights drawn from a seed.

He-uniform weights keep the activations' scale through the net, so times, errors and memory are those of a
trained AlexNet without 244 MB to ship. The draw is NumPy's frozen legacy generator: the same everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from models.builders import Net

SEED = 2012
CHUNK = 1 << 20  # random numbers drawn at once: 8 MB of float64 instead of 300 MB for fc6

# The paper divides by (2 + 1e-4 · Σ x²)^0.75 over 5 channels; ONNX's LRN divides alpha by the size first.
# Size, alpha, beta, bias; Caffe's nets were trained with others (its alpha is divided by the size, too).
LRN = (5, 5e-4, 0.75, 2.0)
LRN_OF_CAFFE = (5, 1e-4, 0.75, 1.0)


def alexnet(classes: int = 1000, lrn: tuple[int, float, float, float] = LRN, thin: int = 1) -> Net:
    """227×227×3; 96/256/384/384/256 maps, conv2, conv4 and conv5 in two groups; overlapping 3×3 pools.
    thin: what all these widths are divided by."""
    net = Net(3, 227, 227)
    net.conv("conv1", 96 // thin, 11, stride=4).relu("relu1").lrn("norm1", *lrn).max_pool("pool1", 3, 2)
    net.conv("conv2", 256 // thin, 5, pad=2, group=2).relu("relu2").lrn("norm2", *lrn)
    net.max_pool("pool2", 3, 2)
    net.conv("conv3", 384 // thin, 3, pad=1).relu("relu3")
    net.conv("conv4", 384 // thin, 3, pad=1, group=2).relu("relu4")
    net.conv("conv5", 256 // thin, 3, pad=1, group=2).relu("relu5").max_pool("pool5", 3, 2)
    net.flatten("flatten").fc("fc6", 4096 // thin).relu("relu6").fc("fc7", 4096 // thin).relu("relu7")
    return net.fc("fc8", classes).softmax("prob")


def he_uniform(
    parameters: dict[str, tuple[int, ...]], seed: int, progress: Callable[[float], None] | None = None
) -> dict[str, np.ndarray]:
    """float32 weights uniform in ±√(6 / fan-in), biases zero, drawn in the order given.

    `progress` is called with the fraction drawn so far.
    """
    random = np.random.RandomState(seed)
    total = sum(math.prod(shape) for shape in parameters.values())
    done = 0
    weights = {}
    for key, shape in parameters.items():
        tensor = np.zeros(math.prod(shape), np.float32)
        if len(shape) > 1:
            bound = math.sqrt(6.0 / math.prod(shape[1:]))
            for start in range(0, tensor.size, CHUNK):
                part = tensor[start : start + CHUNK]
                part[:] = (2.0 * random.random_sample(part.size) - 1.0) * bound
                if progress:
                    progress((done + start + part.size) / total)
        done += tensor.size
        weights[key] = tensor.reshape(shape)
    return weights


def body(progress: Callable[[float], None] | None = None) -> dict[str, np.ndarray]:
    """All weights below fc8: the frozen random features that our read-outs stand on."""
    parameters = {k: s for k, s in alexnet().parameters.items() if not k.startswith("fc8.")}
    return he_uniform(parameters, SEED, progress)
