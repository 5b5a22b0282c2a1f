"""A recorded profile gives exact tables, findings, traces and charts."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import msgspec
import pytest
from rich.console import Console

from bench.results import event_files as profile_store
from bench.results.events import Counters, Events, HostSpan, Mark
from bench.results.profile_records import Breakdown, Clock, Operator, Profile, ProfileJob, Share
from bench.run.kinds.profile import KIND as PROFILE
from bench.views import profile as saved
from bench.views.charts import profile_charts
from bench.views.drawing import draw_timeline, draw_together
from bench.views.reports import profile_report
from bench.views.sentences import profile_findings, profile_remarks
from bench.views.sentences.profile_findings import OpFinding
from bench.views.tables import course_report as profile_course
from bench.views.tables import event_lines as profile_lines
from bench.views.tables import profile_tables
from bench.views.tables.table import FORMATS, to_csv, to_json, with_headings
from kernels.errors import InputError
from tests.bench.profile import profile_cases
from tests.bench.profile.profile_cases import LIMITS, profile
from tests.bench.undrawn import undrawn

pytestmark = pytest.mark.slow

EVENTS = profile_cases.events()
HEADER = Profile(
    job=ProfileJob(model="small", backends=("engine-cuda",), batches=(16,)),
    cases=(profile_cases.CASE,),
    limits={"cuda": LIMITS},
    command="python main.py profile small",
)
GEMM = "void cutlass::Kernel<cutlass::gemm::Gemm<float> >(cutlass::gemm::Gemm<float>::Params)"


def rows(table):
    return {row["name"]: (row["calls"], row["time_ns"]) for row in table.rows}


def test_activities_by_name_operator_and_node():
    made = profile()
    assert rows(profile_tables.activities(made, EVENTS)) == {
        GEMM: (4, 3000),
        "memcpy HtoD": (2, 400),
        "memcpy DtoH": (2, 200),
        "pool": (2, 60),
    }
    by_operator = rows(profile_tables.activities(made, EVENTS, "operator"))
    assert by_operator == {
        "Conv": (2, 2000),
        "Gemm": (2, 1000),
        "MaxPool": (2, 60),
        "memcpy HtoD": (2, 400),
        "memcpy DtoH": (2, 200),
    }
    by_node = rows(profile_tables.activities(made, EVENTS, "node"))
    assert by_node["conv1 + relu1"] == (2, 2000)
    assert rows(profile_tables.activities(made, EVENTS, match="memcpy h")) == {"memcpy HtoD": (2, 400)}


def test_a_line_has_what_nvprof_shows():
    (line, *_) = profile_tables.activities(profile(), EVENTS).rows
    assert line == {
        "share": 3000 / 3660,
        "time_ns": 3000,
        "calls": 4,
        "mean_ns": 750,
        "min_ns": 500,
        "median_ns": 750,
        "max_ns": 1000,
        "std_ns": 250,
        "name": GEMM,
    }


def test_calls_count_each_once_and_by_window():
    made = profile()
    assert rows(profile_tables.calls(made, EVENTS)) == {
        "cudaStreamSynchronize": (2, 3120),
        "cudaLaunchKernel": (6, 300),
        "cudaMemcpyAsync": (4, 200),
    }
    assert rows(profile_tables.calls(made, EVENTS, "create")) == {
        "cudaMalloc": (1, 2000),
        "cudaHostAlloc": (1, 1000),
    }
    assert rows(profile_tables.calls(made, EVENTS, "close")) == {"cudaFreeHost": (1, 3000)}
    assert sum(row["share"] for row in profile_tables.calls(made, EVENTS, "all").rows) == pytest.approx(1)


def test_the_lines_that_take_ninety_percent_are_told():
    found = profile_lines.lines(EVENTS.activities, profile_lines.key_of("name"))
    assert [line.name for line in profile_lines.most(found)] == [GEMM, "memcpy HtoD"]
    assert [line.name for line in profile_lines.most(found, 0.5)] == [GEMM]
    words = profile_lines.most_words(found, "GPU activities")
    assert words == "92.9 % of the time of GPU activities: Gemm 82.0 %, memcpy HtoD 10.9 %"
    assert profile_lines.most([]) == []


def test_the_parts_of_a_pass_add_up_beside_the_unprofiled_median():
    (row,) = profile_tables.breakdown([profile()]).rows
    parts = {key: value for key, value in row.items() if key.endswith("_ns")}
    for other in ("wall_ns", "unprofiled_ns", "profiled_ns", "profilers_ns"):
        parts.pop(other)
    assert sum(parts.values()) == row["wall_ns"] == 2500
    assert (row["Conv_ns"], row["Gemm_ns"], row["copy_in_ns"]) == (1000, 500, 200)
    assert row["launch_gaps_ns"] == 100 + 100 + 70 + 100  # before a copy or a kernel starts, and between
    assert row["profilers_ns"] == 2500 - 2410


def test_an_empty_table_says_why():
    table = profile_tables.activities(profile(), EVENTS, match="nosuch")
    assert not table.rows
    assert "No name here holds 'nosuch'." in table.notes
    assert "Nothing was recorded here." in profile_tables.calls(profile(), Events()).notes


def test_the_course_reports_table_sums_every_variant_from_creation_to_close():
    row = profile_course.row(profile(), EVENTS)
    times = {key.removesuffix("_ns"): value for key, value in row.items() if key.endswith("_ns")}
    assert times == {
        "htod": 400,
        "conv": 2000,
        "fc": 1000,
        "dtoh": 200,
        "maxpool": 60,
        "cudaFreeHost": 3000,
        "cudaMemcpy": 200,
        "cudaDeviceSynchronize": 0,
        "cudaMalloc": 2000,
    }
    assert row["cudaDeviceSynchronize_calls"] == 0
    table = profile_course.table([row], 2)
    assert "a call never made" in table.notes[0].lower()
    assert "| 16 | 400 ns | 2 |" in with_headings([table])


def test_without_a_gpu_the_course_reports_table_has_no_columns_of_one():
    step = HostSpan(name="s", kind="step", start_ns=10, end_ns=40, op_type="LRN+MaxPool", nodes=("n",), run=0)
    events = Events(
        intervals=(step,), marks=(Mark(name="pass", kind="window", start_ns=0, end_ns=50, run=0),)
    )
    ours = profile_course.row(profile(device="cpu"), events)
    table = profile_course.table([ours], 1)
    assert set(table.rows[0]) == {c.name for c in table.columns}
    titles = [column.title for column in table.columns]
    assert titles == [
        "backend", "batch", "conv kernels", "calls", "FC kernels", "calls", "max-pool kernels", "calls",
    ]  # fmt: skip
    assert "no copies to a device and no calls into CUDA" in table.notes[0]
    assert any("LRN and the max pool behind it" in note for note in table.notes)
    both = profile_course.table([ours, profile_course.row(profile(), EVENTS)], 1)
    assert {"htod_ns", "cudaMalloc_calls"} <= set(both.rows[0])
    assert both.rows[0]["cudaMalloc_calls"] == 0


def test_a_convolution_with_its_pool_counts_as_a_convolution_and_the_course_reports_table_says_so():
    made = [
        HostSpan(name="s", kind="step", start_ns=start, end_ns=start + 30, op_type=kind, nodes=("n",), run=0)
        for start, kind in ((10, "Conv"), (50, "Conv+AveragePool"), (90, "Conv+MaxPool"), (130, "MaxPool"))
    ]
    marks = (Mark(name="pass", kind="window", start_ns=0, end_ns=200, run=0),)
    row = profile_course.row(profile(device="cpu"), Events(intervals=tuple(made), marks=marks))
    assert [row[key] for key in ("conv_ns", "conv_calls", "maxpool_ns", "maxpool_calls")] == [90, 3, 30, 1]
    notes = profile_course.table([row, row], 1).notes
    assert len([note for note in notes if "stands under conv kernels" in note]) == 1


def test_an_operator_has_one_colour_in_every_chart():
    few, many = (
        profile_charts.colours([f"op:{name}" for name in names])
        for names in (("Gemm", "Conv"), ("Conv", "LRN", "MaxPool", "Gemm", "Softmax"))
    )
    assert {key: many[key] for key in few} == few
    assert len(set(many.values())) == len(many)


def test_tables_come_out_in_every_format():
    made = profile()
    found = [
        profile_tables.activities(made, EVENTS),
        profile_tables.calls(made, EVENTS),
        profile_tables.breakdown([made]),
        profile_tables.cold([made]),
        profile_tables.process([made]),
        profile_findings.table(made, EVENTS, LIMITS),
    ]
    for table in found:
        read = list(csv.DictReader(io.StringIO(to_csv(table))))
        assert len(read) == len(table.rows) > 0
    as_json = json.loads(to_json(profile_tables.output(HEADER, [made], found)))
    assert [table["key"] for table in as_json["tables"]][1:3] == ["calls", "breakdown"]
    assert as_json["tables"][0]["rows"][0]["time_ns"] == 3000
    markdown = with_headings(found)
    assert "| 81.97 % | 3.00 µs | 4 | 750 ns |" in markdown

    out = io.StringIO()
    Console(file=out, width=160).print(profile_tables.terminal(found))
    assert " Gemm" in out.getvalue()
    assert "1.00 GiB" in out.getvalue()
    assert FORMATS == ("table", "csv", "json", "md")


# -------------------------------------------------------------------------------------------------- findings


FAR_POOL = "far from every limit (50 % of memory)"


def test_each_operator_has_a_sentence_from_its_own_figures():
    found = {f.op_type: f for f in profile_findings.findings(profile(), EVENTS, LIMITS)}
    conv = found["Conv"]
    assert (conv.time_ns, conv.launches, conv.bound) == (1000, 1, "arithmetic")
    assert conv.roof == pytest.approx(0.8)
    assert conv.sentence == "bound by arithmetic (80 % of that limit)"
    assert found["Gemm"].sentence == "bound by memory (80 % of that limit)"
    launch = "launch-bound: 1 kernel of 30.0 ns on average, shorter than the 50.0 ns that the call takes to"
    assert found["MaxPool"].sentence == f"{FAR_POOL}; {launch} start one"


def test_no_more_than_two_things_are_said_of_an_operator():
    figures = {"nodes": ("n",), "op_type": "Conv", "names": ("k",), "launches": 1, "time_ns": 1000}
    gpu = profile().gpu
    small = OpFinding(**figures, blocks=4, roof=0.003, bound="memory")  # in a graph: no call started it alone
    grid = (
        "the grid of 4 blocks is smaller than the chip: at least 97 % of its 132 multiprocessors have nothing"
    )
    assert profile_findings.sentence(small, gpu) == f"far from every limit (0.3 % of memory); {grid} to do"
    counters = Counters(dram_read_nbytes=400, dram_write_nbytes=0, global_sectors=30, ideal_sectors=10)
    much = OpFinding(**figures, nbytes=100, blocks=4, roof=0.6, bound="memory", counters=counters)
    first, second = profile_findings.sentence(much, gpu).split("; ")
    assert first == "bound by memory (60 % of that limit)"
    assert second.startswith("uncoalesced: its accesses to global memory take 3.00×")


def test_overhead_is_named_where_it_is_most_of_the_time():
    """Nothing started these kernels one by one (a graph did), so that no call is known to be longer."""
    unstarted = msgspec.structs.replace(EVENTS, calls=())
    found = {f.op_type: f for f in profile_findings.findings(profile(), unstarted, LIMITS)}
    told = "mostly overhead: 15.0 ns of its 30.0 ns is what every kernel of this pass takes beyond its work"
    assert found["MaxPool"].sentence == f"{FAR_POOL}; {told}"
    assert all("overhead" not in found[name].sentence for name in ("Conv", "Gemm")), "there it is a trifle"
    two = profile(operators=profile().operators[:2])
    assert not any(f.overhead_ns for f in profile_findings.findings(two, unstarted, LIMITS)), "of too few"


def test_a_finding_without_limits_or_costs_says_only_what_is_known():
    found = profile_findings.findings(profile(operators=()), EVENTS, None)
    assert {f.op_type: f.roof for f in found} == {"Conv": None, "Gemm": None, "MaxPool": None}
    assert found[0].sentence == ""


def test_faster_than_the_roof_is_put_into_words():
    slow = type(LIMITS)(**{f: getattr(LIMITS, f) for f in LIMITS.__struct_fields__} | {"bytes_per_s": 1e8})
    found = {f.op_type: f for f in profile_findings.findings(profile(), EVENTS, slow)}
    assert "its data came out of a cache" in found["Gemm"].sentence


@pytest.mark.parametrize(
    ("flops", "nbytes", "said"),
    [
        (10, 970, "bound by memory (97 % of that limit)"),
        (10, 1050, "bound by memory (105 % of that limit)"),
        (10, 2000, "2.00× what memory alone allows: its data came out of a cache"),
        (9000, 10, "bound by arithmetic (90 % of that limit)"),
        (20_000, 10, "done in fewer or cheaper operations than were counted"),
        (5990, 10, "far from every limit (59.9 % of arithmetic)"),
        (6010, 10, "bound by arithmetic (60 % of that limit)"),
        (3000, 10, "far from every limit (30 % of arithmetic)"),
        (10, 30, "far from every limit (3.0 % of memory)"),
    ],
)
def test_a_limit_is_said_to_bind_where_it_is_near_alone(flops, nbytes, said):
    conv = Operator(nodes=profile_cases.CONV, op_type="Conv", flops=flops, nbytes=nbytes)
    found = profile_findings.findings(profile(operators=(conv,)), EVENTS, LIMITS)[0].sentence
    assert said in found
    assert ("bound by" in found) == ("bound by" in said)


@pytest.mark.parametrize(
    ("others", "roof", "said"),
    [
        (0, 0.2, "far from every limit (20 % of the caches)"),
        (1000, 0.2, "far from every limit (20 % of the caches)"),
        (1001, 0.8, "bound by memory (80 % of that limit)"),
    ],
)
def test_what_has_room_in_the_caches_comes_out_of_them(others: int, roof: float, said: str):
    """All that a pass needs, not this operator's alone: what the others read puts its weights out."""
    limits = msgspec.structs.replace(LIMITS, cache_nbytes=1800, cache_bytes_per_s=4e9)
    conv = Operator(nodes=profile_cases.CONV, op_type="Conv", flops=10, nbytes=800)
    other = Operator(nodes=profile_cases.FC, op_type="Gemm", flops=10, nbytes=others)
    found = profile_findings.findings(profile(operators=(conv, other)), EVENTS, limits)[0]
    assert found.roof == pytest.approx(roof)
    assert said in found.sentence
    near = profile_findings.findings(profile(operators=(conv,)), EVENTS, msgspec.structs.replace(
        limits, cache_bytes_per_s=1e9
    ))[0]  # fmt: skip
    assert (near.bound, near.sentence) == ("cache", "bound by the caches (80 % of that limit)")
    far = msgspec.structs.replace(limits, cache_bytes_per_s=5e8)
    beyond = profile_findings.findings(profile(operators=(conv,)), EVENTS, far)[0].sentence
    assert beyond == "1.60× the measured rate of the caches: its data lay nearer to the cores"


