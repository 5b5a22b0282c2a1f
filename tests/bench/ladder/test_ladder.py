"""The ladder as users meet it: a command, a folder, tables and charts; and rungs that kill their worker."""

from __future__ import annotations

import csv
import io
import json
import os
import time
from collections.abc import Callable
from dataclasses import fields
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Literal

import msgspec
import numpy as np
import pytest

import main
from bench.commands import ladder_watch
from bench.questions import ladder_plan
from bench.questions import rung_template as ladder_template
from bench.results import saves
from bench.results.ladder_records import REFERENCE, Ladder, LadderJob, RungCase, RungMeasurement
from bench.results.ladder_rows import bound, rows
from bench.results.machine_limits import MachineLimits
from bench.results.messages import CaseStarted
from bench.results.records import ErrorStats
from bench.results.summaries import BESIDE_SAMPLE
from bench.run import client
from bench.run import watching as again
from bench.run.kinds.ladder import KIND as LADDER
from bench.run.kinds.ladder import LadderFolder
from bench.views.charts import ladder_charts
from bench.views.drawing import draw
from bench.views.sentences.limits import NAMES
from bench.views.tables import ladder_tables
from bench.views.tables.table import to_json, to_markdown
from engine import probe
from kernels import nvrtc, occupancy, registry
from kernels.errors import InputError
from kernels.ops import OPS, members
from kernels.ops.conv import Conv
from models.names import DEFAULT_MODEL
from tests.bench.ladder.test_judge import CONV, PLANTED

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("in_a_folder")]

NEWER = ("sm_80", "sm_90")  # that have matrix units as the probes ask for them
HEADER = '# op = "conv"\n# rung = {number}\n# name = "{name}"\n# idea = "Of a test."\n'
CRASH = """import os
import signal


def bind(p, inputs, output, workspace):
    return lambda: os.kill(os.getpid(), signal.SIGSEGV)
"""
ENDLESS = """import time


def bind(p, inputs, output, workspace):
    def run():
        while True:
            time.sleep(0.01)

    return run
"""


def write(folder: Path, number: int, name: str, body: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{number}_{name}.py"
    path.write_text(HEADER.format(number=number, name=name) + body)
    return path


def small_job(**fields: object) -> LadderJob:
    made = {"budget_s": 0.02, "threads": 1, "quick": True, "timeout_s": 30.0, "instances": 1} | fields
    return ladder_plan.job_of(CONV, "cpu", **made)


def climb(
    job: LadderJob, path: Path, hear: Callable[[client.Event], None] = lambda event: None
) -> tuple[LadderFolder, dict[str, RungMeasurement]]:
    planned = ladder_plan.plan(job)
    folder = LADDER.create(path, planned)
    client.run(job, planned.cases, folder, hear)
    return folder, {m.case.key: m for m in folder.measurements()}


# --------------------------------------------------------------------------------------- a ladder in a worker


@pytest.mark.sampled(4, "long")
def test_rungs_that_crash_hang_or_are_wrong_cost_themselves_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    write(own, 91, "crash", CRASH)
    write(own, 92, "endless", ENDLESS)
    job = small_job(
        rungs=("im2col", "crash", "endless", "stray_write", "unwritten_edge"),
        kernel_dirs=(str(own), str(PLANTED)),
        timeout_s=60.0,
    )
    jumped: list[float] = []  # the clock, once the endless one runs: how long the others take is no matter
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + sum(jumped))
    monkeypatch.setattr(client, "time", clock)

    def hear(event: client.Event) -> None:
        if isinstance(event, CaseStarted) and event.case.key == "endless" and event.stage == "check":
            jumped.append(job.timeout_s + 1)

    folder, found = climb(job, tmp_path / "ladder", hear)
    told = {name: m.disposition for name, m in found.items()}
    assert told == {
        "im2col": "ok",
        "crash": "crashed",
        "endless": "timed_out",
        "stray_write": "incorrect",
        "unwritten_edge": "incorrect",
        "reference": "ok",
    }
    assert "SIGSEGV" in found["crash"].reason
    assert "after 60 s" in found["endless"].reason
    assert found["im2col"].samples_ns
    assert found["im2col"].checks >= 4  # before, during and after timing
    assert found["im2col"].case.user is False
    finding = found["unwritten_edge"].finding
    assert finding is not None
    with np.load(folder.path / finding.map) as file:
        assert np.isnan(file["error_map"]).any() or file["error_map"].max() > 1e-3
    assert folder.header.reached is not None
    assert folder.header.reached.flops_per_s > folder.header.reached.bytes_per_s / 100
    assert LADDER.open(folder.path).header == folder.header


