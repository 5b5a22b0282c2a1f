"""Hardware counters: `ncu`'s table read, matched to a profile's kernels, shown; and `ncu` missing, refused,
broken."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from bench.measure.profile import counters as profile_counters
from bench.measure.profile import counters_pass, ncu
from bench.measure.profile.counters import Counted
from bench.measure.profile.ncu import METRICS
from bench.results import event_files as profile_store
from bench.results.events import Counters, together
from bench.results.messages import Start
from bench.results.profile_records import Profile, ProfileJob, planned
from bench.views import trace as profile_trace
from bench.views.charts import profile_charts
from bench.views.sentences import profile_findings
from bench.views.tables import profile_tables
from bench.views.tables.table import with_headings
from gui.pages.timeline import timeline_view
from kernels.errors import KernelError, UnavailableError
from tests.bench.profile import profile_cases
from tests.bench.profile.profile_cases import LIMITS, SGEMM, profile

EVENTS = profile_cases.events()
JOB = ProfileJob(model="lenet5-digits", backends=("engine-cuda",), counters=True)
HEAD = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size",
        "Grid Size", "Device", "CC"]  # fmt: skip
UNITS = dict.fromkeys(METRICS, "") | {
    "dram_read_nbytes": "byte",
    "dram_write_nbytes": "byte",
    "l2_nbytes": "byte",
    "load_requests": "request",
    "load_sectors": "sector",
    "store_requests": "request",
    "store_sectors": "sector",
    "compute_share": "%",
    "warps_share": "%",
}


def line(cells):
    return ",".join(f'"{cell}"' for cell in cells)


def table(kernels, units=UNITS, fields=tuple(METRICS)):
    """What ncu writes to its log: its own lines, names, units, and a line a kernel."""
    said = ["==PROF== Connected to process 4711 (/usr/bin/python3.11)"]
    said += [
        f'==PROF== Profiling "{name}" - {i}: 0%....50%....100% - 7 passes'
        for i, (name, *_) in enumerate(kernels)
    ]
    said += ["==PROF== Disconnected from process 4711"]
    said.append(line([*HEAD, *(METRICS[field] for field in fields)]))
    said.append(line([""] * len(HEAD) + [units[field] for field in fields]))
    for number, (name, grid, values) in enumerate(kernels):
        cells = [number, 4711, "python3.11", "127.0.0.1", name, 1, 13, "(128, 1, 1)", grid, 0, "9.0"]
        said.append(line([*cells, *(values.get(field, "0") for field in fields)]))
    return "\n".join(said) + "\n"


CONV = {
    "dram_read_nbytes": "1,234,000", "dram_write_nbytes": "66,000", "l2_nbytes": "9,000,000",
    "load_requests": "1,000", "load_sectors": "32,000", "store_requests": "10", "store_sectors": "40",
    "global_sectors": "32,040", "ideal_sectors": "4,005", "compute_share": "12.5", "warps_share": "25",
}  # fmt: skip
POOL = {"dram_read_nbytes": "8", "dram_write_nbytes": "4", "load_requests": "0", "load_sectors": "n/a"}
KERNELS = [
    (SGEMM, "(200, 1, 1)", CONV),
    ("pool", "(4, 1, 1)", POOL),
    (SGEMM, "(200, 1, 1)", CONV | {"dram_read_nbytes": "300"}),
]


def test_a_table_is_read_kernel_by_kernel():
    first, second, third = ncu.parse(table(KERNELS))
    assert (first.name, first.grid) == (SGEMM, (200, 1, 1))
    assert first.counters.dram_nbytes == 1_300_000
    assert first.counters.sectors_a_load == 32
    assert first.counters.scattered == 8
    assert (first.counters.compute_share, first.counters.warps_share) == (0.125, 0.25)
    assert second.counters.load_sectors is None
    assert second.counters.sectors_a_load is None
    assert third.counters.dram_read_nbytes == 300


def test_units_are_heeded_and_unknown_ones_are_not_guessed():
    changed = {"dram_read_nbytes": "Kbyte", "l2_nbytes": "furlong", "global_sectors": "sectors"}
    (found,) = ncu.parse(table([KERNELS[0]], UNITS | changed))
    assert found.counters.dram_read_nbytes == 1_234_000_000
    assert found.counters.global_sectors == 32_040
    assert found.counters.l2_nbytes is None


def test_broken_tables_are_told():
    text = table(KERNELS)
    with pytest.raises(KernelError, match="cut short in its line 3"):
        ncu.parse(text[: text.rindex(",")])
    with pytest.raises(KernelError, match="no kernels' names, or no units"):
        ncu.parse('"ID","Process ID"\n')
    assert ncu.parse("==PROF== Disconnected\n") == ()


def test_counters_go_to_the_kernels_of_every_pass_by_order_name_and_grid():
    stray = ("_Z5strayv", "(1, 1, 1)", CONV)
    events, words, note = profile_counters.attached(EVENTS, ncu.parse(table([stray, *KERNELS])))
    assert note == ""
    assert words == "3 of the 3 kernels of a pass, 4 seen by ncu"
    reads = [a.counters.dram_read_nbytes for a in events.activities if a.kind == "kernel"]
    assert reads == [1_234_000, 8, 300] * 2
    assert all(a.counters is None for a in events.activities if a.kind != "kernel")
    lost = [Counted(SGEMM, (7, 1, 1), Counters()), *ncu.parse(table(KERNELS[1:]))]
    events, words, note = profile_counters.attached(EVENTS, lost)
    assert note.startswith("1 of the 3 kernels of a pass have no counters")
    assert words == "2 of the 3 kernels of a pass, 3 seen by ncu"
    assert [a.counters is None for a in events.activities if a.kind == "kernel"] == [True, False, False] * 2


def test_what_was_counted_is_written_read_shown_and_diagnosed(tmp_path):
    events, *_ = profile_counters.attached(EVENTS, ncu.parse(table(KERNELS)))
    name = profile_store.write_events(tmp_path, "case", events)
    assert profile_store.read_events(tmp_path / name) == events
    profile_trace.write(tmp_path / "trace.json", [(profile(), events)])
    assert profile_trace.read(tmp_path / "trace.json")[0].activities == events.activities
    made = profile_tables.counters(profile(), events)
    gemm, pool = made.rows
    assert (gemm["launches"], gemm["dram_read_nbytes"], gemm["load_sectors"]) == (2, 1_234_300, 32)
    assert pool["load_sectors"] is None
    assert profile_tables.counters(profile(), EVENTS).rows == ()
    found = profile_findings.table(profile(), events, LIMITS)
    conv = found.rows[0]
    assert conv["moved"] == 13_000
    for words in (
        "uncoalesced: its accesses to global memory take 8.00×",
        "moves 13,000× the bytes needed (1.24 MiB for 100 B)",
    ):
        assert words in conv["sentence"]
    assert "uncoalesced" not in next(row for row in found.rows if row["op_type"] == "MaxPool")["sentence"]
    assert "DRAM bytes" in with_headings([found])
    assert "DRAM bytes" not in with_headings([profile_findings.table(profile(), EVENTS, LIMITS)])
    chart = profile_charts.roofline(Profile(job=JOB, cases=()), profile(), events, LIMITS)
    places = next(s for s in chart.panels[0].series if "conv1" in s.label).points
    assert [point.x for point in places] == [8000 / 1_300_000, 80]
    kernel = next(a for a in events.activities if a.kind == "kernel")
    assert ("sectors a load", "32.00") in timeline_view.facts(kernel, 0)


def test_a_table_by_operator_needs_all_its_kernels_counted():
    kernels = [a for a in EVENTS.activities if a.kind == "kernel"][:2]
    one = msgspec.structs.replace(kernels[0], counters=Counters(dram_read_nbytes=1.0, warps_share=0.5))
    assert together([one, kernels[1]]) is None
    other = msgspec.structs.replace(kernels[1], counters=Counters(warps_share=0.1))
    both = together([one, other])
    assert both.dram_read_nbytes is None
    assert both.warps_share == pytest.approx((0.5 * 1000 + 0.1 * 30) / 1030)


# ------------------------------------------------------------------------------------------ the program


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """An `ncu` on the path that keeps its arguments, does what `body` says, and logs `text`."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def make(text, body="", status=0):
        (folder / "text").write_text(text)
        program = folder / "ncu"
        program.write_text(
            f"#!{sys.executable}\nimport pathlib, subprocess, sys\n"
            f"here = pathlib.Path({str(folder)!r})\nargs = sys.argv[1:]\n"
            "(here / 'args').write_text('\\n'.join(args))\n"
            "text = (here / 'text').read_text()\n"
            f"{body}\n"
            "pathlib.Path(args[args.index('--log-file') + 1]).write_text(text)\n"
            f"sys.exit({status})\n"
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        return folder

    return make


def test_a_pass_is_counted_in_a_process_under_ncu(fake):
    folder = fake(table(KERNELS))
    found = ncu.take(JOB, planned(JOB)[0])
    assert [kernel.name for kernel in found] == [SGEMM, "pool", SGEMM]
    arguments = (folder / "args").read_text().split("\n")
    assert arguments[arguments.index("--profile-from-start") + 1] == "off"
    assert arguments[arguments.index("--metrics") + 1] == ",".join(METRICS.values())
    assert arguments[-5:-1] == [sys.executable, "-P", "-m", "bench.measure.profile.counters_pass"]


def test_a_counter_that_ncu_does_not_know_is_left_out(fake):
    unknown = METRICS["ideal_sectors"]
    body = (
        f"if {unknown!r} in args[args.index('--metrics') + 1]:\n"
        f"    print('==ERROR== Failed to find metric {unknown}')\n    sys.exit(1)"
    )
    fields = tuple(field for field in METRICS if field != "ideal_sectors")
    fake(table(KERNELS, fields=fields), body)
    first = ncu.take(JOB, planned(JOB)[0])[0]
    assert first.counters.ideal_sectors is None
    assert first.counters.dram_nbytes == 1_300_000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance "
            "Counters on the target device 0.\n",
            "NVreg_RestrictProfilingToAdminUsers=0",
        ),
        ("==ERROR== Profiling is not supported on device 0. To find out supported GPUs\n", "newer Nsight"),
    ],
)
def test_a_refusal_says_what_would_help(fake, text, words):
    fake(text, status=1)
    with pytest.raises(UnavailableError, match=words):
        ncu.take(JOB, planned(JOB)[0])


