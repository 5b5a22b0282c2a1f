"""What a GPU counted and found is read as it was said, and put into the file that the page is made of."""

from __future__ import annotations

import json
from pathlib import Path

from tests.kernels.simulated import check, hardware

SAID = """@@m000w
========= Error: Potential WAW hazard detected at m000w+0x1a0 in line:3
========= Error: Potential WAW hazard detected at m000w+0x1b0 in line:3
@@m000r
@@m020w
@@m020w CUDARuntimeError: cudaErrorIllegalAddress: an illegal memory access
@@m020r
"""


def test_what_a_tool_says_is_read_by_kernel() -> None:
    said = hardware.Said()
    said.read(SAID)
    assert said.found == {"m000w": ["Error: Potential WAW hazard detected at m000w+… in line:3"]}
    assert said.reached == ["m000w", "m000r", "m020w", "m020r"]
    assert said.faulted == {"m020w": "CUDARuntimeError: cudaErrorIllegalAddress: an illegal memory access"}


def test_the_table_tells_what_was_named_what_ended_and_what_was_not_reached() -> None:
    said = hardware.Said(found={"m000w": [""], "m001r": [""]}, reached=["m000w", "m001w", "m020w"])
    said.faulted["m020w"], said.hung = "error", ["m001w"]
    names = {number: mistake.name for number, mistake in hardware.named().items()}
    tools = {tool: hardware.asdict(said) for tool in hardware.TOOLS}
    lines = hardware.found_page({"device": "a GPU", "tools": tools, "names": names})
    rows = {line.split(" | ")[0].removeprefix("| "): line.split(" | ")[2] for line in lines if " | " in line}
    assert rows[names["m000"]] == "named"
    assert rows[names["m001"]] == "false, hangs"
    assert rows[names["m020"]] == "fault"
    assert rows[names["m002"]] == "not reached"
    assert lines[-2].endswith(f"{', '.join(f'{tool} 1' for tool in hardware.TOOLS)}; 1 by one of the four.")


def test_what_was_found_before_is_known_under_the_names_of_now() -> None:
    (number, mistake), *_ = hardware.named().items()
    said = hardware.Said(found={"m777w": ["words"]}, reached=["m777w", "m777r"], hung=["m777r"])
    tools = {tool: hardware.asdict(said) for tool in hardware.TOOLS}
    known = hardware.before({"tools": tools, "names": {"m777": mistake.name}})
    assert known["memcheck"] == hardware.Said(
        {f"{number}w": ["words"]}, [f"{number}w", f"{number}r"], [f"{number}r"]
    )


def test_new_counts_join_those_that_are_there(tmp_path: Path) -> None:
    first, second, third = (rung.label for rung in check.RUNGS[:3])

    def line(label: str, count: float) -> dict[str, object]:
        return {"rung": label, "counted": [{"smsp__inst_executed": count}] if count else [], "device": "new"}

    page = tmp_path / "page.json"
    old = {"device": "old", "rungs": [{"rung": third, "counted": [1]}, {"rung": second, "counted": [2]}]}
    page.write_text(json.dumps({"counters": old, "found": {"tools": 1}}))
    hardware.kept(page, {"device": "new", "rungs": [line(first, 5), line(second, 0), line(third, 7)]}, None)
    whole = json.loads(page.read_text())
    assert whole["found"] == {"tools": 1}
    # In the order of the rungs; what could not be counted anew is kept, with its device.
    assert [(each["rung"], each["device"]) for each in whole["counters"]["rungs"]] == [
        (first, "new"),
        (second, "old"),
        (third, "new"),
    ]