@pytest.mark.sampled(4, "long")
def test_a_whole_model_runs_with_each_rung_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main.main(
        ["ladder", "conv", "--model", DEFAULT_MODEL, "--node", "1", "--device", "cpu", "--rung", "2",
         "--rung", "im2col", "--rung", "fft", "--whole-model", "--budget", "0.02", "--instances", "1",
         "--threads", "1",
         "--charts", "svg", "--format", "csv", "--out", "here"]
    )  # fmt: skip
    out, err = capsys.readouterr()
    assert code == 0, err
    found = list(csv.DictReader(io.StringIO(out)))
    assert [row["rung"] for row in found] == ["im2col", "fft", "reference"] * 2
    assert all(row["disposition"] == "ok" for row in found)
    assert float(found[0]["median_s"]) > 0
    assert found[0]["speedup"]
    assert found[0]["flops_per_s"]
    assert not found[3]["flops_per_s"]
    assert {path.name for path in Path("here/charts").iterdir()} == {
        "ladder-speed.svg",
        "ladder-limits.svg",
    }
    held = LADDER.open(Path("here")).header
    assert held.job.node == "conv2"
    assert held.command.startswith("python main.py")


# --------------------------------------------------------------------------------------- what can be asked


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["convv"], "did you mean 'conv'"),
        (["conv", "--model", DEFAULT_MODEL, "--node", "conv9"], "did you mean 'conv"),
        (["conv", "--model", DEFAULT_MODEL, "--node", "7"], "counted from 0"),
        (["lrn", "--model", DEFAULT_MODEL], "has no lrn"),
        (["conv", "--shape", "1,2,3"], "N,C,H,W,M,K"),
        (["conv", "--shape", "1,3,8,8,4,3", "--group", "2"], "--group 2 does not divide"),
        (["conv", "--shape", "1,1,2,2,1,5"], "does not fit an image"),
        (["conv", "--shape", "1,1,9,9,1,3", "--pad", "1,2,3"], "--pad is"),
        (["conv", "--shape", "1,1,9,9,1,3", "--model", "x"], "--shape and --model"),
        (["conv", "--shape", "1,1,9,9,1,3", "--device", "gpu"], "'gpu' is not known"),
        (["conv", "--shape", "1,1,9,9,1,3", "--rung", "im2cool", "--device", "cpu"], "did you mean 'im2col'"),
        (["conv", "--shape", "1,1,9,9,1,3", "--whole-model", "--device", "cpu"], "--whole-model needs"),
        (["conv", "--shape", "1,1,9,9,1,3", "--precision", "fp8", "--device", "cpu"], "'fp8' is not known"),
        (["conv", "--new"], "ladder --new conv"),
        (["conv", "--shape", "1,1,9,9,1,3", "--watch", "--device", "cpu"], "--kernels DIR"),
    ],
)  # fmt: skip
def test_mistakes_are_told_in_one_sentence(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["ladder", *arguments]) == 2
    out, err = capsys.readouterr()
    assert words in err
    assert err.count("\n") == 1
    assert not out


def test_a_shape_by_hand() -> None:
    made = ladder_plan.conv_of((2, 4, 9, 11, 6, 3, 5), (2, 1), (1, 2), (1,), 2, False, "relu")
    assert made == Conv(2, 4, 9, 11, 6, 3, 5, 5, 11, 2, 1, 1, 2, 1, 2, 1, 1, 2, False, "relu")


