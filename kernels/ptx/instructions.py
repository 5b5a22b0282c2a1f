"""What each instruction of PTX is in LLVM, by families (PTX ISA 9.0, chapter "Instruction Set").

Rounding is IEEE's: to the nearest natively, other directions of float32 through float64 with the error of the
sum (`_directed`). Approximate functions err about as much as PTX allows (`_approximate`, `machine.function`):
a kernel that needs their last digits is found to be wrong. A device errs elsewhere within the same bounds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kernels.ptx import machine, products
from kernels.ptx.lacking import missing
from kernels.ptx.reader import Instruction, Operand, PtxError
from kernels.ptx.translate import BITS, TYPES, WHOLE, Handler, Translator

_CACHES = {"ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "weak"}
_STRONG = {"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"}
_SCOPES = {"cta", "cluster", "gpu", "sys", "gl"}
_SPACES = {
    "global": machine.GLOBAL, "const": machine.GLOBAL, "shared": machine.SHARED, "local": machine.LOCAL,
    "param": machine.PARAM,
}  # fmt: skip
_NO_RESULT = {
    "cp",
    "st",
    "red",
    "bar",
    "barrier",
    "membar",
    "fence",
    "bra",
    "ret",
    "exit",
    "prefetch",
    "griddepcontrol",
    "stmatrix",
}
_NO_STATE = {"init", "inval", "expect_tx", "complete_tx"}  # what mbarriers do that gives nothing


class Table:
    """The handlers by the first word of an instruction."""

    def __init__(self) -> None:
        self.handlers: dict[str, Handler] = {}

    def of(self, *names: str):
        def kept(handler: Handler) -> Handler:
            for name in names:
                self.handlers[name] = handler
            return handler

        return kept

    def handler(self, instruction: Instruction) -> Handler | None:
        return self.handlers.get(instruction.op[0])

    @staticmethod
    def results(instruction: Instruction) -> int:
        """How many of the first operands it writes."""
        if instruction.op[0] == "mbarrier" and {*instruction.op[1:2]} <= _NO_STATE:
            return 0
        return 0 if instruction.op[0] in _NO_RESULT or instruction.op[:2] == ("wmma", "store") else 1

    @staticmethod
    def adds(instruction: Instruction) -> bool:
        return instruction.op[:2] == ("wgmma", "mma_async")

    @staticmethod
    def wait(t: Translator, instruction: Instruction) -> None:
        _wait(t, instruction)

    @staticmethod
    def barred(t: Translator, instruction: Instruction) -> None:
        _barred(t, instruction)


TABLE = Table()


def _type(t: Translator, part: str) -> tuple[str, bool, bool]:
    """(LLVM's type, signed, float) of a word of an instruction."""
    if part not in TYPES:
        raise missing(t.here)
    return TYPES[part], part[0] == "s", part[0] == "f" and part[1:] in ("32", "64")


def _only(t: Translator, *allowed: str) -> None:
    """Refuse what an instruction says that is not understood here."""
    for part in t.here.op[1:]:
        if part not in allowed and part not in TYPES:
            raise missing(t.here)


def _count(t: Translator, *counts: int) -> Sequence[Operand]:
    if len(t.here.operands) not in counts:
        raise PtxError(f"PTX line {t.here.line}: {t.here.words} has {len(t.here.operands)} operands")
    return t.here.operands


# --- half precision ---


def _widened(t: Translator, value: str, part: str) -> str:
    """float32 of 16 bits."""
    if part == "f16":
        return t.cast("fpext", t.cast("bitcast", value, "i16", "half"), "half", "float")
    bits = t.two("shl", "i32", t.cast("zext", value, "i16", "i32"), "splat (i32 16)")
    return t.cast("bitcast", bits, "i32", "float")


def _narrowed(t: Translator, value: str, part: str) -> str:
    """16 bits of float32, rounded to the nearest."""
    if part == "f16":
        return t.cast("bitcast", t.cast("fptrunc", value, "float", "half"), "half", "i16")
    bits = t.cast("bitcast", value, "float", "i32")
    odd = t.two("and", "i32", t.two("lshr", "i32", bits, "splat (i32 16)"), "splat (i32 1)")
    rounded = t.two("add", "i32", bits, t.two("add", "i32", odd, "splat (i32 32767)"))
    nan = t.emit(f"fcmp uno <32 x float> {value}, {value}")
    rounded = t.select(nan, "i32", "splat (i32 2147418112)", rounded)
    return t.cast("trunc", t.two("lshr", "i32", rounded, "splat (i32 16)"), "i32", "i16")


def _half_directed(t: Translator, value: str, part: str, how: str) -> str:
    """16 bits of float32, rounded towards zero (rz), down (rm) or up (rp)."""
    near = _narrowed(t, value, part)
    back = _widened(t, near, part)
    negative = t.emit(f"icmp slt <32 x i16> {near}, zeroinitializer")
    nothing = t.emit(f"icmp eq <32 x i16> {t.two('and', 'i16', near, 'splat (i16 32767)')}, zeroinitializer")
    inward, outward = (t.two(o, "i16", near, "splat (i16 1)") for o in ("sub", "add"))
    above = t.emit(f"fcmp ogt <32 x float> {back}, {value}")
    below = t.emit(f"fcmp olt <32 x float> {back}, {value}")
    if how == "rz":
        return t.select(t.select(negative, "i1", below, above), "i16", inward, near)
    if how == "rm":
        down = t.select(negative, "i16", outward, inward)
        return t.select(above, "i16", t.select(nothing, "i16", "splat (i16 -32767)", down), near)
    up = t.select(negative, "i16", inward, outward)
    return t.select(below, "i16", t.select(nothing, "i16", "splat (i16 1)", up), near)


def _to_odd(t: Translator, value: str) -> str:
    """float32 of float64, of which the last bit says whether it is exact: it can be rounded once more."""
    near = t.cast("fptrunc", value, "double", "float")
    back = t.cast("fpext", near, "float", "double")
    exact = t.emit(f"fcmp ueq <32 x double> {back}, {value}")
    larger = t.emit(
        f"fcmp ogt <32 x double> {t.vector('fabs', 'double', back)}, {t.vector('fabs', 'double', value)}"
    )
    bits = t.cast("bitcast", near, "float", "i32")
    lower = t.select(larger, "i32", t.two("sub", "i32", bits, "splat (i32 1)"), bits)
    odd = t.two("or", "i32", lower, "splat (i32 1)")
    return t.cast("bitcast", t.select(exact, "i32", bits, odd), "i32", "float")


def _half_flushed(t: Translator, value: str) -> str:
    """Numbers too small to be normal as float16 as zeros of their sign."""
    least = t.splat("float", 0x38800000)
    small = t.emit(f"fcmp olt <32 x float> {t.vector('fabs', 'float', value)}, {least}")
    return t.select(small, "float", t.vector("copysign", "float", t.splat("float", 0), value), value)


def _without_negative(t: Translator, value: str) -> str:
    """.relu: no less than zero; what is no number stays so."""
    keep = t.emit(f"fcmp ugt <32 x float> {value}, {t.splat('float', 0)}")
    return t.select(keep, "float", value, t.splat("float", 0))


def _in_halves(t: Translator, part: str, exactly, *operands: Operand) -> None:
    """exactly(values as float32) → float32, on one or two numbers of 16 bits, with .ftz, .sat and .relu."""
    kind = part.removesuffix("x2")
    modes = set(t.here.op)

    def work(*values: str) -> str:
        if "ftz" in modes and kind == "f16":
            values = tuple(_half_flushed(t, v) for v in values)
        value = exactly(*values)
        if "ftz" in modes and kind == "f16":
            value = _half_flushed(t, _widened(t, _narrowed(t, value, kind), kind))
        if "sat" in modes:
            value = _saturated(t, value, "float")
        return _without_negative(t, value) if "relu" in modes else value

    if part == kind:
        values = [_widened(t, t.get(o, "i16"), kind) for o in operands]
        t.put(t.here.operands[0], _narrowed(t, work(*values), kind), "i16")
        return
    whole = [t.get(o, "i32") for o in operands]
    result = ""
    for shift in (0, 16):
        shifted = [t.two("lshr", "i32", w, f"splat (i32 {shift})") if shift else w for w in whole]
        values = [_widened(t, t.cast("trunc", w, "i32", "i16"), kind) for w in shifted]
        bits = t.cast("zext", _narrowed(t, work(*values), kind), "i16", "i32")
        result = t.two("or", "i32", result, t.two("shl", "i32", bits, "splat (i32 16)")) if shift else bits
    t.put(t.here.operands[0], result, "i32")


# --- rounding ---


def _flushed(t: Translator, value: str, kind: str = "float") -> str:
    """Numbers too small to be normal as zeros of their sign."""
    if kind != "float":
        return value
    small = t.emit(
        f"fcmp olt <32 x float> {t.vector('fabs', 'float', value)}, {t.splat('float', 0x00800000)}"
    )
    zero = t.vector("copysign", "float", t.splat("float", 0), value)
    return t.select(small, "float", zero, value)


def _saturated(t: Translator, value: str, kind: str) -> str:
    one = t.splat(kind, 0x3F800000 if kind == "float" else 0x3FF0000000000000)
    zero = t.splat(kind, 0)
    above = t.emit(f"fcmp ogt <32 x {kind}> {value}, {zero}")  # not a NaN either
    value = t.select(above, kind, value, zero)
    over = t.emit(f"fcmp ogt <32 x {kind}> {value}, {one}")
    return t.select(over, kind, one, value)


def _directed(t: Translator, exact: str, error: str, how: str) -> str:
    """float32 of `exact` + `error` (float64, the second far smaller) rounded towards zero (rz), down (rm)
    or up (rp)."""
    near = t.cast("fptrunc", exact, "double", "float")
    back = t.cast("fpext", near, "float", "double")
    zero = t.splat("double", 0)
    same = t.emit(f"fcmp oeq <32 x double> {back}, {exact}")

    def beyond(order: str) -> str:
        """Whether the rounded one is above (ogt), or below, what it stands for."""
        apart = t.emit(f"fcmp {order} <32 x double> {back}, {exact}")
        rest = t.emit(f"fcmp {'olt' if order == 'ogt' else 'ogt'} <32 x double> {error}, {zero}")
        return t.two("or", "i1", apart, t.two("and", "i1", same, rest))

    bits = t.cast("bitcast", near, "float", "i32")
    negative = t.emit(f"icmp slt <32 x i32> {bits}, zeroinitializer")
    nothing = t.emit(f"fcmp oeq <32 x float> {near}, {t.splat('float', 0)}")
    inward = t.two("sub", "i32", bits, "splat (i32 1)")
    outward = t.two("add", "i32", bits, "splat (i32 1)")
    down = t.select(nothing, "i32", "splat (i32 -2147483647)", t.select(negative, "i32", outward, inward))
    up = t.select(nothing, "i32", "splat (i32 1)", t.select(negative, "i32", inward, outward))
    if how == "rm":
        chosen = t.select(beyond("ogt"), "i32", down, bits)
    elif how == "rp":
        chosen = t.select(beyond("olt"), "i32", up, bits)
    else:
        away = t.select(negative, "i1", beyond("olt"), beyond("ogt"))
        chosen = t.select(away, "i32", inward, bits)
    return t.cast("bitcast", chosen, "i32", "float")


def _directed_double(t: Translator, near: str, error: str, how: str) -> str:
    """float64 of `near`, the nearest, + `error`, what it lacks, rounded towards zero, down or up."""
    zero = t.splat("double", 0)
    less = t.emit(f"fcmp olt <32 x double> {error}, {zero}")  # near is above what it stands for
    more = t.emit(f"fcmp ogt <32 x double> {error}, {zero}")
    bits = t.cast("bitcast", near, "double", "i64")
    negative = t.emit(f"icmp slt <32 x i64> {bits}, zeroinitializer")
    inward, outward = (t.two(o, "i64", bits, "splat (i64 1)") for o in ("sub", "add"))
    if how == "rz":
        chosen = t.select(t.select(negative, "i1", more, less), "i64", inward, bits)
    elif how == "rm":
        chosen = t.select(less, "i64", t.select(negative, "i64", outward, inward), bits)
    else:
        chosen = t.select(more, "i64", t.select(negative, "i64", inward, outward), bits)
    return t.cast("bitcast", chosen, "i64", "double")


def _lacking(t: Translator, a: str, b: str, near: str) -> str:
    """A number of the sign of a · b − near. Of what is too small to have bits for it, 2¹²⁰⁰ times as much."""

    def larger(value: str) -> str:
        many = t.splat("double", 0x6570000000000000)  # 2⁶⁰⁰
        return t.two("fmul", "double", t.two("fmul", "double", value, many), many)

    def size(value: str) -> str:
        return t.vector("fabs", "double", value)

    first = t.emit(f"fcmp olt <32 x double> {size(a)}, {size(b)}")
    small, other = (t.select(first, "double", *pair) for pair in ((a, b), (b, a)))
    plain = t.vector("fma", "double", a, b, t.one("fneg", "double", near))
    more = t.vector("fma", "double", larger(small), other, t.one("fneg", "double", larger(near)))
    tiny = t.emit(f"fcmp olt <32 x double> {size(near)}, {t.splat('double', 0x0DF0000000000000)}")  # 2⁻⁸⁰⁰
    return t.select(tiny, "double", more, plain)


def _zero_downwards(t: Translator, value: str, a: str, b: str, kind: str) -> str:
    """A sum that is zero is minus zero where it is rounded down, but that of two plus zeros."""
    whole = WHOLE[kind]
    zero = t.emit(f"fcmp oeq <32 x {kind}> {value}, {t.splat(kind, 0)}")
    none = t.two("or", whole, t.cast("bitcast", a, kind, whole), t.cast("bitcast", b, kind, whole))
    some = t.emit(f"icmp ne <32 x {whole}> {none}, zeroinitializer")
    minus = t.splat(kind, 1 << BITS[kind] - 1)
    return t.select(t.two("and", "i1", zero, some), kind, minus, value)


def _sum_with_error(t: Translator, a: str, b: str) -> tuple[str, str]:
    """Knuth's sum: a + b in float64, and what that lacks."""
    whole = t.two("fadd", "double", a, b)
    part = t.two("fsub", "double", whole, a)
    left = t.two("fsub", "double", a, t.two("fsub", "double", whole, part))
    return whole, t.two("fadd", "double", left, t.two("fsub", "double", b, part))


def _float(t: Translator, work, *operands: Operand) -> None:
    """An operation of float32 or float64, with .ftz and .sat."""
    op = t.here.op
    kind = TYPES[op[-1]]
    values = [t.get(o, kind) for o in operands]
    flush = "ftz" in op
    if flush:
        values = [_flushed(t, v, kind) for v in values]
    value = work(kind, *values)
    if flush:
        value = _flushed(t, value, kind)
    if "sat" in op:
        value = _saturated(t, value, kind)
    t.put(t.here.operands[0], value, kind)


def _rounding(t: Translator) -> str:
    return next((p for p in t.here.op if p in ("rn", "rz", "rm", "rp")), "rn")


# --- add, sub, mul, fma ---


@TABLE.of("add", "sub", "mul", "fma", "mad", "madc")
def _arithmetic(t: Translator, i: Instruction) -> None:
    op, part = i.op, i.op[-1]
    first = op[0]
    if part in ("f16", "bf16", "f16x2", "bf16x2"):
        _only(t, "rn", "relu", *("ftz", "sat") if "bf16" not in part else ())
        _half_arithmetic(t, i)
    elif part in ("u16x2", "s16x2"):
        _only(t, "u16x2", "s16x2")
        if first != "add":
            raise missing(i)
        _in_two(t, lambda a, b: t.two("add", "i16", a, b), *_count(t, 3)[1:])
    elif part in ("f32", "f64"):
        _only(t, "rn", "rz", "rm", "rp", "ftz", "sat")
        _count(t, 4 if first in ("fma", "mad") else 3)
        _float(t, lambda kind, *v: _float_arithmetic(t, first, kind, v), *i.operands[1:])
    else:
        _integer_arithmetic(t, i)


def _half_arithmetic(t: Translator, i: Instruction) -> None:
    first = i.op[0]
    if first in ("fma", "mad"):

        def fused(a: str, b: str, c: str) -> str:
            wide = [t.cast("fpext", v, "float", "double") for v in (a, b, c)]
            return _to_odd(t, t.vector("fma", "double", *wide))

        _in_halves(t, i.op[-1], fused, *_count(t, 4)[1:])
        return
    name = {"add": "fadd", "sub": "fsub", "mul": "fmul"}[first]
    _in_halves(t, i.op[-1], lambda a, b: t.two(name, "float", a, b), *_count(t, 3)[1:])


def _float_arithmetic(t: Translator, first: str, kind: str, v: Sequence[str]) -> str:
    how = _rounding(t)
    if how == "rn":
        if first in ("fma", "mad"):
            return t.vector("fma", kind, *v)
        return t.two({"add": "fadd", "sub": "fsub", "mul": "fmul"}[first], kind, v[0], v[1])
    if kind != "float":
        a, b = v[0], v[1]
        if first == "mul":
            near = t.two("fmul", kind, a, b)
            return _directed_double(t, near, _lacking(t, a, b, near), how)
        if first not in ("add", "sub"):
            raise missing(t.here)
        b = t.one("fneg", kind, b) if first == "sub" else b
        value = _directed_double(t, *_sum_with_error(t, a, b), how)
        return _zero_downwards(t, value, a, b, kind) if how == "rm" else value
    wide = [t.cast("fpext", x, "float", "double") for x in v]
    if first == "mul":
        return _directed(t, t.two("fmul", "double", wide[0], wide[1]), t.splat("double", 0), how)
    if first in ("fma", "mad"):
        a, b = t.two("fmul", "double", wide[0], wide[1]), wide[2]
    else:
        a, b = wide[0], t.one("fneg", "double", wide[1]) if first == "sub" else wide[1]
    value = _directed(t, *_sum_with_error(t, a, b), how)
    if how != "rm":
        return value
    left, right = (t.cast("fptrunc", x, "double", "float") for x in (a, b))
    return _zero_downwards(t, value, left, right, "float")


def _in_two(t: Translator, work, *operands: Operand) -> None:
    """work(values of 16 bits) on both halves of 32."""
    values = [t.get(o, "i32") for o in operands]
    low = work(*(t.cast("trunc", v, "i32", "i16") for v in values))
    tops = (t.two("lshr", "i32", v, "splat (i32 16)") for v in values)
    high = work(*(t.cast("trunc", v, "i32", "i16") for v in tops))
    top = t.two("shl", "i32", t.cast("zext", high, "i16", "i32"), "splat (i32 16)")
    t.put(t.here.operands[0], t.two("or", "i32", top, t.cast("zext", low, "i16", "i32")), "i32")


def _integer_arithmetic(t: Translator, i: Instruction) -> None:
    op, operands = i.op, i.operands
    first, part = op[0], op[-1]
    kind, signed, _ = _type(t, part)
    if kind not in ("i16", "i32", "i64"):
        raise missing(i)
    if first in ("add", "sub"):
        _count(t, 3)
        a, b = (t.get(o, kind, signed) for o in operands[1:])
        if "cc" in op:
            _only(t, "cc")
            t.put(operands[0], _carried(t, first, kind, a, b, ""), kind)
            return
        _only(t, "sat")
        if "sat" in op:
            t.put(operands[0], t.vector("sadd.sat" if first == "add" else "ssub.sat", kind, a, b), kind)
        else:
            t.put(operands[0], t.two(first, kind, a, b), kind)
        return
    _only(t, "lo", "hi", "wide", *("cc",) if first in ("mad", "madc") else ())
    _count(t, 3 if first == "mul" else 4)
    a, b = (t.get(o, kind, signed) for o in operands[1:3])
    wide = f"i{2 * BITS[kind]}"
    if "wide" in op:
        extend = "sext" if signed else "zext"
        value, kind = t.two("mul", wide, t.cast(extend, a, kind, wide), t.cast(extend, b, kind, wide)), wide
    elif "hi" in op:
        extend = "sext" if signed else "zext"
        product = t.two("mul", wide, t.cast(extend, a, kind, wide), t.cast(extend, b, kind, wide))
        value = t.cast("trunc", t.two("lshr", wide, product, f"splat ({wide} {BITS[kind]})"), wide, kind)
    else:
        value = t.two("mul", kind, a, b)
    if first == "madc" or "cc" in op:
        if first == "madc" and not t.carry:
            raise missing(i)
        before, carry = t.carry, t.carry if first == "madc" else ""
        value = _carried(t, "add", kind, value, t.get(operands[3], kind, signed), carry)
        t.carry = t.carry if "cc" in op else before
    elif first in ("mad", "fma"):
        value = t.two("add", kind, value, t.get(operands[3], kind, signed))
    t.put(operands[0], value, kind)


@TABLE.of("mul24", "mad24")
def _of_24_bits(t: Translator, i: Instruction) -> None:
    _only(t, "lo", "hi")
    _, x, y, *more = _count(t, 3 if i.op[0] == "mul24" else 4)
    kind, signed, _ = _type(t, i.op[-1])
    if kind != "i32" or ("hi" in i.op and "sat" in i.op):
        raise missing(i)
    down = "ashr" if signed else "lshr"
    factors = []
    for operand in (x, y):
        up = t.two("shl", "i32", t.get(operand, "i32"), "splat (i32 8)")
        low = t.two(down, "i32", up, "splat (i32 8)")
        factors.append(t.cast("sext" if signed else "zext", low, "i32", "i64"))
    product = t.two("mul", "i64", *factors)
    if "hi" in i.op:
        product = t.two("lshr", "i64", product, "splat (i64 16)")
    value = t.cast("trunc", product, "i64", "i32")
    if more:
        value = t.two("add", "i32", value, t.get(more[0], "i32"))
    t.put(i.operands[0], value, "i32")


def _carried(t: Translator, first: str, kind: str, a: str, b: str, carry: str) -> str:
    """a ± b ± carry, and the carry kept."""
    name = "add" if first.startswith("add") else "sub"
    value = t.two(name, kind, a, b)
    order = "ult" if name == "add" else "ugt"
    over = t.emit(f"icmp {order} <32 x {kind}> {value}, {a}")
    if carry:
        one = t.cast("zext", carry, "i1", kind)
        more = t.two(name, kind, value, one)
        over = t.two("or", "i1", over, t.emit(f"icmp {order} <32 x {kind}> {more}, {value}"))
        value = more
    t.carry = over
    return value


@TABLE.of("addc", "subc")
def _with_carry(t: Translator, i: Instruction) -> None:
    _only(t, "cc")
    kind, signed, _ = _type(t, i.op[-1])
    _, x, y = _count(t, 3)
    if not t.carry:
        raise missing(i)
    a, b, before = t.get(x, kind, signed), t.get(y, kind, signed), t.carry
    value = _carried(t, i.op[0], kind, a, b, before)
    t.carry = t.carry if "cc" in i.op else before
    t.put(i.operands[0], value, kind)


def _through_double(t: Translator, kind: str, work, *values: str) -> str:
    """A quotient or a root of float32 in the direction that is asked for. In float64 it is nearer to what it
    stands for than a float32 that is not equal to it can be."""
    how = _rounding(t)
    if how == "rn":
        return work(kind, *values)
    if kind != "float":
        raise missing(t.here)
    wide = work("double", *(t.cast("fpext", v, "float", "double") for v in values))
    return _directed(t, wide, t.splat("double", 0), how)


def _widened_all(t: Translator, values: Sequence[str]) -> list[str]:
    return [t.cast("fpext", value, "float", "double") for value in values]


def _approximate(t: Translator, exact: str) -> str:
    """float32 of float64, cut: off by less than one unit in the last place, where the nearest is off by half
    of one. PTX allows 1 of rcp.approx, 2 of div.approx and div.full, 2⁻²³ of sqrt.approx and 2⁻²²·⁹ of
    rsqrt.approx, relative to the result."""
    bits = t.cast("bitcast", exact, "double", "i64")
    cut = t.two("and", "i64", bits, t.splat("i64", -(1 << 29)))
    return t.cast("fptrunc", t.cast("bitcast", cut, "i64", "double"), "double", "float")


@TABLE.of("div", "rem")
def _division(t: Translator, i: Instruction) -> None:
    d, x, y = _count(t, 3)
    kind, signed, real = _type(t, i.op[-1])
    first = i.op[0]
    if real:
        _only(t, "rn", "rz", "rm", "rp", "approx", "full", "ftz")
        if first != "div":
            raise missing(i)
        if {"approx", "full"} & {*i.op} and kind == "float":
            _float(t, lambda _, *v: _approximate(t, t.two("fdiv", "double", *_widened_all(t, v))), x, y)
        else:
            _float(t, lambda k, a, b: _through_double(t, k, lambda w, *v: t.two("fdiv", w, *v), a, b), x, y)
        return
    _only(t)
    a, b = t.get(x, kind, signed), t.get(y, kind, signed)
    if kind == "i64":
        t.store_slot(0, a, "i64")
        t.store_slot(1, b, "i64")
        which = machine.DIV if first == "div" else machine.REM
        t.machine("divide", machine.pack(t.site(), 8, 1, which, int(signed)))
        t.put(d, t.load_slot(2, "i64"), "i64")
        return
    if kind not in ("i16", "i32"):
        raise missing(i)
    # A quotient of 32 bits by 32 bits is exact in float64 up to the point.
    none = t.emit(f"icmp eq <32 x {kind}> {b}, zeroinitializer")
    by = t.select(none, kind, f"splat ({kind} 1)", b)
    s = "s" if signed else "u"
    quotient = t.two(
        "fdiv", "double", t.cast(f"{s}itofp", a, kind, "double"), t.cast(f"{s}itofp", by, kind, "double")
    )
    whole = t.cast("fptosi", quotient, "double", "i64")
    result = t.cast("trunc", whole, "i64", kind)
    if first == "rem":
        result = t.select(none, kind, a, t.two("sub", kind, a, t.two("mul", kind, result, by)))
    else:
        result = t.select(none, kind, f"splat ({kind} -1)", result)
    t.put(d, result, kind, signed)


@TABLE.of("neg", "abs")
def _sign(t: Translator, i: Instruction) -> None:
    _only(t, "ftz")
    d, x = _count(t, 2)
    part, first = i.op[-1], i.op[0]
    if part in ("f16", "bf16", "f16x2", "bf16x2"):
        kind = TYPES[part]
        flip = 0x8000 if kind == "i16" else 0x80008000
        value = t.get(x, kind)
        if first == "neg":
            t.put(d, t.two("xor", kind, value, t.splat(kind, flip)), kind)
        else:
            t.put(d, t.two("and", kind, value, t.splat(kind, ~flip)), kind)
        return
    kind, signed, real = _type(t, part)
    if real:
        _float(t, lambda k, a: t.one("fneg", k, a) if first == "neg" else t.vector("fabs", k, a), x)
        return
    value = t.get(x, kind, signed)
    negative = t.two("sub", kind, "zeroinitializer", value)
    if first == "abs":
        negative = t.select(t.emit(f"icmp slt <32 x {kind}> {value}, zeroinitializer"), kind, negative, value)
    t.put(d, negative, kind, signed)


@TABLE.of("min", "max")
def _extreme(t: Translator, i: Instruction) -> None:
    first, part = i.op[0], i.op[-2] if i.op[-1] == "relu" else i.op[-1]
    _only(t, "ftz", "NaN", "u16x2", "s16x2", *("relu",) if part in ("s32", "s16x2") else ())
    _, x, y = _count(t, 3)
    name = f"{first}imum" + ("" if "NaN" in i.op else "num")
    if part in ("f16", "bf16", "f16x2", "bf16x2"):
        _in_halves(t, part, lambda a, b: t.vector(name, "float", a, b), x, y)
        return
    if part in ("u16x2", "s16x2"):

        def of_two(a: str, b: str) -> str:
            value = t.vector(part[0] + first, "i16", a, b)
            return t.vector("smax", "i16", value, "zeroinitializer") if "relu" in i.op else value

        _in_two(t, of_two, x, y)
        return
    kind, signed, real = _type(t, part)
    if real:
        _float(t, lambda k, a, b: t.vector(name, k, a, b), x, y)
        return
    a, b = t.get(x, kind, signed), t.get(y, kind, signed)
    value = t.vector(("s" if signed else "u") + first, kind, a, b)
    if "relu" in i.op:
        value = t.vector("smax", kind, value, "zeroinitializer")
    t.put(i.operands[0], value, kind, signed)


@TABLE.of("sad")
def _absolute_difference(t: Translator, i: Instruction) -> None:
    _only(t)
    d, x, y, z = _count(t, 4)
    kind, signed, _ = _type(t, i.op[-1])
    a, b, c = (t.get(o, kind, signed) for o in (x, y, z))
    s = "s" if signed else "u"
    apart = t.two("sub", kind, t.vector(s + "max", kind, a, b), t.vector(s + "min", kind, a, b))
    t.put(d, t.two("add", kind, c, apart), kind)


@TABLE.of("dp4a")
def _products_of_bytes(t: Translator, i: Instruction) -> None:
    d, x, y, z = _count(t, 4)
    _only(t)
    a, b, total = t.get(x, "i32"), t.get(y, "i32"), t.get(z, "i32")
    for byte in range(4):
        values = []
        for value, part in ((a, i.op[1]), (b, i.op[2])):
            up = t.two("shl", "i32", value, f"splat (i32 {24 - 8 * byte})") if byte < 3 else value
            values.append(t.two("ashr" if part == "s32" else "lshr", "i32", up, "splat (i32 24)"))
        total = t.two("add", "i32", total, t.two("mul", "i32", *values))
    t.put(d, total, "i32")


_SIMD = {"vadd": "add", "vsub": "sub", "vavrg": "avrg", "vabsdiff": "apart", "vmin": "min", "vmax": "max"}


@TABLE.of(*(f"{name}{count}" for name in _SIMD for count in (2, 4)))
def _several_at_once(t: Translator, i: Instruction) -> None:
    """vadd2, vabsdiff4 and so on: of two halves or four bytes of 32 bits, which may be added up (.add)."""
    d, x, y, z = _count(t, 4)
    first, count = _SIMD[i.op[0][:-1]], int(i.op[0][-1])
    kinds = [word for word in i.op[1:] if word in ("s32", "u32")]
    if len(kinds) != 3 or {*i.op[1:]} - {"s32", "u32", "sat", "add"} or ("sat" in i.op and "add" in i.op):
        raise missing(i)
    bits = 32 // count
    a, b, c = (t.get(o, "i32") for o in (x, y, z))
    result, total = "zeroinitializer", c
    for n in range(count):
        pair = []
        for value, kind in ((a, kinds[1]), (b, kinds[2])):
            left = 32 - bits * (n + 1)
            up = t.two("shl", "i32", value, f"splat (i32 {left})") if left else value
            pair.append(t.two("ashr" if kind == "s32" else "lshr", "i32", up, f"splat (i32 {32 - bits})"))
        if first in ("add", "sub"):
            value = t.two(first, "i32", *pair)
        elif first == "avrg":
            more = t.two("add", "i32", t.two("add", "i32", *pair), "splat (i32 1)")
            value = t.two("ashr", "i32", more, "splat (i32 1)")
        elif first == "apart":
            value = t.two("sub", "i32", t.vector("smax", "i32", *pair), t.vector("smin", "i32", *pair))
        else:
            value = t.vector(f"s{first}", "i32", *pair)
        if "sat" in i.op:
            signed = kinds[0] == "s32"
            least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
            value = t.vector(
                "smax", "i32", t.vector("smin", "i32", value, f"splat (i32 {most})"), f"splat (i32 {least})"
            )
        total = t.two("add", "i32", total, value)
        cut = t.two("and", "i32", value, f"splat (i32 {(1 << bits) - 1})")
        placed = t.two("shl", "i32", cut, f"splat (i32 {bits * n})") if n else cut
        result = t.two("or", "i32", result, placed)
    t.put(d, total if "add" in i.op else result, "i32")


@TABLE.of("dp2a")
def _products_of_two(t: Translator, i: Instruction) -> None:
    d, x, y, z = _count(t, 4)
    if len(i.op) != 4 or i.op[1] not in ("lo", "hi") or not {*i.op[2:]} <= {"s32", "u32"}:
        raise missing(i)
    a, b, total = t.get(x, "i32"), t.get(y, "i32"), t.get(z, "i32")
    for n in range(2):
        values = []
        byte = n + 2 * (i.op[1] == "hi")
        for value, part, bits, at in ((a, i.op[2], 16, 16 * n), (b, i.op[3], 8, 8 * byte)):
            left = 32 - bits - at
            up = t.two("shl", "i32", value, f"splat (i32 {left})") if left else value
            values.append(t.two("ashr" if part == "s32" else "lshr", "i32", up, f"splat (i32 {32 - bits})"))
        total = t.two("add", "i32", total, t.two("mul", "i32", *values))
    t.put(d, total, "i32")


# --- functions ---


@TABLE.of("rcp", "sqrt", "rsqrt")
def _roots(t: Translator, i: Instruction) -> None:
    _only(t, "rn", "rz", "rm", "rp", "approx", "ftz")
    d, x = _count(t, 2)
    first = i.op[0]
    if i.op[-1] == "f64" and "approx" in i.op:
        value = t.get(x, "double")
        if first == "rsqrt":
            value = t.vector("sqrt", "double", value)
            if "ftz" not in i.op:  # that one has all digits
                t.put(d, t.two("fdiv", "double", t.splat("double", 0x3FF0000000000000), value), "double")
                return
        elif first != "rcp":
            raise missing(i)
        bits = t.cast(
            "bitcast", t.two("fdiv", "double", t.splat("double", 0x3FF0000000000000), value), "double", "i64"
        )
        t.put(d, t.two("and", "i64", bits, t.splat("i64", -(1 << 32))), "i64")
        return

    one = t.splat("double", 0x3FF0000000000000)

    def work(kind: str, a: str) -> str:
        if "approx" in i.op or first == "rsqrt":
            if _rounding(t) != "rn" or kind != "float":
                raise missing(i)
            (wide,) = _widened_all(t, [a])
            root = wide if first == "rcp" else t.vector("sqrt", "double", wide)
            return _approximate(t, root if first == "sqrt" else t.two("fdiv", "double", one, root))
        if first == "sqrt":
            return _through_double(t, kind, lambda k, v: t.vector("sqrt", k, v), a)
        ones = {"float": t.splat("float", 0x3F800000), "double": one}
        return _through_double(t, kind, lambda k, v: t.two("fdiv", k, ones[k], v), a)

    _float(t, work, x)


@TABLE.of("ex2", "lg2", "sin", "cos", "tanh")
def _function(t: Translator, i: Instruction) -> None:
    _only(t, "approx", "ftz")
    half = i.op[-1] in ("f16", "bf16", "f16x2", "bf16x2") and i.op[0] in ("ex2", "tanh")
    if i.op[-1] != "f32" and not half:
        raise missing(i)
    which = {
        "ex2": machine.EX2, "lg2": machine.LG2, "sin": machine.SIN, "cos": machine.COS, "tanh": machine.TANH,
    }[i.op[0]]  # fmt: skip
    site = t.site()

    def work(kind: str, a: str) -> str:
        t.store_slot(0, a, "float")
        t.machine("function", machine.pack(site, 4, 1, which))
        return t.load_slot(1, "float")

    if half:
        _in_halves(t, i.op[-1], lambda a: work("float", a), _count(t, 2)[1])
    else:
        _float(t, work, _count(t, 2)[1])


@TABLE.of("copysign")
def _copied_sign(t: Translator, i: Instruction) -> None:
    d, x, y = _count(t, 3)
    kind, _, _ = _type(t, i.op[-1])
    t.put(d, t.vector("copysign", kind, t.get(y, kind), t.get(x, kind)), kind)


@TABLE.of("testp")
def _tested(t: Translator, i: Instruction) -> None:
    d, x = _count(t, 2)
    kind, _, _ = _type(t, i.op[-1])
    size = t.vector("fabs", kind, t.get(x, kind))
    infinite = t.splat(kind, 0x7F800000 if kind == "float" else 0x7FF0000000000000)
    least = t.splat(kind, 0x00800000 if kind == "float" else 0x0010000000000000)
    tests = {
        "finite": ("olt", infinite), "infinite": ("oeq", infinite), "number": ("ord", size),
        "notanumber": ("uno", size), "subnormal": ("olt", least),
    }  # fmt: skip
    if i.op[1] == "normal":
        above = t.emit(f"fcmp oge <32 x {kind}> {size}, {least}")
        value = t.two("and", "i1", above, t.emit(f"fcmp olt <32 x {kind}> {size}, {infinite}"))
    elif i.op[1] in tests:
        order, other = tests[i.op[1]]
        value = t.emit(f"fcmp {order} <32 x {kind}> {size}, {other}")
        if i.op[1] == "subnormal":
            some = t.emit(f"fcmp one <32 x {kind}> {size}, {t.splat(kind, 0)}")
            value = t.two("and", "i1", value, some)
    else:
        raise missing(i)
    t.put(d, value, "i1")


# --- bits ---


@TABLE.of("and", "or", "xor")
def _logic(t: Translator, i: Instruction) -> None:
    d, x, y = _count(t, 3)
    kind, _, _ = _type(t, i.op[-1])
    t.put(d, t.two(i.op[0], kind, t.get(x, kind), t.get(y, kind)), kind)


@TABLE.of("not", "cnot")
def _inverted(t: Translator, i: Instruction) -> None:
    d, x = _count(t, 2)
    kind, _, _ = _type(t, i.op[-1])
    value = t.get(x, kind)
    if i.op[0] == "cnot":
        zero = t.emit(f"icmp eq <32 x {kind}> {value}, zeroinitializer")
        t.put(d, t.cast("zext", zero, "i1", kind), kind)
    else:
        t.put(d, t.two("xor", kind, value, t.splat(kind, -1)), kind)


@TABLE.of("shl", "shr")
def _shifted(t: Translator, i: Instruction) -> None:
    d, x, y = _count(t, 3)
    kind, signed, _ = _type(t, i.op[-1])
    value, bits = t.get(x, kind, signed), BITS[kind]
    operation = "shl" if i.op[0] == "shl" else "ashr" if signed else "lshr"
    if y.kind == "number":
        count = y.value & 0xFFFFFFFF
        if count >= bits and operation != "ashr":
            result = t.splat(kind, 0)
        else:
            result = t.two(operation, kind, value, t.splat(kind, min(count, bits - 1)))
    else:
        count32 = t.get(y, "i32")
        fits = t.emit(f"icmp ult <32 x i32> {count32}, splat (i32 {bits})")
        limited = t.fit(t.vector("umin", "i32", count32, f"splat (i32 {bits - 1})"), "i32", kind)
        result = t.two(operation, kind, value, limited)
        if operation != "ashr":
            result = t.select(fits, kind, result, t.splat(kind, 0))
    t.put(d, result, kind, signed)


@TABLE.of("shf")
def _funnel(t: Translator, i: Instruction) -> None:
    _only(t, "l", "r", "wrap", "clamp")
    d, x, y, z = _count(t, 4)
    low, high, count = (t.get(o, "i32") for o in (x, y, z))
    whole = t.two(
        "or", "i64", t.two("shl", "i64", t.cast("zext", high, "i32", "i64"), "splat (i64 32)"),
        t.cast("zext", low, "i32", "i64"),
    )  # fmt: skip
    if "wrap" in i.op:
        count = t.two("and", "i32", count, "splat (i32 31)")
    else:
        count = t.vector("umin", "i32", count, "splat (i32 32)")
    wide = t.cast("zext", count, "i32", "i64")
    if "l" in i.op:
        moved = t.two("lshr", "i64", t.two("shl", "i64", whole, wide), "splat (i64 32)")
    else:
        moved = t.two("lshr", "i64", whole, wide)
    t.put(d, t.cast("trunc", moved, "i64", "i32"), "i32")


@TABLE.of("lop3")
def _three_inputs(t: Translator, i: Instruction) -> None:
    join = i.op[1] if i.op[1:] in (("and", "b32"), ("or", "b32"), ("xor", "b32")) else ""
    if not join and i.op[1:] != ("b32",):
        raise missing(i)
    d, *inputs, table = _count(t, 6 if join else 5)[:5]
    if table.kind != "number":
        raise missing(i)
    values = [t.get(o, "i32") for o in inputs]
    inverse = [t.two("xor", "i32", v, "splat (i32 -1)") for v in values]
    result = "zeroinitializer"
    for term in range(8):
        if table.value >> term & 1:
            a, b, c = (
                v if term >> shift & 1 else n for v, n, shift in zip(values, inverse, (2, 1, 0), strict=True)
            )
            both = t.two("and", "i32", t.two("and", "i32", a, b), c)
            result = t.two("or", "i32", result, both)
    if join:
        some = t.emit(f"icmp ne <32 x i32> {result}, zeroinitializer")
        flag = t.two(join, "i1", some, t.get(i.operands[5], "i1"))
        t.put(d.parts[0], result, "i32")
        t.put(d.parts[1], flag, "i1")
    else:
        t.put(d, result, "i32")


# Which bytes a mode of prmt takes, by the last two bits of its third operand.
_BYTES = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543), "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333), "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210), "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}  # fmt: skip