def test_failures_are_one_sentence(fake, monkeypatch):
    fake("==PROF== Connected to process 1\n==WARNING== No kernels were profiled.\n")
    with pytest.raises(KernelError, match="it saw no kernel"):
        ncu.take(JOB, planned(JOB)[0])
    fake("==ERROR== An unknown thing\n", status=9)
    with pytest.raises(KernelError, match="ended with status 9: An unknown thing"):
        ncu.take(JOB, planned(JOB)[0])
    fake("", "pathlib.Path(args[-1], 'error.txt').write_text('no room')", status=1)
    with pytest.raises(KernelError, match="the pass under `ncu` failed: no room"):
        ncu.take(JOB, planned(JOB)[0])
    fake("", "import time; time.sleep(60)")
    with pytest.raises(KernelError, match="hardware counters are not read"):
        ncu.take(JOB, planned(JOB)[0], lambda: True)


def test_where_there_is_no_ncu_it_is_said_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setattr(ncu.shutil, "which", lambda name: None)
    monkeypatch.setattr(ncu, "PLACES", (f"{tmp_path}/*/ncu",))
    with pytest.raises(UnavailableError, match="there is no `ncu` here; install Nsight Compute"):
        ncu.take(JOB, planned(JOB)[0])
    (tmp_path / "2025.1").mkdir()
    program = tmp_path / "2025.1" / "ncu"
    program.write_text("")
    program.chmod(0o755)
    assert ncu.find() == Path(program)