def test_a_file_that_is_no_rung_stops_the_ladder_before_anything_runs(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "91_odd.py").write_text('# op = "conv"\n# rung = 91\n# name = "odd"\nraise SystemExit\n')
    with pytest.raises(InputError, match=r"91_odd\.py: the header lacks 'idea'"):
        ladder_plan.plan(small_job(kernel_dirs=(str(own),)))


# ------------------------------------------------------------------------------ a kernel of the user's own


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_template_is_a_rung_for_every_operator(op: str, device: str, tmp_path: Path) -> None:
    path = ladder_template.write(op, device, tmp_path / "own")
    rung = registry.find(device, op, "mine", [tmp_path / "own"])
    assert rung.path == path.resolve()
    assert rung.number == ladder_template.FIRST
    text = " ".join(path.read_text().replace("// ", "").split())
    assert all(member.name in text for member in (fields(OPS[op]) if device == "cpu" else members(OPS[op])))
    if device == "cuda" and nvrtc.unavailable() is None and op in ("conv", "gemm", "pool"):
        assert nvrtc.compile_rung(rung, "sm_80").exists()
    again = ladder_template.write(op, device, tmp_path / "own")
    assert again.name.startswith(f"{ladder_template.FIRST + 1}_mine_2")


def test_templates_of_several_operators_lie_in_one_folder_and_none_is_written_over(tmp_path: Path) -> None:
    paths = [ladder_template.write(op, "cpu", tmp_path) for op in ("conv", "gemm", "pool")]
    assert [path.name for path in paths] == ["90_mine.py", "91_mine.py", "92_mine.py"]
    for op, path in zip(("conv", "gemm", "pool"), paths, strict=True):
        assert registry.find("cpu", op, "mine", [tmp_path]).path == path.resolve()
        assert "compute_capability" not in path.read_text()


def test_what_a_new_template_says_to_try_names_a_model_where_the_default_one_has_no_such_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for op, words, judged in (
        ("gemm", "ladder gemm --device cpu", "90_mine.py"),
        ("cast", "ladder cast --model MODEL --device cpu", "90_mine.py --model MODEL"),
    ):
        assert main.main(["ladder", "--new", op, str(tmp_path / op), "--device", "cpu"]) == 0
        said = capsys.readouterr().err
        assert words in said
        assert said.rstrip().endswith(judged)
    assert ladder_plan.model_with("gemm", "cpu", (DEFAULT_MODEL,)) == DEFAULT_MODEL
    with pytest.raises(InputError, match=f"{DEFAULT_MODEL} have no lrn; name a model that has one"):
        ladder_plan.model_with("lrn", "cpu", (DEFAULT_MODEL,))


