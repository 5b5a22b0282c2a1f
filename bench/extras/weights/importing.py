"""`models import`: a file of weights → an ONNX file of the user's catalogue, and what it goes with."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType

import onnx
from onnx import helper

from bench.extras.weights import formats
from bench.extras.weights.parts import Found
from bench.questions import model_questions
from bench.questions.asked import Takes, WhichTakes
from bench.results.records import Job
from kernels.errors import InputError, ModelError, one_line, system_words
from models import imported, names
from models import labels as order

Progress = Callable[[str, float | None], None]
MOST_NBYTES = (1 << 31) - (1 << 20)  # an ONNX file holds less than 2 GiB
USUAL = "imagenet"
IMAGES = 16  # that a comparison takes unless told otherwise, as of the catalogue's AlexNet

_KERAS = (
    "which only Keras reads: export it there with model.export('model.onnx', format='onnx'), or with tf2onnx"
)
_TORCH = "export it with torch.onnx.export, or save its state_dict() as .pth"
_OTHERS = {  # what people have besides, and how it becomes ONNX
    ".onnx": "is ONNX already: name it where a model is asked for, as in compare MODEL.onnx",
    ".ort": "is ONNX Runtime's own format: take the .onnx file that it was made from",
    ".pt": f"is a program of PyTorch or a pickled model: {_TORCH}",
    ".h5": f"is a file of Keras, {_KERAS}",
    ".hdf5": f"is a file of Keras, {_KERAS}",
    ".keras": f"is a file of Keras, {_KERAS}",
    ".pb": "is a graph of TensorFlow: convert it with tf2onnx",
    ".tflite": "is a graph of TensorFlow Lite: convert it with tf2onnx --tflite",
}


@cache
def readers() -> tuple[ModuleType, ...]:
    """The modules of formats/, in order of their names."""
    found = sorted(module.name for module in pkgutil.iter_modules(formats.__path__))
    return tuple(importlib.import_module(f"{formats.__name__}.{name}") for name in found)


def understood() -> str:
    return ", ".join(reader.UNDERSTOOD for reader in readers())


def import_file(
    path: Path, name: str | None = None, labels: str | Path | None = None, progress: Progress | None = None
) -> str:
    """Put the net whose weights a file (or a folder with one) holds into the user's catalogue; the name under
    which it stands there. labels: a file with a class a line, or an order known by name. Raises InputError
    and ModelError."""
    say = progress or (lambda text, fraction: None)
    try:
        path = _one_file(path)
        name = imported.checked_name(name, names.models()) if name is not None else _name_of(path)
        reader = _known_reader(path)
        say(f"reading {path.name}", 0.0)
        found = _read(reader, path)
        classes = _labels(labels, found.net.shape[-1], path)
        say(f"checking {name}", 0.5)
        data = _model(name, found, classes, path)
        say(f"writing {name}", 0.8)
        imported.add(
            name,
            data,
            {
                "title": found.title,
                "net": imported.NET,
                "input": list(found.net.input_shape),
                "preprocess": found.preprocess,
                "dataset": "random",
                "images": IMAGES,
                "classes": list(classes),
                "origin": f"imported from {path.name}",
            },
        )
    except OSError as error:
        raise InputError(f"{path} could not be imported ({system_words(error)})") from error
    except MemoryError:
        raise ModelError(f"{path}: there is not enough memory for its weights") from None
    say(f"writing {name}", 1.0)
    return name


def _one_file(path: Path) -> Path:
    """The file itself, or the one of a folder that can be read. Raises InputError."""
    if path.is_dir():
        known = [file for file in sorted(path.iterdir()) if file.is_file() and _reader(file)]
        # A description and its weights are one model.
        known = [file for file in known if file.suffix != ".prototxt"] or known[:1]
        if len(known) != 1:
            count = f"{len(known)} files that are" if known else "no file that is"
            saved = f"; saved_model.pb {_OTHERS['.pb']}" if (path / "saved_model.pb").exists() else ""
            raise InputError(f"the folder {path} holds {count} understood{saved}; name one of {understood()}")
        return known[0]
    if not path.is_file():
        raise InputError(f"file {path} does not exist; understood are {understood()}")
    return path


def _reader(path: Path) -> ModuleType | None:
    with path.open("rb") as stream:
        head = stream.read(64)
    return next((reader for reader in readers() if reader.matches(path, head)), None)


def _known_reader(path: Path) -> ModuleType:
    if (size := path.stat().st_size) > MOST_NBYTES:
        raise ModelError(f"{path} has {size:,} bytes; an ONNX file holds at most {MOST_NBYTES:,}")
    reader = _reader(path)
    if reader is None:
        if path.suffix.lower() == ".onnx":  # what is wrong with a broken one says more than its name
            model_questions.ask(
                WhichTakes(job=Job(models=(str(path),), backends=(), dataset="random")), Takes
            )
        known = _OTHERS.get(path.suffix.lower(), "is no file of weights that is known")
        raise InputError(f"{path} {known}; understood are {understood()}")
    return reader


def _read(reader: ModuleType, path: Path) -> Found:
    try:
        found: Found = reader.read(path)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None
    return found


def _labels(given: str | Path | None, classes: int, weights: Path) -> tuple[str, ...]:
    """A class a line, as many as the net answers; where none are given, ImageNet's for a net that answers as
    many: what these files hold was trained on it. Raises InputError."""
    if given is None:
        usual = order.read(USUAL)
        return usual if len(usual) == classes else ()
    lines = order.read(given)
    if len(lines) != classes:
        raise InputError(
            f"labels {given} have {len(lines)} lines, and the net of {weights} answers {classes}; give a "
            "class a line, in the model's order"
        )
    return lines


def _model(name: str, found: Found, classes: tuple[str, ...], path: Path) -> bytes:
    model = found.net.model(name, found.weights, f"{found.title}, imported from {path.name}")
    found.weights.clear()
    noted = {"kernelscope.preprocess": found.preprocess, "kernelscope.scores": found.scores}
    if classes:
        noted["kernelscope.labels"] = "\n".join(classes)
    helper.set_model_props(model, noted)
    data: bytes = model.SerializeToString()
    del model
    try:
        onnx.checker.check_model(data, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise ModelError(f"{path}: the net that it describes is no valid model ({one_line(error)})") from None
    return data


def _name_of(path: Path) -> str:
    """A name made of the file's, with a number where there is one like it already."""
    stem = path.parent.resolve().name if path.stem == "deploy" else path.stem
    base = re.sub(r"[^a-z0-9._-]+", "-", stem.lower()).strip("._-")[: imported.MOST_NAME - 4] or "imported"
    taken = names.models()
    return next(n for n in (base, *(f"{base}-{i}" for i in range(2, 1000))) if n not in taken)
