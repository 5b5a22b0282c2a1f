"""What the program prints as JSON, as records. Made of the program's own types:

    python -m bench.commands.formats docs/formats.json kernelscope/records.py

Values are in base units, which the names say: `_s` seconds, `_ns` nanoseconds, `_nbytes` bytes, `_per_s` a
second; shares are fractions. What is not known is None.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class Against(msgspec.Struct, frozen=True, kw_only=True):
    """What a kernel was timed beside.

    - name: "reference", a rung's name, or "baseline", an earlier judgement; title: in words.
    - time_s: the median of a pass, with its 95 % interval; null where it was not timed, as `reason` says.
    - speedup: its time over the kernel's, round by round, with its 95 % interval: above 1 the kernel is
      faster.
    - verdict: of the kernel, FASTER, SLOWER, SAME or UNCLEAR; "" where nothing was compared. undecided: why
      it is UNCLEAR. grade: the verdict, or "doubtful" where something speaks against it, as `doubts` says.
    """

    name: str
    title: str
    time_s: float | None = None
    low_s: float | None = None
    high_s: float | None = None
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    verdict: str = ""
    undecided: str = ""
    grade: Literal["doubtful", "faster", "none", "same", "slower", "undecided", "wrong"] = "none"
    doubts: tuple[str, ...] = ()
    reason: str = ""


class BackendInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A backend as seen on the machine of the run; unavailable is the reason, or "". variant_of: the backend
    that it is in another configuration ("": it stands for itself); such a one runs where it is asked for, and
    so does a rival. swaps: it is that backend with kernels in the place of nodes; invited: the two take part
    with such kernels though nobody named them. get: how it comes to a machine; untried: what is to be known
    of one that nobody ran.
    """

    name: str
    device: str
    precisions: tuple[str, ...]
    reference: str
    unavailable: str = ""
    variant_of: str = ""
    rival: bool = False
    swaps: bool = False
    invited: bool = False
    get: str = ""
    untried: str = ""


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a breakdown (bench.results.parts names the keys): ns over all its passes, and how many events
    had some of it.
    """

    key: str
    time_ns: int
    count: int = 0


class Breakdown(msgspec.Struct, frozen=True, kw_only=True):
    """A window of the profiled session divided: the parts' times add up to wall_ns exactly. window: "pass"
    (all profiled passes together, `passes` of them), "create", "close" or "all" (from creation to close).
    idle_ns: of "rest", how long the host's thread had no core though it waited for nothing; cpu_ns: how long
    it had one in all (None: not known).
    """

    window: str
    wall_ns: int
    parts: tuple[Share, ...]
    passes: int = 1
    idle_ns: int = 0
    cpu_ns: int | None = None


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One point of the comparison. images is the number of images the accuracy is taken on (0: random
    input).
    """

    model: str
    backend: str
    precision: str
    batch: int
    images: int = 0


class Mark(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="mark"):
    """A span of the host's course. kind "cold": a phase of the cold start; "window": "create", "warm-up",
    "pass" or "close" of the profiled session; "stage": "bind", "run", "synchronize", "fetch" inside a pass.
    run: the number of the pass, None for one that warms up. text: what a reader should know of it ("3 of 8
    from the cache"). cpu_ns: how long of a pass the host's thread had a core (None: not known).
    """

    kind: Literal["cold", "stage", "window"]
    run: int | None = None
    text: str = ""
    cpu_ns: int | None = None
    name: str
    start_ns: int
    end_ns: int


class Operator(msgspec.Struct, frozen=True, kw_only=True):
    """A step of the model at this batch size: the nodes that run as one, and what they cost at least, bytes
    as the backend keeps weights and tensors (engine.planning.traffic; 0 where not known). unread: of these,
    what a kernel may do without. precision: what the rung computes in ("": not known).
    """

    nodes: tuple[str, ...]
    op_type: str
    rung: str = ""
    flops: int = 0
    nbytes: int = 0
    unread: int = 0
    precision: str = ""


class Clock(msgspec.Struct, frozen=True, kw_only=True):
    """A foreign clock against the worker's: its reading minus ours was offset_ns, known to ± error_ns;
    drift_ns: by how much that had changed at the end.
    """

    name: str
    offset_ns: int
    error_ns: int = 0
    drift_ns: int = 0


