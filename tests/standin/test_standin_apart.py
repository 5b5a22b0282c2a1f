"""A session on a device in a process apart: its timed passes are stirred there and rebuilt here."""

from __future__ import annotations

import pytest

from tests.standin.conftest import ROOT, Machine

PASSES = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
import numpy as np
from engine.isolated import pool
from engine.isolated.device import IsolatedDeviceSession
from engine.backend import Options, Queued, Witnessed, warm_runs
from engine.backends._provider_session import Provider
from tests.engine.backends.nets import small_net

kind = pool.register("x", pool.Kind("a provider", "engine.backends._provider_session", True))
given = Provider("ort-x", "CUDAExecutionProvider", "x", (("", (("use_tf32", "0"),)),), "enable_cuda_graph",
                 "user_compute_stream", "device_id")
for precision in ("fp32", "fp16"):
    arguments = (given, small_net(), 2, precision, Options(), True)
    session = IsolatedDeviceSession(kind, "small on ort-x", 2, arguments, precision)
    assert isinstance(session, Witnessed) and isinstance(session, Queued)
    x = np.random.default_rng(0).standard_normal((2, 3, 12, 12)).astype(np.float32)
    def answer(x):
        session.bind({{"x": x}})
        session.run()
        session.synchronize()
        return session.fetch()["y"]
    first = answer(x)
    assert first.dtype == np.float32 and np.allclose(first.sum(1), 1, atol=1e-2)
    assert session.stirring is None and session.witnesses() == ()
    assert session.time_runs(5) > 0 and session.time_queued(5) > 0 and session.time_runs(1, True) > 0
    assert warm_runs(session, 5) > 0
    session.time_runs(5)
    stirring, seen = session.stirring, session.witnesses()
    assert stirring is not None and session.stirring_ns >= 0 and len(seen) >= 5
    assert np.array_equal(session.fetch()["y"], session.fetch()["y"])
    for witness in seen[-2:]:
        inputs = stirring.inputs_of(witness.number)
        assert not np.array_equal(inputs["x"], x.astype(inputs["x"].dtype))
        places, values = witness.outputs["y"]
        again = answer(inputs["x"])
        assert np.array_equal(again.reshape(-1)[places], values.astype(np.float32)), precision
        assert not np.array_equal(again, first)
    assert np.array_equal(answer(x), first)
    session.close()
pool.close_all()
print("all right")
"""


@pytest.mark.sampled(4, "long")
def test_timed_passes_of_another_process_are_rebuilt_in_this_one(machine: Machine) -> None:
    out, _ = machine.python("-c", PASSES)
    assert out == "all right\n"
