"""Damaged PTX, of shipped kernels and of one text that has something of all: it is read and translated, or
refused with its line. Some of what was accepted is run, on little memory and for a short time. Nothing else
happens: the process lives, no exception comes out, and nothing changes beside the kernel's buffers.

python -m tests.kernels.simulated.fuzz --count 100000 --seed 1 [--processes 16] [--seconds 300] [--part 3/16]
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import random
import re
import sys
import time
from typing import Any

import numpy as np

from engine.cuda.simulated import ptx_of
from kernels import launch, nvrtc
from kernels.errors import KernelError
from kernels.ops import OPS
from kernels.ptx.program import Device, Program
from kernels.ptx.reader import PtxError
from tests.kernels.simulated import check

MOST_LENGTH = 20_000  # characters of a shipped kernel that is damaged
NBYTES, GUARD = 4096, 4096  # of a buffer, and in front of it and behind it
SECONDS, HUNG = 0.2, 60.0  # of a run; after which a text counts as one that does not end
A_PROCESS = 500  # texts of a process

TEXT = """
.version 8.0
.target sm_90a
.address_size 64
.global .align 4 .u32 table[4] = {1, 2, 3, -4};
.extern .shared .align 16 .b8 dynamic[];
.extern .func (.param .b32 back) vprintf (.param .b64 text, .param .b64 values);
.global .align 8 .u64 chosen[2] = {twice, generic(table)};
.func (.param .align 4 .b8 back[8]) deep(.param .b32 n)
{
    .reg .pred %p<2>; .reg .b32 %r<4>; .local .align 8 .b8 depot[8];
    ld.param.u32 %r1, [n];
    st.param.b32 [back+4], %r1;
    setp.eq.s32 %p1, %r1, 0;
    @%p1 ret;
    { .param .b32 a; .param .align 4 .b8 b[8]; sub.s32 %r2, %r1, 1; st.param.b32 [a+0], %r2;
    call.uni (b), deep, (a); ld.param.b32 %r3, [b+4]; }
    st.param.b32 [back+0], %r3;
    ret;
}
.func (.param .b32 back) twice(.param .b32 n)
{
    .reg .b32 %r<3>; ld.param.u32 %r1, [n]; add.s32 %r2, %r1, %r1; st.param.b32 [back+0], %r2; ret;
}
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
    cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%d5], [%r5], 32;
    cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r5], [%r6], 16, [%r5];
    st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r5], {%r6, %r5}, [%r6];
    red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.max.u32 [%r5], %r6, [%r5];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    mbarrier.arrive_drop.shared::cta.b64 %d7, [%r5];
    mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r5], 16;
    { .param .b64 a; .param .b64 b; st.param.b64 [a+0], 24; call.uni (b), malloc, (a);
    ld.param.b64 %d7, [b+0]; }
    st.global.u32 [%d7], %r3;
    { .param .b64 a; st.param.b64 [a+0], %d7; call.uni free, (a); }
    add.cc.u32 %r7, %r8, %r3;
    addc.u32 %r7, %r8, %r3;
    lop3.and.b32 %r7|%p1, %r8, %r3, %r2, 0x80, %p2;
    elect.sync %r7|%p1, -1;
    { .param .b32 a; .param .align 4 .b8 b[8]; st.param.b32 [a+0], 3; call.uni (b), deep, (a);
    ld.param.b32 %r9, [b+4]; }
    ld.global.u64 %d6, [chosen];
    { .param .b32 a; .param .b32 b; st.param.b32 [a+0], %r9;
    proto : .callprototype (.param .b32 _) _ (.param .b32 _);
    call (b), %d6, (a), proto; ld.param.b32 %r9, [b+0]; }
    ways: .branchtargets $one, $two;
    and.b32 %r9, %r9, 1;
    brx.idx %r9, ways;
$one:
    red.global.add.noftz.f16x2 [%d2], %r9;
    vabsdiff4.u32.u32.u32.add %r9, %r7, %r8, %r9;
