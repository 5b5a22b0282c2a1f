"""An operator as the text of one C file: its tables, then the parts of `c/` that read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from kernels.exported.operator import OUTPUT, TABLES, TILES, WORKSPACE, BoundCall, Launches, Operator, Place

PARTS = Path(__file__).parent / "c"
BYTES, NULL = -5, -6  # buffers of an argument, beside those of kernels.exported.operator
# ONNX's numbers of element types.
ELEMENT_TYPES = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9,
    "float16": 10, "float64": 11, "uint32": 12, "uint64": 13, "bfloat16": 16,
}  # fmt: skip

HEADERS = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))
"""


def text(op: Operator) -> str:
    """The file. It is C11 with what GCC and Clang have on Linux, and needs no header of anybody's."""
    cuda = op.device == "cuda"
    parts = [
        f"/* {op.told}: written by Kernelscope for use elsewhere; README.md says how. */",
        HEADERS,
        _shared(op),
        _cuda(op) if cuda else _cpu(op),
        (PARTS / ("cuda.c" if cuda else "cpu.c")).read_text(encoding="utf-8"),
        (PARTS / "onnxruntime.c").read_text(encoding="utf-8"),
    ]
    return "\n".join(parts)


def _string(words: str) -> str:
    plain = words.encode("ascii", "replace").decode()
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?") + '"'


def _defines(**values: object) -> str:
    return "\n".join(f"#define {name} {value}" for name, value in values.items())


def _list(values: Iterable[object]) -> str:
    return "{" + ", ".join(map(str, values)) + "}"


def _shape(dims: Sequence[int] | None) -> str:
    return "{-1, {0}}" if dims is None else f"{{{len(dims)}, {_list(dims) if dims else '{0}'}}}"


def _shared(op: Operator) -> str:
    """What both devices have: types and shapes. A weight has no shape here."""
    rows = []
    for size in op.sizes:
        given = dict(zip(op.data_inputs, size.shapes, strict=True))
        shapes = _list(_shape(given.get(i)) for i in range(len(op.inputs)))
        rows.append(f"    {{{shapes}, {_shape(size.output)}}},")
    ranks = [len(dims) for size in op.sizes for dims in (*size.shapes, size.output)]
    return "\n".join(
        [
            _defines(
                NAME=_string(op.name),
                WORDS=_string(op.told),
                DOMAIN=_string(op.domain),
                INPUTS=len(op.inputs),
                SIZES=len(op.sizes),
                RANK=max(1, *ranks),
                OUTPUT_TYPE=ELEMENT_TYPES[op.out_dtype],
                BUFFER_OUTPUT=f"({OUTPUT})",
                BUFFER_WORKSPACE=f"({WORKSPACE})",
                BUFFER_TABLES=f"({TABLES})",
                BUFFER_TILES=f"({TILES})",
                BUFFER_BYTES=f"({BYTES})",
                BUFFER_NULL=f"({NULL})",
            ),
            *(["#define ON_CUDA 1"] if op.device == "cuda" else []),
            f"\nstatic const int input_types[INPUTS] = {_list(ELEMENT_TYPES[it.dtype] for it in op.inputs)};",
            "static const struct size {",
            "    struct shape {\n        int rank; /* -1: a weight */\n        int64_t dims[RANK];",
            "    } inputs[INPUTS], output;",
            "} sizes[SIZES] = {",
            *rows,
            "};\n",
        ]
    )


# ------------------------------------------------------------------------------------------------------ CPU