@pytest.mark.sampled(6, "longest")
def test_a_watch_names_saved_mistakes_and_times_what_is_right_beside_what_it_is_compared_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = ladder_template.write("conv", "cpu", tmp_path / "own")
    text = path.read_text()
    job = small_job(rungs=("im2col", "mine"), kernel_dirs=(str(path.parent),))
    seen: list[tuple[Ladder, dict[str, RungMeasurement]]] = []
    at_once: list[str] = []  # saved as soon as something is shown

    def show(ladder: Ladder, measurements: list[RungMeasurement]) -> None:
        seen.append((ladder, {m.case.rung: m for m in measurements}))
        if at_once:
            save(path, at_once.pop())

    def doubts(shown: tuple[Ladder, dict[str, RungMeasurement]]) -> tuple[str, ...]:
        return next(r for r in rows(shown[0], list(shown[1].values())) if r.name == "mine").speedup_doubts

    def mine() -> RungMeasurement:
        return seen[-1][1]["mine"]

    following = ladder_watch.Watch(job, show)
    try:
        following.first()
        first = seen[-1][1]
        assert mine().disposition == "ok"
        assert mine().case.user
        assert not any(again.EARLIER in doubt for doubt in doubts(seen[-1]))
        assert not following.poll()
        save(path, text.replace("if p.bias:", "if False:"))
        assert following.poll()
        finding = mine().finding
        assert finding is not None
        assert finding.fault == "bias"
        assert seen[-1][1]["im2col"] == first["im2col"]  # it was not run again
        save(path, text.replace("# idea", "# idee"))
        assert following.poll()  # no rung any more: told, nothing executed
        assert "idee" in capsys.readouterr().err
        save(path, text.replace("padded.fill(0)", "padded.fil(0)"))
        assert following.poll()
        assert "90_mine.py:" in mine().reason
        assert "fil" in mine().reason
        # What is right is timed again with all that it is compared with, once the verdict is shown.
        save(path, text)
        assert following.poll()
        verdict, after = seen[-2:]
        assert verdict[1]["mine"].disposition == "ok"
        assert verdict[1][REFERENCE].samples_ns == first[REFERENCE].samples_ns
        assert any(again.EARLIER in doubt for doubt in doubts(verdict))
        for name in ("mine", "im2col", REFERENCE):  # all that is compared, together
            assert after[1][name].samples_ns != verdict[1][name].samples_ns
        assert not any(again.EARLIER in doubt for doubt in doubts(after))
        saved = saves.read(path.parent)
        # The next save drops it: nothing of it is shown, and what was saved runs.
        at_once.append(text + "\n\n")
        save(path, text + "\n")
        assert following.poll()
        assert seen[-1][1][REFERENCE].samples_ns == after[1][REFERENCE].samples_ns
        assert any(again.EARLIER in doubt for doubt in doubts(seen[-1]))
        assert following.poll()
        assert seen[-1][1][REFERENCE].samples_ns != after[1][REFERENCE].samples_ns
        assert not any(again.EARLIER in doubt for doubt in doubts(seen[-1]))
        assert not following.poll()
    finally:
        following.close()
    wrong, broken, right = saved  # what was no rung came to nothing
    assert (wrong.verdict, wrong.source) == ("incorrect", text.replace("if p.bias:", "if False:"))
    assert broken.disposition != "ok"
    assert right.disposition == "ok"
    assert right.gain is not None, "over the version before the mistakes"


def save(path: Path, text: str) -> None:
    path.write_text(text)
    later = time.time() + len(text) % 7 + 1  # a clock of whole seconds would not tell two saves apart
    os.utime(path, (later, later))


# ------------------------------------------------------------------------------------------ tables and charts


def measured(name: str, number: int, time_ns: float, **fields: object) -> RungMeasurement:
    scope = "reference" if name == REFERENCE else "rung"
    case = RungCase(rung=name, number=number, scope=scope, **fields)  # type: ignore[arg-type]
    error = ErrorStats(rel_l2=1e-7, max_abs=1e-6, mean_abs=1e-7, max_rel=1e-6, bound=1e-5, ok=True)
    samples = tuple(time_ns * (1 + 0.001 * (i % 5)) for i in range(20))
    return RungMeasurement(case=case, disposition="ok", samples_ns=samples, rounds=(0, 10), error=error)


def example() -> tuple[Ladder, list[RungMeasurement]]:
    limits = MachineLimits(
        device="cpu",
        bytes_per_s=1e10,
        flops_per_s=1e12,
        copied_by="a copy",
        multiplied_by="a product",
        measured_on="here",
        measured_at="now",
    )
    refused = RungCase(rung="winograd", number=4, side=True)
    found = [
        measured("naive", 1, 8e6),
        measured("better", 2, 2e6),
        RungMeasurement(case=refused, disposition="unsupported", reason="needs kernel = 3"),
        measured("fft", 5, 4e6, side=True),
        measured("mine", 90, 1e6, user=True),
        measured("reference", 0, 1e6),
    ]
    ladder = msgspec.structs.replace(
        ladder_plan.plan(small_job(rungs=("im2col",))),
        cases=tuple(m.case for m in found),
        limits={limits.device: limits},
        flops=10**9,
        nbytes=10**6,
    )
    return ladder, found


