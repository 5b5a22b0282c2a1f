"""The machine that runs translated kernels: its memory, which watches every access, and its scheduler.

All functions are compiled by `kernels.cpu.compiled` and called by the machine code of a kernel as
f(warp, mask, packed, scratch). `warp` points to the state of a warp (the words W_… below), `mask` says which
lanes take part. `packed` says which instruction it is (`pack`): its number ("site") among those of the
program, how many bytes each element has, how many elements, the state space, and flags. Addresses and values
of the lanes lie in the warp's state.

Addresses are not the host's. An address of global memory is (number of the buffer << 36) + 2³⁵ + offset, so
that an access outside names the buffer beside which it is, and touches nothing. Shared memory, local memory
and parameters have windows of their own, as on a device. Where buffers are watched, each granule of theirs
(the least bytes that the kernel reads or writes at once) has a record of four words: who wrote it last and
where, and who read it.

Races: each block has a clock, which goes on at each barrier, each `__syncwarp` and each fence, and each warp
knows up to which clock what other warps of its block have done is before what it does (`known_of`): a barrier
tells those who wait there what all knew that arrived. Two accesses by different threads, one of which writes,
are in order if the first was before that clock. Lanes of a warp know of each other since their last
`__syncwarp` or barrier. Blocks of a launch are in order only where the first has passed a fence since and the
second has read or written by an atomic or volatile access; a fence covers what its warp knows of. Who arrives
at an mbarrier, or writes behind a fence, tells of what it has done itself and of what its warp had done when
its lanes last met (`lanes_of`, `told_of`). Of several readers a record says who was the last one. That is
enough where all warps meet; where some may meet without the others (mbarriers, barriers of some threads), it
is also kept when each warp last read what. The idea
of such records is from HiRace (arXiv:2401.04701); which writes of two threads are a conflict, from the PTX
ISA, "Memory Consistency Model". Two writes of the same value are not told.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kernels.cpu import simd
from kernels.ptx.native import compiled, inlined, lowest, of_half, ones

# --- the state of a warp: 64-bit words ---
W_ACTIVE, W_LIVE, W_NEXT, W_BUDGET, W_FLIP, W_PARKED, W_BARRED, W_STATUS = range(8)
W_BLOCK, W_LAUNCH, W_INDEX, W_FRAME, W_LOCAL, W_EPOCH, W_FORCE, W_BARRIER = range(8, 16)
W_PCS = 16  # 32 of 32 bits
W_TID = 32  # three times 32 of 32 bits
W_A, W_V = 80, 112  # 32 addresses; up to eight times 32 words: values, 32 bits each where they have no more
W_SEEN = 368  # of a request: sectors or words; then a counter a bank
W_LOCAL_INIT, W_WHERE, W_TRUES, W_ARRIVED, W_YIELDS, W_SAID = range(500, 506)
W_LIKE = 506  # of a record that may be read in the background its four words, and the last two then
W_GROUPS, W_QUEUE, W_QUEUED = 512, 544, 545  # copies that go on by themselves: closed groups of each lane
W_PRODUCTS, W_PRODUCTS_BEGUN, W_PRODUCT_GROUPS, W_PROXY, W_WIDE, W_STRONG, W_CLUSTER_PHASE = range(
    546, 553
)  # in the background
W_TILE = 576  # of a product
W_LANE_EPOCH, W_LANE_MASK = 768, 800  # of each lane its last __syncwarp of some lanes, and which
W_BULK_GROUPS = 832  # closed groups of bulk copies of each lane
W_RECENT = 864  # the block's clock when this warp last learned what others had done
W_STACK = 865  # where the lanes' returns from functions lie
W_LEVEL, W_DEPTH = (
    872,
    888,
)  # of each lane how many functions that call themselves are open, and its stack's depth
W_SIGNAL = 904  # address + 1 of the mbarrier for whose phase a lane waits, 0: for none
W_APART, W_DONE = 905, 906  # the block's clock when lanes last arrived at an mbarrier, and when what the warp
# did in the background was last waited for
W_TOGETHER = (
    907  # and when all its lanes last exchanged registers: what one of them had read, it had got by then
)
W_FENCED = 912  # the block's clock at each lane's last fence
W_WORDS = 944
STACK, LEVELS = (
    1024,
    512,
)  # words of 64 bits of a lane's stack; times that functions may be open which call themselves
QUEUE = 256  # copies that a warp may have under way
Q_PACKED, Q_LANES, Q_TO, Q_OF, Q_INSIDE, Q_GROUP = 0, 1, 8, 40, 72, 104  # of one: by lane, from here on
Q_WORDS = 136
PRODUCTS, P_WORDS = 128, 5  # the same of products of a warpgroup
RAW = 4 * 128 * 32 + 8 * (16 * 32 + 256 * 32 + 256)  # where a factor lies as it is in shared memory
WIDE_NBYTES = RAW + 32 * 256  # sums, rows, columns, a row's sums of one of them; then that

# --- of a block ---
B_SERIAL, B_CLOCK, B_BEGAN, B_LIVE, B_SHARED, B_SHADOW, B_X, B_Y, B_Z, B_FREE, B_DONE, B_SLOT = range(12)
B_KNOWN = 12  # what each warp, and each barrier, knows of the others: see `known_of`
B_ARRIVED, B_WANTED, B_TRUES = 16, 32, 48  # one for each of the 16 barriers
B_SIGNALS, SIGNALS = 64, 32  # addresses + 1 of the mbarriers of the block
B_BULK, B_BULK_COUNT = 96, 97
B_RANK, B_FIRST_OF, B_CLUSTER_EPOCH, B_CLUSTER_ARRIVED, B_CLUSTER_PHASE = range(98, 103)  # in its cluster
B_READERS = 103  # of each granule of shared memory when each warp last read it (`remembered`); 0: is not kept
B_IN_CLUSTER, B_CLUSTER = 104, 108  # x, y and z of the block in its cluster, and of the cluster
# Of another block's last access to this one's shared memory: the site, the block, the thread, the phase + 1.
B_VISITED, B_VISITOR, B_VISITING, B_VISITED_PHASE = range(112, 116)
B_LANES = 116  # lane by lane what rows know (`lanes_of`); 0: is not kept
B_WORDS = 128
BULK = 256  # bulk copies that a block may have under way
# Of one: the site, where it goes and comes from, how many bytes, its mbarrier + 1 (0: its group), the thread
# and the block that began it, the clock then, the group. K_DOES: 0, or how it is combined with what is there
# (`reduced`); −1: it is not done; with VALUE it is a store of the bytes in K_OF and K_GROUP. K_FROM: 0 where
# it comes from global memory, else 1 + the slot of the block out of whose shared memory; of a copy to global
# memory whether it has read what it copies.
K_SITE, K_TO, K_OF, K_GROUP, K_NBYTES, K_SIGNAL, K_THREAD, K_SINCE, K_DOES, K_FROM, K_BLOCK = range(11)
K_WORDS, VALUE = 11, 1 << 10
BULK_WRITES = 3  # in place of a finding's mask: what is outside is written to, and not read
IN_FLIGHT = 0x7FFFFFFF  # the clock of what has not arrived

# --- of a launch ---
L_BUFFERS, L_COUNT, L_FIRST, L_GRANULE, L_SHARED_NBYTES, L_OWNERS, L_SHARED_GRANULE, L_MEMORY = range(8)
L_FOUND, L_FOUND_COUNT, L_FENCES, L_LOCAL_NBYTES, L_KERNEL, L_WARPS, L_THREADS, L_WARP_STATES = range(8, 16)
L_BLOCK_STATES, L_RESIDENT, L_BLOCKS, L_GX, L_GY, L_GZ, L_BX, L_BY, L_BZ, L_SERIAL = range(16, 26)
L_EXECUTED, L_PARAMS, L_LIMIT, L_SEED, L_ENDED, L_WATCH, L_FRAME_NBYTES, L_PARAMS_NBYTES = range(26, 34)
L_NEXT_BLOCK, L_TURNS, L_DYNAMIC, L_SHAPES, L_SAID, L_SAID_COUNT = range(34, 40)
L_CLUSTER, L_CX, L_CY, L_CZ, L_CLUSTERS = range(40, 45)  # blocks of a cluster; clusters by x, y and z
L_KEPT, L_WAYS = 47, 48  # how many shapes are kept of an instruction, and of each warp at it
L_HEAP = 49  # of a kernel that asks for memory: see A_DATA
L_TOLD = 50  # how often blocks have told others (`told_others`)
# 1 once there was a fence; of each block lane by lane what it has told others (`told_of`).
L_FENCED, L_TOLD_OF = 51, 52
L_WORDS = 53
WITH_CLUSTER = 16  # the number of the barrier of the cluster

# --- of a buffer ---
D_DATA, D_NBYTES, D_SHADOW, D_FLAGS, D_READERS = range(5)  # the last as B_READERS; it is of a launch
D_WORDS = 5
READ_ONLY, INITIALISED = 1, 2
# --- of the memory that a kernel may ask for: each piece is a buffer of its own ---
A_DATA, A_NBYTES, A_SHADOW, A_USED, A_FIRST, A_MOST = range(6)  # the number of the first one; as many at most
A_WORDS = 6

# --- of a finding ---
F_KIND, F_SITE, F_OTHER, F_COUNT, F_BUFFER, F_OFFSET, F_BLOCK, F_THREAD, F_OTHER_BLOCK, F_OTHER_THREAD = (
    range(10)
)
F_MASK, F_VALUE = 10, 11
F_WORDS = 12
MOST_FOUND = 512
(
    OUTSIDE, MISALIGNED, UNWRITTEN, RACE_WRITES, RACE_READ_WRITE, RACE_WRITE_READ, WRITES_INPUT, DIVERGED,
    STUCK, ENDLESS, LOCAL_UNWRITTEN, MISMATCH, TOO_MANY, OVERTAKEN, UNSEEN,
    FAILED, TRAPPED, OVERRUN, TOO_DEEP, ASTRAY, GONE, LEFT, UNEVEN, NOT_GIVEN,
) = range(1, 25)  # fmt: skip

# --- of what a kernel prints ---
S_SITE, S_BLOCK, S_THREAD, S_FORMAT, S_NBYTES, S_VALUES = range(6)
MOST_SAID, SAID_NBYTES = 1000, 128  # times; bytes of values that are kept of one
S_WORDS = S_VALUES + SAID_NBYTES // 8

# --- counters of an access ---
M_REQUESTS, M_UNITS, M_LEAST, M_LANES, M_SPACE = range(5)
M_WORDS = 5
# --- of an instruction's last access: which lanes, where, what that cost, and which records are its ---
H_KEY, H_PLACE, H_UNITS, H_LEAST, H_LANES, H_COUNT = range(6)
H_APART = 8  # how far each lane's address is from the first one
H_AT = 40  # of each place of 4 bytes within 32 at which the first may lie, what that costs; 0: not known yet
H_RECORDS = 48  # of each record how far it is from the first one's << 16, the lane, and whether it is several
MOST_RECORDS = 256  # 16 bytes of each lane, of which two are one
ONCE, TWICE = -1, -2  # how often lanes must lie so before it is worth while to list their records
H_WORDS = H_RECORDS + MOST_RECORDS
SHAPES = 2  # of an instruction: one that copies has places that it reads, and places that it writes
SPREADS = 0x9E3779B97F4A7C15  # 2⁶⁴ by the golden ratio: D. Knuth, "The Art of Computer Programming", 6.4

GLOBAL, SHARED, LOCAL, PARAM, GENERIC, CLUSTER = range(6)
VOLATILE, IN_PARTS, EXPECTED = 1, 2, 4
USED_ALL = 15
WINDOW = 36  # bits of the offset within a buffer's window
MIDDLE = 1 << (WINDOW - 1)
OFFSETS = (1 << WINDOW) - 1
SHARED_WINDOW, LOCAL_WINDOW, PARAM_WINDOW = 1 << 20, (1 << 20) + 1, (1 << 20) + 2
CODE_WINDOW = (1 << 20) + 3  # of functions

ADD, MIN, MAX, AND, OR, XOR, EXCH, CAS, INC, DEC = range(10)
SIGNED, UNSIGNED, F32, F64, F16, BF16, F16X2, BF16X2 = range(8)

NOBODY, FLIPPED = 0x7FFFFFFF, 0x3FFFFFFF  # the program counter of no lane; what turns the order round
NOBODYS = 0x7FFFFFFE  # the clock, and the block, of what lies between arrays
EXITED, AT_BARRIER, YIELDED = 1, 2, 3
_WARP_WIDE, _BLOCK_WIDE, _GRID_WIDE, _STRONG = 1 << 10, 1 << 11, 1 << 12, 1 << 13
_BACKGROUND = 1 << 14  # written by a copy in the background
_TID = 0x3FF
_ONE_THREAD = 0x1FFF  # the thread, and that it is one alone


def pack(site: int, size: int, count: int, space: int, flags: int = 0, used: int = USED_ALL) -> int:
    """What an access is, in one word. used: a bit for each element whose value is used."""
    return site | size << 24 | count << 32 | space << 36 | flags << 40 | used << 48


@inlined
def found(launch, kind, site, other, buffer, offset, block, thread, other_block, other_thread, mask, value):
    """Keep a finding, once for each pair of instructions; of the same again only the number."""
    records, count = simd.integers(launch[L_FOUND]), launch[L_FOUND_COUNT]
    for i in range(count):
        at = i * F_WORDS
        if records[at + F_KIND] == kind and records[at + F_SITE] == site and records[at + F_OTHER] == other:
            records[at + F_COUNT] += 1
            return
    if count >= MOST_FOUND:
        return
    at = count * F_WORDS
    records[at + F_KIND], records[at + F_SITE], records[at + F_OTHER] = kind, site, other
    records[at + F_COUNT], records[at + F_BUFFER], records[at + F_OFFSET] = 1, buffer, offset
    records[at + F_BLOCK], records[at + F_THREAD] = block, thread
    records[at + F_OTHER_BLOCK], records[at + F_OTHER_THREAD] = other_block, other_thread
    records[at + F_MASK], records[at + F_VALUE] = mask, value
    launch[L_FOUND_COUNT] = count + 1


@inlined
def known_of(launch, block, row):
    """What the warp of this number knows of the others: accesses of warp v that are before the clock in word
    v are before what this one does now; word `warps` is the least of them. Behind the warps' rows are those
    of the 16 barriers, with what who arrived there knew (vector clocks)."""
    return simd.integers(block[B_KNOWN] + 8 * (launch[L_WARPS] + 1) * row)


@inlined
def lanes_of(launch, block, row):
    """The same lane by lane, of warps of which only some lanes have arrived at an mbarrier: 32 words of 32
    bits a warp; behind them one a warp, of what it has read. Kept where a kernel has mbarriers (B_LANES)."""
    return simd.words(block[B_LANES] + 132 * launch[L_WARPS] * row)


@inlined
def fences_of(launch, serial):
    """Of each warp of a block up to which clock what it did lies before a fence; behind that up to which it
    lay so when the block last wrote by an atomic or volatile access: others that see this one know of it."""
    return simd.integers(launch[L_FENCES] + 16 * launch[L_WARPS] * (serial - launch[L_FIRST]))


@inlined
def told_of(launch, serial):
    """Of each thread of a block up to which clock others know what it did that see the block's atomic or
    volatile writes: 32 bits each. Only where there was a fence."""
    return simd.words(launch[L_TOLD_OF] + 128 * launch[L_WARPS] * (serial - launch[L_FIRST]))


@inlined
def told_others(launch, block, warp, mask):
    """Lanes write by an atomic or volatile access: they tell of what they have done before a fence, and of
    what is fenced that they know of."""
    if launch[L_FENCED]:
        told_by(launch, block, warp, mask)


@inlined
def told_by(launch, block, warp, mask):
    fences, warps, number = fences_of(launch, block[B_SERIAL]), launch[L_WARPS], warp[W_INDEX]
    known, told, least = known_of(launch, block, number), told_of(launch, block[B_SERIAL]), 1
    latest, own, fenced_at = 0, simd.shifted(told, 32 * number), simd.shifted(warp, W_FENCED)
    for lane in range(32):
        if mask >> lane & 1:
            latest = max(latest, fenced_at[lane])
            own[lane] = max(own[lane], fenced_at[lane])
    for v in range(warps):
        fences[warps + v] = fences[v]
        least = min(least, fences[v])
        its, both = simd.shifted(told, 32 * v), min(fences[v], known[v])
        for other in range(32 if v != number else 0):
            its[other] = max(its[other], both)
    for other in range(32):
        own[other] = max(own[other], min(warp[W_EPOCH], max(latest, fenced_at[other])))
    for lane in range(32):
        met, epoch = warp[W_LANE_MASK + lane], warp[W_LANE_EPOCH + lane]
        if mask >> lane & 1 and epoch:
            for other in range(32):
                if met >> other & 1:
                    own[other] = max(own[other], min(epoch, max(fenced_at[lane], fenced_at[other])))
    if block[B_LANES]:
        lanes = lanes_of(launch, block, number)
        for i in range(32 * warps):
            told[i] = max(told[i], min(lanes[i], latest))
    if least:
        launch[L_TOLD] += 1
        first = simd.shifted(first_told(launch), block[B_SERIAL] - launch[L_FIRST])
        first[0] = first[0] if first[0] else launch[L_TOLD]


@inlined
def first_told(launch):
    """Of each block, when it has first written by an atomic or volatile access behind a fence: the number of
    such writes till then."""
    return simd.integers(launch[L_FENCES] + 16 * launch[L_WARPS] * launch[L_BLOCKS])


@inlined
def everybody_told(launch, known, readers):
    """Whether each block that may be among the readers of a place (`of_blocks`) has written by an atomic or
    volatile access behind a fence, before a warp last had such an access (W_STRONG). When it has read it is
    known of the last reader only; of the others this must do."""
    first, late = first_told(launch), 0
    for i in range(launch[L_NEXT_BLOCK]):
        late |= (readers >> (launch[L_FIRST] + i & 15)) & ((first[i] == 0) | (first[i] >= known))
    return late == 0


@inlined
def of_blocks(before, serial, own):
    """What a record says of several blocks that have read: 16 bits, from 16 on, each for every 16th block."""
    others = before & 0xFFFF0000 if before & _GRID_WIDE else 1 << 16 + (serial & 15)
    return others | 1 << 16 + (own & 15)


@inlined
def in_order(launch, block, oldest, serial, clock, it, thread, warp_epoch):
    """Whether what a thread (or several) did then is before what this thread does now."""
    if serial < oldest:
        return True
    warps, writer = launch[L_WARPS], (it & _TID) >> 5
    known = known_of(launch, block, thread >> 5)
    if serial == block[B_SERIAL] and it & _GRID_WIDE == 0:
        if it & _BLOCK_WIDE:
            if clock < known[warps]:
                return True
        elif writer == thread >> 5:
            if clock == IN_FLIGHT:
                return False
            if clock < warp_epoch or (it & _WARP_WIDE == 0 and it & _TID == thread):
                return True
            mine = simd.integers(simd.integers(launch[L_WARP_STATES])[block[B_SLOT] * warps + writer])
            some = it & _WARP_WIDE == 0 and clock < mine[W_LANE_EPOCH + (thread & 31)]
            if some and mine[W_LANE_MASK + (thread & 31)] >> (it & 31) & 1:
                return True
        elif clock < known[writer]:
            return True
        alone = block[B_LANES] and it & (_WARP_WIDE | _BLOCK_WIDE) == 0
        if alone and clock < lanes_of(launch, block, thread >> 5)[it & _TID]:
            return True
    elif launch[L_CLUSTER] > 1 and 0 <= serial - block[B_FIRST_OF] < launch[L_CLUSTER]:
        slot = block[B_SLOT] - block[B_RANK] + serial - block[B_FIRST_OF]
        other = simd.shifted(simd.integers(launch[L_BLOCK_STATES]), slot * B_WORDS)
        if it & _GRID_WIDE == 0 and clock < other[B_CLUSTER_EPOCH]:
            return True
    # A fence behind it, and an atomic or volatile access here.
    strong = simd.integers(simd.integers(launch[L_WARP_STATES])[block[B_SLOT] * warps + (thread >> 5)])
    if strong[W_STRONG] == 0 or (it & _GRID_WIDE and launch[L_CLUSTER] > 1):
        return False
    before = simd.shifted(fences_of(launch, serial), warps)
    if it & (_WARP_WIDE | _BLOCK_WIDE | _GRID_WIDE) == 0:
        return launch[L_FENCED] != 0 and clock < told_of(launch, serial)[it & _TID]
    if it & (_BLOCK_WIDE | _GRID_WIDE) == 0:
        return clock < before[writer]
    least = clock + 1
    for v in range(warps):
        least = min(least, before[v])
    return clock < least and (it & _GRID_WIDE == 0 or everybody_told(launch, strong[W_STRONG], it >> 16))


@inlined
def read_now(launch, block, record, site, thread, warp_epoch, strong, buffer, offset):
    """Watch a read of a granule."""
    oldest = block[B_FIRST_OF] if buffer == -SHARED else launch[L_FIRST]
    word, it = record[0], record[1]
    serial = word >> 32
    if serial >= oldest:
        both = strong != 0 and it & _STRONG != 0
        if not both and not in_order(
            launch, block, oldest, serial, it >> 32, it & 0xFFFFFFFF, thread, warp_epoch
        ):
            found(
                launch, RACE_WRITE_READ, site, word & 0xFFFFFFFF, buffer, offset, block[B_SERIAL], thread,
                serial, it & _TID, 0, it >> 10 & 31,
            )  # fmt: skip
    own = block[B_SERIAL]
    before, how = record[2], record[3]
    serial, clock = before >> 32, how >> 32
    flags = thread | (_STRONG if strong else 0)
    if serial >= oldest and not in_order(
        launch, block, oldest, serial, clock, how & 0xFFFFFFFF, thread, warp_epoch
    ):
        strong_both = _STRONG if strong and how & _STRONG else 0
        if serial != own or how & _GRID_WIDE:
            flags = (how & _TID) | _GRID_WIDE | strong_both | of_blocks(how, serial, own)
        elif how & _BLOCK_WIDE or (how & _TID) >> 5 != thread >> 5:
            flags = (how & _TID) | _BLOCK_WIDE | strong_both
        else:
            flags = (how & _TID) | _WARP_WIDE | strong_both
    record[2] = own << 32 | site
    record[3] = block[B_CLOCK] << 32 | flags
    place = readers_at(launch, block, buffer, offset)
    if place:
        if serial != own:  # what is kept is of another block
            for v in range(launch[L_WARPS]):
                simd.integers(place)[v] = 0
        remembered(place, block, starter(launch, block, thread), thread & 31)


@inlined
def readers_at(launch, block, buffer, offset):
    """Where it is kept of a granule when each warp of a block last read it: of the block that has read it
    last. 0: nowhere."""
    granule, first = launch[L_GRANULE], 0
    if buffer == -SHARED:
        granule, first = launch[L_SHARED_GRANULE], block[B_READERS]
    elif buffer > 0:
        first = simd.integers(launch[L_BUFFERS])[buffer * D_WORDS + D_READERS]
    return first + 8 * launch[L_WARPS] * (offset >> granule) if first else 0


@inlined
def remembered(place, block, warp, lane):
    """A lane reads a granule now (`readers_at`). Where warps meet without the others, it is not enough to
    know who was the last of several: of each warp it is kept which lanes have read, in the low word, since
    its lanes last met or some of them arrived at an mbarrier, and when the last of them did."""
    its = simd.integers(place + 8 * warp[W_INDEX])
    before = its[0]
    others = before & 0xFFFFFFFF if before >> 32 >= max(warp[W_EPOCH], warp[W_APART]) else 0
    its[0] = block[B_CLOCK] << 32 | others | 1 << lane


@inlined
def all_read_before(launch, block, serial, it, buffer, offset, thread, warp_epoch):
    """Whether each warp that has read a granule did so before what this thread does now; it is not known
    where nothing is kept of that, or other blocks have read it, too."""
    place = readers_at(launch, block, buffer, offset)
    if place == 0 or serial != block[B_SERIAL] or it & _GRID_WIDE:
        return False
    warps, number, lane = launch[L_WARPS], thread >> 5, thread & 31
    known, mine = known_of(launch, block, number), starter(launch, block, thread)
    at = simd.integers(place)
    for v in range(warps):
        clock, lanes = at[v] >> 32, at[v] & 0xFFFFFFFF
        if clock < (warp_epoch if v == number else known[v]):
            continue
        if v == number:
            lanes &= ~(1 << lane)
            if clock < mine[W_LANE_EPOCH + lane]:
                lanes &= ~mine[W_LANE_MASK + lane]
        if block[B_LANES]:
            arrived = simd.shifted(lanes_of(launch, block, number), 32 * v)
            for other in range(32):
                lanes &= ~((clock < arrived[other]) << other)
            if clock < lanes_of(launch, block, number)[32 * warps + v]:
                continue
        if lanes:
            return False
    return True


@inlined
def written_now(launch, block, record, site, thread, warp_epoch, strong, buffer, offset, same):
    """Watch a write of a granule. same: it had that value already."""
    oldest = block[B_FIRST_OF] if buffer == -SHARED else launch[L_FIRST]
    for which in range(2):
        word, it = record[2 * which], record[2 * which + 1]
        serial = word >> 32
        if serial < oldest or (which == 0 and same != 0):
            continue
        if strong != 0 and it & _STRONG != 0:
            continue
        if which and all_read_before(launch, block, serial, it, buffer, offset, thread, warp_epoch):
            continue
        if not in_order(launch, block, oldest, serial, it >> 32, it & 0xFFFFFFFF, thread, warp_epoch):
            found(
                launch, RACE_READ_WRITE if which else RACE_WRITES, site, word & 0xFFFFFFFF, buffer, offset,
                block[B_SERIAL], thread, serial, it & _TID, 0, it >> 10 & 31,
            )  # fmt: skip
            break
    record[0] = block[B_SERIAL] << 32 | site
    record[1] = block[B_CLOCK] << 32 | thread | (_STRONG if strong else 0)


@inlined
def step_of(warp):
    """By how much the address grows from lane to lane, −1 where it does not evenly."""
    addresses = simd.shifted(warp, W_A)
    first, step, other = addresses[0], addresses[1] - addresses[0], 0
    for lane in range(32):
        other |= addresses[lane] - first - step * lane
    return step if other == 0 and step >= 0 else -1


@inlined
def sectors(warp, mask, at_once):
    """Sectors of 32 bytes that the lanes touch, different ones of so many lanes at once. Copies in the
    background bring 128 bytes at once, of 16 bytes each those of 8 lanes (as counted on an H100,
    docs/results/simulated.md)."""
    addresses, seen = simd.shifted(warp, W_A), simd.shifted(warp, W_SEEN)
    step = step_of(warp)
    if 0 <= step <= 32 and mask == 0xFFFFFFFF and at_once == 32:
        return (addresses[31] >> 5) - (addresses[0] >> 5) + 1
    rising, changes = 0, 1
    for lane in range(1, 32):
        rising |= addresses[lane] - addresses[lane - 1]
        changes += addresses[lane] >> 5 != addresses[lane - 1] >> 5
    if rising >= 0 and mask & 1 and at_once == 32:  # lanes that are left out have another's address
        return changes
    total, count, bits, last = 0, 0, 0, -1
    for lane in range(32):
        if lane & at_once - 1 == 0:
            total, count, bits, last = total + count, 0, 0, -1
        if mask >> lane & 1 == 0:
            continue
        sector = addresses[lane] >> 5
        if sector == last:
            continue
        last = sector
        bit = 1 << (sector & 63)
        known = False
        if bits & bit:
            for i in range(count):
                if seen[i] == sector:
                    known = True
                    break
        bits |= bit
        if not known:
            seen[count] = sector
            count += 1
    return total + count


@inlined
def wavefronts(warp, mask, size, stores):
    """In how many turns the 32 banks of 4 bytes serve the lanes: of so many lanes at once as many as there
    are different words of one bank. Loads of 16 bytes take half a warp at once, stores a quarter (as counted
    on an H100, docs/results/simulated.md)."""
    addresses, seen = simd.shifted(warp, W_A), simd.shifted(warp, W_SEEN)
    banks = simd.shifted(warp, W_SEEN + 64)
    step = step_of(warp) if mask == 0xFFFFFFFF else -1
    # What is aligned to its size lies in one bank, or in a row of two or four.
    bits = 2 if size <= 4 else 3 if size == 8 else 4
    rows = 128 >> bits
    at_once = rows if stores or bits < 4 else 16
    if step == size and size >= 4:
        return 32 // rows
    if step == 0:
        return 32 // at_once
    if size <= 4:
        least, most = addresses[lowest(mask)], addresses[lowest(mask)]
        for lane in range(32):
            least, most = min(least, addresses[lane]), max(most, addresses[lane])
        if (most >> 2) - (least >> 2) < 32:  # one word of each bank
            return 1
    total, first = 0, 0
    while first < 32:
        if mask >> first & ((1 << at_once) - 1):
            for bank in range(rows):
                banks[bank] = 0
            most, count = 1, 0
            for lane in range(first, first + at_once):
                if mask >> lane & 1 == 0:
                    continue
                word = addresses[lane] >> bits
                bank = word & (rows - 1)
                if banks[bank]:
                    if banks[32 + bank] == word:
                        continue
                    known = False
                    for j in range(count):
                        if seen[j] == word:
                            known = True
                            break
                    if known:
                        continue
                seen[count] = word
                count += 1
                banks[bank] += 1
                banks[32 + bank] = word
                most = max(most, banks[bank])
            total += most
        first += at_once
    return total


@inlined
def fetched(address, size):
    """The bits of an element at an address of the host."""
    if size == 4:
        return simd.words(address)[0] & 0xFFFFFFFF
    if size == 8:
        return simd.integers(address)[0]
    if size == 2:
        return simd.halves(address)[0] & 0xFFFF
    return simd.octets(address)[0] & 0xFF


@inlined
def put(address, size, value):
    if size == 4:
        simd.words(address)[0] = value
    elif size == 8:
        simd.integers(address)[0] = value
    elif size == 2:
        simd.halves(address)[0] = value
    else:
        simd.octets(address)[0] = value


@inlined
def shared_at(warp, launch, address, nbytes, site, lane, mask):
    """The place in the block's shared memory, or −1 with a finding."""
    block = simd.integers(warp[W_BLOCK])
    thread = (warp[W_INDEX] << 5) + lane
    if address & (nbytes - 1):
        found(launch, MISALIGNED, site, 0, -SHARED, address, block[B_SERIAL], thread, 0, 0, mask, nbytes)
        return -1
    if address < 0 or address + nbytes > launch[L_SHARED_NBYTES]:
        found(launch, OUTSIDE, site, 0, -SHARED, address, block[B_SERIAL], thread, 0, 0, mask, nbytes)
        return -1
    owners = simd.octets(launch[L_OWNERS])
    if owners[address] == 0 or owners[address + nbytes - 1] != owners[address]:
        found(launch, OUTSIDE, site, 0, -SHARED, address, block[B_SERIAL], thread, 0, 0, mask, nbytes)
        return -1
    return block[B_SHARED] + address