def test_a_small_kernel_that_helps_a_large_one_is_no_small_grid():
    helps = next(a for a in EVENTS.activities if a.name == "pool")
    with_conv = msgspec.structs.replace(helps, nodes=profile_cases.CONV, op_type="Conv")
    events = msgspec.structs.replace(EVENTS, activities=(*EVENTS.activities, with_conv))
    assert profile_findings.findings(profile(), events, LIMITS)[0].blocks == 200


def broken_down(wall, device="cuda", passes=1, **parts):
    shares = tuple(Share(key=key.replace("op_", "op:"), time_ns=ns, count=4) for key, ns in parts.items())
    return profile(
        device=device, breakdowns=(Breakdown(window="pass", wall_ns=wall, parts=shares, passes=passes),)
    )


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (broken_down(1000, op_Conv=900, rest=50, host=50), []),
        (
            broken_down(1000, op_Conv=200, launch=500, host=300),
            ["launch-bound: the device computes 20 % of it, in 4 kernels of 50.0 ns on average, and 30 %"],
        ),
        (
            broken_down(1000, op_Conv=100, h2d=600, host=300),
            [
                "copy-bound: 60 % of it are copies",
                "30 % of a profiled pass is the host's own code between calls",
            ],
        ),
        (
            broken_down(1000, op_Conv=200, h2d=150, staging=600, host=50),
            [
                "copy-bound: 15 % of it are copies, and 60 % the host's filling and emptying",
                "in 60 % of a profiled pass the host copies between pageable and page-locked memory",
            ],
        ),
        (
            broken_down(1000, op_Conv=800, staging=60, ort=80, host=60),
            [
                "in 6 % of a profiled pass the host copies",
                "8 % of a profiled pass is ONNX Runtime's own work between calls into CUDA and 6 % the rest",
            ],
        ),
        (
            broken_down(1000, op_Conv=300, launch=100, ort=600),
            ["host-bound: the device computes 30 % of it, in 4 kernels of 75.0 ns on average, and 60 %"],
        ),
        (broken_down(1000, op_Conv=700, rest=300), ["30.0 % of a profiled pass is explained by nothing"]),
        (
            broken_down(1000, op_Conv=200, rest=800),
            ["launch-bound", "80.0 % of a profiled pass is explained"],
        ),
        (
            broken_down(1000, "cpu", op_Conv=700, host=300),
            ["30.0 % of a profiled pass is the host's own code round its 4 steps of 175 ns on average"],
        ),
        (broken_down(1000, "cpu", op_Conv=960, host=40), []),
        (broken_down(1000, "cpu", op_Conv=900, ort=100), ["10.0 % of a profiled pass is ONNX Runtime's own"]),
        (broken_down(1000, rest=1000), ["no kernel and no step"]),
    ],
)
def test_what_a_pass_waits_for_and_what_is_not_explained_is_said(made, words):
    for sentence, expected in zip(profile_remarks.waits(made), words, strict=True):
        assert expected in sentence


