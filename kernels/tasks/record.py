"""A task as the record of an operator: what the layers above know an operator by, they know a task by."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, field, make_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from kernels import expressions
from kernels.errors import InputError
from kernels.ops import ITEMSIZE, Params, Shape
from kernels.precision import PRECISIONS
from kernels.tasks import spec as specs
from kernels.tasks.spec import Task

# Relative L2 error that an answer may have where a task says nothing: as that of any layer in this type.
_BOUNDS = {"float16": PRECISIONS["fp16"].bound, "float64": 1e-12}
# What a buffer of several types is an array of, by the bytes of its narrowest.
_AS_WIDE = {1: "uint8", 2: "uint16", 4: "uint32", 8: "int64"}


# What an input that is drawn so means would be lost if single values changed: it stays as it is from pass to
# pass, as the weights of a model do.
HELD = ("offsets", "permutation")


class TaskParams(Params):
    """The params of a task: its symbols are the fields. `task`: what its file says."""

    task: ClassVar[Task]

    @property
    def sizes(self) -> dict[str, int]:
        """The symbols by name."""
        return asdict(self)

    @property
    def out_dtype(self) -> str:
        """That of its outputs; of several types whole numbers as wide as the narrowest: each element takes
        one of them or several."""
        types = [output.type for output in self.task.spec.output]
        return types[0] if len({*types}) == 1 else _AS_WIDE[min(ITEMSIZE[each] for each in types)]

    @property
    def mixed(self) -> bool:
        """Whether its outputs are of several types."""
        return len({output.type for output in self.task.spec.output}) > 1

    @property
    def input_dtypes(self) -> tuple[str, ...]:
        return tuple(given.type for given in self.task.spec.input)

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        return tuple(map(self._shape, self.task.spec.input))

    @property
    def output_shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of each of its outputs."""
        return tuple(map(self._shape, self.task.spec.output))

    @property
    def output_shape(self) -> tuple[int, ...]:
        """That of the one, or of several the buffer in which they lie one behind the other."""
        shapes = self.output_shapes
        return shapes[0] if len(shapes) == 1 else (sum(self._output_nbytes) // ITEMSIZE[self.out_dtype],)

    @property
    def _output_nbytes(self) -> tuple[int, ...]:
        outputs = zip(self.task.spec.output, self.output_shapes, strict=True)
        return tuple(ITEMSIZE[output.type] * math.prod(shape) for output, shape in outputs)

    @property
    def output_offsets(self) -> tuple[int, ...]:
        """The byte of that buffer at which each output begins: those of wide elements lie first, so that each
        element lies on a multiple of its size and no byte is nobody's."""
        outputs, nbytes, at = self.task.spec.output, self._output_nbytes, 0
        offsets: dict[int, int] = {}
        for place in sorted(range(len(outputs)), key=lambda place: -ITEMSIZE[outputs[place].type]):
            offsets[place] = at
            at += nbytes[place]
        return tuple(offsets[place] for place in range(len(outputs)))

    def split(self, output: np.ndarray) -> tuple[np.ndarray, ...]:
        """The outputs, as views of their buffer."""
        flat = output.reshape(-1).view(np.uint8)
        parts = zip(
            self.output_offsets, self._output_nbytes, self.task.spec.output, self.output_shapes, strict=True
        )
        return tuple(flat[at : at + n].view(of.type).reshape(shape) for at, n, of, shape in parts)

    def numbers(self, output: np.ndarray) -> np.ndarray:
        """All elements of a buffer of several types, output by output, as float64, or as int64 where all are
        whole numbers; any other as it is."""
        if not self.mixed or output.dtype.name != self.out_dtype:
            return output
        wide = np.int64 if self.exact else np.float64
        return np.concatenate([own.reshape(-1).astype(wide) for own in self.split(output)])

    def named(self, place: int) -> tuple[str, tuple[int, ...]]:
        """The output in which element `place` of all (one output behind the other) lies, and where in it."""
        for output, shape in zip(self.task.spec.output, self.output_shapes, strict=True):
            if place < math.prod(shape):
                return output.name, tuple(int(i) for i in np.unravel_index(place, shape))
            place -= math.prod(shape)
        raise IndexError(place)

    def _shape(self, tensor: specs.Tensor) -> tuple[int, ...]:
        sizes = self.sizes
        return tuple(expressions.value(side, sizes) for side in tensor.shape)

    @property
    def flops(self) -> int:
        return expressions.value(self.task.spec.operations, self.sizes)

    @property
    def nbytes(self) -> int:
        told = self.task.spec.bytes
        return expressions.value(told, self.sizes) if told else super().nbytes

    def least_read(self) -> int:
        """In elements of `dtype`, whatever its inputs are of."""
        written = self.outputs * ITEMSIZE[self.out_dtype]
        read = sum(
            math.prod(shape) * ITEMSIZE[dtype]
            for shape, dtype in zip(self.input_shapes, self.input_dtypes, strict=True)
        )
        return max(0, min(read, self.nbytes - written)) // ITEMSIZE[self.dtype]

    @property
    def unread(self) -> int:
        return 0  # `nbytes` is what every kernel moves

    def least_nbytes(self, precision: str, given: bool = False) -> int:
        return self.nbytes  # its tensors are given in the types that they have

    def nbytes_at(self, weight: int, other: int) -> int:
        return self.nbytes

    @property
    def exact(self) -> bool:
        """Whether its answer is whole numbers, of which none may be off."""
        return all(output.exact for output in self.task.spec.output)

    def bound(self, precision: str) -> float:
        """The relative L2 error that an answer may have: the largest that any of its outputs may."""
        return max(self.bounds(precision))

    def bounds(self, precision: str) -> tuple[float, ...]:
        """That which each output may have."""
        return tuple(self._bound(output, precision) for output in self.task.spec.output)

    def _bound(self, output: specs.Output, precision: str) -> float:
        if output.exact:
            return 0.0
        own = self.task.spec.bound or _BOUNDS.get(output.type, PRECISIONS["fp32"].bound)
        return own if precision == "fp32" else max(own, PRECISIONS[precision].bound)

    def small_shapes(self) -> Iterator[Shape]:
        for index, sizes in enumerate(self.task.spec.check):
            yield Shape("plain" if index == 0 else "size", type(self)(**sizes))

    @property
    def words(self) -> str:
        return f"{self.op} " + ", ".join(f"{name} {size:,}" for name, size in self.sizes.items())

    def __reduce__(self) -> tuple[Any, ...]:
        task = self.task
        return _restored, (task.name, str(task.folder), task.text, task.answers, task.models, self.sizes)


def of(task: Task) -> type[TaskParams]:
    """The record of a task. The same text gives the same record."""
    return _made(task.name, str(task.folder), task.text, task.answers, task.models)


@lru_cache(maxsize=64)
def _made(name: str, folder: str, text: str, answers: str, models: specs.Models) -> type[TaskParams]:
    task = specs.parsed(name, Path(folder), text, answers, models)
    spec = task.spec
    order, last = (", ".join(tensor.words for tensor in tensors) for tensors in (spec.input, spec.output))
    told = f"{spec.title}.\n\nTensors in order: {order}; {last}."
    names = [given.type for given in spec.input]
    dtype = next((kind for kind in names if kind.startswith("float")), names[0])
    record = make_dataclass(
        "".join(part.capitalize() for part in name.split("_")),
        [(symbol, "int", field()) for symbol in spec.symbols],
        bases=(TaskParams,),
        frozen=True,
        namespace={
            "op": name,
            "struct": f"int {', '.join(spec.symbols)}",
            "most_inputs": len(spec.input),
            "usual_dtypes": (dtype,),
            "weight_inputs": tuple(
                place for place, given in enumerate(spec.input) if given.constant or given.draw.kind in HELD
            ),
            "dtype": dtype,
            "task": task,
            "axes": (),
            "__doc__": told,
            "__module__": __name__,
        },
    )
    assert issubclass(record, TaskParams)
    return record


known: dict[str, type[TaskParams]] = {}  # of users' folders, by name
_pinned: set[str] = set()  # of these, whose place no other folder takes


def know(task: Task, pinned: bool = False) -> type[TaskParams]:
    """The record of a task, which is found by its name from here on. pinned: whatever other folders hold.
    Raises InputError where the name is another's."""
    made = of(task)
    if task.folder.parent == specs.ROOT:
        return made
    if task.name in specs.shipped():
        raise InputError(f"{task.folder} is called as a task of the ladder's own; give it another name")
    before = known.get(task.name, made).task.folder
    # Nobody's folder takes the place of another's: what is right would be theirs to say.
    if before != task.folder and (task.name in _pinned or (before / specs.FILE).is_file()):
        told = f"{before} and {task.folder}"
        raise InputError(f"there are two tasks called {task.name}, {told}; rename one")
    if pinned:
        _pinned.add(task.name)
    known[task.name] = made
    return made


def forget(but: Collection[Path]) -> None:
    """Know no tasks of users' folders but these: for a process that is asked of one set of folders after the
    other. What is pinned stays."""
    for name, made in tuple(known.items()):
        if name not in _pinned and made.task.folder not in but:
            del known[name]


def _restored(
    name: str, folder: str, text: str, answers: str, models: specs.Models, sizes: Mapping[str, int]
) -> TaskParams:
    """Params in another process, which knows the task from here on."""
    return know(specs.parsed(name, Path(folder), text, answers, models))(**sizes)