def test_the_pass_that_is_counted_lies_alone_between_the_marks(monkeypatch, tmp_path):
    """The counted process, its device played."""
    done: list[str] = []
    asked: list[bool] = []
    runtime = SimpleNamespace(profilerStart=lambda: done.append("<"), profilerStop=lambda: done.append(">"))
    cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))
    session = SimpleNamespace(
        bind=lambda inputs: done.append("bind"),
        run=lambda: done.append("run"),
        synchronize=lambda: done.append("wait"),
        close=lambda: done.append("close"),
    )

    def prepare(graph, batch, precision, options):
        asked.append(options.cuda_graph)
        return session

    backend = SimpleNamespace(name="engine-cuda", device="cuda", prepare=prepare)
    monkeypatch.setattr("engine.backends.get", lambda name: backend)
    monkeypatch.setattr("engine.cuda.runtime.import_cupy", lambda: cupy)
    start = Start(job=JOB, cases=planned(JOB))
    (tmp_path / counters_pass.JOB).write_bytes(msgspec.json.encode(start))
    monkeypatch.setattr(counters_pass, "watch_parent", lambda: None)
    assert counters_pass.main(tmp_path) == 0
    assert done == ["bind", "run", "wait", "<", "run", "wait", ">", "close"]
    assert asked == [False]
    (tmp_path / counters_pass.JOB).write_text("{")
    assert counters_pass.main(tmp_path) == 1
    assert "Decode" in (tmp_path / counters_pass.ERROR).read_text()