def _cpu(op: Operator) -> str:
    lines, rows = [], []
    calls = [size.step for size in op.sizes]
    assert all(isinstance(call, BoundCall) for call in calls)
    bound = [call for call in calls if isinstance(call, BoundCall)]
    for n, call in enumerate(bound):
        # a[0] says that `low` and `high` count parts.
        words = [f"INT64_C({word})" if word != -(2**63) else "INT64_MIN" for word in (0, *call.words)]
        lines.append(f"static const int64_t words_{n}[] = {_list(words)};")
        places = [f"{{{at + 1}, {place.buffer}, {place.offset}}}" for at, place in call.places]
        lines.append(f"static const struct place places_{n}[] = {_list(places)};")
        rows.append(
            f"    {{words_{n}, {len(words)}, places_{n}, {len(places)}, {call.parts}, {call.tasks}}},"
        )
    checks = [
        f'if (!__builtin_cpu_supports("{name}")) return WORDS ": this processor has no {name}, for which it '
        'was compiled; export it on a machine like this one";'
        for name in op.features
    ]
    defines = _defines(
        MOST_WORDS=max(len(call.words) for call in bound) + 1,
        MOST_SCRATCH=max(call.scratch_nbytes for call in bound),
        REQUIRES=" ".join(["__builtin_cpu_init();", *checks] if checks else []),
    )
    if len(op.code) > 1:
        defines += "\n#define HAS_TILES 1"
    return "\n".join(
        [
            defines,
            "\nstruct place { int word, buffer; int64_t offset; };",
            *lines,
            "static const struct step {",
            "    const int64_t *words;\n    int count;\n    const struct place *places;\n    int pointers;",
            "    int64_t parts, tasks;\n} steps[SIZES] = {",
            *rows,
            "};\n",
            "/* The tables that arguments point into. */",
            '__asm__(".section .rodata\\n.balign 64\\n.hidden kernelscope_tables\\n"',
            '        ".globl kernelscope_tables\\nkernelscope_tables:\\n"',
            '        ".incbin \\"tables.bin\\"\\n.byte 0\\n.previous\\n");\n',
        ]
    )


# ----------------------------------------------------------------------------------------------------- CUDA


def _cuda(op: Operator) -> str:
    kernels: list[str] = []
    arguments: list[str] = []
    steps: list[str] = []
    content = b""
    most = count = 1
    for size in op.sizes:
        step = size.step
        assert isinstance(step, Launches)
        first = len(kernels)
        for kernel in step.kernels:
            first_argument = len(arguments)
            for value in kernel.arguments:
                if isinstance(value, Place):
                    arguments.append(f"{{{value.buffer}, {value.offset}}}")
                elif value is None:
                    arguments.append(f"{{{NULL}, 0}}")
                else:
                    start = -(-len(content) // 16) * 16
                    content = content.ljust(start, b"\0") + value
                    arguments.append(f"{{{BYTES}, {start}}}")
            count = len(kernel.arguments)
            most = max(most, count)
            kernels.append(
                f"    {{{_string(kernel.function)}, {_list(kernel.grid)}, {_list(kernel.block)}, "
                f"{kernel.shared_nbytes}, {first_argument}, {count}}},"
            )
        name, of, nbytes = step.constant or ("", 0, 0)
        steps.append(
            f"    {{{step.module}, {first}, {len(step.kernels)}, {int(step.workspace_nbytes > 0)}, "
            f"{_string(name) if name else 'NULL'}, {of}, {nbytes}}},"
        )
    octets = [", ".join(map(str, content[i : i + 24])) for i in range(0, len(content), 24)]
    return "\n".join(
        [
            _defines(
                MODULES=len(op.modules),
                KERNELS=len(kernels),
                MOST_ARGUMENTS=most,
                MOST_SCRATCH=max(s.step.workspace_nbytes for s in op.sizes if isinstance(s.step, Launches)),
            ),
            "\n/* The scalars of all launches, as the kernels take them. */",
            f"static const _Alignas(16) unsigned char argument_bytes[{max(1, len(content))}] = {{",
            *(f"    {line}," for line in octets or ["0"]),
            "};",
            "static const struct argument {\n    int buffer;\n    int64_t offset;",
            f"}} arguments[] = {_list(arguments)};",
            "static const struct kernel {\n    const char *function;",
            "    unsigned grid[3], block[3], shared;\n    int first_argument, arguments;",
            "} kernels[KERNELS] = {",
            *kernels,
            "};",
            "static const struct step {\n    int module, first, count, scratch;\n    const char *constant;",
            "    int constant_input;\n    size_t constant_nbytes;\n} steps[SIZES] = {",
            *steps,
            "};\n",
        ]
    )
