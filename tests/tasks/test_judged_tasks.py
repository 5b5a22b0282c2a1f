"""A task through the package and the command, as a user has it: one judge, one process."""

from __future__ import annotations

from pathlib import Path

import pytest

import kernelscope as ks
from tests.kernels.test_tasks import REFERENCE, made


def doubled(p, inputs, output, workspace):  # type: ignore[no-untyped-def]
    x, s = (array.reshape(shape) for array, shape in zip(inputs, p.input_shapes, strict=True))

    def run():  # type: ignore[no-untyped-def]
        output[...] = 2 * (x * s[:, None]).T

    return run


@pytest.mark.sampled(6, "longest")
@pytest.mark.slow
def test_a_task_is_judged_as_an_operator_is(tmp_path: Path) -> None:
    folder = made(tmp_path / "turned", right="output[...] = (x * s[:, None]).T", tail="output[:] = 0")
    with ks.Judge(budget=0.02) as judge:
        right = judge(folder / "01_right.py", task=folder)
        assert (right.right, right.op, right.title) == (True, "turned", "turned n 40, m 30")
        assert right.time_s
        assert right.reference is not None
        assert right.reference.title == "the reference (NumPy)"
        slow = "import time\n" + REFERENCE.replace("return", "time.sleep(0.1); return")
        (folder / "reference.py").write_text(slow)
        late = judge(folder / "01_right.py", task=folder)
        assert late.right
        assert "an answer of it takes 0.1 s" in late.against[0].reason
        (folder / "reference.py").write_text(REFERENCE)
        beside = judge(folder / "01_right.py", shape=(3, 5), beside="tail", task=folder)
        assert (beside.right, beside.title) == (True, "turned n 3, m 5")
        wrong = judge(doubled, task=folder)
        assert (wrong.right, wrong.finding and wrong.finding.fault) == (False, "scale")
        text = "import numpy as np\ndef bind(p, i, o, w):\n    return lambda: np.cumsum(i[0], out=o)\n"
        shipped = judge(text, task="scan", shape=1000)
        assert (shipped.right, shipped.op) == (True, "scan")
        for asked, said in (
            ({"task": "skan"}, "did you mean 'scan'"),
            ({"task": "scan", "op": "conv"}, "say two things"),
            ({"task": "scan", "shape": (1, 2)}, "--shape of scan is n"),
            ({"task": "scan", "model": "lenet5-digits"}, "is a task, which no model has"),
        ):
            with pytest.raises(ks.KernelscopeError, match=said):
                judge(doubled, **asked)
