"""What works along one axis of a tensor (outer, axis, inner) and gives as many elements as it was given."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

from kernels.ops._base import ITEMSIZE, Division, Params


class Along(Params):
    """Shapes, bytes and parts of such params; a part is of some of `outer`."""

    outer: int
    axis: int
    inner: int

    @property
    def nbytes(self) -> int:
        return 2 * self.outer * self.axis * self.inner * ITEMSIZE[self.dtype]

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        return ((self.outer, self.axis, self.inner),)

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (self.outer, self.axis, self.inner)

    @property
    def rows(self) -> int | None:
        return self.outer

    def _of_rows(self, count: int) -> Self:
        return replace(self, outer=count)  # type: ignore[call-arg]

    @property
    def division(self) -> Division:
        row = self.axis * self.inner
        return Division(self.outer, (row,), row, self._of_rows)
