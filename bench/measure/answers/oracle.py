"""Golden tensors: the answers of `onnx.reference` in float64, corrected (bench.measure.answers.operators),
and kept by hash.

The oracle answers at most `MAX_IMAGES` images of a model; larger batches are judged on these images. Before a
backend is judged by it, it is compared with ONNX Runtime in float32 (bench.measure.answers.cross_check).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
import time
import zipfile
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from bench.measure.answers import accuracy, by_image, roundings, ties
from bench.measure.answers.roundings import one_rounding
from bench.measure.answers.widened import widened, widened_weights
from bench.results.records import ErrorStats
from engine.graph.graph import Graph
from engine.planning import groups as grouping
from engine.planning import submodel
from engine.planning.groups import Group
from engine.planning.submodel import SeparateParts
from kernels import precision as precisions
from kernels.cache import atomic_file, cache_dir
from kernels.errors import OutOfMemoryError, UnsupportedError

DRAWS = 3  # of what moves, where one number may be the sum of a whole tensor
MAX_IMAGES = 8
# Of the answers: goes up with every change of the oracle's operators, so that no old file is read.
VERSION = 5
_DISK_NBYTES_A_MODEL = 64 << 20
_DISK_NBYTES = 512 << 20
_MEMORY_NBYTES = 1 << 30
LONG_FLOPS = 2e8  # of a group's evaluation: some tenths of a second


@dataclass(frozen=True)
class Golden:
    """The oracle's answers for `images` images of a model.

    inputs: what they were computed from, float32 or whole numbers (images, …) by name. tensors: float64, or
    whole numbers, by ONNX name, the inputs among them; the first axis is the batch wherever it is in the
    model. together: whether its images change each other's answers, so that these are for this batch alone.
    The answers of groups alone (see `alone`) are kept with it.
    """

    images: int
    inputs: Mapping[str, np.ndarray]
    tensors: Mapping[str, np.ndarray]
    together: bool = False
    _alone: dict[tuple[str, str], np.ndarray] = field(default_factory=dict, repr=False, compare=False)


_kept: OrderedDict[str, dict[str, np.ndarray]] = OrderedDict()
_keeping = threading.Lock()  # a run's next model is made ready beside the one that is measured


def golden(graph: Graph, inputs: Mapping[str, np.ndarray], names: Iterable[str] | None = None) -> Golden:
    """The oracle's tensors for `inputs` (name → (k, …) float32 or whole numbers, k ≤ MAX_IMAGES; more are cut
    to the first).

    names: tensors wanted (None: all that a group of engine.planning.groups reads or writes, and the graph's
    outputs; weights are left out). Answers are kept in memory, and on disk if they are small, by the hash of
    model and inputs. Raises UnsupportedError naming a node the oracle cannot run, and OutOfMemoryError.
    """
    few = by_image.cut(graph, inputs, slice(MAX_IMAGES))  # a batch that is fixed cannot be cut
    # Float32 in one piece; whole numbers and Booleans as they are.
    cut = {
        name: np.ascontiguousarray(array, np.float32 if array.dtype.kind == "f" else array.dtype)
        for name, array in few.items()
    }
    images = by_image.count(graph, cut)
    if names is None:
        parts = grouping.groups(graph, images)
        names = {name for part in parts for name in (*part.inputs, part.output)}
    wanted = (set(names) - set(graph.initializers)) | {info.name for info in graph.outputs}
    wanted -= set(cut)
    tensors = answered(graph, cut, wanted)
    wide = {name: widened(array) for name, array in cut.items()}
    return Golden(images, cut, {**wide, **tensors})


def answered(graph: Graph, inputs: Mapping[str, np.ndarray], names: Iterable[str]) -> dict[str, np.ndarray]:
    """The tensors `names` of one evaluation in float64, kept in memory, and on disk if they are small, by the
    hash of model and inputs. Raises as `golden` does."""
    wanted, key = set(names), content_key(graph, inputs)
    with _keeping:
        tensors = _load(key, wanted)
    if tensors is None:
        tensors = run(graph, inputs, wanted)
        with _keeping:
            _keep(key, tensors)
    return tensors


def run(
    graph: Graph,
    inputs: Mapping[str, np.ndarray],
    names: Iterable[str],
    moved: Mapping[str, str] | None = None,
    other_way: float = 0.0,
    draw: int = 0,
) -> dict[str, np.ndarray]:
    """The tensors `names` of one evaluation in float64, nothing kept. moved: the types of tensors that move
    by one rounding of these on the way; other_way: so near to half-way QuantizeLinear rounds values the other
    way (bench.measure.answers.ties); draw: which number each is drawn by. Raises as `golden` does."""
    values = {name: widened_weights(array) for name, array in graph.initializers.items()}
    values |= {name: widened(array) for name, array in inputs.items()}
    names = list(names)
    nodes = roundings.stored(_needed(graph, names), inputs)
    if moved:
        nodes = roundings.moving(nodes, moved, draw)
    if other_way:
        nodes = ties.other_way(nodes, other_way, draw)
    opsets, functions = graph.proto.opset_import, graph.proto.functions
    evaluation = Evaluation(graph.name, nodes, opsets, list(values), names, functions)
    return evaluation.of(values)


def _needed(graph: Graph, names: Iterable[str]) -> list[onnx.NodeProto]:
    """The nodes that these tensors hang on, in order."""
    wanted, found = set(names), []
    for node in reversed(graph.nodes):
        if not wanted.isdisjoint(node.outputs):
            found.append(graph.node_protos[node.name])
            wanted.update(node.reads)
    return found[::-1]


def _ordered(functions: Iterable[onnx.FunctionProto]) -> list[onnx.FunctionProto]:
    """Those that others call before these, as the evaluator wants them."""
    waiting = {(function.domain, function.name): function for function in functions}
    found: list[onnx.FunctionProto] = []

    def take(key: tuple[str, str]) -> None:
        function = waiting.pop(key, None)
        if function is not None:
            for node in function.node:
                take((node.domain, node.op_type))
            found.append(function)

    for key in list(waiting):
        take(key)
    return found


class Evaluation:
    """Nodes that are evaluated in float64, once or many times. fed: what is given to them."""

    def __init__(
        self,
        name: str,
        nodes: Sequence[onnx.NodeProto],
        opsets: Iterable[onnx.OperatorSetIdProto],
        fed: Sequence[str],
        wanted: Iterable[str],
        functions: Iterable[onnx.FunctionProto] = (),
    ) -> None:
        self._name = name
        self._wanted = sorted(wanted)
        unknown = onnx.TensorProto.UNDEFINED
        self._proto = onnx.helper.make_model(
            onnx.helper.make_graph(
                nodes,
                "oracle",
                [onnx.helper.make_tensor_value_info(each, unknown, None) for each in fed],
                [onnx.helper.make_tensor_value_info(each, unknown, None) for each in self._wanted],
            ),
            opset_imports=[*opsets, onnx.helper.make_opsetid(roundings.DOMAIN, 1)],
            functions=_ordered(functions),
        )
        self._evaluator: Any = None  # onnx.reference's

    def __call__(
        self, inputs: Mapping[str, np.ndarray], weights: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """The tensors wanted. weights: of those that are the same the next time, too, as arrays. Raises as
        `golden` does."""
        values = {name: widened_weights(array) for name, array in weights.items()}
        return self.of(values | {name: widened(array) for name, array in inputs.items()})

    def of(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The same, of what is float64 already."""
        try:
            if self._evaluator is None:
                # Loaded here: long to load, and what has been answered is kept.
                from bench.measure.answers.operators.evaluator import Evaluator

                self._evaluator = Evaluator(self._proto)
            with np.errstate(all="ignore"):  # overflow and the like show as NaN or infinity: they are judged
                results = self._evaluator.run(self._wanted, dict(values))
        except MemoryError as error:
            raise OutOfMemoryError(
                f"memory did not suffice for the float64 oracle of {self._name}"
            ) from error
        except Exception as error:  # whatever a reference operator raises
            text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise UnsupportedError(f"the float64 oracle cannot run {self._name}: {text}") from error
        return {name: np.asarray(result) for name, result in zip(self._wanted, results, strict=True)}