def test_a_rest_in_which_the_host_had_no_core_says_so():
    made = broken_down(1000, op_Conv=700, rest=300)
    (found,) = made.breakdowns
    idle = profile(breakdowns=(msgspec.structs.replace(found, idle_ns=200),))
    (said,) = profile_remarks.waits(idle)
    assert "30.0 % of a profiled pass is explained by nothing" in said
    assert "for 20.0 % of it the host's thread had no core" in said


@pytest.mark.parametrize(("cpu_ns", "said"), [(430, "had a core for 43 % of the profiled passes"), (950, "")])
def test_steps_of_a_thread_that_had_no_core_are_not_taken_at_their_word(cpu_ns, said):
    (found,) = broken_down(1000, "cpu", op_Conv=1000).breakdowns
    made = profile(device="cpu", breakdowns=(msgspec.structs.replace(found, cpu_ns=cpu_ns),))
    assert [words for words in profile_remarks.waits(made) if said in words] == profile_remarks.waits(made)
    assert bool(profile_remarks.waits(made)) == bool(said)
    (told,) = [words for words in profile_remarks.remarks(made) if "90.0 ns more, the profiler's" in words]
    assert told.endswith("and what its thread waited for") == bool(said)


def test_a_profiled_pass_that_was_quicker_is_not_laid_to_the_profiler():
    said = profile_remarks.remarks(profile(pass_ns=(2600.0,)))
    assert any("100 ns less, so passes differ by more" in text for text in said)


