"""Which instructions of the PTX ISA 9.0 run without a GPU: one statement of each kind is translated.

    python -m tests.kernels.simulated.forms

writes what is missing into docs/without-a-gpu.md, between two marks. A test says whether it is still so.
"""

from __future__ import annotations

import sys
from pathlib import Path

from kernels.ptx.program import Program
from kernels.ptx.reader import PtxError

PAGE = Path(__file__).parents[3] / "docs" / "without-a-gpu.md"
BEGIN, END = "<!-- instructions that are missing -->", "<!-- end of them -->"

# What it is for a reader, and statements, all of which must be known.
FORMS = {
    "tensor maps (`cp.async.bulk.tensor`)": """
        cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
        [%r1], [%d1, {%r2, %r3}], [%r4];""",
    "bulk copies to several blocks of a cluster (`.multicast::cluster`)": """
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
        [%r1], [%d1], 64, [%r2], %h1;""",
    "bulk copies from block to block (`.shared::cluster.shared::cta`)": """
        cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes
        [%r1], [%r2], 64, [%r3];""",
    "bulk copies that add (`cp.reduce.async.bulk`)": """
        cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%d1], [%r1], 64;
        cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32
        [%r1], [%r2], 64, [%r3]; cp.async.bulk.prefetch.L2.global [%d1], 64;""",
    "bulk copies with a mask of bytes (`.cp_mask`)": """
        cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%d1], [%r1], 64, %h1;""",
    "stores and atomics that another block's mbarrier counts (`st.async`, `red.async`)": """
        st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r2, [%r3];
        st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%r1], {%f1, %f2, %f3, %f4}, [%r3];
        red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.inc.u32 [%r1], %r2, [%r3];""",
    "mbarriers of another block of the cluster": """
        mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1];""",
    "arrivals that leave an mbarrier (`arrive_drop`), and bytes that are counted by hand (`complete_tx`)": """
        mbarrier.arrive_drop.shared::cta.b64 %d1, [%r1]; mbarrier.pending_count.b64 %r2, %d1;
        mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], 16;""",
    "an mbarrier that counts `cp.async` (`cp.async.mbarrier.arrive`)": """
        cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r1];""",
    "tensor cores of Blackwell (`tcgen05`)": "tcgen05.wait::ld.sync.aligned;",
    "sparse matrices (`mma.sp`, `wgmma.mma_async.sp`)": """
        mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r3, %r4},
        {%f1, %f2, %f3, %f4}, %r5, 0x0;""",
    "products of single bits (`mma` of `b1`)": """
        mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc {%r1, %r2}, {%r3}, {%r4},
        {%r1, %r2};""",
    "products of Volta (`mma.m8n8k4` of halves)": """
        mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, {%r1, %r2},
        {%r3, %r4}, {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8};""",
    "products of float64 by larger shapes than 8×8×4": """
        mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%e1, %e2, %e3, %e4}, {%e1, %e2}, {%e3},
        {%e1, %e2, %e3, %e4};""",
    "`wmma` of other shapes than 16×16, and of whole numbers": """
        wmma.load.a.sync.aligned.row.m32n8k16.f16 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%d1], %r9;""",
    "products of whole numbers, of 8 bits of floating point, of float64 (8×8×4), with sums of halves": """
        mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r1, %r2, %r3, %r4}, {%r1, %r2, %r3, %r4},
        {%r5, %r6}, {%r1, %r2, %r3, %r4};
        mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4},
        {%r5, %r6}, {%f1, %f2, %f3, %f4};
        mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%e1, %e2}, {%e3}, {%e4}, {%e1, %e2};
        mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r1, %r2}, {%r1, %r2, %r3, %r4},
        {%r5, %r6}, {%r1, %r2};""",
    "textures but one-dimensional ones of float32": """
        tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%d1, {%f5, %f6}];""",
    "surfaces (`suld`, `sust`)": "suld.b.1d.b32.trap %r1, [%d1, {%r2}];",
    "atomics of 128 bits": "{ .reg .b128 %w; atom.global.cas.b128 %w, [%d1], %w, %w; }",
    "atomics of all other types and places": """
        atom.global.add.u32 %r1, [%d1], %r2; atom.shared.cas.b64 %d1, [%r1], %d2, %d3;
        atom.global.add.noftz.f16x2 %r1, [%d1], %r2; red.global.add.noftz.bf16 [%d1], %h1;
        red.relaxed.gpu.global.add.v4.f32 [%d1], {%f1, %f2, %f3, %f4}; atom.global.add.f64 %e1, [%d1], %e2;
        atom.global.exch.b64 %d1, [%d2], %d3; atom.global.inc.u32 %r1, [%d1], %r2;
        atom.acq_rel.cluster.shared::cluster.add.u32 %r1, [%r2], %r3;""",
    "arithmetic of several bytes at once (`vadd4`, …)": """
        vadd4.u32.u32.u32.sat %r1, %r2, %r3, %r4; vabsdiff2.s32.s32.s32.add %r1, %r2, %r3, %r4;""",
    "arithmetic of parts of a word (`vadd`, `vmad`, …)": "vadd.s32.u32.u32.sat %r1, %r2.b0, %r3.h1;",
    "functions that are not inlined, pointers to functions, `switch` by a table": """
        { .param .b32 a; .param .b32 b; st.param.b32 [a+0], %r1; call.uni (b), twice, (a);
        ld.param.b32 %r2, [b+0]; }""",
    "memory that a kernel asks for (`malloc`, `new`)": """
        { .param .b64 a; .param .b64 b; st.param.b64 [a+0], %d1; call.uni (b), malloc, (a);
        ld.param.b64 %d2, [b+0]; st.param.b64 [a+0], %d2; call.uni free, (a); }""",
    "kernels that start kernels": """
        { .param .b64 a; .param .b32 b; st.param.b64 [a+0], %d1; call.uni (b), cudaLaunchDeviceV2, (a);
        ld.param.b32 %r2, [b+0]; }""",
    "the stack's own instructions (`alloca`)": "alloca.u64 %d1, %d2, 8;",
    "votes, matches, sums of a warp, `shfl`": """
        vote.sync.ballot.b32 %r1, %p1, -1; match.any.sync.b32 %r1, %r2, -1; redux.sync.add.s32 %r1, %r2, -1;
        shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1; activemask.b32 %r1; elect.sync %r1|%p1, -1;""",
    "`redux` of floating point": "redux.sync.min.f32 %f1, %f2, -1;",
    "fences of a tensor map": "fence.proxy.tensormap::generic.acquire.gpu [%d1], 128;",
    "conversions to 8 bits": "cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2; cvt.rn.f16x2.e5m2x2 %r1, %h1;",
    "conversions to 4 and 6 bits": "{ .reg .b8 %o; cvt.rn.satfinite.e2m1x2.f32 %o, %f1, %f2; }",
}  # fmt: skip

_TEXT = """
.version 9.0
.target sm_100a
.address_size 64
.func (.param .b32 back) twice(.param .b32 n)
{{
    .reg .b32 %r<3>; ld.param.u32 %r1, [n]; add.s32 %r2, %r1, %r1; st.param.b32 [back+0], %r2; ret;
}}
.visible .entry mine(.param .u64 x)
{{
    .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<12>; .reg .b64 %d<8>; .reg .f32 %f<12>; .reg .f64 %e<6>;
    {statements}
    ret;
}}
"""


def missing() -> list[str]:
    """The kinds of which some statement cannot be run."""
    found = []
    for name, statements in FORMS.items():
        try:
            Program(_TEXT.format(statements=statements)).translated("mine")
        except PtxError:
            found.append(name)
    return found


def page() -> str:
    """The page with the list as it is now."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    lines = "".join(f"  - {name}\n" for name in missing())
    return f"{before}{BEGIN}\n{lines}{END}{after}"


def main() -> int:
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
