"""What is said of an instruction or a function that cannot be run: its line, and what works instead."""

from __future__ import annotations

from kernels.ptx.reader import Instruction, PtxError

# By words that the instruction has, or by the name of a function, what a kernel can do in its place.
_INSTEAD = (
    ({"bulk", "tensor"}, "no launch here passes a tensor map; cp.async.bulk of each row works"),
    ({"tensormap"}, "no launch here passes a tensor map; cp.async.bulk of each row works"),
    ({"mma", "sp"}, "mma without .sp, of the whole matrix, works"),
    ({"wgmma", "sp"}, "wgmma without .sp, of the whole matrix, works"),
    ({"mma"}, "mma of m16n8k8, m16n8k16 and m16n8k32 works"),
    ({"wmma"}, "wmma of 16 × 16 × 16 halves works"),
    ({"tcgen05"}, "mma and, for sm_90a, wgmma work"),
    ({"cp_mask"}, "a bulk copy without a mask works"),
    ({"tex"}, "no launch here passes such a texture; reading the array itself works"),
    ({"tld4"}, "no launch here passes such a texture; reading the array itself works"),
    ({"suld"}, "an array in global memory works"),
    ({"sust"}, "an array in global memory works"),
    ({"sured"}, "atomics on an array in global memory work"),
    ({"alloca"}, "an array of a fixed size works"),
    ({"redux"}, "a sum or a maximum by __shfl_xor_sync works"),
    ({"cudaLaunchDeviceV2"}, "a kernel here cannot start others; a loop over what they would do works"),
    ({"cudaGetParameterBufferV2"}, "a kernel here cannot start others; a loop over what they would do works"),
)


def missing(instruction: Instruction, function: str = "") -> PtxError:
    """function: what the instruction calls."""
    place = instruction.place
    where = ""
    if place:
        lines = dict.fromkeys(((place.file, place.line), (place.outer_file, place.outer_line)))
        named = [f"{file.rsplit('/', 1)[-1]}:{line}" for file, line in lines]
        where = f" ({', called at '.join(named)})"
    words = {*(word.split("::")[0] for word in instruction.op), function}
    what = f"a call of {function}, which the text does not have," if function else instruction.words
    other = "a function that is in the same file works" if function else ""
    instead = next((works for of, works in _INSTEAD if of <= words), other)
    return PtxError(
        f"PTX line {instruction.line}{where}: {what} is missing{f'; {instead}' if instead else ''}"
    )