@TABLE.of("prmt")
def _permuted(t: Translator, i: Instruction) -> None:
    if i.op[1:2] != ("b32",) or len(i.op) > 3 or (len(i.op) == 3 and i.op[2] not in _BYTES):
        raise missing(i)
    d, x, y, z = _count(t, 4)
    low, high, selector = (t.get(o, "i32") for o in (x, y, z))
    if len(i.op) == 3:
        mode = t.two("and", "i32", selector, "splat (i32 3)")
        selector, z = f"splat (i32 {_BYTES[i.op[2]][0]})", Operand("none")
        for number in (1, 2, 3):
            its = t.emit(f"icmp eq <32 x i32> {mode}, splat (i32 {number})")
            selector = t.select(its, "i32", f"splat (i32 {_BYTES[i.op[2]][number]})", selector)
    whole = t.two(
        "or", "i64", t.two("shl", "i64", t.cast("zext", high, "i32", "i64"), "splat (i64 32)"),
        t.cast("zext", low, "i32", "i64"),
    )  # fmt: skip
    result = "zeroinitializer"
    for byte in range(4):
        if z.kind == "number":
            which = z.value >> 4 * byte
            count, signs = t.splat("i64", 8 * (which & 7)), bool(which & 8)
            value = t.cast("trunc", t.two("lshr", "i64", whole, count), "i64", "i8")
            value = t.two("ashr", "i8", value, "splat (i8 7)") if signs else value
        else:
            nibble = t.two("lshr", "i32", selector, f"splat (i32 {4 * byte})")
            three = t.two("and", "i32", nibble, "splat (i32 7)")
            bits = t.cast("zext", t.two("shl", "i32", three, "splat (i32 3)"), "i32", "i64")
            plain = t.cast("trunc", t.two("lshr", "i64", whole, bits), "i64", "i8")
            sign = t.emit(
                f"icmp ne <32 x i32> {t.two('and', 'i32', nibble, 'splat (i32 8)')}, zeroinitializer"
            )
            value = t.select(sign, "i8", t.two("ashr", "i8", plain, "splat (i8 7)"), plain)
        placed = t.two("shl", "i32", t.cast("zext", value, "i8", "i32"), f"splat (i32 {8 * byte})")
        result = t.two("or", "i32", result, placed)
    t.put(d, result, "i32")