@inlined
def global_at(warp, launch, address, nbytes, site, lane, mask):
    """The place in a buffer, or −1 with a finding."""
    which = address >> WINDOW
    offset = (address & OFFSETS) - MIDDLE
    if 0 < which < launch[L_COUNT]:
        buffer = simd.shifted(simd.integers(launch[L_BUFFERS]), which * D_WORDS)
        if offset >= 0 and offset + nbytes <= buffer[D_NBYTES] and address & (nbytes - 1) == 0:
            return buffer[D_DATA] + offset
    block = simd.integers(warp[W_BLOCK])
    thread = (warp[W_INDEX] << 5) + lane
    if not 0 < which < launch[L_COUNT]:
        which, offset = 0, address
    aligned = address & (nbytes - 1) == 0
    found(
        launch, OUTSIDE if aligned else MISALIGNED, site, 0, which, offset, block[B_SERIAL], thread, 0, 0,
        mask, nbytes,
    )  # fmt: skip
    return -1


@inlined
def local_at(warp, launch, address, nbytes, site, lane, mask):
    block = simd.integers(warp[W_BLOCK])
    thread = (warp[W_INDEX] << 5) + lane
    if address < 0 or address + nbytes > launch[L_LOCAL_NBYTES]:
        found(launch, OUTSIDE, site, 0, -LOCAL, address, block[B_SERIAL], thread, 0, 0, mask, nbytes)
        return -1
    return warp[W_LOCAL] + lane * launch[L_LOCAL_NBYTES] + address


@inlined
def space_of(address):
    """The state space that a generic address points into."""
    window = address >> WINDOW
    if window == SHARED_WINDOW:
        return SHARED
    if window == LOCAL_WINDOW:
        return LOCAL
    if window == PARAM_WINDOW:
        return PARAM
    return GLOBAL


@inlined
def settled(warp, mask, space):
    """The one space of all lanes, their addresses made those of it; GENERIC where they differ. Lanes that are
    left out get the address of one that takes part."""
    addresses = simd.shifted(warp, W_A)
    if mask == 0:
        return space
    first = addresses[lowest(mask)]
    if mask != 0xFFFFFFFF:
        for other in range(32):
            if mask >> other & 1 == 0:
                addresses[other] = first
    if space != GENERIC:
        return space
    apart = 0
    for other in range(32):
        apart |= addresses[other] ^ first
    space = space_of(first)
    if apart >> WINDOW:
        for other in range(32):
            if space_of(addresses[other]) != space:
                return GENERIC
    if space != GLOBAL:
        for other in range(32):
            addresses[other] = addresses[other] & OFFSETS
    return space


@inlined
def base_of(warp, launch, mask, nbytes, space):
    """What added to the address of any of the lanes gives its place, where all are inside one buffer (or of
    shared memory) and aligned; else 0, and each is looked at alone."""
    addresses = simd.shifted(warp, W_A)
    origin, data, limit = 0, 0, 0
    first = addresses[lowest(mask)]
    if space == SHARED:
        data, limit = simd.integers(warp[W_BLOCK])[B_SHARED], launch[L_SHARED_NBYTES]
    else:
        which = first >> WINDOW
        if not 0 < which < launch[L_COUNT]:
            return 0
        its = simd.shifted(simd.integers(launch[L_BUFFERS]), which * D_WORDS)
        origin, data, limit = (which << WINDOW) + MIDDLE, its[D_DATA], its[D_NBYTES]
    bad, last = 0, limit - nbytes
    if mask == 0xFFFFFFFF:
        for lane in range(32):
            offset = addresses[lane] - origin
            bad |= (offset | last - offset) >> 63 | (offset & nbytes - 1)
    else:
        for lane in range(32):
            offset = addresses[lane] - origin
            bad |= ((offset | last - offset) >> 63 | (offset & nbytes - 1)) & -(mask >> lane & 1)
    return 0 if bad else data - origin


@inlined
def plainly_before(word, it, warp, known, warps, own, who):
    """Whether what a record says was plainly before: in this block, and this warp knows of it, or by this
    thread itself. known: its row (`known_of`)."""
    clock, writer = it >> 32, (it & _TID) >> 5
    if word >> 32 != own or it & _GRID_WIDE:
        return False
    if it & _BLOCK_WIDE:
        return clock < known[warps]
    if it & _ONE_THREAD == who & _ONE_THREAD and clock != IN_FLIGHT:
        return True
    if clock < (warp[W_EPOCH] if writer == warp[W_INDEX] and clock != IN_FLIGHT else known[writer]):
        return True
    lanes = simd.integers(warp[W_BLOCK])[B_LANES]
    if lanes == 0 or it & _WARP_WIDE:
        return False
    return clock < simd.words(lanes + 132 * warps * warp[W_INDEX])[it & _TID]


@inlined
def read_plainly(record, which, least, end, warp, known, warps, own, clock, site, who):
    """Watch a read of a granule where its record plainly says that it may be; else 1, and nothing is kept.
    which: the word of a record (and, 2 further on, of its reader) that says so if it is from `least` up to
    `end`. who: the thread, with _WARP_WIDE where there are several."""
    word = record[which] >> 32
    if (word < least or word >= end) and not plainly_before(
        record[0], record[1], warp, known, warps, own, who
    ):
        return 1
    how = record[3]
    if record[2 + which] >> 32 >= end and not plainly_before(record[2], how, warp, known, warps, own, who):
        # Others have read it since this warp last heard of others, too.
        if record[2] >> 32 != own or how >> 32 < warp[W_RECENT] or how & (_GRID_WIDE | _STRONG):
            return 1
        kept = how & 0xFFFFFFFF
        if kept & _BLOCK_WIDE == 0:
            if (kept ^ who) & (_TID - 31):
                kept |= _BLOCK_WIDE
            elif (kept ^ who) & (31 | _WARP_WIDE):
                kept |= _WARP_WIDE
        record[3] = clock << 32 | kept
        return 0
    record[2] = own << 32 | site
    record[3] = clock << 32 | who
    return 0


@inlined
def write_plainly(record, which, end, warp, known, warps, own, clock, site, who):
    """The same of a write."""
    if record[which] >> 32 >= end and not plainly_before(record[0], record[1], warp, known, warps, own, who):
        return 1
    if record[2 + which] >> 32 >= end and not plainly_before(
        record[2], record[3], warp, known, warps, own, who
    ):
        return 1
    record[0] = own << 32 | site
    record[1] = clock << 32 | who
    return 0


@inlined
def at_once(first, shape, which, least, end, recent, mine, site, stores):
    """Watch an access by all of its records at once, without a branch: as `read_plainly` and `write_plainly`
    do. False: some record does not plainly say that it may be, and each lane is looked at alone. first: of
    the record of the first lane the address; mine: clock << 32 and the warp's first thread; site: with the
    block in front."""
    beyond, other, few, old, stale, strong, since, count = 0, 0, 0, -1, 0, 0, 0, shape[H_COUNT]
    for i in range(count):
        entry = shape[H_RECORDS + i]
        at = simd.integers(first + (entry >> 16))
        word, reader, how = at[which] >> 32, at[2 + which] >> 32, at[3]
        beyond |= word - least | end - 1 - word
        old &= reader - end
        later = end - 1 - reader  # below zero: it was read since
        since |= later
        stale |= later & reader - recent
        strong |= later >> 63 & how & (_GRID_WIDE | _STRONG)
        changes = how ^ mine
        other |= changes & ~(_BLOCK_WIDE | _TID | _WARP_WIDE)
        apart = (how & _WARP_WIDE == 0) | (changes & _TID - 31 != 0)
        few |= (how & _BLOCK_WIDE == 0) & apart & (changes != entry & 0xFFFF)
    if beyond < 0:
        return False
    if old >= 0:
        if stores or which == 0 or stale < 0 or strong:
            return False
        if other == 0 and few == 0:
            return True  # who reads it now has read it since the barrier, too
    place, clock = 0 if stores else 2, mine & -4294967296
    if stores or since >= 0:  # nobody has read it since
        for i in range(count):
            entry = shape[H_RECORDS + i]
            at = simd.integers(first + (entry >> 16))
            at[place], at[place + 1] = site, mine | entry & 0xFFFF
        return True
    for i in range(count):
        entry = shape[H_RECORDS + i]
        at = simd.integers(first + (entry >> 16))
        how, who = at[3], mine & 0xFFFFFFFF | entry & 0xFFFF
        again = end - 1 - (at[2 + which] >> 32) >> 63  # all ones where it was read
        changes = how ^ who
        warps = (changes & _TID - 31 != 0) * _BLOCK_WIDE
        lanes = (changes & (31 | _WARP_WIDE) != 0) * _WARP_WIDE
        merged = how & 0xFFFFFFFF | warps | lanes
        at[2] = again & at[2] | ~again & site
        at[3] = clock | again & merged | ~again & who
    return True