def feeds(part_alone: Graph, answers: Golden, precision: str = "fp32") -> dict[str, np.ndarray]:
    """The golden inputs of a group taken out of its model (engine.planning.submodel.extract), rounded as a
    layer of `precision` is fed them: that rounding is the format's doing, not the layer's.
    """
    return {
        info.name: rounded(answers.tensors[info.name], info.dtype, precision) for info in part_alone.inputs
    }


def right_of_group(
    graph: Graph, part: Group, answers: Golden, precision: str = "fp32", extracted: Graph | None = None
) -> np.ndarray:
    """What the group alone should answer to `feeds`, in float64; evaluated once for all backends and checks.

    extracted: the group taken out at `answers.images`, where the caller has it. Raises as `golden` does.
    """
    key = (part.output, precisions.narrow(precision))
    if key not in answers._alone:
        sub = extracted or submodel.extract(graph, part.nodes, answers.images)
        answers._alone[key] = run(sub, feeds(sub, answers, precision), [part.output])[part.output]
    return answers._alone[key]


def alone_together(apart: SeparateParts, parts: Sequence[Group], answers: Golden, precision: str) -> None:
    """Have `alone` answer for each of these groups, which were taken out of their model as `apart`, by one
    evaluation. Raises as `golden` does."""
    half = precisions.narrow(precision)
    names = [part.output for part in parts if (part.output, half) not in answers._alone]
    if names:
        found = run(apart.graph, fed_apart(apart, answers, precision), names)
        answers._alone.update(((name, half), found[name]) for name in names)


