"""Where a case first leaves the reference: a layer's own fault told from what it was handed."""

from __future__ import annotations

import msgspec
import pytest

import main
from bench.results.records import ErrorStats, Layer
from bench.views.diff import bisect
from bench.views.diff.between import between
from tests.bench import synthetic
from tests.bench.results.test_thin import saved
from tests.bench.views.diff.runs import OURS, run


def error(rel_l2: float, ratio: float | None = None) -> ErrorStats:
    return ErrorStats(
        rel_l2=rel_l2, max_abs=1.0, mean_abs=1.0, max_rel=1.0, bound=1e-5, ok=rel_l2 <= 1e-5, ratio=ratio
    )


def layer(
    name: str, alone: float | None, along: float | None, *inputs: str, ratio: float | None = None
) -> Layer:
    return Layer(
        nodes=(name,),
        op_type="Conv",
        output=name,
        inputs=inputs,
        rung="mine",
        isolated=None if alone is None else error(alone, ratio),
        propagated=None if along is None else error(along),
    )


def words(*layers: Layer, **fields) -> str:
    (found,) = synthetic.run(backends=(OURS,), batches=(4,))[1]
    return bisect.words(msgspec.structs.replace(found, layers=layers, **fields))


FINE = layer("conv1", 1e-7, 1e-7, "input")


def test_a_layer_that_is_wrong_by_itself_and_what_inherits_it():
    said = words(FINE, layer("conv2", 3e-3, 3e-3, "conv1", ratio=9e3), layer("fc", 1e-7, 2e-3, "conv2"))
    assert said == (
        "the first layer to leave the reference is conv2 (Conv, rung mine): fed right inputs it is off by "
        "3.0e-03, 300 times its bound and 9,000× the reference's own error, so the fault is its own "
        "(isolated); behind it fc is beyond the bound as it is handed on"
    )


def test_what_no_layer_does_alone_is_carried_along():
    said = words(FINE, layer("conv2", 2e-6, 4e-5, "conv1"), layer("fc", 1e-7, 6e-5, "conv2"))
    assert "the first layer to leave the reference is conv2" in said
    assert "while fed right inputs its error is 2.0e-06, within its bound" in said
    assert "carried along (propagated)" in said
    assert "behind it fc is" in said


def test_a_branch_beside_it_is_not_behind_it():
    other = layer("branch", 1e-7, 5e-3, "conv1")
    said = words(
        FINE, layer("conv2", 3e-3, 3e-3, "conv1"), other, layer("add", 1e-7, 1e-3, "conv2", "branch")
    )
    assert "behind it add is beyond" in said


def test_what_is_off_before_the_layer_that_is_wrong_alone_comes_first():
    """Carried along from a layer that nobody could look at alone: the later fault is told as well."""
    said = words(layer("conv1", None, 4e-5, "input"), layer("conv2", 3e-3, 3e-3, "conv1"))
    assert "the first layer to leave the reference is conv1" in said
    assert "it was not looked at alone" in said
    assert said.endswith("wrong by itself, too: conv2")


def test_two_that_are_wrong_alone():
    said = words(FINE, layer("conv2", 3e-3, None, "conv1"), layer("fc", 2e-3, None, "conv2"))
    assert "is conv2" in said
    assert said.endswith("wrong by itself, too: fc")


def test_a_reference_that_is_no_better_is_told():
    assert "where the reference is no better (1.20× its error)" in words(
        layer("conv1", 3e-5, 3e-5, "input", ratio=1.2)
    )


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        (
            (FINE, layer("fc", 1e-7, 3e-7, "conv1")),
            "no layer leaves the reference: 2 of 2 were looked at alone",
        ),
        (
            (layer("conv1", 1e-7, None), layer("fc", None, None)),
            "no layer is wrong by itself (1 of 2 looked at)",
        ),
        ((), "its layers were not looked at"),
    ],
)
def test_where_nothing_is_wrong_it_says_what_was_looked_at(layers, expected):
    assert words(*layers).startswith(expected)


def test_a_case_that_ended_before_its_layers_says_how():
    said = words(disposition="crashed", reason="it fell over")
    assert said == "its layers were not looked at (crashed: it fell over)"


def test_a_run_and_a_diff_say_it(tmp_path, capsys):
    def wrong(m):
        if m.case.backend != OURS:
            return m
        layers = (FINE, layer("conv2", 3e-3, 3e-3, "conv1"))
        return msgspec.structs.replace(m, disposition="incorrect", reason="off", samples_ns=(), layers=layers)

    before, after = run(tmp_path / "a"), run(tmp_path / "b", change=wrong)
    assert main.main(["runs", "show", str(after), "--bisect"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "on engine-cpu, batch 1–16: the first layer to leave the reference is conv2" in out
    assert "ort-cpu, batch 1–16: its layers were not looked at" in out
    assert main.main(["runs", "diff", str(before), str(after)]) == 0
    assert "the first layer to leave the reference is conv2" in " ".join(capsys.readouterr().out.split())
    assert {c.pair.b.left != "" for c in between(before, after).changes if c.wrong} == {True}
    assert main.main(["runs", "show", "bench/results/sample_ladder", "--bisect"]) == 2
    assert main.main(["compare", "--bisect", "--no-layer-pass"]) == 2


def test_json_stays_json(tmp_path, capsys):
    held = saved(tmp_path / "a", *synthetic.run(backends=(OURS,), batches=(1,)))
    assert main.main(["runs", "show", str(held.path), "--bisect", "--format", "json"]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("{")
    assert "no layer is wrong by itself" in told.err
