# op = "softmax"
# rung = 22
# name = "cute"
# idea = "In CuTe DSL: the warp a row of rung 2, each row a tensor whose layout says how far its elements lie apart."
# language = "cute-dsl"
# launch = "one_warp_a_row"
# side = true
import operator

from cutlass import Float32, Int64, cute

LANES = 32


# x and y are (outer, axis, inner); a row runs along the middle one.
@cute.kernel
def softmax(x, y, outer, axis, inner, log_of_it):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    threads, _, _ = cute.arch.block_dim()
    blocks, _, _ = cute.arch.grid_dim()
    lane = thread % LANES
    row = (Int64(block) * threads + thread) // LANES
    step = Int64(blocks) * threads // LANES
    while row < outer * inner:
        begin = row // inner * axis * inner + row % inner
        along = cute.make_layout(axis, stride=inner)
        given = cute.make_tensor(x + begin, along)
        out = cute.make_tensor(y + begin, along)
        top = Float32(-Float32.inf)
        for i in range(lane, axis, LANES):
            top = cute.arch.fmax(top, given[i])
        top = cute.arch.warp_reduction(top, cute.arch.fmax)
        total = Float32(0)
        for i in range(lane, axis, LANES):
            total += cute.math.exp(given[i] - top)
        total = cute.arch.warp_reduction(total, operator.add)
        for i in range(lane, axis, LANES):
            v = given[i] - top
            out[i] = v - cute.math.log(total) if log_of_it != 0 else cute.math.exp(v) / total
        row += step
