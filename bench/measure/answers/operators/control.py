"""Loop and Scan of the float64 oracle. Each class begins with the sentence of the specification that it
follows."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.measure.answers.operators.rows import Mended


class _Turns(Mended):
    """What both have in common: a body that is run again and again, and sees the tensors around it."""

    def need_context(self) -> bool:
        return True

    def _turn(self, given: Any, context: Any) -> list[Any]:
        body: Any = self.body  # type: ignore[attr-defined]
        return list(body.run(None, {**(context or {}), **dict(zip(body.input_names, given, strict=True))}))


class Loop(_Turns):
    """ "M: A maximum trip-count for the loop … Optional", "cond … Optional", and of a scan output a row for
    each turn, along a new first axis: the reference takes no turn where there is no condition, and lays
    values of two axes or more end to end.
    """

    def _run(self, count, condition, *carried, context=None, **_):
        body: Any = self.body  # type: ignore[attr-defined]
        turns = None if count is None else int(np.asarray(count).reshape(()))
        goes_on = condition is None or bool(np.asarray(condition).reshape(()))
        collected: list[list[Any]] = [[] for _ in range(len(body.output_names) - 1 - len(carried))]
        turn = 0
        while goes_on and (turns is None or turn < turns):
            ends = self._turn((np.array(turn, np.int64), np.array(True), *carried), context)
            goes_on, carried = bool(np.asarray(ends[0]).reshape(())), tuple(ends[1 : 1 + len(carried)])
            for values, value in zip(collected, ends[1 + len(carried) :], strict=True):
                values.append(value)
            turn += 1
        if collected and not turn:
            raise NotImplementedError("a Loop that takes no turn, and gives out what each turn makes")
        return (*carried, *(np.stack(values) for values in collected))


class Scan(_Turns):
    """ "scan_input_axes: An optional list of M flags … the axis to be scanned", "scan_input_directions … 1
    indicates reverse direction", and so for the outputs: the reference takes the first axis forwards alone.
    """

    def _run(self, *inputs, context=None, **_):
        body: Any = self.body  # type: ignore[attr-defined]
        scanned = self._get("num_scan_inputs")
        if self._opset < 9:
            raise NotImplementedError("a Scan that takes a batch, as before opset 9")
        carried, sequences = list(inputs[:-scanned]), inputs[-scanned:]
        made = len(body.output_names) - len(carried)
        axes, back = (self._get(f"scan_input_{name}") or [0] * scanned for name in ("axes", "directions"))
        out_axes, out_back = (
            self._get(f"scan_output_{name}") or [0] * made for name in ("axes", "directions")
        )
        rows = [
            np.moveaxis(values, axis, 0)[:: -1 if reverse else 1]
            for values, axis, reverse in zip(sequences, axes, back, strict=True)
        ]
        collected: list[list[Any]] = [[] for _ in range(made)]
        for given in zip(*rows, strict=True):
            ends = self._turn((*carried, *given), context)
            carried = ends[: len(carried)]
            for values, value in zip(collected, ends[len(carried) :], strict=True):
                values.append(value)
        if collected and not collected[0]:
            raise NotImplementedError("a Scan that takes no turn, and gives out what each turn makes")
        told = [
            np.stack(values[:: -1 if reverse else 1], axis)
            for values, axis, reverse in zip(collected, out_axes, out_back, strict=True)
        ]
        return (*carried, *told)


OPERATORS = (Loop, Scan)