@TABLE.of("bfe")
def _extracted(t: Translator, i: Instruction) -> None:
    d, x, y, z = _count(t, 4)
    kind, signed, _ = _type(t, i.op[-1])
    value, bits = t.get(x, kind), BITS[kind]
    at, length = (t.two("and", "i32", t.get(o, "i32"), "splat (i32 255)") for o in (y, z))
    # Shifted up until the field's end is at the top, and down again; a field that goes beyond is filled up.
    end = t.vector("umin", "i32", t.two("add", "i32", at, length), f"splat (i32 {bits})")
    start = t.vector("umin", "i32", at, f"splat (i32 {bits})")
    count = t.two("sub", "i32", end, start)
    up = t.two("sub", "i32", f"splat (i32 {bits})", end)
    down = t.two("sub", "i32", f"splat (i32 {bits})", count)
    nothing = t.emit(f"icmp eq <32 x i32> {length}, zeroinitializer")
    beyond = t.emit(f"icmp uge <32 x i32> {at}, splat (i32 {bits})")
    limit = f"splat (i32 {bits - 1})"
    raised = t.two("shl", kind, value, t.fit(t.vector("umin", "i32", up, limit), "i32", kind))
    lowered = t.two(
        "ashr" if signed else "lshr", kind, raised, t.fit(t.vector("umin", "i32", down, limit), "i32", kind)
    )
    sign = t.two("ashr", kind, value, t.splat(kind, bits - 1)) if signed else t.splat(kind, 0)
    result = t.select(beyond, kind, sign, lowered)
    t.put(d, t.select(nothing, kind, t.splat(kind, 0), result), kind, signed)