$two:
    atom.global.cas.b32 %r10, [%d2], %r9, %r7;
    mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, %r8},
        {%r9, %r10}, {%r1, %r2, %r3, %r4};
    cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2;
    @%p3 trap;
    ret;
}
"""


def real() -> list[str]:
    """The PTX of shipped kernels, of each operator the first and the last one; none without NVRTC."""
    if nvrtc.unavailable() is not None:
        return []
    found = []
    for op in OPS:
        rungs = [rung for rung in check.RUNGS if rung.op == op]
        for rung in {id(rung): rung for rung in (*rungs[:1], *rungs[-1:])}.values():
            try:
                text = ptx_of(rung, launch.launch(check.case_of(rung).params, rung))
            except (KernelError, ValueError):  # it cannot be compiled here, or takes no small case
                continue
            text = text.split(".section", 1)[0]
            found += [text] if len(text) < MOST_LENGTH else []
    return found


def damaged(random_: random.Random, text: str = TEXT) -> str:
    """The text with a few of its words changed, doubled, left out or exchanged."""
    words = text.split(" ") if text is TEXT else re.split(r"(?<=\s)", text)
    for _ in range(random_.randint(1, 4)):
        at, other = random_.randrange(len(words)), random_.randrange(len(words))
        how = random_.randrange(7)
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
        elif how == 5:
            number = random_.choice(["0", "-1", "2147483647", "4294967295", "1073741824", "7", "65536"])
            words[at] = re.sub(r"(?<![\w$%.])\d+", number, words[at], count=1)
        else:
            place = random_.randint(0, len(words[at]))
            words[at] = words[at][:place] + chr(random_.randint(1, 255)) + words[at][place:]
        if not words:
            break
    return ("" if text is not TEXT else " ").join(words)


def read(text: str, run: bool = False) -> str:
    """What came of a text: "translated", or "refused"; where its kernels are run "ran"."""
    try:
        program = Program(text, keep=False)
        for name in program.module.kernels:
            program.translated(name)
        if not run:
            return "translated"
        for name in program.module.kernels:
            _ran(program, name)
    except (PtxError, KernelError, MemoryError):
        return "refused"
    return "ran"


def _ran(program: Program, name: str) -> None:
    """Run a kernel as a stranger's would be: for a short time, on buffers round which nothing may change."""
    device = Device(program)
    guarded = []
    for number in range(4):
        whole = np.full(NBYTES + 2 * GUARD, 0xA5, np.uint8)
        buffer = device.buffer(f"b{number}", np.zeros(NBYTES, np.uint8), 4, writable=True)
        buffer.lies_at(whole[GUARD : GUARD + NBYTES])
        buffer.bytes[:] = number
        guarded.append((whole, buffer.address))
    arguments = bytearray(np.full(1024, 3, np.uint32).tobytes())
    params = program.kernel(name).params
    end = place = 0
    for param in params:
        end = -(-end // max(1, param.align)) * max(1, param.align)
        if param.nbytes == 8 and end + 8 <= len(arguments):
            arguments[end : end + 8] = guarded[place % 4][1].to_bytes(8, "little")
            place += 1
        end += param.nbytes
    blocks = [2 * size for size in program.kernel(name).cluster]
    device.launch(name, blocks, (64,), bytes(arguments), shared_nbytes=4096, seconds=SECONDS)
    _ = [finding.words for finding in device.report.findings], device.report.lines
    for whole, _address in guarded:
        if (whole[:GUARD] != 0xA5).any() or (whole[GUARD + NBYTES :] != 0xA5).any():
            raise AssertionError(f"{name} has changed what lies beside a buffer")


CAME = ("refused", "translated", "ran")


def _work(asked: argparse.Namespace, texts: list[str], numbers: list[int], at: Any, counts: Any) -> None:
    """What a process does: one text after another; `at` says which it is at."""
    for number in numbers:
        at.value = number
        random_ = random.Random(f"{asked.seed} {number}")
        text = damaged(random_, random_.choice(texts) if random_.random() < 0.75 else TEXT)
        try:
            came = read(text, run=number % asked.run == 0)
        except Exception:
            print(f"seed {asked.seed}, number {number}:\n{text}", file=sys.stderr)
            raise
        counts[CAME.index(came)] += 1


class _Worker:
    """A process with its texts. left: those behind one that ended it, or that does not end."""

    def __init__(self, asked: argparse.Namespace, texts: list[str], numbers: list[int]) -> None:
        self.numbers, self.left, self.wrong = numbers, list[int](), ""
        context = multiprocessing.get_context("fork")
        self._at, self.counts = context.Value("q", -1, lock=False), context.Array("q", len(CAME), lock=False)
        self._seed, self._seen, self._since = asked.seed, -1, time.monotonic()
        given = (asked, texts, numbers, self._at, self.counts)
        self._process = context.Process(target=_work, args=given)
        self._process.start()

    def ended(self) -> bool:
        """Whether the process is over. One that has been at a text for too long is ended."""
        if self._at.value != self._seen:
            self._seen, self._since = self._at.value, time.monotonic()
        hung = self._process.is_alive() and time.monotonic() - self._since > HUNG
        if hung:
            self._process.kill()
        elif self._process.is_alive():
            return False
        self._process.join()
        if hung or self._process.exitcode:
            how = "does not end" if hung else f"ended the process ({self._process.exitcode})"
            self.wrong = f"seed {self._seed}, number {self._at.value}: {how}"
            if self._at.value in self.numbers:  # else not one was begun
                self.left = self.numbers[self.numbers.index(self._at.value) + 1 :]
        return True

    def stop(self) -> None:
        self._process.kill()
        self._process.join()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", 1)[0])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", default="1/1", help="K/N: only each N-th text, from the K-th on")
    parser.add_argument("--processes", type=int, default=1, help="so many at a time")
    parser.add_argument("--seconds", type=float, default=math.inf, help="after which it ends")
    parser.add_argument("--run", type=int, default=10, help="of so many texts one is run, if it is accepted")
    parser.add_argument("--plain", action="store_true", help="of no shipped kernel, only of one text")
    asked = parser.parse_args()
    which, parts = map(int, asked.part.split("/"))
    numbers = list(range(which - 1, asked.count, parts))
    # Machine code stays in memory: a process has so many texts.
    waiting = [numbers[n : n + A_PROCESS] for n in range(0, len(numbers), A_PROCESS)]
    started, bad, came = time.monotonic(), 0, [0] * len(CAME)
    texts = [TEXT] if asked.plain else [TEXT, *real()]
    at_work: list[_Worker] = []
    while (waiting or at_work) and time.monotonic() - started < asked.seconds:
        while waiting and len(at_work) < asked.processes:
            at_work.append(_Worker(asked, texts, waiting.pop(0)))
        time.sleep(0.05)
        for worker in [worker for worker in at_work if worker.ended()]:
            at_work.remove(worker)
            came = [whole + its for whole, its in zip(came, worker.counts, strict=True)]
            if worker.wrong:
                print(worker.wrong, flush=True)
                bad += 1
            waiting += [worker.left] if worker.left else []
    for worker in at_work:
        worker.stop()
        came = [whole + its for whole, its in zip(came, worker.counts, strict=True)]
    words = ", ".join(f"{name} {count:,}" for name, count in zip(CAME, came, strict=True))
    print(
        f"{sum(came) + bad:,} of {len(numbers):,} texts: {words}; {bad} crashed, "
        f"{time.monotonic() - started:.0f} s"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
