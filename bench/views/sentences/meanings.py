"""What each chart means, for who has never seen it: what is drawn, how it was measured, what to look for.
Words of the glossary stand in brackets (bench.words.glossary)."""

from __future__ import annotations

# By the end of a chart's name.
MEANINGS = {
    "scoreboard": (
        "How fast each [backend] is beside its [reference], at each batch size: the [speed-up], where it is "
        "decided.\n"
        "The further from the same, the fuller the colour: blue is faster, red slower. Grey is not decided, "
        "or to be doubted."
    ),
    "accuracy": (
        "How many images of the data set each [backend] answers rightly, at each batch size.\n"
        "All backends run the same model on the same images, so all lines should lie on one another: where "
        "one is lower, its kernels compute something else. [agreement] tells images that get the same answer "
        "as from the [reference], also where nobody knows the right one."
    ),
    "op-time": (
        "How long a forward [pass] takes, at each batch size: the [op time], without copies from and to the "
        "host. Lower is better.\n"
        "A bar through a point is its 95 % [interval]. Two [backend]s differ for certain only where their "
        "ratio is measured in the same [round]s: that is the [verdict] in the sentence above the chart. On "
        "two logarithmic scales twice the batch in twice the time is a straight line of slope one; a flat "
        "beginning is time that does not depend on the batch, as launches."
    ),
    "-speed": (
        "Left, the [speed-up]: the [reference]'s time divided by the backend's own, measured in the same "
        "[round]s. Above the line at 1 it is faster.\n"
        "Right, throughput: images a second. It grows with the batch until the machine is full."
    ),
    "-end-to-end": (
        "Right, how many images a second go through [end to end]: from the host's memory to its answers, "
        "with copies and kernels at work at once. Left, the [speed-up] of that.\n"
        "Images travel as bytes, and become numbers on the device: by our kernel, or by ONNX Runtime's "
        "model, which is rewritten for it. It is another clock than the [op time]: where a net is small the "
        "bus may be what holds both back, and the read-out says what share of it is used."
    ),
    "-breakdown": (
        "Where the time of one [pass] goes, from host to host: the copy in, the operators, the copy out, "
        "waiting, and the rest, which no part explains.\n"
        "Bars beside each other are [backend]s at one batch size. What happens only once is no part of it: "
        "see the [cold start]."
    ),
    "-total-time": (
        "What happens once, the [cold start]: loading the model, compiling kernels, allocating and uploading "
        "weights, the first [pass]; and then the pass over the whole data set.\n"
        "A [backend] that is slow to start may still be the faster one for many images."
    ),
    "ladder-speed": (
        "Each bar is a [rung]: one kernel for the same operator, from the plainest at the left to the "
        "fastest. Higher is better.\n"
        "The dashed line is the [reference] on the same node, timed in the same [round]s. A rung whose "
        "answer is wrong has no bar: only right answers are timed."
    ),
    "roofline": (
        "How near a kernel comes to what this machine can do. To the right, operations for each byte moved, "
        "every input and output once as the kernel keeps it; "
        "upwards, operations a second. The line is the [roofline]: memory holds back below its slope, "
        "arithmetic below its flat top.\n"
        "From 60 % of the line on a kernel is bound by that limit. Further below it is held back by neither: "
        "by waiting, by too few threads, or by moving bytes more than once."
    ),
    "profile-breakdown": (
        "The parts of one [pass] as the [profile] recorded them; they add up to the whole pass, and what no "
        "event explains is the rest."
    ),
    "diff-waterfall": (
        "From the [pass] of one [profile] to that of another, a bar a step: what takes longer lifts the next "
        "bar, what takes less lowers it. Steps are ONNX nodes, copies, calls into CUDA, gaps between kernels "
        "and what the host does.\n"
        "The grey bar is what no event explains. A hatched one changed no more than the passes of one "
        "profile differ by among themselves."
    ),
    "profile-times": (
        "How long a [pass] takes at each batch size while it is recorded. Recording costs time: for times to "
        "compare use Compare."
    ),
    "profile-cold-start": (
        "The [cold start], event by event: what happens before the first answer, and never again in this "
        "session."
    ),
}


def of(name: str) -> str:
    """Of a chart of this name; "" for one that explains itself."""
    ends = sorted(MEANINGS, key=len, reverse=True)
    families = {"profile-roofline-": "roofline", "diff-waterfall-": "diff-waterfall"}
    plain = next((of for start, of in families.items() if name.startswith(start)), name)
    return next((MEANINGS[end] for end in ends if plain.endswith(end)), "")
