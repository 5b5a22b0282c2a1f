"""The catalogue of models: what each is, where its weights come from, and its ONNX file in the user's cache.

An entry is a table of catalogue.toml and, for trained weights, what models/train.py recorded in
weights/training.json. Files are built at first use; AlexNet's 244 MB of random weights are not shipped.
Models that the user imported follow, and lie in a folder of the user's (models.imported).
"""

from __future__ import annotations

import hashlib
import json
import logging
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from kernels.cache import atomic_file, cache_dir
from kernels.errors import InputError, ModelError
from kernels.nearest import did_you_mean
from models import imported, names
from models.download import sha256

log = logging.getLogger("kernelscope.models")
Progress = Callable[[str, float | None], None]
HERE = Path(__file__).parent
WEIGHTS = HERE / "weights"


@dataclass(frozen=True)
class Entry:
    """One model of the catalogue.

    net: the architecture's name; input_shape: (C, H, W) of one image, layout NCHW with a dynamic batch;
    images: how many a comparison takes unless told otherwise; classes: its labels by index, () where the
    answers have none; accuracy: top-1 of the shipped weights on the whole test part of `dataset` (None: never
    trained); sha256: over the float32 tensors' bytes in order of their names, of an imported model over its
    file; provenance: in words.
    """

    name: str
    title: str
    net: str
    input_shape: tuple[int, int, int]
    preprocess: str
    dataset: str
    images: int
    classes: tuple[str, ...]
    provenance: str
    sha256: str
    accuracy: float | None
    layout: str = "NCHW"


@cache
def training_records() -> dict[str, dict[str, Any]]:
    """What training recorded, by model: data, images, epochs, seed, accuracy, SHA-256, version of torch."""
    records: dict[str, dict[str, Any]] = json.loads((WEIGHTS / "training.json").read_text(encoding="utf-8"))
    return records


def entries() -> dict[str, Entry]:
    """Every model by name, in the order of the catalogue."""
    others = {name: table for name, table in names.models().items() if table["net"] == imported.NET}
    return _shipped_entries() | {name: _entry(name, table) for name, table in others.items()}


@cache
def _shipped_entries() -> dict[str, Entry]:
    return {name: _entry(name, table) for name, table in names.shipped().items()}


def _entry(name: str, table: dict[str, Any]) -> Entry:
    record = training_records().get(name)
    provenance = table["origin"]
    if record:
        provenance += (
            f"; trained by models/train.py on {record['train_images']:,} images of {record['data']}, "
            f"{record['epochs']:g} epochs, seed {record['seed']}, stored as float16; "
            f"top-1 {record['accuracy']:.4f} on its {record['test_images']:,} test images"
        )
    channels, height, width = table["input"]
    return Entry(
        name=name,
        title=table["title"],
        net=table["net"],
        input_shape=(channels, height, width),
        preprocess=table["preprocess"],
        dataset=table["dataset"],
        images=table["images"],
        classes=_classes(table),
        provenance=provenance,
        sha256=record["sha256"] if record else table.get("sha256", ""),
        accuracy=record["accuracy"] if record else None,
    )


def _classes(table: dict[str, Any]) -> tuple[str, ...]:
    own: bool | list[str] = table["classes"]  # of an imported model the names themselves
    return tuple(names.datasets()[table["dataset"]]["classes"] if own is True else own or ())


def get(name: str) -> Entry:
    """The entry of a name. Raises InputError with the nearest name."""
    entry = entries().get(name)
    if entry is None:
        hint = did_you_mean(name, entries())
        raise InputError(
            f"model {name!r} is not known{hint}; known are {', '.join(entries())}, or a .onnx file"
        )
    return entry