@TABLE.of("bfi")
def _inserted(t: Translator, i: Instruction) -> None:
    d, x, into, y, z = _count(t, 5)
    kind, _, _ = _type(t, i.op[-1])
    a, b, bits = t.get(x, kind), t.get(into, kind), BITS[kind]
    at, length = (t.two("and", "i32", t.get(o, "i32"), "splat (i32 255)") for o in (y, z))
    wide = "i128" if kind == "i64" else "i64"
    cut = t.vector("umin", "i32", length, f"splat (i32 {bits})")
    place = t.vector("umin", "i32", at, f"splat (i32 {bits})")
    one = t.two("shl", wide, f"splat ({wide} 1)", t.cast("zext", cut, "i32", wide))
    field = t.two("sub", wide, one, f"splat ({wide} 1)")
    moved = t.cast("zext", place, "i32", wide)
    mask = t.cast("trunc", t.two("shl", wide, field, moved), wide, kind)
    value = t.cast("trunc", t.two("shl", wide, t.cast("zext", a, kind, wide), moved), wide, kind)
    kept = t.two("and", kind, b, t.two("xor", kind, mask, t.splat(kind, -1)))
    t.put(d, t.two("or", kind, kept, t.two("and", kind, value, mask)), kind)


@TABLE.of("popc", "clz", "brev", "bfind")
def _counted(t: Translator, i: Instruction) -> None:
    d, x = _count(t, 2)
    kind, signed, _ = _type(t, i.op[-1])
    value, first = t.get(x, kind), i.op[0]
    v = f"<32 x {kind}>"
    if first == "popc":
        t.put(d, t.fit(t.vector("ctpop", kind, value), kind, "i32"), "i32")
    elif first == "brev":
        t.put(d, t.vector("bitreverse", kind, value), kind)
    else:
        if first == "bfind" and signed:
            sign = t.two("ashr", kind, value, t.splat(kind, BITS[kind] - 1))
            value = t.two("xor", kind, value, sign)
        name = f"llvm.ctlz.v32{kind}"
        t.intrinsics[name] = f"declare {v} @{name}({v}, i1)"
        zeros = t.fit(t.emit(f"call {v} @{name}({v} {value}, i1 false)"), kind, "i32")
        if first == "bfind":
            if "shiftamt" in i.op:
                none = t.emit(f"icmp eq <32 x i32> {zeros}, splat (i32 {BITS[kind]})")
                zeros = t.select(none, "i32", "splat (i32 -1)", zeros)
            else:
                zeros = t.two("sub", "i32", f"splat (i32 {BITS[kind] - 1})", zeros)
        t.put(d, zeros, "i32")


# --- comparisons ---

_WHOLE_ORDERS = {
    "eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "lo": "ult", "ls": "ule",
    "hi": "ugt", "hs": "uge",
}  # fmt: skip
_FLOAT_ORDERS = {
    "eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "equ": "ueq", "neu": "une",
    "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge", "num": "ord", "nan": "uno",
}  # fmt: skip


def _compared(t: Translator, order: str, part: str, x: Operand, y: Operand) -> str:
    if part in ("f16", "bf16"):
        a, b = (_widened(t, t.get(o, "i16"), part) for o in (x, y))
        kind, signed, real = "float", False, True
    else:
        kind, signed, real = _type(t, part)
        a, b = t.get(x, kind, signed), t.get(y, kind, signed)
    if real:
        if order not in _FLOAT_ORDERS:
            raise missing(t.here)
        if "ftz" in t.here.op:
            a, b = _flushed(t, a, kind), _flushed(t, b, kind)
        return t.emit(f"fcmp {_FLOAT_ORDERS[order]} <32 x {kind}> {a}, {b}")
    if order not in _WHOLE_ORDERS or kind == "i1":
        raise missing(t.here)
    name = _WHOLE_ORDERS[order]
    if name in ("lt", "le", "gt", "ge"):
        name = ("s" if signed else "u") + name
    return t.emit(f"icmp {name} <32 x {kind}> {a}, {b}")


def _two_predicates(t: Translator, d: Operand, x: Operand, y: Operand) -> None:
    """setp of two pairs of 16 bits: a condition of the low ones, and one of the high ones."""
    part = t.here.op[-1].removesuffix("x2")
    a, b = t.get(x, "i32"), t.get(y, "i32")
    if d.kind != "pair" or len(t.here.operands) != 3 or t.here.op[1] not in _FLOAT_ORDERS:
        raise missing(t.here)
    found = []
    for shift in (0, 16):
        halves = []
        for value in (a, b):
            low = t.two("lshr", "i32", value, f"splat (i32 {shift})") if shift else value
            wide = _widened(t, t.cast("trunc", low, "i32", "i16"), part)
            halves.append(_half_flushed(t, wide) if "ftz" in t.here.op and part == "f16" else wide)
        found.append(t.emit(f"fcmp {_FLOAT_ORDERS[t.here.op[1]]} <32 x float> {halves[0]}, {halves[1]}"))
    for target, value in zip(d.parts, found, strict=True):
        t.put(target, value, "i1")


@TABLE.of("setp")
def _predicate(t: Translator, i: Instruction) -> None:
    d, x, y, *more = _count(t, 3, 4)
    if i.op[-1] in ("f16x2", "bf16x2"):
        _two_predicates(t, d, x, y)
        return
    value = _compared(t, i.op[1], i.op[-1], x, y)
    opposite = t.two("xor", "i1", value, "splat (i1 true)") if d.kind == "pair" else ""
    if more:
        join = next((p for p in i.op if p in ("and", "or", "xor")), "")
        if not join:
            raise missing(i)
        third = t.get(more[0], "i1")
        value = t.two(join, "i1", value, third)
        opposite = t.two(join, "i1", opposite, third) if opposite else ""
    if d.kind == "pair":
        t.put(d.parts[0], value, "i1")
        t.put(d.parts[1], opposite, "i1")
    else:
        t.put(d, value, "i1")


def _set_two(t: Translator, i: Instruction) -> None:
    """set of two pairs of 16 bits: of each half 1.0, or all ones, where the condition holds."""
    d, x, y = _count(t, 3)
    to, part = i.op[-2], i.op[-1].removesuffix("x2")
    one = {"f16x2": 0x3C00, "bf16x2": 0x3F80}.get(to, 0xFFFF)
    a, b = t.get(x, "i32"), t.get(y, "i32")
    result = "zeroinitializer"
    for shift in (0, 16):
        halves = []
        for value in (a, b):
            low = t.two("lshr", "i32", value, f"splat (i32 {shift})") if shift else value
            wide = _widened(t, t.cast("trunc", low, "i32", "i16"), part)
            halves.append(_half_flushed(t, wide) if "ftz" in i.op and part == "f16" else wide)
        holds = t.emit(f"fcmp {_FLOAT_ORDERS[i.op[1]]} <32 x float> {halves[0]}, {halves[1]}")
        its = t.select(holds, "i32", t.splat("i32", one << shift), t.splat("i32", 0))
        result = t.two("or", "i32", result, its)
    t.put(d, result, "i32")


@TABLE.of("set")
def _set(t: Translator, i: Instruction) -> None:
    d, x, y = _count(t, 3)
    if i.op[-1] in ("f16x2", "bf16x2"):
        _set_two(t, i)
        return
    if i.op[-2] in ("f16", "bf16"):
        holds = _compared(t, i.op[1], i.op[-1], x, y)
        one = t.splat("i16", 0x3C00 if i.op[-2] == "f16" else 0x3F80)
        t.put(d, t.select(holds, "i16", one, t.splat("i16", 0)), "i16")
        return
    kind, _, real = _type(t, i.op[-2])
    value = _compared(t, i.op[1], i.op[-1], x, y)
    if real:
        t.put(d, t.select(value, kind, t.splat(kind, 0x3F800000), t.splat(kind, 0)), kind)
    else:
        t.put(d, t.cast("sext", value, "i1", kind), kind)


@TABLE.of("selp")
def _selected(t: Translator, i: Instruction) -> None:
    d, x, y, p = _count(t, 4)
    kind, signed, _ = _type(t, i.op[-1])
    t.put(d, t.select(t.get(p, "i1"), kind, t.get(x, kind), t.get(y, kind)), kind, signed)


@TABLE.of("slct")
def _selected_by_sign(t: Translator, i: Instruction) -> None:
    d, x, y, c = _count(t, 4)
    kind, _, _ = _type(t, i.op[-2])
    by = "float" if i.op[-1] == "f32" else "i32"
    of = t.get(c, by)
    order = (
        f"fcmp oge <32 x float> {of}, {t.splat('float', 0)}"
        if by == "float"
        else f"icmp sge <32 x i32> {of}, zeroinitializer"
    )
    t.put(d, t.select(t.emit(order), kind, t.get(x, kind), t.get(y, kind)), kind)


# --- moves and conversions ---


@TABLE.of("mov")
def _moved(t: Translator, i: Instruction) -> None:
    d, x = _count(t, 2)
    kind, _, _ = _type(t, i.op[-1])
    if x.kind == "vector":
        whole = WHOLE.get(kind, kind)
        each = f"i{BITS[kind] // len(x.parts)}"
        if each not in BITS:
            raise missing(i)
        result = "zeroinitializer"
        for at, part in enumerate(x.parts):
            value = t.fit(t.get(part, each), each, whole)
            shift = t.splat(whole, at * BITS[each])
            result = t.two("or", whole, result, t.two("shl", whole, value, shift) if at else value)
        t.put(d, result, whole)
    elif d.kind == "vector":
        whole = WHOLE.get(kind, kind)
        each = f"i{BITS[kind] // len(d.parts)}"
        if each not in BITS:
            raise missing(i)
        value = t.get(x, whole)
        for at, part in enumerate(d.parts):
            moved = t.two("lshr", whole, value, t.splat(whole, at * BITS[each])) if at else value
            t.put(part, t.cast("trunc", moved, whole, each), each)
    elif kind == "i1":
        if x.kind == "number":
            t.put(d, f"splat (i1 {'true' if x.value else 'false'})", "i1")
        else:
            t.put(d, t.get(x, "i1"), "i1")
    else:
        t.put(d, t.get(x, kind), kind)


@TABLE.of("cvta")
def _converted_address(t: Translator, i: Instruction) -> None:
    d, x = _count(t, 2)
    space = next((p.split("::")[0] for p in i.op[1:] if p.split("::")[0] in _SPACES), "")
    _type(t, i.op[-1])
    value = t.get(x, "i64")
    window = {"shared": machine.SHARED_WINDOW, "local": machine.LOCAL_WINDOW, "param": machine.PARAM_WINDOW}
    if space in window:
        if "to" in i.op:
            value = t.two("and", "i64", value, t.splat("i64", machine.OFFSETS))
        else:
            value = t.two("or", "i64", value, t.splat("i64", window[space] << machine.WINDOW))
    elif not space:
        raise missing(i)
    t.put(d, value, "i64")


