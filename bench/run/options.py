"""The options of all commands that measure, each once: name, type, help, group, the field of the job, and the
name of its field in the window's form. Which command has which stands at the end.

What an option is when nobody gives it is the default of the job's field, unless its `usual` says otherwise: a
file that was written before the field was there is still read as it was meant.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bench.kinds.options import (
    Choice,
    Names,
    Option,
    Pairs,
    Seconds,
    Sizes,
    Switch,
    Text,
    Whole,
    WholeNumbers,
    Words,
    absolute,
    integers,
    integers_of,
)
from kernels.errors import InputError
from kernels.precision import NAMES

WHAT = "What is measured"
DATA = "Images and answers"
HOW = "How it is measured"
KERNELS_GROUP = "Kernels"
SHAPE_GROUP = "A convolution of your own, in place of a model's node"
MORE = "What else is measured"
WRITING = "Writing a kernel of your own"
AGAIN = "Going on with an unfinished run"
ELSEWHERE = "On other machines"
SHOWN = "What is shown and kept"

MAX_BATCH = 100_000
MOST_RUNS = 1000
# How many sessions of each contender are timed where nobody says how many.
INSTANCES = 3
DEVICES = ("cpu", "cuda")


def _given(text: str) -> str:
    """What an input is given: a number as it is, a file by its whole path."""
    try:
        float(text)
    except ValueError:
        return absolute(text)
    return text


def _preparation(text: str) -> str:
    """A preprocessing as it is, a file of one by its whole path."""
    return absolute(text) if text.endswith(".toml") else text


def _folder(text: str) -> None:
    if not Path(text).expanduser().is_dir():
        raise InputError(f"kernel folder {text} does not exist; name a folder with kernels of yours")


def _numbers(text: str) -> tuple[int, ...]:
    return integers_of(text, "--shape, --stride, --pad or --dilation")


# ------------------------------------------------------------------------------------------ what is measured

MODELS = Option(
    "models",
    Words(),
    "Names of models (see `models list`), or .onnx files (`models show FILE` says what one takes).",
    WHAT,
    "MODEL",
    fields=("models",),
    usual=("lenet5-digits",),
    always=True,
    argument=True,
)
MODEL = Option(
    "model",
    Text(),
    "The name of a model, or an .onnx file.",
    WHAT,
    "MODEL",
    fields=("model",),
    usual="lenet5-digits",
    always=True,
    argument=True,
)
BACKEND = Option(
    "backend",
    Names(),
    "A backend; may be repeated. Default: all that can run here.",
    WHAT,
    "NAME",
    fields=("backends",),
    usual=(),
)
BATCH = Option(
    "batch",
    Sizes(most=MAX_BATCH, missing=integers("1..256", "")),
    "Batch sizes; 1..1024 doubles from 1 to 1024. Repeat with MODEL= for one model only. A file that fixes "
    "its batch runs at that one.",
    WHAT,
    "[MODEL=]N,N,…",
    fields=("batches", "own_batches"),
    usual=(integers("1..256", ""), {}),
    always=True,
    hint="for example 1,2,4 or 1..1024",
)
PRECISION = Option(
    "precision",
    Names(known=NAMES, joined=True),
    f"One or more of {', '.join(NAMES)}.",
    WHAT,
    "P,P,…",
    fields=("precisions",),
)
OP = Option(
    "op",
    Text(),
    "The operator: conv, gemm, pool, lrn, …; or net, a whole model.",
    WHAT,
    "OP",
    fields=("op",),
    usual="conv",
    always=True,
    argument=True,
)
OF_MODEL = Option(
    "model",
    Text(nothing=""),
    "The name of a model, or an .onnx file; default: one of the default comparison's.",
    WHAT,
    "M",
    fields=("model",),
    always=True,
)
NODE = Option(
    "node",
    Text(nothing=""),
    "Its node: a name, or a number among its nodes of OP, from 0.",
    WHAT,
    "NAME|INDEX",
    fields=("node",),
    usual="0",
    always=True,
)
DEVICE = Option(
    "device",
    Choice(known=DEVICES, nothing=""),
    "Default: cuda where it can run, else cpu.",
    WHAT,
    fields=("device",),
    usual="",
    always=True,
)
ONE_PRECISION = replace(
    PRECISION,
    value=Choice(known=NAMES, nothing=""),
    help=f"One of {', '.join(NAMES)}.",
    metavar="P",
    fields=("precision",),
)

# ---------------------------------------------------------------------------------------- images and answers

DATASET = Option(
    "dataset",
    Text(),
    "The data set; default: the model's own.",
    DATA,
    "NAME|folder:DIR|random",
    fields=("dataset",),
)
IMAGES = Option(
    "images",
    Sizes(most=1_000_000),
    "How many images the accuracy is counted over; MODEL= as for --batch.",
    DATA,
    "[MODEL=]N,N,…",
    fields=("images", "own_images"),
    label="&Images",
    hint="the model's own number",
)
PREPROCESS = Option(
    "preprocess",
    Text(look="models.preparation:parse", keep=_preparation),
    "What is done to an image: unit (0 to 1), raw, imagenet, caffe, MEAN,STD or a .toml file; default: what"
    " the model's file says of itself, else unit.",
    DATA,
    "P",
    fields=("preprocess",),
    label="&Prepare",
    hint="the model's own, else unit",
)
LABELS = Option(
    "labels",
    Text(look="models.labels:check", keep="models.labels:file_of"),
    "The order of a model file's classes: a text file with one class a line, imagenet for the 1,000 of "
    "ImageNet, or alphabetical; default: what the model's file says, else folders named by number.",
    DATA,
    "FILE|imagenet|alphabetical",
    fields=("labels",),
    label="Classes",
    hint="the model's own; or a file",
)
SCORES = Option(
    "scores",
    Text(),
    "The output that holds the class scores; default: found by its shape.",
    DATA,
    "NAME",
    fields=("scores",),
    label="Scores",
    hint="found by its shape",
)
INPUT = Option(
    "input",
    Pairs(form="NAME=NUMBER or NAME=FILE.npy, as in scale=1.0", last=False, keep=_given),
    "What an input beside the images is given, the same for each image; may be repeated.",
    DATA,
    "NAME=NUMBER|FILE.npy",
    fields=("inputs",),
    label="Inputs",
    hint="beside images: NAME=NUMBER",
)
DIM = Option(
    "dim",
    Pairs(form="NAME=SIZE, as in height=224", most=1 << 30),
    "The size of an axis that a file leaves open, beside its batch (height=224); may be repeated. Default: "
    "guessed from the data set, and said.",
    DATA,
    "[MODEL:]NAME=N",
    fields=("dims",),
    label="Axes",
    hint="guessed; or height=224",
)

# ---------------------------------------------------------------------------------------- how it is measured

THREADS = Option(
    "threads",
    Whole(most=4096, words="one a core"),
    "CPU threads, for our kernels and for ONNX Runtime; default: one per core.",
    HOW,
    "N",
    fields=("threads",),
    label="Thre&ads",
)
_L2 = {"warm": "passes follow each other", "cold": "emptied before each pass"}
L2 = Option(
    "l2",
    Choice(known=_L2),
    f"The L2 cache before a pass. {'; '.join(f'{state}: {means}' for state, means in _L2.items())}.",
    HOW,
    fields=("l2",),
    label="&L2 cache",
)
BUDGET = Option(
    "budget",
    Seconds(),
    "The most seconds of samples for each case; sampling stops earlier once the result is clear.",
    HOW,
    "S",
    fields=("budget_s",),
    label="&Time",
    hint="s a case",
)
TIMEOUT = Option(
    "timeout",
    Seconds(),
    "Give up a case that is still running after S seconds.",
    HOW,
    "S",
    fields=("timeout_s",),
)
SESSIONS = Option(
    "instances",
    Whole(most=100),
    "Time at least N sessions of each contender in turn, and more where they are quickly made. The interval"
    " then includes how they differ.",
    HOW,
    "N",
    fields=("instances",),
    usual=INSTANCES,
    label="I&nstances",
    hint="or more of each",
)
LAYER_PASS = Option(
    "layer-pass",
    Switch(both=True),
    "Measure every layer, too: its time and its errors, in separate passes.",
    HOW,
    fields=("layers",),
    label="Measure &every layer",
)
LAYER_PASS_OF = Option(
    "layer-pass-of",
    Names(),
    "Measure the layers of this backend alone, which is quicker; may be repeated.",
    HOW,
    "NAME",
    fields=("layers_of",),
)
END_TO_END = Option(
    "end-to-end",
    Switch(),
    "Also measure host images to host answers as a rate: several batches are in flight, copies and kernels "
    "are at work at once.",
    MORE,
    fields=("end_to_end",),
    label="End to end, as a &rate",
)
TOP_K = Option(
    "top-k",
    Whole(nothing=0),
    "With --end-to-end: bring back only the K best classes, chosen on the device.",
    MORE,
    "K",
    fields=("top_k",),
)
TUNE_REFERENCE = Option(
    "tune-reference",
    Switch(),
    "Also run ONNX Runtime (CUDA) with its fastest options, and with the fastest whose every layer is "
    "within its bound. They are searched once for each case, and kept.",
    MORE,
    fields=("tune_reference",),
    label="T&une the reference",
)
RUNS = Option(
    "runs",
    Whole(most=MOST_RUNS),
    "How many passes are profiled, after some to warm up.",
    HOW,
    "K",
    fields=("runs",),
)
COPIES = Option(
    "copies",
    Choice(known=("pageable", "pinned", "managed"), nothing=""),
    "On a GPU: also copy every layer's output to the host and back, over such memory.",
    MORE,
    fields=("copies",),
)
COUNTERS = Option(
    "counters",
    Switch(),
    "Also read the GPU's hardware counters for each kernel (bytes moved, sectors accessed), by Nsight "
    "Compute (ncu) in a separate pass.",
    MORE,
    fields=("counters",),
)
REPORT = Option(
    "report",
    Switch(),
    "The table of a course report: one pass per batch size, time by batch and by call.",
    SHOWN,
    fields=("apart",),
)

# ------------------------------------------------------------------------------------------------- kernels

TUNE = Option(
    "tune",
    Switch(on="all", off="none", both=True),
    "Time our kernels for each step once and use the fastest; default: only on CUDA.",
    KERNELS_GROUP,
    fields=("tune",),
)
RUNG = Option(
    "rung",
    Pairs(form="NODE=RUNG, as in conv1=tiled"),
    "The kernel for a node, in one model or in all, on one device or on both; may be repeated.",
    KERNELS_GROUP,
    "[MODEL:]NODE=[cpu/|cuda/]RUNG",
    fields=("rungs",),
)
RUNGS = Option(
    "rung",
    Words(),
    "A kernel (rung) by number or name; may be repeated.",
    KERNELS_GROUP,
    "N",
    fields=("rungs",),
)
KERNELS = Option(
    "kernels",
    Words(keep=absolute, look=_folder),
    "A folder of your own kernels; may be repeated.",
    KERNELS_GROUP,
    "DIR",
    fields=("kernel_dirs",),
)
SEARCH = Option(
    "tune",
    Switch(),
    "First search the fastest of what CUDA rungs list under [tune], and keep it.",
    KERNELS_GROUP,
    fields=("tune",),
)
WHOLE_MODEL = Option(
    "whole-model",
    Switch(),
    "Also run the whole model with each kernel in it.",
    MORE,
    fields=("whole_model",),
)
OF_A_SHAPE = (
    Option(
        "shape",
        Text(keep=_numbers),
        "conv: this shape, with the kernel's height and width as KH,KW where they differ.",
        SHAPE_GROUP,
        "N,C,H,W,M,K",
    ),
    Option("stride", Text(keep=_numbers), "How far the kernel moves.", SHAPE_GROUP, "S|H,W"),
    Option("pad", Text(keep=_numbers), "Zeros around the image.", SHAPE_GROUP, "P|H,W|T,L,B,R"),
    Option("dilation", Text(keep=_numbers), "The distance of the kernel's weights.", SHAPE_GROUP, "D|H,W"),
    Option("group", Whole(), "In how many groups channels are parted.", SHAPE_GROUP, "G"),
    Option("bias", Switch(both=True), "Whether a bias is added.", SHAPE_GROUP),
    Option("activation", Text(nothing=""), "relu, tanh, sigmoid or relu6.", SHAPE_GROUP, "A"),
)
OF_YOUR_OWN = (
    Option("new", Switch(), "Write a template for your own kernel into DIR.", WRITING),
    Option("watch", Switch(), "Run your own kernels again whenever you save a file.", WRITING),
    Option(
        "saves",
        Text(keep=Path),
        "Show what each save in this folder of kernels gained or lost under --watch.",
        WRITING,
        "DIR",
    ),
    Option("compile", Switch(), "Only compile the CUDA rungs: needs no GPU.", WRITING),
    Option(
        "arch",
        Names(),
        "With --compile: sm_80, …; default: this GPU's, or what a rung asks for.",
        WRITING,
        "A,A,…",
    ),
)
FOLDER = Option(
    "folder", Text(keep=Path), "With --new: where the template goes.", WRITING, "[DIR]", argument=True
)

# ------------------------------------------------------------------------ where it runs, and what comes of it

RESUME = Option("resume", Text(keep=Path), "Continue an unfinished run.", AGAIN, "RUN")
RETRY = Option("retry", Switch(), "With --resume: also repeat what crashed or timed out.", AGAIN)
TRUST = Option(
    "trust-kernels", Switch(), "With --resume: run the kernels of others that the run names.", AGAIN
)
CLUSTER = Option(
    "cluster", Text(), "Have a Ray cluster do it (needs the extra `cluster`).", ELSEWHERE, "ADDRESS|local"
)
GPU = Option("gpu", Text(), "With --cluster: on this kind of GPU, such as H200.", ELSEWHERE, "KIND")
OUT = Option("out", Text(keep=Path), "The folder; default: a dated one in ./runs.", SHOWN, "DIR")
CHARTS = Option(
    "charts",
    Names(known="bench.show.draw:FORMATS", joined=True, none="none"),
    "Some of png, svg, pdf; or none.",
    SHOWN,
    "F,F,…",
)
FORMAT = Option(
    "format",
    Choice(known="bench.show.table:FORMATS"),
    "What goes to standard output.",
    SHOWN,
    "table|csv|json|md",
)
OF_LAYERS = (
    Option("layers", Switch(), "Also print the time and errors of every layer.", SHOWN),
    Option(
        "bisect",
        Switch(),
        "Also say at which layer each backend first leaves the reference, and whether by itself.",
        SHOWN,
    ),
)
OF_A_PROFILE = (
    Option(
        "table",
        Choice(
            known=(
                *(
                    "main",
                    "all",
                    "activities",
                    "calls",
                    "breakdown",
                    "cold",
                    "process",
                    "findings",
                    "counters",
                ),
                "report",
            ),
            nothing="",
        ),
        "Which table; main: the parts of a pass and what holds operators back. Default: main in a terminal's "
        "form, all in the others.",
        SHOWN,
    ),
    Option("by", Choice(known=("name", "operator", "node")), "How kernels are grouped.", SHOWN),
    Option("window", Choice(known=("pass", "all", "create", "close")), "Which part of the session.", SHOWN),
    Option("match", Text(nothing=""), "Only kernels and calls whose name contains TEXT.", SHOWN, "TEXT"),
    Option("full-names", Switch(), "Kernel names in full, with template arguments.", SHOWN),
    Option("trace", Text(keep=Path), "Also write a trace for Perfetto or Chrome.", SHOWN, "FILE"),
    Option("load", Text(keep=Path), "Show a profile that was saved before.", SHOWN, "DIR"),
)

# -------------------------------------------------------------------------------------------- who has which

MEASURING = (THREADS, L2, BUDGET, TIMEOUT, SESSIONS)
UNFINISHED = (RESUME, RETRY, TRUST)
PLACES = (CLUSTER, GPU, OUT, CHARTS, FORMAT)

COMPARE = (
    *(MODELS, BACKEND, BATCH, PRECISION, DATASET, IMAGES, PREPROCESS, LABELS, SCORES, INPUT, DIM, *MEASURING),
    *(LAYER_PASS, LAYER_PASS_OF, TUNE, TUNE_REFERENCE, END_TO_END, TOP_K, RUNG, KERNELS, *OF_LAYERS),
    *(*UNFINISHED, *PLACES),
)
LADDER = (
    *(OP, FOLDER, OF_MODEL, NODE),
    replace(
        BATCH, value=Whole(most=MAX_BATCH), help="The batch size.", metavar="N", fields=("batch",), usual=1
    ),
    *(DEVICE, RUNGS),
    replace(ONE_PRECISION, help="Only rungs in fp32 and in P: tf32, fp16, …"),
    *(KERNELS, *MEASURING, WHOLE_MODEL, SEARCH, *OF_A_SHAPE, *OF_YOUR_OWN, *UNFINISHED, *PLACES),
)
PROFILE = (
    *(MODEL, replace(BACKEND, value=Names(joined=True), metavar="NAME,NAME")),
    replace(
        BATCH,
        value=WholeNumbers(most=MAX_BATCH),
        help="Batch sizes; 1..1024 doubles from 1 to 1024.",
        metavar="N,N,…",
        fields=("batches",),
        usual=(1,),
    ),
    *(ONE_PRECISION, RUNS, COUNTERS, REPORT, COPIES, DATASET, PREPROCESS, THREADS),
    replace(RUNG, metavar="NODE=RUNG", help="The kernel for a node; may be repeated."),
    *(KERNELS, BUDGET, TIMEOUT, *OF_A_PROFILE, *PLACES),
)