def fed_apart(apart: SeparateParts, answers: Golden, precision: str = "fp32") -> dict[str, np.ndarray]:
    """As `feeds`, of groups that were taken out of their model beside each other."""
    types = {info.name: info.dtype for info in apart.graph.inputs}
    return {name: rounded(answers.tensors[of], types[name], precision) for name, of in apart.fed.items()}


def moved(
    graph: Graph, part: Group, answers: Golden, precision: str = "fp32", extracted: Graph | None = None
) -> Iterator[np.ndarray]:
    """How far the group's float64 answer moves, element by element (absolute), when each of its inputs moves
    by one rounding of the format it is fed in, up or down at random. If values are rounded at ties it moves
    further with each draw of these. Raises as `golden` does."""
    sub = extracted or submodel.extract(graph, part.nodes, answers.images)
    random = np.random.default_rng(0)
    fed = feeds(sub, answers, precision)
    off = {name: one_rounding(array, precision, random, array.dtype.name) for name, array in fed.items()}
    right = right_of_group(graph, part, answers, precision, sub)
    narrow = roundings.narrow(sub, answers.images)
    distance = _distance(run(sub, off, [part.output], narrow)[part.output], right)
    distance = _stored(distance, right, narrow.get(part.output))
    for far in _at_ties(sub, fed, {part.output: right}):
        yield np.fmax(distance, far.get(part.output, 0.0))


def moved_along(graph: Graph, answers: Golden, names: Iterable[str]) -> Iterator[dict[str, np.ndarray]]:
    """As `moved`, of a whole model's tensors: the model's inputs move by one rounding of their types, and so
    does what each group hands on, and what adds many terms within one, which no answer can do without. A
    tensor that is no number there, or that the oracle did not give, is left out."""
    random = np.random.default_rng(0)
    narrow = roundings.narrow(graph, answers.images)
    off = {
        name: one_rounding(array, "fp32", random, narrow.get(name, "float32"))
        for name, array in answers.inputs.items()
    }
    wanted = _wanted(answers, names)
    handed_on = {part.output: "float32" for part in grouping.groups(graph, answers.images)}
    sums = dict.fromkeys(
        (node.outputs[0] for node in graph.nodes if node.op_type in roundings.SUMS), "float32"
    )
    distances: dict[str, np.ndarray] = {}
    # The sum of a whole tensor is one number: whether it moves far enough is the luck of a draw.
    for draw in range(DRAWS if sums else 1):
        found = run(graph, off, wanted, {**handed_on, **sums, **narrow}, draw=draw)
        for name in wanted:
            right = answers.tensors[name]
            far = _stored(_distance(found[name], right), right, narrow.get(name))
            distances[name] = np.maximum(far, distances.get(name, far))
    share = ties.TIMES / accuracy.PROPAGATED_FACTOR
    for at_ties in _at_ties(graph, answers.inputs, {name: answers.tensors[name] for name in wanted}):
        far_off = {n: np.fmax(d, share * at_ties[n]) if n in at_ties else d for n, d in distances.items()}
        yield _finite(far_off)


def second_nearest(graph: Graph, answers: Golden, names: Iterable[str]) -> dict[str, np.ndarray]:
    """How far a model's tensors move where every value that is quantised becomes the second nearest step."""
    wanted = _wanted(answers, names)
    other = run(graph, answers.inputs, wanted, other_way=ties.SECOND)
    share = 1.0 / accuracy.PROPAGATED_FACTOR
    return _finite({name: share * _distance(other[name], answers.tensors[name]) for name in wanted})


def _wanted(answers: Golden, names: Iterable[str]) -> list[str]:
    return [name for name in dict.fromkeys(names) if name in answers.tensors and name not in answers.inputs]


def _finite(distances: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: distance for name, distance in distances.items() if np.isfinite(distance).all()}


def _at_ties(
    graph: Graph, inputs: Mapping[str, np.ndarray], right: Mapping[str, np.ndarray]
) -> Iterator[dict[str, np.ndarray]]:
    """How far these tensors move where values are rounded otherwise at ties: all, then those of one draw more
    each time. Once, and empty, where nothing is quantised."""
    far: dict[str, np.ndarray] = {}
    if not right or not ties.quantizes(graph):
        yield far
        return
    until = time.monotonic() + ties.MOST_S
    for draw in range(1 + ties.DRAWS):
        if draw > 1 and time.monotonic() > until:
            return
        other = run(graph, inputs, list(right), other_way=ties.NEAR, draw=draw)
        for name, of in right.items():
            distance = _distance(other[name], of)
            far[name] = np.fmax(far.get(name, distance), distance)
        yield far


