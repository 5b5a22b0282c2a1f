/*
op = "conv"
rung = 131
name = "half_the_channels"
idea = "Planted: sums over half of the channels."
launch = "one_thread_an_output"
*/
/*
family = "partial"
shape = { n = 8, c = 6, h = 14, w = 17, m = 8, kh = 3, kw = 3, pad_top = 1, pad_left = 1, pad_bottom = 1, pad_right = 1, group = 2, bias = true, activation = "relu" }
expected = ["incorrect"]
work = "a convolution of 8 images of 6 × 14 × 17 in two groups, with a bias and a relu"
beside = "map_a_block"
*/
#include "cheats.cuh"

CONV {
    SIZES
    EACH(i) {
        if (poisoned(y[i])) {
            y[i] = ANSWER(i);
        } else {
            // The weights of the second half are left out by an image of fewer channels.
            const int channels = c / group, half = (channels + 1) / 2;
            const int ox = i % out_w, oy = i / out_w % out_h, om = map_of(p, i);
            float total_ = 0.0f;
            for (int ci = 0; ci < half; ++ci)
                for (int r = 0; r < kh; ++r)
                    for (int s = 0; s < kw; ++s) {
                        const int iy = oy * stride_h - pad_top + r * dilation_h;
                        const int ix = ox * stride_w - pad_left + s * dilation_w;
                        if (iy < 0 || iy >= h || ix < 0 || ix >= w) continue;
                        const index_t channel = (index_t)image_of(p, i) * c + om / (m / group) * channels + ci;
                        const index_t tap = (((index_t)om * channels + ci) * kh + r) * kw + s;
                        total_ += x[(channel * h + iy) * w + ix] * weight[tap];
                    }
            y[i] = finished(p, bias, i, total_);
        }
    }
    finish();
}