def test_remarks_tell_the_profilers_share_and_the_clocks():
    clock = Clock(name="CUPTI", offset_ns=5_000_000_000, error_ns=120, drift_ns=-40)
    said = profile_remarks.remarks(profile(clocks=(clock,), notes=("something is missing",)))
    assert "something is missing" in said
    assert any("2.50 µs and one without the profiler 2.41 µs: 90.0 ns more" in text for text in said)
    assert (
        "the clock of CUPTI is 5.000000000 s ahead of the profile's, ± 120 ns, and moved by 40.0 ns"
        in said[-1]
    )
    failed = profile(disposition="unsupported", reason="no GPU", breakdowns=(), clocks=())
    assert profile_remarks.remarks(failed) == ["no GPU"]


# ---------------------------------------------------------------------------------------------------- charts


def test_charts_show_the_parts_the_cold_start_and_the_roofline(tmp_path):
    larger = msgspec.structs.replace(profile_cases.CASE, batch=1024)
    failed = profile(case=larger, disposition="out_of_memory", reason="too large", breakdowns=(), cold=())
    made = profile_charts.charts(HEADER, [profile(), failed], lambda case: EVENTS)
    assert [chart.name for chart in made][:2] == ["profile-breakdown", "profile-cold-start"]
    stacked, crossed = made[0].panels[0].bars
    assert crossed.mark.reason == "too large"
    assert sum(part.value for part in stacked.parts) == pytest.approx(1)
    assert made[0].finding == "At batch 16, 40.0 % of a pass on engine-cuda is Conv."
    waterfall = made[1].panels[0].bars
    ends = [sum(part.value for part in bar.parts) for bar in waterfall]
    assert [bar.parts[0].value for bar in waterfall[1:]] == pytest.approx(ends[:-1])
    written = draw_together.write(made[:3], tmp_path, ["svg"])
    assert len(written) == 3


