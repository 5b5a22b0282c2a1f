"""Commands out of Markdown, and what a rehearsal makes of them: none is passed over in silence."""

from __future__ import annotations

import pytest

from models import names
from tests.rehearsal import documents, plan, reading
from tests.rehearsal.documents import Command
from tests.rehearsal.machine import Machine
from tests.rehearsal.small import small
from tests.rehearsal.steps import PYTHON
from tests.zoo import shipped

pytestmark = pytest.mark.slow

WITHOUT, WITH = Machine(no_gpu="there is none"), Machine(gpu="NVIDIA H200")
NAMES = frozenset({"compare", "ladder", "runs", "profile", "doctor"})

TEXT = """\
# A page

Type `doctor` or, with more to it, `compare lenet5-digits
--batch 4`; not `for example`.

    python main.py models list      # all of them
    nvprof python main.py doctor

What it prints:

    90 mine (yours): the bias is missing
    python.exe was not found

```
$ python main.py ladder conv \\
    --batch 16
```

```sh
# a note
unheard-of --command
```

| `profile ece408-high --batch 100` | the same with `--charts pdf` |
"""


def found(text: str) -> list[tuple[int, str]]:
    return [(command.line, command.text) for command in documents.commands(text, "page.md", NAMES)]


def test_commands_come_from_blocks_spans_and_tables():
    assert found(TEXT) == [
        (3, "compare lenet5-digits --batch 4"),
        (6, "python main.py models list"),
        (7, "nvprof python main.py doctor"),  # a block of commands has nothing else
        (16, "python main.py ladder conv --batch 16"),
        (21, "unheard-of --command"),
        (24, "profile ece408-high --batch 100"),
        (24, "profile ece408-high --batch 100 --charts pdf"),
    ]


@pytest.mark.parametrize("machine", [WITHOUT, WITH], ids=["cpu", "gpu"])
def test_every_command_of_the_documents_is_run_or_left_out_with_a_reason(machine):
    told = documents.every()
    steps = [reading.step(command, machine) for command in told]
    assert [f"{step.name}: {step.unknown}" for step in steps if step.unknown] == []
    assert all(step.command or step.left for step in steps)
    texts = {command.text for command in told}
    # What the README teaches first, what a table has, what a sentence has, and what is of another program.
    assert {"python main.py doctor", "profile alexnet --batch 1..1024 --report --charts pdf"} <= texts
    assert {"runs copy RUN TO", "python3 -m venv train-env"} <= texts
    assert len([step for step in steps if step.command]) > 40


@pytest.mark.parametrize(
    "text",
    [
        "python main.py compare SOMETHING",
        "python main.py compare lenet5-digits --backend <name>",
        "python main.py compare lenet5-digits | head",
        "python -m bench.new_module",
        "frobnicate main.py",
    ],
)
def test_what_the_rehearsal_does_not_know_is_said(text):
    assert reading.step(Command("page.md", 1, text), WITHOUT).unknown


def test_placeholders_stand_for_what_is_made_first():
    def uses(text: str) -> list[tuple[str, str]]:
        return [(use.fixture, use.at) for use in reading.step(Command("p.md", 1, text), WITHOUT).uses]

    assert uses("python main.py compare net.onnx --dataset folder:pictures") == [
        ("a model file", "net.onnx"),
        ("a folder of images", "pictures"),
    ]
    assert uses("python main.py compare --resume runs/20260102-030405-x") == [
        ("a comparison that was cut", "runs/20260102-030405-x")
    ]
    assert uses("python main.py ladder --resume RUN") == [("a ladder that was cut", "run-2")]
    assert uses("python main.py export runs/20260102-030405-profile-x --out y") == [
        ("a profile", "runs/20260102-030405-profile-x")
    ]


def test_a_command_for_a_gpu_is_skipped_in_words_where_there_is_none():
    text = "python main.py compare lenet5-digits --backend engine-cuda --backend ort-cuda"
    assert reading.step(Command("p.md", 1, text), WITHOUT).skip == "no GPU"
    assert reading.step(Command("p.md", 1, text), WITH).skip == ""
    mixed = "python main.py compare lenet5-digits --backend ort-cpu --backend ort-cuda"
    assert reading.step(Command("p.md", 1, mixed), WITHOUT).skip == ""
    calls = reading.step(Command("p.md", 1, "profile lenet5-digits --table calls --window all"), WITHOUT)
    assert calls.skip.startswith("no GPU: ")
    no_images = Machine(gpu="NVIDIA H200", datasets={"fashion-mnist": "no mirror answered"})
    text = "python main.py compare ece408-high"
    assert reading.step(Command("p.md", 1, text), no_images).skip == "no images: no mirror answered"


@pytest.mark.parametrize(
    ("text", "instead", "told"),
    [
        (
            "profile alexnet --batch 1..1024 --report",
            "profile alexnet --batch 1,16 --report --budget 0.1",
            "--batch 1,16 for 1..1024; with --budget 0.1",
        ),
        (
            "compare a b --batch 1..8 --batch b=1,64,512 --images 1000 --budget 9",
            "compare a b --batch 1,8 --batch b=1,16 --images 100 --budget 9 --instances 1",
            "--batch 1,8 for 1..8; --batch b=1,16 for b=1,64,512; --images 100 for 1000; with --instances 1",
        ),
        ("compare --resume run", "compare --resume run", ""),
        ("doctor", "doctor", ""),
    ],
)
def test_commands_are_made_small_and_it_is_said(text: str, instead: str, told: str):
    words, said = small(text.split())
    assert (" ".join(words), said) == (instead, told)


@pytest.mark.sampled(6, "longest")
@pytest.mark.parametrize("machine", [WITHOUT, WITH], ids=["cpu", "gpu"])
def test_the_plan_has_everything_there_is_once_and_what_it_needs_before(machine):
    steps = plan.plan(machine)
    assert steps[0].command == (PYTHON, "main.py")  # exactly as typed, before anything else
    assert len({step.name for step in steps}) == len({step.slug for step in steps}) == len(steps)
    seen: set[str] = set()
    for step in steps:
        assert step.skip or seen.issuperset(plan.needs(step)), step.name
        seen.add(step.name)
    words = [" ".join(step.command) for step in steps]
    whole = f"--precision {','.join(machine.precisions)} "
    for model in names.models():
        [command] = [" ".join(step.command) for step in steps if step.name == f"compare {model}"]
        alike = model in ("lenet5-fashion", "ece408-low", "alexnet-fashion")
        assert (whole in command) == (len(machine.precisions) == 1 or not alike)
    nets = list(shipped.nets())
    assert len(nets) == 5
    for net in nets:
        [command] = [text for text in words if f" compare {net}.onnx --dataset random" in text]
        assert f"--batch 1 --backend engine-{machine.device} --backend ort-{machine.device}" in command
    ladders = {step.command[3] for step in steps if step.group == "every operator's ladder"}
    assert {"conv", "gemm", "cast", "lrn_pool"} <= ladders
    assert any(step.skip == "no GPU" for step in steps) == (machine is WITHOUT)