@TABLE.of("mapa")
def _in_another_block(t: Translator, i: Instruction) -> None:
    """The place in the shared memory of a block of the cluster: its number + 1 in bits 24 to 31."""
    d, a, rank = _count(t, 3)
    _only(t, "shared::cluster")
    value = t.address(a) if a.kind == "address" else t.get(a, "i64")
    number = t.two("add", "i64", t.get(rank, "i64"), "splat (i64 1)")
    kept = t.two("and", "i64", value, t.splat("i64", ~0xFF000000))
    its = t.two("or", "i64", kept, t.two("shl", "i64", number, "splat (i64 24)"))
    t.put(d, t.fit(its, "i64", TYPES[i.op[-1]]), TYPES[i.op[-1]])


@TABLE.of("isspacep")
def _in_space(t: Translator, i: Instruction) -> None:
    d, x = _count(t, 2)
    window = {"shared": machine.SHARED_WINDOW, "local": machine.LOCAL_WINDOW, "param": machine.PARAM_WINDOW}
    its = t.two("lshr", "i64", t.get(x, "i64"), t.splat("i64", machine.WINDOW))
    if i.op[1].split("::")[0] in window:
        where = t.splat("i64", window[i.op[1].split("::")[0]])
        t.put(d, t.emit(f"icmp eq <32 x i64> {its}, {where}"), "i1")
    elif i.op[1] == "global":
        t.put(d, t.emit(f"icmp ult <32 x i64> {its}, {t.splat('i64', machine.SHARED_WINDOW)}"), "i1")
    else:
        raise missing(i)


_TO_WHOLE = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}


@TABLE.of("cvt")
def _converted(t: Translator, i: Instruction) -> None:
    op = i.op
    if len(op) < 3:
        raise missing(i)
    to, of = op[-2], op[-1]
    modes = set(op[1:-2])
    if to == "tf32":
        _to_tf32(t, modes)
        return
    if to in _EIGHTS or of in _EIGHTS:
        _to_or_of_eighths(t, i, to, of, modes)
        return
    if to in ("f16x2", "bf16x2") and of == "f32":
        if modes - {"rn", "rz", "relu"}:
            raise missing(i)
        d, x, y = _count(t, 3)
        high, low = (
            t.cast("zext", _to_half(t, t.get(o, "float"), to.removesuffix("x2"), modes), "i16", "i32")
            for o in (x, y)
        )
        t.put(d, t.two("or", "i32", t.two("shl", "i32", high, "splat (i32 16)"), low), "i32")
        return
    if (
        modes - {"rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi", "sat", "ftz", "relu"}
        or ("relu" in modes and (to not in ("f16", "bf16") or of != "f32"))
        or to not in TYPES
        or of not in TYPES
    ):
        raise missing(i)
    d, x = _count(t, 2)
    kind, signed, real = _type(t, to)
    its, its_signed, its_real = _type(t, of)
    half, its_half = to in ("f16", "bf16"), of in ("f16", "bf16")
    value = t.get(x, its)
    if its_half:
        value, its, its_real = _widened(t, value, of), "float", True
    if its_real:
        if "ftz" in modes:
            value = _flushed(t, value, its)
        whole = next((m for m in _TO_WHOLE if m in modes), "")
        if whole:
            value = t.vector(_TO_WHOLE[whole], its, value)
        if real or half:
            value = _to_float(t, value, its, "double" if kind == "double" else "float", modes, half, to)
            if half:
                t.put(d, value, "i16")
                return
            if "sat" in modes:
                value = _saturated(t, value, kind)
            t.put(d, _flushed(t, value, kind) if "ftz" in modes else value, kind)
            return
        if not whole:
            raise missing(i)
        t.put(d, _to_integer(t, value, its, kind, signed), kind, signed)
        return
    if real or half:
        s = "s" if its_signed else "u"
        if modes & {"rz", "rm", "rp"}:
            if kind != "float":
                raise missing(i)
            value = _directed(t, *_in_doubles(t, value, its, its_signed), _rounding(t))
            t.put(d, _saturated(t, value, kind) if "sat" in modes else value, kind)
            return
        if modes - {"rn", "sat"}:
            raise missing(i)
        if half:
            wide = t.cast(f"{s}itofp", value, its, "double")
            t.put(d, _narrowed(t, _to_odd(t, wide), to), "i16")
            return
        value = t.cast(f"{s}itofp", value, its, kind)
        t.put(d, _saturated(t, value, kind) if "sat" in modes else value, kind)
        return
    if "sat" in modes:
        if not its_signed:
            most = (1 << BITS[kind] - signed) - 1
            wide = t.cast("zext", value, its, "i64")
            t.put(d, t.fit(t.vector("umin", "i64", wide, t.splat("i64", most)), "i64", kind), kind, signed)
            return
        wide = t.cast("sext" if its_signed else "zext", value, its, "i64") if its != "i64" else value
        bits = BITS[kind]
        least, most = -(1 << bits - 1), (1 << bits - 1) - 1
        if not signed:
            least, most = 0, min((1 << bits) - 1, (1 << 63) - 1)
        wide = t.vector("smax", "i64", wide, f"splat (i64 {least})")
        wide = t.vector("smin", "i64", wide, f"splat (i64 {most})")
        t.put(d, t.cast("trunc", wide, "i64", kind), kind, signed)
        return
    t.put(d, t.fit(value, its, kind, its_signed), kind, signed)


# Numbers of eight bits: digits behind the point, and what is added to the exponent.
_EIGHTS = {"e4m3x2": (3, 7), "e5m2x2": (2, 15)}


def _to_or_of_eighths(t: Translator, i: Instruction, to: str, of: str, modes: set[str]) -> None:
    """cvt between two numbers of eight bits and two of 16 or 32."""
    d, *given = _count(t, 3 if of == "f32" else 2)
    if "rn" not in modes or modes - {"rn", "satfinite", "relu"}:
        raise missing(i)
    halves = []
    if of in _EIGHTS and to == "f16x2":
        bits = t.fit(t.get(given[0], "i16"), "i16", "i32")
        for shift in (0, 8):
            byte = t.two("and", "i32", t.two("lshr", "i32", bits, t.splat("i32", shift)), t.splat("i32", 255))
            sign = t.two("shl", "i32", t.two("and", "i32", byte, t.splat("i32", 128)), t.splat("i32", 8))
            left, more = (7, 256.0) if of == "e4m3x2" else (8, 1.0)
            size = t.two("shl", "i32", t.two("and", "i32", byte, t.splat("i32", 127)), t.splat("i32", left))
            value = _widened(t, t.cast("trunc", size, "i32", "i16"), "f16")
            if more != 1.0:
                value = t.two("fmul", "float", value, t.splat("float", 0x43800000))
                nan = t.emit(f"icmp eq <32 x i32> {size}, {t.splat('i32', 127 << left)}")
                value = t.select(nan, "float", t.splat("float", 0x7FC00000), value)
            half = t.two("or", "i32", t.cast("zext", _narrowed(t, value, "f16"), "i16", "i32"), sign)
            if "relu" in modes:
                none = t.emit(f"icmp ne <32 x i32> {sign}, zeroinitializer")
                half = t.select(none, "i32", t.splat("i32", 0), half)
            halves.append(half)
        t.put(d, t.two("or", "i32", halves[0], t.two("shl", "i32", halves[1], t.splat("i32", 16))), "i32")
        return
    if to not in _EIGHTS or of not in ("f32", "f16x2") or "satfinite" not in modes:
        raise missing(i)
    if of == "f32":
        values = [t.get(o, "float") for o in given[::-1]]
    else:
        whole = t.get(given[0], "i32")
        parts = (whole, t.two("lshr", "i32", whole, t.splat("i32", 16)))
        values = [_widened(t, t.cast("trunc", part, "i32", "i16"), "f16") for part in parts]
    digits, bias = _EIGHTS[to]
    most = 0x43E00000 if to == "e4m3x2" else 0x47600000  # 448, 57344
    for value in values:
        value = _without_negative(t, value) if "relu" in modes else value
        sign = t.two(
            "lshr",
            "i32",
            t.two("and", "i32", t.cast("bitcast", value, "float", "i32"), t.splat("i32", 1 << 31)),
            t.splat("i32", 24),
        )
        nan = t.emit(f"fcmp uno <32 x float> {value}, {value}")
        size = t.vector("minnum", "float", t.vector("fabs", "float", value), t.splat("float", most))
        bits = t.cast("bitcast", size, "float", "i32")
        cut = 23 - digits
        odd = t.two("and", "i32", t.two("lshr", "i32", bits, t.splat("i32", cut)), t.splat("i32", 1))
        up = t.two("add", "i32", t.two("add", "i32", bits, odd), t.splat("i32", (1 << cut - 1) - 1))
        normal = t.two(
            "sub", "i32", t.two("lshr", "i32", up, t.splat("i32", cut)), t.splat("i32", 127 - bias << digits)
        )
        far = 23 - (bias + digits - 1) + 127 << 23  # a number whose last place is that of the smallest ones
        added = t.two("fadd", "float", size, t.splat("float", far))
        small = t.two("sub", "i32", t.cast("bitcast", added, "float", "i32"), t.splat("i32", far))
        least = t.emit(f"icmp ult <32 x i32> {bits}, {t.splat('i32', 128 - bias << 23)}")
        code = t.two("or", "i32", t.select(least, "i32", small, normal), sign)
        halves.append(t.select(nan, "i32", t.splat("i32", 127), code))
    both = t.two("or", "i32", halves[0], t.two("shl", "i32", halves[1], t.splat("i32", 8)))
    t.put(d, t.cast("trunc", both, "i32", "i16"), "i16")


def _in_doubles(t: Translator, value: str, its: str, signed: bool) -> tuple[str, str]:
    """A whole number as a float64 and what that lacks."""
    wide = t.cast("sext" if signed else "zext", value, its, "i64")
    low = t.cast("uitofp", t.two("and", "i64", wide, t.splat("i64", 0xFFFFFFFF)), "i64", "double")
    top = t.two("ashr" if signed else "lshr", "i64", wide, "splat (i64 32)")
    high = t.cast("sitofp", top, "i64", "double")
    return _sum_with_error(t, t.two("fmul", "double", high, t.splat("double", 0x41F0000000000000)), low)


def _to_half(t: Translator, value: str, to: str, modes: set[str]) -> str:
    """16 bits of float32, as the modes of cvt say."""
    if "relu" in modes:
        value = _without_negative(t, value)
    how = next((m for m in ("rz", "rm", "rp") if m in modes), "")
    return _half_directed(t, value, to, how) if how else _narrowed(t, value, to)


def _to_float(t: Translator, value: str, its: str, kind: str, modes: set[str], half: bool, to: str) -> str:
    how = next((m for m in ("rz", "rm", "rp") if m in modes), "rn")
    if half:
        return _to_half(t, _to_odd(t, value) if its == "double" else value, to, modes)
    if its == kind:
        return value
    if kind == "double":
        return t.cast("fpext", value, its, kind)
    if how == "rn":
        return t.cast("fptrunc", value, its, kind)
    return _directed(t, value, t.splat("double", 0), how)


def _to_integer(t: Translator, value: str, its: str, kind: str, signed: bool) -> str:
    short = {"float": "f32", "double": "f64"}[its]
    name = f"llvm.fpto{'s' if signed else 'u'}i.sat.v32{kind}.v32{short}"
    whole = t.call(name, f"<32 x {kind}>", (f"<32 x {its}>", value))
    if its == "double" or kind == "i64":  # what is no number
        nan = t.emit(f"fcmp uno <32 x {its}> {value}, {value}")
        whole = t.select(nan, kind, t.splat(kind, 1 << BITS[kind] - 1), whole)
    return whole


def _to_tf32(t: Translator, modes: set[str]) -> None:
    d, x = _count(t, 2)
    if modes - {"rna", "rn", "rz"}:
        raise missing(t.here)
    bits = t.get(x, "i32")
    if "rna" in modes:
        rounded = t.two("add", "i32", bits, "splat (i32 4096)")
    elif "rn" in modes:
        odd = t.two("and", "i32", t.two("lshr", "i32", bits, "splat (i32 13)"), "splat (i32 1)")
        rounded = t.two("add", "i32", bits, t.two("add", "i32", odd, "splat (i32 4095)"))
    else:
        rounded = bits
    cut = t.two("and", "i32", rounded, "splat (i32 -8192)")
    exponent = t.two("and", "i32", bits, "splat (i32 2139095040)")
    special = t.emit(f"icmp eq <32 x i32> {exponent}, splat (i32 2139095040)")
    t.put(d, t.select(special, "i32", bits, cut), "i32")


# --- memory ---


def _access(t: Translator, i: Instruction) -> tuple[int, str, str, int, int]:
    """(state space, its word, type of an element, elements, flags)."""
    space, word, count, flags = machine.GENERIC, "generic", 1, 0
    for part in i.op[1:-1]:
        plain = part.split("::")[0]
        if plain in _SPACES:
            if "::" in part and part not in ("shared::cta", "shared::cluster", "param::entry"):
                raise missing(i)
            space, word = _SPACES[plain], plain
            if part == "shared::cluster":
                space = machine.CLUSTER
        elif part in ("v2", "v4"):
            count = int(part[1])
        elif part in _STRONG:
            flags |= machine.VOLATILE
        elif part not in _CACHES and part not in _SCOPES and plain not in ("L1", "L2", "unified"):
            raise missing(i)
    if i.op[-1] not in TYPES or i.op[-1] == "pred":
        raise missing(i)
    return space, word, i.op[-1], count, flags


@TABLE.of("ld", "ldu")
def _load(t: Translator, i: Instruction) -> None:
    d, a = _count(t, 2)
    space, word, part, count, flags = _access(t, i)
    kind, signed = TYPES[part], part[0] == "s"
    size = BITS[kind] // 8
    targets = d.parts if d.kind == "vector" else (d,)
    if len(targets) != count:
        raise missing(i)
    first = t.param(a.parts[0]) if space == machine.PARAM and a.kind == "address" else None
    if first is not None:
        at = first + a.value
        if at < 0 or at + size * count > t.params_nbytes:
            raise PtxError(f"PTX line {i.line}: {i.words} reads outside the parameters")
        for n, target in enumerate(targets):
            place = t.emit(f"getelementptr i8, ptr %P, i64 {at + size * n}", "p")
            t.put(target, t.uniform(kind, t.emit(f"load {kind}, ptr {place}, align 1")), kind, signed)
        return
    t.store_addresses(t.address(a))
    used = 0
    if count == 1 and d.name in t.expected:
        flags |= machine.EXPECTED
    for n in range(count):
        used |= (i.used >> n * size & (1 << size) - 1 != 0) << n
    t.machine(
        "read", machine.pack(t.site(word, size), size, count, space, flags, used if i.used >= 0 else 15)
    )
    for n, target in enumerate(targets):
        t.put(target, t.load_slot(n, kind), kind, signed)


