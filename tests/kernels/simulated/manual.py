"""Instructions of PTX and what the PTX ISA 9.0 says that they give, written once more in plain Python.

A row is a snippet, which reads a, b and c (32 bits: %a, %b, %c; as float32 %fa, %fb, %fc; 64 bits: %da =
b:a, %db = c:b, %dc = a:c; as float64 %ea, %eb; halves %ha, %hb, %hc of the low 16 bits) and writes %out
(64 bits, zero before), and a function of a, b and c (whole numbers) that gives what should be in %out. All
rows are one kernel: each writes its own row of the output, for each thread.
"""

# mypy: disable-error-code="misc, assignment, operator"
# Lambdas of a table have no room for types.

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

M32, M64 = (1 << 32) - 1, (1 << 64) - 1
THREADS, BLOCKS = 32, 8
Given = tuple[int, int, int]


LEAST = 2.0**-126  # of float32 the least normal number


@dataclass(frozen=True)
class Row:
    """right: of a thread; all: of a whole warp (lists of a, b, c) where lanes see each other. kind: "bits";
    a float's type, where every NaN counts as the same; or how far off it may be, as a part of the
    answer, of one below `least` as a part of that."""

    text: str
    right: Callable[[int, int, int], int] | None = None
    kind: str = "bits"
    warp: Callable[[Sequence[Given]], Sequence[int]] | None = None
    off: float = 0
    least: float = LEAST


# --- numbers ---


def s(value: int, bits: int = 32) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value


def f32(bits: int) -> float:
    return float(np.array(bits & M32, np.uint32).view(np.float32))


def f64(bits: int) -> float:
    return float(np.array(bits & M64, np.uint64).view(np.float64))


def f16(bits: int) -> float:
    return float(np.array(bits & 0xFFFF, np.uint16).view(np.float16))


def bf16(bits: int) -> float:
    return f32((bits & 0xFFFF) << 16)


_SHAPE = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52), "tf32": (8, 10)}


def rounded(value: Fraction | float, kind: str, how: str = "rn", zero_sign: int = 0) -> int:
    """The bits of a number in this type: sign, exponent and fraction are found with exact fractions."""
    width, fraction = _SHAPE[kind]
    bits = width + fraction
    if isinstance(value, float):
        if math.isnan(value):
            return ((1 << width) - 1) << fraction | 1 << fraction - 1
        if math.isinf(value):
            return (value < 0) << bits | ((1 << width) - 1) << fraction
        if value == 0:
            return (math.copysign(1, value) < 0) << bits
        value = Fraction(value)
    if value == 0:
        return zero_sign << bits
    sign, size = int(value < 0), abs(value)
    least = 2 - (1 << width - 1)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    exponent = max(exponent, least)
    scaled = size / Fraction(2) ** (exponent - fraction)
    whole, rest = divmod(scaled.numerator, scaled.denominator)
    rest_ = Fraction(rest, scaled.denominator)
    up = {
        "rn": rest_ > Fraction(1, 2) or (rest_ == Fraction(1, 2) and whole & 1 == 1),
        "rna": rest_ >= Fraction(1, 2),
        "rz": False,
        "rm": rest_ > 0 and sign == 1,
        "rp": rest_ > 0 and sign == 0,
    }[how]
    whole += up
    most = ((1 << width) - 1) << fraction
    code = whole if exponent == least and whole >> fraction == 0 else ((exponent - least << fraction) + whole)
    if code >= most:  # beyond the largest
        inward = how == "rz" or (how == "rm" and not sign) or (how == "rp" and sign)
        code = most - 1 if inward else most
    return sign << bits | code


_READ = {"f16": f16, "bf16": bf16, "f32": f32, "f64": f64}


def flush(value: float, kind: str) -> float:
    least = {"f16": 2.0**-14, "f32": 2.0**-126, "bf16": 2.0**-126, "f64": 2.0**-1022}[kind]
    return math.copysign(0.0, value) if abs(value) < least else value


def computed(kind: str, what: str, *values: float, how: str = "rn") -> int:
    """add, sub, mul, fma, div, sqrt of exact numbers, rounded once."""
    if any(map(math.isnan, values)):
        return rounded(math.nan, kind)
    a, b, c = [*values, 0.0, 0.0][:3]
    if what == "sub":
        what, b = "add", -b
    try:
        if any(map(math.isinf, values)):
            plain = {
                "add": lambda: a + b,
                "mul": lambda: a * b,
                "fma": lambda: _fma(a, b, c),
                "div": lambda: a / b if b else math.copysign(math.inf, a) * math.copysign(1, b),
                "sqrt": lambda: math.sqrt(a),
            }[what]()
            return rounded(plain, kind)
        if what == "div" and b == 0:
            return rounded(math.nan if a == 0 else math.copysign(math.inf, a) * math.copysign(1, b), kind)
        if what == "sqrt":
            return _root(a, kind, how)
    except ValueError:
        return rounded(math.nan, kind)
    x, y, z = map(Fraction, (a, b, c))
    exact = {"add": x + y, "mul": x * y, "fma": x * y + z, "div": x / y if y else x}[what]
    negative = math.copysign(1, a) * math.copysign(1, b) < 0
    if what in ("mul", "div"):
        sign = int(negative)
    elif what == "add":
        sign = (
            int(how == "rm")
            if math.copysign(1, a) != math.copysign(1, b) or a
            else int(a == 0 and math.copysign(1, a) < 0)
        )
    else:
        product = -1 if negative else 1
        sign = int(how == "rm") if x * y or product != math.copysign(1, c) else int(product < 0)
    return rounded(exact, kind, how, sign)


def _fma(a: float, b: float, c: float) -> float:
    product = a * b if math.isinf(a) or math.isinf(b) else 0.0
    return product + c


