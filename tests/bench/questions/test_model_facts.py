"""What `models show` tells of a plan."""

from __future__ import annotations

from pathlib import Path

import onnx

from bench.questions.messages import WhichFacts
from bench.questions.model_facts import facts
from bench.questions.model_takes import takes
from bench.results.records import Job


def of_plan(device: str, precision: str) -> dict[str, str]:
    asked = WhichFacts(model="lenet5-digits", device=device, precision=precision, batch=1)
    found = facts(asked)
    names = [column.name for column in found.columns]
    return {row[names.index("step")]: row[names.index("bytes")] for row in found.rows}


def test_bytes_are_those_that_a_plan_moves() -> None:
    plain, halves = of_plan("cuda", "fp32"), of_plan("cuda", "fp16")
    assert plain["fc3"] == of_plan("cpu", "fp32")["fc3"] == "190.0 KiB", "400 × 120 weights and 640 numbers"
    assert halves["fc3"] == "96.2 KiB"


def test_of_several_inputs_it_is_told_which_one_takes_images_once_the_others_are_given(
    tmp_path: Path,
) -> None:
    path = tmp_path / "two.onnx"
    text = """<ir_version: 8, opset_import: ["" : 17]>
    two (float[N, 1, 8, 8] picture, float[N, 4] about) => (float[N, 68] y)
    { flat = Flatten (picture) y = Concat <axis = 1> (flat, about) }"""
    onnx.save(onnx.parser.parse_model(text), path)
    told = {
        given: dict(takes(Job(models=(str(path),), backends=(), inputs=given_inputs)).lines)["an image is"]
        for given, given_inputs in (("none", {}), ("about", {"about": "0.5"}))
    }
    assert "with --input about=NUMBER (or =FILE.npy) picture takes it" in told["none"]
    assert told["about"].startswith("resized to 8×8")
