# op = "transpose"
# rung = 1
# name = "copy"
# idea = "Copies a view with permuted strides; axes that stay neighbours are walked as one."
# [needs]
# dtype = ["float32", "float64", "float16", "int32", "int64", "uint8", "int8", "bool"]
"""y's axis i is x's axis perm[i]."""

from kernels.cpu.common import copy


def bind(p, inputs, output, workspace):
    x = inputs[0].reshape(p.shape).transpose(p.perm)
    return copy(output.reshape(x.shape), x)
