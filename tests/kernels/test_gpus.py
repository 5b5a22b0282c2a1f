"""Floors from counts and data sheets."""

from __future__ import annotations

import pytest

from kernels import gpus
from kernels.errors import InputError
from kernels.occupancy import MULTIPROCESSORS


def test_a_floor_is_what_the_tightest_bound_says() -> None:
    t4 = gpus.find("t4")
    # 40 multiprocessors × 1.59 GHz × 4 sectors a clock: 254.4 G sectors a second.
    floor = gpus.floor(t4, {"instructions": 1000, "sectors": 254_400_000, "wavefronts": 10}, 1 << 20)
    assert (floor.by, floor.seconds) == ("sectors", pytest.approx(1e-3))
    floor = gpus.floor(t4, {"sectors": 1}, t4.l2_nbytes + 320_000_000)
    assert (floor.by, floor.seconds) == ("memory", pytest.approx(1e-3))
    assert gpus.floor(t4, {}, t4.l2_nbytes).seconds == 0, "the cache may hold all of it"


def test_each_gpu_is_of_a_kind_that_is_known_and_has_its_source() -> None:
    for gpu in gpus.known().values():
        assert gpu.capability in MULTIPROCESSORS
        assert gpu.source
    assert gpus.find("RTX4090") is gpus.find("GeForce RTX 4090") is gpus.find("rtx 4090")
    with pytest.raises(InputError, match="did you mean 'H100'"):
        gpus.find("H10")
