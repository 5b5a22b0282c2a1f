"""Every operator of the folder says all that there is to say of one, and the folder refuses one that does
not."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from bench.judge.mistakes import mistakes
from bench.measure.answers.nodes import nodes
from kernels import ops, registry
from kernels.ops import OPS, Params
from kernels.ops.gemm import Gemm
from tests.bench.judge.planting import TIMED

# A record with each facet of its own; any of them may be left out.
FACETS = {
    "flops": "@property\n    def flops(self): return self.size",
    "input_shapes": "@property\n    def input_shapes(self): return ((self.size,),)",
    "output_shape": "@property\n    def output_shape(self): return (self.size,)",
    "small_shapes": "def small_shapes(self): return iter(())",
    "op": 'op: ClassVar[str] = "clip"',
    "struct": 'struct: ClassVar[str] = ""',
    "dtype": 'dtype: str = "float32"',
}


def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, name: str = "clip") -> Path:
    package = f"planted_{tmp_path.name}"
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").touch()
    (tmp_path / package / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path / package


def _record(*left_out: str, name: str = "Clip") -> str:
    kept = [text for facet, text in FACETS.items() if facet not in left_out]
    return "\n".join([
        "from dataclasses import dataclass",
        "from typing import ClassVar",
        "from kernels.ops import Params",
        "@dataclass(frozen=True)",
        f"class {name}(Params):",
        "    size: int",
        *(f"    {text}" for text in kept),
        "",
    ])  # fmt: skip


def test_a_whole_operator_is_found_by_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = _folder(tmp_path, monkeypatch, _record())
    (record,) = ops.read(folder.name, [str(folder)]).values()
    made = record(100)  # type: ignore[call-arg]
    assert (record.op, made.outputs, made.data_inputs, made.out_dtype) == ("clip", 100, (0,), "float32")


@pytest.mark.parametrize("facet", FACETS)
def test_an_operator_that_lacks_something_is_refused_by_its_name(
    facet: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _folder(tmp_path, monkeypatch, _record(facet))
    with pytest.raises(TypeError, match=rf"clip\.py: Clip lacks {facet}, which every operator has"):
        ops.read(folder.name, [str(folder)])


def test_every_facet_that_is_wanted_is_left_out_once() -> None:
    assert set(FACETS) == {*Params.__abstractmethods__, "op", "struct", "dtype"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "defines 0 records of an operator"),
        (_record() + _record(name="Clop"), "defines 2 records of an operator"),
        (_record().replace("@dataclass(frozen=True)\n", ""), "Clip is no dataclass"),
        (_record().replace('"clip"', '"clop"'), "op is 'clop', and the file is called 'clip'"),
    ],
)
def test_a_file_that_is_no_operator_is_refused(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _folder(tmp_path, monkeypatch, text)
    with pytest.raises(TypeError, match=said):
        ops.read(folder.name, [str(folder)])


@pytest.mark.parametrize("op", OPS)
def test_what_an_operator_says_of_itself_agrees(op: str) -> None:
    p = TIMED[op]
    assert type(p) is OPS[op]
    assert OPS[op].__module__ == f"kernels.ops.{op}"
    assert len(p.input_shapes) <= p.most_inputs
    assert set(p.weight_inputs) <= set(range(p.most_inputs)) - {0}
    assert math.prod(p.output_rows) == p.outputs == math.prod(p.output_shape)
    assert p.axes == () or len(p.axes) == len(p.output_shape)
    rows = p.m if isinstance(p, Gemm) and p.division.columns else 1
    assert rows * p.division.length * p.division.output == p.outputs
    assert len(p.division.inputs) == len(p.input_shapes)
    assert p.least_read() <= sum(math.prod(p.input_shapes[i]) for i in p.data_inputs)
    assert all(getattr(p, name) in words for name, (_, words) in p.enumerated.items())
    if p.rows is None:
        assert not p.images
        with pytest.raises(ValueError, match="no rows that stand alone"):
            p.of_rows(1)
    else:
        assert p.of_rows(p.rows) == p
        assert (p.of_rows(1).rows, p.of_rows(1).output_rows) == (1, (1, *p.output_rows[1:]))
    assert nodes.dispatch(type(p)) is not nodes.dispatch(Params)
    assert mistakes.dispatch(type(p)) is not mistakes.dispatch(Params)


def test_every_folder_of_rungs_has_its_operator_and_every_operator_runs_on_the_cpu() -> None:
    for device in registry.SUFFIX:
        folders = {path.name for path in (registry.ROOT / device).iterdir() if path.is_dir()}
        assert folders - {"probe", "net", "__pycache__"} <= set(OPS)
    assert all(registry.rungs("cpu", op) for op in OPS)
