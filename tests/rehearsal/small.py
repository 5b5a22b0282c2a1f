"""Commands of documents made small: a rehearsal asks whether they work, not how fast something is.

`small(words)` gives what is run in place of what is written, and what was changed, in words for the table.
"""

from __future__ import annotations

from bench.words.option import integers
from kernels import registry
from kernels.ops import OPS

LARGEST_BATCH, MOST_BATCHES, IMAGES = 16, 2, 100
FEW_IMAGES = 16  # of the large models, whose float64 answers take long
BUDGETS = {"compare": "0.1", "profile": "0.1", "ladder": "0.05", "selfcheck": "0.1"}
TIMES = "4"
QUICK_COURSE = "ece408-milestones"
COURSE = ("--images", "32", "--largest", "2", "--budget", "0.05")
GOALS = ("--largest", "1", "--images", "16", "--budget", "0.05")
PATIENT = ("--timeout", "240")  # a first check waits for float64, beside all that is rehearsed meanwhile
TALL, RUNGS = 10, ("1", "2")  # of ladders with more rungs, which each are climbed whole once, so many
ONE = ("--instances", "1")  # several are what the default comparison and each operator's ladder are timed in


def small(words: list[str]) -> tuple[list[str], str]:
    """words: behind main.py, the command first."""
    made, said = list(words), []
    command = words[0] if words else ""
    if words[:2] == ["report", "course"] and words[2:] and words[2][0] != "-" and "--images" not in words:
        # The others climb ladders for minutes, and are made of the same parts.
        instead = f"{QUICK_COURSE} for {words[2]}; " if words[2] != QUICK_COURSE else ""
        return [*words[:2], QUICK_COURSE, *words[3:], *COURSE], f"{instead}with {' '.join(COURSE)}"
    if words[:2] == ["report", "goals"] and len(words) > 2 and "--largest" not in words:
        return [*words, *GOALS], f"with {' '.join(GOALS)}"
    if command not in BUDGETS or {"--resume", "--load", "--new", "--compile", "--help"} & set(words):
        return made, ""
    for index, word in enumerate(words[:-1]):
        value = words[index + 1]
        instead = value
        if word == "--batch" and command != "ladder":
            instead = batches(value)
        elif word == "--batch":
            instead = str(min(int(value), LARGEST_BATCH)) if value.isdecimal() else value
        elif word == "--images" and not value.startswith("alexnet"):
            instead = value if not value.isdecimal() else str(min(int(value), IMAGES))
        elif word == "--times":
            instead = TIMES
        elif word == "--shape":
            first, comma, rest = value.partition(",")
            instead = f"1{comma}{rest}" if first.isdecimal() else value
        if instead != value:
            made[index + 1] = instead
            said.append(f"{word} {instead} for {value}")
    added = []
    if command in ("compare", "selfcheck") and "--batch" not in words:
        added += ["--batch", "1,16"]
    if command == "compare" and "--images" not in words and any("alexnet" in word for word in words):
        added += ["--images", str(FEW_IMAGES)]
    if command == "selfcheck" and "--times" not in words:
        added += ["--times", TIMES]
    if command == "selfcheck" and "--backend" not in words:
        added += ["--backend", "engine-cpu"]
    if command in ("compare", "ladder") and ONE[0] not in words:
        added += ONE
    if command == "ladder" and "--timeout" not in words:
        added += PATIENT
    if command == "ladder":
        added += rungs(words)
    if "--budget" not in words:
        added += ["--budget", BUDGETS[command]]
    if added:
        said.append(f"with {' '.join(added)}")
    return made + added, "; ".join(said)


def rungs(words: list[str]) -> list[str]:
    """Which rungs alone are climbed: of a tall ladder a few, and the user's own."""
    op = words[1] if words[1:] and words[1][0] != "-" else "conv"
    if "--rung" in words or op not in OPS:
        return []
    if max(len(registry.rungs(device, op)) for device in ("cpu", "cuda")) <= TALL:
        return []
    if "--tune" in words and op != "conv":
        return []  # it is about a rung further up
    own = ("mine",) if "--kernels" in words else ()
    return [word for rung in (*RUNGS, *own) for word in ("--rung", rung)]


def batches(text: str) -> str:
    """The first two sizes, none above LARGEST_BATCH; a model's own keep their model's name."""
    model, sign, numbers = text.rpartition("=")
    found = integers(numbers, "--batch")
    if len(found) <= MOST_BATCHES and max(found) <= LARGEST_BATCH:
        return text
    kept = list(dict.fromkeys(min(number, LARGEST_BATCH) for number in (found[0], found[-1])))
    return f"{model}{sign}{','.join(map(str, kept))}"
