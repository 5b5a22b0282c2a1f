"""Damaged PTX: it is read and translated, or refused with its line, and nothing else happens.

python -m tests.kernels.simulated.fuzz --count 100000 --seed 1
"""

from __future__ import annotations

import argparse
import random
import sys
import time

from kernels.ptx.program import Program
from kernels.ptx.reader import PtxError

TEXT = """
.version 8.0
.target sm_90a
.address_size 64
.global .align 4 .u32 table[4] = {1, 2, 3, -4};
.extern .shared .align 16 .b8 dynamic[];
.extern .func (.param .b32 back) vprintf (.param .b64 text, .param .b64 values);
.visible .entry mine(.param .u64 x, .param .u64 y, .param .align 4 .b8 p[12])
.maxntid 128, 1, 1
{
    .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<12>; .reg .b64 %d<8>; .reg .f32 %f<12>; .reg .f64 %e<3>;
    .shared .align 16 .b8 tile[512];
    .local .align 16 .b8 own[64];
    .loc 1 3 5
    ld.param.u64 %d1, [x];
    ld.param.u64 %d2, [y];
    ld.param.v2.u32 {%r1, %r2}, [p+4];
    cvta.to.global.u64 %d3, %d1;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r3, 3, %r1;
    mul.wide.s32 %d4, %r3, 16;
    add.s64 %d5, %d3, %d4;
    ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%d5+16];
    mov.u32 %r5, tile;
    shl.b32 %r6, %r3, 2;
    add.s32 %r5, %r5, %r6;
$again:
    fma.rn.ftz.f32 %f5, %f1, %f2, 0f3F800000;
    fma.rz.f32 %f6, %f3, %f4, %f5;
    cvt.rn.f16.f32 %h1, %f6;
    cvt.rzi.s32.f32 %r7, %f5;
    st.shared.f32 [%r5], %f6;
    bar.sync 0;
    shfl.sync.bfly.b32 %r8|%p1, %r7, 1, 31, -1;
    setp.lt.and.s32 %p2|%p3, %r8, %r2, %p1;
    @%p2 bra $again;
    selp.f32 %f7, %f5, %f6, %p3;
    { .reg .b32 %r9; mov.b32 %r9, {%h1, %h1}; prmt.b32 %r9, %r9, %r7, 0x5410; }
    atom.global.add.u32 %r10, [%d2], 1;
    vote.sync.ballot.b32 %r11, %p2, -1;
    ex2.approx.ftz.f32 %f8, %f7;
    cp.async.cg.shared.global [%r5], [%d5], 16, 8;
    cp.async.wait_all;
    @!%p1 st.global.f32 [%d5], %f8;
    { .param .b64 p0; .param .b64 p1; .param .b32 back; st.param.b64 [p0+0], %d1; st.param.b64 [p1+0], %d2;
    call.uni (back), vprintf, (p0, p1); ld.param.b32 %r9, [back+0]; }
    mbarrier.init.shared::cta.b64 [%r5], 32;
    { again: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r5], 0; @!%p1 bra again; }
    fence.proxy.async.shared::cta;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %d1, %d2, %p1, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%d1], 64, [%r6];
    cp.async.bulk.wait_group.read 0;
    add.cc.u32 %r7, %r8, %r3;
    addc.u32 %r7, %r8, %r3;
    lop3.and.b32 %r7|%p1, %r8, %r3, %r2, 0x80, %p2;
    elect.sync %r7|%p1, -1;
    @%p3 trap;
    ret;
}
"""


def damaged(random_: random.Random) -> str:
    """The text with a few of its words changed, doubled, left out or exchanged."""
    words = TEXT.split(" ")
    for _ in range(random_.randint(1, 4)):
        at, other = random_.randrange(len(words)), random_.randrange(len(words))
        how = random_.randrange(6)
        if how == 0:
            del words[at]
        elif how == 1:
            words[at] = words[other]
        elif how == 2:
            words[at], words[other] = words[other], words[at]
        elif how == 3:
            words[at] = words[at][: random_.randint(0, len(words[at]))]
        elif how == 4:
            words[at] += random_.choice(["0", ".f16", "-", "]", "{", "99999999999", "\x00", ".v4", "%", '"'])
        else:
            place = random_.randint(0, len(words[at]))
            words[at] = words[at][:place] + chr(random_.randint(1, 255)) + words[at][place:]
        if not words:
            break
    return " ".join(words)


def read(text: str) -> str:
    """What came of a text: "translated", or "refused"."""
    try:
        program = Program(text)
        for name in program.module.kernels:
            program.translated(name)
    except PtxError:
        return "refused"
    return "translated"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", 1)[0])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    started, outcomes = time.monotonic(), {"refused": 0, "translated": 0}
    for number in range(asked.count):
        text = damaged(random.Random(f"{asked.seed} {number}"))
        try:
            outcomes[read(text)] += 1
        except Exception:
            print(f"seed {asked.seed}, number {number}:\n{text}", file=sys.stderr)
            raise
    print(f"{outcomes}, {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