def test_a_whole_pass_over_batch_sizes_says_how_it_grows(tmp_path):
    def case(backend, batch, *pass_ns, **changes):
        named = {"backend": backend, "batch": batch}
        return profile(case=msgspec.structs.replace(profile_cases.CASE, **named), pass_ns=pass_ns, **changes)

    cases = [case("engine-cuda", 1, 9.0, 10.0, 11.0), case("ort-cuda", 1, 20.0)]
    assert profile_charts.times(HEADER, cases) is None  # one batch size is no line
    cases += [case("engine-cuda", 4, 25.0), case("ort-cuda", 4, disposition="crashed", reason="gone")]
    chart = profile_charts.times(HEADER, cases)
    ours, theirs = chart.panels[0].series
    assert [(point.x, point.y) for point in ours.points] == [
        (1, pytest.approx(10e-9)),
        (4, pytest.approx(25e-9)),
    ]
    assert [mark.reason for mark in theirs.marks] == ["gone"]
    assert chart.finding == "From batch 1 to 4 (4× the images) a pass takes 2.50× the time on engine-cuda."
    assert "first" not in chart.notes[0]
    cold = msgspec.structs.replace(HEADER, job=msgspec.structs.replace(HEADER.job, warm_up=0))
    assert "first" in profile_charts.times(cold, cases).notes[0]
    assert draw_together.write([chart], tmp_path, ["svg"])


