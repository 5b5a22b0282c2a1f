"""Host images to host answers on the stand-in GPU: streams, events, page-locked memory, what is launched."""

from __future__ import annotations

import json
from pathlib import Path

from engine.end_to_end import KEPT, MOST_IN_FLIGHT
from tests.standin.conftest import Machine, choices

# Honest lanes of both sides, captured and not; then such as do not wait, or copy from another batch's place.
SCRIPT = """
import itertools, json
import numpy as np
from bench.measure import end_to_end
from engine import backends, pipelines
from engine.backend import Options
from engine.cuda.batch_slot import CudaSlot
from engine.end_to_end import Affine, Request, Pool
from tests.engine.backends.nets import small_net

class Hasty(CudaSlot):
    def finish(self):
        pass

class Other(CudaSlot):
    def start(self, offset):
        super().start((offset + 1) % 3)

def found(name, batch, top_k=0, slot=CudaSlot, **options):
    backend, pipelines.CudaSlot = backends.get(name), slot
    images = np.random.default_rng(0).integers(0, 256, (batch + 8, 3, 12, 12), dtype=np.uint8)
    asked = Request("x", Affine((0.02, 0.01, 0.03), (-0.5, 0.1, 0.0), 144), None, "y", top_k)
    pool = Pool({"x": images}, batch, pipelines.allocator("cuda"))
    pipeline = pipelines.open_pipeline(backend, small_net(), "fp32", Options(**options), pool, asked)
    for count in (1, 7):
        pipeline.time_runs(count)
    session = backends.get("ort-cpu").prepare(small_net(), batch)
    wrong = 0
    for kept in itertools.chain(*pipeline.kept):
        session.bind(end_to_end.numbers(pool, kept, asked))
        session.run()
        wrong += end_to_end.unlike(kept.answers, session.fetch(), asked, "fp32") is not None
    bus = pipeline.slots[0].bus()
    session.close()
    pipeline.close()
    return [len(pipeline.kept), wrong, bus > 0]

honest = {
    name: [found(name, 1), found(name, 3, 2), found(name, 3, cuda_graph=False)]
    for name in ("engine-cuda", "ort-cuda")
}
wrong = [found("ort-cuda", 2, slot=Hasty), found("engine-cuda", 2, slot=Other)]
print(json.dumps([honest, wrong]))
"""


def test_what_comes_back_is_of_the_batch_that_was_sent(machine: Machine) -> None:
    out, _ = machine.python("-c", SCRIPT)
    honest, (hasty, other) = json.loads(out.splitlines()[-1])
    for name, runs in honest.items():
        for samples, wrong, bus in runs:
            assert (samples, wrong, bus) == (2, 0, True), name
    assert hasty[1] > 0, "it handed out what lay there before"
    assert other[1] > 0, "it sent another batch"


# Memory of the device that has room for two lanes.
FULL = """
import numpy as np
from engine import backends, pipelines
from engine.backend import Options
from engine.cuda.batch_slot import CudaSlot
from engine.end_to_end import Affine, Request, Pool
from kernels.errors import OutOfMemoryError
from tests.engine.backends.nets import small_net
from tests.standin.errors import OutOfMemoryError as Full

class Large(CudaSlot):
    made, most = 0, 2

    def _room(self, nbytes):
        Large.made += 1
        if Large.made > Large.most:
            raise Full(1 << 40)
        return super()._room(nbytes)

pipelines.CudaSlot = Large
pool = Pool({"x": np.zeros((10, 3, 12, 12), np.uint8)}, 2, pipelines.allocator("cuda"))
asked = Request("x", Affine((0.02, 0.01, 0.03), (0.0, 0.0, 0.0), 144))

def opened():
    return pipelines.open_pipeline(backends.get("engine-cuda"), small_net(), "fp32", Options(), pool, asked)

pipeline = opened()
print("slots", len(pipeline.slots))
pipeline.close()
Large.made, Large.most = 0, 0
try:
    opened()
except OutOfMemoryError as error:
    print(error)
"""


def test_as_many_batches_are_in_flight_as_memory_has_room_for(machine: Machine) -> None:
    out, _ = machine.python("-c", FULL)
    assert "slots 2" in out
    assert "memory did not suffice for" in out
    assert "engine-cuda at batch 2, end to end" in out


def test_a_comparison_has_both_clocks_and_its_reference_is_tuned_once(
    machine: Machine, tmp_path: Path
) -> None:
    """For its forward pass; from end to end it runs in the configuration that is known by then."""
    here = Machine(machine.folder, tmp_path / "cache")
    words = ("--backend", "engine-cuda", "--backend", "ort-cuda", "--batch", "2", "--images", "8")
    quick = ("--budget", "0.02", "--instances", "1", "--no-layer-pass", "--no-tune", "--charts", "none")
    tuned = ("compare", "lenet5-digits", "--tune-reference", "--format", "json", *words, *quick)
    here.main(*tuned[:5], *words[2:], *quick)
    kept = choices(tmp_path / "cache")
    assert "reference" in {part for _, part in kept}
    out, _ = here.main(*tuned, "--end-to-end", "--top-k", "3")
    assert choices(tmp_path / "cache") == kept
    found = {row["backend"]: row for row in json.loads(out)["cases"]}
    assert set(found) == {"engine-cuda", "ort-cuda", "ort-cuda-tuned", "ort-cuda-tuned-strict"}
    for name, row in found.items():
        assert row["disposition"] == "ok"
        assert row["median_s"] > 0
        assert row["end_to_end_batch_s"] > 0
        assert row["end_to_end_images_per_s"] > 0
        assert (row["end_to_end_in_flight"], row["end_to_end_carries"]) == (MOST_IN_FLIGHT, "uint8")
        assert 0 < row["end_to_end_bus_share"] <= 1.5
        assert row["end_to_end_checked"] == KEPT * MOST_IN_FLIGHT
        assert (row["end_to_end_speedup"] is None) == (name == "ort-cuda")
