"""Two comparisons held against each other: verdicts by speed-up, what else differs, and gates that fail when
they should."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest

import main
from bench.results import stats
from bench.results.records import ErrorStats, Layer
from bench.results.stats import Interval
from bench.views.diff import differs, judging, tables
from bench.views.diff.between import between
from bench.views.diff.judging import where
from bench.views.sentences import diff_sentences as sentences
from tests.bench import synthetic
from tests.bench.views.diff.runs import OURS, THEIRS, ours, run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("diff") / "before")


def verdicts(a: Path, b: Path, **options) -> dict[tuple[str, int], str]:
    return {(c.pair.who, c.pair.batch): c.verdict for c in between(a, b, **options).changes}


def gate(*arguments: object) -> int:
    return main.main(["runs", "diff", *map(str, arguments)])


# ----------------------------------------------------------------------------------------------- statistics


def test_the_ratio_of_two_that_were_measured_apart_holds_its_confidence():
    """Of 600 pairs of five rounds each whose true ratio is known."""
    rng = np.random.default_rng(4)
    inside = 0
    for _ in range(600):
        one, other = (stats.median_interval(np.exp(rng.normal(0, sd, 5)), range(5)) for sd in (0.02, 0.05))
        found = judging.quotient(one, other)
        inside += found.low <= 1.0 <= found.high
    assert inside >= 0.93 * 600


@pytest.mark.parametrize("known", [True, False])
def test_a_ratio_of_intervals(known):
    found = judging.quotient(Interval(8.0, 4.0, 16.0), Interval(2.0, 2.0, 2.0, known))
    assert (found.value, round(found.low, 9), round(found.high, 9), found.known) == (4.0, 2.0, 8.0, known)
    back = judging.inverse(found)
    assert (back.value, round(back.low, 9), round(back.high, 9)) == (0.25, 0.125, 0.5)
    wide = judging.quotient(Interval(1.0, 0.0, 2.0), Interval(1.0, 0.5, 1.0))
    assert wide.low < 1e-100, "an end that says nothing says nothing of the ratio"
    with pytest.raises(ValueError, match="above 0"):
        judging.quotient(Interval(0.0, 0.0, 0.0), Interval(1.0, 1.0, 1.0))


# ------------------------------------------------------------------------------------------------- verdicts


def test_rates_end_to_end_are_compared_where_as_much_was_carried(tmp_path):
    def with_rate(top_k, ns):
        def change(measurement):
            sent = synthetic.end_to_end(ns if measurement.case.backend == OURS else 1e5)
            return msgspec.structs.replace(measurement, end_to_end=msgspec.structs.replace(sent, top_k=top_k))

        return change

    plain, slower, best = (
        run(tmp_path / name, batches=(4,), change=with_rate(top_k, ns))
        for name, top_k, ns in (("a", 0, 1e5), ("b", 0, 1.5e5), ("c", 3, 1.5e5))
    )
    assert verdicts(plain, slower)[f"{OURS}, end to end", 4] == "SLOWER"
    assert (f"{OURS}, end to end", 4) not in verdicts(plain, best), "all scores are more than the best three"


def test_a_change_is_found_where_it_is_and_on_whatever_machine_state(before, tmp_path):
    """All of B took 1.4 times as long, as on a machine that others use: that is no change of ours."""
    after = run(
        tmp_path / "b",
        7,
        lambda case: 1.4 * {(OURS, 1): 0.8, (OURS, 4): 1.3}.get((case.backend, case.batch), 1.0),
    )
    assert verdicts(before, after) == {
        (OURS, 1): "FASTER", (OURS, 4): "SLOWER", (OURS, 16): "SAME",
        (THEIRS, 1): "", (THEIRS, 4): "", (THEIRS, 16): "",
    }  # fmt: skip
    found = {c.pair.batch: c for c in between(before, after).changes if c.pair.who == OURS}
    assert found[1].ratio.low < 1 / 0.8 < found[1].ratio.high
    assert found[1].by == "speed-up"
    said = sentences.verdict(between(before, after))
    assert said.startswith("B is 1.2")
    assert "faster in 1 of 3 cases (lenet5-digits on engine-cpu, batch 1)" in said


def test_the_bound_decides_what_counts(before, tmp_path):
    after = run(tmp_path / "b", 7, ours(4, 1.05))
    assert verdicts(before, after)[OURS, 4] == "SLOWER"
    assert verdicts(before, after, bound=0.15)[OURS, 4] == "SAME"
    for bound, code in (("2%", 1), ("15 %", 0), ("0.15", 0)):
        assert gate(before, after, "--fail-on", "slower", "--bound", bound) == code
    for bound in ("0", "x", "5%%", "120%", "-5%"):
        assert gate(before, after, "--bound", bound) == 2


def test_one_round_is_no_ground_for_a_verdict(before, tmp_path, capsys):
    after = run(
        tmp_path / "b",
        0,
        ours(None, 3.0),
        lambda m: msgspec.structs.replace(m, rounds=(0,), samples_ns=m.samples_ns[:3]),
    )
    assert set(verdicts(before, after).values()) == {"UNCLEAR", ""}
    assert gate(before, after, "--fail-on", "slower") == 2, "nor does such a gate pass"
    assert "no case can be decided (only one round" in capsys.readouterr().err


def test_an_unquiet_machine_is_no_ground_for_a_verdict(before, tmp_path, capsys):
    """Its interval knows nothing of what else may move it from run to run; nor does such a gate pass, also
    where others used the cores and no round moved."""

    def moved(m):
        if m.case.backend != OURS:
            return m
        rng = np.random.default_rng(m.case.batch)
        samples = (np.array(m.samples_ns).reshape(8, 6) * np.exp(rng.normal(0.0, 0.15, 8))[:, None]).ravel()
        told = msgspec.structs.replace(m.validity, warnings=("the machine was unquiet: it moved by 40%",))
        return msgspec.structs.replace(m, samples_ns=tuple(samples.tolist()), validity=told)

    after = run(tmp_path / "b", 7, ours(None, 7.0), moved)
    assert set(verdicts(before, after).values()) == {"UNCLEAR", ""}
    told = "not decided between A and B in 3 of 3 cases (the machine was unquiet)"
    assert told in sentences.verdict(between(before, after))
    assert gate(before, after, "--fail-on", "slower") == 2
    assert "measure again while nothing else runs" in capsys.readouterr().err
    assert gate(before, after) == 0
    load = {"cores": 2.0, "wall_s": 1.0, "others_s": 1.9}
    beside = run(tmp_path / "c", 7, ours(None, 3.0), lambda m: msgspec.structs.replace(m, load=load))
    assert gate(before, beside, "--fail-on", "slower") == 2
    assert "other programs used 1.9 of 2 cores" in capsys.readouterr().err


def test_reasons_that_differ_in_a_figure_alone_are_told_once() -> None:
    whys = [f"not decided: other programs used {used} of 2 cores" for used in (1.3, 1.2)]
    found = [SimpleNamespace(ratio=None, undecided=why) for why in (*whys, "not decided")]
    assert sentences._group("UNCLEAR", found, found, None).endswith(
        "in 3 of 3 cases (other programs used 1.2–1.3 of 2 cores)"
    )
    assert sentences._group("UNCLEAR", found[2:], found, None).endswith("in 1 of 3 cases")


def test_other_machines_are_compared_by_their_own_reference(before, tmp_path):
    after = run(tmp_path / "b", 7, lambda case: 5.0, environment={"cpu": "Other CPU", "cores": 4})
    found = between(before, after)
    assert not found.one_machine
    assert verdicts(before, after)[OURS, 1] == "SAME"
    assert all(change.ratio is None for change in found.changes if change.pair.reference)
    assert "different machines" in sentences.how(found)[0]
    assert [d.what for d in found.differences][:2] == ["CPU", "cores"]
    without = run(tmp_path / "c", 7, environment={"cpu": "Other CPU"}, backends=(OURS,))
    lone = run(tmp_path / "d", 7, backends=(OURS,))
    assert {c.apart for c in between(lone, without).changes} == {
        "two machines, and no reference beside it in both"
    }
    assert gate(lone, without, "--fail-on", "slower") == 2, "a gate that cannot fail is refused"


def test_without_a_reference_times_are_compared_and_doubted(tmp_path):
    a = run(tmp_path / "a", 1, backends=(OURS,))
    b = run(tmp_path / "b", 2, ours(4, 1.5), backends=(OURS,))
    found = between(a, b)
    assert {c.by for c in found.changes} == {"time"}
    assert all("by its time alone" in c.doubts[-1] for c in found.changes)
    ratios = next(column for column in tables.cases(found).columns if column.name == "ratio")
    assert all(ratios.shown(change).endswith(" !") for change in found.changes), "what is doubted is marked"
    assert verdicts(a, b)[OURS, 4] == "SLOWER"
    assert gate(a, b, "--fail-on", "slower") == 1


def test_what_else_differs_is_said_first(before, tmp_path, capsys):
    after = run(
        tmp_path / "b",
        environment={"driver": "590.1", "packages": {"numpy": "2.4.0", "onnxruntime-gpu": "1.28.0"}},
        job={"threads": 4, "images": (500,)},
        change=lambda m: msgspec.structs.replace(m, facts={"provider": "another"}),
        images=(500,),
    )
    assert gate(before, after) == 0
    out = capsys.readouterr().out
    told = [line for line in out.splitlines() if "→" in line]
    assert told[0] == "What else differs: driver: 580.65 → 590.1"
    assert "                   version of numpy: 2.3.1 → 2.4.0" in told
    assert "                   threads: default → 4" in told
    assert "provider of engine-cpu: CPUExecutionProvider → another" in out
    assert out.index("590.1") < out.index("B is as fast")
    assert "images" not in "".join(told), "cases match whatever the number of images their accuracy is of"


def test_clocks_that_differ_are_told(tmp_path):
    backends = ("engine-cuda", "ort-cuda")
    a = run(tmp_path / "a", backends=backends)
    slower = run(
        tmp_path / "b",
        backends=backends,
        change=lambda m: msgspec.structs.replace(
            m, telemetry=msgspec.structs.replace(m.telemetry, sm_clock_mhz=(1500.0, 1515.0))
        ),
    )
    assert [d.words for d in between(a, slower).differences] == ["SM clock: 1,980 MHz → 1,508 MHz"]


def test_a_precision_for_another_is_one_case(tmp_path):
    a = run(tmp_path / "a", precisions=("fp32",), backends=("ort-cuda",), batches=(4,))
    b = run(tmp_path / "b", precisions=("fp16",), backends=("ort-cuda",), batches=(4,))
    (change,) = between(a, b).changes
    assert change.pair.other == "fp32 → fp16"
    assert any(d.words == "the case of ort-cuda: fp32 → fp16" for d in between(a, b).differences)


def test_the_same_run_has_no_difference(before, capsys):
    assert gate(before, before, "--fail-on", "any") == 0
    out = capsys.readouterr().out
    assert "All else is the same in both runs" in out
    assert "B is as fast in 3 of 3 cases (within 2 %)." in out


def test_only_what_belongs_together_is_compared(before, tmp_path, capsys):
    other = run(tmp_path / "b", models=("alexnet-digits",))
    assert gate(before, other) == 2
    assert "no case in common" in capsys.readouterr().err
    assert gate(before, Path("bench/results/sample_ladder")) == 2
    assert "only two of a kind" in capsys.readouterr().err
    assert gate(before, other, tmp_path) == 2
    assert gate(before, tmp_path) == 2


def test_matching_takes_the_next_key_only_where_one_of_each_is_left():
    keys = (lambda item: item, lambda item: item[0])
    assert differs.matched(["a1", "b1"], ["b1", "a2"], keys) == [("a1", "a2"), ("b1", "b1")]
    assert differs.matched(["a1"], ["a2", "a3"], keys) == [("a1", None), (None, "a2"), (None, "a3")]


def test_which_layer_made_the_difference_is_told(tmp_path, capsys):
    """Its time in proportion: all of B took 1.5 times as long."""

    def with_layers(slow: float, rung: str, pace: float):
        def change(m):
            if m.case.backend != OURS:
                return m
            layers = tuple(
                Layer(nodes=(name,), op_type="Conv", output=name, rung=of, time_ns=ns * pace)
                for name, of, ns in (("conv1", "same", 4e4), ("conv2", rung, 6e4 * slow))
            )
            return msgspec.structs.replace(m, layers=layers)

        return change

    a = run(tmp_path / "a", change=with_layers(1.0, "tiled", 1.0))
    b = run(
        tmp_path / "b", 7, lambda case: 1.5 * ours(None, 1.6)(case), change=with_layers(2.0, "naive", 1.5)
    )
    change = next(c for c in between(a, b).changes if c.verdict == "SLOWER")
    assert re.fullmatch(
        r"by its layers' own times mostly conv2 \+(59|60)\.\d µs \(rung tiled → naive\), "
        "in proportion to the reference's time",
        where(change),
    )
    assert gate(a, b) == 0
    assert "slower, by its layers' own times mostly conv2 +" in " ".join(capsys.readouterr().out.split())
    faster = next(c for c in between(b, a).changes if c.verdict == "FASTER")
    assert "mostly conv2 −" in where(faster)
    assert where(next(c for c in between(a, a).changes if c.verdict == "SAME")) == ""


# -------------------------------------------------------------------------------------------------- the gate


def broken(disposition: str, batch: int = 4):
    def change(m):
        if (m.case.backend, m.case.batch) != (OURS, batch):
            return m
        return msgspec.structs.replace(m, disposition=disposition, reason="it fell over", samples_ns=())

    return change


@pytest.mark.parametrize("disposition", ["incorrect", "crashed", "unsupported", "out_of_memory", "cancelled"])
def test_no_gate_passes_a_case_that_lost_its_time(before, tmp_path, disposition, capsys):
    after = run(tmp_path / "b", change=broken(disposition))
    for fail_on in ("slower", "wrong", "any", "slower,wrong"):
        assert gate(before, after, "--fail-on", fail_on) == 1
    assert gate(before, after) == 0, "without a gate it only tells"
    assert "failed: lenet5-digits on engine-cpu, batch 4: " in capsys.readouterr().err


def test_what_is_wrong_in_both_is_wrong(tmp_path):
    a = run(tmp_path / "a", change=broken("incorrect"))
    b = run(tmp_path / "b", change=broken("incorrect"))
    assert gate(a, b, "--fail-on", "wrong") == 1
    assert gate(a, b, "--fail-on", "slower") == 0
    assert "(in A incorrect, too)" in next(c.wrong for c in between(a, b).changes if c.wrong)
    mended = run(tmp_path / "c")
    assert gate(a, mended, "--fail-on", "any") == 0, "and mended it is none"
    assert "1 mended (lenet5-digits on engine-cpu, batch 4)" in sentences.verdict(between(a, mended))


def test_a_case_that_b_meant_and_has_not_fails_and_one_it_left_out_does_not(before, tmp_path):
    """Half a run passes no gate; a run of fewer batch sizes is what was asked for."""
    half = run(tmp_path / "half")
    lines = (half / "results.jsonl").read_text().splitlines(keepends=True)
    (half / "results.jsonl").write_text("".join(lines[:4]))
    fewer = run(tmp_path / "fewer", batches=(1, 4))
    assert [gate(before, half, "--fail-on", name) for name in ("slower", "wrong", "any")] == [1, 1, 1]
    assert [gate(before, fewer, "--fail-on", name) for name in ("slower", "wrong", "any")] == [0, 0, 1]


def test_worse_answers_fail_only_where_anything_does(before, tmp_path):
    def worse(m):
        told = msgspec.structs.replace(m.accuracy, top1=0.96, agreement=0.99)
        return msgspec.structs.replace(m, accuracy=told)

    after = run(tmp_path / "b", change=worse)
    assert [gate(before, after, "--fail-on", name) for name in ("slower,wrong", "any")] == [0, 1]
    change = next(c for c in between(before, after).changes if c.pair.who == OURS)
    assert change.worse == "top-1 97.25 % → 96.00 %, agreement 100.00 % → 99.00 %"


def test_an_unknown_gate_is_refused(before):
    assert gate(before, before, "--fail-on", "slowr") == 2
    assert gate(before, before, "--format", "xml") == 2


# --------------------------------------------------------------------------------------------------- formats


@pytest.fixture(scope="module")
def after(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def change(m):
        if m.case.batch == 16 and m.case.backend == OURS:
            reason = "off by <a lot> & more\x07"
            return msgspec.structs.replace(m, disposition="incorrect", reason=reason, samples_ns=())
        error = ErrorStats(rel_l2=4e-7, max_abs=1.0, mean_abs=1.0, max_rel=1.0, bound=1e-5, ok=True)
        return msgspec.structs.replace(m, accuracy=msgspec.structs.replace(m.accuracy, output=error))

    return run(
        tmp_path_factory.mktemp("diff") / "after", 5, ours(4, 1.5), change, environment={"driver": "590.1"}
    )


def test_json_has_all_of_it(before, after, capsys):
    assert gate(before, after, "--format", "json", "--fail-on", "slower") == 1
    told = json.loads(capsys.readouterr().out)
    assert told["a"]["run"] == str(before)
    assert told["differences"] == [{"what": "driver", "of": "", "a": "580.65", "b": "590.1"}]
    cases = {(c["who"], c["batch"]): c for c in told["cases"]}
    slow = cases[OURS, 4]
    assert slow["verdict"] == "SLOWER"
    assert slow["by"] == "speed-up"
    assert slow["ratio_low"] <= slow["ratio"] <= slow["ratio_high"] < 1
    assert slow["ratio"] == pytest.approx(slow["b_speedup"] / slow["a_speedup"])
    assert (slow["a_error"], slow["b_error"]) == (2.1e-7, 4e-7)
    assert set(told["failing"]) == {slow["key"], cases[OURS, 16]["key"]}
    assert told["failing"][slow["key"]].startswith("1.50× slower (")


def test_junit_says_the_same_as_the_exit_code(before, after, tmp_path, capsys):
    file = tmp_path / "ci" / "diff.xml"
    assert gate(before, after, "--fail-on", "slower,wrong", "--junit", file) == 1
    root = ElementTree.parse(file).getroot()
    suite = root.find("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("6", "2", "0")
    failed = {case.get("name"): case.find("failure") for case in suite.iter("testcase")}
    kinds = {name: failure.get("type") for name, failure in failed.items() if failure is not None}
    assert kinds == {
        "lenet5-digits on engine-cpu, batch 4": "SLOWER",
        "lenet5-digits on engine-cpu, batch 16": "wrong",
    }
    assert (
        "off by <a lot> & more\N{REPLACEMENT CHARACTER}"
        in failed["lenet5-digits on engine-cpu, batch 16"].text
    )
    assert [p.get("value") for p in suite.iter("property") if p.get("name") == "differs"] == [
        "driver: 580.65 → 590.1"
    ]
    capsys.readouterr()
    assert gate(before, after, "--format", "junit") == 0
    assert 'failures="0"' in capsys.readouterr().out, "without a gate nothing fails"


def test_csv_and_markdown(before, after, capsys):
    assert gate(before, after, "--format", "csv") == 0
    lines = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {line["verdict"] for line in lines} == {"SLOWER", "SAME", ""}
    assert gate(before, after, "--format", "md") == 0
    said = capsys.readouterr().out
    assert said.index("## What else differs") < said.index("## What came of it")
    assert "| driver | 580.65 | 590.1 |" in said
    assert "off by \\<a lot\\> & more" in said


# -------------------------------------------------------------------------------------------------- baseline


def test_a_baseline_is_set_used_shown_and_cleared(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    first = run(Path("runs/first"))
    second = run(Path("runs/second"), 3, ours(1, 2.0))
    run(Path("runs/other"), models=("alexnet-digits",))
    assert gate(second) == 2
    assert "runs baseline set RUN" in capsys.readouterr().err
    assert main.main(["runs", "baseline", "set", str(first)]) == 0
    assert gate(second, "--fail-on", "slower") == 1
    assert "A  first" in capsys.readouterr().out
    assert gate("runs/other") == 2, "another model's is none of its own"
    assert gate(first) == 2, "it is not held against itself"
    assert main.main(["runs", "baseline", "set", str(second)]) == 0
    assert main.main(["runs", "baseline", "set", "runs/other"]) == 0
    capsys.readouterr()
    assert main.main(["runs", "baseline", "show"]) == 0
    told = capsys.readouterr().out
    assert "runs/second" in told
    assert "runs/first" not in told, "one for the same models, the latest"
    assert main.main(["runs", "list"]) == 0, "the file beside the runs is none of them"
    moved = Path("elsewhere")
    Path("runs").rename(moved)
    assert gate("elsewhere/first", "--runs", "elsewhere") == 0, "it goes where the runs go"
    assert gate("elsewhere/first") == 0
    assert gate("elsewhere/first", "--runs", "runs") == 2
    assert main.main(["runs", "baseline", "clear", "elsewhere/second", "--runs", "elsewhere"]) == 0
    assert gate("elsewhere/first", "--runs", "elsewhere") == 2
    assert main.main(["runs", "baseline", "clear", "--runs", "elsewhere"]) == 0
    assert not (moved / "baselines.json").exists()
    for arguments in (["show"], ["clear"], ["set", "elsewhere"], ["set", "nowhere"]):
        assert main.main(["runs", "baseline", *arguments]) == 2


def test_a_baseline_that_is_gone_or_broken_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run(Path("runs/second"))
    main.main(["runs", "baseline", "set", str(run(tmp_path / "far"))])
    (tmp_path / "far").rename(tmp_path / "away")
    assert gate("runs/second") == 2
    assert "far holds no run" in capsys.readouterr().err
    assert main.main(["runs", "baseline", "show"]) == 0
    assert "is not there any more" in " ".join(capsys.readouterr().out.split())
    Path("runs/baselines.json").write_text("{")
    assert gate("runs/second") == 2
    assert "baselines.json is broken" in capsys.readouterr().err


def test_what_is_in_doubt_and_what_both_refuse():
    """A recorded ladder, held against itself."""
    found = between(Path("tests/data/conv_on_two_cores"), Path("tests/data/conv_on_two_cores"))
    judged = [c for c in found.changes if c.verdict]
    assert judged
    assert {c.by for c in judged} == {"speed-up"}
    assert {c.verdict for c in judged} <= {"SAME", "UNCLEAR"}
    assert any(c.apart == "unsupported in A and unsupported in B" for c in found.changes)
    assert not any(judging.reason(c, ("any",)) for c in found.changes), "what both refuse is no change"
    assert found.who == "rung"
    told = [line for line in sentences.remarks(found) if line.endswith("(of A and B)")]
    assert len(told) == 1, "what a rung and its reference are doubted for, once"
