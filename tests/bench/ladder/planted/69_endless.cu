/*
op = "conv"
rung = 69
name = "endless"
idea = "Planted: it never ends."
launch = "one_thread_an_output"
*/
#include "direct.cuh"

CONV {
    SIZES
    volatile int* turning = (volatile int*)y;
    while (turning[0] != 7 || turning[1] != 7 || clock64() > 0) {
    }
}