def _root(a: float, kind: str, how: str) -> int:
    if a == 0:
        return rounded(a, kind)
    if a < 0:
        return rounded(math.nan, kind)
    value = Fraction(a)
    scale = 1 << 1200
    root = math.isqrt(value.numerator * scale * scale // value.denominator)
    exact = root * root * value.denominator == value.numerator * scale * scale
    return rounded(Fraction(2 * root + (not exact), 2 * scale), kind, how)


# --- whole numbers ---


def bfe(bits: int, signed: bool) -> Callable[[int, int, int], int]:
    def right(a: int, at: int, length: int) -> int:
        at, length, top = at & 255, length & 255, bits - 1
        sign = 0 if not signed or length == 0 else a >> min(at + length - 1, top) & 1
        return sum((a >> at + i & 1 if i < length and at + i <= top else sign) << i for i in range(bits))

    return right


def bfi(a: int, b: int, at: int, length: int, bits: int) -> int:
    at, length = at & 255, length & 255
    for i in range(length):
        if at + i < bits:
            b = b & ~(1 << at + i) | (a >> i & 1) << at + i
    return b


def bfind(value: int, bits: int, signed: bool, shift: bool) -> int:
    if signed and value >> bits - 1:
        value = ~value & (1 << bits) - 1
    at = value.bit_length() - 1
    return M32 if at < 0 else bits - 1 - at if shift else at


def lop3(table: int) -> Callable[[int, int, int], int]:
    def right(a: int, b: int, c: int) -> int:
        return sum(
            (table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1) << i for i in range(32)
        )

    return right


def prmt(a: int, b: int, c: int, mode: str = "") -> int:
    octets = [(b << 32 | a) >> 8 * i & 255 for i in range(8)]
    w = c & 3
    if mode == "":
        chosen = [(c >> 4 * i & 7, c >> 4 * i + 3 & 1) for i in range(4)]
    else:
        which = {
            "f4e": [w, w + 1, w + 2, w + 3],
            "b4e": [w, w - 1 & 7, w - 2 & 7, w - 3 & 7],
            "rc8": [w] * 4,
            "ecl": [max(i, w) for i in range(4)],
            "ecr": [min(i, w) for i in range(4)],
            "rc16": [2 * (w & 1), 2 * (w & 1) + 1] * 2,
        }[mode]
        chosen = [(i, 0) for i in which]
    values = [(255 if octets[i] >> 7 else 0) if sign else octets[i] for i, sign in chosen]
    return sum(v << 8 * i for i, v in enumerate(values))


def shf(a: int, b: int, c: int, left: bool, wrap: bool) -> int:
    n = c & 31 if wrap else min(c, 32)
    whole = b << 32 | a
    return (whole << n >> 32 if left else whole >> n) & M32


def shifted(value: int, count: int, bits: int, how: str) -> int:
    count = min(count, bits)
    if how == "shl":
        return value << count & (1 << bits) - 1
    return (s(value, bits) >> count if how == "ashr" else value >> count) & (1 << bits) - 1


def dot(a: int, b: int, c: int, a_signed: bool, b_signed: bool) -> int:
    total = c
    for i in range(4):
        x, y = a >> 8 * i & 255, b >> 8 * i & 255
        total += (s(x, 8) if a_signed else x) * (s(y, 8) if b_signed else y)
    return total & M32


def dot2(a: int, b: int, c: int, a_signed: bool, b_signed: bool, high: bool) -> int:
    total = c
    for i in range(2):
        x, y = a >> 16 * i & 0xFFFF, b >> 8 * (i + 2 * high) & 255
        total += (s(x, 16) if a_signed else x) * (s(y, 8) if b_signed else y)
    return total & M32


def quotient(a: int, b: int, rest: bool = False) -> int:
    if b == 0:
        return 0
    q = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return a - b * q if rest else q


def whole_of(value: float, how: str, bits: int, signed: bool, double: bool) -> int:
    """cvt to a whole number: clamped; what is no number as the table of cvt says."""
    if math.isnan(value):
        return 1 << bits - 1 if double or bits == 64 else 0
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    if math.isinf(value):
        return (most if value > 0 else least) & M64
    exact = Fraction(value)
    whole = {"rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil, "rni": round}[how](exact)
    return max(least, min(most, whole))


def extreme(a: float, b: float, kind: str, largest: bool, nan: bool) -> int:
    if math.isnan(a) or math.isnan(b):
        return rounded(
            math.nan if nan or (math.isnan(a) and math.isnan(b)) else b if math.isnan(a) else a, kind
        )
    key = lambda v: (v, math.copysign(1, v))  # noqa: E731 - minus zero is less than plus zero
    return rounded((max if largest else min)(a, b, key=key), kind)


# --- the rows ---


def _on(kind: str, a: int, b: int, c: int) -> tuple[float, float, float]:
    return tuple(_READ[kind](v) for v in (a, b, c))  # type: ignore[return-value]


def _pairs(kind: str, work: Callable[..., int]) -> Callable[[int, int, int], int]:
    """work on both halves of 32 bits."""

    def right(a: int, b: int, c: int) -> int:
        low = work(*_on(kind, a, b, c))
        return low | work(*_on(kind, a >> 16, b >> 16, c >> 16)) << 16

    return right


def _word(text: str) -> str:
    return f"{{ .reg .b32 r; {text} cvt.u64.u32 %out, r; }}"


def _float(text: str) -> str:
    return f"{{ .reg .f32 r; .reg .b32 w; {text} mov.b32 w, r; cvt.u64.u32 %out, w; }}"


def _half(text: str) -> str:
    return f"{{ .reg .b16 r; {text} cvt.u64.u16 %out, r; }}"


def _double(text: str) -> str:
    return f"{{ .reg .f64 r; {text} mov.b64 %out, r; }}"


def _flag(text: str) -> str:
    return f"{{ .reg .pred r; {text} selp.u64 %out, 1, 0, r; }}"


def rows() -> list[Row]:
    out: list[Row] = []

    def add(
        text: str,
        right: Callable[[int, int, int], int],
        kind: str = "bits",
        off: float = 0,
        least: float = LEAST,
    ) -> None:
        out.append(Row(text, right, kind, None, off, least))

    def lanes(text: str, right: Callable[[Sequence[Given]], Sequence[int]]) -> None:
        out.append(Row(text, None, "bits", right))

    _whole(add)
    _carries(add)
    _floats(add)
    _halves(add)
    _conversions(add)
    _conditions(add)
    _warps(lanes)
    return out


def _whole(add: Callable[..., None]) -> None:
    for signed in (False, True):
        t = "s" if signed else "u"
        add(_word(f"bfe.{t}32 r, %a, %b, %c;"), lambda a, b, c, g=signed: bfe(32, g)(a, b, c))
        add(f"bfe.{t}64 %out, %da, %b, %c;", lambda a, b, c, g=signed: bfe(64, g)(b << 32 | a, b, c))
        for bits in (32, 64):
            of = "%a" if bits == 32 else "%da"
            value = (lambda a, b: a) if bits == 32 else (lambda a, b: b << 32 | a)
            for shift in ("", ".shiftamt"):
                add(
                    _word(f"bfind{shift}.{t}{bits} r, {of};"),
                    lambda a, b, c, n=bits, v=value, g=signed, h=shift: bfind(v(a, b), n, g, bool(h)),
                )
        for largest in ("min", "max"):
            pick = {"min": min, "max": max}[largest]
            for bits in (16, 32, 64):
                x, y = {16: ("%ha", "%hb"), 32: ("%a", "%b"), 64: ("%da", "%db")}[bits]

                def right(a, b, c, n=bits, p=pick, g=signed):
                    m = (1 << n) - 1
                    u, v = (b << 32 | a) & m, (c << 32 | b if n == 64 else b) & m
                    return p(s(u, n), s(v, n)) & m if g else p(u, v)

                text = f"{largest}.{t}{bits} r, {x}, {y};"
                add(
                    _half(text)
                    if bits == 16
                    else _word(text)
                    if bits == 32
                    else text.replace(" r,", " %out,"),
                    right,
                )
        for op in ("div", "rem"):
            for bits in (16, 32, 64):
                x, y = {16: ("%ha", "%hb"), 32: ("%a", "%b"), 64: ("%da", "%db")}[bits]

                def right(a, b, c, n=bits, g=signed, o=op):
                    m = (1 << n) - 1
                    u, v = (b << 32 | a) & m, (c << 32 | b if n == 64 else b) & m
                    if v == 0 or (g and v == m):
                        return 0
                    return quotient(s(u, n) if g else u, s(v, n) if g else v, o == "rem") & m

                wide = {16: "b16", 32: "b32", 64: "b64"}[bits]
                text = (
                    f"{{ .reg .pred z, o; .reg .{wide} r; {op}.{t}{bits} r, {x}, {y}; "
                    f"setp.eq.s{bits} z, {y}, 0; setp.eq.s{bits} o, {y}, -1; "
                    + ("or.pred z, z, o; " if signed else "")
                    + f"@z mov.{wide} r, 0; cvt.u64.u{bits} %out, r; }}"
                )
                add(text.replace("cvt.u64.u64", "mov.b64"), right)
        for text, right in {
            f"mul.hi.{t}32 r, %a, %b;": lambda a, b, c, g=signed: (s(a) * s(b) if g else a * b) >> 32 & M32,
            f"mul.lo.{t}32 r, %a, %b;": lambda a, b, c: a * b & M32,
            f"mad.lo.{t}32 r, %a, %b, %c;": lambda a, b, c: a * b + c & M32,
            f"mad.hi.{t}32 r, %a, %b, %c;": lambda a, b, c, g=signed: (
                ((s(a) * s(b) if g else a * b) >> 32) + c & M32
            ),
            f"mul24.lo.{t}32 r, %a, %b;": lambda a, b, c, g=signed: (
                (s(a, 24) * s(b, 24) if g else (a & 0xFFFFFF) * (b & 0xFFFFFF)) & M32
            ),
            f"mul24.hi.{t}32 r, %a, %b;": lambda a, b, c, g=signed: (
                (s(a, 24) * s(b, 24) if g else (a & 0xFFFFFF) * (b & 0xFFFFFF)) >> 16 & M32
            ),
            f"mad24.lo.{t}32 r, %a, %b, %c;": lambda a, b, c, g=signed: (
                (s(a, 24) * s(b, 24) if g else (a & 0xFFFFFF) * (b & 0xFFFFFF)) + c & M32
            ),
            f"mul.wide.{t}16 r, %ha, %hb;": lambda a, b, c, g=signed: (
                (s(a, 16) * s(b, 16) if g else (a & 0xFFFF) * (b & 0xFFFF)) & M32
            ),
            f"sad.{t}32 r, %a, %b, %c;": lambda a, b, c, g=signed: (
                (abs(s(a) - s(b)) if g else abs(a - b)) + c & M32
            ),
        }.items():
            add(_word(text), right)
        add(f"mul.wide.{t}32 %out, %a, %b;", lambda a, b, c, g=signed: (s(a) * s(b) if g else a * b) & M64)
        add(
            f"mad.wide.{t}32 %out, %a, %b, %dc;",
            lambda a, b, c, g=signed: (s(a) * s(b) if g else a * b) + (a << 32 | c) & M64,
        )
        add(
            f"mul.hi.{t}64 %out, %da, %db;",
            lambda a, b, c, g=signed: (
                (s(b << 32 | a, 64) * s(c << 32 | b, 64) if g else (b << 32 | a) * (c << 32 | b)) >> 64 & M64
            ),
        )
        for other in (False, True):
            kinds = f"{t}32.{'s' if other else 'u'}32"
            add(_word(f"dp4a.{kinds} r, %a, %b, %c;"), lambda a, b, c, g=signed, h=other: dot(a, b, c, g, h))
            for half in ("lo", "hi"):
                add(
                    _word(f"dp2a.{half}.{kinds} r, %a, %b, %c;"),
                    lambda a, b, c, g=signed, h=other, k=half: dot2(a, b, c, g, h, k == "hi"),
                )
        for bits, of, count in ((16, "%ha", "%b"), (32, "%a", "%b"), (64, "%da", "%c")):
            for op, how in (("shl.b", "shl"), (f"shr.{t}", "ashr" if signed else "lshr")):
                for by in (count, "5", str(bits), str(bits + 7)):
                    text = f"{op}{bits} r, {of}, {by};"

                    def right(a, b, c, n=bits, h=how, k=by, i=count):
                        times = (b if i == "%b" else c) if k.startswith("%") else int(k)
                        return shifted((b << 32 | a) & (1 << n) - 1, times, n, h)

                    add(
                        _half(text)
                        if bits == 16
                        else _word(text)
                        if bits == 32
                        else text.replace(" r,", " %out,"),
                        right,
                    )
    add(_word("bfi.b32 r, %a, %b, %c, %ua;"), lambda a, b, c: bfi(a, b, c, a & 31, 32))
    add("bfi.b64 %out, %da, %db, %c, %ua;", lambda a, b, c: bfi(b << 32 | a, c << 32 | b, c, a & 31, 64))
    add("bfi.b64 %out, %da, %db, 3, 64;", lambda a, b, c: bfi(b << 32 | a, c << 32 | b, 3, 64, 64))
    for table in (0, 0x80, 0xE8, 0x96, 0x1B, 0xFF, 0xF0, 0x3C):
        add(_word(f"lop3.b32 r, %a, %b, %c, {table};"), lop3(table))
    add(
        "{ .reg .b32 r; .reg .pred p, q; .reg .b32 w; setp.lt.s32 q, %a, 0; "
        "lop3.and.b32 r|p, %a, %b, %c, 0x80, q; "
        "selp.u32 w, 1, 0, p; mov.b64 %out, {r, w}; }",
        lambda a, b, c: a & b & c | int(a & b & c != 0 and a >> 31) << 32,
    )
    add(_word("prmt.b32 r, %a, %b, %c;"), prmt)
    for selector in (0x5410, 0x7632, 0x0123, 0xF0E9, 0x3210):
        add(_word(f"prmt.b32 r, %a, %b, {selector:#x};"), lambda a, b, c, k=selector: prmt(a, b, k))
    for mode in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16"):
        add(_word(f"prmt.b32.{mode} r, %a, %b, %c;"), lambda a, b, c, m=mode: prmt(a, b, c, m))
    for way in "lr":
        for how in ("wrap", "clamp"):
            for by in ("%c", "0", "7", "32", "40"):
                add(
                    _word(f"shf.{way}.{how}.b32 r, %a, %b, {by};"),
                    lambda a, b, c, w=way, h=how, k=by: shf(
                        a, b, c if k == "%c" else int(k), w == "l", h == "wrap"
                    ),
                )
    add(_word("popc.b32 r, %a;"), lambda a, b, c: bin(a).count("1"))
    add(_word("popc.b64 r, %da;"), lambda a, b, c: bin(b << 32 | a).count("1"))
    add(_word("clz.b32 r, %a;"), lambda a, b, c: 32 - a.bit_length())
    add(_word("clz.b64 r, %da;"), lambda a, b, c: 64 - (b << 32 | a).bit_length())
    add(_word("brev.b32 r, %a;"), lambda a, b, c: int(f"{a:032b}"[::-1], 2))
    add("brev.b64 %out, %da;", lambda a, b, c: int(f"{b << 32 | a:064b}"[::-1], 2))
    add(_word("abs.s32 r, %a;"), lambda a, b, c: abs(s(a)) & M32)
    add(_word("neg.s32 r, %a;"), lambda a, b, c: -a & M32)
    add(_half("abs.s16 r, %ha;"), lambda a, b, c: abs(s(a, 16)) & 0xFFFF)
    add("neg.s64 %out, %da;", lambda a, b, c: -(b << 32 | a) & M64)
    add(_word("not.b32 r, %a;"), lambda a, b, c: ~a & M32)
    add(_word("cnot.b32 r, %ua;"), lambda a, b, c: int(a & 31 == 0))
    add(
        _word("add.sat.s32 r, %a, %b;"),
        lambda a, b, c: max(-(1 << 31), min((1 << 31) - 1, s(a) + s(b))) & M32,
    )
    add(
        _word("sub.sat.s32 r, %a, %b;"),
        lambda a, b, c: max(-(1 << 31), min((1 << 31) - 1, s(a) - s(b))) & M32,
    )
    add(_half("add.s16 r, %ha, %hb;"), lambda a, b, c: a + b & 0xFFFF)
    for name, pick in (("min", min), ("max", max)):
        add(
            _word(f"{name}.s16x2 r, %a, %b;"),
            lambda a, b, c, p=pick: sum((p(s(a >> i, 16), s(b >> i, 16)) & 0xFFFF) << i for i in (0, 16)),
        )
        add(
            _word(f"{name}.u16x2 r, %a, %b;"),
            lambda a, b, c, p=pick: sum(p(a >> i & 0xFFFF, b >> i & 0xFFFF) << i for i in (0, 16)),
        )
    add(_word("min.relu.s32 r, %a, %b;"), lambda a, b, c: max(0, min(s(a), s(b))))
    add(
        _word("add.u16x2 r, %a, %b;"),
        lambda a, b, c: sum(((a >> i) + (b >> i) & 0xFFFF) << i for i in (0, 16)),
    )
    # Parts of registers, and the spaces of addresses.
    add("mov.b64 %out, {%b, %a};", lambda a, b, c: a << 32 | b)
    add("{ .reg .b32 x, y; mov.b64 {x, y}, %da; mov.b64 %out, {y, x}; }", lambda a, b, c: a << 32 | b)
    add(_word("mov.b32 r, {%hb, %ha};"), lambda a, b, c: (a & 0xFFFF) << 16 | b & 0xFFFF)
    add(
        "{ .reg .b16 x, y, z, w; mov.b64 {x, y, z, w}, %da; mov.b64 %out, {w, z, y, x}; }",
        lambda a, b, c: sum(((b << 32 | a) >> 16 * i & 0xFFFF) << 48 - 16 * i for i in range(4)),
    )
    add("{ .reg .b32 x; mov.b64 {_, x}, %da; cvt.u64.u32 %out, x; }", lambda a, b, c: b)
    # A wider register takes what is narrower, and the other way round.
    add(_word("cvt.s8.s32 r, %a;"), lambda a, b, c: s(a, 8) & M32)
    add(_word("cvt.u8.u32 r, %a;"), lambda a, b, c: a & 255)
    # Guards: what is not taken keeps what it was, also where the guard changes meanwhile.
    add(
        "{ .reg .pred p; setp.lt.s32 p, %a, %b; @p mov.u64 %out, 7; @!p mov.u64 %out, 9; }",
        lambda a, b, c: 7 if s(a) < s(b) else 9,
    )
    add(
        "{ .reg .pred p; setp.lt.s32 p, %a, 0; mov.u64 %out, 1; @p setp.lt.s32 p, %b, 0; @p mov.u64 %out, 2; "
        "@!p setp.lt.s32 p, %c, 0; @p add.s64 %out, %out, 4; }",
        lambda a, b, c: (2 if a >> 31 and b >> 31 else 1) + 4 * int((a >> 31 and b >> 31) or c >> 31),
    )
    add(
        "{ .reg .pred p; .reg .b32 x, y; mov.b32 x, 1; mov.b32 y, 2; setp.lo.u32 p, %a, %b; "
        "@p mov.b64 {x, y}, %db; mov.b64 %out, {x, y}; }",
        lambda a, b, c: c << 32 | b if a < b else 2 << 32 | 1,
    )
    add(
        "{ .reg .pred p, q; setp.lo.u32 p|q, %a, %b; selp.u64 %out, 1, 2, p; @q add.u64 %out, %out, 8; }",
        lambda a, b, c: 1 if a < b else 10,
    )
    # A guard of which no lane holds; an address that nobody may use.
    add(
        "{ .reg .pred p; .reg .b64 x; setp.ne.u32 p, %a, %a; mov.u64 x, 77; "
        "@p ld.global.u64 x, [x]; mov.u64 %out, x; }",
        lambda a, b, c: 77,
    )
    add(
        "{ .reg .pred p; setp.eq.u32 p, %a, %b; @p bra SKIP; mov.u64 %out, 5; SKIP: add.u64 %out, %out, 1; }",
        lambda a, b, c: 1 if a == b else 6,
    )


def _carries(add: Callable[..., None]) -> None:
    add(
        "{ .reg .b32 x, y; add.cc.u32 x, %a, %b; addc.u32 y, %b, %c; mov.b64 %out, {x, y}; }",
        lambda a, b, c: (b << 32 | a) + (c << 32 | b) & M64,
    )
    add(
        "{ .reg .b32 x, y; add.cc.s32 x, %a, %b; addc.cc.s32 x, %b, %c; "
        "addc.u32 y, 0, 0; mov.b64 %out, {x, y}; }",
        lambda a, b, c: ((b << 32 | a) + (c << 32 | b)) >> 32,
    )
    add(
        "{ .reg .b32 x, y; sub.cc.u32 x, %a, %b; subc.u32 y, %b, %c; mov.b64 %out, {x, y}; }",
        lambda a, b, c: (b << 32 | a) - (c << 32 | b) & M64,
    )
    add(
        "{ .reg .b32 x, y, z; sub.cc.u32 x, %a, %b; subc.cc.u32 y, %b, %c; "
        "subc.u32 z, 0, 0; mov.b64 %out, {y, z}; }",
        lambda a, b, c: ((b << 32 | a) - (c << 32 | b)) >> 32 & M64,
    )
    add(
        "{ .reg .b64 x; add.cc.u64 x, %da, %db; addc.u64 %out, %db, %dc; }",
        lambda a, b, c: ((c << 32 | b) + (a << 32 | c) + ((b << 32 | a) + (c << 32 | b) >> 64)) & M64,
    )
    add(
        "{ .reg .b32 x, y; mad.lo.cc.u32 x, %a, %b, %c; madc.hi.u32 y, %a, %b, %c; mov.b64 %out, {x, y}; }",
        lambda a, b, c: a * b + (c << 32 | c) & M64,
    )
    add(
        "{ .reg .b32 x, y; mad.lo.cc.u32 x, %a, %b, %c; madc.hi.cc.u32 y, %a, %b, %c; addc.u32 x, 0, 0; "
        "mov.b64 %out, {y, x}; }",
        lambda a, b, c: a * b + (c << 32 | c) >> 32,
    )
    # Instructions between that leave the carry alone.
    add(
        "{ .reg .b32 x, y; add.cc.u32 x, %a, %b; xor.b32 x, x, %c; add.u32 x, x, 1; addc.u32 y, 0, 0; "
        "mov.b64 %out, {x, y}; }",
        lambda a, b, c: ((a + b & M32 ^ c) + 1 & M32) | (a + b >> 32) << 32,
    )


def _floats(add: Callable[..., None]) -> None:
    for how in ("rn", "rz", "rm", "rp"):
        for op, of in (
            ("add", "%fa, %fb"),
            ("sub", "%fa, %fb"),
            ("mul", "%fa, %fb"),
            ("fma", "%fa, %fb, %fc"),
        ):
            add(
                _float(f"{op}.{how}.f32 r, {of};"),
                lambda a, b, c, o=op, h=how: computed(
                    "f32", o, *_on("f32", a, b, c)[: 3 if o == "fma" else 2], how=h
                ),
                "f32",
            )
        for op, of in (("div", "%fa, %fb"), ("sqrt", "%fa"), ("rcp", "%fa")):

            def right(a, b, c, o=op, h=how):
                x, y = f32(a), f32(b)
                if o == "rcp":
                    return computed("f32", "div", 1.0, x, how=h)
                return computed("f32", o, *((x, y) if o == "div" else (x,)), how=h)

            add(_float(f"{op}.{how}.f32 r, {of};"), right, "f32")
    for how in ("rn", "rz", "rm", "rp"):
        for op in ("add", "sub", "mul"):
            add(
                _double(f"{op}.{how}.f64 r, %ea, %eb;"),
                lambda a, b, c, o=op, h=how: computed("f64", o, f64(b << 32 | a), f64(c << 32 | b), how=h),
                "f64",
            )
    add(
        _double("fma.rn.f64 r, %ea, %eb, %ec;"),
        lambda a, b, c: computed("f64", "fma", f64(b << 32 | a), f64(c << 32 | b), f64(a << 32 | c)),
        "f64",
    )
    add(
        _double("div.rn.f64 r, %ea, %eb;"),
        lambda a, b, c: computed("f64", "div", f64(b << 32 | a), f64(c << 32 | b)),
        "f64",
    )
    add(_double("sqrt.rn.f64 r, %ea;"), lambda a, b, c: computed("f64", "sqrt", f64(b << 32 | a)), "f64")

    def ftz(op: str) -> Callable[[int, int, int], int]:
        def right(a: int, b: int, c: int) -> int:
            x, y, z = (flush(v, "f32") for v in _on("f32", a, b, c))
            got = computed("f32", op, *((x, y, z) if op == "fma" else (x, y)))
            return rounded(flush(f32(got), "f32"), "f32")

        return right

    for op, of in (("add", "%fa, %fb"), ("mul", "%fa, %fb"), ("fma", "%fa, %fb, %fc")):
        add(_float(f"{op}.rn.ftz.f32 r, {of};".replace("add.rn.", "add.")), ftz(op), "f32")

    def saturated(a: int, b: int, c: int) -> int:
        value = f32(computed("f32", "fma", *_on("f32", a, b, c)))
        return rounded(max(0.0, min(1.0, value)) + 0.0 if value == value else 0.0, "f32")

    add(_float("fma.rn.sat.f32 r, %fa, %fb, %fc;"), saturated, "f32")
    for largest in (False, True):
        for nan in (False, True):
            name = ("max" if largest else "min") + ".NaN" * nan
            add(
                _float(f"{name}.f32 r, %fa, %fb;"),
                lambda a, b, c, g=largest, n=nan: extreme(f32(a), f32(b), "f32", g, n),
                "f32",
            )
        add(
            _double(f"{'max' if largest else 'min'}.f64 r, %ea, %eb;"),
            lambda a, b, c, g=largest: extreme(f64(b << 32 | a), f64(c << 32 | b), "f64", g, False),
            "f64",
        )
    add(_float("neg.f32 r, %fa;"), lambda a, b, c: a ^ 1 << 31, "f32")
    add(_float("abs.f32 r, %fa;"), lambda a, b, c: a & 0x7FFFFFFF, "f32")
    add(_float("copysign.f32 r, %fa, %fb;"), lambda a, b, c: b & 0x7FFFFFFF | a & 1 << 31, "f32")
    for test, right in {
        "finite": lambda v: math.isfinite(v),
        "infinite": math.isinf,
        "number": lambda v: v == v,
        "notanumber": math.isnan,
        "normal": lambda v: math.isfinite(v) and abs(v) >= 2.0**-126,
        "subnormal": lambda v: 0 < abs(v) < 2.0**-126,
    }.items():
        add(_flag(f"testp.{test}.f32 r, %fa;"), lambda a, b, c, w=right: int(w(f32(a))))

    def near(function: Callable[[float], float]) -> Callable[[int, int, int], int]:
        def right(a: int, b: int, c: int) -> int:
            try:
                return rounded(function(f32(a)), "f32")
            except OverflowError:
                return rounded(math.inf, "f32")
            except (ValueError, ZeroDivisionError):
                return rounded(math.nan, "f32")

        return right

    def rsqrt(x: float) -> float:
        return math.copysign(math.inf, x) if x == 0 else 1 / math.sqrt(x)

    def lg2(x: float) -> float:
        return -math.inf if x == 0 else math.log2(x)

    for op, function, off in (
        ("ex2", lambda x: 2.0**x, 2.0**-22),
        ("rsqrt", rsqrt, 2.0**-22),
        ("lg2", lg2, 2.0**-22),  # between 0.5 and 2 absolutely
        ("rcp", lambda x: 1 / x if x else math.copysign(math.inf, x), 2.0**-22),
        ("tanh", math.tanh, 2.0**-11),
        ("sqrt", lambda x: math.sqrt(x) if x else x, 2.0**-22),
    ):
        least = 1.0 if op == "lg2" else LEAST
        add(_float(f"{op}.approx.f32 r, %fa;"), near(function), "f32", off, least)
    for op, function in (
        ("sin", math.sin),
        ("cos", math.cos),
    ):  # sizes of which the manual promises something
        add(
            _float(f"{{ .reg .f32 x; cvt.rn.f32.s32 x, %ua; {op}.approx.f32 r, x; }}"),
            lambda a, b, c, w=function: rounded(w(float(a & 31)), "f32"),
            "f32",
            2.0**-20.5,
            1.0,
        )


def _halves(add: Callable[..., None]) -> None:
    for kind in ("f16", "bf16"):
        for op in ("add", "sub", "mul", "fma"):
            many = 3 if op == "fma" else 2

            def one(*v: float, k: str = kind, o: str = op, n: int = many) -> int:
                return computed(k, o, *v[:n])

            def relu(*v: float, k: str = kind) -> int:
                got = computed(k, "fma", *v)
                value = _READ[k](got)
                return got if math.isnan(value) else rounded(max(0.0, value) + 0.0, k)

            def flushed(*v: float, k: str = kind, o: str = op, n: int = many) -> int:
                return rounded(flush(_READ[k](computed(k, o, *(flush(x, k) for x in v[:n]))), k), k)

            def sat(*v: float, k: str = kind, o: str = op, n: int = many) -> int:
                value = _READ[k](computed(k, o, *v[:n]))
                return rounded(max(0.0, min(1.0, value)) + 0.0 if value == value else 0.0, k)

            of = ", ".join(("%ha", "%hb", "%hc")[:many])
            wide = ", ".join(("%a", "%b", "%c")[:many])
            add(_half(f"{op}.rn.{kind} r, {of};"), lambda a, b, c, w=one, k=kind: w(*_on(k, a, b, c)), kind)
            add(_word(f"{op}.rn.{kind}x2 r, {wide};"), _pairs(kind, one), kind + "x2")
            if kind == "f16":
                add(
                    _half(f"{op}.rn.ftz.f16 r, {of};"),
                    lambda a, b, c, w=flushed: w(*_on("f16", a, b, c)),
                    kind,
                )
                add(_word(f"{op}.rn.sat.f16x2 r, {wide};"), _pairs(kind, sat), "f16x2")
            if op == "fma":
                add(
                    _half(f"fma.rn.relu.{kind} r, {of};"),
                    lambda a, b, c, w=relu, k=kind: w(*_on(k, a, b, c)),
                    kind,
                )
                add(_word(f"fma.rn.relu.{kind}x2 r, {wide};"), _pairs(kind, relu), kind + "x2")
        for largest in (False, True):
            for nan in (False, True):
                name = ("max" if largest else "min") + ".NaN" * nan
                add(
                    _half(f"{name}.{kind} r, %ha, %hb;"),
                    lambda a, b, c, g=largest, n=nan, k=kind: extreme(*_on(k, a, b, c)[:2], k, g, n),
                    kind,
                )
                add(
                    _word(f"{name}.{kind}x2 r, %a, %b;"),
                    _pairs(kind, lambda x, y, z, g=largest, n=nan, k=kind: extreme(x, y, k, g, n)),
                    kind + "x2",
                )
        add(_word(f"neg.{kind}x2 r, %a;"), lambda a, b, c: a ^ 0x80008000, kind + "x2")
        add(_half(f"abs.{kind} r, %ha;"), lambda a, b, c: a & 0x7FFF, kind)
        for order, test in (
            ("lt", lambda x, y: x < y),
            ("geu", lambda x, y: not x < y),
            ("ne", lambda x, y: x != y and x == x and y == y),
        ):
            add(
                _flag(f"setp.{order}.{kind} r, %ha, %hb;"),
                lambda a, b, c, w=test, k=kind: int(w(*_on(k, a, b, c)[:2])),
            )
            add(
                "{ .reg .pred p, q; .reg .b64 x; "
                f"setp.{order}.{kind}x2 p|q, %a, %b; "
                "selp.u64 %out, 1, 0, p; selp.u64 x, 2, 0, q; or.b64 %out, %out, x; }",
                lambda a, b, c, w=test, k=kind: (
                    int(w(*_on(k, a, b, c)[:2])) + 2 * int(w(*_on(k, a >> 16, b >> 16, c)[:2]))
                ),
            )
    add(
        _half("{ .reg .b16 x; ex2.approx.f16 r, %ha; }"),
        lambda a, b, c: rounded(math.inf if f16(a) > 20 else 2.0 ** f16(a), "f16"),
        "f16",
        2.0**-9.9,
    )
    add(_half("tanh.approx.f16 r, %ha;"), lambda a, b, c: rounded(math.tanh(f16(a)), "f16"), "f16", 2.0**-9.9)


def _conversions(add: Callable[..., None]) -> None:
    for how in ("rni", "rzi", "rmi", "rpi"):
        for bits, signed in (
            (8, True),
            (8, False),
            (16, True),
            (16, False),
            (32, True),
            (32, False),
            (64, True),
            (64, False),
        ):
            t = f"{'s' if signed else 'u'}{bits}"

            def right(a, b, c, h=how, n=bits, g=signed):
                value = whole_of(f32(a), h, n, g, False)
                return value & (M64 if n == 64 else M32)

            text = f"cvt.{how}.{t}.f32 r, %fa;"
            add(text.replace(" r,", " %out,") if bits == 64 else _word(text), right)
            if bits >= 32:

                def right64(a, b, c, h=how, n=bits, g=signed):
                    return whole_of(f64(b << 32 | a), h, n, g, True) & (M64 if n == 64 else M32)

                text = f"cvt.{how}.{t}.f64 r, %ea;"
                add(text.replace(" r,", " %out,") if bits == 64 else _word(text), right64)
        add(
            _float(f"cvt.{how}.f32.f32 r, %fa;"),
            lambda a, b, c, h=how: rounded(
                math.copysign(
                    float({"rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil, "rni": round}[h](f32(a))),
                    f32(a),
                )
                if math.isfinite(f32(a))
                else f32(a),
                "f32",
            ),
            "f32",
        )
    for how in ("rn", "rz", "rm", "rp"):
        add(
            _float(f"cvt.{how}.f32.f64 r, %ea;"),
            lambda a, b, c, h=how: rounded(f64(b << 32 | a), "f32", h),
            "f32",
        )
        for t, value in (
            ("s32", lambda a, b: s(a)),
            ("u32", lambda a, b: a),
            ("s64", lambda a, b: s(b << 32 | a, 64)),
            ("u64", lambda a, b: b << 32 | a),
        ):
            of = "%a" if t[1:] == "32" else "%da"
            add(
                _float(f"cvt.{how}.f32.{t} r, {of};"),
                lambda a, b, c, h=how, v=value: rounded(Fraction(v(a, b)), "f32", h),
                "f32",
            )
        for kind in ("f16", "bf16"):
            if how in ("rn", "rz") or kind == "f16":
                add(
                    _half(f"cvt.{how}.{kind}.f32 r, %fa;"),
                    lambda a, b, c, h=how, k=kind: rounded(f32(a), k, h),
                    kind,
                )
    for kind in ("f16", "bf16"):

        def pair(a, b, c, k=kind, h="rn", relu=False):
            def one(v: float) -> int:
                return rounded(v if not relu or v > 0 or v != v else 0.0, k, h)

            return one(f32(a)) << 16 | one(f32(b))

        add(_word(f"cvt.rn.{kind}x2.f32 r, %fa, %fb;"), pair, kind + "x2")
        add(
            _word(f"cvt.rz.{kind}x2.f32 r, %fa, %fb;"),
            lambda a, b, c, w=pair: w(a, b, c, h="rz"),
            kind + "x2",
        )
        add(
            _word(f"cvt.rn.relu.{kind}x2.f32 r, %fa, %fb;"),
            lambda a, b, c, w=pair: w(a, b, c, relu=True),
            kind + "x2",
        )
        add(
            _half(f"cvt.rn.relu.{kind}.f32 r, %fa;"),
            lambda a, b, c, w=pair: w(a, a, c, relu=True) & 0xFFFF,
            kind,
        )
        add(_float(f"cvt.f32.{kind} r, %ha;"), lambda a, b, c, k=kind: rounded(_READ[k](a), "f32"), "f32")
    add(_half("cvt.rn.f16.f64 r, %ea;"), lambda a, b, c: rounded(f64(b << 32 | a), "f16"), "f16")
    add(_half("cvt.rn.f16.s32 r, %a;"), lambda a, b, c: rounded(Fraction(s(a)), "f16"), "f16")
    add(_half("cvt.rn.f16.u16 r, %ha;"), lambda a, b, c: rounded(Fraction(a & 0xFFFF), "f16"), "f16")
    add(_word("cvt.rzi.s32.f16 r, %ha;"), lambda a, b, c: whole_of(f16(a), "rzi", 32, True, False) & M32)
    add(
        _half("cvt.rni.f16.f16 r, %ha;"),
        lambda a, b, c: rounded(
            math.copysign(float(round(f16(a))), f16(a)) if math.isfinite(f16(a)) else f16(a), "f16"
        ),
        "f16",
    )
    add(
        _float("cvt.sat.f32.f32 r, %fa;"),
        lambda a, b, c: rounded(max(0.0, min(1.0, f32(a))) + 0.0 if f32(a) == f32(a) else 0.0, "f32"),
        "f32",
    )
    add(_float("cvt.ftz.f32.f32 r, %fa;"), lambda a, b, c: rounded(flush(f32(a), "f32"), "f32"), "f32")
    add(_double("cvt.f64.f32 r, %fa;"), lambda a, b, c: rounded(f32(a), "f64"), "f64")
    add(_double("cvt.rn.f64.u64 r, %da;"), lambda a, b, c: rounded(Fraction(b << 32 | a), "f64"), "f64")
    for how in ("rna", "rn", "rz"):
        add(
            _word(f"cvt.{how}.tf32.f32 r, %fa;"),
            lambda a, b, c, h=how: rounded(f32(a), "tf32", h) << 13,
            "f32",
        )
    for to, least, most, mask in (
        ("s8", -128, 127, M32),
        ("u8", 0, 255, M32),
        ("s16", -32768, 32767, M32),
        ("u16", 0, 65535, M32),
    ):
        add(
            _word(f"cvt.sat.{to}.s32 r, %a;"),
            lambda a, b, c, i=least, j=most, m=mask: max(i, min(j, s(a))) & m,
        )
        add(_word(f"cvt.sat.{to}.u32 r, %a;"), lambda a, b, c, j=most: min(j, a))
    add(_word("cvt.sat.s32.u32 r, %a;"), lambda a, b, c: min((1 << 31) - 1, a))
    add(_word("cvt.sat.u32.s64 r, %da;"), lambda a, b, c: max(0, min(M32, s(b << 32 | a, 64))))
    add(_word("cvt.sat.s32.u64 r, %da;"), lambda a, b, c: min((1 << 31) - 1, b << 32 | a))
    add(_word("cvt.sat.u32.s32 r, %a;"), lambda a, b, c: max(0, s(a)))
    add("cvt.s64.s32 %out, %a;", lambda a, b, c: s(a) & M64)
    add("cvt.s64.s8 %out, %a;", lambda a, b, c: s(a, 8) & M64)
    add("cvt.u64.u16 %out, %ha;", lambda a, b, c: a & 0xFFFF)
    add(_word("cvt.s32.s16 r, %ha;"), lambda a, b, c: s(a, 16) & M32)


_ORDERS: dict[str, Callable[[float, float], bool]] = {
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y and x == x and y == y,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
    "equ": lambda x, y: x == y or x != x or y != y,
    "neu": lambda x, y: x != y,
    "ltu": lambda x, y: not x >= y,
    "leu": lambda x, y: not x > y,
    "gtu": lambda x, y: not x <= y,
    "geu": lambda x, y: not x < y,
    "num": lambda x, y: x == x and y == y,
    "nan": lambda x, y: x != x or y != y,
}


def _conditions(add: Callable[..., None]) -> None:
    for order, test in _ORDERS.items():
        add(_flag(f"setp.{order}.f32 r, %fa, %fb;"), lambda a, b, c, w=test: int(w(f32(a), f32(b))))
        if order in ("eq", "ne", "lt", "le", "gt", "ge"):
            add(_flag(f"setp.{order}.s32 r, %a, %b;"), lambda a, b, c, w=test: int(w(s(a), s(b))))
            add(_flag(f"setp.{order}.u32 r, %a, %b;"), lambda a, b, c, w=test: int(w(a, b)))
            add(
                _flag(f"setp.{order}.u64 r, %da, %db;"),
                lambda a, b, c, w=test: int(w(b << 32 | a, c << 32 | b)),
            )
            add(_flag(f"setp.{order}.s16 r, %ha, %hb;"), lambda a, b, c, w=test: int(w(s(a, 16), s(b, 16))))
    for order, test in (
        ("lo", lambda x, y: x < y),
        ("ls", lambda x, y: x <= y),
        ("hi", lambda x, y: x > y),
        ("hs", lambda x, y: x >= y),
    ):
        add(_flag(f"setp.{order}.u32 r, %a, %b;"), lambda a, b, c, w=test: int(w(a, b)))
    add(
        _flag("setp.lt.ftz.f32 r, %fa, %fb;"),
        lambda a, b, c: int(flush(f32(a), "f32") < flush(f32(b), "f32")),
    )
    for join, work in (("and", lambda x, y: x & y), ("or", lambda x, y: x | y), ("xor", lambda x, y: x ^ y)):
        add(
            "{ .reg .pred p, q, z; setp.lt.s32 z, %c, 0; "
            f"setp.lt.{join}.s32 p|q, %a, %b, !z; "
            "selp.u64 %out, 1, 0, p; @q add.u64 %out, %out, 2; }",
            lambda a, b, c, w=work: (
                w(int(s(a) < s(b)), int(s(c) >= 0)) + 2 * w(int(s(a) >= s(b)), int(s(c) >= 0))
            ),
        )
    add(_word("set.lt.u32.s32 r, %a, %b;"), lambda a, b, c: M32 if s(a) < s(b) else 0)
    add(_word("set.gt.s32.f32 r, %fa, %fb;"), lambda a, b, c: M32 if f32(a) > f32(b) else 0)
    add(_float("set.le.f32.u32 r, %a, %b;"), lambda a, b, c: 0x3F800000 if a <= b else 0)
    add(_word("slct.s32.s32 r, %a, %b, %c;"), lambda a, b, c: a if s(c) >= 0 else b)
    add(_word("slct.b32.f32 r, %a, %b, %fc;"), lambda a, b, c: a if f32(c) >= 0 else b)
    add(
        "{ .reg .pred p, q; setp.lt.s32 p, %a, 0; setp.lt.s32 q, %b, 0; xor.pred p, p, q; not.pred p, p; "
        "selp.u64 %out, 1, 0, p; }",
        lambda a, b, c: int((a ^ b) >> 31 == 0),
    )
    add(
        "{ .reg .pred p, q; setp.lt.s32 p, %a, 0; mov.pred q, p; selp.b64 %out, %da, %db, q; }",
        lambda a, b, c: b << 32 | a if a >> 31 else c << 32 | b,
    )


def _warps(lanes: Callable[..., None]) -> None:
    """given: a, b and c of the 32 lanes."""

    def everybody(value: Callable[[Sequence[Given]], int]) -> Callable[[Sequence[Given]], Sequence[int]]:
        return lambda given: [value(given)] * 32

    for op, work in (("add", lambda v: sum(v)), ("min", min), ("max", max)):
        lanes(
            _word(f"redux.sync.{op}.u32 r, %a, -1;"),
            everybody(lambda g, w=work: w([a for a, _, _ in g]) & M32),
        )
        lanes(
            _word(f"redux.sync.{op}.s32 r, %a, -1;"),
            everybody(lambda g, w=work: w([s(a) for a, _, _ in g]) & M32),
        )
    for op, start, work in (
        ("and", M32, lambda x, y: x & y),
        ("or", 0, lambda x, y: x | y),
        ("xor", 0, lambda x, y: x ^ y),
    ):

        def folded(g, v=start, w=work):
            for a, _, _ in g:
                v = w(v, a)
            return v

        lanes(_word(f"redux.sync.{op}.b32 r, %a, -1;"), everybody(folded))
    few = "{ .reg .b32 k; and.b32 k, %a, 3; "
    lanes(
        few + "match.any.sync.b32 k, k, -1; cvt.u64.u32 %out, k; }",
        lambda g: [sum((o[0] & 3 == a & 3) << i for i, o in enumerate(g)) for a, _, _ in g],
    )
    lanes(
        "{ .reg .b64 k; .reg .b32 r; and.b64 k, %da, 0x100000001; "
        "match.any.sync.b64 r, k, -1; cvt.u64.u32 %out, r; }",
        lambda g: [
            sum(((o[0] & 1, o[1] & 1) == (a & 1, b & 1)) << i for i, o in enumerate(g)) for a, b, _ in g
        ],
    )
    all_ = (
        "{ .reg .pred p; .reg .b32 k, r; %s match.all.sync.b32 r|p, k, -1; selp.u64 %%out, 1, 0, p; "
        "mul.wide.u32 %%dz, r, 2; add.u64 %%out, %%out, %%dz; }"
    )
    lanes(all_ % "mov.u32 k, 7;", everybody(lambda g: 2 * M32 + 1))
    lanes(
        all_ % "and.b32 k, %a, 1;",
        everybody(lambda g: 2 * M32 + 1 if len({a & 1 for a, _, _ in g}) == 1 else 0),
    )
    odd = "{ .reg .pred p, q; .reg .b32 k, r; and.b32 k, %a, 1; setp.eq.u32 p, k, 1; "

    def odds(g: Sequence[Given]) -> int:
        return sum((a & 1) << i for i, (a, _, _) in enumerate(g))

    lanes(odd + "vote.sync.ballot.b32 r, p, -1; cvt.u64.u32 %out, r; }", everybody(odds))
    lanes(odd + "vote.sync.ballot.b32 r, !p, -1; cvt.u64.u32 %out, r; }", everybody(lambda g: M32 & ~odds(g)))
    for mode, work in (
        ("all", lambda v: v == M32),
        ("any", lambda v: v != 0),
        ("uni", lambda v: v in (0, M32)),
    ):
        lanes(
            odd + f"vote.sync.{mode}.pred q, p, -1; selp.u64 %out, 1, 0, q; }}",
            everybody(lambda g, w=work: int(w(odds(g)))),
        )
    # Among some lanes, which have gone apart from the others.
    some = "{ .reg .pred p, q; .reg .b32 k, m, r; mov.u32 k, %laneid; setp.lt.u32 p, k, 12; @!p bra OTHERS; "
    lanes(
        some + "and.b32 m, %a, 1; setp.eq.u32 q, m, 1; vote.sync.ballot.b32 r, q, 0xfff; activemask.b32 m; "
        "mov.b64 %out, {r, m}; OTHERS: }",
        lambda g: [(odds(g) & 0xFFF) | 0xFFF << 32 if i < 12 else 0 for i in range(32)],
    )
    lanes(
        some + "redux.sync.add.s32 r, %a, 0xfff; cvt.u64.u32 %out, r; OTHERS: }",
        lambda g: [sum(a for a, _, _ in g[:12]) & M32 if i < 12 else 0 for i in range(32)],
    )
    lanes(
        some + "shfl.sync.down.b32 r|q, %a, 3, 31, 0xfff; @!q mov.u32 r, 1; cvt.u64.u32 %out, r; OTHERS: }",
        lambda g: [(g[i + 3][0] if i < 9 else None) if i < 12 else 0 for i in range(32)],
    )

    def shuffled(mode: str, b: int, c: int) -> Callable[[Sequence[Given]], Sequence[int]]:
        def right(g: Sequence[Given]) -> Sequence[int]:
            out = []
            for lane in range(32):
                top, segment = c & 31, c >> 8 & 31
                most, least = (lane & segment) | (top & ~segment), lane & segment
                j, inside = {
                    "up": (lane - b, lane - b >= most),
                    "down": (lane + b, lane + b <= most),
                    "bfly": (lane ^ b, (lane ^ b) <= most),
                    "idx": (least | (b & ~segment & 31), (least | (b & ~segment & 31)) <= most),
                }[mode]
                out.append(g[j if inside else lane][0] | int(inside) << 32)
            return out

        return right

    keep = "{ .reg .pred p; .reg .b32 r, k, m; %s selp.u32 k, 1, 0, p; mov.b64 %%out, {r, k}; }"
    for mode, b, c in (
        ("up", 1, 0),
        ("up", 5, 0x1000),
        ("down", 2, 0x1F),
        ("down", 3, 0x181F),
        ("bfly", 16, 0x1F),
        ("bfly", 5, 0x1C1F),
        ("idx", 9, 0x1F),
        ("idx", 3, 0x1803),
        ("down", 4, 0x0B),
    ):
        lanes(keep % f"shfl.sync.{mode}.b32 r|p, %a, {b}, {c}, -1;", shuffled(mode, b, c))
        lanes(
            keep % f"mov.u32 k, {b}; mov.u32 m, {c}; shfl.sync.{mode}.b32 r|p, %a, k, m, -1;",
            shuffled(mode, b, c),
        )
    lanes(
        odd + "bar.red.popc.u32 r, 0, p; cvt.u64.u32 %out, r; }", everybody(lambda g: bin(odds(g)).count("1"))
    )
    lanes(
        odd + "barrier.cta.red.and.aligned.pred q, 0, !p; selp.u64 %out, 1, 0, q; }",
        everybody(lambda g: int(odds(g) == 0)),
    )
    lanes(
        odd + "bar.red.or.pred q, 0, 32, p; selp.u64 %out, 1, 0, q; }", everybody(lambda g: int(odds(g) != 0))
    )
    lanes(
        "{ .reg .pred p; .reg .b32 r; elect.sync r|p, 0xfffffff0; "
        "selp.u64 %out, 1, 0, p; mul.wide.u32 %dz, r, 2; "
        "add.u64 %out, %out, %dz; }",
        lambda g: [8 + int(i == 4) for i in range(32)],
    )
    lanes(
        "{ .reg .b64 x, y; .reg .pred p; mov.u64 x, %clock64; nanosleep.u32 100; mov.u64 y, %clock64; "
        "setp.ge.u64 p, y, x; selp.u64 %out, 1, 0, p; }",
        everybody(lambda g: 1),
    )
    lanes(
        "{ .reg .b64 x, y; .reg .pred p; mov.u64 x, %globaltimer; "
        "mov.u64 y, %globaltimer; setp.ge.u64 p, y, x; "
        "selp.u64 %out, 1, 0, p; }",
        everybody(lambda g: 1),
    )
    lanes(_word("mov.u32 r, %lanemask_lt;"), lambda g: [(1 << i) - 1 for i in range(32)])
    lanes(_word("mov.u32 r, %lanemask_ge;"), lambda g: [M32 & ~((1 << i) - 1) for i in range(32)])
    # Memory: what is narrower than a register is extended by its type; vectors lie side by side.
    for t, bits, signed in (("s8", 8, True), ("u8", 8, False), ("s16", 16, True), ("u16", 16, False)):
        lanes(
            f"{{ .reg .b32 r; st.shared.b{bits} [%own], %a; ld.shared.{t} r, [%own]; cvt.u64.u32 %out, r; }}",
            lambda g, n=bits, h=signed: [(s(a, n) if h else a & (1 << n) - 1) & M32 for a, _, _ in g],
        )
    lanes(
        "{ .reg .b32 x, y; st.shared.v2.b32 [%own], {%a, %b}; "
        "ld.shared.v2.b32 {x, y}, [%own]; mov.b64 %out, {y, x}; }",
        lambda g: [a << 32 | b for a, b, _ in g],
    )
    lanes(
        "{ .reg .b16 x, y, z, w; st.shared.v4.u16 [%own], {%ha, %hb, %hc, %ha}; "
        "ld.shared.v4.u16 {x, y, z, w}, [%own]; "
        "mov.b64 %out, {w, z, y, x}; }",
        lambda g: [
            a & 0xFFFF | (c & 0xFFFF) << 16 | (b & 0xFFFF) << 32 | (a & 0xFFFF) << 48 for a, b, c in g
        ],
    )
    lanes(
        "{ .reg .b16 x, y; st.shared.v2.u8 [%own], {%ha, %hb}; "
        "ld.shared.v2.u8 {x, y}, [%own]; mov.b64 %out, {x, y, x, y}; }",
        lambda g: [(a & 255) * 0x100000001 | (b & 255) * 0x1000000010000 for a, b, _ in g],
    )
    lanes(
        "{ .reg .b64 x; st.shared.v2.b64 [%own], {%da, %db}; ld.shared.b64 x, [%own+8]; mov.b64 %out, x; }",
        lambda g: [c << 32 | b for _, b, c in g],
    )
    lanes(
        "{ .reg .f32 x, y, z, w; st.shared.v4.f32 [%own], {%fa, %fb, %fc, %fa}; "
        "ld.shared.v4.f32 {x, y, z, w}, [%own]; "
        "mov.b64 %out, {z, w}; }",
        lambda g: [a << 32 | c for a, _, c in g],
    )
    lanes(
        "{ .reg .b32 r; st.shared.b32 [%own], %a; fence.acq_rel.cta; "
        "ld.shared.b32 r, [%own+-0]; cvt.u64.u32 %out, r; }",
        lambda g: [a for a, _, _ in g],
    )
    for op, work in (
        ("add.u32", lambda a, b: a + b & M32),
        ("exch.b32", lambda a, b: b),
        ("min.s32", lambda a, b: min(s(a), s(b)) & M32),
        ("max.u32", max),
        ("and.b32", lambda a, b: a & b),
        ("inc.u32", lambda a, b: 0 if a >= b else a + 1),
        ("dec.u32", lambda a, b: b if a == 0 or a > b else a - 1),
    ):
        lanes(
            f"{{ .reg .b32 x, y; st.shared.b32 [%own], %a; "
            f"atom.shared.{op} x, [%own], %b; ld.shared.b32 y, [%own]; "
            "mov.b64 %out, {x, y}; }",
            lambda g, w=work: [a | w(a, b) << 32 for a, b, _ in g],
        )
    lanes(
        "{ .reg .b32 x, y; st.shared.b32 [%own], %ua; "
        "atom.shared.cas.b32 x, [%own], 3, %b; ld.shared.b32 y, [%own]; "
        "mov.b64 %out, {x, y}; }",
        lambda g: [a & 31 | (b if a & 31 == 3 else a & 31) << 32 for a, b, _ in g],
    )
    lanes(
        "{ .reg .b64 x; st.shared.b64 [%own], %da; atom.shared.add.u64 x, [%own], %db; "
        "ld.shared.b64 %out, [%own]; }",
        lambda g: [(b << 32 | a) + (c << 32 | b) & M64 for a, b, c in g],
    )


SPECIAL = [
    0,
    1,
    2,
    3,
    5,
    31,
    32,
    33,
    63,
    64,
    127,
    128,
    255,
    256,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x10000,
    0x7FFFFFFF,
    0x80000000,
    0x80000001,
    0xFFFFFFFF,
    0xFFFFFFFE,
    0x3F800000,
    0xBF800000,
    0x3F000000,
    0xC0200000,
    0x40200000,
    0x3FC00000,
    0x4B000001,
    0x7F800000,
    0xFF800000,
    0x7FC00000,
    0x00000100,
    0x00800000,
    0x807FFFFF,
    0x7F7FFFFF,
    0x47800000,
    0x477FE000,
    0x477FF000,
    0x38800000,
    0x33800000,
    0x33000001,
    0x387FC000,
    0x3C003C00,
    0xBC007C00,
    0x7E000001,
    0x03FF0400,
    0x80013C01,
    0x3F803F80,
    0x7F807FC0,
    0x0080007F,
    0x4F000000,
    0xCF000000,
    0x5F000000,
    0xDF800000,
    0x43000000,
    0xC3010000,
    0x43808000,
    0x3F7FFFFF,
    0x3F801000,
    0x3F803000,
    0x3F808000,
    0x3F818000,
]


def inputs(seed: int = 1) -> list[list[Given]]:
    """For each block a, b and c of each lane: special values, numbers near each other, and any."""
    draw = random.Random(seed)

    def one() -> int:
        which = draw.random()
        if which < 0.5:
            return draw.choice(SPECIAL)
        if which < 0.75:  # a float of ordinary size
            return draw.getrandbits(1) << 31 | draw.randint(110, 140) << 23 | draw.getrandbits(23)
        return draw.getrandbits(32)

    blocks = [[(one(), one(), one()) for _ in range(THREADS)] for _ in range(BLOCKS)]
    same = one() & ~1
    blocks[0] = [(a & ~1, b, c) for a, b, c in blocks[0]]
    blocks[1] = [(a | 1, b, c) for a, b, c in blocks[1]]
    blocks[2] = [(same, b, b) for _, b, _ in blocks[2]]
    return blocks


HEAD = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry {name}(.param .u64 given, .param .u64 answers)
{{
    .reg .b32 %a, %b, %c, %ua, %own, %t; .reg .f32 %fa, %fb, %fc; .reg .f64 %ea, %eb, %ec;
    .reg .b64 %da, %db, %dc, %dz, %x, %y, %out; .reg .b16 %ha, %hb, %hc;
    .shared .align 16 .b8 room[512];
    ld.param.u64 %x, [given];
    ld.param.u64 %y, [answers];
    mov.u32 %t, %tid.x;
    mov.u32 %own, room;
    mad.lo.u32 %own, %t, 16, %own;
    mov.u32 %ua, %ctaid.x;
    mad.lo.u32 %t, %ua, 32, %t;
    mad.wide.u32 %x, %t, 12, %x;
    mad.wide.u32 %y, %t, 8, %y;
    ld.global.u32 %a, [%x];
    ld.global.u32 %b, [%x+4];
    ld.global.u32 %c, [%x+8];
    and.b32 %ua, %a, 31;
    mov.b32 %fa, %a; mov.b32 %fb, %b; mov.b32 %fc, %c;
    mov.b64 %da, {{%a, %b}}; mov.b64 %db, {{%b, %c}}; mov.b64 %dc, {{%c, %a}};
    mov.b64 %ea, %da; mov.b64 %eb, %db; mov.b64 %ec, %dc;
    cvt.u16.u32 %ha, %a; cvt.u16.u32 %hb, %b; cvt.u16.u32 %hc, %c;
"""


def wrong(rows: Sequence[Row], got: np.ndarray, given: Sequence[Sequence[Given]]) -> list[str]:
    """Of each row whose answers (rows, blocks, lanes) are not the manual's, its text and the first that is
    wrong."""
    found = []
    for row, answers in zip(rows, got.tolist(), strict=True):
        for block, values in zip(given, answers, strict=True):
            right = row.warp(block) if row.warp else [row.right(*each) for each in block] if row.right else []
            for lane, (its, wanted) in enumerate(zip(values, right, strict=True)):
                if wanted is not None and differs(row, its, wanted):
                    a, b, c = block[lane]
                    found.append(f"{row.text}: of {a:#x}, {b:#x}, {c:#x} {its:#x}, not {wanted:#x}")
                    break
            else:
                continue
            break
    return found


def text(rows: Sequence[Row], name: str = "rows") -> str:
    """One kernel of all rows."""
    body = [HEAD.format(name=name)]
    for n, row in enumerate(rows):
        own = row.text.replace("SKIP", f"$skip{n}").replace("OTHERS", f"$others{n}")
        body.append(
            f"    mov.u64 %out, 0;\n    {own}\n    st.global.u64 [%y+{8 * THREADS * BLOCKS * n}], %out;"
        )
    return "\n".join([*body, "    ret;\n}\n"])


def differs(row: Row, got: int, right: int) -> bool:
    kind = row.kind.removesuffix("x2")
    if row.kind.endswith("x2"):
        return any(differs(Row("", kind=kind), got >> i & 0xFFFF, right >> i & 0xFFFF) for i in (0, 16))
    if kind == "bits":
        return got != right
    x, y = _READ[kind](got), _READ[kind](right)
    if math.isnan(x) and math.isnan(y):
        return False
    if row.off and math.isfinite(x) and math.isfinite(y):
        return abs(x - y) > row.off * max(abs(y), row.least)
    return got != right
