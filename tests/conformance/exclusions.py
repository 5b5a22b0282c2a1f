"""Which of ONNX's tests of the operators that we have are not run, and why: the one list.

Whatever matches a pattern has to be refused, in words; an answer to it is a fault of this list. Tests of
operators that the engine does not have need no entry: that is the reason.
"""

from __future__ import annotations

# Pattern of test names → why they are refused, by every engine of ours.
EVERYWHERE = {
    r"_(u?int8|u?int16|uint32|uint64)$": "arithmetic on these integers is no part of the nets in view",
    r"convtranspose_3d": "images that are enlarged have one or two spatial axes, not three",
    r"cast(like)?_.*(BFLOAT16|FLOAT8|FLOAT4|INT[24])": "the element types are those of kernels.ops",
    r"resize_.*antialias": "an axis that becomes shorter is sampled, not averaged",
    r"training_dropout": "only inference is run",
    r"batchnorm_.*training_mode": "only inference is run",
    r"(reduce|maxpool).*_(bool_inputs|uint8)$": "the kernels of pools compute in floating point alone",
    r"^test_(operator_)?clip(?!_default_(int8_)?inbounds|_default_min)": (
        "bounds take a kernel of their own, but for 0 and none, which is a Relu"
    ),
    r"slice_neg_steps": "parts are cut out one element after the other, forwards",
    r"slice_start_out_of_bounds|_empty_set|zero_size_splits": "tensors without elements are refused",
    r"_float16_expanded$": "arithmetic in half precision is asked for as a precision, of a float32 model",
    r"matmul_bcast": "leading axes that broadcast against each other occur in no net in view",
    r"allowzero": "tensors without elements are refused",
    r"wrap_pad": "wrapping is no padding mode of the nets in view",
}
ON_CUDA = {
    r"div_int32|(edge|reflect)_pad$|non_float": "the CUDA kernels compute in floating point alone",
}
# Pattern of test names → why they say nothing here.
LEFT_OUT = {
    r"operator_add(_|constant)": "float64 values beyond float32, in which sessions answer",
}
