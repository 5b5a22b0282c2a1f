"""What holds an operator back, in words that a student understands, from the figures of its finding alone.

Only what a figure shows is said: an operator is bound by a limit by the one rule that there is
(bench.words.limits), else it is far from every limit, with what else is known of it; what counters did not
count is not guessed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.results.doubt import IMPOSSIBLE
from bench.results.profile_records import DeviceFacts
from bench.words import limits, units

if TYPE_CHECKING:
    from bench.views.sentences.profile_findings import OpFinding

SCATTERED, MOVED = 1.25, 1.5  # as many sectors or bytes as needed: above, it is put into words
WIDEST = 16  # sectors of a warp's widest access, 16 bytes a thread, side by side
MOST = 2  # things said of one operator
# What is said of one that is beyond its limit.
_BEYOND = {
    "arithmetic": "the measured rate of arithmetic: it is done in fewer or cheaper operations "
    "than were counted",
    "memory": "what memory alone allows: its data came out of a cache",
    "cache": "the measured rate of the caches: its data lay nearer to the cores",
}
IDLE = 0.5  # of a multiprocessor's warps: fewer are told where the roof is far


def sentence(finding: OpFinding, gpu: DeviceFacts | None) -> str:
    """What holds the operator back, in words, from the finding's own figures: what matters most, and at most
    one thing more."""
    said = []
    each = finding.time_ns / finding.launches if finding.launches else 0.0
    launch_bound = finding.launch_ns is not None and each < finding.launch_ns
    if launch_bound and finding.launch_ns is not None:
        count = f"{finding.launches:g} kernel{'s' if finding.launches != 1 else ''}"
        said.append(
            f"launch-bound: {count} of {units.duration(each)} on average, shorter than the "
            f"{units.duration(finding.launch_ns)} that the call takes to start one"
        )
    if counted := _counted(finding):
        said.append(", and ".join(counted[:MOST]))
    multiprocessors = gpu.multiprocessors if gpu else 0
    # A kernel shorter than its launch is small in any case: that its grid is, too, says nothing more.
    if not launch_bound and finding.blocks is not None and finding.blocks < multiprocessors:
        idle = 1 - finding.blocks / multiprocessors
        said.append(
            f"the grid of {finding.blocks} block{'s' if finding.blocks != 1 else ''} is smaller than the "
            f"chip: at least {units.percent(idle, 0)} of its {multiprocessors} multiprocessors have nothing "
            "to do"
        )
    if finding.beyond == "impossible":
        return "; ".join([IMPOSSIBLE, *said[: MOST - 1]])
    if finding.roof is None:
        return "; ".join(said[:MOST])
    if finding.roof > limits.OVER:
        return "; ".join([f"{units.times(finding.roof)} {_BEYOND[finding.bound]}", *said[: MOST - 1]])
    if limits.binds(finding.roof):
        return "; ".join([limits.standing(finding.roof, finding.bound), *said[: MOST - 1]])
    return limits.standing(finding.roof, finding.bound, said[:MOST])


def _counted(finding: OpFinding) -> list[str]:
    """What the hardware's counters show, where it is much."""
    said = []
    if finding.scattered is not None and finding.scattered > SCATTERED:
        said.append(
            f"uncoalesced: its accesses to global memory take {units.times(finding.scattered)} the sectors "
            "of 32 bytes that they would if the threads of a warp accessed neighbouring bytes"
        )
    elif finding.load_sectors is not None and finding.load_sectors > WIDEST:
        said.append(
            f"uncoalesced: a load of a warp takes {finding.load_sectors:.1f} sectors of 32 bytes, and never "
            f"more than {WIDEST} where its threads access neighbouring bytes"
        )
    if finding.moved is not None and finding.dram_nbytes is not None and finding.moved > MOVED:
        said.append(
            f"device memory moves {units.times(finding.moved)} the bytes needed "
            f"({units.nbytes(finding.dram_nbytes)} for {units.nbytes(finding.nbytes)})"
        )
    if finding.warps_share is not None and finding.warps_share < IDLE and (finding.roof or 1) < limits.BOUND:
        said.append(
            f"{units.percent(finding.warps_share, 0)} of the warps that a multiprocessor has room for are "
            "there"
        )
    return said