def _released(t: Translator, i: Instruction) -> None:
    """Whatever stands in front of .release is seen by whoever sees it, as in front of a fence."""
    if {"release", "acq_rel"} & {*i.op}:
        t.machine("fence", t.site())


@TABLE.of("st")
def _store(t: Translator, i: Instruction) -> None:
    if "async" in i.op:
        _stored_later(t, i)
        return
    a, x = _count(t, 2)
    space, word, part, count, flags = _access(t, i)
    _released(t, i)
    kind = TYPES[part]
    size = BITS[kind] // 8
    values = x.parts if x.kind == "vector" else (x,)
    if len(values) != count or space == machine.PARAM:
        raise missing(i)
    t.store_addresses(t.address(a))
    for n, value in enumerate(values):
        t.store_slot(n, t.get(value, kind), kind)
    t.machine("write", machine.pack(t.site(word, size, True), size, count, space, flags))


_ATOMICS = {
    "add": machine.ADD, "min": machine.MIN, "max": machine.MAX, "and": machine.AND, "or": machine.OR,
    "xor": machine.XOR, "exch": machine.EXCH, "cas": machine.CAS, "inc": machine.INC, "dec": machine.DEC,
}  # fmt: skip
# Of a number that is combined with what is there the kind.
_COMBINED = {
    "u32": machine.UNSIGNED, "b32": machine.UNSIGNED, "u64": machine.UNSIGNED, "b64": machine.UNSIGNED, "s32":
    machine.SIGNED, "s64": machine.SIGNED, "f32": machine.F32, "f64": machine.F64, "f16": machine.F16, "bf16":
    machine.BF16, "f16x2": machine.F16X2, "bf16x2": machine.BF16X2, "b16": machine.UNSIGNED,
}  # fmt: skip


_INTO = ("mbarrier::complete_tx::bytes",)
_REDUCED_LATER = {
    "add": ("u32", "s32", "u64"), "min": ("u32", "s32"), "max": ("u32", "s32"), "inc": ("u32",),
    "dec": ("u32",), "and": ("b32",), "or": ("b32",), "xor": ("b32",),
}  # fmt: skip


def _stored_later(t: Translator, i: Instruction) -> None:
    """st.async and red.async into the shared memory of a block of the cluster."""
    part, count, do, adds = i.op[-1], 1, "exch", i.op[0] == "red"
    ways = ("relaxed", "cluster") if adds else ("weak",)
    for word in i.op[2:-1]:
        if word in ("v2", "v4") and not adds:
            count = int(word[1])
        elif word in _ATOMICS and adds:
            do = word
        elif word not in (*ways, "shared::cluster", *_INTO):
            raise missing(i)
    size = BITS[TYPES[part]] // 8
    types = _REDUCED_LATER[do] if adds else ("b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64")
    if _INTO[0] not in i.op or part not in types or size * count > 16:
        raise missing(i)
    a, x, signal = _count(t, 3)
    values = x.parts if x.kind == "vector" else (x,)
    if len(values) != count:
        raise missing(i)
    t.store_addresses(t.address(a))
    for n, value in enumerate(values):
        t.store_slot(n, t.get(value, TYPES[part]), TYPES[part])
    t.store_slot(2, t.address(signal), "i64")
    kind = _COMBINED[part] if adds else machine.UNSIGNED
    does = 1 | _ATOMICS[do] << 1 | kind << 5 | size.bit_length() - 1 << 8
    t.machine(
        "store_later",
        machine.pack(t.site("shared", size, True), size, count, machine.CLUSTER, used=0) | does << 40,
    )


@TABLE.of("atom", "red")
def _atomic(t: Translator, i: Instruction) -> None:
    if "async" in i.op:
        _stored_later(t, i)
        return
    space, word, do, vector = machine.GENERIC, "generic", -1, 1
    for part in i.op[1:-1]:
        if part.split("::")[0] in ("global", "shared"):
            word = part.split("::")[0]
            space = _SPACES[word]
        elif part in _ATOMICS:
            do = _ATOMICS[part]
        elif part in ("v2", "v4", "v8"):
            vector = int(part[1])
        elif part not in _STRONG and part not in _SCOPES and part != "noftz":
            raise missing(i)
    part = i.op[-1]
    d, a, *values = i.operands if i.op[0] == "atom" else (Operand("none"), *i.operands)
    halves = part.startswith(("f16", "bf16"))
    allowed = (machine.ADD, machine.MIN, machine.MAX) if halves else (machine.ADD,)
    if part not in _COMBINED or do < 0 or (("f" in part) and do not in allowed):
        raise missing(i)
    if (halves and vector == 1 and do != machine.ADD) or (
        part == "b16" and do not in (machine.CAS, machine.EXCH)
    ):
        raise missing(i)
    if len(values) != (2 if do == machine.CAS else 1):
        raise PtxError(f"PTX line {i.line}: {i.words} has {len(i.operands)} operands")
    kind = TYPES[part]
    size = BITS[kind] // 8
    _released(t, i)
    given = values[0].parts if vector > 1 else values[:1]
    back = d.parts if vector > 1 and d.kind == "vector" else [d] * vector
    if len(given) != vector or len(back) != vector:
        raise missing(i)
    site, start = t.site(word, size, True), t.address(a)
    for n in range(vector):
        t.store_addresses(t.two("add", "i64", start, t.splat("i64", n * size)) if n else start)
        for slot, value in enumerate((given[n], *values[1:])):
            t.store_slot(slot, t.fit(t.get(value, kind), kind, "i64"), "i64")
        t.machine("atomic", machine.pack(site, size, 1, space, used=0) | do << 48 | _COMBINED[part] << 52)
        if back[n].kind != "none":
            t.put(back[n], t.fit(t.load_slot(2, "i64"), "i64", kind), kind)


@TABLE.of("membar", "fence")
def _fence(t: Translator, i: Instruction) -> None:
    if i.op[:3] == ("fence", "proxy", "async"):
        t.machine("shown", t.site())
        return
    if "proxy" in i.op:
        raise missing(i)
    t.machine("fence", t.site())


@TABLE.of("griddepcontrol", "nanosleep", "prefetch", "prefetchu", "discard", "pmevent", "setmaxnreg")
def _nothing(t: Translator, i: Instruction) -> None:
    """What has no effect on answers here: launches run one after another, and there are no caches."""


# --- mbarriers ---


@TABLE.of("mbarrier")
def _signalled(t: Translator, i: Instruction) -> None:
    words = [p.split("::")[0] for p in i.op[1:]]
    if words == ["pending_count", "b64"]:
        d, state = _count(t, 2)
        t.put(d, t.two("and", "i64", t.get(state, "i64"), t.splat("i64", 0xFFFFF)), "i64")
        return
    known = {"init", "inval", "arrive", "expect_tx", "test_wait", "try_wait", "parity", "shared", "b64"}
    known |= {"complete_tx", "arrive_drop"}
    known |= {"release", "acquire", "relaxed", "cta", "cluster"}
    tests = words[0] in ("test_wait", "try_wait")
    abroad = "shared::cluster" in i.op[1:] and words[0] not in ("arrive", "expect_tx")
    if not {*words} <= known or abroad:
        raise missing(i)
    results = tests or words[0] in ("arrive", "arrive_drop")
    d, a, *values = i.operands if results else (Operand("none"), *i.operands)
    do = {
        "init": machine.INIT, "inval": machine.INVALIDATE, "expect_tx": machine.EXPECT, "arrive":
        machine.ARRIVE_EXPECT if "expect_tx" in words else machine.ARRIVE_ON, "complete_tx": machine.COMPLETE,
        "arrive_drop": machine.DROP,
    }.get(words[0], machine.TEST_PARITY if "parity" in words else machine.TEST)  # fmt: skip
    few = {machine.INVALIDATE: (0,), machine.ARRIVE_ON: (0, 1), machine.DROP: (0, 1)}
    needs = few.get(do, (1, 2) if tests else (1,))
    if len(values) not in needs or {"arrive_drop", "expect_tx"} <= {*words}:
        raise missing(i)
    t.store_addresses(t.address(a))
    t.store_slot(0, t.get(values[0], "i64") if values else t.splat("i64", 1), "i64")
    t.machine("signal", machine.pack(t.site("shared", 8), 8, 1, do))
    if tests:
        flag = t.emit(f"icmp ne <32 x i64> {t.load_slot(2, 'i64')}, zeroinitializer")
        t.put(d, flag, "i1")
    elif results:
        t.put(d, t.load_slot(2, "i64"), "i64")


# Between which memories a bulk copy goes, and what `machine.bulk` calls it.
_BULK = {
    ("shared::cluster", "global", *_INTO): 0,
    ("shared::cta", "global", *_INTO): 0,
    ("shared::cluster", "global", *_INTO, "multicast::cluster"): 4,
    ("shared::cluster", "shared::cta", *_INTO): 5,
    ("global", "shared::cta", "bulk_group"): 1,
}
_ORDERED, _BITS = ("u32", "s32", "u64", "s64", "f16", "bf16"), ("b32", "b64")
_REDUCED = {  # what cp.reduce.async.bulk combines, by how
    "add": (*_ORDERED, "f32", "f64"), "min": _ORDERED, "max": _ORDERED, "inc": ("u32",), "dec": ("u32",),
    "and": _BITS, "or": _BITS, "xor": _BITS,
}  # fmt: skip


def _bulk(t: Translator, i: Instruction) -> None:
    """cp.async.bulk and cp.reduce.async.bulk between global memory and shared memory, of several blocks, too.
    Tensors: missing."""
    op, does = tuple(p for p in i.op[i.op.index("bulk") + 1 :] if p.split("::")[0] != "L2"), 0
    if i.op[1] == "reduce":
        *where, do, part = ("", "", *(p for p in op if p != "noftz"))
        if part not in _REDUCED.get(do, ()):
            raise missing(i)
        size = BITS[TYPES[part]].bit_length() - 4  # log2 of its bytes
        op, does = tuple(where[2:]), 1 | _ATOMICS[do] << 1 | _COMBINED[part] << 5 | size << 8
    if op == ("commit_group",):
        t.machine("bulk", machine.pack(t.site(), 0, 1, 2, used=0))
    elif op in (("wait_group",), ("wait_group", "read")) and i.operands[0].kind == "number":
        read = len(op) - 1
        t.machine("bulk", machine.pack(t.site(), min(i.operands[0].value, 255), 1, 3, read, used=0))
    elif op[0] == "prefetch" and op[1:] == ("global",):
        return  # there are no caches
    elif op in _BULK and (not does or _BULK[op] in (1, 5)):
        to, of, count, *signal = i.operands
        how = _BULK[op]
        into, several = how != 1, how == 4
        if len(signal) < into + several or len(i.operands) > 6:
            raise missing(i)
        if several:
            t.store_slot(3, t.get(signal[1], "i64"), "i64")
        t.store_addresses(t.address(to))
        t.store_slot(0, t.address(of), "i64")
        t.store_slot(1, t.get(count, "i64"), "i64")
        if into:
            t.store_slot(2, t.address(signal[0]), "i64")
        t.machine("bulk", machine.pack(t.site("generic", 16, not into), 16, 1, how, used=0) | does << 40)
    else:
        raise missing(i)


@TABLE.of("createpolicy")
def _policy(t: Translator, i: Instruction) -> None:
    """How a cache should keep what is read: there are none."""
    t.put(i.operands[0], t.splat("i64", 0), "i64")


# --- what a kernel says, and gives up at ---

# The machine's word for it, and how much it is given.
_FUNCTIONS = {
    "vprintf": ("printed", 2),
    "__assertfail": ("failed", 5),
    "malloc": ("allocated", 1),
    "free": ("freed", 1),
}


@TABLE.of("call")
def _called(t: Translator, i: Instruction) -> None:
    """Functions that the machine has; others are in the text, or missing."""
    d, function, *values = i.operands
    if function.name not in _FUNCTIONS or len(values) != _FUNCTIONS[function.name][1]:
        raise missing(i, function.name)
    for slot, value in enumerate(values):
        t.store_slot(slot, t.get(value, "i64"), "i64")
    t.machine(_FUNCTIONS[function.name][0], machine.pack(t.site(), 0, 1, 0))
    if d.kind != "none" and function.name == "malloc":
        t.put(d, t.load_slot(2, "i64"), "i64")
    elif d.kind != "none":
        t.put(d, t.splat("i32", 1), "i32")


@TABLE.of("trap", "brkpt")
def _trapped(t: Translator, i: Instruction) -> None:
    if i.op[0] == "trap":
        t.machine("trapped", t.site())


# --- copies that go on by themselves ---


