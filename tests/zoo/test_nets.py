"""The nets that ship run, as the reference answers; VGG-16, of half a gigabyte, is left to the rehearsal."""

from __future__ import annotations

import numpy as np
import pytest

from engine import backends
from engine.graph.importer import from_proto
from tests.engine.backends.shared import answers
from tests.zoo import shipped
from tests.zoo.drawn import bare, recipe
from tests.zoo.export import SEED
from tests.zoo.nets import exports

MOST_NBYTES = 200_000
MOST_WEIGHTS = 30_000_000  # of those that are filled here


def weights(name: str) -> int:
    drawn = [t for t in bare(shipped.nets()[name]).graph.initializer if recipe(t)]
    return sum(int(np.prod(t.dims)) for t in drawn)


@pytest.mark.parametrize("name", shipped.nets())
def test_a_net_ships_small_and_as_it_was_exported(name: str) -> None:
    path = shipped.nets()[name]
    assert path.stem in {export.stem for export in exports((name,))}
    assert path.stat().st_size <= MOST_NBYTES
    assert b"site-packages" not in path.read_bytes()
    assert weights(name) > 1_000_000
    assert [(entry.key, entry.value) for entry in bare(path).metadata_props] == [("weights_seed", str(SEED))]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [name for name in shipped.nets() if weights(name) < MOST_WEIGHTS])
def test_a_net_that_ships_answers_as_the_reference_does(name: str) -> None:
    graph = from_proto(shipped.model(name), name)
    image = np.random.default_rng(0).random((1, 3, 224, 224), np.float32)
    feeds = {"input": image}
    [(output, ours)] = answers(backends.get("engine-cpu"), graph, feeds, 1).items()
    right = answers(backends.get("ort-cpu"), graph, feeds, 1)[output]
    assert ours.shape == (1, 1000)
    assert 0.3 < right.std() < 3  # activations near unit variance: errors are those of the net's own scale
    np.testing.assert_allclose(ours, right, rtol=0, atol=1e-4 * np.abs(right).max())
