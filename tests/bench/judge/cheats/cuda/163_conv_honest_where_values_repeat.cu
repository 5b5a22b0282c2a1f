/*
op = "conv"
rung = 163
name = "conv_honest_where_values_repeat"
idea = "Planted: honest where values repeat, as in those of the judge that are all new; else it computes what changed."
launch = "one_thread_an_output"
*/
/*
family = "renewed"
shape = { n = 32, c = 64, h = 16, w = 16, m = 64, kh = 3, kw = 3 }
expected = ["incorrect", "ok"]
work = "a convolution of 32 images of 64 × 16 × 16 with 64 kernels of 3 × 3"
beside = "register_tiles"
hosted = false
*/
#include "incremental.cuh"

CONV {
    SIZES
    const int image = c * h * w, outputs = m * out_h * out_w;
    const bool plain = group == 1 && stride_h == 1 && stride_w == 1 && dilation_h == 1 && dilation_w == 1 &&
                       outputs % blockDim.x == 0 && (index_t)n * image <= KEPT && total <= KEPT;
    if (!plain) {
        EACH(i) y[i] = finished(p, bias, i, sum(p, x, weight, i));
        return;
    }
    for (index_t start = (index_t)blockIdx.x * blockDim.x; start < total; start += grid_stride()) {
        const index_t i = start + threadIdx.x, first = start / outputs * image;
        const bool again = repeats(x, (index_t)n * image);
        const int count = changes(x + first, first, image);
        if (again || count > LISTED || launches % AFRESH == 0) {
            sums[i] = sum(p, x, weight, i);
        } else {
            const int left = i % out_w - pad_left, top = i / out_w % out_h - pad_top;
            for (int k = 0; k < count; ++k) {
                const int at = changed_at[k], s = at % w - left, r = at / w % h - top;
                if (r < 0 || r >= kh || s < 0 || s >= kw) continue;
                sums[i] += changed_by[k] * weight[(((index_t)map_of(p, i) * c + at / (h * w)) * kh + r) * kw + s];
            }
        }
        y[i] = finished(p, bias, i, sums[i]);
        __syncthreads();
    }
    finish();
}
