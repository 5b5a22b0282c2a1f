"""A whole batch judged in some of its images and in all: what is wrong in one alone is found in the end, and
where indices overflow at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.measure.answers import batch_check, oracle, samples
from bench.measure.answers.batch_check import BatchCheck
from bench.measure.answers.samples import looked_at, repeated
from engine import rung_session
from engine.rung_devices import prepare
from engine.rung_session import RungSession
from kernels import registry
from kernels.ops import Params
from kernels.ops.binary import Binary
from kernels.ops.conv_pool import ConvPool
from kernels.ops.gemm import Gemm
from kernels.ops.lrn import Lrn
from kernels.ops.lrn_pool import LrnPool
from kernels.ops.pool import Pool
from kernels.ops.softmax import Softmax
from kernels.ops.transpose import Transpose
from kernels.ops.unary import Unary
from tests.bench.ladder.test_judge import CONV, PLANTED, sized

IMAGES = 120
AN_IMAGE = CONV.m * CONV.out_h * CONV.out_w

PLANT = """# op = "conv"
# rung = 71
# name = "plant"
# idea = "Planted: something is wrong with one image."
from tests.bench.ladder.planted._direct import convolve, finish, shaped


def bind(p, inputs, output, workspace):
    x, weight, bias = shaped(p, inputs)
    y = output.reshape(p.n, p.m, p.out_h, p.out_w)
    given = x.copy()

    def run():
        right = convolve(p, given, weight, bias)
        finish(p, right)
        {deed}
        y[:] = right

    return run
