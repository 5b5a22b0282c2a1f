"""A net of Keras by its own exporter, on its PyTorch backend: images have their channels last."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

os.environ["KERAS_BACKEND"] = "torch"
import keras
import numpy as np

from tests.zoo.nets import Export


def export(wanted: Export, path: Path) -> None:
    """Write the file of LeNet-5."""
    layers = keras.layers
    net = keras.Sequential(
        [
            layers.Input(wanted.net.shape),
            layers.Conv2D(6, 5, padding="same", activation="tanh"),
            layers.AveragePooling2D(2),
            layers.Conv2D(16, 5, activation="tanh"),
            layers.AveragePooling2D(2),
            layers.Flatten(),
            layers.Dense(120, activation="tanh"),
            layers.Dense(84, activation="tanh"),
            layers.Dense(10, activation="softmax"),
        ]
    )
    net(np.zeros((1, *wanted.net.shape), np.float32))
    net.set_weights([np.random.default_rng(0).random(w.shape, np.float32) for w in net.get_weights()])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # The batch size is the signature's; that of the net's Input is not asked.
        shape = (None if wanted.form == "dynamic" else 1, *wanted.net.shape)
        signature = [keras.InputSpec(shape=shape, dtype="float32")]
        net.export(str(path), format="onnx", verbose=False, input_signature=signature)
