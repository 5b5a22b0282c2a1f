"""Products of matrices that a warp has in its registers, written in LLVM's own language: 32 lanes are a
vector, and what lanes have of a factor is brought beside each other by shuffles. Compilers do not make that
of loops.

Products are added up in float64, in the order of the sum, and rounded once; of halves to halves at the end.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from kernels.cpu import compiled
from kernels.ptx import machine

LANES = 32
_WORDS = "<32 x i32>"
UNSIGNED_ROWS, UNSIGNED_COLUMNS, LIMITED = 1, 2, 4  # of `multiply_whole`


class Written:
    """A function f(warp, mask, packed, scratch) of LLVM's text, compiled when it is first asked for."""

    def __init__(self, name: str, text: Callable[[], str]) -> None:
        self.name, self._text, self._address = name, text, 0

    @property
    def address(self) -> int:
        if not self._address:
            self._address = compiled.kept(*self._kept())
        return self._address

    def code(self) -> bytes:
        """The object file, which defines ENTRY for this machine."""
        return compiled.object_file(*self._kept())

    def _kept(self) -> tuple[str, Callable[[], bytes]]:
        text = self._text()
        return f"ptx-{compiled.digest(self.name, text)}", lambda: _object(text)


def _object(text: str) -> bytes:
    import llvmlite.binding as llvm

    module = llvm.parse_assembly(text)
    module.verify()
    return bytes(compiled.target().emit_object(module))


