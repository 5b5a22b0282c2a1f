"""Machine code of the functions of kernels.ptx.machine: Python's syntax, LLVM's types.

They are written as compiled CPU rungs are (kernels.cpu.compiled), with whole numbers of 64 bits, float32 and
float64, conditions, and pointers out of kernels.cpu.simd. Of all that, this reads the syntax tree and writes
LLVM's text, which is optimized once for all that a function calls. Numba, which does the same for rungs,
takes twenty times as long for functions that call each other so much, and whoever judges a kernel for the
first time waits for it.

A name has the type of what it is given. Given something of another type it is a new name from there on, but
that a condition becomes a number, and a number float64, where the name is one already. Whole numbers out of
memory are extended to 64 bits.
"""

from __future__ import annotations

import ast
import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kernels.cpu import simd
from kernels.cpu.compiled import ENTRY, Compiled, Inlined, inlined, target

__all__ = ["compiled", "inlined", "lowest", "of_half", "ones"]

INT, UINT, BOOL, F32, F64, VOID = "int", "uint", "bool", "f32", "f64", "void"
LLVM = {INT: "i64", UINT: "i64", BOOL: "i1", F32: "float", F64: "double", VOID: "void"}
# A pointer's type is the name in kernels.cpu.simd: what lies there, and what a number of it is here.
POINTERS = {
    "integers": ("i64", INT), "words": ("i32", INT), "halves": ("i16", INT), "octets": ("i8", INT), "floats":
    ("float", F32), "doubles": ("double", F64),
}  # fmt: skip
RANK = {BOOL: 0, INT: 1, UINT: 2, F32: 3, F64: 4}  # of two the later one is the type of what comes of them
WHOLE = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
    ast.LShift: "shl",
}  # fmt: skip
REAL = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
ORDERS = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}
FUNCTIONS = {"exp": "exp", "log": "log", "sin": "sin", "cos": "cos", "floor": "floor"}  # of math and of NumPy
STEP = (("warp", "integers"), ("mask", INT), ("packed", INT), ("scratch", "floats"))

Value = tuple[str, str]  # as LLVM's text has it, and its type


def compiled(function: Callable[..., Any]) -> Compiled:
    """A function f(warp, mask, packed, scratch), compiled when it is first asked for its address."""
    function.__globals__["__source__"] = _text(function.__code__.co_filename) + _text(__file__)
    return Compiled(function, _object)  # which is found again by that text


@functools.cache
def _text(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")


def lowest(mask: int) -> int:
    """The number of the lowest bit that is set; 64 where none is."""
    return (mask & -mask).bit_length() - 1 if mask else 64


def ones(mask: int) -> int:
    """How many bits are set."""
    return mask.bit_count()


def of_half(bits: int) -> float:
    """The float32 of the 16 bits of a half."""
    return float(np.uint16(bits).view(np.float16))


COUNTS = {lowest: ("cttz", ", i1 false"), ones: ("ctpop", "")}  # functions, and what LLVM has of them


def _object(function: Callable[..., Any]) -> bytes:
    import llvmlite.binding as llvm

    machine = target()
    module = llvm.parse_assembly(Module(function.__globals__).text(function))
    module.verify()
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization = tuning.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    return bytes(machine.emit_object(module))


@functools.cache
def _trees(path: str) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in ast.parse(_text(path)).body if isinstance(node, ast.FunctionDef)}


def _tree(function: Callable[..., Any]) -> ast.FunctionDef:
    return _trees(function.__code__.co_filename)[function.__name__]


def _kind(type_: str) -> str:
    return LLVM.get(type_, "ptr")


