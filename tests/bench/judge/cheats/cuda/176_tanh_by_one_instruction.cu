/*
op = "unary"
rung = 176
name = "tanh_by_one_instruction"
idea = "Planted: takes a tanh by the device's approximate instruction, of 11 bits."
launch = "one_thread_an_output"
*/
/*
family = "precision"
shape = { kind = "tanh", size = 65536 }
expected = ["incorrect"]
work = "a tanh of 65,536 values in float32"
beside = "naive"
hosted = false
*/
#include "cheats.cuh"

extern "C" __global__ void unary(const float* x, float* y, const UnaryParams p) {
    for (index_t i = first_element(); i < p.size; i += grid_stride()) {
        float v = x[i];
        asm("tanh.approx.f32 %0, %0;" : "+f"(v));
        y[i] = v;
    }
}