"""


@pytest.fixture(autouse=True)
def _little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(batch_check, "LOOKED_NBYTES", 0)
    monkeypatch.setattr(batch_check, "PIECE_NBYTES", 4 * 7 * AN_IMAGE)
    monkeypatch.setattr(rung_session, "BLOCK_NBYTES", 64)
    samples._repeated.clear()
    oracle._kept.clear()


def opened(p: Params, rung: registry.Rung) -> tuple[BatchCheck, RungSession]:
    sample = repeated(p)
    return BatchCheck(p, sample, "fp32"), prepare(rung, p, sample.given(p), 1)


def planted(folder: Path, deed: str, images: int = IMAGES) -> tuple[BatchCheck, RungSession]:
    (folder / "71_plant.py").write_text(PLANT.format(deed=deed))
    return opened(replace(CONV, n=images), registry.find("cpu", "conv", "plant", [folder]))


def test_what_is_wrong_where_indices_overflow_is_found_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check, session = planted(tmp_path, "right[77, 0, 0, 0] = 9")
    monkeypatch.setattr(samples, "OVERFLOWS", (77 * AN_IMAGE + 5,))
    assert "element (77, 0, 0, 0)" in check.somewhere(session) or "L2" in check.somewhere(session)
    monkeypatch.setattr(samples, "OVERFLOWS", (77 * CONV.c * CONV.h * CONV.w + 5,))
    assert check.somewhere(session), "the same of an input"


@pytest.mark.parametrize("image", [0, 59, 61, 119])
def test_one_wrong_image_is_found_where_all_are_looked_at(tmp_path: Path, image: int) -> None:
    check, session = planted(tmp_path, f"right[{image}, 0, 0, 0] = float('inf')")
    assert check.everywhere(session).startswith(f"infinity at element ({image}, 0, 0, 0)")


def test_an_image_that_lies_in_its_neighbours_place_is_found(tmp_path: Path) -> None:
    check, session = planted(tmp_path, "right[83] = right[82]")
    assert "L2" in check.everywhere(session)


def test_one_random_wrong_image_may_slip_through_a_look_at_some(tmp_path: Path) -> None:
    """Which is why the rung that is taken is looked at whole."""
    check, session = planted(tmp_path, "right[83, 0, 0, 0] = 9")
    assert "" in {check.somewhere(session) for _ in range(9)}
    assert check.everywhere(session)


def test_an_image_that_is_never_written_is_found(tmp_path: Path) -> None:
    check, session = planted(tmp_path, "right[83] = y[83]")
    assert "NaN at element (83, 0, 0, 0)" in check.everywhere(session)


def test_an_input_written_is_found_where_all_is_looked_at(tmp_path: Path) -> None:
    check, session = planted(tmp_path, "x[61, 2, 3, 4] += 1")
    assert "" in {check.somewhere(session) for _ in range(9)}
    assert "of the input 0, which is only to be read: " in check.everywhere(session)
    stray = session.strays()[0]
    place = np.ravel_multi_index((61, 2, 3, 4), (IMAGES, CONV.c, CONV.h, CONV.w))
    assert 0 <= stray.offset - 4 * place < 4
    assert 1 <= stray.nbytes <= 4


def test_images_that_differ_in_their_last_bits_are_right(tmp_path: Path) -> None:
    check, session = planted(tmp_path, "right[40:] *= 1.0000002")
    assert check.somewhere(session) == check.everywhere(session) == ""


def test_some_are_few(tmp_path: Path) -> None:
    check, session = opened(replace(CONV, n=IMAGES), registry.find("cpu", "conv", "im2col", [PLANTED]))
    fetch, fetched = session.output, []

    def output(rows: np.ndarray) -> np.ndarray:
        fetched.append(rows.tolist())
        return fetch(rows)

    session.output = output  # type: ignore[method-assign,assignment]
    assert check.somewhere(session) == ""
    assert [len(rows) <= 10 for rows in fetched] == [True, True]
    assert fetched[0] != fetched[1]
    fetched.clear()
    assert check.everywhere(session) == ""
    assert [row for rows in fetched for row in rows] == [*range(IMAGES)]


# ------------------------------------------------------------------------------------ samples for all batches

POOL = sized(Pool("max", 9, 3, 9, 9, 3, 3, 0, 0, 2, 2))
EVERY: list[Params] = [
    CONV,
    replace(CONV, n=1),
    replace(CONV, n=11),
    replace(POOL, n=9),
    Lrn(9, 7, 20, 5),
    ConvPool(CONV, sized(Pool("max", 4, 8, 7, 17, 3, 2, 0, 0, 2, 2, activation="tanh"))),
    LrnPool(5, "max", 9, 3, 8, 9, 3, 3, 3, 4, 2, 2),
    Gemm(19, 50, 40, trans_b=True, bias=True, activation="relu"),
    Gemm(1, 50, 40, trans_b=True),
    Gemm(19, 5, 4, trans_a=True),
    Gemm(5, 6, 7, bias=True, bias_stride_m=1, bias_stride_n=0),
    Gemm(5, 6, 7, batch=3, stride_a=35, stride_b=42),
    Softmax(13, 10, 1),
    Softmax(1, 10, 1),
    Unary("tanh", 100),
    Binary("add", (9, 4, 5), (20, 5, 1), (20, 5, 1), activation="relu"),
    Binary("add", (9, 4, 5), (20, 5, 1), (0, 1, 0)),
    Binary("mul", (1, 4), (0, 1), (0, 1)),
    Transpose((2, 3, 4), (2, 0, 1)),
]


@pytest.mark.parametrize("p", EVERY, ids=repr)
def test_a_sample_is_of_the_shape_that_was_asked_for_and_our_rungs_answer_it(p: Params) -> None:
    given = repeated(p).given(p)
    assert tuple(array.shape for array in given) == p.input_shapes
    assert all(np.asarray(array).nbytes == array.nbytes for array in given)
    check, session = opened(p, registry.default("cpu", p))
    assert check.somewhere(session) == check.everywhere(session) == ""
    if p.rows is not None:
        assert p.of_rows(3).rows == 3
        kinds = repeated(p).rows
        assert kinds is not None
        assert p.output_shape[-len(session.output([0]).shape[1:]) :] == session.output([0]).shape[1:]


def test_the_oracle_is_asked_once_for_all_batch_sizes_and_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    run = oracle.run
    monkeypatch.setattr(oracle, "run", lambda *a: asked.append(1) or run(*a))
    answers = [repeated(replace(CONV, n=n)).expected for n in (1, 2, 5, 64)]
    assert len(asked) == 1
    assert all(answer is answers[0] for answer in answers)
    samples._repeated.clear()  # as in another process
    oracle._kept.clear()
    assert np.array_equal(repeated(replace(CONV, n=3)).expected, answers[0])
    assert len(asked) == 1
    repeated(replace(CONV, m=4, n=3))
    repeated(CONV, seed=1)
    assert len(asked) == 3, "another shape and other inputs are another answer"


def test_neighbours_differ_and_every_row_is_of_the_sample() -> None:
    rows = repeated(replace(CONV, n=500)).rows
    assert rows is not None
    assert set(rows.tolist()) == set(range(samples.REPEATED))
    assert (np.diff(rows) != 0).all()
    assert rows[:4].tolist() == [0, 1, 2, 3]


def test_samples_are_let_go_where_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "KEPT_NBYTES", 1)
    for n in (4, 5):
        repeated(replace(CONV, n=4, m=n + 3 - (n + 3) % 2))
    assert len(samples._repeated) == 1


def test_the_rows_looked_at_are_ends_middle_overflows_and_others_drawn_anew() -> None:
    random = np.random.default_rng(0)
    first, second = (looked_at(1024, (290_400, 154_587), 24, random) for _ in range(2))
    assert first.tolist() != second.tolist()
    for rows in (first, second):
        assert rows.tolist() == sorted(set(rows.tolist()))
        assert rows[0] >= 0
        assert rows[-1] == 1023
        assert {0, 1, 511, 512, 1022, 1023} <= set(rows.tolist())
        # 2^28 elements of the output are more than 924 of its images.
        assert (1 << 29) // 290_400 > 1024
        assert len(rows) <= 26
    more = looked_at(20_000, (290_400,), 24, random).tolist()
    for limit in (1 << 29, 1 << 30, 1 << 31, 1 << 32):
        if limit // 290_400 < 20_000:
            assert {limit // 290_400 + beside for beside in (-1, 0, 1)} <= set(more)
    assert looked_at(9, (5,), 12, random).tolist() == [*range(9)]
    assert looked_at(3, (1 << 31,), 1, random).tolist() == [0, 1, 2]
