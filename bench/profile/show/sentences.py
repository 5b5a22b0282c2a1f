"""What holds an operator back, in words that a student understands, from the figures of its finding alone.

Only what a figure shows is said: an operator far below both of its limits is bound by neither, whichever is
nearer, and what counters did not count is not guessed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.profile.records import DeviceFacts
from bench.results.doubt import IMPOSSIBLE
from bench.words import units

if TYPE_CHECKING:
    from bench.profile.show.findings import OpFinding

NEAR, FAR = 0.5, 0.05  # of the roof: from where it binds; below which a decimal is shown
LEAST = 0.0005  # of the roof: what a decimal would not show
OVER = 1.1  # beyond the roof by more than a limit measured another day, or reads faster than copies, explain
SCATTERED, MOVED = 1.25, 1.5  # as many sectors or bytes as needed: above, it is put into words
WIDEST = 16  # sectors of a warp's widest access, 16 bytes a thread, side by side
MOST = 2  # things said of one operator
# What bounds an operator: the limit in words; what is said of one that is beyond it.
_LIMITS = {
    "arithmetic": "measured multiply-add rate",
    "memory": "measured memory rate",
    "cache": "measured rate of the caches",
}
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
    roof = _under_the_roof(finding.roof, finding.bound) if finding.roof is not None else ""
    if finding.beyond == "impossible":
        roof = IMPOSSIBLE
    if finding.roof is not None and finding.roof >= NEAR:
        said.append(roof)
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
            f"chip: at least {idle:.0%} of its {multiprocessors} multiprocessors have nothing to do"
        )
    if not said and roof:
        said.append(roof)  # far below, and nothing else is known: then at least that
    return "; ".join(said[:MOST])


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
    if finding.warps_share is not None and finding.warps_share < IDLE and (finding.roof or 1) < NEAR:
        said.append(f"{finding.warps_share:.0%} of the warps that a multiprocessor has room for are there")
    return said


def _under_the_roof(roof: float, bound: str) -> str:
    """Where an operator stands under the nearer of its two limits, `bound`."""
    if roof > OVER:
        return f"{units.times(roof)} {_BEYOND[bound]}"
    limit = _LIMITS[bound]
    if roof >= NEAR:
        return f"{bound}-bound at {roof:.0%} of the {limit}"
    share = f"{roof:.1%}" if roof < FAR else f"{roof:.0%}"
    share = "less than 0.1%" if roof < LEAST else share
    return f"at {share} of the {limit}, the nearer of its two limits: bound by neither"