@inlined
def used_of(packed, granule, records, stores):
    """A bit for each of the granules that an access has, where something of it is used. What is read may be
    less than a granule."""
    size, used, marks = packed >> 24 & 0xFF, packed >> 48 & USED_ALL, 0
    if stores or used == USED_ALL:
        return (1 << records) - 1
    each = max(1, (1 << granule) // size)
    for i in range(records):
        marks |= (used >> (i << granule) // size & (1 << each) - 1 != 0) << i
    return marks


@inlined
def plain_accesses(warp, launch, mask, packed, space, base, shape, stores):
    """Accesses that are inside, of those lanes of which the records plainly say that they may. The others.
    shape: what is kept of the last such access (H_…), whose lanes lay beside each other as these do; 0: none
    is."""
    block = simd.integers(warp[W_BLOCK])
    site, size, count = packed & 0xFFFFFF, packed >> 24 & 0xFF, packed >> 32 & 0xF
    addresses, values = simd.shifted(warp, W_A), simd.shifted(warp, W_V)
    low = simd.words(warp[W_FRAME] - 8 * W_WORDS + 8 * W_V)
    shadow, granule, origin, readers = block[B_SHADOW], launch[L_SHARED_GRANULE], 0, block[B_READERS]
    own, clock, thread = block[B_SERIAL], block[B_CLOCK], warp[W_INDEX] << 5
    warps, known = launch[L_WARPS], known_of(launch, block, warp[W_INDEX])
    first = addresses[lowest(mask)]
    if space == SHARED and launch[L_CLUSTER] == 1:
        # Only this block writes here, and the clock goes on from block to block.
        which, least, end = 1, 0 if stores else block[B_BEGAN], known[warps]
    elif space == SHARED:
        which, least, end = 0, 0 if stores else block[B_FIRST_OF], block[B_FIRST_OF]
    else:
        buffer = first >> WINDOW
        its = simd.shifted(simd.integers(launch[L_BUFFERS]), buffer * D_WORDS)
        if stores and its[D_FLAGS] & READ_ONLY:
            return mask
        shadow, granule, origin = its[D_SHADOW], launch[L_GRANULE], (buffer << WINDOW) + MIDDLE
        readers = its[D_READERS]
        which, end = 0, launch[L_FIRST]
        least = 0 if stores or its[D_FLAGS] & INITIALISED else 1
    slow, records = 0, max(1, size * count >> granule)
    used = used_of(packed, granule, records, stores)
    if shadow and packed >> 40 & (VOLATILE | EXPECTED):
        return mask
    watched = shadow == 0
    if not watched and shape:
        listed = simd.integers(shape)
        if listed[H_COUNT] == ONCE:
            recorded(warp, mask, packed, granule, shape, stores)
        if listed[H_COUNT] > 0:
            record, mine = shadow + 32 * (first - origin >> granule), clock << 32 | thread
            recent = warp[W_RECENT]
            watched = at_once(record, listed, which, least, end, recent, mine, own << 32 | site, stores)
    if not watched:
        for lane in range(32):
            if mask >> lane & 1:
                record = simd.integers(shadow + 32 * (addresses[lane] - origin >> granule))
                who, wrong = thread + lane, 0
                for i in range(records):
                    if used >> i & 1 == 0:
                        continue
                    at = simd.shifted(record, 4 * i)
                    word, old = at[which] >> 32, at[2 + which] >> 32 < end
                    if old and word < end and word >= least:
                        place = 0 if stores else 2
                        at[place], at[place + 1] = own << 32 | site, clock << 32 | who
                        continue
                    if stores:
                        wrong = write_plainly(at, which, end, warp, known, warps, own, clock, site, who)
                    else:
                        wrong = read_plainly(at, which, least, end, warp, known, warps, own, clock, site, who)
                    if wrong:
                        slow |= 1 << lane
                        break
    mask &= ~slow
    if readers and not stores:
        for lane in range(32):
            if mask >> lane & 1:
                for i in range(records):
                    place = (addresses[lane] - origin >> granule) + i
                    remembered(readers + 8 * warps * place, block, warp, lane)
    if stores and mask == 0xFFFFFFFF and size == 4:
        for i in range(count):
            for lane in range(32):
                simd.words(base + addresses[lane] + 4 * i)[0] = low[32 * i + lane]
    elif stores:
        for i in range(count):
            for lane in range(32):
                if mask >> lane & 1:
                    value = values[32 * i + lane] if size == 8 else low[32 * i + lane] & 0xFFFFFFFF
                    put(base + addresses[lane] + size * i, size, value)
    elif mask == 0xFFFFFFFF and size == 4:
        for i in range(count):
            for lane in range(32):
                low[32 * i + lane] = simd.words(base + addresses[lane] + 4 * i)[0]
    else:
        for i in range(count):
            for lane in range(32):
                if mask >> lane & 1:
                    value = fetched(base + addresses[lane] + size * i, size)
                    if size == 8:
                        values[32 * i + lane] = value
                    else:
                        low[32 * i + lane] = value
    return slow


@inlined
def read_lanes(warp, mask, packed, space, shape):
    if space in (SHARED, GLOBAL):
        whole, bytes_ = simd.integers(warp[W_LAUNCH]), (packed >> 24 & 0xFF) * (packed >> 32 & 0xF)
        base = base_of(warp, whole, mask, bytes_, space)
        if base != 0:
            mask = plain_accesses(warp, whole, mask, packed, space, base, shape, False)
            if mask == 0:
                return
    launch, block = simd.integers(warp[W_LAUNCH]), simd.integers(warp[W_BLOCK])
    site, size, count = packed & 0xFFFFFF, packed >> 24 & 0xFF, packed >> 32 & 0xF
    strong, used = packed >> 40 & VOLATILE, packed >> 48 & 0xF
    addresses, values = simd.shifted(warp, W_A), simd.shifted(warp, W_V)
    low = simd.words(warp[W_FRAME] - 8 * W_WORDS + 8 * W_V)
    nbytes = size * count
    epoch = warp[W_EPOCH]
    if strong:
        warp[W_STRONG] = launch[L_TOLD] + 1
    for lane in range(32):
        if mask >> lane & 1 == 0:
            continue
        address = addresses[lane]
        thread = (warp[W_INDEX] << 5) + lane
        shadow, granule, buffer, offset, initialised = 0, 0, 0, address, True
        if space == SHARED:
            at = shared_at(warp, launch, address, nbytes, site, lane, mask)
            shadow, granule, buffer, initialised = block[B_SHADOW], launch[L_SHARED_GRANULE], -SHARED, False
        elif space == LOCAL:
            at = local_at(warp, launch, address, nbytes, site, lane, mask)
        elif space == PARAM:
            at = launch[L_PARAMS] + address
            if address < 0 or address + nbytes > launch[L_PARAMS_NBYTES]:
                at = -1
                found(launch, OUTSIDE, site, 0, -PARAM, address, block[B_SERIAL], thread, 0, 0, mask, nbytes)
        else:
            at = global_at(warp, launch, address, nbytes, site, lane, mask)
            if at >= 0:
                buffer = address >> WINDOW
                its = simd.shifted(simd.integers(launch[L_BUFFERS]), buffer * D_WORDS)
                shadow, granule, offset = its[D_SHADOW], launch[L_GRANULE], (address & OFFSETS) - MIDDLE
                initialised = its[D_FLAGS] & INITIALISED != 0
        if at < 0:
            for i in range(count):
                if size == 8:
                    values[32 * i + lane] = 0
                else:
                    low[32 * i + lane] = 0
            continue
        if shadow:
            first, known, records = -1, 0, max(1, nbytes >> granule)
            marks = used_of(packed, granule, records, False)
            for i in range(records):
                if marks >> i & 1 == 0:
                    continue
                record = simd.integers(shadow + 32 * ((offset >> granule) + i))
                serial = record[0] >> 32
                if serial == 0 or (space == SHARED and serial < block[B_FIRST_OF]):
                    first = offset + (i << granule) if first < 0 else first
                else:
                    known += 1
                looked = packed >> 40 & (VOLATILE | EXPECTED)
                read_now(launch, block, record, site, thread, epoch, looked, buffer, offset + (i << granule))
            # Of several elements that are read at once the last may be what fills a row up.
            if first >= 0 and (known == 0 or packed >> 40 & IN_PARTS) and not initialised:
                found(launch, UNWRITTEN, site, 0, buffer, first, block[B_SERIAL], thread, 0, 0, mask, size)
        elif space == LOCAL and warp[W_LOCAL_INIT]:
            known = simd.octets(warp[W_LOCAL_INIT] + lane * launch[L_LOCAL_NBYTES] + address)
            for i in range(nbytes):
                if known[i] == 0 and used >> (i // size) & 1:
                    found(
                        launch, LOCAL_UNWRITTEN, site, 0, -LOCAL, address + i, block[B_SERIAL], thread, 0, 0,
                        mask, size,
                    )  # fmt: skip
                    break
        for i in range(count):
            value = fetched(at + size * i, size)
            if size == 8:
                values[32 * i + lane] = value
            else:
                low[32 * i + lane] = value


@inlined
def write_lanes(warp, mask, packed, space, shape):
    if space in (SHARED, GLOBAL):
        whole, bytes_ = simd.integers(warp[W_LAUNCH]), (packed >> 24 & 0xFF) * (packed >> 32 & 0xF)
        base = base_of(warp, whole, mask, bytes_, space)
        if base != 0:
            mask = plain_accesses(warp, whole, mask, packed, space, base, shape, True)
            if mask == 0:
                return
    launch, block = simd.integers(warp[W_LAUNCH]), simd.integers(warp[W_BLOCK])
    site, size, count = packed & 0xFFFFFF, packed >> 24 & 0xFF, packed >> 32 & 0xF
    strong = packed >> 40 & VOLATILE
    addresses, values = simd.shifted(warp, W_A), simd.shifted(warp, W_V)
    low = simd.words(warp[W_FRAME] - 8 * W_WORDS + 8 * W_V)
    nbytes = size * count
    epoch = warp[W_EPOCH]
    if strong:
        told_others(launch, block, warp, mask)
        warp[W_STRONG] = launch[L_TOLD] + 1
    for lane in range(32):
        if mask >> lane & 1 == 0:
            continue
        address = addresses[lane]
        thread = (warp[W_INDEX] << 5) + lane
        shadow, granule, buffer, offset = 0, 0, 0, address
        if space == SHARED:
            at = shared_at(warp, launch, address, nbytes, site, lane, mask)
            shadow, granule, buffer = block[B_SHADOW], launch[L_SHARED_GRANULE], -SHARED
        elif space == LOCAL:
            at = local_at(warp, launch, address, nbytes, site, lane, mask)
        else:
            at = global_at(warp, launch, address, nbytes, site, lane, mask)
            if at >= 0:
                buffer = address >> WINDOW
                its = simd.shifted(simd.integers(launch[L_BUFFERS]), buffer * D_WORDS)
                shadow, granule, offset = its[D_SHADOW], launch[L_GRANULE], (address & OFFSETS) - MIDDLE
                if its[D_FLAGS] & READ_ONLY:
                    found(
                        launch, WRITES_INPUT, site, 0, buffer, offset, block[B_SERIAL], thread, 0, 0, mask,
                        nbytes,
                    )  # fmt: skip
        if at < 0:
            continue
        if space == LOCAL and warp[W_LOCAL_INIT]:
            known = simd.octets(warp[W_LOCAL_INIT] + lane * launch[L_LOCAL_NBYTES] + address)
            for i in range(nbytes):
                known[i] = 1
        for i in range(count):
            value = values[32 * i + lane] if size == 8 else low[32 * i + lane] & 0xFFFFFFFF
            if size < 4:
                value &= (1 << 8 * size) - 1
            if shadow:
                same = 1 if fetched(at + size * i, size) == value else 0
                for j in range(size >> granule):
                    place = (offset + size * i >> granule) + j
                    written_now(
                        launch, block, simd.integers(shadow + 32 * place), site, thread, epoch, strong,
                        buffer, place << granule, same,
                    )  # fmt: skip
            put(at + size * i, size, value)


@inlined
def shaped(warp, mask, packed, space, stores, number):
    """What is kept of how an instruction's lanes lie beside each other (H_…), made anew where they lie
    otherwise than the last time: what an access costs, and which records are its, hangs on that alone. Some
    lane takes part."""
    launch, addresses = simd.integers(warp[W_LAUNCH]), simd.shifted(warp, W_A)
    base, granule = addresses[lowest(mask)], launch[L_SHARED_GRANULE if space == SHARED else L_GRANULE]
    key = (base & (1 << granule) - 1) << 48 | 1 << 40 | space << 32 | mask
    if mask != 0xFFFFFFFF:
        last = base
        for lane in range(32):
            if mask >> lane & 1:
                last = addresses[lane]
            else:
                addresses[lane] = last
    at, sum_ = base & 31 if space == GLOBAL else 0, -32 * base
    for lane in range(32):
        sum_ += addresses[lane]
    # Of one instruction several are kept: warps, and turns of a loop, begin at other places of a row.
    place = ((packed & 0xFFFFFF) * SHAPES + number) * launch[L_KEPT]
    mixed = (sum_ ^ mask << 40) * SPREADS
    way = (mixed ^ mixed >> 32) & launch[L_WAYS] - 1
    place += warp[W_INDEX] * launch[L_WAYS] + way & launch[L_KEPT] - 1
    kept = launch[L_SHAPES] + 8 * H_WORDS * place
    shape = simd.integers(kept)
    other = shape[H_KEY] ^ key
    for lane in range(32):
        other |= addresses[lane] - base ^ shape[H_APART + lane]
    if other == 0:
        if shape[H_COUNT] == TWICE:
            shape[H_COUNT] = ONCE
        known = 0 if at & 3 else shape[H_AT + (at >> 2)]
        if at != shape[H_PLACE] and known:
            shape[H_PLACE], shape[H_UNITS] = at, known
        if at == shape[H_PLACE]:
            return kept
    nbytes, lanes = (packed >> 24 & 0xFF) * (packed >> 32 & 0xF), ones(mask)
    units, least = 1, 1
    if space in (GLOBAL, LOCAL):
        least = lanes * nbytes + 31 >> 5
        # Local memory is interleaved: lanes that use one place of theirs use one stretch of 128 bytes.
        at_once = 128 // nbytes if packed >> 40 & IN_PARTS else 32
        units = least if space == LOCAL else sectors(warp, mask, at_once)
    elif space == SHARED:
        least = max(1, lanes * nbytes + 127 >> 7)
        units = wavefronts(warp, mask, nbytes, stores)
    shape[H_PLACE], shape[H_UNITS], shape[H_LEAST], shape[H_LANES] = at, units, least, lanes
    if other:
        shape[H_KEY], shape[H_COUNT] = key, TWICE
        for i in range(8):
            shape[H_AT + i] = 0
        for lane in range(32):
            shape[H_APART + lane] = addresses[lane] - base
    if at & 3 == 0:
        shape[H_AT + (at >> 2)] = units
    return kept


@inlined
def recorded(warp, mask, packed, granule, kept, stores):
    """Of the lanes' places the records, each once (H_RECORDS)."""
    shape, addresses = simd.integers(kept), simd.shifted(warp, W_A)
    base, rising = addresses[lowest(mask)] >> granule, 0
    for lane in range(1, 32):
        rising |= addresses[lane] - addresses[lane - 1]
    parts = max(1, (packed >> 24 & 0xFF) * (packed >> 32 & 0xF) >> granule)
    used, count, last = used_of(packed, granule, parts, stores), 0, -1
    records, skipped = ones(used), lowest(used)
    rest = mask if records else 0
    while rest:
        lane = lowest(rest)
        rest &= rest - 1
        same, far = -1, 32 * ((addresses[lane] >> granule) - base + skipped)
        if rising >= 0:
            same = last if last >= 0 and shape[H_RECORDS + last] >> 16 == far else -1
        else:
            i = 0
            while i < count and same < 0:
                if shape[H_RECORDS + i] >> 16 == far:
                    same = i
                i += records
        if same >= 0:
            if stores:  # of two that write one place each is looked at alone
                shape[H_COUNT] = 0
                return
            for i in range(records):
                shape[H_RECORDS + same + i] |= _WARP_WIDE
        elif count + records > MOST_RECORDS:
            shape[H_COUNT] = 0
            return
        else:
            last = count
            for i in range(parts):
                if used >> i & 1:
                    shape[H_RECORDS + count] = far + 32 * (i - skipped) << 16 | lane
                    count += 1
    shape[H_COUNT] = count


@inlined
def tallied(warp, mask, packed, space, stores):
    """Count what an access costs. What is kept of it (`shaped`); 0 where no lane takes part."""
    if mask == 0:
        return 0
    launch, kept = simd.integers(warp[W_LAUNCH]), shaped(warp, mask, packed, space, stores, 0)
    shape = simd.integers(kept)
    counters = simd.shifted(simd.integers(launch[L_MEMORY]), (packed & 0xFFFFFF) * M_WORDS)
    counters[M_REQUESTS] += 1
    counters[M_UNITS] += shape[H_UNITS]
    counters[M_LEAST] += shape[H_LEAST]
    counters[M_LANES] += shape[H_LANES]
    counters[M_SPACE] = space
    return kept


@inlined
def lent(warp, launch, block, lane, site):
    """Make the shared memory of the cluster's block that the lane's address names this block's own. Its slot,
    −1 where there is no such block."""
    addresses = simd.shifted(warp, W_A)
    number = addresses[lane] >> 24 & 0xFF
    rank = number - 1 if number else block[B_RANK]
    if rank >= launch[L_CLUSTER]:
        return -1
    addresses[lane] &= 0xFFFFFF
    slot = block[B_SLOT] - block[B_RANK] + rank
    of = simd.shifted(simd.integers(launch[L_BLOCK_STATES]), slot * B_WORDS)
    shared, shadow = of[B_SHARED], of[B_SHADOW]
    block[B_SHARED], block[B_SHADOW] = shared, shadow
    if rank != block[B_RANK]:
        block[B_READERS] = 0
        leader = simd.shifted(of, -rank * B_WORDS)
        thread = (warp[W_INDEX] << 5) + lane
        of[B_VISITED], of[B_VISITOR], of[B_VISITING] = site, block[B_SERIAL], thread
        of[B_VISITED_PHASE] = leader[B_CLUSTER_PHASE] + 1
        if of[B_DONE]:
            gone(launch, of)
    return slot


@inlined
def gone(launch, block):
    """A block has ended: who was in its shared memory since the cluster's last barrier may come too late."""
    if block[B_VISITED_PHASE]:
        found(
            launch, GONE, block[B_VISITED], 0, -SHARED, 0, block[B_VISITOR], block[B_VISITING],
            block[B_SERIAL], 0, 0, 0,
        )  # fmt: skip


@inlined
def in_cluster(warp, mask, packed, stores):
    """Loads or stores of lanes in shared memory of the cluster's blocks."""
    launch, block = simd.integers(warp[W_LAUNCH]), simd.integers(warp[W_BLOCK])
    shared, shadow, readers = block[B_SHARED], block[B_SHADOW], block[B_READERS]
    for lane in range(32):
        if mask >> lane & 1:
            lent(warp, launch, block, lane, packed & 0xFFFFFF)
            if stores:
                write_lanes(warp, 1 << lane, packed, SHARED, 0)
            else:
                read_lanes(warp, 1 << lane, packed, SHARED, 0)
            block[B_SHARED], block[B_SHADOW], block[B_READERS] = shared, shadow, readers


@inlined
def abroad(warp, mask, space):
    """Whether a lane's address names another block of the cluster."""
    addresses, some = simd.shifted(warp, W_A), 0
    if space != SHARED or simd.integers(warp[W_LAUNCH])[L_CLUSTER] == 1:
        return space == CLUSTER
    for lane in range(32):
        if mask >> lane & 1:
            some |= addresses[lane] >> 24
    return some != 0


@inlined
def accessed(warp, mask, packed, stores):
    if mask == 0:
        return
    space = settled(warp, mask, packed >> 36 & 0xF)
    shape = tallied(warp, mask, packed, space, stores)
    if abroad(warp, mask, space):
        in_cluster(warp, mask, packed, stores)
        return
    if space != GENERIC:
        if stores:
            write_lanes(warp, mask, packed, space, shape)
        else:
            read_lanes(warp, mask, packed, space, shape)
        return
    addresses = simd.shifted(warp, W_A)
    for lane in range(32):
        if mask >> lane & 1:
            its = space_of(addresses[lane])
            if its != GLOBAL:
                addresses[lane] = addresses[lane] & OFFSETS
            if stores:
                write_lanes(warp, 1 << lane, packed, its, 0)
            else:
                read_lanes(warp, 1 << lane, packed, its, 0)


@compiled
def read(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """Loads of the lanes: addresses from W_A, values to W_V."""
    accessed(warp, mask, packed, False)


@compiled
def write(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """Stores of the lanes: addresses from W_A, values from W_V."""
    accessed(warp, mask, packed, True)


# --- values of other lanes ---

UP, DOWN, BUTTERFLY, INDEX = range(4)
ANY, ALL = range(2)
S_RESULT = 7  # the slot of eight whose first word is a mask that an instruction gives back


@compiled
def shuffle(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """shfl.sync: values in slot 0, b in 1, c in 2; results in slot 3, and which lanes are in range."""
    low = simd.words(warp[W_FRAME] - 8 * W_WORDS + 8 * W_V)
    mode, within = packed >> 36 & 0xF, 0
    for lane in range(32):
        if mask >> lane & 1 == 0:
            continue
        b, c = low[32 + lane] & 31, low[64 + lane]
        clamp, segment = c & 31, c >> 8 & 31
        last = (lane & segment) | (clamp & ~segment)
        least = lane & segment
        if mode == UP:
            source = lane - b
            inside = source >= last
        elif mode == DOWN:
            source = lane + b
            inside = source <= last
        elif mode == BUTTERFLY:
            source = lane ^ b
            inside = source <= last
        else:
            source = least | (b & ~segment)
            inside = source <= last
        if inside:
            within |= 1 << lane
        else:
            source = lane
        low[96 + lane] = low[source]
    simd.shifted(warp, W_V)[32 * S_RESULT] = within


@compiled
def match(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """match.sync: values in slot 0 (64 bits), of each lane those that it names and that take part in slot 1;
    masks in slot 2."""
    values, all_alike = simd.shifted(warp, W_V), 0
    for lane in range(32):
        if mask >> lane & 1 == 0:
            continue
        alike, named = 0, values[32 + lane] & 0xFFFFFFFF
        for other in range(32):
            if named >> other & 1 and values[other] == values[lane]:
                alike |= 1 << other
        if alike == named:
            all_alike |= 1 << lane
        elif packed >> 36 & 0xF == ALL:
            alike = 0
        values[64 + lane] = alike
    values[32 * S_RESULT] = all_alike


# --- atomics ---


@inlined
def as_signed(value, size):
    return value if size == 8 else (value & 0xFFFFFFFF ^ 0x80000000) - 0x80000000


@inlined
def half_of(value):
    """The bits of float32 as a half, rounded to the nearest."""
    bits = simd.bits(value)
    sign, size = bits >> 16 & 0x8000, bits & 0x7FFFFFFF
    if size > 0x7F800000:
        return 0x7FFF
    if size >= 0x477FF000:
        return sign | 0x7C00
    if size < 0x38800000:  # a multiple of 2⁻²⁴, as the last place of numbers from 0.5 on is
        return sign | simd.bits(np.float32(simd.from_bits(size) + np.float32(0.5))) - 0x3F000000
    return sign | size + 0xFFF + (size >> 13 & 1) - 0x38000000 >> 13


@inlined
def bfloat_of(value):
    bits = simd.bits(value) & 0xFFFFFFFF
    return 0x7FFF if bits & 0x7FFFFFFF > 0x7F800000 else bits + 0x7FFF + (bits >> 16 & 1) >> 16


@inlined
def of_bits(old, b, do, bfloat):
    """Of two numbers of 16 bits the sum, the smaller or the larger one."""
    x = simd.from_bits(old << 16) if bfloat else of_half(old)
    y = simd.from_bits(b << 16) if bfloat else of_half(b)
    if do == MIN:
        return old if x < y else b
    if do == MAX:
        return old if x > y else b
    value = np.float32(x + y)
    return bfloat_of(value) if bfloat else half_of(value)


@inlined
def combined(old, b, c, size, do, kind):
    """What an atomic operation writes."""
    if kind in (F16, BF16):
        return of_bits(old & 0xFFFF, b & 0xFFFF, do, kind == BF16)
    if kind in (F16X2, BF16X2):
        high = of_bits(old >> 16 & 0xFFFF, b >> 16 & 0xFFFF, do, kind == BF16X2)
        return high << 16 | of_bits(old & 0xFFFF, b & 0xFFFF, do, kind == BF16X2)
    if kind == F32:
        x, y = simd.from_bits(np.int32(old)), simd.from_bits(np.int32(b))
        if do == ADD:
            return np.int64(simd.bits(np.float32(x + y)))
        return old
    if kind == F64:
        return old
    if do == ADD:
        return old + b
    if do == AND:
        return old & b
    if do == OR:
        return old | b
    if do == XOR:
        return old ^ b
    if do == EXCH:
        return b
    if do == CAS:
        return c if old == b else old
    if kind == SIGNED:
        x, y = as_signed(old, size), as_signed(b, size)
        if do == MIN:
            return old if x < y else b
        return old if x > y else b
    u, v = np.uint64(old), np.uint64(b)
    if do == MIN:
        return old if u < v else b
    if do == MAX:
        return old if u > v else b
    if do == INC:
        return 0 if u >= v else old + 1
    return b if u == 0 or u > v else old - 1


@compiled
def atomic(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """atom and red: addresses in W_A, b in slot 0, c in slot 1 (64 bits each); what was there in slot 2."""
    launch, block = simd.integers(warp[W_LAUNCH]), simd.integers(warp[W_BLOCK])
    addresses, values = simd.shifted(warp, W_A), simd.shifted(warp, W_V)
    site, size = packed & 0xFFFFFF, packed >> 24 & 0xFF
    do, kind = packed >> 48 & 0xF, packed >> 52 & 0xF
    if mask == 0:
        return
    told_others(launch, block, warp, mask)
    warp[W_STRONG] = launch[L_TOLD] + 1
    space = settled(warp, mask, packed >> 36 & 0xF)
    tallied(warp, mask, packed, space, True)
    own_shared, own_shadow, own_readers = block[B_SHARED], block[B_SHADOW], block[B_READERS]
    for lane in range(32):
        if mask >> lane & 1 == 0:
            continue
        address, its = addresses[lane], space
        if its == GENERIC:
            its = space_of(address)
            address = address & OFFSETS if its != GLOBAL else address
        if its == SHARED and launch[L_CLUSTER] > 1:
            addresses[lane] = address
            lent(warp, launch, block, lane, site)
            address = addresses[lane]
        thread = (warp[W_INDEX] << 5) + lane
        shadow, granule, buffer, offset, initialised = 0, 0, 0, address, True
        if its == SHARED:
            at = shared_at(warp, launch, address, size, site, lane, mask)
            shadow, granule, buffer, initialised = block[B_SHADOW], launch[L_SHARED_GRANULE], -SHARED, False
        elif its == GLOBAL:
            at = global_at(warp, launch, address, size, site, lane, mask)
            if at >= 0:
                buffer = address >> WINDOW
                of = simd.shifted(simd.integers(launch[L_BUFFERS]), buffer * D_WORDS)
                shadow, granule, offset = of[D_SHADOW], launch[L_GRANULE], (address & OFFSETS) - MIDDLE
                initialised = of[D_FLAGS] & INITIALISED != 0
                if of[D_FLAGS] & READ_ONLY:
                    found(
                        launch,
                        WRITES_INPUT,
                        site,
                        0,
                        buffer,
                        offset,
                        block[B_SERIAL],
                        thread,
                        0,
                        0,
                        mask,
                        size,
                    )
        else:
            at = -1
            found(launch, OUTSIDE, site, 0, -its, address, block[B_SERIAL], thread, 0, 0, mask, size)
        block[B_SHARED], block[B_SHADOW] = own_shared, own_shadow
        if at < 0:
            block[B_READERS] = own_readers
            values[64 + lane] = 0
            continue
        for j in range(size >> granule if shadow else 0):
            place = (offset >> granule) + j
            record = simd.integers(shadow + 32 * place)
            serial = record[0] >> 32
            unwritten = serial == 0 or (its == SHARED and serial < block[B_FIRST_OF])
            if do != EXCH and unwritten and not initialised:
                found(
                    launch, UNWRITTEN, site, 0, buffer, place << granule, block[B_SERIAL], thread, 0, 0, mask,
                    size,
                )  # fmt: skip
            written_now(launch, block, record, site, thread, warp[W_EPOCH], 1, buffer, place << granule, 0)
        block[B_READERS] = own_readers
        old = fetched(at, size)
        values[64 + lane] = old
        if kind == F64:
            simd.doubles(at)[0] = simd.number(old) + simd.number(values[lane])
        else:
            b, c = values[lane], values[32 + lane]
            if size < 8:
                b, c = b & (1 << 8 * size) - 1, c & (1 << 8 * size) - 1
            put(at, size, combined(old, b, c, size, do, kind))


@compiled
def fence(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """membar, fence: what this warp has done, and what it knows of, is before what others do that see it."""
    fenced(warp, simd.integers(warp[W_LAUNCH]), simd.integers(warp[W_BLOCK]), mask)


@inlined
def fenced(warp, launch, block, mask):
    block[B_CLOCK] += 1
    launch[L_FENCED] = 1
    for lane in range(32):
        if mask >> lane & 1:
            warp[W_FENCED + lane] = block[B_CLOCK]
    warps = launch[L_WARPS]
    known = known_of(launch, block, warp[W_INDEX])
    fences = fences_of(launch, block[B_SERIAL])
    for v in range(warps):
        fences[v] = max(fences[v], known[v])
    fences[warp[W_INDEX]] = block[B_CLOCK]


# --- arithmetic that vectors of LLVM have not ---

EX2, LG2, SIN, COS, TANH = range(5)
DIV, REM = range(2)


@inlined
def with_bits(y, count):
    """float32 of y with so many significant bits, rounded to the nearest."""
    if y != y:
        return y
    cut = 24 - count
    rounded = np.int64(simd.bits(np.float32(y))) + (1 << cut >> 1)
    return np.float64(simd.from_bits(np.int32(rounded & -(1 << cut))))


@compiled
def function(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """An approximate function of float32: x in slot 0, result in slot 1. It is off by about as much as the
    PTX ISA allows ("Floating Point Instructions"), so that a kernel which needs more digits is found:
    ex2.approx 2 units in the last place; lg2.approx 2⁻²², of numbers between 0.5 and 2 absolutely; sin and
    cos 2⁻²⁰·⁵ absolutely; tanh 2⁻¹¹. A device errs elsewhere within these bounds."""
    low = simd.floats(warp[W_FRAME] - 8 * W_WORDS + 8 * W_V)
    which = packed >> 36 & 0xF
    for lane in range(32):
        x = np.float64(low[lane])
        if mask >> lane & 1 == 0:
            continue
        if which == EX2:
            y = with_bits(math.exp(x * 0.6931471805599453), 23)
        elif which == LG2:
            y = math.log(x) * 1.4426950408889634 if x > 0 else (-np.inf if x == 0 else np.nan)
            y = np.floor(y * 4194304.0 + 0.5) / 4194304.0 if 0.5 < x < 2 else with_bits(y, 23)
        elif which == SIN:
            y = np.floor(math.sin(x) * 1048576.0 + 0.5) / 1048576.0
        elif which == COS:
            y = np.floor(math.cos(x) * 1048576.0 + 0.5) / 1048576.0
        else:
            t = math.exp(-2 * abs(x))
            y = (1 - t) / (1 + t) if abs(x) > 1e-3 else abs(x) * (1 - x * x / 3)
            y = with_bits(-y if x < 0 else y, 11)
        low[32 + lane] = np.float32(y)


@compiled
def divide(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """Whole numbers of 64 bits: slot 0 by slot 1, to slot 2. By zero: all ones, and the dividend remains."""
    values = simd.shifted(warp, W_V)
    which, signed = packed >> 36 & 0xF, packed >> 40 & 1
    for lane in range(32):
        if mask >> lane & 1 == 0:
            continue
        a, b = values[lane], values[32 + lane]
        if b == 0:
            values[64 + lane] = a if which == REM else -1
            continue
        u = np.uint64(-a) if signed and a < 0 else np.uint64(a)
        v = np.uint64(-b) if signed and b < 0 else np.uint64(b)
        if which == DIV:
            result = np.int64(u // v)
            negative = (a < 0) != (b < 0)
        else:
            result = np.int64(u % v)
            negative = a < 0
        values[64 + lane] = -result if signed and negative else result


# --- barriers and turns ---

ARRIVE, REDUCES = 1, 2


@compiled
def synced(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """bar.warp.sync: what lanes of the warp did is before what they do now."""
    block = simd.integers(warp[W_BLOCK])
    block[B_CLOCK] += 1
    warp[W_RECENT] = block[B_CLOCK]
    if mask == warp[W_LIVE]:
        warp[W_EPOCH] = block[B_CLOCK]
        return
    for lane in range(32):
        if mask >> lane & 1:
            warp[W_LANE_EPOCH + lane] = block[B_CLOCK]
            warp[W_LANE_MASK + lane] = mask


@inlined
def joined(launch, block, row, of):
    """One row knows what another does."""
    mine, its = known_of(launch, block, row), known_of(launch, block, of)
    for v in range(launch[L_WARPS]):
        mine[v] = max(mine[v], its[v])
    if block[B_LANES]:
        lanes, others = lanes_of(launch, block, row), lanes_of(launch, block, of)
        for i in range(33 * launch[L_WARPS]):
            lanes[i] = max(lanes[i], others[i])


@inlined
def forgotten(launch, block, row):
    """A row knows of nothing."""
    known = known_of(launch, block, row)
    for v in range(launch[L_WARPS] + 1):
        known[v] = 0
    if block[B_LANES]:
        lanes = lanes_of(launch, block, row)
        for i in range(33 * launch[L_WARPS]):
            lanes[i] = 0


@compiled
def barrier(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """bar: which one, how many threads (0: all of the block), and of which lanes a condition holds, in the
    first words of slots 0, 1 and 2."""
    block, values = simd.integers(warp[W_BLOCK]), simd.shifted(warp, W_V)
    which, wanted = values[0] & 15, values[32]
    block[B_ARRIVED + which] += 32 if wanted else ones(mask)
    block[B_WANTED + which] = wanted
    block[B_TRUES + which] += ones(mask & values[64])
    warp[W_WHERE] = packed & 0xFFFFFF
    launch = simd.integers(warp[W_LAUNCH])
    block[B_CLOCK] += 1
    joined(launch, block, launch[L_WARPS] + which, warp[W_INDEX])
    of = known_of(launch, block, launch[L_WARPS] + which)
    of[launch[L_WARPS]] = max(of[launch[L_WARPS]], warp[W_STRONG])
    of[warp[W_INDEX]] = block[B_CLOCK]
    if packed >> 40 & ARRIVE == 0:
        warp[W_BARRED] |= mask
        warp[W_BARRIER] = which


@compiled
def alone(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """Lanes go on where others that an instruction names do not come."""
    launch, block = simd.integers(warp[W_LAUNCH]), simd.integers(warp[W_BLOCK])
    lane = 0
    while lane < 31 and mask >> lane & 1 == 0:
        lane += 1
    missing = warp[W_LIVE] & ~mask & simd.shifted(warp, W_V)[32 * S_RESULT]
    other = 0
    while other < 31 and missing >> other & 1 == 0:
        other += 1
    base = warp[W_INDEX] << 5
    where = warp[W_WHERE] if warp[W_BARRED] & missing else 0
    found(
        launch, DIVERGED, packed & 0xFFFFFF, where, 0, 0, block[B_SERIAL], base + lane, block[B_SERIAL],
        base + other, mask, missing,
    )  # fmt: skip


@inlined
def begin(launch, slot):
    """The next block in this place."""
    number = launch[L_NEXT_BLOCK]
    launch[L_NEXT_BLOCK] = number + 1
    block = simd.shifted(simd.integers(launch[L_BLOCK_STATES]), slot * B_WORDS)
    block[B_SERIAL] = launch[L_FIRST] + number
    block[B_CLOCK] += 1
    block[B_BEGAN], block[B_LIVE] = block[B_CLOCK], launch[L_THREADS]
    known, width = known_of(launch, block, 0), launch[L_WARPS] + 1
    for i in range(width * launch[L_WARPS]):
        known[i] = block[B_CLOCK]
    for i in range(width * launch[L_WARPS], width * (launch[L_WARPS] + 16 + 2 * SIGNALS)):
        known[i] = 0
    for i in range(SIGNALS):
        block[B_SIGNALS + i] = 0
    block[B_BULK_COUNT] = 0
    rank, cluster = number % launch[L_CLUSTER], number // launch[L_CLUSTER]
    block[B_RANK], block[B_FIRST_OF] = rank, block[B_SERIAL] - rank
    block[B_CLUSTER_EPOCH], block[B_CLUSTER_ARRIVED], block[B_CLUSTER_PHASE] = 0, 0, 0
    block[B_VISITED_PHASE] = 0
    for axis in range(3):
        blocks, clusters = launch[L_CX + axis], launch[L_CLUSTERS + axis]
        block[B_IN_CLUSTER + axis], block[B_CLUSTER + axis] = rank % blocks, cluster % clusters
        block[B_X + axis] = cluster % clusters * blocks + rank % blocks
        rank, cluster = rank // blocks, cluster // clusters
    block[B_DONE] = 0
    for i in range(B_ARRIVED, B_SIGNALS):
        block[i] = 0
    shared = simd.integers(block[B_SHARED])
    for i in range(launch[L_SHARED_NBYTES] + 7 >> 3):
        shared[i] = -1
    for w in range(launch[L_WARPS]):
        warp = simd.integers(simd.integers(launch[L_WARP_STATES])[slot * launch[L_WARPS] + w])
        left = launch[L_THREADS] - 32 * w
        warp[W_LIVE] = 0xFFFFFFFF if left >= 32 else (1 << left) - 1
        for i in range(W_PCS, W_PCS + 16):
            warp[i] = 0
        warp[W_ACTIVE], warp[W_NEXT], warp[W_FLIP], warp[W_PARKED], warp[W_BARRED] = 0, 0, 0, 0, 0
        warp[W_EPOCH], warp[W_FORCE], warp[W_YIELDS], warp[W_WHERE], warp[W_QUEUED] = 0, 0, 0, 0, 0
        warp[W_PRODUCTS_BEGUN], warp[W_PRODUCT_GROUPS], warp[W_PROXY] = 0, 0, 0
        warp[W_STRONG], warp[W_RECENT], warp[W_SIGNAL] = 0, block[B_CLOCK], 0
        for lane in range(32):
            warp[W_GROUPS + lane], warp[W_LANE_EPOCH + lane], warp[W_BULK_GROUPS + lane] = 0, 0, 0
            warp[W_FENCED + lane] = 0
        for i in range(16):
            warp[W_LEVEL + i], warp[W_DEPTH + i] = 0, 0
        if warp[W_LOCAL_INIT]:
            known = simd.octets(warp[W_LOCAL_INIT])
            for i in range(32 * launch[L_LOCAL_NBYTES]):
                known[i] = 0


@inlined
def released(launch, slot, which):
    """Let go on who waits at a barrier of the block."""
    block = simd.shifted(simd.integers(launch[L_BLOCK_STATES]), slot * B_WORDS)
    block[B_CLOCK] += 1
    clock, warps = block[B_CLOCK], launch[L_WARPS]
    states = simd.integers(launch[L_WARP_STATES])
    row = warps + which
    of = known_of(launch, block, row)
    everybody, least = True, clock
    for w in range(warps):
        warp = simd.integers(states[slot * warps + w])
        if warp[W_LIVE] == 0 and block[B_WANTED + which] == 0:
            of[w] = clock  # who has ended is not waited for, and does no more
        elif warp[W_LIVE] == 0 or warp[W_BARRED] == 0 or warp[W_BARRIER] != which:
            everybody = False
    first, first_thread = -1, 0
    for w in range(warps):
        warp = simd.integers(states[slot * warps + w])
        if warp[W_BARRED] == 0 or warp[W_BARRIER] != which:
            continue
        warp[W_BARRED], warp[W_EPOCH], warp[W_RECENT] = 0, clock, clock
        warp[W_STRONG] = max(warp[W_STRONG], of[warps])
        warp[W_TRUES], warp[W_ARRIVED] = block[B_TRUES + which], block[B_ARRIVED + which]
        mine, least = known_of(launch, block, w), clock
        if not everybody:
            joined(launch, block, w, row)
        for v in range(warps):
            mine[v] = clock if everybody or v == w else mine[v]
            least = min(least, mine[v])
        mine[warps] = least
        if first < 0:
            first, first_thread = warp[W_WHERE], 32 * w
        elif first != warp[W_WHERE] and which == 0 and block[B_WANTED] == 0:
            found(
                launch, MISMATCH, first, warp[W_WHERE], 0, 0, block[B_SERIAL], first_thread,
                block[B_SERIAL], 32 * w, 0, 0,
            )  # fmt: skip
    forgotten(launch, block, row)
    block[B_ARRIVED + which], block[B_TRUES + which] = 0, 0


@inlined
def cluster_released(launch, slot):
    """Let go on who waits for the blocks of the cluster, where all have arrived."""
    size = launch[L_CLUSTER]
    first = slot - slot % size
    states = simd.integers(launch[L_BLOCK_STATES])
    leader, live = simd.shifted(states, first * B_WORDS), 0
    for other in range(first, first + size):
        live += states[other * B_WORDS + B_LIVE]
    if leader[B_CLUSTER_ARRIVED] == 0 or leader[B_CLUSTER_ARRIVED] < live:
        return
    leader[B_CLUSTER_ARRIVED] = 0
    leader[B_CLUSTER_PHASE] += 1
    warps = launch[L_WARPS]
    for other in range(first, first + size):
        block = simd.shifted(states, other * B_WORDS)
        block[B_CLOCK] += 1
        block[B_CLUSTER_EPOCH] = block[B_CLOCK]
        for w in range(warps):
            known = known_of(launch, block, w)
            for v in range(warps + 1):
                known[v] = block[B_CLOCK]
            warp = simd.integers(simd.integers(launch[L_WARP_STATES])[other * warps + w])
            warp[W_EPOCH] = warp[W_RECENT] = block[B_CLOCK]
            if warp[W_BARRED] and warp[W_BARRIER] == WITH_CLUSTER:
                warp[W_BARRED] = 0


@compiled
def cluster_arrive(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """barrier.cluster.arrive."""
    launch, block = simd.integers(warp[W_LAUNCH]), simd.integers(warp[W_BLOCK])
    slot = block[B_SLOT] - block[B_RANK]
    leader = simd.shifted(simd.integers(launch[L_BLOCK_STATES]), slot * B_WORDS)
    leader[B_CLUSTER_ARRIVED] += ones(mask)
    warp[W_CLUSTER_PHASE] = leader[B_CLUSTER_PHASE]
    warp[W_WHERE] = packed & 0xFFFFFF


@compiled
def cluster_wait(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """barrier.cluster.wait: for the phase at which this warp has arrived."""
    launch, block = simd.integers(warp[W_LAUNCH]), simd.integers(warp[W_BLOCK])
    slot = block[B_SLOT] - block[B_RANK]
    leader = simd.shifted(simd.integers(launch[L_BLOCK_STATES]), slot * B_WORDS)
    if warp[W_CLUSTER_PHASE] == leader[B_CLUSTER_PHASE]:
        warp[W_BARRED] |= mask
        warp[W_BARRIER] = WITH_CLUSTER
        warp[W_WHERE] = packed & 0xFFFFFF


@inlined
def endless(launch, block, warp, site):
    """A warp does not end; where it waits for an mbarrier, its state goes with the finding."""
    address, buffer, state = warp[W_SIGNAL] - 1, 0, 0
    if address >= 0:
        buffer, state = -SHARED, simd.integers(block[B_SHARED] + address)[0]
    found(
        launch, ENDLESS, site, 0, buffer, max(address, 0), block[B_SERIAL], 32 * warp[W_INDEX], 0, 0,
        warp[W_LIVE], state,
    )  # fmt: skip


@inlined
def left_behind(launch, block):
    """A block has ended: bulk copies that still come into its shared memory, or still read there."""
    for i in range(block[B_BULK_COUNT]):
        entry = simd.shifted(simd.integers(block[B_BULK]), i * K_WORDS)
        comes = entry[K_SIGNAL]
        if comes or entry[K_FROM] == 0:
            found(
                launch, LEFT, entry[K_SITE], 0, -SHARED, entry[K_TO] if comes else entry[K_OF],
                entry[K_BLOCK], entry[K_THREAD], block[B_SERIAL], 0, BULK_WRITES if comes else 0, 16,
            )  # fmt: skip
    block[B_BULK_COUNT] = 0


@compiled
def run(launch: Any, most_turns: Any, unused: Any, scratch: Any) -> None:
    """Run blocks, their warps in turns, until all have ended (L_ENDED) or this many turns are over. Blocks
    that
    are resident at once take turns with each other. A seed of 0: in order; 1: in the opposite one; others: a
    rotation that changes."""
    warps, resident = launch[L_WARPS], launch[L_RESIDENT]
    if launch[L_TURNS] == 0:
        for slot in range(resident):
            begin(launch, slot)
    total, before = warps * resident, launch[L_TURNS]
    while launch[L_ENDED] == 0:
        if launch[L_TURNS] - before >= most_turns:
            return
        moved, left = False, False
        # Of the turns alone, and not of how many this call makes.
        random = (launch[L_SEED] + launch[L_TURNS]) * 1103515245 + 12345 >> 8 & 0x7FFFFF
        shift = 0 if launch[L_SEED] < 2 else random % total
        for i in range(total):
            at = (i + shift) % total
            if launch[L_SEED] & 1:
                at = total - 1 - at
            slot = at // warps
            block = simd.shifted(simd.integers(launch[L_BLOCK_STATES]), slot * B_WORDS)
            if block[B_DONE]:
                continue
            left = True
            state = simd.integers(launch[L_WARP_STATES])[at]
            warp = simd.integers(state)
            live = warp[W_LIVE]
            if live == 0 or live & ~warp[W_BARRED] == 0:
                continue
            simd.invoke(launch[L_KERNEL], warp, 0, 0, scratch)
            moved = True
            launch[L_TURNS] += 1
            block[B_LIVE] -= ones(live) - ones(warp[W_LIVE])
            if warp[W_STATUS] == YIELDED:
                warp[W_YIELDS] += 1
                if warp[W_YIELDS] > launch[L_LIMIT]:
                    endless(launch, block, warp, warp[W_SAID])
                    launch[L_ENDED] = 1
                    return
                # Lanes that wait for others of their warp must not have every turn.
                warp[W_FLIP] = 0 if warp[W_FLIP] or warp[W_NEXT] == NOBODY else FLIPPED
            else:
                warp[W_FLIP] = 0
                if launch[L_LIMIT] < 0 and warp[W_LIVE]:  # a loop in which there is a barrier
                    endless(launch, block, warp, warp[W_WHERE])
                    launch[L_ENDED] = 1
                    return
            if block[B_LIVE] == 0:
                block[B_DONE] = 1
                if block[B_BULK_COUNT]:
                    left_behind(launch, block)
                if launch[L_CLUSTER] > 1:
                    phase = simd.shifted(block, -block[B_RANK] * B_WORDS)[B_CLUSTER_PHASE] + 1
                    if block[B_VISITED_PHASE] == phase:
                        gone(launch, block)
                first = slot - slot % launch[L_CLUSTER]
                others = 0
                for other in range(first, first + launch[L_CLUSTER]):
                    others += simd.integers(launch[L_BLOCK_STATES])[other * B_WORDS + B_DONE] == 0
                if others == 0 and launch[L_NEXT_BLOCK] < launch[L_BLOCKS]:
                    for other in range(first, first + launch[L_CLUSTER]):
                        begin(launch, other)
                if launch[L_CLUSTER] > 1:
                    cluster_released(launch, slot)
                continue
            if launch[L_CLUSTER] > 1:
                cluster_released(launch, slot)
            for which in range(16):
                arrived, wanted = block[B_ARRIVED + which], block[B_WANTED + which]
                if arrived and arrived >= (wanted if wanted else block[B_LIVE]):
                    released(launch, slot, which)
        if not left:
            launch[L_ENDED] = 1
        elif not moved:
            stuck(launch)


@inlined
def stuck(launch):
    """Nobody can go on: say who waits where, and let them."""
    for slot in range(launch[L_RESIDENT]):
        block = simd.shifted(simd.integers(launch[L_BLOCK_STATES]), slot * B_WORDS)
        if block[B_DONE]:
            continue
        first, other, thread, other_thread, waiting = 0, 0, 0, 0, 0
        for w in range(launch[L_WARPS]):
            warp = simd.integers(simd.integers(launch[L_WARP_STATES])[slot * launch[L_WARPS] + w])
            if warp[W_BARRED] == 0:
                continue
            waiting += ones(warp[W_BARRED])
            if first == 0:
                first, thread = warp[W_WHERE], 32 * w
            elif other == 0 and warp[W_WHERE] != first:
                other, other_thread = warp[W_WHERE], 32 * w
        found(
            launch, STUCK, first, other, 0, 0, block[B_SERIAL], thread, block[B_SERIAL], other_thread,
            waiting, block[B_LIVE],
        )  # fmt: skip
        for which in range(16):
            if block[B_ARRIVED + which]:
                released(launch, slot, which)
        for w in range(launch[L_WARPS]):  # who waits for the cluster, or for what nobody counts
            simd.integers(simd.integers(launch[L_WARP_STATES])[slot * launch[L_WARPS] + w])[W_BARRED] = 0


# --- copies that go on by themselves ---


@inlined
def copied(warp, entry, mask):
    """Do a copy that was begun for these lanes: what it reads and writes is read and written now. Lanes that
    read less than they write copy four bytes after four."""
    packed, to, of = entry[Q_PACKED], simd.shifted(entry, Q_TO), simd.shifted(entry, Q_OF)
    inside, addresses = simd.shifted(entry, Q_INSIDE), simd.shifted(warp, W_A)
    low = simd.words(warp[W_FRAME] - 8 * W_WORDS + 8 * W_V)
    site, nbytes, whole = packed & 0xFFFFFF, packed >> 24 & 0xFF, 0
    words = nbytes >> 2
    for lane in range(32):
        whole |= (inside[lane] == nbytes and of[lane] & nbytes - 1 == 0) << lane
    whole &= mask
    for lane in range(32):
        addresses[lane] = of[lane]
    # Of what is outside the exact element is told, by the loop below.
    if whole and base_of(warp, simd.integers(warp[W_LAUNCH]), whole, nbytes, GLOBAL) == 0:
        whole = 0
    if whole:
        its = site | 4 << 24 | words << 32 | 15 << 48
        read_lanes(warp, whole, its, GLOBAL, 0)
        for lane in range(32):
            addresses[lane] = to[lane]
        write_lanes(warp, whole, its, SHARED, shaped(warp, whole, its, SHARED, True, 1))
    for lane in range(32):
        if (mask & ~whole) >> lane & 1 == 0:
            continue
        for i in range(words):
            value = 0
            if 4 * i < inside[lane]:
                addresses[lane] = of[lane] + 4 * i
                read_lanes(warp, 1 << lane, site | 4 << 24 | 1 << 32 | 15 << 48, GLOBAL, 0)
                value = low[lane] & 0xFFFFFFFF
                if inside[lane] - 4 * i < 4:
                    value &= (1 << 8 * (inside[lane] - 4 * i)) - 1
            addresses[lane] = to[lane] + 4 * i
            low[lane] = value
            write_lanes(warp, 1 << lane, site | 4 << 24 | 1 << 32, SHARED, 0)


@inlined
def taken(warp, launch, mask, packed):
    """Watch that copies begin, by all records of their places at once: where those were used before the
    block's last barrier. False: they were not, and each lane is looked at alone. Until a copy has arrived
    nobody has written its place."""
    block, site = simd.integers(warp[W_BLOCK]), packed & 0xFFFFFF
    granule = launch[L_SHARED_GRANULE]
    its = site | 4 << 24 | (packed >> 24 & 0xFF) >> 2 << 32 | 15 << 48
    kept = shaped(warp, mask, its, SHARED, True, 1)
    shape = simd.integers(kept)
    if shape[H_COUNT] == ONCE:
        recorded(warp, mask, its, granule, kept, True)
    first = block[B_SHADOW] + 32 * (simd.shifted(warp, W_A)[lowest(mask)] >> granule)
    end, own, count = known_of(launch, block, warp[W_INDEX])[launch[L_WARPS]], block[B_SERIAL], shape[H_COUNT]
    beyond, mine = 0, block[B_CLOCK] << 32 | warp[W_INDEX] << 5
    for i in range(count):
        at = simd.integers(first + (shape[H_RECORDS + i] >> 16))
        beyond |= end - 1 - (at[1] >> 32) | end - 1 - (at[3] >> 32)
    if beyond < 0 or count <= 0:
        return False
    for i in range(count):
        entry = shape[H_RECORDS + i]
        at = simd.integers(first + (entry >> 16))
        if at[0] >> 32 == own:
            at[0], at[1] = own << 32 | site, mine | entry & 0xFFFF
    return True


@compiled
def copy_later(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """cp.async: to addresses in W_A, from those in slot 0, of which so many bytes are read as slot 1 says and
    the rest is zero (64 bits each). What is copied arrives when it is waited for. That others may not touch
    its place is so from now on."""
    launch, block = simd.integers(warp[W_LAUNCH]), simd.integers(warp[W_BLOCK])
    addresses, values = simd.shifted(warp, W_A), simd.shifted(warp, W_V)
    site, nbytes = packed & 0xFFFFFF, packed >> 24 & 0xFF
    count, begun = warp[W_QUEUED], 0
    if mask == 0:
        return
    if count >= QUEUE:
        found(launch, TOO_MANY, site, 0, 0, 0, block[B_SERIAL], warp[W_INDEX] << 5, 0, 0, mask, nbytes)
        return
    entry = simd.shifted(simd.integers(warp[W_QUEUE]), count * Q_WORDS)
    own, clock, warps = block[B_SERIAL], block[B_CLOCK], launch[L_WARPS]
    known, end = known_of(launch, block, warp[W_INDEX]), block[B_FIRST_OF]
    odd = 0
    for lane in range(32):
        odd |= (values[lane] & nbytes - 1) & -(values[32 + lane] != 0) & -(mask >> lane & 1)
    watched = odd == 0 and launch[L_CLUSTER] == 1 and base_of(warp, launch, mask, nbytes, SHARED) != 0
    watched = watched and taken(warp, launch, mask, packed)
    if watched:
        begun = mask
    for lane in range(32):
        if mask >> lane & 1 == 0 or watched:
            continue
        to, of = addresses[lane], values[lane]
        thread = (warp[W_INDEX] << 5) + lane
        if of & (nbytes - 1) and values[32 + lane]:
            which = of >> WINDOW
            found(
                launch, MISALIGNED, site, 0, which, (of & OFFSETS) - MIDDLE, block[B_SERIAL], thread, 0, 0,
                mask, nbytes,
            )  # fmt: skip
        if shared_at(warp, launch, to, nbytes, site, lane, mask) < 0:
            continue
        for j in range(nbytes >> launch[L_SHARED_GRANULE]):
            place = (to >> launch[L_SHARED_GRANULE]) + j
            record = simd.integers(block[B_SHADOW] + 32 * place)
            before, how = record[0], record[1]
            if write_plainly(record, 0, end, warp, known, warps, own, clock, site, thread):
                written_now(
                    launch, block, record, site, thread, warp[W_EPOCH], 0, -SHARED,
                    place << launch[L_SHARED_GRANULE], 0,
                )  # fmt: skip
            if before >> 32 != block[B_SERIAL]:  # until it has arrived nobody has written it
                record[0], record[1] = before, how
        begun |= 1 << lane
    if begun:
        for lane in range(32):
            entry[Q_TO + lane], entry[Q_OF + lane] = addresses[lane], values[lane]
            entry[Q_INSIDE + lane] = min(nbytes, max(0, values[32 + lane]))
            entry[Q_GROUP + lane] = warp[W_GROUPS + lane]
        entry[Q_PACKED], entry[Q_LANES] = packed, begun
        warp[W_QUEUED] = count + 1
    some = 0  # that read anything: what is only filled up costs no sector
    for lane in range(32):
        addresses[lane] = values[lane]
        some |= (values[32 + lane] > 0) << lane
    if mask & some:
        tallied(warp, mask & some, site | nbytes << 24 | 1 << 32 | IN_PARTS << 40, GLOBAL, False)


@compiled
def close_group(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """cp.async.commit_group."""
    groups = simd.shifted(warp, W_GROUPS)
    for lane in range(32):
        groups[lane] += mask >> lane & 1


@compiled
def arrive(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """cp.async.wait_group: of the lanes all groups but the newest arrive, whose number is in the size; 255:
    all copies do."""
    newest, kept = packed >> 24 & 0xFF, 0
    queue = simd.integers(warp[W_QUEUE])
    for i in range(warp[W_QUEUED]):
        entry, due = simd.shifted(queue, i * Q_WORDS), 0
        for lane in range(32):
            due |= (newest == 255 or entry[Q_GROUP + lane] < warp[W_GROUPS + lane] - newest) << lane
        due &= mask & entry[Q_LANES]
        if due:
            copied(warp, entry, due)
        entry[Q_LANES] &= ~due
        if entry[Q_LANES]:
            stays = simd.shifted(queue, kept * Q_WORDS)
            for j in range(Q_WORDS):
                stays[j] = entry[j]
            kept += 1
    warp[W_QUEUED] = kept


# --- products of matrices ---

TF32, HALF, BFLOAT, S8, U8, E4M3, E5M2 = range(7)
SATURATED = 32


@inlined
def of_eighth(bits, kind):
    """float32 of 8 bits of floating point."""
    if kind == E5M2:
        return of_half(bits << 8)
    if bits & 0x7F == 0x7F:
        return simd.from_bits(0x7FC00000)
    value = np.float32(of_half((bits & 0x7F) << 7) * np.float32(256.0))
    return -value if bits & 0x80 else value


@inlined
def of_pair(word, which, kind):
    """float32 of one of the two numbers of 16 bits of a register."""
    bits = word >> 16 & 0xFFFF if which else word & 0xFFFF
    if kind == BFLOAT:
        return simd.from_bits(np.int32(bits << 16))
    return of_half(bits)


@inlined
def of_quarter(word, which, kind):
    """float32 of one of the four numbers of 8 bits of a register."""
    bits = word >> 8 * which & 0xFF
    if kind >= E4M3:
        return of_eighth(bits, kind)
    return np.float32(bits - 256 if kind == S8 and bits > 127 else bits)


@inlined
def factor(word, which, kind):
    """A number of a register of a factor, of several so many further on."""
    if kind == TF32:
        return simd.from_bits(np.int32(word & -8192))
    if kind >= S8:
        return of_quarter(word, which, kind)
    return of_pair(word, which, kind)


@inlined
def limited(value, saturated):
    """32 bits of a sum of whole numbers."""
    return max(-2147483648, min(2147483647, value)) if saturated else value


@compiled
def multiply_any(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """mma.sync of 16 rows and 8 columns, of numbers of floating point of any kind, with so many steps as the
    size says: rows in slots 0 to 3, columns in 4 and 5, sums in 6 to 9, results in 10 to 13 (32 bits each).
    Which lane has what: PTX ISA, "Matrix Fragments for mma.m16n8k32" and others: they differ in how many
    numbers a register has."""
    low, numbers = (
        simd.words(warp[W_FRAME] - 8 * W_WORDS + 8 * W_V),
        simd.floats(warp[W_FRAME] - 8 * W_WORDS + 8 * W_V),
    )
    depth, kind, other = packed >> 24 & 0xFF, packed >> 36 & 0xF, packed >> 40 & 0xF
    each = 1 if kind == TF32 else 2 if kind in (HALF, BFLOAT) else 4
    for lane in range(32):
        for e in range(4):
            row, column = lane // 4 + 8 * (e >> 1), 2 * (lane % 4) + (e & 1)
            total = np.float64(numbers[32 * (6 + e) + lane])
            for k in range(depth):
                part, t, i = k // (4 * each), k // each % 4, k % each
                a = factor(low[32 * ((row >> 3) + 2 * part) + (row & 7) * 4 + t], i, kind)
                b = factor(low[32 * (4 + part) + column * 4 + t], i, other)
                total += np.float64(a) * np.float64(b)
            numbers[32 * (10 + e) + lane] = np.float32(total)


@compiled
def multiply_double(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """mma.sync.m8n8k4 of float64: rows in slot 0, columns in 1, sums in 2 and 3, results there, too."""
    numbers = simd.doubles(warp[W_FRAME] - 8 * W_WORDS + 8 * W_V)
    for lane in range(32):
        for e in range(2):
            row, column = lane // 4, 2 * (lane % 4) + e
            total = numbers[32 * (2 + e) + lane]
            for k in range(4):
                total += numbers[row * 4 + k] * numbers[32 + column * 4 + k]
            numbers[32 * (2 + e) + lane] = total


@compiled
def load_matrices(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """ldmatrix: the addresses of rows in W_A; so many matrices as elements, results from slot 4 on (32 bits).
    Flags: 1, transposed."""
    rows = simd.words(warp[W_FRAME] - 8 * W_WORDS + 8 * W_TILE)
    low = simd.words(warp[W_FRAME] - 8 * W_WORDS + 8 * W_V)
    count, transposed = packed >> 32 & 0xF, packed >> 40 & 1
    whole, its = mask & ((1 << 8 * count) - 1), packed & 0xFFFFFF | 4 << 24 | 4 << 32 | 15 << 48
    if whole == 0 or settled(warp, whole, packed >> 36 & 0xF) != SHARED:
        return
    # A row is 16 bytes: the lane that has its address reads it, for all.
    shape = tallied(warp, whole, its, SHARED, False)
    read_lanes(warp, whole, its | IN_PARTS << 40, SHARED, shape)
    for row in range(8 * count):
        for i in range(4):
            rows[4 * row + i] = low[32 * i + row]
    for i in range(count):
        for lane in range(32):
            if transposed:
                place, half = 4 * (8 * i + 2 * (lane % 4)) + lane // 8, 16 * (lane // 4 & 1)
                bits = rows[place] >> half & 0xFFFF | (rows[place + 4] >> half & 0xFFFF) << 16
            else:
                bits = rows[4 * (8 * i + lane // 4) + lane % 4]
            low[32 * (4 + i) + lane] = bits


@compiled
def store_matrices(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """stmatrix: as load_matrices; values from slot 4 on."""
    addresses, rows = simd.shifted(warp, W_A), simd.shifted(warp, W_TILE)
    low = simd.words(warp[W_FRAME] - 8 * W_WORDS + 8 * W_V)
    site, count, transposed = packed & 0xFFFFFF, packed >> 32 & 0xF, packed >> 40 & 1
    if settled(warp, mask & ((1 << 8 * count) - 1), packed >> 36 & 0xF) != SHARED:
        return
    tallied(warp, mask & ((1 << 8 * count) - 1), site | 16 << 24 | 1 << 32, SHARED, True)
    for lane in range(32):
        rows[lane] = addresses[lane]
    for i in range(count):
        for half in range(2 if transposed else 1):
            for lane in range(32):
                if transposed:
                    addresses[lane] = rows[8 * i + 2 * (lane % 4) + half] + 2 * (lane // 4)
                else:
                    addresses[lane] = rows[8 * i + lane // 4] + 4 * (lane % 4)
                low[lane] = low[32 * (4 + i) + lane] >> 16 * half
            size = 2 if transposed else 4
            write_lanes(warp, mask, site | size << 24 | 1 << 32, SHARED, 0)


# --- products of matrices in shared memory, which a warpgroup has done in the background ---

REGISTERS, TRANSPOSED_A, TRANSPOSED_B, NEGATED_A, NEGATED_B, WHOLE_SUMS = 1, 2, 4, 8, 16, 64


@inlined
def chunk_of(descriptor, outer, inner, transposed):
    """Where 16 bytes of a matrix lie: of row (or column) `outer` the `inner`-th piece of its sum; transposed:
    of step `inner` of the sum the `outer`-th piece of eight. Layouts: PTX ISA, "Asynchronous Warpgroup Level
    Matrix Shared Memory Layout"."""
    start, leading = (descriptor & 0x3FFF) << 4, (descriptor >> 16 & 0x3FFF) << 4
    stride, mode = (descriptor >> 32 & 0x3FFF) << 4, descriptor >> 62 & 3
    width = 1 if mode == 0 else 16 >> mode  # pieces of 16 bytes that lie side by side in a swizzled row
    if transposed:
        if mode == 0:
            place = outer * stride + (inner & 7) * 16 + (inner >> 3) * leading
        else:
            place = (outer // width) * leading + (outer % width) * 16
            place += (inner & 7) * 16 * width + (inner >> 3) * stride
    elif mode == 0:
        place = (outer >> 3) * stride + (outer & 7) * 16 + inner * leading
    else:
        place = (outer >> 3) * stride + (outer & 7) * 16 * width + inner * 16
    address = start + place
    return address ^ (address >> 3 & 16 * (width - 1))


@inlined
def unlike(warp):
    """Nothing is known yet of the records that are watched next in the background."""
    warp[W_LIKE + 3] = -1


@inlined
def all_like(first, count, like, own, limit):
    """Whether so many records were written in this block before that clock, by whomever, and read by the same
    as the last one was; then that is as it is now of the last one, too."""
    differs = 0
    for j in range(count):
        record = simd.shifted(first, 4 * j)
        differs |= (record[0] >> 32 ^ own) | (limit - 1 - (record[1] >> 32)) >> 63
        differs |= (record[1] & (_BLOCK_WIDE | _GRID_WIDE)) | record[2] ^ like[2] | record[3] ^ like[3]
    if differs:
        return False
    for j in range(count):
        record = simd.shifted(first, 4 * j)
        record[2], record[3] = like[4], like[5]
    return True


@inlined
def background_read(warp, launch, block, address, site, since):
    """Watch 16 bytes that are read in the background. since: at the end, the block's clock at the beginning;
    0 at the beginning. The place, or −1. Neighbours are mostly written and read by the same: W_LIKE, which
    holds for one site, clock and `since` (`unlike`)."""
    at = shared_at(warp, launch, address, 16, site, 0, 0xFFFFFFFF)
    if at < 0:
        return at
    thread, granule = warp[W_INDEX] << 5, launch[L_SHARED_GRANULE]
    states = simd.integers(launch[L_WARP_STATES])
    slot = (simd.integers(warp[W_BLOCK])[B_SLOT]) * launch[L_WARPS]
    own, warps, known = block[B_SERIAL], launch[L_WARPS], known_of(launch, block, warp[W_INDEX])
    least, first = block[B_FIRST_OF], simd.integers(block[B_SHADOW] + 32 * (address >> granule))
    plain, like = True, simd.shifted(warp, W_LIKE)
    # Everybody knows of it, and it was shown to who reads in the background.
    limit = min(known[warps], since if since else warp[W_PROXY])
    alike = all_like(first, 16 >> granule, like, own, limit)
    for j in range(0 if alike else 16 >> granule):
        record = simd.shifted(first, 4 * j)
        writer_then, who_then, reader_then, how_then = record[0], record[1], record[2], record[3]
        if (writer_then ^ like[0] | who_then ^ like[1] | reader_then ^ like[2] | how_then ^ like[3]) == 0:
            record[2], record[3] = like[4], like[5]
            continue
        clock, its = record[1] >> 32, record[1] & 0xFFFFFFFF
        if since:
            plain = plain and clock < since
        elif its & _BACKGROUND == 0 and clock >= warp[W_PROXY]:
            writer = simd.integers(states[slot + ((its & _TID) >> 5)])
            plain = plain and clock < writer[W_PROXY]
        if not plain or record[0] >> 32 != own:
            plain = False
            break
        if read_plainly(record, 0, least, least, warp, known, warps, own, block[B_CLOCK], site, thread):
            plain = False
            break
        like[0], like[1], like[2], like[3] = writer_then, who_then, reader_then, how_then
        like[4], like[5] = record[2], record[3]
    if plain:
        for j in range(16 >> granule if block[B_READERS] else 0):
            remembered(block[B_READERS] + 8 * warps * ((address >> granule) + j), block, warp, 0)
        return at
    for j in range(16 >> granule):
        place = (address >> granule) + j
        record = simd.shifted(first, 4 * j)
        serial, clock, its = record[0] >> 32, record[1] >> 32, record[1] & 0xFFFFFFFF
        offset = place << granule
        if serial < block[B_FIRST_OF]:
            if since == 0:
                found(
                    launch, UNWRITTEN, site, 0, -SHARED, offset, block[B_SERIAL], thread, 0, 0, 0xFFFFFFFF, 4
                )
        elif since:
            if clock >= since:
                found(
                    launch, OVERTAKEN, site, record[0] & 0xFFFFFFFF, -SHARED, offset, block[B_SERIAL], thread,
                    serial, its & _TID, 0, 0,
                )  # fmt: skip
        elif its & _BACKGROUND == 0 and clock >= warp[W_PROXY]:
            writer = simd.integers(states[slot + ((its & _TID) >> 5)])
            if clock >= writer[W_PROXY]:
                found(
                    launch, UNSEEN, site, record[0] & 0xFFFFFFFF, -SHARED, offset, block[B_SERIAL], thread,
                    serial, its & _TID, 0, 0,
                )  # fmt: skip
        if since == 0 or clock < since:
            read_now(launch, block, record, site, thread, warp[W_EPOCH], 0, -SHARED, offset)
    return at


@inlined
def operand_read(warp, launch, block, descriptor, first, count, transposed, kind, site, since, into, negated):
    """Read a matrix of `count` rows or columns from `first` on: `into` has of each step of the sum `count`
    numbers side by side."""
    each = 4 if kind == TF32 else 2 if kind in (HALF, BFLOAT) else 1
    depth, pieces = 32 // each, 16 // each
    unlike(warp)
    outer = count // pieces if transposed else count
    for o in range(outer):
        for i in range(depth if transposed else 2):
            place = first // pieces + o if transposed else first + o
            address = chunk_of(descriptor, place, i, transposed)
            at = background_read(warp, launch, block, address, site, since)
            if since:
                continue
            to = simd.integers(warp[W_WIDE] + RAW + 16 * (i * outer + o if transposed else 2 * o + i))
            if at < 0:
                to[0], to[1] = 0, 0
            else:
                to[0], to[1] = simd.integers(at)[0], simd.integers(at)[1]
    if since == 0:
        widened(warp[W_WIDE] + RAW, into, count, depth, kind, transposed, -1.0 if negated else 1.0)


@inlined
def widened(raw, into, count, depth, kind, transposed, sign):
    """The numbers of a factor in float64, of each step of the sum side by side. They lie one row or column
    after another; transposed: one step after another."""
    words, halves = simd.words(raw), simd.halves(raw)
    for k in range(depth):
        its = simd.shifted(into, k * count)
        # How far the numbers of one step are apart is known to the compiler in each of these loops.
        if transposed and kind == HALF:
            for n in range(count):
                its[n] = sign * np.float64(of_half(halves[k * count + n] & 0xFFFF))
        elif transposed and kind == BFLOAT:
            for n in range(count):
                its[n] = sign * np.float64(simd.from_bits(np.int32(halves[k * count + n] << 16)))
        elif kind == HALF:
            for n in range(count):
                its[n] = sign * np.float64(of_half(halves[16 * n + k] & 0xFFFF))
        elif kind == BFLOAT:
            for n in range(count):
                its[n] = sign * np.float64(simd.from_bits(np.int32(halves[16 * n + k] << 16)))
        elif kind == TF32:
            for n in range(count):
                its[n] = sign * np.float64(simd.from_bits(np.int32(words[8 * n + k] & -8192)))
        else:
            for n in range(count):
                at = k * count + n if transposed else 32 * n + k
                its[n] = sign * np.float64(of_quarter(words[at >> 2], at & 3, kind))


@compiled
def multiply_wide(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """wgmma.mma_async: descriptors of rows and columns and whether the sums go on in slots 0 to 2 (64 bits);
    rows that are in registers in slots 6 to 9 (32 bits). Eight columns as many times as the size says; sums
    in the warp's wide place. Each warp has 16 of the 64 rows. What is read counts as read until it is waited
    for."""
    launch, block = simd.integers(warp[W_LAUNCH]), simd.integers(warp[W_BLOCK])
    values = simd.shifted(warp, W_V)
    low = simd.words(warp[W_FRAME] - 8 * W_WORDS + 8 * W_V)
    site, columns, kind, flags = (
        packed & 0xFFFFFF,
        (packed >> 24 & 0xFF) * 8,
        packed >> 36 & 0xF,
        packed >> 40,
    )
    sums = simd.floats(warp[W_WIDE])
    rows = simd.doubles(warp[W_WIDE] + 4 * 128 * 32)
    others, totals = simd.shifted(rows, 16 * 32), simd.shifted(rows, 16 * 32 + 32 * 256)
    each = 1 if kind == TF32 else 2 if kind in (HALF, BFLOAT) else 4
    depth, other, whole = 8 * each, packed >> 48 & 0xF, flags & WHOLE_SUMS
    counts = simd.words(warp[W_WIDE])
    if flags & REGISTERS:
        for lane in range(32):
            g, t = lane // 4, lane % 4
            for part in range(4):
                row, far = g + 8 * (part & 1), part >> 1
                for i in range(each):
                    k = each * t + i + 4 * each * far
                    value = np.float64(factor(low[32 * (6 + part) + lane], i, kind))
                    rows[k * 16 + row] = -value if flags & NEGATED_A else value
    else:
        operand_read(
            warp, launch, block, values[0], 16 * (warp[W_INDEX] & 3), 16, flags & TRANSPOSED_A, kind, site, 0,
            rows, flags & NEGATED_A,
        )  # fmt: skip
    operand_read(
        warp, launch, block, values[32], 0, columns, flags & TRANSPOSED_B, other, site, 0, others,
        flags & NEGATED_B,
    )  # fmt: skip
    more = values[64] != 0
    for row in range(16):
        # Of eight columns a row lies in four lanes of two registers.
        far = 64 * (row >> 3) + 4 * (row & 7)
        its = simd.shifted(sums, far)
        for group in range(columns >> 3):
            pair, total = simd.shifted(its, 128 * group), simd.shifted(totals, 8 * group)
            numbers = simd.shifted(counts, far + 128 * group)
            for lane in range(4):
                if more == 0:
                    total[2 * lane], total[2 * lane + 1] = 0.0, 0.0
                elif whole:
                    total[2 * lane] = np.float64(numbers[lane])
                    total[2 * lane + 1] = np.float64(numbers[32 + lane])
                else:
                    total[2 * lane] = np.float64(pair[lane])
                    total[2 * lane + 1] = np.float64(pair[32 + lane])
        for four in range(depth >> 2):
            by, column = simd.shifted(rows, 64 * four + row), simd.shifted(others, 4 * four * columns)
            second, third = simd.shifted(column, columns), simd.shifted(column, 2 * columns)
            fourth, b0, b1, b2, b3 = simd.shifted(column, 3 * columns), by[0], by[16], by[32], by[48]
            for n in range(columns):
                totals[n] = totals[n] + b0 * column[n] + b1 * second[n] + b2 * third[n] + b3 * fourth[n]
        for group in range(columns >> 3):
            pair, total = simd.shifted(its, 128 * group), simd.shifted(totals, 8 * group)
            numbers = simd.shifted(counts, far + 128 * group)
            for lane in range(4):
                if whole:
                    numbers[lane] = limited(np.int64(total[2 * lane]), flags & SATURATED)
                    numbers[32 + lane] = limited(np.int64(total[2 * lane + 1]), flags & SATURATED)
                else:
                    pair[lane] = np.float32(total[2 * lane])
                    pair[32 + lane] = np.float32(total[2 * lane + 1])
    block[B_CLOCK] += 1
    count = warp[W_PRODUCTS_BEGUN]
    if count >= PRODUCTS:
        found(launch, TOO_MANY, site, 0, 0, 0, block[B_SERIAL], warp[W_INDEX] << 5, 0, 0, mask, 0)
        return
    entry = simd.shifted(simd.integers(warp[W_PRODUCTS]), count * P_WORDS)
    entry[0], entry[1], entry[2], entry[3], entry[4] = (
        packed, values[0], values[32], block[B_CLOCK], warp[W_PRODUCT_GROUPS],
    )  # fmt: skip
    warp[W_PRODUCTS_BEGUN] = count + 1


@compiled
def products(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """wgmma.commit_group (space 0), wgmma.wait_group (1): all groups but the newest are done, whose number
    is in the size."""
    launch, block = simd.integers(warp[W_LAUNCH]), simd.integers(warp[W_BLOCK])
    if packed >> 36 & 0xF == 0:
        warp[W_PRODUCT_GROUPS] += 1
        return
    newest, kept = packed >> 24 & 0xFF, 0
    queue = simd.integers(warp[W_PRODUCTS])
    into = simd.doubles(warp[W_WIDE])
    for i in range(warp[W_PRODUCTS_BEGUN]):
        entry = simd.shifted(queue, i * P_WORDS)
        if entry[4] < warp[W_PRODUCT_GROUPS] - newest:
            its, since = entry[0], entry[3]
            site, kind, flags = its & 0xFFFFFF, its >> 36 & 0xF, its >> 40
            if flags & REGISTERS == 0:
                operand_read(
                    warp, launch, block, entry[1], 16 * (warp[W_INDEX] & 3), 16, flags & TRANSPOSED_A, kind,
                    site, since, into, 0,
                )  # fmt: skip
            operand_read(
                warp, launch, block, entry[2], 0, (its >> 24 & 0xFF) * 8, flags & TRANSPOSED_B,
                its >> 48 & 0xF, site, since, into, 0,
            )  # fmt: skip
        else:
            stays = simd.shifted(queue, kept * P_WORDS)
            for j in range(P_WORDS):
                stays[j] = entry[j]
            kept += 1
    warp[W_PRODUCTS_BEGUN] = kept
    block[B_CLOCK] += 1
    warp[W_DONE] = block[B_CLOCK]


@compiled
def shown(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """fence.proxy.async: what this warp has written, those see who read in the background."""
    block = simd.integers(warp[W_BLOCK])
    block[B_CLOCK] += 1
    warp[W_PROXY] = block[B_CLOCK]


# --- mbarriers, and bulk copies ---

INIT, ARRIVE_ON, EXPECT, ARRIVE_EXPECT, TEST, TEST_PARITY, INVALIDATE, COMPLETE, DROP = range(9)
TX_ZERO = 1 << 21


@inlined
def signal_row(launch, block, address):
    """Where what arrived at an mbarrier is known of: this row for its phase, the next for the one before. Of
    more than SIGNALS the last share one."""
    for i in range(SIGNALS):
        if block[B_SIGNALS + i] == address + 1 or block[B_SIGNALS + i] == 0 or i == SIGNALS - 1:
            block[B_SIGNALS + i] = address + 1
            return launch[L_WARPS] + 16 + 2 * i
    return launch[L_WARPS]


@inlined
def completed(launch, block, place, address):
    """Begin the next phase of an mbarrier where nothing is outstanding."""
    word = simd.integers(place)
    state = word[0]
    if state & 0xFFFFF == 0 and state >> 40 & 0x3FFFFF == TX_ZERO:
        expected = state >> 20 & 0xFFFFF
        word[0] = (state & (1 << 63)) ^ (1 << 63) | TX_ZERO << 40 | expected << 20 | expected
        row = signal_row(launch, block, address)
        joined(launch, block, row + 1, row)
        forgotten(launch, block, row)


@inlined
def starter(launch, block, thread):
    """The state of the block's warp that a thread of this number is of."""
    return simd.integers(
        simd.integers(launch[L_WARP_STATES])[block[B_SLOT] * launch[L_WARPS] + (thread >> 5)]
    )


@inlined
def reduced(at, of, nbytes, does):
    """Combine each element at one place of the host with that at another. does: 1, which operation << 1, the
    kind of number << 5, log2 of its bytes << 8."""
    do, kind, size = does >> 1 & 0xF, does >> 5 & 7, 1 << (does >> 8 & 3)
    for i in range(nbytes // size):
        old, b = fetched(at + size * i, size), fetched(of + size * i, size)
        if kind == F64:
            simd.doubles(at + size * i)[0] = simd.number(old) + simd.number(b)
        else:
            put(at + size * i, size, combined(old, b, 0, size, do, kind))


@inlined
def arrived_at(launch, block, inside, nbytes, site, thread):
    """So many bytes of the block's shared memory have come by a bulk copy."""
    granule = launch[L_SHARED_GRANULE]
    for j in range(nbytes >> granule):
        record = simd.integers(block[B_SHADOW] + 32 * ((inside >> granule) + j))
        record[0] = block[B_SERIAL] << 32 | site
        record[1] = block[B_CLOCK] << 32 | thread | _BACKGROUND


@inlined
def bulk_came(launch, block, number):
    """A bulk copy into the block's shared memory arrives; thread by thread as the one that began it."""
    entry = simd.shifted(simd.integers(block[B_BULK]), number * K_WORDS)
    site, to, of, nbytes = entry[K_SITE], entry[K_TO], entry[K_OF], entry[K_NBYTES]
    thread, does = entry[K_THREAD], entry[K_DOES]
    lane = thread & 31
    if does < 0:  # what was told already; its bytes count, so that nobody waits for them
        return
    if does & VALUE:
        reduced(block[B_SHARED] + to, block[B_BULK] + 8 * (number * K_WORDS + K_OF), nbytes, does)
        arrived_at(launch, block, to, nbytes, site, thread)
        return
    if entry[K_FROM]:
        source = simd.shifted(simd.integers(launch[L_BLOCK_STATES]), (entry[K_FROM] - 1) * B_WORDS)
        its = starter(launch, source, thread)
        unlike(its)
        for i in range(nbytes >> 4):
            at = background_read(its, launch, source, of + 16 * i, site, entry[K_SINCE])
            if at >= 0:
                target = simd.integers(block[B_SHARED] + to + 16 * i)
                if does:
                    reduced(block[B_SHARED] + to + 16 * i, at, 16, does)
                else:
                    target[0], target[1] = simd.integers(at)[0], simd.integers(at)[1]
        arrived_at(launch, block, to, nbytes, site, thread)
        return
    which = of >> WINDOW
    if 0 < which < launch[L_COUNT]:
        # Out of a buffer that nobody writes, and of its inside: all at once.
        buffer = simd.shifted(simd.integers(launch[L_BUFFERS]), which * D_WORDS)
        first = (of & OFFSETS) - MIDDLE
        if buffer[D_SHADOW] == 0 and first >= 0 and first + nbytes <= buffer[D_NBYTES]:
            held, there = simd.integers(buffer[D_DATA] + first), simd.integers(block[B_SHARED] + to)
            for i in range(nbytes >> 3):
                there[i] = held[i]
            arrived_at(launch, block, to, nbytes, site, thread)
            return
    mine = starter(launch, block, thread)
    addresses = simd.shifted(mine, W_A)
    low = simd.words(mine[W_FRAME] - 8 * W_WORDS + 8 * W_V)
    # The warp may be in the middle of something else.
    kept, k0, k1, k2, k3 = addresses[lane], low[lane], low[32 + lane], low[64 + lane], low[96 + lane]
    for i in range(nbytes >> 4):
        addresses[lane] = of + 16 * i
        read_lanes(mine, 1 << lane, site | 4 << 24 | 4 << 32 | 15 << 48, GLOBAL, 0)
        for j in range(4):
            simd.words(block[B_SHARED] + to + 16 * i)[j] = low[32 * j + lane]
    arrived_at(launch, block, to, nbytes, site, thread)
    addresses[lane], low[lane], low[32 + lane], low[64 + lane], low[96 + lane] = kept, k0, k1, k2, k3


@inlined
def bulk_went(launch, block, entry):
    """A bulk copy to global memory has read what it copies. It is written, but not yet seen by anybody: its
    records stay in flight until `bulk_done`."""
    to, does = entry[K_TO], entry[K_DOES]
    mine = starter(launch, block, entry[K_THREAD])
    buffer = simd.shifted(simd.integers(launch[L_BUFFERS]), (to >> WINDOW) * D_WORDS)
    first = buffer[D_DATA] + (to & OFFSETS) - MIDDLE
    unlike(mine)
    for i in range(entry[K_NBYTES] >> 4):
        at = background_read(mine, launch, block, entry[K_OF] + 16 * i, entry[K_SITE], entry[K_SINCE])
        if at >= 0 and does:
            reduced(first + 16 * i, at, 16, does)
        elif at >= 0:
            target = simd.integers(first + 16 * i)
            target[0], target[1] = simd.integers(at)[0], simd.integers(at)[1]
    entry[K_FROM] = 1


@inlined
def bulk_done(launch, block, entry):
    """What a bulk copy has written to global memory is there."""
    to, granule = entry[K_TO], launch[L_GRANULE]
    buffer = simd.shifted(simd.integers(launch[L_BUFFERS]), (to >> WINDOW) * D_WORDS)
    first, mine = (to & OFFSETS) - MIDDLE, block[B_SERIAL] << 32 | entry[K_SITE]
    for j in range(entry[K_NBYTES] >> granule if buffer[D_SHADOW] else 0):
        record = simd.integers(buffer[D_SHADOW] + 32 * ((first >> granule) + j))
        its = record[1] & 0xFFFFFFFF
        if record[0] == mine and record[1] >> 32 == IN_FLIGHT and its & _TID == entry[K_THREAD]:
            record[1] = block[B_CLOCK] << 32 | its


@inlined
def delivered(launch, block, row, place, address):
    """What is under way for an mbarrier of the block arrives."""
    left, under_way = 0, simd.integers(block[B_BULK])
    for i in range(block[B_BULK_COUNT]):
        entry = simd.shifted(under_way, i * K_WORDS)
        if entry[K_SIGNAL] == address + 1:
            bulk_came(launch, block, i)
            simd.integers(place)[0] -= entry[K_NBYTES] << 40
            block[B_CLOCK] += 1
            if entry[K_DOES] > 0 and entry[K_DOES] & VALUE:  # it may be of all lanes' work (a product's)
                known_of(launch, block, row)[entry[K_THREAD] >> 5] = block[B_CLOCK]
            else:
                lanes_of(launch, block, row)[entry[K_THREAD]] = block[B_CLOCK]
        else:
            stays = simd.shifted(under_way, left * K_WORDS)
            for j in range(K_WORDS):
                stays[j] = entry[j]
            left += 1
    if left < block[B_BULK_COUNT]:
        block[B_BULK_COUNT] = left
        completed(launch, block, place, address)


@inlined
def signalled_abroad(warp, launch, block, lane, packed, value, mask):
    """A lane arrives at an mbarrier of another block of the cluster, or announces bytes: what its warp has
    done is before what those do who have waited for it."""
    site, do, own = packed & 0xFFFFFF, packed >> 36 & 0xF, block[B_SERIAL]
    shared, shadow, readers = block[B_SHARED], block[B_SHADOW], block[B_READERS]
    slot, thread = lent(warp, launch, block, lane, site), (warp[W_INDEX] << 5) + lane
    address = simd.shifted(warp, W_A)[lane]
    place = shared_at(warp, launch, address, 8, site, lane, mask)
    record = simd.integers(block[B_SHADOW] + 32 * (address >> launch[L_SHARED_GRANULE]))
    serial = record[0] >> 32 if place >= 0 else 0
    block[B_SHARED], block[B_SHADOW], block[B_READERS] = shared, shadow, readers
    if place < 0:
        return
    target = simd.shifted(simd.integers(launch[L_BLOCK_STATES]), slot * B_WORDS)
    if target[B_DONE] == 0 and target[B_VISITOR] == own:
        target[B_VISITED_PHASE] = 0  # who owns it can wait for this
    if serial != target[B_SERIAL]:
        found(launch, UNWRITTEN, site, 0, -SHARED, address, own, thread, 0, 0, mask, 8)
    word = simd.integers(place)
    if do in (EXPECT, ARRIVE_EXPECT):
        word[0] += value << 40
    if do in (ARRIVE_ON, ARRIVE_EXPECT):
        fenced(warp, launch, block, 1 << lane)
        told_others(launch, block, warp, 1 << lane)
        count = value if do == ARRIVE_ON else 1
        if word[0] & 0xFFFFF < count:
            found(launch, OVERRUN, site, 0, -SHARED, address, own, thread, 0, 0, mask, 8)
            return
        word[0] -= count
        completed(launch, target, place, address)


@inlined
def arrives(launch, block, row, warp, lane, stamp):
    """A lane arrives at an mbarrier: it tells of what it has done, of what the lanes had done that it last
    met, of what the warp has waited for that was done in the background, and of what it had read before all
    its lanes exchanged registers."""
    number = warp[W_INDEX]
    known, lanes = known_of(launch, block, row), simd.shifted(lanes_of(launch, block, row), 32 * number)
    known[number] = max(known[number], warp[W_EPOCH])
    lanes[0] = max(lanes[0], warp[W_DONE])
    lanes[lane] = stamp
    has_read = simd.shifted(lanes_of(launch, block, row), 32 * launch[L_WARPS] + number)
    has_read[0] = max(has_read[0], warp[W_TOGETHER])
    met, epoch = warp[W_LANE_MASK + lane], warp[W_LANE_EPOCH + lane]
    for other in range(32):
        if met >> other & 1:
            lanes[other] = max(lanes[other], epoch)


@inlined
def all_arrived(launch, block, row, warp):
    """What each lane of a warp has told of, its row tells of the warp. Lanes that have ended do not count."""
    lanes, least = simd.shifted(lanes_of(launch, block, row), 32 * warp[W_INDEX]), block[B_CLOCK]
    for lane in range(32):
        if warp[W_LIVE] >> lane & 1:
            least = min(least, lanes[lane])
    known = known_of(launch, block, row)
    known[warp[W_INDEX]] = max(known[warp[W_INDEX]], least)


@compiled
def signal(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """mbarrier: addresses in W_A, a count, bytes, a state or a parity in slot 0 (64 bits); what it gives in
    slot 2. A state: bit 63 the phase, from 0 on arrivals that are outstanding, from 20 on those of a phase,
    from 40 on bytes that are."""
    launch, block = simd.integers(warp[W_LAUNCH]), simd.integers(warp[W_BLOCK])
    addresses, values = simd.shifted(warp, W_A), simd.shifted(warp, W_V)
    site, do = packed & 0xFFFFFF, packed >> 36 & 0xF
    block[B_CLOCK] += 1
    stamp, told, heard = block[B_CLOCK], -1, -1
    for lane in range(32):
        if mask >> lane & 1 == 0:
            continue
        address = addresses[lane] & OFFSETS if addresses[lane] >> WINDOW == SHARED_WINDOW else addresses[lane]
        thread = (warp[W_INDEX] << 5) + lane
        values[64 + lane] = 0
        if address >> 24 and launch[L_CLUSTER] > 1:
            addresses[lane] = address
            signalled_abroad(warp, launch, block, lane, packed, values[lane], mask)
            continue
        place = shared_at(warp, launch, address, 8, site, lane, mask)
        if place < 0:
            continue
        word = simd.integers(place)
        for j in range(8 >> launch[L_SHARED_GRANULE]):
            at = (address >> launch[L_SHARED_GRANULE]) + j
            record = simd.integers(block[B_SHADOW] + 32 * at)
            offset = at << launch[L_SHARED_GRANULE]
            if do == INIT:
                written_now(launch, block, record, site, thread, warp[W_EPOCH], 0, -SHARED, offset, 0)
            else:
                if record[0] >> 32 != block[B_SERIAL]:
                    found(launch, UNWRITTEN, site, 0, -SHARED, offset, block[B_SERIAL], thread, 0, 0, mask, 8)
                read_now(launch, block, record, site, thread, warp[W_EPOCH], 1, -SHARED, offset)
        row = signal_row(launch, block, address)
        if do == INIT:
            count = values[lane] & 0xFFFFF
            word[0] = TX_ZERO << 40 | count << 20 | count
            continue
        if do == INVALIDATE:
            word[0] = -1
            continue
        if do in (EXPECT, ARRIVE_EXPECT):
            word[0] += values[lane] << 40
        if do == COMPLETE:
            word[0] -= values[lane] << 40
            completed(launch, block, place, address)
        if do in (ARRIVE_ON, ARRIVE_EXPECT, DROP):
            values[64 + lane] = word[0]
            if row != told:
                joined(launch, block, row, warp[W_INDEX])
                told = row
            arrives(launch, block, row, warp, lane, stamp)
            warp[W_APART] = stamp
            count = 1 if do == ARRIVE_EXPECT else values[lane]
            if word[0] & 0xFFFFF < count:
                found(launch, OVERRUN, site, 0, -SHARED, address, block[B_SERIAL], thread, 0, 0, mask, 8)
                continue
            word[0] -= count | (count << 20 if do == DROP else 0)
            if mask >> lane == 1 or word[0] & 0xFFFFF == 0:
                all_arrived(launch, block, row, warp)
                told = -1
            completed(launch, block, place, address)
        if do in (TEST, TEST_PARITY):
            parity = values[lane] & 1 if do == TEST_PARITY else values[lane] >> 63 & 1
            if word[0] >> 63 & 1 == parity:  # what is under way for it arrives now at the latest
                delivered(launch, block, row, place, address)
            warp[W_SIGNAL] = address + 1
            if word[0] >> 63 & 1 != parity:
                values[64 + lane], warp[W_SIGNAL] = 1, 0
                if row == heard:
                    continue
                heard = row
                if launch[L_CLUSTER] > 1:  # what other blocks did before they arrived
                    warp[W_STRONG] = launch[L_TOLD] + 1
                mine, least = known_of(launch, block, warp[W_INDEX]), block[B_CLOCK]
                warp[W_RECENT] = least
                joined(launch, block, warp[W_INDEX], row + 1)
                warp[W_EPOCH] = max(warp[W_EPOCH], known_of(launch, block, row + 1)[warp[W_INDEX]])
                for v in range(launch[L_WARPS]):
                    least = min(least, mine[v])
                mine[launch[L_WARPS]] = max(mine[launch[L_WARPS]], least)


@inlined
def in_one_array(warp, launch, inside, nbytes, site, lane, how):
    """Whether so many bytes of shared memory are of one array; else the first that are not are told."""
    inner = True
    for j in range(nbytes >> 4):
        if inner and shared_at(warp, launch, inside + 16 * j, 16, site, lane, how) < 0:
            inner = False
    return inner


@inlined
def in_one_buffer(warp, launch, address, nbytes, site, lane, how):
    """The same of global memory."""
    inner = True
    for j in range(nbytes >> 4):
        if inner and global_at(warp, launch, address + 16 * j, 16, site, lane, how) < 0:
            inner = False
    return inner


@inlined
def bulk_begun(launch, block, target, site, thread):
    """The entry of a new bulk copy among those of a block; that of the last one, with a finding, where there
    are too many or the block has ended."""
    count = target[B_BULK_COUNT]
    if count >= BULK:
        # Of those of which only the reading was waited for nothing is told any more.
        left = 0
        for i in range(count):
            entry = simd.shifted(simd.integers(target[B_BULK]), i * K_WORDS)
            if entry[K_SIGNAL] == 0 and entry[K_FROM]:
                bulk_done(launch, target, entry)
            else:
                stays = simd.shifted(simd.integers(target[B_BULK]), left * K_WORDS)
                for j in range(K_WORDS):
                    stays[j] = entry[j]
                left += 1
        count = target[B_BULK_COUNT] = left
    if count >= BULK or target[B_DONE]:
        kind = GONE if target[B_DONE] else TOO_MANY
        found(launch, kind, site, 0, 0, 0, block[B_SERIAL], thread, 0, 0, 0, 16)
        return -1
    target[B_BULK_COUNT] = count + 1
    return count


@inlined
def comes_into(warp, launch, block, target, inside, nbytes, site, thread, does):
    """Bytes are under way into a block's shared memory. Whether others still read in another block's is not
    looked at."""
    granule, adds = launch[L_SHARED_GRANULE], does if does >> 1 & 0xF != EXCH else 0
    if target[B_SERIAL] != block[B_SERIAL]:
        target[B_CLOCK] += 1
    for j in range(nbytes >> granule):
        place = (inside >> granule) + j
        record = simd.integers(target[B_SHADOW] + 32 * place)
        if adds and record[0] >> 32 < target[B_FIRST_OF]:
            found(
                launch, UNWRITTEN, site, 0, -SHARED, place << granule, block[B_SERIAL], thread, 0, 0, 0, 4
            )  # fmt: skip
        if target[B_SERIAL] == block[B_SERIAL]:
            written_now(
                launch, block, record, site, thread, warp[W_EPOCH], adds, -SHARED, place << granule, 0
            )  # fmt: skip
        record[0] = target[B_SERIAL] << 32 | site
        record[1] = IN_FLIGHT << 32 | thread | _BACKGROUND | (_STRONG if adds else 0)


@compiled
def bulk(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """cp.async.bulk and cp.reduce.async.bulk. Space 0: to shared memory (W_A), from slot 0, so many bytes as
    slot 1 says, with the mbarrier in slot 2; 4: to that of those blocks of the cluster whose bit slot 3 has,
    each with its own; 5: from the block's shared memory to that of a block of the cluster; 1: to global
    memory (W_A) from shared (slot 0), as its group (64 bits each); 2: the group is closed; 3: all groups but
    the newest are done, whose number is in the size; only read, where the flags say so. From bit 40 on: how
    what comes is combined with what is there (`reduced`)."""
    launch, block = simd.integers(warp[W_LAUNCH]), simd.integers(warp[W_BLOCK])
    addresses, values = simd.shifted(warp, W_A), simd.shifted(warp, W_V)
    site, do, does = packed & 0xFFFFFF, packed >> 36 & 0xF, packed >> 40
    for lane in range(32):
        if mask >> lane & 1 == 0:
            continue
        thread = (warp[W_INDEX] << 5) + lane
        if do == 2:
            warp[W_BULK_GROUPS + lane] += 1
            continue
        if do == 3:
            newest, left, under_way = packed >> 24 & 0xFF, 0, simd.integers(block[B_BULK])
            block[B_CLOCK] += 1
            for i in range(block[B_BULK_COUNT]):
                entry, its = simd.shifted(under_way, i * K_WORDS), False
                if entry[K_SIGNAL] == 0 and entry[K_THREAD] == thread:
                    its = entry[K_GROUP] < warp[W_BULK_GROUPS + lane] - newest
                if its and entry[K_FROM] == 0:
                    bulk_went(launch, block, entry)
                if its and does == 0:
                    bulk_done(launch, block, entry)
                else:
                    stays = simd.shifted(under_way, left * K_WORDS)
                    for j in range(K_WORDS):
                        stays[j] = entry[j]
                    left += 1
            block[B_BULK_COUNT] = left
            block[B_CLOCK] += 1
            warp[W_DONE] = block[B_CLOCK]
            continue
        to, of, nbytes = addresses[lane], values[lane], values[32 + lane] & 0xFFFFFFFF
        outward, across, whole = do == 1, do == 5, True
        inside, blocks = (of if outward else to) & OFFSETS, 1 << block[B_RANK]
        if not outward and inside >> 24 and launch[L_CLUSTER] > 1:
            number = inside >> 24 & 0xFF
            blocks = 1 << number - 1 if 0 < number <= launch[L_CLUSTER] else 0
            inside &= 0xFFFFFF
        if do == 4:
            blocks = values[96 + lane] & (1 << launch[L_CLUSTER]) - 1
        begins = to if outward else of
        if nbytes & 15 or nbytes > launch[L_SHARED_NBYTES]:
            whole = False
            found(launch, UNEVEN, site, 0, 0, 0, block[B_SERIAL], thread, 0, 0, 0, nbytes)
        elif blocks == 0:
            whole = False
            found(launch, OUTSIDE, site, 0, 0, to, block[B_SERIAL], thread, 0, 0, BULK_WRITES, 16)
        elif not in_one_array(warp, launch, inside, nbytes, site, lane, 0 if outward else BULK_WRITES):
            whole = False
        elif across:
            of &= OFFSETS
            if launch[L_CLUSTER] > 1 and of >> 24 == block[B_RANK] + 1:
                of &= 0xFFFFFF
            whole = in_one_array(warp, launch, of, nbytes, site, lane, 0)
        elif not in_one_buffer(warp, launch, begins, nbytes, site, lane, BULK_WRITES if outward else 0):
            whole = False
        else:
            counters = simd.shifted(simd.integers(launch[L_MEMORY]), site * M_WORDS)
            counters[M_REQUESTS] += nbytes + 127 >> 7  # of 128 bytes each, as a warp's
            counters[M_UNITS] += nbytes + (begins & 31) + 31 >> 5
            counters[M_LEAST] += nbytes + 31 >> 5
            counters[M_LANES] += nbytes >> 4
            counters[M_SPACE] = GLOBAL
        block[B_CLOCK] += 1
        since = block[B_CLOCK]
        if outward and not whole:
            continue
        if whole and (outward or across):
            unlike(warp)
            for j in range(nbytes >> 4):
                background_read(warp, launch, block, (inside if outward else of) + 16 * j, site, 0)
        which, first, granule = to >> WINDOW, (to & OFFSETS) - MIDDLE, launch[L_GRANULE]
        if outward:
            buffer = simd.shifted(simd.integers(launch[L_BUFFERS]), which * D_WORDS)
            if buffer[D_FLAGS] & READ_ONLY:
                found(launch, WRITES_INPUT, site, 0, which, first, block[B_SERIAL], thread, 0, 0, mask, 16)
                continue
            for j in range(nbytes >> granule if buffer[D_SHADOW] else 0):
                place = (first >> granule) + j
                record = simd.integers(buffer[D_SHADOW] + 32 * place)
                if does and record[0] >> 32 == 0 and buffer[D_FLAGS] & INITIALISED == 0:
                    found(
                        launch, UNWRITTEN, site, 0, which, place << granule, block[B_SERIAL], thread, 0, 0,
                        mask, 4,
                    )  # fmt: skip
                written_now(
                    launch, block, record, site, thread, warp[W_EPOCH], does, which, place << granule, 0
                )
                record[1] = IN_FLIGHT << 32 | thread | _BACKGROUND | (_STRONG if does else 0)
        for rank in range(launch[L_CLUSTER]):
            if blocks >> rank & 1 == 0:
                continue
            target = simd.shifted(block, (rank - block[B_RANK]) * B_WORDS)
            count = bulk_begun(launch, block, target, site, thread)
            if count < 0:
                continue
            entry = simd.shifted(simd.integers(target[B_BULK]), count * K_WORDS)
            entry[K_SITE], entry[K_TO], entry[K_OF], entry[K_NBYTES] = site, inside, of, nbytes
            entry[K_SIGNAL] = (values[64 + lane] & 0xFFFFFF) + 1
            entry[K_THREAD], entry[K_SINCE], entry[K_GROUP], entry[K_DOES] = (
                thread, since, 0, does if whole else -1,
            )  # fmt: skip
            entry[K_BLOCK] = block[B_SERIAL]
            entry[K_FROM] = block[B_SLOT] + 1 if across else 0
            if outward:
                entry[K_TO], entry[K_OF], entry[K_SIGNAL] = to, inside, 0
                entry[K_GROUP] = warp[W_BULK_GROUPS + lane]
                continue
            if whole:
                comes_into(warp, launch, block, target, inside, nbytes, site, thread, does)


@compiled
def store_later(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """st.async and red.async: to W_A, in shared memory of a block of the cluster, what slots 0 and 1 have; in
    slot 2 the mbarrier of that block (64 bits each). From bit 40 on: `reduced`."""
    launch, block = simd.integers(warp[W_LAUNCH]), simd.integers(warp[W_BLOCK])
    addresses, values = simd.shifted(warp, W_A), simd.shifted(warp, W_V)
    site, size, count, does = packed & 0xFFFFFF, packed >> 24 & 0xFF, packed >> 32 & 0xF, packed >> 40
    tallied(warp, mask, packed & (1 << 40) - 1 | USED_ALL << 48, CLUSTER, True)
    slots, nbytes = warp[W_FRAME] - 8 * W_WORDS + 8 * W_V, size * count
    for lane in range(32):
        if mask >> lane & 1 == 0:
            continue
        thread, inside, there = (warp[W_INDEX] << 5) + lane, addresses[lane] & 0xFFFFFF, values[64 + lane]
        number, of_signal = addresses[lane] >> 24 & 0xFF, there >> 24 & 0xFF
        rank, address = number - 1 if number else block[B_RANK], there & 0xFFFFFF
        if rank >= launch[L_CLUSTER]:
            found(launch, OUTSIDE, site, 0, 0, addresses[lane], block[B_SERIAL], thread, 0, 0, mask, nbytes)
            continue
        if shared_at(warp, launch, address, 8, site, lane, mask) < 0:
            continue
        whole = shared_at(warp, launch, inside, nbytes, site, lane, mask) >= 0
        target = simd.shifted(block, (rank - block[B_RANK]) * B_WORDS)
        if target[B_BULK_COUNT] == BULK:  # some arrive at once, as they may
            for i in range(BULK):
                entry = simd.shifted(simd.integers(target[B_BULK]), i * K_WORDS)
                its = entry[K_SIGNAL] - 1
                if entry[K_DOES] > 0 and entry[K_DOES] & VALUE and its < 1 << 24:
                    row = signal_row(launch, target, its)
                    delivered(launch, target, row, target[B_SHARED] + its, its)
                    break
        block[B_CLOCK] += 1
        which = bulk_begun(launch, block, target, site, thread)
        if which < 0:
            continue
        entry = simd.shifted(simd.integers(target[B_BULK]), which * K_WORDS)
        entry[K_SITE], entry[K_TO], entry[K_NBYTES], entry[K_THREAD] = site, inside, nbytes, thread
        # An mbarrier of another block than the data's counts nothing.
        wrong = (of_signal - 1 if of_signal else block[B_RANK]) != rank
        entry[K_SIGNAL] = address + 1 + (1 << 24 if wrong else 0)
        entry[K_SINCE], entry[K_DOES] = block[B_CLOCK], does | VALUE if whole else -1
        entry[K_FROM], entry[K_BLOCK] = 0, block[B_SERIAL]
        value = target[B_BULK] + 8 * (which * K_WORDS + K_OF)
        for n in range(count):
            put(value + size * n, size, fetched(slots + max(size, 4) * (32 * n + lane), size))
        if whole:
            comes_into(warp, launch, block, target, inside, nbytes, site, thread, does)


# --- what a kernel says, and gives up at ---


@compiled
def printed(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """vprintf: addresses of the text in slot 0, of the values in slot 1, which lie in local memory."""
    launch, block, values = (
        simd.integers(warp[W_LAUNCH]),
        simd.integers(warp[W_BLOCK]),
        simd.shifted(warp, W_V),
    )
    for lane in range(32):
        if mask >> lane & 1 == 0:
            continue
        count = launch[L_SAID_COUNT]
        launch[L_SAID_COUNT] = count + 1
        if count >= MOST_SAID:
            continue
        record = simd.shifted(simd.integers(launch[L_SAID]), count * S_WORDS)
        record[S_SITE], record[S_BLOCK], record[S_THREAD] = (
            packed & 0xFFFFFF, block[B_SERIAL], (warp[W_INDEX] << 5) + lane,
        )  # fmt: skip
        record[S_FORMAT] = values[lane]
        where = values[32 + lane]
        first = where & OFFSETS
        nbytes = 0
        if where >> WINDOW == LOCAL_WINDOW:
            nbytes = max(0, min(SAID_NBYTES, launch[L_LOCAL_NBYTES] - first))
        record[S_NBYTES] = nbytes
        of = simd.octets(warp[W_LOCAL] + lane * launch[L_LOCAL_NBYTES] + first)
        to = simd.octets(launch[L_SAID] + 8 * (count * S_WORDS + S_VALUES))
        for i in range(nbytes):
            to[i] = of[i]


@compiled
def failed(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """__assertfail: addresses of what should have been in slot 0, of the file in slot 1; the launch ends."""
    launch, block, values = (
        simd.integers(warp[W_LAUNCH]),
        simd.integers(warp[W_BLOCK]),
        simd.shifted(warp, W_V),
    )
    for lane in range(32):
        if mask >> lane & 1:
            found(
                launch, FAILED, packed & 0xFFFFFF, 0, 0, values[lane], block[B_SERIAL],
                (warp[W_INDEX] << 5) + lane, 0, 0, mask, 0,
            )  # fmt: skip
            launch[L_ENDED] = 1
            warp[W_LIVE] = warp[W_LIVE] & ~(1 << lane)


@compiled
def trapped(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """trap: the launch ends."""
    launch, block = simd.integers(warp[W_LAUNCH]), simd.integers(warp[W_BLOCK])
    if mask == 0 or launch[L_ENDED]:
        return
    lane = 0
    while mask >> lane & 1 == 0:
        lane += 1
    found(
        launch, TRAPPED, packed & 0xFFFFFF, 0, 0, 0, block[B_SERIAL], (warp[W_INDEX] << 5) + lane, 0, 0, mask,
        0,
    )  # fmt: skip
    launch[L_ENDED] = 1


# --- memory that a kernel asks for ---


@compiled
def allocated(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """malloc: how many bytes in slot 0 (64 bits), where they are in slot 2; 0 where there are not so many."""
    launch, values = simd.integers(warp[W_LAUNCH]), simd.shifted(warp, W_V)
    heap = simd.integers(launch[L_HEAP])
    for lane in range(32):
        if mask >> lane & 1 == 0:
            continue
        nbytes, count, used = values[lane], launch[L_COUNT], heap[A_USED]
        values[64 + lane] = 0
        if nbytes < 1 or nbytes > heap[A_NBYTES] - used or count - heap[A_FIRST] >= heap[A_MOST]:
            continue
        buffer = simd.shifted(simd.integers(launch[L_BUFFERS]), count * D_WORDS)
        buffer[D_DATA], buffer[D_NBYTES], buffer[D_FLAGS] = heap[A_DATA] + used, nbytes, 0
        buffer[D_SHADOW] = heap[A_SHADOW] + 32 * (used >> launch[L_GRANULE])
        heap[A_USED] = used + (nbytes + 15 & ~15)
        launch[L_COUNT] = count + 1
        values[64 + lane] = (count << WINDOW) + MIDDLE


@compiled
def freed(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """free: of the address in slot 0 (64 bits). Nobody gets this memory again."""
    launch, values = simd.integers(warp[W_LAUNCH]), simd.shifted(warp, W_V)
    block, heap = simd.integers(warp[W_BLOCK]), simd.integers(launch[L_HEAP])
    for lane in range(32):
        address = values[lane]
        if mask >> lane & 1 == 0 or address == 0:
            continue
        which, known = address >> WINDOW, False
        if heap[A_FIRST] <= which < launch[L_COUNT] and (address & OFFSETS) == MIDDLE:
            buffer = simd.shifted(simd.integers(launch[L_BUFFERS]), which * D_WORDS)
            known = buffer[D_NBYTES] > 0
            buffer[D_NBYTES] = 0
        if not known:
            found(
                launch, NOT_GIVEN, packed & 0xFFFFFF, 0, 0, address, block[B_SERIAL],
                (warp[W_INDEX] << 5) + lane, 0, 0, mask, 0,
            )  # fmt: skip


# --- functions ---


@compiled
def pushed(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """Keep what is in slot 0 (64 bits) on the lanes' stacks. A lane whose stack is full ends."""
    launch, block, values = (
        simd.integers(warp[W_LAUNCH]),
        simd.integers(warp[W_BLOCK]),
        simd.shifted(warp, W_V),
    )
    depth, stack = simd.words(warp[W_FRAME] - 8 * W_WORDS + 8 * W_DEPTH), simd.integers(warp[W_STACK])
    for lane in range(32):
        if mask >> lane & 1 == 0:
            continue
        if depth[lane] >= STACK or simd.words(warp[W_FRAME] - 8 * W_WORDS + 8 * W_LEVEL)[lane] >= LEVELS:
            if warp[W_LIVE] >> lane & 1:
                found(
                    launch, TOO_DEEP, packed & 0xFFFFFF, 0, 0, 0, block[B_SERIAL],
                    (warp[W_INDEX] << 5) + lane, 0, 0, mask, 0,
                )  # fmt: skip
                warp[W_LIVE] &= ~(1 << lane)
            continue
        stack[32 * depth[lane] + lane] = values[lane]
        depth[lane] += 1


@compiled
def popped(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """What was kept last, to slot 0."""
    values = simd.shifted(warp, W_V)
    depth, stack = simd.words(warp[W_FRAME] - 8 * W_WORDS + 8 * W_DEPTH), simd.integers(warp[W_STACK])
    for lane in range(32):
        if mask >> lane & 1 and depth[lane] > 0:
            depth[lane] -= 1
            values[lane] = stack[32 * depth[lane] + lane]


@compiled
def astray(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """Lanes whose function is none (slot 0 is below zero; its address in slot 1) end."""
    launch, block, values = (
        simd.integers(warp[W_LAUNCH]),
        simd.integers(warp[W_BLOCK]),
        simd.shifted(warp, W_V),
    )
    for lane in range(32):
        if mask >> lane & 1 and values[lane] < 0:
            found(
                launch, ASTRAY, packed & 0xFFFFFF, 0, 0, values[32 + lane], block[B_SERIAL],
                (warp[W_INDEX] << 5) + lane, 0, 0, mask, 0,
            )  # fmt: skip
            warp[W_LIVE] &= ~(1 << lane)


# --- textures ---


@compiled
def texture(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    """tex.1d of float32: addresses of its beginning in W_A, which element in slot 0; results in slot 1 (32
    bits each). Outside it is 0."""
    launch = simd.integers(warp[W_LAUNCH])
    addresses = simd.shifted(warp, W_A)
    low = simd.words(warp[W_FRAME] - 8 * W_WORDS + 8 * W_V)
    inside = 0
    for lane in range(32):
        index, which = low[lane], addresses[lane] >> WINDOW
        low[32 + lane] = 0
        if mask >> lane & 1 and 0 < which < launch[L_COUNT]:
            buffer = simd.shifted(simd.integers(launch[L_BUFFERS]), which * D_WORDS)
            if 0 <= 4 * index < buffer[D_NBYTES]:
                inside |= 1 << lane
                low[32 + lane] = simd.words(buffer[D_DATA] + 4 * index)[0]
        addresses[lane] += 4 * index
    tallied(warp, inside, packed & 0xFFFFFF | 4 << 24 | 1 << 32, GLOBAL, False)