@TABLE.of("cp")
def _copied(t: Translator, i: Instruction) -> None:
    op = i.op
    if op[1:3] == ("async", "bulk") or op[1:4] == ("reduce", "async", "bulk"):
        _bulk(t, i)
        return
    if op[1:2] != ("async",) or "bulk" in op:
        raise missing(i)
    if op[2:] == ("commit_group",):
        t.machine("close_group", t.site())
    elif op[2:] == ("wait_group",) and len(i.operands) == 1 and i.operands[0].kind == "number":
        t.machine("arrive", machine.pack(t.site(), min(i.operands[0].value, 254), 1, 0))
    elif op[2:] == ("wait_all",):
        t.machine("arrive", machine.pack(t.site(), 255, 1, 0))
    elif op[2:4] == ("mbarrier", "arrive") and {*op[4:]} <= {"noinc", "shared", "shared::cta", "b64"}:
        # The copies arrive now, and are counted; without .noinc one more is expected, which is that one.
        t.machine("arrive", machine.pack(t.site(), 255, 1, 0))
        if "noinc" in op:
            t.store_addresses(t.address(_count(t, 1)[0]))
            t.store_slot(0, t.splat("i64", 1), "i64")
            t.machine("signal", machine.pack(t.site("shared", 8), 8, 1, machine.ARRIVE_ON))
    elif op[2:3] in (("ca",), ("cg",)) and op[3] in ("shared", "shared::cta") and "global" in op:
        if any(p.split("::")[0] not in ("ca", "cg", "shared", "global", "L2") for p in op[2:]):
            raise missing(i)
        to, of, size, *inside = _count(t, 3, 4)
        if size.kind != "number" or size.value not in (4, 8, 16):
            raise missing(i)
        t.store_addresses(t.address(to))
        t.store_slot(0, t.address(of), "i64")
        count = t.get(inside[0], "i64") if inside else t.splat("i64", size.value)
        t.store_slot(1, count, "i64")
        t.machine("copy_later", machine.pack(t.site("generic", 4), size.value, 1, 0))
    else:
        raise missing(i)


# --- products of matrices ---


@TABLE.of("mma")
def _multiplied(t: Translator, i: Instruction) -> None:
    kinds = {
        ("m16n8k8", "tf32"): machine.TF32, ("m16n8k16", "f16"): machine.HALF, ("m16n8k16", "bf16"):
        machine.BFLOAT,
    }  # fmt: skip
    op = i.op
    if op[1].startswith("sp"):
        raise missing(i)
    d, a, b, c = _count(t, 4)
    known = op[1:3] == ("sync", "aligned") and op[4:6] == ("row", "col") and len(op) == 10
    if not known or op[6] != "f32" or op[9] != "f32" or op[7] != op[8] or (op[3], op[7]) not in kinds:
        _multiplied_otherwise(t, i)
        return
    if [len(o.parts) for o in (d, a, b, c)] != [4, 4, 2, 4]:
        raise missing(i)
    for slot, part in enumerate((*a.parts, *b.parts, *c.parts)):
        t.store_slot(slot, t.get(part, "i32"), "i32")
    t.machine("multiply", machine.pack(t.site(), 4, 1, kinds[op[3], op[7]]))
    for n, part in enumerate(d.parts):
        t.put(part, t.load_slot(10 + n, "float"), "float")


# Of a number of a factor the kind, and its bits; of 4 bits there are no products but `multiply_whole`'s.
_FACTORS = {
    "f16": (machine.HALF, 16), "bf16": (machine.BFLOAT, 16), "tf32": (machine.TF32, 32), "s8":
    (machine.S8, 8),
    "u8": (machine.U8, 8), "s4": (machine.S8, 4), "u4": (machine.U8, 4), "e4m3": (machine.E4M3, 8), "e5m2":
    (machine.E5M2, 8),
}  # fmt: skip
_WHOLE_FACTORS = ("s8", "u8", "s4", "u4")


def _operands(operand: Operand) -> tuple[Operand, ...]:
    return operand.parts if operand.kind == "vector" else (operand,)


def _multiplied_otherwise(t: Translator, i: Instruction) -> None:
    """mma of other shapes and types: m16n8 of whole numbers, of 8 bits of floating point, with sums of
    halves; m8n8k4 of float64."""
    words = [word for word in i.op[3:] if word != "satfinite"]
    d, a, b, c = (_operands(o) for o in _count(t, 4))
    if len(words) != 7 or i.op[1:3] != ("sync", "aligned") or words[1:3] != ["row", "col"]:
        raise missing(i)
    sums, of_a, of_b, more = words[3:]
    if words[0] == "m8n8k4" and {*words[3:]} == {"f64"} and [len(o) for o in (d, a, b, c)] == [2, 1, 1, 2]:
        for slot, part in enumerate((*a, *b, *c)):
            t.store_slot(slot, t.get(part, "double"), "double")
        t.machine("multiply_double", machine.pack(t.site(), 8, 1, 0))
        for n, part in enumerate(d):
            t.put(part, t.load_slot(2 + n, "double"), "double")
        return
    shape = re.fullmatch(r"m16n8k(\d+)", words[0])
    if shape is None or not {of_a, of_b} <= {*_FACTORS} or sums != more:
        raise missing(i)
    (kind_a, bits), (kind_b, bits_b), depth = _FACTORS[of_a], _FACTORS[of_b], int(shape[1])
    whole = of_a in _WHOLE_FACTORS
    halves = sums == "f16" and of_a not in ("bf16", "tf32")
    alike = bits == bits_b and whole == (of_b in _WHOLE_FACTORS) and (bits == 8 or of_a == of_b or whole)
    count = depth * bits // 128  # registers of a column's part
    if (
        not alike
        or count not in (1, 2)
        or depth * bits % 128
        or not (sums == ("s32" if whole else "f32") or halves)
    ):
        raise missing(i)
    if [len(o) for o in (d, a, b, c)] != [2 if halves else 4, 2 * count, count, 2 if halves else 4]:
        raise missing(i)
    for slot, part in enumerate(a):
        t.store_slot(slot, t.get(part, "i32"), "i32")
    for slot, part in enumerate(b):
        t.store_slot(4 + slot, t.get(part, "i32"), "i32")
    for slot, value in enumerate(_sums_of(t, c) if halves else [t.get(part, "i32") for part in c]):
        t.store_slot(6 + slot, value, "float" if halves else "i32")
    if whole:
        case = products.whole_case(bits, count)
        flags = products.UNSIGNED_ROWS * (kind_a == machine.U8) | products.UNSIGNED_COLUMNS * (
            kind_b == machine.U8
        )
        flags |= products.LIMITED * ("satfinite" in i.op)
        t.machine("multiply_whole", machine.pack(t.site(), 4, 1, case, flags, 0))
    else:
        t.machine("multiply_any", machine.pack(t.site(), depth, 1, kind_a, kind_b, 0))
    if halves:
        _put_sums(t, d, [t.load_slot(10 + n, "float") for n in range(4)])
        return
    for n, part in enumerate(d):
        t.put(part, t.load_slot(10 + n, "i32"), "i32")


def _sums_of(t: Translator, parts: Sequence[Operand]) -> list[str]:
    """float32 of pairs of halves."""
    found = []
    for part in parts:
        bits = t.get(part, "i32")
        for shift in (0, 16):
            low = t.two("lshr", "i32", bits, t.splat("i32", shift)) if shift else bits
            found.append(_widened(t, t.cast("trunc", low, "i32", "i16"), "f16"))
    return found


def _put_sums(t: Translator, parts: Sequence[Operand], values: Sequence[str]) -> None:
    for n, part in enumerate(parts):
        low, high = (t.cast("zext", _narrowed(t, v, "f16"), "i16", "i32") for v in values[2 * n : 2 * n + 2])
        t.put(part, t.two("or", "i32", low, t.two("shl", "i32", high, "splat (i32 16)")), "i32")


