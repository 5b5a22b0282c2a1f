"""Steps that take turns, some images at a time, answer as they do all at once, on the stand-in GPU."""

from __future__ import annotations

import pytest

from tests.standin.conftest import Machine

ANSWERS = """
import sys
sys.path.insert(0, {root!r})
import numpy as np
from engine.backends.engine_cuda import BACKEND
from engine.options import Options
from engine.planning import image_turns
from tests.engine.planning.test_image_turns import in_the_middle, longer, network

image_turns.LEAST_NBYTES = 1
x = np.random.default_rng(1).standard_normal((8, 3, 32, 32)).astype(np.float32)

def answer(precision, graph, net=network, **options):
    how = Options(tuned=False, cuda_graph=graph, **options)
    session = BACKEND.prepare(net(), 8, precision, how)
    found = []
    for given in (x, -x):
        session.bind({{"x": given}})
        session.run()
        session.synchronize()
        found.append(session.fetch()["y"])
    times = session.op_times(0.01)
    order = [(step.name, kernel) for step, kernel in session.launch_order()]
    session.run()
    session.synchronize()
    found.append(session.fetch()["y"])
    told = session.facts.get("turns", "")
    session.close()
    return found, order, [time.nodes[0] for time in times], told

for precision, graph in (("fp32", True), ("fp16", False)):
    found, order, times, told = answer(precision, graph)
    plain, whole, of_whole, nothing = answer(precision, graph, turns=False)
    for one, other in zip(found, plain):
        assert np.isfinite(one).all()
        assert np.linalg.norm(one - other) <= 1e-6 * np.linalg.norm(other), precision
    assert (told, nothing) == ("conv1 and norm1 run 2 images at a time", "")
    own = [item for item in order if item[0] in ("conv1", "norm1")]
    turn = own[: len(own) // 4]
    assert own == turn * 4 and {{name for name, _ in turn}} == {{"conv1", "norm1"}}, order
    assert times == of_whole == ["conv1", "norm1", "fc"], times
for net, words in ((longer, "conv1 to norm2 run"), (in_the_middle, "run 2 images at a time")):
    found, _, _, told = answer("fp32", True, net, one_kernel=False)
    plain, _, _, nothing = answer("fp32", True, net, one_kernel=False, turns=False)
    for one, other in zip(found, plain):
        assert np.linalg.norm(one - other) <= 1e-6 * np.linalg.norm(other), net.__name__
    assert words in told and not nothing, told
print("alike")
"""


@pytest.mark.sampled(4, "long")
def test_turns_change_no_answer(machine: Machine) -> None:
    from tests.standin.conftest import ROOT

    assert "alike" in machine.python("-c", ANSWERS.format(root=str(ROOT)))[0]