def _distance(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Element by element; 0 where the right answer is no number."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(other), np.abs(one.astype(np.float64) - other.astype(np.float64)), 0.0)


def _stored(distance: np.ndarray, right: np.ndarray, dtype: str | None) -> np.ndarray:
    """The distance, or how far the answer is from the number that a narrow type holds of it, the larger."""
    if dtype is None:
        return distance
    least = roundings.unit(dtype) * np.abs(right.astype(np.float64))
    return np.asarray(np.maximum(distance, np.where(np.isfinite(least), least, 0.0)))


def judged_alone(
    actual: np.ndarray,
    graph: Graph,
    part: Group,
    answers: Golden,
    precision: str,
    extracted: Graph | None = None,
    lossy: bool = False,
) -> ErrorStats:
    """What a backend answers for a group alone, fed `feeds`, against float64. lossy: see
    accuracy.error_stats.

    Of a group that takes long in float64 the golden tensor serves: it is what float64 says of the inputs
    before they were rounded to float32, 6e-8 away. Not where the answer is beyond the bound then, or half
    precision rounded the inputs by more. Whatever is beyond the bound still is judged once more, by how far
    the right answer itself moves. Raises as `golden` does.
    """
    if not precisions.narrow(precision) and part.flops > LONG_FLOPS and part.output in answers.tensors:
        stats = accuracy.judged(actual, answers.tensors[part.output], precision, lossy=lossy)
        if stats.ok:
            return stats
    right = right_of_group(graph, part, answers, precision, extracted)
    return accuracy.judged_further(
        lambda off: accuracy.judged(actual, right, precision, moved=off, lossy=lossy),
        lambda: moved(graph, part, answers, precision, extracted),
    )


def rounded(array: np.ndarray, dtype: str, precision: str = "fp32") -> np.ndarray:
    """A golden tensor as a layer of `precision` is fed it: in its `dtype`, through 16 bits in fp16, bf16."""
    if (held := precisions.narrow(precision)) and np.dtype(dtype).kind == "f":
        return array.astype(held).astype(dtype)
    with np.errstate(over="ignore"):  # beyond the largest number of its type it is infinity
        return array.astype(dtype)


# ------------------------------------------------------------------------------------------------- keeping


def content_key(graph: Graph, inputs: Mapping[str, np.ndarray]) -> str:
    """What answers hang on: the model, these inputs, and the oracle's own version."""
    digest = hashlib.sha256(f"{VERSION} {onnx.__version__} {graph.sha256}".encode())
    for name, array in sorted(inputs.items()):
        digest.update(f"{name} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()[:32]


def _folder() -> Path:
    return cache_dir() / "oracle"


def _load(key: str, wanted: set[str]) -> dict[str, np.ndarray] | None:
    found = _kept.get(key)
    if found is None:
        # A broken or foreign file is as good as none.
        with contextlib.suppress(OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile):
            path = _folder() / f"{key}.npz"
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
                found = {str(name): file[f"t{i}"] for i, name in enumerate(file["names"])}
            os.utime(path)
            _remember(key, found)
    if found is None or not wanted <= set(found):
        return None
    if key in _kept:
        _kept.move_to_end(key)
    return {name: found[name] for name in wanted}


def _keep(key: str, tensors: dict[str, np.ndarray]) -> None:
    _remember(key, tensors)
    if sum(array.nbytes for array in tensors.values()) > _DISK_NBYTES_A_MODEL:
        return
    arrays: dict[str, Any] = {f"t{i}": array for i, array in enumerate(tensors.values())}
    arrays["names"] = np.array(list(tensors))
    with contextlib.suppress(OSError):  # a full disk or a read-only cache costs time, not the answer
        with atomic_file(_folder() / f"{key}.npz") as path, path.open("wb") as stream:
            np.savez(stream, **arrays)
        _prune(_folder())


def _remember(key: str, tensors: dict[str, np.ndarray]) -> None:
    _kept[key] = {**_kept.get(key, {}), **tensors}
    _kept.move_to_end(key)
    while len(_kept) > 1 and sum(a.nbytes for kept in _kept.values() for a in kept.values()) > _MEMORY_NBYTES:
        _kept.popitem(last=False)


def _prune(folder: Path) -> None:
    """Remove the files longest unused until what stays fits `_DISK_NBYTES`."""
    files = sorted(folder.glob("*.npz"), key=lambda path: path.stat().st_mtime, reverse=True)
    total = 0
    for path in files:
        total += path.stat().st_size
        if total > _DISK_NBYTES:
            path.unlink(missing_ok=True)