def test_products_of_eight_bits_are_held_against_a_limit_of_their_own() -> None:
    ladder, found = example()
    replaced = msgspec.structs.replace
    assert ladder.reached is not None
    limits = replaced(ladder.reached, matrix_flops_per_s={"int8": 4e12}, matrix_by="products of bytes")
    own = replaced(ladder, limits={"cpu": limits})
    of_bytes = replaced(own, job=replaced(ladder.job, op="qgemm"))
    unknown = replaced(of_bytes, limits=ladder.limits)
    shares = [
        {row.name: row.limit for row in rows(each, found)}["better"] for each in (own, of_bytes, unknown)
    ]
    assert shares[0] is not None
    assert shares[1] is not None
    assert shares[1] == pytest.approx(shares[0] / 4)
    assert shares[2] is None
    told = [
        [line for line in ladder_tables.limit_lines(each) if "products of bytes" in line]
        for each in (own, of_bytes)
    ]
    assert told == [[], ["limit of eight-bit products measured here: 4.00 TOP/s in int8 (products of bytes)"]]


def test_rows_say_what_each_rung_gains_and_how_near_the_limit_it_is() -> None:
    ladder, found = example()
    by_name = {row.name: row for row in rows(ladder, found)}
    better = by_name["better"]
    assert better.gain is not None
    assert better.gain.value == pytest.approx(4, rel=0.01)
    assert better.below == "naive"
    assert better.speedup is not None
    assert better.speedup.value == pytest.approx(0.5, rel=0.01)
    assert better.limit == pytest.approx(0.5, rel=0.01)  # 1 ms of arithmetic in 2 ms
    assert by_name["mine"].below == "better"  # nothing is below a side rung or another's
    assert by_name["naive"].gain is None
    assert by_name["winograd"].time is None
    assert by_name["reference"].speedup is None


@pytest.mark.parametrize(
    ("l2", "cache_nbytes", "limit", "what"),
    [
        ("warm", 10**6, 0.25, "the caches"),
        ("warm", 10**6 - 1, 0.5, "memory"),  # it has no room there
        ("cold", 10**6, 0.5, "memory"),
    ],
)
def test_bytes_that_lie_in_a_cache_come_at_its_rate(
    l2: Literal["warm", "cold"], cache_nbytes: int, limit: float, what: str
) -> None:
    ladder, found = example()
    assert ladder.reached is not None
    limits = msgspec.structs.replace(
        ladder.reached, bytes_per_s=1e9, cache_bytes_per_s=2e9, cache_nbytes=cache_nbytes
    )
    job = msgspec.structs.replace(ladder.job, l2=l2)
    ladder = msgspec.structs.replace(
        ladder, limits={limits.device: limits}, job=job, flops=10**6, least_nbytes={}
    )
    made = rows(ladder, found)
    assert next(row.limit for row in made if row.name == "better") == pytest.approx(limit, rel=0.01)
    assert NAMES[bound(ladder)] == what
    told = " ".join(ladder_tables.remarks(ladder, made))
    assert ("its bytes count at their rate, 2.00 GB/s as measured" in told) == (what == "the caches")
    assert "a share above 100 %" not in told
    chart = ladder_charts.limits(ladder, made)
    assert chart is not None
    assert what in chart.finding
    point = next(series.points[0] for series in chart.panels[0].series if series.label == "02 better")
    assert point.x == pytest.approx(limit, rel=0.01)
    assert what in point.text


def test_tables_have_every_rung_and_machine_formats_plain_numbers() -> None:
    from rich.console import Console

    ladder, found = example()
    made = rows(ladder, found)
    screen = Console(width=130, record=True, file=io.StringIO())
    screen.print(ladder_tables.terminal(ladder, made))
    text = screen.export_text()
    assert "90 mine (yours)" in text
    assert "04 winograd (side): needs kernel = 3" in text
    assert "1.00 TFLOP/s" in text or "1,000 GFLOP/s" in text
    decoded = json.loads(to_json(ladder_tables.output(ladder, made, [])))
    assert decoded["rungs"][1]["gain"] == pytest.approx(4, rel=0.01)
    assert decoded["limits"]["bytes_per_s"] == 1e10
    assert all(
        line.startswith("|") for line in to_markdown(ladder_tables.table(made), by_name=True).splitlines()
    )


