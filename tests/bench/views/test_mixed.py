"""What the layers of a mixed precision compute in is told wherever its figure is explained."""

from __future__ import annotations

import msgspec

from bench.results.profile_records import CaseProfile
from bench.results.records import Case, Layer, Measurement
from bench.results.rows import rows
from bench.views.charts.scoreboard import cell
from bench.views.sentences import profile_remarks
from bench.views.tables import comparison_tables, terminal_tables

SAID = "conv1 in fp16, fc6 in fp32"


def test_it_is_said_in_the_terminal_the_window_and_the_tables() -> None:
    case = Case(model="net", backend="engine-cuda", precision="mixed-1e-3", batch=4)
    layers = tuple(
        Layer(nodes=(name,), op_type="Conv", output=name, rung="it", precision=precision, time_ns=1e3)
        for name, precision in (("conv1", "fp16"), ("fc6", "fp32"))
    )
    made = Measurement(
        case=case, disposition="ok", reference="ort-cuda", samples_ns=(1e3,) * 6, rounds=(0, 2, 4),
        facts={"mixed": SAID}, layers=layers,
    )  # fmt: skip
    (row,) = rows([made])
    assert terminal_tables.remarks([row])[0].endswith(f"at batch 4: {SAID}")
    assert SAID in cell(row).why
    beside = Measurement(
        case=msgspec.structs.replace(case, backend="ort-cuda", precision="fp32"),
        disposition="ok",
        reference="ort-cuda",
        samples_ns=(2e3,) * 6,
        rounds=(0, 2, 4),
    )
    assert SAID in cell(rows([made, beside])[0]).why
    table = comparison_tables.layer_table([made])
    (column,) = (column for column in table.columns if column.name == "computed_in")
    assert [column.of(line) for line in table.rows] == ["fp16", "fp32"]
    profile = CaseProfile(case=case, disposition="ok", facts={"mixed": SAID})
    assert f"layers: {SAID}" in profile_remarks.remarks(profile)
