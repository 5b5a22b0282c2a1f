"""What a compiled CUDA file asks of a GPU's memory, read from its tables: a cubin is an ELF file of 64 bits.

The names of sections and the numbers of attributes are those that `cuobjdump --dump-elf` shows.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from kernels.errors import KernelError

_STATIC = (".nv.global", ".nv.constant")  # and what follows a dot behind these
_PARAMETERS = ".nv.constant0."  # of a kernel: where its arguments lie
_INFO, _SYMBOLS, _OBJECT = ".nv.info", ".symtab", 1
# Of .nv.info: a value with a size, and which values are bytes of a thread's stack (of a function, of a
# kernel with all that it calls, the most of it).
_SIZED, _STACKS = 4, (0x11, 0x12, 0x23)
_UNKNOWN = 1 << 31  # and more: of a stack whose depth no compiler knows, as where a function calls itself


@dataclass(frozen=True)
class Asked:
    """Bytes. static: of variables outside of functions, which are there as long as the file is loaded. stack:
    of the memory of a thread that is its own, which a GPU keeps for every thread that it can run at once."""

    static_nbytes: int
    stack_nbytes: int


@dataclass(frozen=True)
class _Section:
    name: str
    nbytes: int  # that it takes when loaded
    held: bytes  # what of it is in the file


def asked(cubin: bytes) -> Asked:
    """Of a whole file. Raises KernelError where it is no cubin."""
    try:
        sections = list(_sections(cubin))
        static = sum(_static(section) for section in sections)
        # A size of 4 GiB and more is cut to 32 bits in the tables of sections, and is whole in this one.
        whole = sum(_of_variables(sections))
        stacks = [nbytes for it in sections if it.name == _INFO for nbytes in _stacks(it.held)]
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise KernelError(f"what was compiled is no cubin ({error})") from None
    return Asked(max(static, whole), max(stacks, default=0))


def _static(section: _Section) -> int:
    name = section.name
    return section.nbytes if name.startswith(_STATIC) and not name.startswith(_PARAMETERS) else 0


def _sections(cubin: bytes) -> Iterator[_Section]:
    if cubin[:5] != b"\x7fELF\x02":
        raise ValueError("it does not begin as one")
    (start,) = struct.unpack_from("<Q", cubin, 0x28)
    each, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    rows = [struct.unpack_from("<IIQQQQIIQQ", cubin, start + k * each) for k in range(count)]
    names_at = rows[names][4]
    for name, kind, _, _, at, nbytes, *_ in rows:
        begin = names_at + name
        text = cubin[begin : cubin.index(b"\0", begin)].decode("ascii")
        yield _Section(text, nbytes, b"" if kind == 8 else cubin[at : at + nbytes])  # 8: nothing in the file


def _of_variables(sections: list[_Section]) -> Iterator[int]:
    """Bytes of each variable."""
    for section in sections:
        if section.name == _SYMBOLS:
            for _, kind, _, place, _, nbytes in struct.iter_unpack("<IBBHQQ", section.held):
                if (
                    kind & 15 == _OBJECT
                    and place < len(sections)
                    and sections[place].name.startswith(_STATIC)
                ):
                    yield nbytes


def _stacks(info: bytes) -> Iterator[int]:
    at = 0
    while at < len(info):
        form, attribute, nbytes = struct.unpack_from("<BBH", info, at)
        at += 4
        if form == _SIZED:
            values = struct.unpack_from(f"<{nbytes // 4}I", info, at)
            at += nbytes
            if attribute in _STACKS and len(values) == 2 and values[1] < _UNKNOWN:
                yield values[1]
