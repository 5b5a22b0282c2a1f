"""The page of speed: it is what its command makes of the files that are kept, the newest figure of each case
counts, and whatever is behind a rival stands on it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import main
from bench.extras.reports.goals.presets import Goal, Goals
from bench.extras.reports.needs import Taken
from bench.extras.reports.presets import Need
from bench.extras.reports.speed import lines, page, sitting
from bench.extras.reports.speed.sitting import GoalCount, Rival, Sitting, SittingCase
from bench.run.kinds.comparison import KIND as COMPARISON
from kernels.errors import InputError
from tests.bench.extras.reports.goals.test_goals import saved, timed

ROOT = Path(__file__).resolve().parents[5]


def kept(last: str, *cases: SittingCase, processor: str = "NVIDIA H100", device: str = "cuda") -> Sitting:
    return Sitting(processor=processor, goals="g", device=device, first=last, last=last, cases=cases)


def case(ns: float, *beside: Rival, batch: int = 1) -> SittingCase:
    return SittingCase(model="net", precision="fp16", batch=batch, ns=ns, beside=beside)


def ratio(name: str, value: float, half: float | None = 0.01, doubts: str = "") -> Rival:
    ends = (None, None) if half is None else (value - half, value + half)
    return Rival(name=name, ns=1000 * value, ratio=value, low=ends[0], high=ends[1], doubts=doubts)


def told(*sittings: Sitting, out: Path) -> str:
    return page.write(sittings, [Path("kept")], out)[0].read_text("utf-8")


def table(text: str, title: str) -> list[list[str]]:
    """The cells of a table below its heading, without the heading's and the ruler's lines."""
    _, _, after = text.partition(f"\n## {title}\n")
    assert after, title
    found = [line for line in after.partition("\n## ")[0].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in found[2:]]


def test_the_page_is_what_its_command_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    out = tmp_path / "speed.md"
    assert main.main(["report", "speed", "docs/results/speed", "--out", str(out)]) == 0
    assert str(out) in capsys.readouterr().out
    now = out.read_text("utf-8")
    again = "python main.py report speed docs/results/speed --out docs/results/speed.md"
    assert now == (ROOT / "docs/results/speed.md").read_text("utf-8"), f"write it again: {again}"
    for name in ("NVIDIA H100 80GB HBM3", "NVIDIA H200", "torch 2.11.0", "onnxruntime 1.31.1"):
        assert name in now
    assert sum(path.stat().st_size for path in (ROOT / "docs/results/speed").iterdir()) < 1 << 20


def test_of_each_case_the_newest_counts_and_a_rival_that_was_left_out_keeps_its_line(tmp_path: Path) -> None:
    old = kept("2026-01-01", case(90, ratio("ort", 3.0), ratio("torch", 2.0)), case(80, batch=8))
    new = kept("2026-02-02", case(100, ratio("ort", 4.0)))
    for order in ((old, new), (new, old)):
        text = told(*order, out=tmp_path / "page.md")
        assert [row[2:6] + row[-1:] for row in table(text, "NVIDIA H100: forward pass")] == [
            ["1", "100 ns", "4.00× (3.99× to 4.01×)", "", "2026-02-02"],
            ["1", "90.0 ns", "", "2.00× (1.99× to 2.01×)", "2026-01-01"],
            ["8", "80.0 ns", "", "", "2026-01-01"],
        ]
        overview = [(row[1], row[3], row[7]) for row in table(text, "Ahead and behind")]
        assert overview == [("ort", "1", "4.00×"), ("torch", "1", "2.00×")], "an older 3.00× counts no more"


def test_whatever_is_behind_stands_on_the_page_and_what_is_not_decided_does_not(tmp_path: Path) -> None:
    cases = [
        case(1, ratio("slower", 2.0), batch=1),
        case(1, ratio("ahead", 0.5), batch=2),
        case(1, ratio("unsure", 0.99, 0.02), batch=4),
        case(1, ratio("bare", 0.9, None), batch=8),
        case(1, ratio("near", 0.985, None), batch=16),
        case(1, ratio("once", 0.5, None, "one sample alone"), batch=32),
        SittingCase(model="refused", precision="fp16", batch=1, reason="no kernel has it"),
    ]
    cpu = kept("2026-03-03", case(1, ratio("cpu", 0.1)), processor="A CPU", device="cpu")
    text = told(cpu, kept("2026-01-01", *cases), out=tmp_path / "page.md")
    behind = [(row[0], row[6], row[8].partition(" ")[0]) for row in table(text, "Where a rival is ahead")]
    assert behind == [
        ("NVIDIA H100", "ahead", "0.500×"),
        ("NVIDIA H100", "bare", "0.900×"),
        ("A CPU", "cpu", "0.100×"),
    ]
    orders = {row[1]: row[4:7] for row in table(text, "Ahead and behind")}
    assert orders["slower"] == ["1", "0", "0"]
    assert orders["unsure"] == orders["near"] == orders["once"] == ["0", "1", "0"]
    assert [row[1] for row in table(text, "Without a time")] == ["refused"]
    assert "0.500× !" in text
    none = told(kept("2026-01-01", cases[0]), out=tmp_path / "none.md")
    assert "No rival is ahead in any case that was measured." in none
    assert "Without a time" not in none


def test_what_is_kept_of_goals_is_what_their_report_says(tmp_path: Path) -> None:
    goal = Goal(
        model="lenet5-digits", need="n", value="speedup", backend="engine-cuda", against="ort-cuda",
        batches=(1, 2), wanted=(2.5, 9.0),
    )  # fmt: skip
    goals = Goals(
        name="g", title="t", device="cuda", goals=(goal,),
        needs=(Need(name="n", device="cuda", models=("lenet5-digits",), batches=(1, 2)),),
    )  # fmt: skip
    times = {"engine-cuda": 10, "ort-cuda": 30, "ort-cuda-tuned": 20, "ort-cuda-tuned-strict": 25}
    both = [timed(name, us, batch=batch) for batch in (1, 2) for name, us in times.items()]
    run = COMPARISON.open(saved(tmp_path / "run", *both))
    made = sitting.kept(goals, Taken(runs=({"n": run}, {})))
    out = tmp_path / "kept.json"
    sitting.write(made, out)
    assert sitting.read([tmp_path]) == sitting.read([out]) == [made]
    assert made.outcomes == (GoalCount(outcome="reached", count=1), GoalCount(outcome="not reached", count=1))
    one, two = made.cases
    assert (one.model, one.batch, two.batch) == ("lenet5-digits", 1, 2)
    assert one.ns == pytest.approx(10e3, rel=0.01)
    assert [other.name for other in one.beside] == ["ort-cuda", "ort-cuda-tuned-strict"]
    assert [other.ratio for other in one.beside] == pytest.approx([3.0, 2.5], rel=0.01)
    assert all(lines.order(other) == 1 for other in one.beside)
    with pytest.raises(InputError, match="nothing of g was measured"):
        sitting.kept(goals, Taken())
    with pytest.raises(InputError, match=r"ends in \.json"):
        sitting.write(made, tmp_path / "kept.md")
    words = ["report", "goals", "speed-cpu", "--keep", str(tmp_path / "kept.md"), "--folder", str(tmp_path)]
    assert main.main(words) == 2, "told before anything runs"


def test_what_is_no_sitting_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for given, says in (([], "no sitting is named"), ([tmp_path / "empty"], "no sitting is in")):
        with pytest.raises(InputError, match=says):
            sitting.read(given)
    with pytest.raises(InputError, match="cannot read"):
        sitting.read([tmp_path / "lacking.json"])
    for text, says in (("{", "broken"), ('{"goals": "g"}', "broken"), ('{"schema": 99}', "newer")):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(InputError, match=says):
            sitting.read([tmp_path / "bad.json"])
    made = kept("2026-01-01", case(1, ratio("ort", 2.0)))
    sitting.write(made, tmp_path / "bad.json")
    (tmp_path / "bad.json").write_text(
        (tmp_path / "bad.json").read_text().replace('"ratio":2.0', '"ratio":0.0')
    )
    with pytest.raises(InputError, match="larger than 0"):
        sitting.read([tmp_path / "bad.json"])
    assert msgspec.json.decode(msgspec.json.encode(made), type=Sitting) == made
