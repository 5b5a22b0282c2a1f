"""What every run is recorded in, and what a comparison adds, as frozen records: the wire format, the result
file and the format that is read again in one.

A run's folder holds its Header and `results.jsonl` (a CaseResult a line); the worker's standard output
carries one Message a line (bench.results.messages). Of a comparison: Job (what to run) → Case (one model,
backend, precision, batch, image count) → Measurement (what came of it); its header is `run.json` (a Run).
Raw samples are stored; medians and spread are derived on reading (bench.results.stats). This module reaches
nothing but msgspec: a notebook can read a run without an engine.
"""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

from bench.results.machine_limits import Beyond, MachineLimits
from bench.results.names import check_name as check_name
from bench.results.names import stem as stem
from bench.results.surroundings import BackendInfo as BackendInfo
from bench.results.surroundings import Environment as Environment
from bench.results.surroundings import ModelInfo as ModelInfo
from bench.results.surroundings import Record as Record
from kernels import precision as precisions

J = TypeVar("J")
C = TypeVar("C")

Disposition = Literal[
    "ok",
    "incorrect",
    "invalid",
    "unsupported",
    "out_of_memory",
    "crashed",
    "timed_out",
    "cancelled",
    "failed",
    "untimed",
]

# Why no more samples were taken: the verdict against the reference is clear (of a reference: all against it
# are); the interval of the own median is narrow enough; more rounds would not narrow it, as the instances of
# the session differ or the clock is too coarse; the seconds or the samples allowed are spent.
StopReason = Literal["verdict", "interval", "exhausted", "budget", "max_samples", ""]
# How a case ends that takes its worker with it; the fact that tells by which signal it went, and those that
# come from outside and not of what it did.
LOST: tuple[Disposition, ...] = ("crashed", "timed_out")
KILLED_BY = "killed by"
FROM_OUTSIDE = ("SIGKILL", "SIGTERM")
# The fact that tells on which machine it was measured, where that is not the run's own.
MACHINE = "machine"
# The fact that tells where the figures of a case that is the same as another one are from.
MEASURED_AS = "measured_as"
# The fact that tells what a copy of a run that was made small has no more (bench.results.thin).
LEFT_OUT = "left out"
# What a run keeps beside its lines, each a folder with a file a case (bench.results.artifacts).
PARTS = ("predictions", "layers")

# The phases of a measurement, in the order they are shown. The first four happen once, in `prepare`; the
# others are medians of one host-to-host pass of one batch; what no phase explains is shown as the rest.
PREPARE_PHASES = ("load", "compile", "alloc", "upload")
RUN_PHASES = ("h2d", "compute", "d2h", "sync")


class Asked(Record, frozen=True, kw_only=True):
    """What every kind of run may be asked for. threads: None = one a physical core. timeout_s: seconds after
    which a case is given up. kernel_dirs: folders of the user's own kernels."""

    threads: int | None = None
    timeout_s: float = 600.0
    kernel_dirs: tuple[str, ...] = ()
    seed: int = 0


class Sampled(Asked, frozen=True, kw_only=True):
    """What a run that compares may be asked for. l2: "warm" or "cold". instances: how many sessions of each
    contender are timed (1, as it was before records said so; whoever makes a job asks for
    bench.run.options.INSTANCES)."""

    l2: Literal["warm", "cold"] = "warm"
    instances: int = 1


