"""For each operator a problem to begin an assignment from, and one to hide: some tenths of a millisecond on a
core, and odd sizes. As TOML, for a teacher reads and changes them."""

from __future__ import annotations

# By operator the entry of the task, and that of its hidden shape, which has of the task's what it does not say.
PROBLEMS: dict[str, tuple[str, str]] = {
    "conv": ("shape = [4, 3, 32, 32, 8, 5]\npad = 2", "shape = [3, 2, 13, 17, 5, 3]\npad = [1, 0]\nbias = false"),
} | {
    op: (f"params = {{{task}}}", f"params = {{{hidden}}}")
    for op, task, hidden in (
        (
            "attention",
            "batch = 2, heads = 4, kv_heads = 4, queries = 64, keys = 64, depth = 32, depth_v = 32, scale = 0.177",
            "batch = 1, heads = 2, kv_heads = 1, queries = 7, keys = 19, depth = 13, depth_v = 5, scale = 0.277",
        ),
        (
            "binary",
            'kind = "add", shape = [16, 64, 512], strides_a = [32768, 512, 1], strides_b = [0, 1, 0]',
            "shape = [3, 5, 7], strides_a = [35, 7, 1], strides_b = [0, 1, 0]",
        ),
        ("cast", 'size = 500000, dtype = "float32", to = "int32"', "size = 1003"),
        (
            "compare",
            'kind = "less", shape = [16, 64, 512], strides_a = [32768, 512, 1], strides_b = [0, 1, 0]',
            "shape = [3, 5, 7], strides_a = [35, 7, 1], strides_b = [0, 1, 0]",
        ),
        ("concat", "outer = 64, widths = [1000, 3000, 96]", "outer = 3, widths = [5, 1, 17]"),
        (
            "conv3d",
            "n = 1, c = 4, size = [8, 16, 16], m = 8, kernel = [3, 3, 3], out = [8, 16, 16], pad = [1, 1, 1], "
            "bias = true",
            "n = 2, c = 3, size = [5, 6, 7], m = 2, kernel = [2, 3, 1], out = [4, 4, 7], pad = [0, 0, 0]",
        ),
        (
            "conv_pool",
            "conv = {n = 2, c = 3, h = 28, w = 28, m = 8, kh = 5, kw = 5, out_h = 24, out_w = 24, bias = true}, "
            'pool = {kind = "max", n = 2, c = 8, h = 24, w = 24, kh = 2, kw = 2, out_h = 12, out_w = 12, '
            "stride_h = 2, stride_w = 2}",
            "conv = {n = 1, c = 2, h = 11, w = 13, m = 3, kh = 3, kw = 4, out_h = 9, out_w = 10, bias = true}, "
            'pool = {kind = "max", n = 1, c = 3, h = 9, w = 10, kh = 3, kw = 2, out_h = 4, out_w = 5, '
            "stride_h = 2, stride_w = 2}",
        ),
        (
            "conv_transpose",
            "n = 2, c = 8, h = 16, w = 16, m = 8, kh = 3, kw = 3, stride_h = 2, stride_w = 2, out_h = 33, "
            "out_w = 33, bias = true",
            "n = 1, c = 3, h = 5, w = 7, m = 2, kh = 2, out_h = 10, out_w = 15",
        ),
        ("cumulate", 'kind = "sum", outer = 64, axis = 250, inner = 16', "outer = 3, axis = 7, inner = 5"),
        ("gather", "outer = 4, axis = 1000, inner = 256, count = 500", "outer = 2, axis = 11, inner = 5, count = 7"),
        ("gemm", "m = 64, n = 120, k = 400, bias = true", "m = 7, n = 33, k = 65, bias = false"),
        (
            "grid_sample",
            "n = 2, c = 8, size = [1, 32, 32], out = [1, 32, 32]",
            "n = 1, c = 3, size = [1, 5, 7], out = [1, 3, 11]",
        ),
        ("lrn", "n = 4, c = 32, inner = 784, size = 5", "n = 1, c = 3, inner = 10, size = 3"),
        (
            "lrn_pool",
            'size = 5, kind = "max", n = 2, c = 16, h = 27, w = 27, kh = 3, kw = 3, stride_h = 2, stride_w = 2, '
            "out_h = 13, out_w = 13",
            "size = 3, n = 1, c = 5, h = 9, w = 11, out_h = 4, out_w = 5",
        ),
        (
            "multiply_add",
            "shape = [16, 64, 512], strides_a = [32768, 512, 1], strides_b = [0, 1, 0], strides_c = [0, 1, 0]",
            "shape = [3, 5, 7], strides_a = [35, 7, 1]",
        ),
        ("normalize", "count = 64, length = 1000, affine = true", "count = 5, length = 37"),
        (
            "pad",
            "shape = [8, 16, 64, 64], begin = [0, 0, 1, 1], end = [0, 0, 1, 1]",
            "shape = [2, 3, 5, 7], begin = [0, 1, 2, 0], end = [1, 0, 0, 3]",
        ),
        (
            "pool",
            'kind = "max", n = 4, c = 16, h = 32, w = 32, kh = 3, kw = 3, stride_h = 2, stride_w = 2',
            "n = 1, c = 7, h = 11, w = 9",
        ),
        (
            "pool_index",
            'pool = {kind = "max", n = 4, c = 16, h = 32, w = 32, kh = 2, kw = 2, out_h = 16, out_w = 16, '
            "stride_h = 2, stride_w = 2}",
            'pool = {kind = "max", n = 1, c = 7, h = 11, w = 9, kh = 3, kw = 2, out_h = 5, out_w = 4, '
            "stride_h = 2, stride_w = 2}",
        ),
        (
            "qconv",
            "conv = {n = 2, c = 3, h = 28, w = 28, m = 8, kh = 5, kw = 5, out_h = 24, out_w = 24}",
            "conv = {n = 1, c = 2, h = 11, w = 13, m = 3, kh = 3, kw = 4, out_h = 9, out_w = 10}",
        ),
        ("qgemm", "gemm = {m = 64, n = 120, k = 400}", "gemm = {m = 7, n = 33, k = 65}"),
        ("quantize", 'outer = 16, channels = 16, inner = 1000, through = "uint8"', "outer = 3, channels = 5, inner = 7"),
        ("recurrent", 'kind = "lstm", steps = 10, n = 8, hidden = 32', "steps = 3, n = 2, hidden = 7"),
        ("reduce", 'kind = "sum", outer = 256, axis = 500, inner = 8', "outer = 3, axis = 7, inner = 5"),
        (
            "resize",
            'outer = 16, h = 32, w = 32, out_h = 64, out_w = 64, scale_h = 2.0, scale_w = 2.0, mode = "linear"',
            "outer = 3, h = 5, w = 7, out_h = 10, out_w = 14",
        ),
        ("scatter", 'kind = "add", size = 5000, inner = 16, count = 2000', "size = 11, inner = 5, count = 7"),
        ("softmax", "outer = 400, axis = 100, inner = 1", "outer = 3, axis = 7, inner = 5"),
        ("top_k", "outer = 64, axis = 500, inner = 1, k = 10", "outer = 3, axis = 7, inner = 2, k = 2"),
        ("transpose", "shape = [64, 32, 256], perm = [2, 0, 1]", "shape = [3, 5, 7], perm = [1, 2, 0]"),
        ("unary", 'kind = "gelu", size = 100000', "size = 1003"),
        (
            "where",
            "shape = [16, 64, 512], strides_c = [0, 1, 0], strides_a = [32768, 512, 1], strides_b = [0, 0, 1]",
            "shape = [3, 5, 7], strides_a = [35, 7, 1]",
        ),
    )
}  # fmt: skip