def test_a_crowd_of_points_has_the_names_of_those_that_lead() -> None:
    """Forty rungs in four lanes: names led far away from their points."""
    folder = LADDER.open(BESIDE_SAMPLE[0])
    crowded = ladder_charts.limits(folder.header, rows(folder.header, folder.measurements()))
    ladder, found = example()
    few = ladder_charts.limits(ladder, rows(ladder, found))
    assert crowded is not None
    assert few is not None
    drawn = draw.render(crowded, ("svg",))["svg"].decode()
    assert all(name in drawn for name in ("10 whole_image", "38 rows_fp16", "ONNX Runtime (CUDA) in tf32"))
    assert "01 naive" not in drawn
    assert "Where not all names have room" in drawn
    alone = draw.render(few, ("svg",))["svg"].decode()
    assert all(name in alone for name in ("01 naive", "02 better", "90 mine"))
    assert "Where not all names have room" not in alone


@pytest.mark.parametrize(
    "change",
    [
        {"bytes_per_s": 0.0},
        {"bytes_per_s": 1e-300},
        {"flops_per_s": 1e300},
        {"cache_bytes_per_s": -1.0},
        {"cache_bytes_per_s": 1e-300},
        {"cache_nbytes": -1},
        {"nearest_nbytes": -1},
        {"matrix_flops_per_s": {"tf32": -1.0}},
    ],
)
def test_limits_that_no_machine_has_are_refused(change: dict[str, object]) -> None:
    """Of what somebody sent: no chart can be drawn under them."""
    ladder, _ = example()
    assert ladder.reached is not None
    read = msgspec.to_builtins(ladder.reached) | change
    with pytest.raises(msgspec.ValidationError, match="limits that no machine has"):
        msgspec.convert(read, MachineLimits)
    unknown = {"cache_bytes_per_s": 0.0, "cache_nbytes": 0, "nearest_nbytes": 0}
    assert msgspec.convert(msgspec.to_builtins(ladder.reached) | unknown, MachineLimits) == ladder.reached


def test_no_figure_is_cut_where_a_terminal_is_narrow() -> None:
    """What the compiler says of a kernel stands below then, of those rungs of which it says anything."""
    from rich.console import Console

    ladder, found = example()
    compiled = {
        "registers": 32,
        "shared_nbytes": 784,
        "stack_nbytes": 8,
        "spill_nbytes": 24,
        "occupancy": 1.0,
    }
    in_tf32 = msgspec.structs.replace(found[1].case, rung="tensor_tf32_of_a_long_name", precision="tf32")
    found[1] = msgspec.structs.replace(found[1], case=in_tf32, compiled=compiled)
    for width, parts in ((130, 2), (200, 1)):
        screen = Console(width=width, record=True, file=io.StringIO())
        screen.print(ladder_tables.terminal(ladder, rows(ladder, found)))
        lines = screen.export_text().splitlines()
        assert sum(line.startswith("rung ") for line in lines) == parts
        assert "…" not in "".join(lines)
        assert all(figure in "".join(lines) for figure in ("8.02 ms", "784 B", "100 %"))
        assert sum(line.startswith("02 tensor_tf32_of_a_long_name ") for line in lines) == parts
        assert sum(line.startswith("01 naive ") for line in lines) == 1


def test_charts_show_the_reference_as_the_line_to_beat() -> None:
    ladder, found = example()
    speed, near = ladder_charts.charts(ladder, rows(ladder, found))
    alone = ladder_charts.charts(ladder, [row for row in rows(ladder, found) if row.case.is_reference])
    assert speed.name not in {chart.name for chart in alone}, "a picture without a bar"
    (panel,) = speed.panels
    assert panel.baseline == pytest.approx(1e12, rel=0.01)
    assert len(panel.bars) == 5
    assert [bar.total for bar in panel.bars][2] == "refused"
    assert {category.key for category in speed.categories} == {"fp32", "side", "yours"}
    assert "mine is the fastest" in speed.finding
    assert any(series.marker == "*" for series in near.panels[0].series), "the reference has its share, too"
    for chart in (speed, near):
        assert draw.render(chart, ("svg",))["svg"].startswith(b"<?xml")