class Job(Sampled, frozen=True):
    """What the user asked for. Everything the worker needs and nothing that depends on when it runs.

    models: catalogue names or paths of `.onnx` files. images: how many images of the data set, one case
    each; () = the model's default. dataset: None = the model's own, else a data set's name, "folder:DIR" or
    "random". preprocess: None = the model's own ("unit" where its file says none), else what
    models.preparation understands. labels: a file of the classes of models given by path, a line each in the
    model's order, or "alphabetical"; scores: the output that holds the class scores; None = as the model's
    file says or its shape. inputs: what further inputs are given, a number or a .npy file, by name.
    budget_s: the most seconds of samples a case. layers: also measure every operator (time and error);
    layers_of: of these backends alone, and of errors each layer's own alone (() = of all, with what is
    carried along and the reference's beside it).
    rungs: node name → rung name; swaps: the same, of kernels that take the place of a node in the reference.
    own_batches, own_images: model (as in models, or its file's stem) → what it takes in
    place of the general ones. tune: whose kernels are timed first where this machine has no choice of a case:
    "cuda"'s, "all", or "none" (then the ladder's order decides, whatever was timed before).
    tune_reference: beside the CUDA reference also its tuned variants, swept first where this machine has no
    sweep of a case. end_to_end: also measure host images to host answers as a sustained rate; top_k: of which
    the best so many classes alone are wanted back (0: all).
    max_error: the budget of a mixed precision: how far the answer for an image may be off, as a relative L2
    error (None: kernels.precision.MAX_ERROR).
    dims: sizes of axes that a model's file leaves open, by name, "height", or for one model "MODEL:height".
    """

    models: tuple[str, ...]
    backends: tuple[str, ...]
    precisions: tuple[str, ...] = ("fp32",)
    batches: tuple[int, ...] = (1,)
    images: tuple[int, ...] = ()
    dataset: str | None = None
    preprocess: str | None = None
    budget_s: float = 15.0
    layers: bool = True
    layers_of: tuple[str, ...] = ()
    cuda_graph: bool = True
    rungs: dict[str, str] = {}
    swaps: dict[str, str] = {}
    own_batches: dict[str, tuple[int, ...]] = {}
    own_images: dict[str, tuple[int, ...]] = {}
    tune: Literal["cuda", "all", "none"] = "cuda"
    tune_reference: bool = False
    labels: str | None = None
    scores: str | None = None
    inputs: dict[str, str] = {}
    end_to_end: bool = False
    top_k: int = 0
    dims: dict[str, int] = {}
    max_error: float | None = None

    def dims_of(self, model: str) -> dict[str, int]:
        """The sizes that hold for a model, by the axes' names."""
        found = {name: size for name, size in self.dims.items() if ":" not in name}
        for owner in (stem(model), model):
            start = f"{owner}:"
            found |= {name[len(start) :]: n for name, n in self.dims.items() if name.startswith(start)}
        return found

    def times_layers(self, backend: str) -> bool:
        """Whether the layers of a case on this backend are measured."""
        return self.layers and (not self.layers_of or backend in self.layers_of)

    def batches_of(self, model: str) -> tuple[int, ...]:
        """The batch sizes that a model is run at."""
        return self.own_batches.get(model) or self.own_batches.get(stem(model)) or self.batches

    def images_of(self, model: str) -> tuple[int, ...]:
        """The image counts that a model is run on; () = as many as it says."""
        return self.own_images.get(model) or self.own_images.get(stem(model)) or self.images


class Case(Record, frozen=True):
    """One point of the comparison. images is the number of images the accuracy is taken on (0: random
    input)."""

    model: str
    backend: str
    precision: str
    batch: int
    images: int = 0

    def __post_init__(self) -> None:
        check_name("backend", self.backend)
        check_name("precision", self.precision)
        if "\0" in self.model or not (0 < self.batch < 1 << 40 and 0 <= self.images < 1 << 40):
            raise ValueError("a case of no model, batch size or number of images that there can be")

    @property
    def key(self) -> str:
        """Unique in a run and fit for a file name; a model given by path appears by its stem."""
        return f"{stem(self.model)}-{self.backend}-{self.precision}-b{self.batch}-n{self.images}"

    @property
    def words(self) -> str:
        images = f", {self.images} images" if self.images else ""
        return f"{self.model} on {self.backend}, {self.precision}, batch {self.batch}{images}"


def compared_in(precision: str) -> str:
    """The precision of the reference that a rung of `precision` is held against: fp32-tc stands for fp32, and
    so does a mixed one."""
    return precisions.of(precision).reference if precisions.known(precision) else precision


class ErrorStats(Record, frozen=True):
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


class Layer(Record, frozen=True):
    """One operator of a model on one backend: its time and its errors, from passes of their own. Ours are
    checked alone before anything is timed, and told with that error where no layer is timed.

    nodes: ONNX node names covered (a fused group is one layer); inputs: the `output` of each layer it reads,
    or the name of a model input (constants left out); output: its tensor; shape: with the batch.
    time_ns: median (None where not measured); clock: "host", "events", "stamps" or "isolated"
    (see engine.backend.OpTime).
    isolated: fed the oracle's inputs; propagated: fed what the backend itself computed before. chosen: what
    chose the rung, "named", "timed", the "ladder" or the "layout" ("": there is no rung). precision: what the
    rung computes in ("": not known).
    nbytes: what it reads and writes at least as this backend keeps it, weights as its kernel reads them; 0
    where that is not known. unread: how much of it a kernel may do without, of inputs not read whole.
    least_nbytes: what no kernel of this precision does without; None in records from before it was told,
    whose nbytes has all numbers in float32. beyond: bench.results.machine_limits.MachineLimits.beyond.
    """

    nodes: tuple[str, ...]
    op_type: str
    output: str
    inputs: tuple[str, ...] = ()
    shape: tuple[int, ...] = ()
    parameters: int = 0
    flops: int = 0
    nbytes: int = 0
    rung: str = ""
    chosen: str = ""
    precision: str = ""
    time_ns: float | None = None
    clock: str = ""
    isolated: ErrorStats | None = None
    propagated: ErrorStats | None = None
    unread: int = 0
    least_nbytes: int | None = None
    beyond: Beyond = ""


class Accuracy(Record, frozen=True):
    """What the answers were worth.

    images: how many were run; labelled: whether top1 and top5 (fractions) mean anything; agreement: the
    fraction whose top-1 answer equals the reference backend's; output: the model's output against the oracle
    on `checked` images, placed first, in the middle and last in the batch.
    """

    images: int
    labelled: bool
    top1: float | None = None
    top5: float | None = None
    agreement: float | None = None
    reference: str = ""
    checked: int = 0
    output: ErrorStats | None = None
    refused: str = ""
    hint: str = ""
    notes: tuple[str, ...] = ()