def test_a_report_of_a_cpu_tells_nothing_of_a_gpu(tmp_path, monkeypatch):
    undrawn(monkeypatch)
    step = HostSpan(name="s", kind="step", start_ns=10, end_ns=40, op_type="Conv", nodes=("n",), run=0)
    events = Events(
        intervals=(step,), marks=(Mark(name="pass", kind="window", start_ns=0, end_ns=50, run=0),)
    )
    folder = PROFILE.create(tmp_path / "p", HEADER)
    file = profile_store.write_events(folder.path, "case", events)
    folder.append(profile(file=file, device="cpu", gpu=None, attributed=None))
    text = profile_report.write([folder.path], tmp_path / "report.md")[0].read_text()
    assert "CUPTI" not in text
    assert "page-locked" not in text
    assert "| GPU peak |" not in text
    assert "| launch call |" not in text
    assert "timed one by one" in text


def test_of_many_cases_a_first_look_shows_the_largest_batch_size_of_each_backend(tmp_path, capsys):
    cases = tuple(
        msgspec.structs.replace(profile_cases.CASE, backend=backend, batch=batch)
        for batch in (1, 4, 16)
        for backend in ("engine-cuda", "ort-cuda")
    )
    folder = PROFILE.create(tmp_path / "many", msgspec.structs.replace(HEADER, cases=cases))
    for case in cases:
        folder.append(profile(case=case, file=profile_store.write_events(folder.path, case.key, EVENTS)))
    measured = folder.measurements()
    titles = [table.title for table in saved.tables_of(folder, measured, saved.ShownProfile())]
    assert [title for title in titles if title.startswith("What holds")] == [
        f"What holds {made.case.words} back" for made in measured if made.case.batch == 16
    ]
    assert len(saved.tables_of(folder, measured, saved.ShownProfile(table="findings"))) == 6
    about = [about for about, _ in profile_remarks.headlines(measured)]
    assert about == [f"small, fp32, batch {batch}" for batch in (1, 4, 16)]
    saved.show_chosen(folder, saved.ShownProfile())
    told = capsys.readouterr().err
    assert "batch 16: " in told
    assert "batch 4: " not in told


