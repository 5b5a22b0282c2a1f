"""A command as a document has it → a Step: what stands for its placeholders, what of it is made small, what
it must give, and what is never run, with the reason. What is not known is said, never passed over."""

from __future__ import annotations

import re
import shlex

from bench.commands.ladder_compile import WITH_SIMULATED
from models import names
from tests.rehearsal import fixtures
from tests.rehearsal.content import ROOT
from tests.rehearsal.documents import Command
from tests.rehearsal.machine import Machine
from tests.rehearsal.small import small
from tests.rehearsal.steps import PYTHON, Expect, Step, Use

# Never run: what begins so, and why.
LEFT_OUT = {
    r"make run": "it sets up an environment; `python main.py`, which it ends with, is the first step",
    r"make (test|lint|sanitize|fuzz|attack|rehearse)|python -m (tests\.|pytest )": (
        "tests and rehearsal are run by themselves"
    ),
    r"make release": "it builds what `python -m tests.package` builds and tries",
    r"make ": "it sets up an environment",
    r"kernelscope ": "`python -m tests.package` runs it from the wheel",
    r"uvx? |pip[3x]? |python3 -m venv|\S+/bin/pip |(sudo )?(apt|apt-get|dnf) ": "it installs",
    r"sudo sysctl ": "it changes the system",
    r"unzip ": "it unpacks what `course autograder` wrote",
    r"\S+/bin/python -m models\.train": "it trains for hours",
    r"\S+/bin/python -m tests\.zoo\.export": "it exports for minutes, in an environment of its own",
    r"python main\.py \w+ .*--backend \S*(torch|openvino|tensorrt|cudnn)": (
        "it takes an environment of its own"
    ),
    r"(python main\.py )?remote (add|update|remove)\b": (
        "it installs elsewhere, or removes that; `python -m tests.package` does it from the wheel"
    ),
    r"ssh(-copy-id)? ": "it reaches a machine of the user's",
    r"python main\.py \w+ .*--backend mine": "tests/engine/backends/test_plugins.py runs it",
    r"git ": "it fetches",
    r"(docker|podman) ": "it needs containers; `python -m tests.container` runs the Containerfile's steps",
    r"(python main\.py )?models import\b": (
        "it reads weights of the user's; tests/bench/extras/weights makes and imports such files"
    ),
    r"(python main\.py )?course (handout|check|grade|show|autograder)\b": (
        "it needs an assignment and a class; tests/bench/extras/course makes them"
    ),
    r"ray |export RAY_AUTH_MODE=|.* --cluster ": (
        "it needs Ray and a cluster; tests/bench/extras/fleet starts one where Ray is installed"
    ),
    r"python main\.py ladder (--new )?scaled ": (
        "it needs the folder that the page writes; tests/tasks/test_judged_tasks.py makes one"
    ),
    r"(python main\.py )?config --trust": "it takes a project's file, as tests of settings have",
    r"(python main\.py )?judge .*--baseline\b": (
        "it needs an earlier judgement; tests/bench/commands/test_judge.py makes one"
    ),
    r"(python main\.py )?models remove\b": "it removes what the user imported",
    r"python -m bench\.commands\.formats": "it writes the schemas again; tests hold them against the types",
    r"(python main\.py )?ladder --saves\b": "it shows the log that `ladder --watch` writes; tests do both",
    r"python -m (bench\.\S*worker|bench\.profile\.measure\.counters_pass)": "the program starts it by itself",
}
# A mention of a command whose sense is in its options, with what it lacks to be one.
LACKS = {
    "judge --format json": "judge my_kernels/90_mine.py --format json",
    "judge --simulated": "judge my_kernels/90_mine.cu --simulated --batch 1",
    "remote doctor": "remote doctor lab",
    "runs diff": "runs diff RUN OTHER",
    "runs show": "runs show RUN",
    "report course NAME": "report course",
    "report goals NAME": "report goals",
    "report speed": "report speed docs/results/speed --out speed.md",
    "runs report": "runs report RUN --out report.md",
    "ladder --resume": "ladder --resume RUN",
    "ladder --compile --simulate": "ladder conv --compile --simulate --rung naive",
    "ladder --watch": "ladder conv --kernels my_kernels --watch",
    "compare --resume": "compare --resume RUN",
}
# What a placeholder in capitals stands for, where it is no folder of a run.
STANDS_FOR = {"MODEL": "lenet5-digits", "NAME": "lenet5-digits", "N": "1", "DIR": "pictures"}
# Folders whose kernels are of another operator.
OF_FOLDERS = {"tiles": fixtures.CUDA_PRODUCT, "my_scans": fixtures.TASK_KERNEL}
RUN_WORDS = ("RUN", "OTHER", "FOLDER")
ONLY_GPU = ("calls", "counters")  # tables of a profile
OUTPUTS = ("--out", "--trace", "--file")
SHELL = frozenset(("|", "||", "&", "&&", ";", "<", ">>", "2>"))
_PLACEHOLDER = re.compile(r"(?:[A-Z]{2,}|[A-Z])(?:=[A-Z]+)?$|.*[<>…].*|\[.*")
_CAPITALS = re.compile(r"[A-Z]{1,}$")


