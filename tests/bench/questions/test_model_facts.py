"""What `models show` tells of a plan."""

from __future__ import annotations

from bench.questions.messages import WhichFacts
from bench.questions.model_facts import facts


def of_plan(device: str, precision: str) -> dict[str, str]:
    asked = WhichFacts(model="lenet5-digits", device=device, precision=precision, batch=1)
    found = facts(asked)
    names = [column.name for column in found.columns]
    return {row[names.index("step")]: row[names.index("bytes")] for row in found.rows}


def test_bytes_are_those_that_a_plan_moves() -> None:
    plain, halves = of_plan("cuda", "fp32"), of_plan("cuda", "fp16")
    assert plain["fc3"] == of_plan("cpu", "fp32")["fc3"] == "190.0 KiB", "400 × 120 weights and 640 numbers"
    assert halves["fc3"] == "96.2 KiB"