class ProcessUse(msgspec.Struct, frozen=True, kw_only=True):
    """What the worker's process used from its start to the end of its case, as /usr/bin/time -v tells
    it. inputs, outputs: blocks read from and written to disks; swaps: where the system counts them (None: not
    known).
    """

    real_s: float
    user_s: float
    system_s: float
    max_rss_nbytes: int
    minor_faults: int = 0
    major_faults: int = 0
    inputs: int | None = None
    outputs: int | None = None
    swaps: int | None = None
    voluntary_switches: int | None = None
    involuntary_switches: int | None = None
    gpu_peak_nbytes: int | None = None


class DeviceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What of a GPU a diagnosis needs."""

    name: str = ""
    multiprocessors: int = 0
    warp: int = 32


class Telemetry(msgspec.Struct, frozen=True, kw_only=True):
    """The device during the timed samples, sampled at 10–20 Hz; a field is None where it can't be read."""

    device: str = ""
    sm_clock_mhz: tuple[float, ...] = ()
    power_w: tuple[float, ...] = ()
    temperature_c: tuple[float, ...] = ()
    throttle: tuple[str, ...] = ()
    cpu_percent: float | None = None
    memory_used_nbytes: int | None = None


class CaseProfile(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one case of a profile.

    samples_ns: unprofiled passes on the device's own clock, at the backend's best. pass_ns: unprofiled
    host-to-host passes (bind, run, wait, fetch) of a session just like the profiled one, and as warm;
    pass_rounds: where rounds of them start (none: they are one round, as the first passes of a session are);
    unrest: what speaks against their median, where the rounds differ ("" where they do not);
    profiled_ns: those of the profiled session. cold: the phases from the start of the process to the steady
    state. attributed: the share of kernel time in the passes that is attributed to nodes (None: there is
    none). dropped: records that the profiler had no room for (None: not known). events: how many of each
    kind; file: where they lie, in the profile's folder.
    """

    case: Case
    disposition: Literal[
        "cancelled",
        "crashed",
        "failed",
        "incorrect",
        "invalid",
        "ok",
        "out_of_memory",
        "timed_out",
        "unsupported",
        "untimed",
    ]
    reason: str = ""
    facts: dict[str, str] = msgspec.field(default_factory=dict)
    notes: tuple[str, ...] = ()
    started_at: str = ""
    schema: int = 1
    device: str = ""
    samples_ns: tuple[float, ...] = ()
    pass_ns: tuple[float, ...] = ()
    pass_rounds: tuple[int, ...] = ()
    unrest: str = ""
    profiled_ns: tuple[float, ...] = ()
    cold: tuple[Mark, ...] = ()
    breakdowns: tuple[Breakdown, ...] = ()
    operators: tuple[Operator, ...] = ()
    attributed: float | None = None
    dropped: int | None = None
    clocks: tuple[Clock, ...] = ()
    process: ProcessUse | None = None
    gpu: DeviceFacts | None = None
    telemetry: Telemetry = msgspec.field(default_factory=Telemetry)
    events: dict[str, int] = msgspec.field(default_factory=dict)
    file: str = ""


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One case, compared with its reference.

    - grade: "faster", "same" and "slower" are decided. "doubtful": decided, but something speaks against it.
      "undecided": compared, without a decision. "wrong": the answers are wrong or invalid. "none": no time,
      or no reference to compare with. "reference": the reference itself. "pending": not measured yet.
      "absent": not to be measured.
    - text: what the cell shows.
    - speedup, low, high: the reference's time divided by this case's (above 1: faster), and its 95 %
      interval; None if nothing was compared.
    - why: the numbers and reasons behind the cell, one sentence on each line.
    - doubts: what speaks against the number; if there is something, the number is marked.
    """

    batch: int
    grade: Literal[
        "absent", "doubtful", "faster", "none", "pending", "reference", "same", "slower", "undecided", "wrong"
    ]
    text: str = ""
    speedup: float | None = None
    low: float | None = None
    high: float | None = None
    why: str = ""
    doubts: tuple[str, ...] = ()


class ComparisonCase(msgspec.Struct, frozen=True, kw_only=True):
    """A case, as a line of CSV has it."""

    model: str | None
    backend: str | None
    precision: str | None
    batch: int | None
    images: int | None
    disposition: str | None
    doubtful: bool | None
    warnings: str | None
    median_s: float | None
    low_s: float | None
    high_s: float | None
    per_image_s: float | None
    images_per_s: float | None
    reference: str | None
    speedup: float | None
    speedup_low: float | None
    speedup_high: float | None
    verdict: str | None
    undecided: str | None
    top1: float | None
    top5: float | None
    agreement: float | None
    rel_l2_error: float | None
    error_bound: float | None
    error_ratio: float | None
    max_abs_error: float | None
    first_run_s: float | None
    host_to_host_s: float | None
    dataset_s: float | None
    peak_nbytes: float | None
    samples: int | None
    stopped_by: str | None
    reason: str | None
    top1_low: float | None
    top1_high: float | None
    top5_low: float | None
    top5_high: float | None
    no_accuracy: str | None
    end_to_end_batch_s: float | None
    end_to_end_batch_low_s: float | None
    end_to_end_batch_high_s: float | None
    end_to_end_images_per_s: float | None
    end_to_end_speedup: float | None
    end_to_end_speedup_low: float | None
    end_to_end_speedup_high: float | None
    end_to_end_verdict: str | None
    end_to_end_bus_share: float | None
    end_to_end_in_flight: int | None
    end_to_end_carries: str | None
    end_to_end_top_k: int | None
    end_to_end_checked: int | None
    no_end_to_end: str | None


class ComparisonLayer(msgspec.Struct, frozen=True, kw_only=True):
    """A layer of a case, as a line of CSV has it."""

    model: str | None
    backend: str | None
    precision: str | None
    batch: int | None
    doubtful: bool | None
    layer: int | None
    nodes: str | None
    op_type: str | None
    shape: str | None
    parameters: int | None
    flops: int | None
    nbytes: int | None
    rung: str | None
    chosen: str | None
    computed_in: str | None
    time_s: float | None
    share: float | None
    gflops_per_s: float | None
    gb_per_s: float | None
    beyond_memory: str | None
    clock: str | None
    isolated_rel_l2: float | None
    isolated_ok: bool | None
    isolated_ratio: float | None
    propagated_rel_l2: float | None
    propagated_ok: bool | None


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """The machine and the software of a run, for the footer of every chart. gpu_fp32_flops_per_s: what all
    cores of the GPU do at their highest clock, a multiply-add counted as two (0: not known).
    """

    machine: str = ""
    os: str = ""
    python: str = ""
    cpu: str = ""
    cores: int = 0
    memory_nbytes: int = 0
    gpu: str = ""
    gpu_uuid: str = ""
    gpu_fp32_flops_per_s: float = 0.0
    driver: str = ""
    cuda: str = ""
    packages: dict[str, str] = msgspec.field(default_factory=dict)
    backends: tuple[BackendInfo, ...] = ()
    kernelscope: str = ""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One contender with its cells, one for each batch size of the scoreboard. reference: the name of the
    contender that it is compared with ("": none). is_reference: it is itself a reference, and its cells show
    its times.
    """

    contender: str
    backend: str
    precision: str
    reference: str
    is_reference: bool
    cells: tuple[Cell, ...]


class ScoreboardOutput(msgspec.Struct, frozen=True, kw_only=True):
    """line: what it comes to, in words."""

    model: str
    precision: str
    batches: tuple[int, ...]
    lines: tuple[Line, ...]
    line: str


class ComparisonOutput(msgspec.Struct, frozen=True, kw_only=True):
    """layers: null unless --layers asks for them. scoreboards: one a model, or of a model of many contenders
    one for each precision.
    """

    schema: int = 1
    kernelscope: str = ""
    environment: Environment = msgspec.field(default_factory=Environment)
    commands: tuple[str, ...] = ()
    created_at: tuple[str, ...] = ()
    cases: tuple[ComparisonCase, ...]
    layers: tuple[ComparisonLayer, ...] | None
    scoreboards: tuple[ScoreboardOutput, ...] = ()


class ErrorStats(msgspec.Struct, frozen=True, kw_only=True):
    """How far a tensor is from the float64 oracle.

    rel_l2 = ‖y − ref‖ / ‖ref‖; max_abs and mean_abs in the tensor's unit; max_rel = max_abs / max |ref|.
    ratio is rel_l2 over the reference backend's own rel_l2 on the same tensor (None where that is not known);
    it is shown and never a gate. bound is what rel_l2 had to stay within; ok is the verdict with the
    no-element-off-by-more-than-100×-bound rule applied too; reason says in words what failed, note what is
    to be known of an answer that passed.
    """

    rel_l2: float
    max_abs: float
    mean_abs: float
    max_rel: float
    bound: float
    ok: bool
    ratio: float | None = None
    reason: str = ""
    note: str = ""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with a rung's answer: a name, when it was seen, on which params (in words), and where.
    index: the first element that differs, in an output of this shape, expected and got its values as text;
    wrong: how many of `elements` differ. map: file of the error map in the ladder's folder ("" for none).
    """

    fault: Literal[
        "activation",
        "axis",
        "barrier",
        "batch_one_only",
        "bias",
        "digits",
        "dilation",
        "endless",
        "group",
        "half_precision",
        "input_written",
        "kernel",
        "kind",
        "layout",
        "left_out",
        "nan",
        "outside",
        "pad",
        "place",
        "race",
        "remembers",
        "scale",
        "sign",
        "stale",
        "stopped",
        "stray_write",
        "stride",
        "uninitialised",
        "unwritten",
        "wrong",
        "zeros_only",
    ]
    reason: str
    when: str = ""
    params: str = ""
    index: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()
    expected: str = ""
    got: str = ""
    wrong: int = 0
    elements: int = 0
    error: ErrorStats | None = None
    map: str = ""


class JudgementOutput(msgspec.Struct, frozen=True, kw_only=True):
    """`judge --format json`: what came of one kernel.

    - name, op, device, precision: of the kernel; title: what it was judged on, in words.
      l2, threads: as they were asked for; l2 is "" in judgements from before it was told.
    - right: whether its answers are right; null where that is not known (it was refused, or the memory did
      not suffice). outcome: how it ended: "ok", "incorrect", "crashed", "timed_out", "failed" (it does not
      compile, or raises an error), "unsupported" (refused), "out_of_memory", "invalid" (no time that can be
      believed) or "cancelled". why: the reason, in a sentence; "" where it is right.
    - finding: what is wrong with its answers: the fault by name, the first wrong element, what was expected.
    - time_s: the median of a pass, with its 95 % interval; null where it was not timed.
    - against: what it was timed beside, the reference first. grade: of the first of these; "wrong" where it
      is not right, "none" where there is nothing to compare.
    - doubts: what speaks against its own time. unsteady: why the comparison with the reference is unsteady:
      another judgement is not compared with such a one. notes: what is to be known of a right answer.
    - rel_l2_error, error_bound: the relative L2 error against float64, and what it may be.
    - checks: passes whose answers were judged; samples: of its time.
    - compiled: registers, shared_nbytes, stack_nbytes and spill_nbytes of a CUDA kernel, its threads and
      occupancy; empty where the compiler tells nothing.
    - took_s: how long the judgement took, from the request to the answer.
    - simulated: it ran on the CPU, without a GPU, and has no times. counted: what a pass has cost in warp
      instructions, sectors of global memory, wavefronts of shared memory and so on, by name; costs: the
      same in sentences, with the lines that cost most.
    """

    schema: int = 1
    kernelscope: str = ""
    environment: Environment = msgspec.field(default_factory=Environment)
    commands: tuple[str, ...] = ()
    created_at: tuple[str, ...] = ()
    name: str
    op: str
    device: str
    precision: str
    title: str
    l2: str = ""
    threads: int | None = None
    right: bool | None
    outcome: Literal[
        "cancelled",
        "crashed",
        "failed",
        "incorrect",
        "invalid",
        "ok",
        "out_of_memory",
        "timed_out",
        "unsupported",
        "untimed",
    ]
    why: str
    grade: Literal["doubtful", "faster", "none", "same", "slower", "undecided", "wrong"]
    finding: Finding | None
    time_s: float | None
    low_s: float | None
    high_s: float | None
    against: tuple[Against, ...]
    doubts: tuple[str, ...]
    unsteady: tuple[str, ...]
    notes: tuple[str, ...]
    rel_l2_error: float | None
    error_bound: float | None
    checks: int
    samples: int
    compiled: dict[str, float]
    took_s: float
    simulated: bool = False
    counted: dict[str, int] = msgspec.field(default_factory=dict)
    costs: tuple[str, ...] = ()


class MachineLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a machine was measured to reach: bytes and float32 operations a second, by which means, when.
    matrix_flops_per_s: of the matrix units, by the type of the factors (WHOLE: whole numbers);
    matrix_missing: why that is not known ("" where it is, and for a device that has none). cache_nbytes: of
    the caches together; cache_bytes_per_s: how fast those of the second level are; nearest_nbytes: what may
    lie nearer than these from one pass to the next. 0 where not known.
    """

    device: str
    bytes_per_s: float
    flops_per_s: float
    copied_by: str
    multiplied_by: str
    measured_on: str
    measured_at: str
    matrix_flops_per_s: dict[str, float] = msgspec.field(default_factory=dict)
    matrix_by: str = ""
    matrix_missing: str = ""
    cache_nbytes: int = 0
    cache_bytes_per_s: float = 0.0
    nearest_nbytes: int = 0


class LadderRung(msgspec.Struct, frozen=True, kw_only=True):
    """A rung, or the reference."""

    number: int | None
    rung: str | None
    whose: str | None
    precision: str | None
    side: str | None
    disposition: str | None
    doubtful: bool | None
    warnings: str | None
    fault: str | None
    median_s: float | None
    low_s: float | None
    high_s: float | None
    flops_per_s: float | None
    bytes_per_s: float | None
    share_of_limit: float | None
    rel_l2_error: float | None
    speedup: float | None
    speedup_low: float | None
    speedup_high: float | None
    verdict: str | None
    gain_over: str | None
    gain: float | None
    gain_low: float | None
    gain_high: float | None
    gain_verdict: str | None
    registers: float | None
    shared_nbytes: float | None
    stack_nbytes: float | None
    spill_nbytes: float | None
    threads: float | None
    occupancy: float | None
    checks: int | None
    samples: int | None
    idea: str | None
    reason: str | None
    language: str | None
    error_bound: float | None
    instructions: int | None
    busy_lanes: float | None
    requests: int | None
    sectors: int | None
    least_sectors: int | None
    sectors_a_request: float | None
    sectors_of_least: float | None
    shared_requests: int | None
    wavefronts: int | None
    least_wavefronts: int | None
    wavefronts_of_least: float | None
    divergent: int | None
    barriers: int | None
    atomics: int | None
    local_sectors: int | None
    finding: Finding | None


class LadderOutput(msgspec.Struct, frozen=True, kw_only=True):
    """`ladder --format json`. line: which rung is the fastest, in words; rungs: as in CSV, with what is wrong
    with an answer; models: whole models with a rung in them.
    """

    schema: int = 1
    kernelscope: str = ""
    environment: Environment = msgspec.field(default_factory=Environment)
    commands: tuple[str, ...] = ()
    created_at: tuple[str, ...] = ()
    title: str
    device: str
    precision: str | None
    flops: int
    nbytes: int
    reference: str
    limits: MachineLimits | None
    line: str
    rungs: tuple[LadderRung, ...]
    models: tuple[LadderRung, ...]


class ProfileJob(msgspec.Struct, frozen=True, kw_only=True):
    """What the user asked for: a model on backends × batches. runs: how many forward passes are profiled;
    warm_up: how many go before them in the profiled session. budget_s: the most seconds of unprofiled
    samples a case. cuda_graph: replay as one graph, where
    the backend's profile allows it. apart: in the profiled session each operator has a step of its own, where
    our engine would do two in one. copies: behind each profiled pass of our engine on a GPU every layer's
    output is copied to the host and back, over such memory ("": none is). counters: one more pass, in which
    the GPU's hardware counts. The others as in bench.results.records.Job.
    """

    model: str
    backends: tuple[str, ...]
    batches: tuple[int, ...] = (1,)
    precision: str = "fp32"
    runs: int = 5
    warm_up: int = 3
    dataset: str | None = None
    preprocess: str | None = None
    cuda_graph: bool = True
    rungs: dict[str, str] = msgspec.field(default_factory=dict)
    budget_s: float = 2.0
    counters: bool = False
    apart: bool = False
    copies: Literal["", "managed", "pageable", "pinned"] = ""
    max_error: float | None = None
    threads: int | None = None
    timeout_s: float = 600.0
    kernel_dirs: tuple[str, ...] = ()
    seed: int = 0


class ShownTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table. rows: by the names of its columns, as CSV has them, and what a row is of."""

    key: str
    title: str
    rows: tuple[dict[str, str | float | int | bool | tuple[str, ...] | None], ...]
    notes: tuple[str, ...]


class ProfileOutput(msgspec.Struct, frozen=True, kw_only=True):
    """`profile --format json`: what profile.json holds, its cases as results.jsonl has them, and the tables
    that were asked for.
    """

    schema: int = 1
    kernelscope: str = ""
    environment: Environment = msgspec.field(default_factory=Environment)
    commands: tuple[str, ...] = ()
    created_at: tuple[str, ...] = ()
    job: ProfileJob
    limits: dict[str, MachineLimits]
    cases: tuple[CaseProfile, ...]
    tables: tuple[ShownTable, ...]