def step(command: Command, machine: Machine) -> Step:
    """What the rehearsal does with a command of a document."""
    group, name = command.document, f"{command.document}:{command.line} {command.text}"
    for pattern, reason in LEFT_OUT.items():
        if re.match(pattern, command.text):
            return Step(name, group, written=command.text, left=reason)
    text = LACKS.get(command.text, command.text)
    text = re.sub(r"^python(?: main\.py(?= ))? ?", "", text) if text != "python main.py" else ""
    if command.text.startswith("python ") and not command.text.startswith("python main.py"):
        module = re.match(r"python -m tests\.gui\.screenshots( .*)?$", command.text)
        if module is None:
            return Step(name, group, written=command.text, unknown="which program that is")
        return _window(name, group, command, machine)
    if not command.text.startswith("python") and command.text.split()[0] not in _cli():
        return Step(name, group, written=command.text, unknown="which program that is")
    try:
        return _of_main(name, group, command, text, machine)
    except (ValueError, LookupError) as error:
        return Step(name, group, written=command.text, unknown=str(error))


def _cli() -> frozenset[str]:
    from tests.rehearsal.documents import cli_commands

    return cli_commands()


def _window(name: str, group: str, command: Command, machine: Machine) -> Step:
    words = shlex.split(command.text.replace("DIR", STANDS_FOR["DIR"]))
    return Step(
        name,
        group,
        (PYTHON, *words[1:]),
        Expect(made=(STANDS_FOR["DIR"],), pictures=STANDS_FOR["DIR"]),
        written=command.text,
        skip=machine.no_window and f"no window: {machine.no_window}",
        environment={"QT_QPA_PLATFORM": "offscreen"},
    )


def _of_main(name: str, group: str, command: Command, text: str, machine: Machine) -> Step:
    words, into = _redirected([word for word in shlex.split(text, comments=True) if word != "…"])
    uses: list[Use] = []
    filled = [_filled(words, index, uses) for index in range(len(words))]
    if filled[:2] == ["runs", "list"]:
        uses.append(Use(fixtures.COMPARISON, "runs/comparison"))
    environment = {}
    if "--on" in filled or filled[:1] == ["remote"]:
        uses.append(Use(fixtures.PLACES, "elsewhere"))
        environment = {"KERNELSCOPE_CONFIG": "elsewhere/kernelscope.toml"}
    run, change = small(filled)
    watch = ""
    codes: tuple[int, ...] = (0,)
    if "--watch" in run:
        codes, watch = (130,), next(use.at for use in uses if use.fixture == fixtures.KERNEL)
        change = "; ".join(filter(None, [change, "a kernel is saved again, then Ctrl-C"]))
    if run and run[0] == "selfcheck":
        codes = (0, 1)  # of a few comparisons one in twenty may well differ
    if "--fail-on" in run:
        codes = (0, 2)  # where the machine is unquiet in every case, nothing is decided
    made = [run[i + 1] for i, word in enumerate(run[:-1]) if word in OUTPUTS]
    if run[:2] in (["runs", "copy"], ["runs", "thin"]) or "--new" in run:
        made.append(_target(run))
    if into:
        made.append(into)
    return Step(
        name,
        group,
        (PYTHON, "main.py", *run),
        Expect(codes=codes, made=tuple(made), silent=run[:1] == ["export"], says="mine" if watch else ""),
        written=command.text,
        change=change,
        uses=tuple(uses),
        skip=skipped(run, machine),
        alone=not run,
        watch=watch,
        into=into,
        environment=environment,
    )


def _redirected(words: list[str]) -> tuple[list[str], str]:
    """The command, and the file that its output goes to. ValueError for more of a shell's grammar."""
    if strange := SHELL.intersection(words):
        raise ValueError(f"what {' and '.join(sorted(strange))} is to do")
    if ">" not in words:
        return words, ""
    at = words.index(">")
    if len(words) != at + 2:
        raise ValueError(f"what stands behind > in {' '.join(words)}")
    return words[:at], words[at + 1]


def _target(words: list[str]) -> str:
    """What `runs copy`, `runs thin` and `ladder --new OP DIR` write: the last word that is no option's."""
    plain = [w for i, w in enumerate(words) if not w.startswith("-") and words[i - 1] != "--device"]
    return plain[-1]