# ------------------------------------------------------------------------------------- limits and occupancy


@pytest.mark.sampled(4, "long")
def test_probes_compile_without_a_gpu() -> None:
    if nvrtc.unavailable() is not None:
        pytest.skip(str(nvrtc.unavailable()))
    for name, arch in [
        ("copy", "sm_75"),
        ("memory", "sm_75"),
        ("cache", "sm_90"),
        ("fma", "sm_90"),
        *product(map("mma_{}".format, probe.MMA), NEWER),
        *product(map("wgmma_{}".format, probe.WGMMA), ["sm_90"]),
    ]:
        used = nvrtc.resources(nvrtc.compile_rung(probe.probe(name), arch))
        assert used is not None
        assert used.spill_nbytes == 0


@pytest.mark.parametrize("capability", [(7, 5), (8, 0), (9, 0)])
def test_the_gpus_limits_are_measured_in_every_precision_it_has(
    capability: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    digits = f"{capability[0]}{capability[1]}"
    device = SimpleNamespace(compute_capability=digits, attributes={"MultiProcessorCount": 10})
    memory = SimpleNamespace(ptr=0, memset=lambda *_: None)
    cuda = SimpleNamespace(Device=lambda: device, alloc=lambda _: memory)
    asked = []

    def best(cupy: object, name: str, arch: str, blocks: int, arguments: tuple[object, ...]) -> float:
        asked.append(name)
        assert (arch, blocks) == (f"sm_{digits}", 160)
        return 1e-2 if name in ("wgmma_tf32", "wgmma_int8") else 1e-3

    monkeypatch.setattr(probe, "import_cupy", lambda: SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(probe, "_best_on_device", best)
    reached = probe.cuda()
    if capability < (8, 0):
        assert asked == ["copy", "memory", "fma"]
        assert reached.matrix_missing.endswith(
            "needs compute capability 8.0 or newer, and this device has 7.5"
        )
        assert not reached.matrix_flops_per_s
    else:
        # 160 blocks of 8 warps, 512 rounds of 32 products.
        tf32 = 160 * 8 * 512 * 32 * (2 * 16 * 8 * 8) / 1e-3
        fp16, int8 = 2 * tf32, 4 * tf32
        if capability == (9, 0):  # the faster instruction is the limit: 2 groups, 4 products each a round
            fp16 = 160 * 2 * 512 * 4 * (2 * 64 * 192 * 16) / 1e-3
            assert "mma.sync" in reached.matrix_by
            assert "wgmma" in reached.matrix_by
        assert reached.matrix_flops_per_s == pytest.approx(
            {"tf32": tf32, "fp16": fp16, "bf16": fp16, "int8": int8}
        )
        assert not reached.matrix_missing


@pytest.mark.parametrize(
    ("capability", "threads", "registers", "shared", "expected"),
    [
        ((9, 0), 256, 32, 0, 1.0),
        ((9, 0), 256, 128, 0, 0.25),  # 65,536 registers: 512 threads of 2,048
        ((9, 0), 1024, 33, 0, 0.5),  # 40 registers after rounding up: one block
        ((9, 0), 256, 32, 48 << 10, 0.5),  # 4 blocks of 49 KiB in 228 KiB
        ((8, 6), 128, 40, 0, 1.0),
        ((7, 5), 1024, 32, 0, 1.0),
        ((8, 0), 32, 16, 0, 0.5),  # 32 blocks of one warp at most
        ((3, 5), 256, 32, 0, None),
    ],
)
def test_theoretical_occupancy(
    capability: tuple[int, int], threads: int, registers: int, shared: int, expected: float | None
) -> None:
    assert occupancy.theoretical(capability, threads, registers, shared) == expected


def test_a_folder_that_holds_something_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "note").write_text("mine")
    with pytest.raises(InputError, match="holds something else"):
        LADDER.create(tmp_path, ladder_plan.plan(small_job()))
    with pytest.raises(InputError, match="holds no ladder"):
        LADDER.open(tmp_path / "none")
