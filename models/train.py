"""Trains every weight that ships, on a CPU, from fixed seeds: `python -m models.train [NAME…]`.

The training graph is the ONNX model itself, its nodes carried out by torch, so that an architecture is
written down once (models/builders.py). Weights are rounded to float16, and the accuracy kept in
weights/training.json is that of the rounded weights on the data set's test part. Needs the `train` extra and
Fashion-MNIST.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from torch import Tensor

from kernels.cache import atomic_file, cache_dir
from models import builders, datasets, names
from models.builders import INPUT, SMALL_NETS, Net, tensor_sha256
from models.preprocessing import preprocess

WEIGHTS = Path(__file__).parent / "weights"
RECORD = WEIGHTS / "training.json"


@dataclass(frozen=True)
class Recipe:
    """How a small net is trained: Adam or SGD with momentum, the rate falling to 0 along a half cosine.

    shift: images are moved by up to so many pixels, anew in every epoch. stop_at: training ends at the first
    step at which the accuracy on the test part reaches this (the net is meant to be that bad).
    """

    epochs: int
    rate: float
    batch: int = 64
    decay: float = 0.0
    shift: int = 0
    optimizer: str = "adam"
    stop_at: float | None = None
    seed: int = 0


RECIPES = {
    "lenet5-digits": Recipe(epochs=60, rate=2e-3, batch=32, decay=1e-4, shift=2),
    "lenet5-fashion": Recipe(epochs=8, rate=2e-3, decay=1e-5),
    "ece408-high": Recipe(epochs=4, rate=1e-3, decay=1e-5),
    "ece408-low": Recipe(epochs=1, rate=5e-4, optimizer="sgd", stop_at=0.63),
    "ece408-2conv": Recipe(epochs=4, rate=2e-3, decay=1e-5),
}


@dataclass(frozen=True)
class ReadOut:
    """How fc8 is fitted: softmax regression with an L2 penalty, on standardised features."""

    train_images: int
    penalty: float
    steps: int = 60


# A unit that hardly ever fires (the usual deviation is 0.15) gets no weight: scaled up to deviation 1 it
# would get one of some hundreds, and carry the noise of single images and of float32 into the answer.
STEADY = 0.05

READ_OUTS = {
    "alexnet-digits": ReadOut(train_images=1437, penalty=1e-2),
    "alexnet-fashion": ReadOut(train_images=8000, penalty=3e-2),
}


def forward(model: onnx.ModelProto, weights: Mapping[str, Tensor], x: Tensor, until: str) -> Tensor:
    """The tensor `until` of the model for inputs x (N, C, H, W), every node carried out by torch."""
    values = {INPUT: x, **weights}
    for node in model.graph.node:
        a = {item.name: onnx.helper.get_attribute_value(item) for item in node.attribute}
        v = [values[name] for name in node.input]
        match node.op_type:
            case "Conv":
                y = F.conv2d(
                    v[0], v[1], v[2] if len(v) > 2 else None, a["strides"], a["pads"][:2], 1, a["group"]
                )
            case "MaxPool":
                y = F.max_pool2d(v[0], a["kernel_shape"], a["strides"])
            case "LRN":
                y = F.local_response_norm(v[0], a["size"], a["alpha"], a["beta"], a["bias"])
            case "Gemm":
                y = F.linear(v[0], v[1], v[2])
            case "Flatten":
                y = v[0].flatten(1)
            case "Relu" | "Tanh":
                y = {"Relu": torch.relu, "Tanh": torch.tanh}[node.op_type](v[0])
            case "Softmax":
                y = torch.softmax(v[0], -1)
            case other:
                raise NotImplementedError(f"training knows no {other} (node {node.name})")
        values[node.output[0]] = y
        if node.output[0] == until:
            return y
    raise KeyError(until)


def glorot_uniform(
    parameters: Mapping[str, tuple[int, ...]], random: np.random.RandomState
) -> dict[str, np.ndarray]:
    """Glorot and Bengio 2010, the usual start for tanh; drawn by NumPy, whatever the version of torch."""
    weights = {}
    for key, shape in parameters.items():
        window = math.prod(shape[2:])
        bound = math.sqrt(6.0 / (window * sum(shape[:2]))) if len(shape) > 1 else 0.0
        weights[key] = (bound * (2.0 * random.random_sample(shape) - 1.0)).astype(np.float32)
    return weights


def shifted(images: np.ndarray, most: int, random: np.random.RandomState) -> np.ndarray:
    """uint8 (N, H, W), each moved by −most…most pixels along both axes, zeros moving in."""
    if not most:
        return images
    n, h, w = images.shape
    padded = np.pad(images, ((0, 0), (most, most), (most, most)))
    out = np.empty_like(images)
    for index, (y, x) in enumerate(random.randint(0, 2 * most + 1, (n, 2))):
        out[index] = padded[index, y : y + h, x : x + w]
    return out


def halves(weights: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
    return {key: value.detach().numpy().astype(np.float16) for key, value in weights.items()}


def accuracy(model: onnx.ModelProto, weights: Mapping[str, np.ndarray], x: Tensor, labels: Tensor) -> float:
    """Top-1 on inputs x, of the weights widened to float32."""
    wide = {key: torch.from_numpy(value.astype(np.float32)) for key, value in weights.items()}
    with torch.no_grad():
        hits = sum(
            int((forward(model, wide, part, "prob").argmax(1) == label).sum())
            for part, label in zip(x.split(500), labels.split(500), strict=True)
        )
    return hits / len(labels)


def batches(count: int, size: int, random: np.random.RandomState) -> Iterator[np.ndarray]:
    order = random.permutation(count)
    yield from (order[start : start + size] for start in range(0, count, size))


def train_small(name: str, say: Callable[[str], None]) -> tuple[dict[str, np.ndarray], dict[str, object]]:
    """Weights (float16) and record of a small net."""
    entry, recipe = names.models()[name], RECIPES[name]
    net: Net = SMALL_NETS[entry["net"]]()
    random = np.random.RandomState(recipe.seed)
    start = glorot_uniform(net.parameters, random)
    model = net.model(name, start)
    logits = model.graph.node[-1].input[0]
    weights = {key: torch.from_numpy(value).requires_grad_() for key, value in start.items()}
    train, test = (datasets.load(entry["dataset"], split=split) for split in ("train", "test"))
    assert train.labels is not None
    assert test.labels is not None

    def inputs(images: np.ndarray) -> Tensor:
        return torch.from_numpy(preprocess(images, entry["preprocess"], net.input_shape))

    x_test, y_test, y_train = (
        inputs(test.array),
        torch.from_numpy(test.labels),
        torch.from_numpy(train.labels),
    )
    x_train = inputs(train.array)
    if recipe.optimizer == "adam":
        optimizer: torch.optim.Optimizer = torch.optim.AdamW(
            weights.values(), lr=recipe.rate, weight_decay=recipe.decay
        )
    else:
        optimizer = torch.optim.SGD(weights.values(), lr=recipe.rate, momentum=0.9)
    steps = recipe.epochs * math.ceil(len(train) / recipe.batch)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    step, reached = 0, False
    for epoch in range(recipe.epochs):
        if recipe.shift:
            x_train = inputs(shifted(train.array, recipe.shift, random))
        for index in batches(len(train), recipe.batch, random):
            optimizer.zero_grad()
            F.cross_entropy(forward(model, weights, x_train[index], logits), y_train[index]).backward()
            optimizer.step()
            schedule.step()
            step += 1
            # Seldom enough to cost little; the rate is so low that the accuracy hardly moves in between.
            if recipe.stop_at is not None and step % 5 == 0:
                reached = accuracy(model, halves(weights), x_test, y_test) >= recipe.stop_at
                if reached:
                    break
        say(f"{name}: epoch {epoch + 1}, accuracy {accuracy(model, halves(weights), x_test, y_test):.4f}")
        if reached:
            break
    result = halves(weights)
    return result, {
        "data": entry["dataset"],
        "train_images": len(train),
        "epochs": round(step / steps * recipe.epochs, 3),
        "seed": recipe.seed,
        "test_images": len(test),
        "accuracy": accuracy(model, result, x_test, y_test),
    }


def features(
    name: str, split: str, images: int, body: dict[str, Tensor], say: Callable[[str], None]
) -> np.ndarray:
    """relu7 of the frozen AlexNet, float32 (images, 4096), kept in the cache: they take a while."""
    entry = names.models()[name]
    key = tensor_sha256({k: v.numpy() for k, v in body.items()})[:12]
    path = cache_dir() / "features" / f"{entry['dataset']}-{split}-{images}-{key}.npy"
    if path.is_file():
        return np.load(path)
    data = datasets.load(entry["dataset"], images, split=split)
    net = builders.alexnet()
    skeleton = onnx.helper.make_model(onnx.helper.make_graph(net.nodes, name, [], []))
    rows, began = [], time.monotonic()
    with torch.no_grad():
        for start in range(0, len(data), 50):
            x = preprocess(data.array[start : start + 50], entry["preprocess"], net.input_shape)
            rows.append(forward(skeleton, body, torch.from_numpy(x), "relu7").numpy())
            if start % 1000 == 0:
                say(f"{name}: {split} features {start} of {len(data)}, {time.monotonic() - began:.0f} s")
    result = np.concatenate(rows)
    with atomic_file(path) as temporary, temporary.open("wb") as stream:
        np.save(stream, result)
    return result


def train_read_out(name: str, say: Callable[[str], None]) -> tuple[dict[str, np.ndarray], dict[str, object]]:
    """fc8 (float16) of an AlexNet with a frozen body, and its record.

    Random features differ in scale and few vary much, so they are standardised first; the scaling is folded
    into fc8 afterwards: w' = w / σ, b' = b − Σ w · µ / σ.
    """
    entry, recipe = names.models()[name], READ_OUTS[name]
    body = {key: torch.from_numpy(value) for key, value in builders.body().items()}
    labels = {split: datasets.load(entry["dataset"], split=split).labels for split in ("train", "test")}
    train_y, test_y = labels["train"], labels["test"]
    assert train_y is not None
    assert test_y is not None
    train_y = train_y[: recipe.train_images]
    a_train = features(name, "train", recipe.train_images, body, say).astype(np.float64)
    a_test = features(name, "test", len(test_y), body, say).astype(np.float64)
    mean, deviation = a_train.mean(0), a_train.std(0)
    used = deviation > STEADY
    z = torch.from_numpy(np.where(used, (a_train - mean) / np.where(used, deviation, 1.0), 0.0))
    weight = torch.zeros(10, z.shape[1], dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(10, dtype=torch.float64, requires_grad=True)
    y = torch.from_numpy(train_y)
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=recipe.steps, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = F.cross_entropy(F.linear(z, weight, bias), y) + 0.5 * recipe.penalty * weight.square().sum()
        value.backward()
        return value

    optimizer.step(loss)
    folded = np.where(used, weight.detach().numpy() / np.where(used, deviation, 1.0), 0.0)
    shift = bias.detach().numpy() - folded @ mean
    result = {"fc8.weight": folded.astype(np.float16), "fc8.bias": shift.astype(np.float16)}
    rounded = [result[key].astype(np.float32).astype(np.float64) for key in ("fc8.weight", "fc8.bias")]
    accuracies = {
        split: float(((a @ rounded[0].T + rounded[1]).argmax(1) == truth).mean())
        for split, a, truth in (("train", a_train, train_y), ("test", a_test, test_y))
    }
    say(f"{name}: accuracy {accuracies['test']:.4f} (training part {accuracies['train']:.4f})")
    return result, {
        "data": entry["dataset"],
        "train_images": len(train_y),
        "epochs": recipe.steps,
        "seed": builders.SEED,
        "test_images": len(test_y),
        "accuracy": accuracies["test"],
    }


def save(name: str, weights: dict[str, np.ndarray], record: dict[str, object]) -> None:
    """The weights and their record, into the folder that ships."""
    with atomic_file(WEIGHTS / f"{name}.npz") as path, path.open("wb") as stream:
        np.savez_compressed(stream, allow_pickle=False, **weights)
    whole = dict(weights) if name in RECIPES else builders.body() | weights
    recorded = json.loads(RECORD.read_text()) if RECORD.is_file() else {}
    recorded[name] = record | {
        "sha256": tensor_sha256({key: value.astype(np.float32) for key, value in whole.items()}),
        "torch": torch.__version__,
    }
    ordered = {key: recorded[key] for key in names.models() if key in recorded}
    with atomic_file(RECORD) as path:
        path.write_text(json.dumps(ordered, indent=2) + "\n")


def main() -> None:
    known = [*RECIPES, *READ_OUTS]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}; all if none is given"
    )
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in known]
    if unknown:
        parser.error(f"{unknown[0]} is not trained here; {', '.join(known)} are")
    torch.set_num_threads(arguments.threads)
    torch.use_deterministic_algorithms(True)
    for name in arguments.names or known:
        began = time.monotonic()
        weights, record = (train_small if name in RECIPES else train_read_out)(
            name, lambda s: print(s, flush=True)
        )
        save(name, weights, record)
        print(f"{name}: {record}, {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
