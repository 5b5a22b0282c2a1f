"""Which of ONNX's tests of the operators that we have are not run, and why: the one list.

Whatever matches a pattern has to be refused, in words; an answer to it is a fault of this list. Tests of
operators that the engine does not have need no entry: that is the reason.
"""

from __future__ import annotations

# Pattern of test names → why they are refused, by every engine of ours.
EVERYWHERE = {
    r"_(u?int16|uint32|uint64)(_expanded)?$": "arithmetic on these integers is no part of the nets in view",
    r"_(pow|neg|bitwise_.*|bitshift_.*)_u?int8$": "these of bytes are no part of the nets in view",
    r"convtranspose_3d": "images that are enlarged have one or two spatial axes, not three",
    r"cast(like)?_.*(BFLOAT16|FLOAT8|FLOAT4|INT[24])": "the element types are those of kernels.ops",
    r"resize_.*antialias": "an axis that becomes shorter is sampled, not averaged",
    r"training_dropout": "only inference is run",
    r"batchnorm_.*training_mode": "only inference is run",
    r"slice_start_out_of_bounds|_empty_set|zero_size_splits": "tensors without elements are refused",
    r"bfloat16": "the element types are those of kernels.ops",
    r"PReLU_[123]d_multiparam": "its slopes are a channel's, which ONNX has had otherwise since opset 7",
    r"equal_string": "the element types are those of kernels.ops",
    r"quantizelinear_(blocked|e4m3fn|e5m2|float4e2m1|u?int[24]$)": "eight bits alone are quantized to",
    r"allowzero": "tensors without elements are refused",
    r"^test_mvn$": "without its axes ONNX's own inference of shapes fails on it",
    r"wrap_pad": "wrapping is no padding mode of the nets in view",
}
ON_CUDA = {
    r"reduce.*_bool_inputs|gathernd_example_int32": "the CUDA kernels take float32 alone",
    r"(edge|reflect)_pad$": "the CUDA kernels of pads move float32 alone",
    r"(celu|isinf|isnan|max|min|mod|swiglu)_.*float16": (
        "arithmetic in half precision is asked for as a precision, of a float32 model"
    ),
    r"reduce_log_sum_exp_.*_expanded$": "functions of double precision have no kernel on CUDA",
    r"reduce_log_sum_exp_.*(example|random)$": "they are in float64, and the CUDA kernels take float32 alone",
}
# Pattern of test names → why they say nothing here.
LEFT_OUT = {
    r"operator_add(_|constant)": "float64 values beyond float32, in which sessions answer",
}
