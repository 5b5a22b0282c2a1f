"""The right answers of a model, and the check of a backend's outputs against them.

The right answer is the model computed in float64. Golden images are a few images whose right answers are
computed once. If the answer for an image depends on that image alone (bench.measure.answers.by_image), golden
images are put at some places of a batch, and the outputs are checked there. Otherwise the right answer is
computed for exactly the inputs of a pass, at its batch size: for the passes that are checked before and after
timing, and for at least one of the timed passes. If float64 would take too long for that, ONNX Runtime on the
CPU gives the right answer, and the record of the case says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

import msgspec
import numpy as np

from bench.measure.answers import accuracy, by_image, oracle, ties
from bench.measure.answers.accuracy import PROPAGATED_FACTOR, Allowed, Placement
from bench.measure.answers.by_image import Images
from bench.measure.answers.oracle import Golden
from bench.measure.answers.widened import widened
from bench.results.records import ErrorStats
from engine.graph.graph import Graph
from engine.machine.host import free_nbytes
from engine.planning import groups
from kernels.errors import KernelscopeError, OutOfMemoryError, UnsupportedError
from kernels.precision import of

# float64 is not asked for a whole batch that needs more operations than MOST_FLOPS. Each value that is
# written counts as A_VALUE operations: onnx.reference does about 5e9 operations a second, and writes about
# 1e8 values.
MOST_FLOPS, A_VALUE = 1e11, 50
ROOM = 3  # so many times the bytes of its tensors must be free

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Batch:
    """The right answers for a whole batch. answers: its inputs and right outputs. judge: "" if float64
    computed them, or the model never has answers of float64; else a sentence: why ONNX Runtime on the CPU
    did."""

    answers: Golden
    judge: str = ""


class Moves:
    """How far rounding can move the right outputs: distances that an answer may be off by.

    Iterating computes them step by step (dicts of arrays by output name), each at least as large as the one
    before. The last one is kept, so that the next iteration begins with it. graph, right: the model and its
    right answers. names: the outputs. rows: rearranges the arrays as the compared outputs are (such as one
    image a row).
    """

    def __init__(
        self, graph: Graph, right: Golden, names: Iterable[str], rows: Callable[[Arrays], Arrays]
    ) -> None:
        self._of, self._rows = (graph, right, list(names)), rows
        self._left = iter(oracle.moved_along(*self._of))
        self._last: Arrays | None = None

    def __iter__(self) -> Iterator[Arrays]:
        if self._last is not None:
            yield self._last
        for found in self._left:
            self._last = self._rows(found)
            yield self._last

    @cached_property
    def second(self) -> Arrays:
        """The distances if every quantised value is rounded to the second nearest step."""
        return self._rows(oracle.second_nearest(*self._of))


class RightAnswers:
    """The right answers of one model, for any batch.

    golden: the golden images and their right answers. by_oracle: whether float64 computed these.
    other(inputs): the outputs of ONNX Runtime on the CPU; used instead of float64. layout: where each image's
    part is in each output; None if images influence each other, or not by_oracle. moves: whether an answer
    beyond its bound was accepted because rounding can move the right one as far. Arrays are given by name.
    Raises OutOfMemoryError.
    """

    def __init__(
        self, graph: Graph, golden: Golden, by_oracle: bool, other: Callable[[Arrays], dict[str, np.ndarray]]
    ) -> None:
        self._graph, self._golden, self._by_oracle, self._other = graph, golden, by_oracle, other
        self._names = [info.name for info in graph.outputs]
        self.layout: Mapping[str, Images] | None = None
        if by_oracle:
            self.layout = by_image.layout(graph, golden.inputs, golden.tensors, golden.images, self._answered)
        self._moves: Moves | None = None
        self._batches: list[tuple[Placement, Batch]] = []
        self._judges: dict[int, str] = {}
        self.moves = False

    def judge_of(self, batch: int) -> str:
        """Why ONNX Runtime instead of float64 judges this batch size, as a sentence; "" if it does not, or if
        `check` has had no batch of this size yet."""
        return self._judges.get(batch, "")

    # -------------------------------------------------------------------------------------------- judging

    def check(
        self, outputs: Arrays, placement: Placement, precision: str, allowed: Allowed = Allowed.NOTHING
    ) -> ErrorStats:
        """Compare the outputs of a whole batch with the right ones. outputs: arrays by name. placement: the
        inputs of the pass, and the rows where golden images are. precision: whose bound applies ("fp32", …).
        Returns the errors of the worst output; `ok` says whether they are within the bound. A wrong shape is
        an error, too. Raises UnsupportedError if all right values are NaN or infinity."""
        if self.layout is None:
            return self._whole(outputs, self._batch(placement), precision, allowed)
        golden = self._golden
        expected = {name: golden.tensors[name] for name in self._names}
        self._comparable(expected)
        count = by_image.count(self._graph, placement.inputs)
        for name, array in expected.items():
            shape = self.layout[name].shape(array.shape, count)
            if outputs[name].shape != shape:
                reason = f"output {name} has shape {outputs[name].shape} and should have {shape}"
                return accuracy.failure(of(precision).bound, reason)
        got, right = (self._rows({name: of[name] for name in self._names}) for of in (outputs, expected))
        if (row := accuracy.unfounded(got, placement)) is not None:
            # The right answer of an image that is not golden may be NaN: float64 decides.
            alone = self.check_row(placement.inputs, outputs, precision, allowed, row)
            if alone is not None and not alone.ok:
                return msgspec.structs.replace(alone, reason=f"image {row}: {alone.reason}")
        if self._moves is None:
            self._moves = Moves(self._graph, golden, self._names, self._rows)

        def judged(distances: Arrays | None) -> ErrorStats:
            return accuracy.check(got, right, placement, precision, distances, lossy=allowed > 0)

        return self._judged_with_moves(judged, self._moves, allowed)

    def check_row(
        self,
        inputs: Arrays,
        outputs: Arrays,
        precision: str,
        allowed: Allowed = Allowed.NOTHING,
        row: int | None = None,
    ) -> ErrorStats | None:
        """Compare the outputs for one image of a batch with float64. If images influence each other, compare
        the whole batch. inputs, outputs: arrays of the whole batch by name. row: number of the image (None:
        drawn at random). Returns None if something other than float64 judges this batch size. Right answers
        are not kept for later calls. Raises UnsupportedError if all right values of a whole batch are NaN or
        infinity."""
        count = by_image.count(self._graph, inputs)
        if not self._by_oracle or self.judge_of(count):
            return None
        if self.layout is None:
            batch = self._right_batch(inputs, count, keep=False)
            return None if batch.judge else self._whole(outputs, batch, precision, allowed)
        row = by_image.drawn(self._graph, inputs) if row is None else row
        given = by_image.cut(self._graph, inputs, slice(row, row + 1))
        right = oracle.run(self._graph, given, self._names)
        got = {name: array[row] for name, array in self._rows(outputs).items()}

        def alone(arrays: Arrays) -> dict[str, np.ndarray]:
            return {name: array[0] for name, array in self._rows(arrays).items()}

        moves = Moves(self._graph, _golden(given, right, 1), self._names, alone)
        return self._worst(got, alone(right), precision, allowed, moves)

    def _rows(self, arrays: Arrays) -> dict[str, np.ndarray]:
        """Rearrange the outputs to (images, …), one image a row. Needs a `layout`."""
        assert self.layout is not None
        return {name: self.layout[name].rows(array) for name, array in arrays.items()}

    def steps(self) -> float:
        """How far the right answer moves if every quantised value is rounded to the second nearest step:
        relative L2 distance, the largest of all golden images and outputs. 0.0 if the model quantises
        nothing, or its right answers are not from float64."""
        if not self._by_oracle or not ties.quantizes(self._graph):
            return 0.0
        most = 0.0
        rows = (lambda arrays: arrays) if self.layout is None else self._rows
        far = rows(oracle.second_nearest(self._graph, self._golden, self._names))
        right = rows({name: self._golden.tensors[name] for name in far})
        for name in far:
            if not right[name].size:
                continue
            one, other = (of[name].reshape(len(of[name]) if of[name].ndim else 1, -1) for of in (far, right))
            lengths = np.maximum(np.linalg.norm(other, axis=1), accuracy.SMALLEST)
            most = max(most, float((PROPAGATED_FACTOR * np.linalg.norm(one, axis=1) / lengths).max()))
        return most

    # ----------------------------------------------------------------------------------------- whole batches

    def _batch(self, placement: Placement) -> Batch:
        """The right answers for these inputs. The last two batches are kept, because all contenders get the
        same ones."""
        for placed, batch in self._batches:
            if placed is placement:
                return batch
        count = by_image.count(self._graph, placement.inputs)
        made = self._right_batch(placement.inputs, count)
        if made.judge:
            self._judges[count] = made.judge
        self._batches = [*self._batches[-1:], (placement, made)]
        return made

    def _right_batch(self, inputs: Arrays, count: int, keep: bool = True) -> Batch:
        """Compute the right answers for `count` images. keep: whether the oracle keeps them for later."""
        if not self._by_oracle:
            return Batch(_golden(inputs, self._other(inputs), count))
        why = self._too_large(count)
        if not why:
            try:
                of = oracle.answered if keep else oracle.run
                return Batch(_golden(inputs, of(self._graph, inputs, self._names), count))
            except (UnsupportedError, OutOfMemoryError) as error:
                why = str(error)
        said = f"batch {count} was checked against ONNX Runtime on the CPU: {why}"
        return Batch(_golden(inputs, self._other(inputs), count), said)

    def _too_large(self, count: int) -> str:
        """Why float64 would take too long, or too much memory, for so many images at once; "" if not."""
        if self._graph.fixed_batch is not None or count <= self._golden.images:
            return ""
        try:
            parts = groups.groups(self._graph, count)
        except KernelscopeError:
            return ""
        values = sum(int(np.prod(part.shape, dtype=np.int64)) for part in parts)
        flops = sum(part.flops for part in parts) + A_VALUE * values
        together = "its images change each other's answers, for which float64 would take"
        if flops > MOST_FLOPS:
            return f"{together} {flops:.0e} operations"
        if ROOM * 8 * values > free_nbytes():
            return f"{together} {8 * values / 2**30:.1f} GiB"
        return ""

    def _answered(self, inputs: Arrays) -> dict[str, np.ndarray]:
        return oracle.answered(self._graph, inputs, self._names)

    # --------------------------------------------------------------------------------------------- the inside

    def _whole(self, outputs: Arrays, batch: Batch, precision: str, allowed: Allowed) -> ErrorStats:
        """Compare all outputs of a batch with the right ones. Raises UnsupportedError as `check`."""
        answers = batch.answers
        right = {name: answers.tensors[name] for name in self._names}
        self._comparable(right)

        known = self._by_oracle and not batch.judge
        moves = Moves(self._graph, answers, self._names if known else (), dict)
        return self._worst(outputs, right, precision, allowed, moves)

    def _worst(
        self,
        got: Arrays,
        right: Arrays,
        precision: str,
        allowed: Allowed,
        moves: Moves,
    ) -> ErrorStats:
        """The errors of the worst output; of several outputs, with its name."""

        def judged(name: str, distances: Arrays | None) -> ErrorStats:
            distance = None if distances is None else distances.get(name)
            of, lossy = (got[name], right[name]), allowed > 0
            return accuracy.judged(*of, precision, PROPAGATED_FACTOR, distance, lossy=lossy)

        found = [
            (name, self._judged_with_moves(partial(judged, name), moves, allowed)) for name in self._names
        ]
        return accuracy.worst([accuracy.named(stats, name, len(found)) for name, stats in found])

    def _judged_with_moves(
        self, judged: Callable[[Arrays | None], ErrorStats], moves: Moves, allowed: Allowed
    ) -> ErrorStats:
        """Judge an answer. If it is beyond its bound, judge it again, and allow the distances in `moves`:
        rounding in the layers can move even the right answer that far. judged(distances): the errors; None:
        without."""
        asked = False

        def distances() -> Iterator[Arrays]:
            nonlocal asked
            asked = True
            yield from moves

        stats = accuracy.judged_further(judged, distances)
        self.moves = self.moves or (asked and stats.ok)
        if stats.ok or not asked or allowed < Allowed.OPTIMISED:
            return stats
        return judged(moves.second)

    def _comparable(self, right: Arrays) -> None:
        """Raises UnsupportedError if all right values are NaN or infinity."""
        values = sum(array.size for array in right.values())
        if values and not any(np.isfinite(array).any() for array in right.values()):
            raise UnsupportedError(
                f"no answer of model {self._graph.name} can be compared: the right one is NaN or infinity in "
                f"all of its {values:,} elements for these inputs; give others with --input or --dataset"
            )


def _golden(inputs: Arrays, outputs: Arrays, count: int) -> Golden:
    wide = {name: widened(array) for name, array in inputs.items()}
    return Golden(count, dict(inputs), {**wide, **outputs})
