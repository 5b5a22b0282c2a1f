"""Functions of a library for the GPU, beside which kernels of some tasks are timed there."""

from __future__ import annotations

import numpy as np
import pytest

from bench.measure import timing
from bench.measure.answers import one_node, samples
from bench.measure.answers.comparison import compare
from engine.function_session import FunctionSession
from kernels import tasks
from kernels.errors import KernelError
from kernels.tasks import TaskParams

NAMED = [record for record in tasks.in_order() if record.task.function is not None]
pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("record", NAMED, ids=lambda record: record.op)
def test_a_function_answers_and_is_timed(record: type[TaskParams], gpu: None) -> None:
    """On inputs that are there when it is made, on others copied over them, and while it is timed."""
    random = np.random.default_rng(0)
    for sizes in record.task.spec.check:
        p = record(**sizes)
        sample = samples.draw(p, random)
        session = FunctionSession(p, sample.whole_inputs, one_node.OUTPUT)
        try:
            for number in range(2):
                inputs = list(sample.whole_inputs)
                for i in p.data_inputs if number else ():
                    inputs[i] = np.ascontiguousarray(inputs[i][::-1])
                right = one_node.answer(p, inputs)
                bound = {f"in{i}": inputs[i] for i in p.data_inputs}
                got = timing.answers(session, bound)[one_node.OUTPUT]
                assert got.dtype == p.out_dtype
                of = samples.Sample(p, tuple(inputs), right)
                assert compare(got, of, "fp32").stats.ok, (p.words, number)
            if sizes != record.task.spec.check[-1]:
                continue
            assert session.time_runs(3) > 0
            assert session.time_runs(1, cold=True) > 0
            for seen in session.witnesses():
                found = session.stirring.inputs_of(seen.number)
                given = [found.get(f"in{i}", array) for i, array in enumerate(inputs)]
                places, left = seen.outputs[one_node.OUTPUT]
                right = one_node.answer(p, given).reshape(-1)[places]
                assert np.allclose(left, right, rtol=1e-4, atol=1e-4), (p.words, seen.number)
        finally:
            session.close()
        session.close()


def test_a_function_that_fails_is_told_in_a_sentence(gpu: None, tmp_path, monkeypatch) -> None:
    record = NAMED[0]
    broken = tmp_path / "yardstick.py"
    broken.write_text("def yardstick(values, counts):\n    return lambda: 1 / 0\n")
    monkeypatch.setattr(type(record.task), "function", broken)
    p = record(**record.task.spec.check[0])
    inputs = one_node.draw(p, np.random.default_rng(0))
    with pytest.raises(KernelError, match="the function of CuPy for histogram failed: ZeroDivisionError"):
        FunctionSession(p, inputs, one_node.OUTPUT)