class Telemetry(Record, frozen=True):
    """The device during the timed samples, sampled at 10–20 Hz; a field is None where it can't be read."""

    device: str = ""
    sm_clock_mhz: tuple[float, ...] = ()
    power_w: tuple[float, ...] = ()
    temperature_c: tuple[float, ...] = ()
    throttle: tuple[str, ...] = ()
    cpu_percent: float | None = None
    memory_used_nbytes: int | None = None


class Validity(Record, frozen=True):
    """Whether the samples deserve trust: why sampling stopped, how often it was retried, and what was
    seen."""

    stop_reason: StopReason = ""
    retries: int = 0
    warnings: tuple[str, ...] = ()


class EndToEnd(Record, frozen=True):
    """Host images to host answers as a sustained rate, several batches in flight; a clock of its own, not
    that of `samples_ns` of a Measurement.

    samples_ns: of a batch, one a sample, each the mean of `batches` in a row; rounds: where a round starts
    among them. lanes: batches in flight. carries: the type in which images travel. nbytes_in, nbytes_out: of
    a batch, over the bus; bus_bytes_per_s: what the same buffers reach with nothing else to do (None: there
    is no bus). top_k: the best classes that come back (0: all outputs). checked: timed batches whose answers
    were looked at. refused: why it was not measured. warnings: what speaks against it.
    """

    samples_ns: tuple[float, ...] = ()
    rounds: tuple[int, ...] = ()
    batches: int = 1
    lanes: int = 1
    carries: str = ""
    nbytes_in: int = 0
    nbytes_out: int = 0
    bus_bytes_per_s: float | None = None
    top_k: int = 0
    checked: int = 0
    refused: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def instances(self) -> tuple[int, ...]:
        """There is one of each contender."""
        return ()

    @property
    def quantile(self) -> float:
        """Batches in flight share what happens to one of them: their rate is compared by medians."""
        return 0.5

    @property
    def load(self) -> dict[str, float]:
        """It has no telemetry of its own."""
        return {}


class CaseResult(Record, Generic[C], frozen=True):
    """What came of one case of any run. A disposition other than "ok" carries its reason; nothing is ever -1.
    facts: what was really used (provider, …), and what else is to be known of it; notes: what a reader should
    know of a right answer."""

    case: C
    disposition: Disposition
    reason: str = ""
    facts: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    started_at: str = ""
    schema: int = 1


class TimedResult(CaseResult[C], Generic[C], frozen=True):
    """What came of a case that is timed in rounds beside others.

    samples_ns: one a sample, each the mean of `runs_per_sample` passes in a row over one batch; rounds:
    where a new interleaving round starts among the samples (indices); instances: which instance of the
    session each round was of, by number (() = there was one). quantile: of a turn, that it is compared by;
    load: who used the host's cores during its turns, where it is timed on the host's clock: how many `cores`
    it may use, the seconds of the clock (wall_s), and of these cores together those that our threads ran
    (ran_s) and waited for a core (waited_s), that others_s ran, that a machine below took (stolen_s).
    """

    samples_ns: tuple[float, ...] = ()
    runs_per_sample: int = 1
    rounds: tuple[int, ...] = ()
    instances: tuple[int, ...] = ()
    quantile: float = 0.5
    load: dict[str, float] = {}
    telemetry: Telemetry = Telemetry()
    validity: Validity = Validity()


class Measurement(TimedResult[Case], frozen=True):
    """What came of one case of a comparison.

    first_run_ns: the very first pass, apart.
    phases: ns by name: PREPARE_PHASES once, RUN_PHASES as medians of host-to-host passes; wall_ns: the median
    of the whole host-to-host pass that RUN_PHASES divide. launched_ns: of passes launched and waited for, one
    behind the other, without copies: the median and its 95 % interval. dataset_ns: the whole pass over all
    images, by "wall", "compute". memory: nbytes by kind.
    """

    reference: str = ""
    first_run_ns: int | None = None
    phases: dict[str, float] = {}
    wall_ns: float | None = None
    launched_ns: tuple[float, ...] = ()
    dataset_ns: dict[str, float] = {}
    layers: tuple[Layer, ...] = ()
    accuracy: Accuracy | None = None
    memory: dict[str, int] = {}
    end_to_end: EndToEnd | None = None

    def __post_init__(self) -> None:
        check_name("backend", self.reference)


class Header(Record, Generic[J, C], frozen=True):
    """Everything about a run that is not a measurement; each kind has a file of it. models: that were read;
    limits: what each of its devices was measured to reach, by device."""

    job: J
    cases: tuple[C, ...]
    command: str = ""
    created_at: str = ""
    environment: Environment = Environment()
    models: tuple[ModelInfo, ...] = ()
    limits: dict[str, MachineLimits] = {}
    schema: int = 1


class Run(Header[Job, Case], frozen=True):
    """`run.json`: a comparison."""