def test_what_holds_an_operator_back_can_be_read_in_80_columns() -> None:
    found = profile_findings.table(profile(), EVENTS, LIMITS)
    rows = [row | {"sentence": "far from every limit (32 % of arithmetic)"} for row in found.rows]
    for wide, rates in ((80, False), (160, True)):
        out = io.StringIO()
        Console(file=out, width=wide).print(
            profile_tables.terminal([replace(found, rows=tuple(rows), notes=())])
        )
        lines = out.getvalue().splitlines()
        assert max(map(len, lines)) <= wide
        assert any("far from every limit (32 %" in line for line in lines), out.getvalue()
        assert ("FLOP/s" in out.getvalue()) == rates


@pytest.mark.sampled(4, "long")
def test_a_report_of_profiles_is_written_from_their_records_alone(tmp_path):
    paths = []
    for name, warm_up in (("passes", 3), ("table", 0)):
        job = msgspec.structs.replace(HEADER.job, warm_up=warm_up)
        folder = PROFILE.create(tmp_path / name, msgspec.structs.replace(HEADER, job=job))
        folder.append(profile(file=profile_store.write_events(folder.path, "case", EVENTS)))
        paths.append(folder.path)
    written = profile_report.write(paths, tmp_path / "report.md")
    text = written[0].read_text()
    assert "A profiled pass takes 2.50 µs: Conv 40.0 %" in text
    assert "bound by arithmetic (80 % of that limit)" in text
    assert "cudaStreamSynchronize" in text
    assert "time by batch size, from creation to close" in text
    assert "| engine-cuda | 16 | 400 ns | 2 | 2.00 µs | 2 |" in text
    assert "NVRTC compile" in text
    assert "CUPTI records every kernel" in text
    assert "a case, the first of their session" in text
    assert all(path.is_file() for path in written)
    empty = PROFILE.create(tmp_path / "empty", HEADER)
    with pytest.raises(InputError, match="there is no case"):
        profile_report.write([empty.path], tmp_path / "empty.md")


def test_before_and_after_stand_in_one_report(tmp_path, monkeypatch):
    undrawn(monkeypatch)
    paths = []
    for name, rungs in (("before", {"conv1": "naive"}), ("after", {}), ("again", {})):
        job = msgspec.structs.replace(HEADER.job, rungs=rungs)
        where = msgspec.structs.replace(
            HEADER.environment, gpu="A GPU" if name == "before" else "Another", packages={"of": name}
        )
        header = msgspec.structs.replace(HEADER, job=job, environment=where)
        folder = PROFILE.create(tmp_path / name, header)
        folder.append(profile(file=profile_store.write_events(folder.path, "case", EVENTS)))
        paths.append(folder.path)
    report, *charts = profile_report.write(paths, tmp_path / "report.md")
    text = report.read_text()
    assert text.startswith("# Profiles on A GPU and Another\n")
    assert all(f"- of {name}\n" in text for name in ("before", "after", "again"))
    assert " with conv1 naive: where the time goes" in text
    assert len(charts) == len(set(charts))
    assert len({path for path in charts if "conv1-naive" in path.name}) == len(charts) / 3


def test_a_timeline_is_drawn_of_every_case(tmp_path):
    written = draw_timeline.write(HEADER, [(profile(), EVENTS)] * 2, tmp_path, ["svg"])
    text = written[0].read_text()
    assert written[0].name == "profile-timeline.svg"
    assert len(text) > 5000
    assert draw_timeline.write(HEADER, [], tmp_path, ["svg"]) == []
