"""What operators that work out each element from one element share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernels.ops._base import Division, Params, Shape


@dataclass(frozen=True)
class OneByOne(Params):
    """Tensors in order: x (size,); y (size,)."""

    if TYPE_CHECKING:  # a field of the record, as Params.dtype

        @property
        def size(self) -> int:
            """Elements."""

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        return ((self.size,),)

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (self.size,)

    @property
    def rows(self) -> int | None:
        return None

    @property
    def division(self) -> Division:
        return Division(self.size, (1,), 1, self._of_rows)

    def small_shapes(self) -> Iterator[Shape]:
        return (Shape("size", self._of_rows(size)) for size in (1, 7, 1030))
