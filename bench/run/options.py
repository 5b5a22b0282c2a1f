"""The options of the commands that measure, each once: name, type, help, the commands that have it, the field
of the job that it sets, and its name in the window's form.

Without an option the default of the job's field holds, unless its `usual` says otherwise: a file that was
written before the field existed keeps its meaning.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from bench.words.option import (
    Names,
    Number,
    Numbers,
    Option,
    Pairs,
    Sizes,
    Switch,
    Text,
    absolute,
    integers,
    integers_of,
)
from kernels.errors import InputError
from kernels.precision import ASKED, MAX_ERROR, MIXED, NAMES, written

MAX_BATCH = 100_000
LONG = 10_000_000  # seconds or milliseconds
SECONDS = Number(kind=float, least=1e-6, most=LONG)
# How many sessions of each contender are timed where nobody says how many.
INSTANCES = 3
JUDGE_BUDGET_S = 0.1  # of samples, where one kernel is judged and somebody waits
# Of an answer in a mixed precision: float32 itself is off by more than the least.
LEAST_ERROR, MOST_ERROR = 1e-8, 0.5
DEVICES = ("cpu", "cuda")
# Who has an option, by first letters.
C, L, P, S, J = COMMANDS = ("compare", "ladder", "profile", "selfcheck", "judge")
ALL = (C, L, P)


def _given(text: str) -> str:
    """What an input is given: a number as it is, a file by its whole path."""
    try:
        float(text)
    except ValueError:
        return absolute(text)
    return text


def _given_task(text: str) -> str:
    """A task as it is given: the folder of one by its whole path."""
    return absolute(text) if Path(text).expanduser().exists() else text


def _folder(text: str) -> None:
    if not Path(text).expanduser().is_dir():
        raise InputError(f"kernel folder {text} does not exist; name a folder with kernels of yours")


def _factors(text: str) -> tuple[float, ...]:
    """ "1,1.05,2": numbers of 1 or more, in the order given, each once."""
    try:
        factors = tuple(dict.fromkeys(float(part) for part in text.split(",")))
    except ValueError:
        factors = ()
    if not factors or not all(1 <= factor < math.inf for factor in factors):
        raise InputError(f"--slower {text!r} is not numbers of 1 or more: write it as in 1,1.05,2")
    return factors


def _budget(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"max-error {text!r} is no number: write it as in 1e-3") from None


def _within(max_error: Any) -> None:
    if not LEAST_ERROR <= max_error <= MOST_ERROR:
        least, most = written(LEAST_ERROR), f"{MOST_ERROR:g}"
        raise InputError(f"max-error {max_error:g} is out of range; {least} to {most} works")


_SIDE = {
    name: Text(keep=partial(integers_of, called=f"--{name}"))
    for name in ("shape", "stride", "pad", "dilation")
}

# By the heading that they stand under in --help.
TABLE: Mapping[str, tuple[Option, ...]] = {
    "What is measured": (
        Option(
            "kernel",
            Text(keep=Path),
            "The kernel's file: NN_name.cu or .py; or a .py file without a header, with --op.",
            "[FILE]",
            on=(J,),
            argument=True,
        ),
        Option(
            "op",
            Text(nothing=""),
            "Its operator; default: what the kernel's header says.",
            "OP",
            on=(J,),
            fields=("op",),
            usual="",
        ),
        Option(
            "task",
            Text(nothing="", keep=_given_task),
            "Its task: the folder of yours, or the name of one of the ladder's own.",
            "DIR|TASK",
            on=(J,),
        ),
        Option(
            "beside",
            Names(),
            "Also time this kernel of the ladder beside it; best: the one that the engine takes. May be "
            "repeated.",
            "RUNG|best",
            on=(J,),
        ),
        Option(
            "reference",
            Switch(both=True),
            "Whether ONNX Runtime is timed beside it.",
            on=(J,),
        ),
        Option(
            "op",
            Text(),
            "The operator: conv, gemm, pool, lrn, …; a task, or the folder of one of yours; or net, a whole "
            "model.",
            "OP",
            on=(L,),
            fields=("op",),
            usual="conv",
            always=True,
            argument=True,
        ),
        Option(
            "models",
            Names(commas=False),
            "Names of models (see `models list`), or .onnx files (`models show FILE` says what one takes).",
            "MODEL",
            on=(C, S),
            fields=("models",),
            usual=("lenet5-digits",),
            always=True,
            argument=True,
        ),
        Option(
            "model",
            Text(),
            "The name of a model, or an .onnx file.",
            "MODEL",
            on=(P,),
            fields=("model",),
            usual="lenet5-digits",
            always=True,
            argument=True,
        ),
        Option(
            "model",
            Text(nothing=""),
            "The name of a model, or an .onnx file; default: one of the default comparison's.",
            "M",
            on=(L, J),
            fields=("model",),
            always=True,
        ),
        Option(
            "node",
            Text(nothing=""),
            "Its node: a name, or a number among its nodes of OP, from 0.",
            "NAME|INDEX",
            on=(L, J),
            fields=("node",),
            usual="0",
            always=True,
        ),
        Option(
            "backend",
            Names(),
            "A backend; may be repeated. Default: all that can run here.",
            "NAME",
            on=(C, S),
            fields=("backends",),
            usual=(),
            lasting=True,
        ),
        Option(
            "backend",
            Names(joined=True),
            "A backend; may be repeated. Default: all that can run here.",
            "NAME,NAME",
            on=(P,),
            fields=("backends",),
            usual=(),
            lasting=True,
        ),
        Option(
            "batch",
            Sizes(most=MAX_BATCH, missing=integers("1..256", "")),
            "Batch sizes; 1..1024 doubles from 1 to 1024. Repeat with MODEL= for one model only. A file that "
            "fixes its batch runs at that one.",
            "[MODEL=]N,N,…",
            on=(C,),
            fields=("batches", "own_batches"),
            usual=(integers("1..256", ""), {}),
            always=True,
            label="Batch &sizes",
            hint="for example 1,2,4 or 1..1024",
        ),
        *(
            Option(
                "batch",
                Numbers(most=MAX_BATCH),
                "Batch sizes; 1..1024 doubles from 1 to 1024.",
                "N,N,…",
                on=(command,),
                fields=("batches",),
                usual=usual,
                always=True,
            )
            for command, usual in ((P, (1,)), (S, (1, 16, 128)))
        ),
        Option(
            "batch",
            Number(most=MAX_BATCH),
            "The batch size.",
            "N",
            on=(L, J),
            fields=("batch",),
            usual=1,
            always=True,
            label="&Batch",
        ),
        Option(
            "device",
            Text(known=DEVICES, nothing=""),
            "Default: cuda where it can run, else cpu.",
            on=(L, J),
            fields=("device",),
            usual="",
            always=True,
        ),
        Option(
            "rung",
            Names(commas=False),
            "A kernel (rung) by number or name; may be repeated.",
            "N",
            on=(L,),
            fields=("rungs",),
        ),
        Option(
            "precision",
            Names(known=ASKED, joined=True),
            f"One or more of {', '.join(ASKED)}. {MIXED}: each layer of our engine in its own, so that the "
            "answer stays within --max-error.",
            "P,P,…",
            on=(C, S),
            fields=("precisions",),
        ),
        Option(
            "precision",
            Text(known=NAMES, nothing=""),
            f"One of {', '.join(NAMES)}. A ladder has the rungs of fp32 beside it; default: of all.",
            "P",
            on=(L,),
            fields=("precision",),
        ),
        Option(
            "precision",
            Text(known=ASKED),
            f"One of {', '.join(ASKED)}.",
            "P",
            on=(P,),
            fields=("precision",),
        ),
        Option(
            "max-error",
            Text(keep=_budget, look=_within),
            f"How far the answer for an image may be off in precision {MIXED}: the relative L2 error of each "
            f"output against float64; default: {written(MAX_ERROR)}.",
            "E",
            on=(C, P),
            fields=("max_error",),
            label="Ma&x error",
            hint=f"of {MIXED}; {written(MAX_ERROR)}",
        ),
        Option("times", Number(), "Comparisons in all; the cases take turns.", "N", on=(S,)),
    ),
    "Images and answers": (
        Option(
            "dataset",
            Text(),
            "The data set; default: the model's own.",
            "NAME|folder:DIR|random",
            on=(C, P),
            fields=("dataset",),
        ),
        Option(
            "images",
            Sizes(most=1_000_000),
            "How many images the accuracy is counted over; MODEL= as for --batch.",
            "[MODEL=]N,N,…",
            on=(C,),
            fields=("images", "own_images"),
            label="&Images",
            hint="the model's own number",
        ),
        Option(
            "preprocess",
            Text(
                look="models.preparation:parse",
                keep=lambda text: absolute(text) if text.endswith(".toml") else text,
            ),
            "What is done to an image: unit (0 to 1), raw, imagenet, caffe, MEAN,STD or a .toml file; "
            "default: what the model's file says of itself, else unit.",
            "P",
            on=(C, P),
            fields=("preprocess",),
            label="&Prepare",
            hint="the model's own, else unit",
        ),
        Option(
            "labels",
            Text(look="models.labels:check", keep="models.labels:file_of"),
            "The order of a model file's classes: a text file with one class a line, imagenet for the 1,000"
            " of ImageNet, or alphabetical; default: what the model's file says, else folders named by "
            "number.",
            "FILE|imagenet|alphabetical",
            on=(C,),
            fields=("labels",),
            label="Classes",
            hint="the model's own; or a file",
        ),
        Option(
            "scores",
            Text(),
            "The output that holds the class scores; default: found by its shape.",
            "NAME",
            on=(C,),
            fields=("scores",),
            label="Scores",
            hint="found by its shape",
        ),
        Option(
            "input",
            Pairs(form="NAME=NUMBER or NAME=FILE.npy, as in scale=1.0", last=False, keep=_given),
            "What an input beside the images is given, the same for each image; may be repeated.",
            "NAME=NUMBER|FILE.npy",
            on=(C,),
            fields=("inputs",),
            label="Inputs",
            hint="beside images: NAME=NUMBER",
        ),
        Option(
            "dim",
            Pairs(form="NAME=SIZE, as in height=224", most=1 << 30),
            "The size of an axis that a file leaves open, beside its batch (height=224); may be repeated. "
            "Default: guessed from the data set, and said.",
            "[MODEL:]NAME=N",
            on=(C,),
            fields=("dims",),
            label="Axes",
            hint="guessed; or height=224",
        ),
    ),
    "How it is measured": (
        Option(
            "threads",
            Number(most=4096, words="one a core"),
            "CPU threads, for our kernels and for ONNX Runtime; default: one per core.",
            "N",
            on=COMMANDS,
            fields=("threads",),
            label="Thre&ads",
            lasting=True,
        ),
        Option(
            "l2",
            Text(known={"warm": "passes follow each other", "cold": "emptied before each pass"}),
            "The L2 cache before a pass. warm: passes follow each other; cold: emptied before each pass.",
            on=(C, L, S, J),
            fields=("l2",),
            label="&L2 cache",
            lasting=True,
        ),
        Option(
            "budget",
            SECONDS,
            "The most seconds of samples for each case; sampling stops earlier once the result is clear.",
            "S",
            on=(C, L, P, S),
            fields=("budget_s",),
            label="&Time",
            hint="s a case",
            lasting=True,
        ),
        Option(
            "budget",
            SECONDS,
            "The most seconds of samples of the kernel, and of each that it is held against.",
            "S",
            on=(J,),
            fields=("budget_s",),
            usual=JUDGE_BUDGET_S,
        ),
        Option("quick", Switch(), "Check fewer small shapes.", on=(J,), fields=("quick",)),
        Option(
            "simulated",
            Switch(),
            "Run a CUDA kernel on the CPU, without a GPU: right or wrong, and counts, but no times.",
            on=(J,),
            fields=("simulated",),
        ),
        Option(
            "timeout",
            SECONDS,
            "Give up a case that is still running after S seconds.",
            "S",
            on=(*ALL, J),
            fields=("timeout_s",),
            label="Time limit",
            lasting=True,
        ),
        Option(
            "instances",
            Number(most=100),
            "Time at least N sessions of each contender in turn, and more where they are quickly made. The "
            "interval then includes how they differ.",
            "N",
            on=(C, L, J),
            fields=("instances",),
            usual=INSTANCES,
            label="I&nstances",
            hint="or more of each",
            lasting=True,
        ),
        Option(
            "instances",
            Number(most=100),
            "Sessions on each side, alive at the same time and timed in turn.",
            "N",
            on=(S,),
            lasting=True,
        ),
        Option(
            "runs",
            Number(most=1000),
            "How many passes are profiled, after some to warm up.",
            "K",
            on=(P,),
            fields=("runs",),
            label="Pa&sses",
        ),
        Option(
            "slower",
            Text(keep=_factors),
            "Have the one side take so many times as long: 1.05 has to be found, 2 cannot be missed.",
            "X,X,…",
            on=(S,),
        ),
        Option("busy", Numbers(least=0), "Processes that keep a core busy beside the two.", "N,N,…", on=(S,)),
        Option("whole", Switch(), "Spend the whole budget on each side, whatever is clear before.", on=(S,)),
        Option(
            "sample",
            Number(kind=float, least=0.1, most=LONG),
            "Milliseconds that are timed at once on the host's clock, at least.",
            "MS",
            on=(S,),
        ),
        Option(
            "turn",
            Number(kind=float, least=0, most=LONG),
            "Milliseconds of each turn; default: as `compare` takes them.",
            "MS",
            on=(S,),
        ),
        Option(
            "seed",
            Number(least=0),
            "Seed of the random inputs and of the order of turns.",
            "N",
            on=(S,),
            fields=("seed",),
        ),
        Option(
            "layer-pass",
            Switch(both=True),
            "Measure every layer, too: its time and its errors, in separate passes.",
            on=(C,),
            fields=("layers",),
            label="Measure &every layer",
        ),
        Option(
            "layer-pass-of",
            Names(),
            "Measure the layers of this backend alone, which is quicker; may be repeated.",
            "NAME",
            on=(C,),
            fields=("layers_of",),
        ),
        Option(
            "tune",
            Switch(on="all", off="none", both=True),
            "Time our kernels for each step once and use the fastest; default: only on CUDA.",
            on=(C,),
            fields=("tune",),
        ),
    ),
    "What else is measured": (
        Option(
            "tune-reference",
            Switch(),
            "Also run ONNX Runtime (CUDA) with its fastest options, and with the fastest whose every layer "
            "is within its bound. They are searched once for each case, and kept.",
            on=(C,),
            fields=("tune_reference",),
            label="T&une the reference",
        ),
        Option(
            "end-to-end",
            Switch(),
            "Also measure host images to host answers as a rate: several batches are in flight, copies and "
            "kernels are at work at once.",
            on=(C,),
            fields=("end_to_end",),
            label="En&d to end, as a rate",
        ),
        Option(
            "top-k",
            Number(nothing=0),
            "Bring back only the K best classes, chosen on the device.",
            "K",
            on=(C,),
            fields=("top_k",),
            needs="end-to-end",
        ),
        Option(
            "counts",
            Switch(),
            "Also count what CUDA rungs cost: sectors, bank conflicts, divergence. For that they are run on "
            "the CPU, once they were timed.",
            on=(L,),
            fields=("counts",),
        ),
        Option(
            "counters",
            Switch(),
            "Also read the GPU's hardware counters for each kernel (bytes moved, sectors accessed), by "
            "Nsight Compute (ncu) in a separate pass.",
            on=(P,),
            fields=("counters",),
            label="Cou&nters",
        ),
        Option(
            "copies",
            Text(known=("pageable", "pinned", "managed"), nothing=""),
            "On a GPU: also copy every layer's output to the host and back, over such memory.",
            on=(P,),
            fields=("copies",),
        ),
        Option(
            "whole-model",
            Switch(),
            "Also run the whole model with each kernel in it.",
            on=(L,),
            fields=("whole_model",),
            label="&Whole model too",
        ),
    ),
    "Kernels": (
        Option(
            "rung",
            Pairs(form="NODE=RUNG, as in conv1=tiled"),
            "The kernel for a node, in one model or in all, on one device or on both; may be repeated.",
            "[MODEL:]NODE=[cpu/|cuda/]RUNG",
            on=(C, P),
            fields=("rungs",),
        ),
        Option(
            "swap",
            Pairs(form="NODE=RUNG, as in conv1=tiled"),
            "Also compare the reference with this kernel in the place of a node; may be repeated.",
            "[MODEL:]NODE=[cpu/|cuda/]RUNG",
            on=(C,),
            fields=("swaps",),
        ),
        Option(
            "kernels",
            Names(commas=False, keep=absolute, look=_folder),
            "A folder of your own kernels; may be repeated.",
            "DIR",
            on=ALL,
            fields=("kernel_dirs",),
            lasting=True,
            runs=True,
        ),
        Option(
            "tune",
            Switch(),
            "First search the fastest of what CUDA rungs list under [tune], and keep it.",
            on=(L,),
            fields=("tune",),
        ),
        Option("new", Switch(), "Write a template for your own kernel into DIR.", on=(L,), jobless=True),
        Option(
            "folder", Text(keep=Path), "With --new: where the template goes.", "[DIR]", on=(L,), argument=True
        ),
        Option("watch", Switch(), "Run your own kernels again whenever you save a file.", on=(L,)),
        Option(
            "saves",
            Text(keep=Path),
            "Show what each save in this folder of kernels gained or lost under --watch.",
            "DIR",
            on=(L,),
            jobless=True,
        ),
        Option("compile", Switch(), "Only compile the CUDA rungs: needs no GPU.", on=(L,)),
        Option(
            "arch",
            Names(),
            "sm_80, …; default: this GPU's, or what a rung asks for.",
            "A,A,…",
            on=(L,),
            needs="compile",
        ),
        Option(
            "simulate",
            Switch(),
            "Also run them on the CPU: right or wrong, and counts, but no times.",
            on=(L,),
            needs="compile",
        ),
    ),
    "A convolution of your own, in place of a model's node": (
        Option(
            "shape",
            _SIDE["shape"],
            "The shape of a conv, with the kernel's height and width as KH,KW where they differ; of a task "
            "its sizes, in their order.",
            "N,C,H,W,M,K",
            on=(L, J),
        ),
        Option("stride", _SIDE["stride"], "How far the kernel moves.", "S|H,W", on=(L, J), needs="shape"),
        Option("pad", _SIDE["pad"], "Zeros around the image.", "P|H,W|T,L,B,R", on=(L, J), needs="shape"),
        Option(
            "dilation", _SIDE["dilation"], "The distance of its weights.", "D|H,W", on=(L, J), needs="shape"
        ),
        Option("group", Number(), "In how many groups channels are parted.", "G", on=(L, J), needs="shape"),
        Option("bias", Switch(both=True), "Whether a bias is added.", on=(L, J), needs="shape"),
        Option(
            "activation", Text(nothing=""), "relu, tanh, sigmoid or relu6.", "A", on=(L, J), needs="shape"
        ),
    ),
    "What is shown and kept": (
        Option("layers", Switch(), "Also print the time and errors of every layer.", on=(C,)),
        Option(
            "bisect",
            Switch(),
            "Also say at which layer each backend first leaves the reference, and whether by itself.",
            on=(C,),
        ),
        Option(
            "report",
            Switch(),
            "The table of a course report: one pass per batch size, time by batch and by call.",
            on=(P,),
            fields=("apart",),
        ),
        Option(
            "table",
            Text(
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
            "Which table; main: the parts of a pass and what holds operators back. Default: main in a "
            "terminal's form, all in the others.",
            "TABLE",
            on=(P,),
        ),
        Option("by", Text(known=("name", "operator", "node")), "How kernels are grouped.", on=(P,)),
        Option(
            "window", Text(known=("pass", "all", "create", "close")), "Which part of the session.", on=(P,)
        ),
        Option(
            "match", Text(nothing=""), "Only kernels and calls whose name contains TEXT.", "TEXT", on=(P,)
        ),
        Option("full-names", Switch(), "Kernel names in full, with template arguments.", on=(P,)),
        Option("trace", Text(keep=Path), "Also write a trace for Perfetto or Chrome.", "FILE", on=(P,)),
        Option(
            "load", Text(keep=Path), "Show a profile that was saved before.", "DIR", on=(P,), jobless=True
        ),
        Option("out", Text(keep=Path), "The folder; default: a dated one in ./runs.", "DIR", on=ALL),
        Option(
            "out", Text(keep=Path), "Write the results there as JSON, after each comparison.", "FILE", on=(S,)
        ),
        Option(
            "charts",
            Names(known="bench.views.drawing.draw:FORMATS", joined=True, none="none"),
            "Some of png, svg, pdf; or none.",
            "F,F,…",
            on=ALL,
            lasting=True,
        ),
        Option(
            "format",
            Text(known="bench.views.tables.table:FORMATS"),
            "What goes to standard output.",
            "table|csv|json|md",
            on=ALL,
        ),
        Option("format", Text(known=("table", "json", "markdown")), "What goes to standard output.", on=(S,)),
        Option("format", Text(known=("table", "json")), "What goes to standard output.", on=(J,)),
        Option(
            "baseline",
            Text(keep=Path),
            "Hold it against this output of `judge --format json`, by the rule of `runs diff`.",
            "FILE.json",
            on=(J,),
        ),
        Option(
            "junit",
            Text(keep=Path),
            "Also write JUnit's XML, for a CI server.",
            "FILE.xml",
            on=(L, J),
        ),
    ),
    "For other programs": (
        Option(
            "serve",
            Switch(),
            "Judge one kernel after the other: requests on standard input, answers on standard output, "
            "a line of JSON each (docs/formats.md).",
            on=(J,),
            jobless=True,
        ),
    ),
    "Going on with what is not finished": (
        Option("resume", Text(keep=Path), "Continue this folder's run.", "RUN", on=(C, L), jobless=True),
        Option("retry", Switch(), "Also repeat what crashed or timed out.", on=(C, L), needs="resume"),
        Option(
            "trust-kernels",
            Switch(),
            "Run the kernels of others that the run names.",
            on=(C, L),
            needs="resume",
        ),
        Option(
            "resume",
            Text(keep=Path),
            "Continue such a file until all its comparisons, or --times of them, are made.",
            "FILE",
            on=(S,),
            jobless=True,
        ),
        Option(
            "rejudge",
            Names(commas=False, keep=Path),
            "Judge the samples of such files again, each way; may be repeated.",
            "FILE",
            on=(S,),
            jobless=True,
        ),
    ),
    "On other machines": (
        Option(
            "cluster",
            Text(),
            "Have a Ray cluster do it (needs the extra `cluster`).",
            "ADDRESS|local",
            on=ALL,
            lasting=True,
            runs=True,
        ),
        Option(
            "gpu",
            Text(),
            "On this kind of GPU, such as H200.",
            "KIND",
            on=(C, P),
            needs="cluster",
            lasting=True,
        ),
        Option(
            "gpu",
            Text(),
            "With --cluster: on this kind of GPU, such as H200. Of CUDA rungs that run on the CPU: the floor "
            "below their time on this one, from its data sheet.",
            "KIND",
            on=(L,),
            lasting=True,
        ),
        Option(
            "on",
            Names(),
            "Measure at this place (see `remote list`); several share the cases.",
            "PLACE,…",
            on=(*ALL, S),
            lasting=True,
            runs=True,
        ),
    ),
    "In a configuration file alone": (
        Option(
            "editor",
            Text(),
            "The command that opens a kernel from the window; {file} and {line} in it are filled in.",
            "COMMAND",
            lasting=True,
            runs=True,
        ),
        Option(
            "runs",
            Text(keep=absolute),
            "The folder in which new runs are kept.",
            "DIR",
            lasting=True,
        ),
    ),
}


def of(command: str) -> tuple[Option, ...]:
    """The options of a command, in the order of the table."""
    options = ((group, option) for group, listed in TABLE.items() for option in listed)
    return tuple(replace(option, group=group) for group, option in options if command in option.on)


COMPARE, LADDER, PROFILE, SELFCHECK, JUDGE = map(of, COMMANDS)
