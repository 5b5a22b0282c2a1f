"""A task as the record of an operator: what the layers above know an operator by, they know a task by."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
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
        return self.task.spec.output[0].type

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
        return shapes[0] if len(shapes) == 1 else (sum(map(math.prod, shapes)),)

    @property
    def output_places(self) -> tuple[int, ...]:
        """The element of that buffer at which each output begins."""
        return tuple(itertools.accumulate(map(math.prod, self.output_shapes), initial=0))[:-1]

    def split(self, output: np.ndarray) -> tuple[np.ndarray, ...]:
        """The outputs, as views of their buffer."""
        flat = output.reshape(-1)
        places = zip(self.output_places, self.output_shapes, strict=True)
        return tuple(flat[at : at + math.prod(shape)].reshape(shape) for at, shape in places)

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
        return not self.out_dtype.startswith("float")

    def bound(self, precision: str) -> float:
        """The relative L2 error that an answer may have."""
        if self.exact:
            return 0.0
        own = self.task.spec.bound or _BOUNDS.get(self.out_dtype, PRECISIONS["fp32"].bound)
        return own if precision == "fp32" else max(own, PRECISIONS[precision].bound)

    def small_shapes(self) -> Iterator[Shape]:
        for index, sizes in enumerate(self.task.spec.check):
            yield Shape("plain" if index == 0 else "size", type(self)(**sizes))

    @property
    def words(self) -> str:
        return f"{self.op} " + ", ".join(f"{name} {size:,}" for name, size in self.sizes.items())

    def __reduce__(self) -> tuple[Any, ...]:
        task = self.task
        return _restored, (task.name, str(task.folder), task.text, task.answers, self.sizes)


def of(task: Task) -> type[TaskParams]:
    """The record of a task. The same text gives the same record."""
    return _made(task.name, str(task.folder), task.text, task.answers)


@lru_cache(maxsize=64)
def _made(name: str, folder: str, text: str, answers: str) -> type[TaskParams]:
    task = specs.parsed(name, Path(folder), text, answers)
    spec = task.spec
    order = ", ".join(
        f"{tensor.name} ({', '.join(map(str, tensor.shape))}) of {tensor.type}" for tensor in spec.input
    )
    last = ", ".join(f"{it.name} ({', '.join(map(str, it.shape))}) of {it.type}" for it in spec.output)
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


def _restored(name: str, folder: str, text: str, answers: str, sizes: Mapping[str, int]) -> TaskParams:
    """Params in another process, which knows the task from here on."""
    return know(specs.parsed(name, Path(folder), text, answers))(**sizes)