def _filled(words: list[str], index: int, uses: list[Use]) -> str:
    """A word with what stands for it; what has to be there is added to `uses`."""
    word, before = words[index], words[index - 1] if index else ""
    if before in OUTPUTS or ("--new" in words and index == len(words) - 1):
        return STANDS_FOR.get(word, word)
    if words[:2] in (["runs", "copy"], ["runs", "thin"]) and index == 3:
        return "copied" if word == "TO" else word
    if before == "--kernels":
        kernel = fixtures.CUDA_KERNEL if "--compile" in words else fixtures.KERNEL
        uses.append(Use(OF_FOLDERS.get(word, kernel), word))
        return word
    if (words[0] == "export-op" and word.startswith("kernels/")) or word.startswith("docs/"):  # in a clone
        return str(ROOT / word)
    if words[0] in ("judge", "export-op") and word.endswith((".py", ".cu")):
        folder, _, _ = word.rpartition("/")
        kernel = fixtures.CUDA_KERNEL if word.endswith(".cu") else fixtures.CPU_KERNEL
        uses.append(Use(OF_FOLDERS.get(folder, kernel), folder))
        return word
    if before == "--labels":
        uses.append(Use(fixtures.CLASSES, word))
        return word
    if word.startswith("folder:"):
        uses.append(Use(fixtures.PHOTOS, word.removeprefix("folder:")))
        return word
    if word.endswith(".zip"):
        uses.append(Use(fixtures.PACKED, word))
        return word
    if words[0] == "remote" and word == "NAME":
        return "lab"
    if word.endswith(".onnx"):
        uses.append(Use(fixtures.MODEL, word))
        return word
    if word in RUN_WORDS or word.startswith("runs/") or (words[0] == "selfcheck" and before == "--resume"):
        at = f"{word.lower()}-{index}" if word in RUN_WORDS else word
        uses.append(Use(_kind(words, word, before), at))
        return at
    if word in STANDS_FOR:
        return STANDS_FOR[word]
    if _PLACEHOLDER.match(word) or _CAPITALS.match(word.rpartition("=")[2]):
        raise LookupError(f"what {word} stands for")
    return word


def _kind(words: list[str], word: str, before: str) -> str:
    """Which of the runs stands for a run that is named."""
    if before == "--resume" and words[0] == "selfcheck":
        return fixtures.SELFCHECK
    if before == "--resume":
        return fixtures.BEGUN_LADDER if words[0] == "ladder" else fixtures.BEGUN
    if before == "--load" or "-profile-" in word or word == "FOLDER":
        return fixtures.PROFILE
    return fixtures.LADDER if "-ladder-" in word else fixtures.COMPARISON


def skipped(words: list[str], machine: Machine) -> str:
    """Why a command cannot be run on this machine, "" if it can."""
    named = [words[i + 1] for i, word in enumerate(words[:-1]) if word == "--backend"]
    backends = [name for value in named for name in value.split(",")]
    only_cuda = bool(backends) and all(name.partition("-")[2].startswith("cuda") for name in backends)
    runs = bool(words) and words[0] != "models" and not {"--new", "--compile"} & set(words)
    flags = {word.removeprefix("--") for word in words if word.startswith("--")}
    # A few rungs run on the CPU; a whole ladder of them takes minutes there.
    on_cpu = words[:1] == ["ladder"] and "rung" in flags and flags <= WITH_SIMULATED
    cuda_device = (
        runs and not on_cpu and "cuda" in [words[i + 1] for i, w in enumerate(words[:-1]) if w == "--device"]
    )
    simulated = "--simulated" in words
    cuda_kernel = words[:1] == ["judge"] and not simulated
    cuda_kernel = cuda_kernel and any(word.endswith(".cu") for word in words)
    if not machine.has_gpu and (only_cuda or cuda_device or cuda_kernel or "--tune-reference" in words):
        return "no GPU"
    table = words[words.index("--table") + 1] if "--table" in words[:-1] else ""
    if not machine.has_gpu and table in ONLY_GPU:
        return f"no GPU: the table of {table} is of what only a GPU has"
    exported = words[:1] == ["export-op"] and any(word.endswith(".cu") for word in words)
    without_gpu = not machine.has_gpu and on_cpu and "cuda" in words
    if machine.no_compiler and (without_gpu or "--compile" in words or simulated or exported):
        return machine.no_compiler
    if words and words[0] in ("compare", "profile"):
        known = names.models()
        wanted = [
            words[words.index("--dataset") + 1] if "--dataset" in words else known[word]["dataset"]
            for word in words
            if word in known
        ]
        for dataset in wanted:
            if dataset in machine.datasets:
                return f"no images: {machine.datasets[dataset]}"
    return ""