def path(name: str, progress: Progress | None = None) -> Path:
    """The model's ONNX file, which is built into the cache if it is not there yet.

    Its path depends on the weights and on the code that builds it, so that a file of another version is never
    used. Its SHA-256 lies beside it: a file that has changed is built again, and the user is told. progress:
    gets words and the fraction done. Raises InputError (unknown name) and ModelError (damaged weights, a
    cache that cannot be written).
    """
    entry = get(name)
    if entry.net == imported.NET:
        return _as_imported(entry)
    root = cache_dir() / "models"
    target = root / _key(entry) / f"{name}.onnx"
    try:
        recorded = _noted(target)
        if recorded and target.is_file():
            stat = target.stat()
            if _sha256(target, stat.st_mtime_ns, stat.st_size, stat.st_ino) == recorded:
                return target
            log.warning(
                "the model %s in %s is not what was built there (its SHA-256 differs): it is built again",
                name,
                root,
            )
        data = _serialized(entry, progress)
        with atomic_file(target) as temporary:
            temporary.write_bytes(data)
        with atomic_file(_note(target)) as temporary:
            temporary.write_text(hashlib.sha256(data).hexdigest())
        for old in root.glob(f"*/{name}.onnx"):
            if old != target:
                old.unlink(missing_ok=True)
                _note(old).unlink(missing_ok=True)
    except OSError as error:
        raise ModelError(
            f"model {name} could not be written to {root} ({error.strerror}): "
            "make room or set KERNELSCOPE_CACHE to another folder"
        ) from error
    return target


def _as_imported(entry: Entry) -> Path:
    file = imported.file_of(entry.name)
    try:
        stat = file.stat()
        digest = _sha256(file, stat.st_mtime_ns, stat.st_size, stat.st_ino)
    except OSError as error:
        raise ModelError(f"model {entry.name} cannot be read from {file} ({error.strerror})") from error
    if digest != entry.sha256:
        raise ModelError(
            f"the model {entry.name} in {file.parent} is not what was imported (its SHA-256 differs): "
            f"{imported.again(entry.name)}"
        )
    return file


def _note(target: Path) -> Path:
    """The file with the SHA-256 of a model's file as it was built."""
    return target.with_name(f"{target.name}.sha256")


def _noted(target: Path) -> str:
    try:
        with _note(target).open("rb") as stream:
            return stream.read(64).decode("ascii", "replace")
    except FileNotFoundError:
        return ""


@lru_cache(maxsize=64)
def _sha256(path: Path, mtime_ns: int, size: int, inode: int) -> str:
    """SHA-256 of a file. The other arguments are there so that a changed file is read again."""
    return sha256(path)


@cache
def _builder_sources() -> bytes:
    return b"".join(file.read_bytes() for file in sorted(HERE.glob("builders*.py")))


def _key(entry: Entry) -> str:
    facts = f"{entry.net} {entry.sha256} {entry.provenance}".encode()
    return hashlib.sha256(_builder_sources() + facts).hexdigest()[:16]


def _serialized(entry: Entry, progress: Progress | None) -> bytes:
    """The bytes of the ONNX file; its weights are checked by the entry's SHA-256."""
    from models import (
        builders,  # onnx is imported only where a file is built
        builders_transformers,
    )

    say = progress or (lambda text, fraction: None)
    words = f"building {entry.name}"
    say(words, 0.0)
    if entry.net == "alexnet":
        trained = entry.name in training_records()
        head = _shipped(entry.name) if trained else {}
        net = builders.alexnet(len(entry.classes) if trained else 1000)
        drawn = {key: shape for key, shape in net.parameters.items() if key not in head}
        # Drawing is about half of the work; checking and writing 244 MB are the rest.
        weights = builders.he_uniform(drawn, builders.SEED, lambda fraction: say(words, 0.5 * fraction))
        weights |= head
    elif entry.net in builders_transformers.NETS:
        of_attention = builders_transformers.NETS[entry.net]()
        net, weights = of_attention, of_attention.drawn()
    else:
        net = builders.SMALL_NETS[entry.net]()
        weights = _shipped(entry.name)
    if builders.tensor_sha256(weights) != entry.sha256:  # also where an entry has none yet
        raise ModelError(
            f"the weights of {entry.name} are not those of the catalogue (their SHA-256 differs): "
            "restore models/weights from the repository"
        )
    say(words, 0.7)
    model = net.model(entry.name, weights, f"{entry.title}. {entry.provenance}")
    del weights
    data: bytes = model.SerializeToString()
    say(words, 1.0)
    return data


def _shipped(name: str) -> dict[str, np.ndarray]:
    """The float16 weights of models/weights, as float32."""
    file = WEIGHTS / f"{name}.npz"
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            return {key: stored[key].astype(np.float32) for key in stored.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ModelError(
            f"the weights {file} cannot be read ({error}): restore them from the repository"
        ) from error
