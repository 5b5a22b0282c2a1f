"""Nets of scikit-learn by skl2onnx."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import onnx
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType
from sklearn.neural_network import MLPClassifier, MLPRegressor

from tests.zoo.nets import Export

CLASSES, HIDDEN = 10, (128, 64)


def export(wanted: Export, path: Path) -> None:
    """Write the file of a net that saw a few random images."""
    rows = np.random.default_rng(0).random((5 * CLASSES, *wanted.net.shape), np.float32)
    labels = np.arange(len(rows)) % CLASSES
    classifier = wanted.net.name == "mlp_classifier"
    net = (MLPClassifier if classifier else MLPRegressor)(hidden_layer_sizes=HIDDEN, max_iter=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net.fit(rows, labels if classifier else rows.mean(axis=1))
    shape = [None if wanted.form == "dynamic" else 1, *wanted.net.shape]
    options = {id(net): {"zipmap": False}} if classifier else None
    proto = to_onnx(net, initial_types=[("X", FloatTensorType(shape))], options=options)
    onnx.save(proto, path)