_WIDE_KINDS = {"f16": 16, "bf16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32}  # steps of a sum


@TABLE.of("wgmma")
def _multiplied_by_four_warps(t: Translator, i: Instruction) -> None:
    op = i.op
    if op[1] == "fence":
        return  # registers are always as the program says here
    if op[1] == "commit_group":
        t.machine("products", machine.pack(t.site(), 0, 1, 0))
        return
    if op[1] == "wait_group" and len(i.operands) == 1 and i.operands[0].kind == "number":
        t.machine("products", machine.pack(t.site(), min(i.operands[0].value, 255), 1, 1))
        return
    op = tuple(word for word in op if word != "satfinite")
    shape = re.fullmatch(r"m64n(\d+)k(\d+)", op[4])
    if op[1] != "mma_async" or shape is None or len(op) != 8:
        raise missing(i)
    columns, (sums, of_a, of_b), whole = int(shape[1]), op[5:], op[6] in _WHOLE_FACTORS
    d, a, b, more, *signs = i.operands
    narrow = sums == "f16" and of_a in ("f16", "e4m3", "e5m2")
    alike = of_a == of_b or (_WIDE_KINDS.get(of_a) == 32 and whole == (of_b in _WHOLE_FACTORS))
    if _WIDE_KINDS.get(of_a) != int(shape[2]) or of_b not in _WIDE_KINDS or not alike:
        raise missing(i)
    if not (sums == ("s32" if whole else "f32") or narrow):
        raise missing(i)
    if columns % 8 or not 8 <= columns <= 256 or len(d.parts) != columns // (4 if narrow else 2):
        raise missing(i)
    kind, kind_b, two_bytes = _FACTORS[of_a][0], _FACTORS[of_b][0], _WIDE_KINDS[of_a] == 16
    values = [o.value for o in signs]
    held = a.kind == "vector"
    turned = values[2:] if two_bytes else []
    if (
        any(o.kind != "number" for o in signs)
        or len(values) != (0 if whole else 2 if not two_bytes else 3 if held else 4)
        or any(v not in (1, -1) for v in values[:2])
        or any(v not in (0, 1) for v in turned)
        or (held and len(a.parts) != 4)
    ):
        raise missing(i)
    flags = machine.REGISTERS * held
    values = values or [1, 1]
    flags |= machine.NEGATED_A * (values[0] == -1) | machine.NEGATED_B * (values[1] == -1)
    flags |= machine.WHOLE_SUMS * whole | machine.SATURATED * ("satfinite" in i.op) | kind_b << 8
    if turned:
        flags |= machine.TRANSPOSED_B * turned[-1] | machine.TRANSPOSED_A * (turned[0] if not held else 0)
    if held:
        for slot, part in enumerate(a.parts):
            t.store_slot(6 + slot, t.get(part, "i32"), "i32")
    else:
        t.store_slot(0, t.get(a, "i64"), "i64")
    t.store_slot(1, t.get(b, "i64"), "i64")
    t.store_slot(2, t.cast("zext", t.get(more, "i1"), "i1", "i64"), "i64")
    wide = t.emit(f"load ptr, ptr {t.word(machine.W_WIDE)}", "p")
    places = [t.emit(f"getelementptr i8, ptr {wide}, i64 {128 * n}", "p") for n in range(columns // 2)]
    before = _sums_of(t, d.parts) if narrow else [t.get(part, "float") for part in d.parts]
    for place, value in zip(places, before, strict=True):
        t.line(f"store <32 x float> {value}, ptr {place}, align 64")
    t.machine("multiply_wide", machine.pack(t.site(), columns // 8, 1, kind, flags, 0))
    after = [t.emit(f"load <32 x float>, ptr {place}, align 64") for place in places]
    if narrow:
        _put_sums(t, d.parts, after)
        return
    for value, part in zip(after, d.parts, strict=True):
        t.put(part, value, "float")


@TABLE.of("ldmatrix", "stmatrix")
def _matrices(t: Translator, i: Instruction) -> None:
    stores = i.op[0] == "stmatrix"
    a, d = _count(t, 2) if stores else _count(t, 2)[::-1]
    parts = [
        p
        for p in i.op[1:]
        if p not in ("sync", "aligned", "m8n8", "x1", "x2", "x4", "trans", "shared", "b16", "shared::cta")
    ]
    if parts or "m8n8" not in i.op:
        raise missing(i)
    targets = d.parts if d.kind == "vector" else (d,)
    space = "shared" if any(p.split("::")[0] == "shared" for p in i.op) else "generic"
    t.store_addresses(t.address(a))
    flags = int("trans" in i.op)
    site = t.site(space, 2 if flags and stores else 4, stores)
    which = machine.SHARED if space == "shared" else machine.GENERIC
    if stores:
        for n, target in enumerate(targets):
            t.store_slot(4 + n, t.get(target, "i32"), "i32")
        t.machine("store_matrices", machine.pack(site, 4, len(targets), which, flags))
        return
    t.machine("load_matrices", machine.pack(site, 4, len(targets), which, flags))
    for n, target in enumerate(targets):
        t.put(target, t.load_slot(4 + n, "i32"), "i32")


# Of wmma: shape and type → what a number of a factor is.
_SQUARE_KINDS = {
    ("m16n16k16", "f16"): machine.HALF, ("m16n16k16", "bf16"): machine.BFLOAT, ("m16n16k8", "tf32"):
    machine.TF32,
}  # fmt: skip


@TABLE.of("wmma")
def _square(t: Translator, i: Instruction) -> None:
    """Matrices of 16 rows and columns that a warp has together (products.multiply_square says which lane has
    what). Counted as the requests that bring them in this order; a GPU may need others."""
    op = i.op
    if op[1] == "mma":
        _square_product(t, i)
        return
    what, order, shape, part = op[2], op[5], op[6], op[-1]
    space = op[7] if len(op) == 9 else "generic"
    stores = op[1] == "store"
    values, where = (i.operands[1], i.operands[0]) if stores else (i.operands[0], i.operands[1])
    sums = what in ("c", "d")
    known = shape in {s for s, _ in _SQUARE_KINDS} and order in ("row", "col") and len(op) in (8, 9)
    known = known and (part in ("f16", "f32") if sums else (shape, part) in _SQUARE_KINDS)
    places = (*_SPACES, "generic")
    if not known or space.split("::")[0] not in places or len(i.operands) != 3 or values.kind != "vector":
        raise missing(i)
    nbytes = 2 if part in ("f16", "bf16") else 4
    count = 4 if part == "tf32" else 8  # numbers of a lane, side by side in its row (or column)
    if len(values.parts) != (4 if part in ("tf32", "bf16") or (sums and part == "f16") else 8):
        raise missing(i)
    stride = t.get(i.operands[2], "i64")
    line = "<" + ", ".join(f"i64 {lane % 16}" for lane in range(32)) + ">"
    half = "<" + ", ".join(f"i64 {lane // 16 * count}" for lane in range(32)) + ">"
    # Of a, c and d a lane has part of a row, of b part of a column; beside each other if memory has them so.
    along = (order == "row") != (what == "b")
    first, second = (line, half) if along else (half, line)
    offset = t.two("add", "i64", t.two("mul", "i64", first, stride), second)
    base = t.two("add", "i64", t.address(where), t.two("mul", "i64", offset, t.splat("i64", nbytes)))
    step = t.splat("i64", 4 * 4) if along else t.two("mul", "i64", stride, t.splat("i64", nbytes))
    word = space.split("::")[0]
    which = machine.GENERIC if word == "generic" else _SPACES[word]
    site = t.site(word, 4 if along else nbytes, stores)
    words = nbytes * count // 4  # of 32 bits
    held = [t.get(v, "i32") for v in values.parts] if stores else []
    found: list[str] = []
    for request in range(-(-words // 4) if along else count):
        t.store_addresses(base)
        base = t.two("add", "i64", base, step)
        packed = machine.pack(site, 4 if along else nbytes, min(words, 4) if along else 1, which)
        if stores:
            for n in range(4 if along else 1):
                if along:
                    value = held[4 * request + n]
                elif nbytes == 4:
                    value = held[request]
                else:
                    value = t.two("lshr", "i32", held[request // 2], f"splat (i32 {16 * (request % 2)})")
                t.store_slot(n, value, "i32")
            t.machine("write", packed)
            continue
        t.machine("read", packed)
        if along or nbytes == 4:
            found += [t.load_slot(n, "i32") for n in range(min(words, 4) if along else 1)]
        else:
            value = t.two("and", "i32", t.load_slot(0, "i32"), "splat (i32 65535)")
            if request % 2:
                up = t.two("shl", "i32", value, "splat (i32 16)")
                found[-1] = t.two("or", "i32", found[-1], up)
            else:
                found.append(value)
    if not stores:
        for n, part_ in enumerate(values.parts):
            t.put(part_, found[n % len(found)], "i32")


def _square_product(t: Translator, i: Instruction) -> None:
    """wmma.mma; sums of halves are added up in float32."""
    op = i.op
    d, a, b, c = _count(t, 4)
    types = op[7:]
    factors = types[1:3] if len(types) == 4 else ("f16", "f16")
    sums = (types[0], types[-1])
    kind = _SQUARE_KINDS.get((op[6], factors[0]))
    lengths = [4 if s == "f16" else 8 for s in sums]
    each = 8 if kind == machine.HALF else 4
    wanted = [lengths[0], each, each, lengths[1]]
    if kind is None or factors[0] != factors[1] or not {*sums} <= {"f16", "f32"} or len(types) not in (2, 4):
        raise missing(i)
    if [len(o.parts) for o in (d, a, b, c)] != wanted or "satfinite" in op:
        raise missing(i)
    for slot, part in enumerate((*a.parts[:4], *b.parts[:4])):
        t.store_slot(slot, t.get(part, "i32"), "i32")
    for n, part in enumerate(c.parts):
        if sums[1] == "f32":
            t.store_slot(8 + n, t.get(part, "float"), "float")
            continue
        bits = t.get(part, "i32")
        for half in range(2):
            low = t.two("lshr", "i32", bits, "splat (i32 16)") if half else bits
            t.store_slot(8 + 2 * n + half, _widened(t, t.cast("trunc", low, "i32", "i16"), "f16"), "float")
    t.machine("multiply_square", machine.pack(t.site(), 4, 1, kind))
    for n, part in enumerate(d.parts):
        if sums[0] == "f32":
            t.put(part, t.load_slot(8 + n, "float"), "float")
            continue
        low, high = (
            t.cast("zext", _narrowed(t, t.load_slot(8 + 2 * n + half, "float"), "f16"), "i16", "i32")
            for half in range(2)
        )
        t.put(part, t.two("or", "i32", low, t.two("shl", "i32", high, "splat (i32 16)")), "i32")


@TABLE.of("tex")
def _texture(t: Translator, i: Instruction) -> None:
    d, a = _count(t, 2)
    if i.op[1:] != ("1d", "v4", "f32", "s32") or a.kind != "texture" or len(d.parts) != 4:
        raise missing(i)
    handle, where = a.parts
    t.store_addresses(t.get(handle, "i64"))
    t.store_slot(0, t.get(where.parts[0] if where.kind == "vector" else where, "i32"), "i32")
    t.machine("texture", machine.pack(t.site("texture", 4), 4, 1, 0))
    values = [t.load_slot(1, "float"), t.splat("float", 0), t.splat("float", 0), t.splat("float", 0x3F800000)]
    for target, value in zip(d.parts, values, strict=True):
        t.put(target, value, "float")


# --- lanes of a warp ---


@TABLE.of("shfl")
def _shuffled(t: Translator, i: Instruction) -> None:
    _only(t, "sync", "up", "down", "bfly", "idx")
    if "sync" not in i.op:
        raise missing(i)
    d, a, b, c, _ = _count(t, 5)
    result, inside = d.parts if d.kind == "pair" else (d, Operand("none"))
    mode = next(p for p in i.op if p in ("up", "down", "bfly", "idx"))
    kind = "i32"
    value = t.get(a, kind)
    t.site()
    if b.kind == "number" and c.kind == "number":
        sources, lanes = _sources(mode, b.value & 31, c.value & 31, c.value >> 8 & 31)
        order = ", ".join(f"i32 {s}" for s in sources)
        moved = t.emit(f"shufflevector <32 x i32> {value}, <32 x i32> poison, <32 x i32> <{order}>")
        within = f"<{', '.join(f'i1 {str(bool(lanes >> n & 1)).lower()}' for n in range(32))}>"
    else:
        t.store_slot(0, value, kind)
        t.store_slot(1, t.get(b, kind), kind)
        t.store_slot(2, t.get(c, kind), kind)
        number = {"up": machine.UP, "down": machine.DOWN, "bfly": machine.BUTTERFLY, "idx": machine.INDEX}[
            mode
        ]
        t.machine("shuffle", machine.pack(t.block_sites[-1], 4, 1, number))
        moved = t.load_slot(3, kind)
        within = t.condition(_mask_result(t))
    t.put(result, moved, kind)
    t.put(inside, within, "i1")


def _sources(mode: str, b: int, clamp: int, segment: int) -> tuple[list[int], int]:
    """For each lane from which it takes the value, and which of them are in range."""
    sources, lanes = [], 0
    for lane in range(32):
        last = (lane & segment) | (clamp & ~segment)
        if mode == "up":
            source = lane - b
            inside = source >= last
        elif mode == "idx":
            source = (lane & segment) | (b & ~segment)
            inside = source <= last
        else:
            source = lane + b if mode == "down" else lane ^ b
            inside = source <= last
        sources.append(source if inside else lane)
        lanes |= inside << lane
    return sources, lanes


def _mask_result(t: Translator) -> str:
    place = t.emit(f"getelementptr i8, ptr %W, i64 {8 * (machine.W_V + 32 * machine.S_RESULT)}", "p")
    return t.emit(f"load i32, ptr {place}, align 8")


def _named(t: Translator, members: Operand) -> str:
    """Of each lane the lanes that it names and that take part: groups of a warp may do one instruction, each
    with a mask of its own."""
    return t.two("and", "i32", t.get(members, "i32"), t.uniform("i32", t.active()))


@TABLE.of("vote")
def _voted(t: Translator, i: Instruction) -> None:
    if "sync" not in i.op:
        raise missing(i)
    d, a, members = _count(t, 3)
    named, mode = _named(t, members), i.op[2]
    agree = t.two("and", "i32", named, t.uniform("i32", t.mask(t.get(a, "i1"))))
    if mode == "ballot":
        t.put(d, agree, "i32")
        return
    every = t.emit(f"icmp eq <32 x i32> {agree}, {named}")
    nobody = t.emit(f"icmp eq <32 x i32> {agree}, zeroinitializer")
    if mode == "all":
        value = every
    elif mode == "any":
        value = t.two("xor", "i1", nobody, "splat (i1 true)")
    elif mode == "uni":
        value = t.two("or", "i1", every, nobody)
    else:
        raise missing(i)
    t.put(d, value, "i1")


@TABLE.of("elect")
def _elected(t: Translator, i: Instruction) -> None:
    d, _ = _count(t, 2)
    if i.op != ("elect", "sync") or d.kind != "pair":
        raise missing(i)
    named = ("<32 x i32>", _named(t, i.operands[1]))
    leader = t.call("llvm.cttz.v32i32", "<32 x i32>", named, ("i1", "false"))
    t.put(d.parts[0], leader, "i32")
    t.put(d.parts[1], t.emit(f"icmp eq <32 x i32> {leader}, {t.lanes}"), "i1")


@TABLE.of("activemask")
def _active(t: Translator, i: Instruction) -> None:
    t.put(_count(t, 1)[0], t.uniform("i32", t.active()), "i32")


@TABLE.of("match")
def _matched(t: Translator, i: Instruction) -> None:
    d, a, members = _count(t, 3)
    result, every = d.parts if d.kind == "pair" else (d, Operand("none"))
    kind, _, _ = _type(t, i.op[-1])
    t.store_slot(0, t.fit(t.get(a, kind), kind, "i64"), "i64")
    t.store_slot(1, t.fit(_named(t, members), "i32", "i64"), "i64")
    mode = machine.ALL if "all" in i.op else machine.ANY
    t.machine("match", machine.pack(t.site(), 8, 1, mode))
    t.put(result, t.fit(t.load_slot(2, "i64"), "i64", "i32"), "i32")
    t.put(every, t.condition(_mask_result(t)), "i1")


@TABLE.of("redux")
def _reduced(t: Translator, i: Instruction) -> None:
    d, a, members = _count(t, 3)
    _only(t, "sync", "add", "min", "max", "and", "or", "xor")
    kind, signed, real = _type(t, i.op[-1])
    if real or kind != "i32":
        raise missing(i)
    do = next(p for p in i.op[1:] if p in ("add", "min", "max", "and", "or", "xor"))
    neutral = {"add": 0, "or": 0, "xor": 0, "and": -1, "min": 0x7FFFFFFF if signed else -1}
    neutral["max"] = -0x80000000 if signed else 0
    name = (("s" if signed else "u") + do) if do in ("min", "max") else do
    if members.kind != "number":
        named, own, nothing = _named(t, members), t.get(a, "i32"), t.splat("i32", neutral[do])
        total = nothing
        for lane in range(32):
            bit = t.two("and", "i32", named, t.splat("i32", 1 << lane))
            counts = t.emit(f"icmp ne <32 x i32> {bit}, zeroinitializer")
            its = t.uniform("i32", t.emit(f"extractelement <32 x i32> {own}, i32 {lane}", "s"))
            its = t.select(counts, "i32", its, nothing)
            total = (
                t.vector(name, "i32", total, its) if do in ("min", "max") else t.two(do, "i32", total, its)
            )
        t.put(d, total, "i32")
        return
    values = t.select(t.condition(t.active()), "i32", t.get(a, "i32"), t.splat("i32", neutral[do]))
    value = t.call(f"llvm.vector.reduce.{name}.v32i32", "i32", ("<32 x i32>", values))
    t.put(d, t.uniform("i32", value), "i32")


# --- barriers ---


@TABLE.of("bar", "barrier")
def _barrier(t: Translator, i: Instruction) -> None:
    """bar.warp.sync; of the others only what can be checked before (see _wait)."""
    if i.op[1:2] == ("warp",):
        t.machine("synced", t.site())
        return
    words = [p for p in i.op[1:] if p not in ("cta", "aligned")]
    if words[:1] == ["cluster"]:
        if words[1] not in ("arrive", "wait") or not {*words[2:]} <= {"release", "acquire", "relaxed"}:
            raise missing(i)
        site = t.site()
        if words[1] == "arrive":
            t.machine("cluster_arrive", machine.pack(site, 0, 1, 0))
        return
    if not words or words[0] not in ("sync", "arrive", "red"):
        raise missing(i)
    t.site()


def _wait(t: Translator, i: Instruction) -> None:
    t.here = i
    words = [p for p in i.op[1:] if p not in ("cta", "aligned")]
    if words[0] == "cluster":
        t.machine("cluster_wait", machine.pack(t.block_sites[-1], 0, 0, 0), f"%act{t.index}")
        return
    operands = list(i.operands)
    if words[0] == "red":
        if len(operands) not in (3, 4):
            raise PtxError(f"PTX line {i.line}: {i.words} has {len(operands)} operands")
        value = t.mask(t.get(operands[-1], "i1"))
        operands = operands[1:-1]
    else:
        value = "0"
    if len(operands) not in (1, 2):
        raise PtxError(f"PTX line {i.line}: {i.words} has {len(i.operands)} operands")
    for slot, operand in enumerate(operands):
        t.store_slot(slot, t.get(operand, "i64"), "i64")
    first = machine.W_V
    # Which barrier it is, all lanes say alike; the first that is here counts.
    for slot, operand in enumerate(operands):
        if operand.kind != "number":
            t.intrinsics["llvm.cttz.i32"] = "declare i32 @llvm.cttz.i32(i32, i1)"
            lane = t.emit(f"call i32 @llvm.cttz.i32(i32 %act{t.index}, i1 false)")
            place = t.emit(f"getelementptr i64, ptr {t.word(first + 32 * slot)}, i32 {lane}", "p")
            t.line(f"store i64 {t.emit(f'load i64, ptr {place}')}, ptr {t.word(first + 32 * slot)}")
    if len(operands) == 1:
        t.line(f"store i64 0, ptr {t.word(first + 32)}")
    t.line(f"store i64 {t.emit(f'zext i32 {value} to i64')}, ptr {t.word(first + 64)}")
    flags = machine.ARRIVE if words[0] == "arrive" else 0
    t.machine("barrier", machine.pack(t.block_sites[-1], 0, 0, 0, flags), f"%act{t.index}")


def _barred(t: Translator, i: Instruction) -> None:
    words = [p for p in i.op[2:] if p not in ("cta", "aligned")]
    if words[:1] != ["red"]:
        return
    trues, arrived = t.scalar("%W", machine.W_TRUES), t.scalar("%W", machine.W_ARRIVED)
    if words[1] == "popc":
        t.put(i.operands[0], trues, "i32")
    elif words[1] == "and":
        t.put(i.operands[0], t.emit(f"icmp eq <32 x i32> {trues}, {arrived}"), "i1")
    else:
        t.put(i.operands[0], t.emit(f"icmp ne <32 x i32> {trues}, zeroinitializer"), "i1")