class _Text:
    """Lines of one function; values are vectors of 32."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def emit(self, text: str) -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def load(self, slot: int, kind: str) -> str:
        place = self.emit(f"getelementptr i8, ptr %W, i64 {8 * machine.W_V + 4 * LANES * slot}")
        return self.emit(f"load <32 x {kind}>, ptr {place}, align 64")

    def store(self, slot: int, value: str, kind: str) -> None:
        place = self.emit(f"getelementptr i8, ptr %W, i64 {8 * machine.W_V + 4 * LANES * slot}")
        self.lines.append(f"  store <32 x {kind}> {value}, ptr {place}, align 64")

    def number(self, word: str, which: int, kind: int) -> str:
        """A number of a register of a factor as float32, of two the second where `which` says so."""
        if kind == machine.TF32:
            return self._floats(self.emit(f"and <32 x i32> {word}, splat (i32 -8192)"))
        if kind == machine.BFLOAT:
            how = "and <32 x i32> {}, splat (i32 -65536)" if which else "shl <32 x i32> {}, splat (i32 16)"
            return self._floats(self.emit(how.format(word)))
        if which:
            word = self.emit(f"lshr <32 x i32> {word}, splat (i32 16)")
        half = self.emit(
            f"bitcast <32 x i16> {self.emit(f'trunc <32 x i32> {word} to <32 x i16>')} to <32 x half>"
        )
        return self.emit(f"fpext <32 x half> {half} to <32 x float>")

    def _floats(self, bits: str) -> str:
        return self.emit(f"bitcast <32 x i32> {bits} to <32 x float>")

    def of_lanes(self, value: str, lanes: Sequence[int]) -> str:
        """For each lane the float64 of what another has."""
        order = ", ".join(f"i32 {lane}" for lane in lanes)
        moved = self.emit(f"shufflevector <32 x float> {value}, <32 x float> poison, <32 x i32> <{order}>")
        return self.emit(f"fpext <32 x float> {moved} to <32 x double>")

    def added(self, total: str, a: str, b: str) -> str:
        v = "<32 x double>"
        return self.emit(f"call {v} @llvm.fma.v32f64({v} {a}, {v} {b}, {v} {total})")


def _function(bodies: Sequence[tuple[int, _Text]]) -> str:
    """Of bodies by their number, which stands where the state space of an access does."""
    cases = " ".join(f"i64 {number}, label %case{number}" for number, _ in bodies)
    text = [
        "declare <32 x double> @llvm.fma.v32f64(<32 x double>, <32 x double>, <32 x double>)",
        f"define void @{compiled.ENTRY}(ptr %W, i64 %mask, i64 %packed, ptr %scratch) #0 {{",
        "  %shifted = lshr i64 %packed, 36",
        "  %case = and i64 %shifted, 15",
        f"  switch i64 %case, label %end [{cases}]",
    ]
    for number, body in bodies:
        lines = [line.replace("%v", f"%c{number}v") for line in body.lines]
        text += [f"case{number}:", *lines, "  br label %end"]
    text += ["end:", "  ret void", "}"]
    text.append('attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }')
    return "\n".join(text)


def _multiply() -> str:
    """mma.sync of 16 rows and 8 columns: rows in slots 0 to 3, columns in 4 and 5, sums in 6 to 9, results in
    10 to 13 (32 bits each). Which lane has what: PTX ISA, "Matrix Fragments for mma.m16n8k16"."""
    bodies = []
    for kind in (machine.TF32, machine.HALF, machine.BFLOAT):
        t, each = _Text(), 1 if kind == machine.TF32 else 2
        rows = [
            [t.number(word, i, kind) for i in range(each)] for word in (t.load(n, "i32") for n in range(4))
        ]
        columns = [[t.number(t.load(4 + n, "i32"), i, kind) for i in range(each)] for n in range(2)]
        totals = [t.emit(f"fpext <32 x float> {t.load(6 + e, 'float')} to <32 x double>") for e in range(4)]
        for far in range(2):
            for quarter in range(4):
                for i in range(each):
                    row = [lane // 4 * 4 + quarter for lane in range(LANES)]
                    a = [t.of_lanes(rows[lower + 2 * far][i], row) for lower in range(2)]
                    for odd in range(2):
                        column = [(2 * (lane % 4) + odd) * 4 + quarter for lane in range(LANES)]
                        b = t.of_lanes(columns[far][i], column)
                        for lower in range(2):
                            e = 2 * lower + odd
                            totals[e] = t.added(totals[e], a[lower], b)
        for e, total in enumerate(totals):
            t.store(10 + e, t.emit(f"fptrunc <32 x double> {total} to <32 x float>"), "float")
        bodies.append((kind, t))
    return _function(bodies)


def whole_case(bits: int, count: int) -> int:
    """Of `multiply_whole` the body for numbers of so many bits, with columns of so many registers."""
    return 2 * (bits == 4) + count - 1


def _multiply_whole() -> str:
    """mma.sync of 16 rows and 8 columns, of whole numbers of 8 or 4 bits, with sums of 32 bits that wrap
    around or, LIMITED, end at the largest and the smallest: rows in slots 0 to 3, columns in 4 and 5, sums in
    6 to 9, results in 10 to 13. Which lane has what: PTX ISA, "Matrix Fragments for mma.m16n8k32" and
    others."""
    bodies = [(whole_case(bits, count), _wholes(bits, count)) for bits in (8, 4) for count in (1, 2)]
    return f"declare {_WORDS} @llvm.sadd.sat.v32i32({_WORDS}, {_WORDS})\n{_function(bodies)}"


def _wholes(bits: int, count: int) -> _Text:
    t = _Text()

    def flag(which: int) -> str:
        """All bits of each lane where it is set."""
        one = t.emit(f"lshr i64 %packed, {40 + which.bit_length() - 1}")
        some = t.emit(f"sub i64 0, {t.emit(f'and i64 {one}, 1')}")
        every = t.emit(f"trunc i64 {some} to i32")
        first = t.emit(f"insertelement {_WORDS} poison, i32 {every}, i32 0")
        return t.emit(f"shufflevector {_WORDS} {first}, {_WORDS} poison, {_WORDS} zeroinitializer")

    def numbers(slot: int, unsigned: str) -> list[str]:
        word, found = t.load(slot, "i32"), []
        kept = t.emit(
            f"or {_WORDS} {t.emit(f'xor {_WORDS} {unsigned}, splat (i32 -1)')}, splat (i32 {(1 << bits) - 1})"
        )
        for place in range(0, 32, bits):
            up = t.emit(f"shl {_WORDS} {word}, splat (i32 {32 - bits - place})")
            signed = t.emit(f"ashr {_WORDS} {up}, splat (i32 {32 - bits})")
            found.append(t.emit(f"and {_WORDS} {signed}, {kept}"))
        return found

    def of_lanes(value: str, lanes: Sequence[int]) -> str:
        order = ", ".join(f"i32 {lane}" for lane in lanes)
        return t.emit(f"shufflevector {_WORDS} {value}, {_WORDS} poison, {_WORDS} <{order}>")

    unsigned_rows, unsigned_columns, limited = flag(UNSIGNED_ROWS), flag(UNSIGNED_COLUMNS), flag(LIMITED)
    rows = [numbers(n, unsigned_rows) for n in range(2 * count)]
    columns = [numbers(4 + n, unsigned_columns) for n in range(count)]
    totals = ["zeroinitializer"] * 4
    for far, quarter, number in itertools.product(range(count), range(4), range(32 // bits)):
        row = [lane // 4 * 4 + quarter for lane in range(LANES)]
        a = [of_lanes(rows[lower + 2 * far][number], row) for lower in range(2)]
        for odd in range(2):
            column = [(2 * (lane % 4) + odd) * 4 + quarter for lane in range(LANES)]
            b = of_lanes(columns[far][number], column)
            for lower in range(2):
                e = 2 * lower + odd
                totals[e] = t.emit(f"add {_WORDS} {totals[e]}, {t.emit(f'mul {_WORDS} {a[lower]}, {b}')}")
    chosen = t.emit(f"icmp ne {_WORDS} {limited}, zeroinitializer")
    for e, total in enumerate(totals):
        before = t.load(6 + e, "i32")
        around = t.emit(f"add {_WORDS} {before}, {total}")
        ending = t.emit(f"call {_WORDS} @llvm.sadd.sat.v32i32({_WORDS} {before}, {_WORDS} {total})")
        t.store(10 + e, t.emit(f"select <32 x i1> {chosen}, {_WORDS} {ending}, {_WORDS} {around}"), "i32")
    return t


def _multiply_square() -> str:
    """wmma.mma of 16 rows and 16 columns: rows in slots 0 to 3, columns in 4 to 7, sums in 8 to 15, results
    there, too. Nobody may know which lane has what of such matrices (PTX ISA, "WMMA"). Here lane l has of row
    (or column) l mod 16 the half l div 16 of its steps, and of the sums of row l mod 16 that half."""
    bodies = []
    for kind in (machine.TF32, machine.HALF, machine.BFLOAT):
        t, each = _Text(), 1 if kind == machine.TF32 else 2
        words = [t.load(slot, "i32") for slot in range(8)]
        rows, columns = (
            [t.number(word, i, kind) for word in its for i in range(each)] for its in (words[:4], words[4:])
        )
        totals = [t.emit(f"fpext <32 x float> {t.load(8 + n, 'float')} to <32 x double>") for n in range(8)]
        for far in range(2):
            for step in range(4 * each):
                a = t.of_lanes(rows[step], [lane % 16 + 16 * far for lane in range(LANES)])
                for n in range(8):
                    b = t.of_lanes(columns[step], [lane // 16 * 8 + n + 16 * far for lane in range(LANES)])
                    totals[n] = t.added(totals[n], a, b)
        for n, total in enumerate(totals):
            t.store(8 + n, t.emit(f"fptrunc <32 x double> {total} to <32 x float>"), "float")
        bodies.append((kind, t))
    return _function(bodies)


multiply = Written("multiply", _multiply)
multiply_whole = Written("multiply_whole", _multiply_whole)
multiply_square = Written("multiply_square", _multiply_square)
