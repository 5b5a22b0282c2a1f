# op = "softmax"
# rung = 20
# name = "triton"
# idea = "In Triton: a program a few whole rows as one tile, on which maximum, exponential and sum are one line each; who reads what, and how it is shared, is the compiler's affair."
# language = "triton"
# launch = "softmax_programs"
# side = true
# [needs]
# axis_max = 16384
import triton
import triton.language as tl


# x and y are (outer, axis, inner); a row runs along the middle one.
@triton.jit
def softmax(x, y, outer, axis, inner, log_of_it, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    at = tl.arange(0, WIDTH)
    begin = row // inner * axis * inner + row % inner
    place = begin[:, None] + at[None, :] * inner
    there = (row < outer * inner)[:, None] & (at < axis)[None, :]
    v = tl.load(x + place, mask=there, other=-float("inf"))
    v = v - tl.max(v, 1)[:, None]
    e = tl.exp(v)
    total = tl.sum(e, 1)[:, None]
    if log_of_it != 0:
        tl.store(y + place, v - tl.log(total), mask=there)
    else:
        tl.store(y + place, tl.div_rn(e, total), mask=there)