class Module:
    """The functions that one needs, each for the types of the arguments that it is called with."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self.declared: dict[str, str] = {}
        self.made: dict[
            tuple[str, tuple[str, ...]], tuple[str, str]
        ] = {}  # → LLVM's name, type of the result
        self.texts: list[str] = []

    def text(self, function: Callable[..., Any]) -> str:
        own, _ = self.function(_tree(function), tuple(type_ for _, type_ in STEP))
        arguments = ", ".join(f"{_kind(type_)} %{name}" for name, type_ in STEP)
        entry = f"define void @{ENTRY}({arguments}) {{\n  call void @{own}({arguments})\n  ret void\n}}"
        wide = 'attributes #0 = { nounwind "prefer-vector-width"="512" }'
        return "\n".join([*self.declared.values(), *self.texts, entry, wide])

    def function(self, tree: ast.FunctionDef, types: tuple[str, ...]) -> tuple[str, str]:
        key = tree.name, types
        if key not in self.made:
            name = f"{tree.name}.{len(self.made)}"
            result = ""
            for _ in range(2):  # once more where its results are of several types
                made = Function(self, tree, types, result)
                text = made.text(name)
                if made.result == result or len(made.results) < 2:
                    break
                result = made.result
            self.made[key] = name, made.result
            self.texts.append(text)
        return self.made[key]

    def intrinsic(self, name: str, result: str, *kinds: str) -> str:
        self.declared[name] = f"declare {result} @{name}({', '.join(kinds)})"
        return name


class Function:
    """One function's text. result: the type of what it gives back, "" where that is not known yet."""

    def __init__(self, module: Module, tree: ast.FunctionDef, types: Sequence[str], result: str) -> None:
        self.module, self.tree, self.types, self.wanted = module, tree, types, result
        self.results: set[str] = set()
        self.slots: dict[str, Value] = {}  # of a name its place, and its type
        self.head: list[str] = []
        self.lines: list[str] = []
        self.loops: list[tuple[str, str]] = []  # where continue and break lead
        self.numbers = itertools.count()
        self.open = True  # whether what is written next can be reached

    @property
    def result(self) -> str:
        if not self.results:
            return VOID
        return self.wanted or max(self.results, key=lambda type_: RANK.get(type_, 9))

    def text(self, name: str) -> str:
        arguments = []
        for given, type_ in zip(self.tree.args.args, self.types, strict=True):
            arguments.append(f"{_kind(type_)} %{given.arg}")
            self.give(given.arg, (f"%{given.arg}", type_))
        self.body(self.tree.body)
        if self.open:
            self.line("ret void" if self.result == VOID else f"ret {_kind(self.result)} zeroinitializer")
        head = f"define internal {_kind(self.result)} @{name}({', '.join(arguments)}) #0 {{"
        return "\n".join([head, "begin:", *self.head, *self.lines, "}"])

    # --- text ---

    def line(self, text: str) -> None:
        if self.open:
            self.lines.append(f"  {text}")

    def emit(self, text: str) -> str:
        name = f"%.{next(self.numbers)}"
        self.line(f"{name} = {text}")
        return name

    def label(self, name: str) -> None:
        self.open = True
        self.lines.append(f"{name}:")

    def jump(self, to: str) -> None:
        self.line(f"br label %{to}")
        self.open = False

    def branch(self, condition: str, yes: str, no: str) -> None:
        self.line(f"br i1 {condition}, label %{yes}, label %{no}")
        self.open = False

    def fresh(self, *names: str) -> Iterator[str]:
        number = next(self.numbers)
        return (f"{name}{number}" for name in names)

    def refuse(self, node: ast.AST) -> TypeError:
        return TypeError(
            f"{self.tree.name}, line {getattr(node, 'lineno', 0)}: {ast.unparse(node)} has no words here"
        )

    # --- names ---

    def slot(self, type_: str) -> str:
        place = f"%slot.{next(self.numbers)}"
        self.head.append(f"  {place} = alloca {_kind(type_)}")
        return place

    def give(self, name: str, value: Value) -> None:
        place, type_ = self.slots.get(name, ("", ""))
        fits = type_ == value[1] or (type_ == INT and value[1] == BOOL) or (type_ == F64 and value[1] in RANK)
        if type_ == BOOL and not fits:
            raise TypeError(f"{self.tree.name}: {name} is a condition, and is given {value[1]}")
        if not fits:
            place, type_ = self.slots[name] = self.slot(value[1]), value[1]
        self.line(f"store {_kind(type_)} {self.as_(value, type_)}, ptr {place}")

    # --- types ---

    def as_(self, value: Value, type_: str) -> str:
        """A value as one of another type."""
        text, of = value
        if of == type_ or {of, type_} == {INT, UINT}:
            return text
        if of in POINTERS or type_ in POINTERS:
            raise TypeError(f"{self.tree.name}: {of} is no {type_}")
        if type_ == BOOL:
            zero = "0.0" if of in (F32, F64) else "0"
            return self.emit(f"{'fcmp une' if of in (F32, F64) else 'icmp ne'} {LLVM[of]} {text}, {zero}")
        if of == BOOL and type_ in (INT, UINT):
            return self.emit(f"zext i1 {text} to i64")
        if of == BOOL or of in (INT, UINT):
            return self.emit(f"{'sitofp' if of == INT else 'uitofp'} {LLVM[of]} {text} to {LLVM[type_]}")
        if type_ in (INT, UINT):
            return self.emit(f"fptosi {LLVM[of]} {text} to i64")
        return self.emit(f"{'fpext' if of == F32 else 'fptrunc'} {LLVM[of]} {text} to {LLVM[type_]}")

    def alike(self, *values: Value, least: str = BOOL) -> tuple[list[str], str]:
        type_ = max((least, *(type_ for _, type_ in values)), key=lambda t: RANK[t])
        return [self.as_(value, type_) for value in values], type_

    def condition(self, node: ast.expr) -> str:
        return self.as_(self.value(node), BOOL)

    # --- statements ---

    def body(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if not self.open:
                return
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                return
            case ast.Expr(value=value):
                self.value(value)
            case ast.Assign(targets=targets, value=ast.Tuple(elts=values)):
                found = [self.value(each) for each in values]
                for target_ in targets:
                    assert isinstance(target_, ast.Tuple)
                    for element, its in zip(target_.elts, found, strict=True):
                        self.assign(element, its)
            case ast.Assign(targets=targets, value=value):
                one = self.value(value)
                for target_ in reversed(targets):
                    self.assign(target_, one)
            case ast.AugAssign(target=target_, op=op, value=value):
                self.changed(target_, op, value)
            case ast.If(test=test, body=body, orelse=otherwise):
                yes, no, end = self.fresh("yes", "no", "end")
                self.branch(self.condition(test), yes, no if otherwise else end)
                self.label(yes)
                self.body(body)
                self.jump(end)
                if otherwise:
                    self.label(no)
                    self.body(otherwise)
                    self.jump(end)
                self.label(end)
            case ast.While(test=test, body=body, orelse=[]):
                again, inside, end = self.fresh("again", "inside", "end")
                self.jump(again)
                self.label(again)
                self.branch(self.condition(test), inside, end)
                self.looped(inside, body, again, end)
                self.jump(again)
                self.label(end)
            case ast.For():
                self.counted(node)
            case ast.Return(value=None):
                self.line("ret void")
                self.open = False
            case ast.Return(value=value):
                assert value is not None
                given = self.value(value)
                self.results.add(given[1])
                type_ = self.wanted or given[1]
                self.line(f"ret {_kind(type_)} {self.as_(given, type_)}")
                self.open = False
            case ast.Break():
                self.jump(self.loops[-1][1])
            case ast.Continue():
                self.jump(self.loops[-1][0])
            case _:
                raise self.refuse(node)

    def looped(self, inside: str, body: Sequence[ast.stmt], again: str, end: str) -> None:
        self.label(inside)
        self.loops.append((again, end))
        self.body(body)
        self.loops.pop()

    def counted(self, node: ast.For) -> None:
        """for name in range(…)."""
        call = node.iter
        if not (isinstance(call, ast.Call) and isinstance(node.target, ast.Name)) or node.orelse:
            raise self.refuse(node)
        bounds = [(self.as_(self.value(bound), INT), INT) for bound in call.args]
        first, last = (("0", INT), bounds[0]) if len(bounds) == 1 else (bounds[0], bounds[1])
        if len(bounds) > 2:
            raise self.refuse(node)
        counter = self.slot(INT)
        self.line(f"store i64 {first[0]}, ptr {counter}")
        again, inside, more, end = self.fresh("again", "inside", "more", "end")
        self.jump(again)
        self.label(again)
        now = self.emit(f"load i64, ptr {counter}")
        self.branch(self.emit(f"icmp slt i64 {now}, {last[0]}"), inside, end)
        self.open = True
        self.lines.append(f"{inside}:")
        self.give(node.target.id, (now, INT))
        self.loops.append((more, end))
        self.body(node.body)
        self.loops.pop()
        self.jump(more)
        self.label(more)
        self.line(f"store i64 {self.emit(f'add nsw i64 {now}, 1')}, ptr {counter}")
        self.jump(again)
        self.label(end)

    def assign(self, target_: ast.expr, value: Value) -> None:
        if isinstance(target_, ast.Name):
            self.give(target_.id, value)
        elif isinstance(target_, ast.Subscript):
            place, kind, type_ = self.element(target_)
            self.store(place, kind, type_, value)
        else:
            raise self.refuse(target_)

    def changed(self, target_: ast.expr, op: ast.operator, by: ast.expr) -> None:
        if isinstance(target_, ast.Subscript):
            place, kind, type_ = self.element(target_)
            now = self.operated(op, self.load(place, kind, type_), self.value(by), target_)
            self.store(place, kind, type_, now)
        else:
            self.assign(target_, self.operated(op, self.value(target_), self.value(by), target_))

    # --- memory ---

    def element(self, node: ast.Subscript) -> tuple[str, str, str]:
        pointer, name = self.value(node.value)
        if name not in POINTERS:
            raise self.refuse(node)
        kind, type_ = POINTERS[name]
        index = self.as_(self.value(node.slice), INT)
        return self.emit(f"getelementptr inbounds {kind}, ptr {pointer}, i64 {index}"), kind, type_

    def load(self, place: str, kind: str, type_: str) -> Value:
        value = self.emit(f"load {kind}, ptr {place}")
        if kind in ("i32", "i16", "i8"):
            value = self.emit(f"{'zext' if kind == 'i8' else 'sext'} {kind} {value} to i64")
        return value, type_

    def store(self, place: str, kind: str, type_: str, value: Value) -> None:
        text = self.as_(value, type_)
        if kind in ("i32", "i16", "i8"):
            text = self.emit(f"trunc i64 {text} to {kind}")
        self.line(f"store {kind} {text}, ptr {place}")

    # --- expressions ---

    def value(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(value=value):
                return self.constant(value, node)
            case ast.Name(id=name) if name in self.slots:
                place, type_ = self.slots[name]
                return self.emit(f"load {_kind(type_)}, ptr {place}"), type_
            case ast.Name(id=name):
                return self.constant(self.module.names.get(name), node)
            case ast.Attribute(value=ast.Name(id=home), attr=name):
                return self.constant(getattr(self.module.names[home], name), node)
            case ast.Subscript():
                return self.load(*self.element(node))
            case ast.BinOp(left=left, op=op, right=right):
                return self.operated(op, self.value(left), self.value(right), node)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.emit(f"xor i1 {self.condition(operand)}, true"), BOOL
            case ast.UnaryOp(op=op, operand=operand):
                return self.turned(op, self.value(operand), node)
            case ast.Compare():
                return self.compared(node)
            case ast.BoolOp(op=op, values=values):
                return self.joined(isinstance(op, ast.And), values)
            case ast.IfExp(test=test, body=body, orelse=otherwise):
                return self.chosen(test, body, otherwise)
            case ast.Call():
                return self.called(node)
        raise self.refuse(node)

    def constant(self, value: Any, node: ast.expr) -> Value:
        if isinstance(value, bool):
            return ("true" if value else "false"), BOOL
        if isinstance(value, int):
            return str((value + (1 << 63)) % (1 << 64) - (1 << 63)), INT
        if isinstance(value, float):
            return f"0x{int(np.float64(value).view(np.uint64)):016X}", F64
        raise self.refuse(node)

    def operated(self, op: ast.operator, a: Value, b: Value, node: ast.expr) -> Value:
        (x, y), type_ = self.alike(a, b, least=INT)
        kind = LLVM[type_]
        if type_ in (F32, F64) or isinstance(op, ast.Div):
            if type(op) not in REAL or type_ not in (F32, F64):
                raise self.refuse(node)
            return self.emit(f"{REAL[type(op)]} contract nsz {kind} {x}, {y}"), type_
        if type(op) in WHOLE:
            return self.emit(f"{WHOLE[type(op)]} {kind} {x}, {y}"), type_
        if isinstance(op, ast.RShift):
            return self.emit(f"{'lshr' if type_ == UINT else 'ashr'} {kind} {x}, {y}"), type_
        if not isinstance(op, ast.FloorDiv | ast.Mod):
            raise self.refuse(node)
        divides = isinstance(op, ast.FloorDiv)
        if type_ == UINT:
            return self.emit(f"{'udiv' if divides else 'urem'} {kind} {x}, {y}"), type_
        if y.isdecimal() and int(y).bit_count() == 1:
            power = int(y).bit_length() - 1
            return self.emit(f"ashr i64 {x}, {power}" if divides else f"and i64 {x}, {int(y) - 1}"), INT
        # Down, as Python does, and not towards zero.
        rest = self.emit(f"srem i64 {x}, {y}")
        apart = self.emit(f"icmp slt i64 {self.emit(f'xor i64 {rest}, {y}')}, 0")
        some = self.emit(f"icmp ne i64 {rest}, 0")
        below = self.emit(f"and i1 {apart}, {some}")
        if divides:
            less = self.emit(f"sext i1 {below} to i64")
            return self.emit(f"add i64 {self.emit(f'sdiv i64 {x}, {y}')}, {less}"), INT
        more = self.emit(f"select i1 {below}, i64 {y}, i64 0")
        return self.emit(f"add i64 {rest}, {more}"), INT

    def turned(self, op: ast.unaryop, value: Value, node: ast.expr) -> Value:
        if isinstance(op, ast.USub) and value[1] in (F32, F64):
            return self.emit(f"fneg {LLVM[value[1]]} {value[0]}"), value[1]
        whole = self.as_(value, INT)
        if isinstance(op, ast.USub):
            if whole.isdecimal():
                return f"-{whole}" if whole != "0" else "0", INT
            return self.emit(f"sub i64 0, {whole}"), INT
        if isinstance(op, ast.Invert):
            return self.emit(f"xor i64 {whole}, -1"), INT
        raise self.refuse(node)

    def compared(self, node: ast.Compare) -> Value:
        left, result = self.value(node.left), ""
        for op, other in zip(node.ops, node.comparators, strict=True):
            if isinstance(op, ast.In):
                assert isinstance(other, ast.Tuple)
                one = "false"
                for each in other.elts:
                    same = self.ordered(ast.Eq(), left, self.value(each))
                    one = self.emit(f"or i1 {one}, {same}")
            else:
                right = self.value(other)
                one, left = self.ordered(op, left, right), right
            result = self.emit(f"and i1 {result}, {one}") if result else one
        return result, BOOL

    def ordered(self, op: ast.cmpop, a: Value, b: Value) -> str:
        (x, y), type_ = self.alike(a, b, least=INT)
        order = ORDERS[type(op)]
        if type_ in (F32, F64):
            return self.emit(f"fcmp {'une' if order == 'ne' else 'o' + order} {LLVM[type_]} {x}, {y}")
        sign = "" if order in ("eq", "ne") else "u" if type_ == UINT else "s"
        return self.emit(f"icmp {sign}{order} i64 {x}, {y}")

    def joined(self, every: bool, values: Sequence[ast.expr]) -> Value:
        place = self.slot(BOOL)
        (end,) = self.fresh("end")
        for number, each in enumerate(values):
            condition = self.condition(each)
            self.line(f"store i1 {condition}, ptr {place}")
            if number == len(values) - 1:
                self.jump(end)
                break
            (more,) = self.fresh("more")
            self.branch(condition, *((more, end) if every else (end, more)))
            self.label(more)
        self.label(end)
        return self.emit(f"load i1, ptr {place}"), BOOL

    def chosen(self, test: ast.expr, body: ast.expr, otherwise: ast.expr) -> Value:
        yes, no, end = self.fresh("yes", "no", "end")
        self.branch(self.condition(test), yes, no)
        self.label(yes)
        first, start = self.value(body), len(self.lines)
        self.label(no)
        second = self.value(otherwise)
        type_ = first[1] if first[1] == second[1] else max(first[1], second[1], key=lambda t: RANK[t])
        place = self.slot(type_)
        self.line(f"store {_kind(type_)} {self.as_(second, type_)}, ptr {place}")
        self.jump(end)
        # The first is of no known type until the second is.
        after, self.lines = self.lines[start:], self.lines[:start]
        self.open = True
        self.line(f"store {_kind(type_)} {self.as_(first, type_)}, ptr {place}")
        self.line(f"br label %{end}")
        self.lines += after
        self.label(end)
        return self.emit(f"load {_kind(type_)}, ptr {place}"), type_

    def called(self, node: ast.Call) -> Value:
        given = [self.value(argument) for argument in node.args]
        match node.func:
            case ast.Attribute(value=ast.Name(id=home), attr=name):
                module = self.module.names[home]
                if module is simd:
                    return self.of_simd(name, given, node)
                if module in (math, np) and name in FUNCTIONS:
                    own = self.module.intrinsic(f"llvm.{FUNCTIONS[name]}.f64", "double", "double")
                    return self.emit(f"call double @{own}(double {self.as_(given[0], F64)})"), F64
                kinds = {"float64": F64, "float32": F32, "int64": INT, "uint64": UINT, "int32": INT}
                if module is np and name in kinds:
                    text = self.as_(given[0], kinds[name])
                    if name == "int32":
                        text = self.emit(f"sext i32 {self.emit(f'trunc i64 {text} to i32')} to i64")
                    return text, kinds[name]
            case ast.Name(id=("min" | "max") as name) if len(given) == 2:
                (x, y), type_ = self.alike(*given, least=INT)
                if type_ == INT:
                    own = self.module.intrinsic(f"llvm.s{name}.i64", "i64", "i64", "i64")
                    return self.emit(f"call i64 @{own}(i64 {x}, i64 {y})"), INT
            case ast.Name(id=name) if (of := self.module.names.get(name)) in COUNTS:
                count, more = COUNTS[of]
                own = self.module.intrinsic(f"llvm.{count}.i64", "i64", "i64", *(["i1"] if more else []))
                return self.emit(f"call i64 @{own}(i64 {self.as_(given[0], INT)}{more})"), INT
            case ast.Name(id=name) if self.module.names.get(name) is of_half:
                bits = self.emit(f"trunc i64 {self.as_(given[0], INT)} to i16")
                half = self.emit(f"bitcast i16 {bits} to half")
                return self.emit(f"fpext half {half} to float"), F32
            case ast.Name(id="abs"):
                own = self.module.intrinsic("llvm.fabs.f64", "double", "double")
                return self.emit(f"call double @{own}(double {self.as_(given[0], F64)})"), F64
            case ast.Name(id=name) if isinstance(of := self.module.names.get(name), Inlined):
                own, result = self.module.function(_tree(of.function), tuple(type_ for _, type_ in given))
                words = ", ".join(f"{_kind(type_)} {text}" for text, type_ in given)
                if result == VOID:
                    self.line(f"call void @{own}({words})")
                    return "", VOID
                return self.emit(f"call {_kind(result)} @{own}({words})"), result
        raise self.refuse(node)

    def of_simd(self, name: str, given: Sequence[Value], node: ast.expr) -> Value:
        if name in POINTERS:
            return self.emit(f"inttoptr i64 {self.as_(given[0], INT)} to ptr"), name
        if name == "shifted":
            (pointer, type_), count = given
            kind, _ = POINTERS[type_]
            place = f"getelementptr inbounds {kind}, ptr {pointer}, i64 {self.as_(count, INT)}"
            return self.emit(place), type_
        if name == "bits":
            bits = self.emit(f"bitcast float {self.as_(given[0], F32)} to i32")
            return self.emit(f"sext i32 {bits} to i64"), INT
        if name == "from_bits":
            bits = self.emit(f"trunc i64 {self.as_(given[0], INT)} to i32")
            return self.emit(f"bitcast i32 {bits} to float"), F32
        if name == "number":
            return self.emit(f"bitcast i64 {self.as_(given[0], INT)} to double"), F64
        if name == "invoke":
            address, warp, low, high, scratch = given
            pointer = self.emit(f"inttoptr i64 {self.as_(address, INT)} to ptr")
            numbers = ", ".join(f"i64 {self.as_(each, INT)}" for each in (low, high))
            self.line(f"call void {pointer}(ptr {warp[0]}, {numbers}, ptr {scratch[0]})")
            return "", VOID
        raise self.refuse(node)
