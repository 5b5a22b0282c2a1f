"""PTX as text → kernels: their instructions with operands, registers, variables and source lines.

What is read is the language of the PTX ISA 9.0 as far as kernels need it. What is not understood is a
PtxError that names the line. What is handed to a function, or comes back, is a register here; where it is an
array, its place in local memory.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from kernels.errors import UnsupportedError

_TOKEN = re.compile(
    r'[ \t\r]*(?:(?P<line>\n)|(?P<space>//[^\n]*|/\*.*?\*/|\Z)|(?P<string>"[^"\n]*")'
    r"|(?P<number>0[fF][0-9a-fA-F]{8}\b|0[dD][0-9a-fA-F]{16}\b|0[xX][0-9a-fA-F]+U?|\d+U?(?![\w$]))"
    r"|(?P<word>[A-Za-z_$%.][\w$.]*(?:::[\w.]+)*)|(?P<mark>[-+{}()\[\];,:=<>|@!]))",
    re.S,
)
MOST_NBYTES = 64 << 20  # of a text
MOST_CLUSTER = 16  # blocks
MOST_VARIABLE = 1 << 30  # bytes of a variable
KINDS = {"pred", "f16", "bf16", "f16x2", "bf16x2", "f32", "f64"}  # of a register
KINDS |= {f"{letter}{bits}" for letter in "bsu" for bits in (8, 16, 32, 64)}
_SPLIT = (
    ".reg",
    ".param",
    ".local",
    ".shared",
    ".global",
    ".const",
)  # words behind which a type may stand at once
SIZES = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16}


class PtxError(UnsupportedError):
    """PTX that cannot be read or run, with its line."""


@dataclass(frozen=True, slots=True)
class Place:
    """A line of source: of the function that was inlined last, and where the kernel's own text calls it."""

    file: str
    line: int
    outer_file: str
    outer_line: int


@dataclass(frozen=True, slots=True)
class Operand:
    """kind: "register", "number" (bits, of a float too), "symbol", "address" (base, offset), "vector",
    "pair" (d|p), "texture"."""

    kind: Literal["register", "number", "symbol", "address", "vector", "pair", "texture", "none"]
    name: str = ""
    value: int = 0
    parts: tuple[Operand, ...] = ()
    negated: bool = False
    width: int = 0  # of a float's bits


@dataclass(slots=True)
class Instruction:
    """op: its words ("ld", "global", "f32"). guard: the predicate register and whether it is negated. used:
    of a vector that is loaded, a bit for each byte that is used."""

    op: tuple[str, ...]
    operands: list[Operand]
    guard: tuple[str, bool] | None
    line: int
    place: Place | None
    used: int = -1

    @property
    def words(self) -> str:
        return ".".join(self.op)


@dataclass(frozen=True, slots=True)
class Variable:
    """space: "shared", "local", "global", "const", "param". content: what it begins with, or None;
    references: (offset, name, so much more) where it holds the address of a variable or a function."""

    name: str
    space: str
    nbytes: int
    align: int
    content: bytes | None = None
    external: bool = False
    references: tuple[tuple[int, str, int], ...] = ()


@dataclass(slots=True)
class Kernel:
    """A kernel, or a function. body: instructions, and labels as their names. registers: their types ("f32",
    "pred", …). cluster: its blocks, by x, y and z. given, back: of a function the registers of what it is
    given and gives back; of an array that of its address. tables: of a jump by number the labels."""

    name: str
    params: list[Variable] = field(default_factory=list)
    body: list[Instruction | str] = field(default_factory=list)
    registers: dict[str, str] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    local_nbytes: int = 0
    cluster: tuple[int, int, int] = (1, 1, 1)
    given: list[str] = field(default_factory=list)
    back: list[str] = field(default_factory=list)
    arrays: set[str] = field(default_factory=set)
    tables: dict[str, list[Instruction]] = field(default_factory=dict)


@dataclass(slots=True)
class Module:
    target: str
    kernels: dict[str, Kernel]
    variables: dict[str, Variable]
    files: dict[int, str]
    functions: dict[str, Kernel] = field(default_factory=dict)


def read(text: str) -> Module:
    """The kernels of a PTX text. Raises PtxError."""
    if len(text) > MOST_NBYTES:
        raise PtxError(f"a PTX text of {len(text):,} characters is longer than {MOST_NBYTES:,}")
    try:
        return _Reader(text).module()
    except IndexError:
        raise PtxError("the PTX ends in the middle of a statement") from None


def _tokens(text: str) -> tuple[list[str], list[int]]:
    tokens, lines = [], []
    line = 1
    at = 0
    next_of = _TOKEN.match
    while at < len(text):
        found = next_of(text, at)
        if found is None:
            rest = text[at:].lstrip(" \t\r")[:20].splitlines()[0]
            raise PtxError(f"PTX line {line}: {rest!r} is no PTX")
        at = found.end()
        kind = found.lastgroup
        if kind == "line":
            line += 1
        elif kind == "space":
            line += found[0].count("\n")
        else:
            word = found[found.lastindex or 0]
            if word[0] == "." and "." in word[1:]:
                first, _, rest = word[1:].partition(".")
                if f".{first}" in _SPLIT:
                    tokens.append(f".{first}")
                    lines.append(line)
                    word = f".{rest}"
            tokens.append(word)
            lines.append(line)
    return tokens, lines


class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens, self.lines = _tokens(text)
        self.at = 0
        self.scopes: list[dict[str, str]] = []
        self.handed: set[str] = set()  # registers of what is passed to functions
        self.places: dict[str, Operand] = {}  # what a name that is no register stands for
        self.arrays: set[str] = set()  # of what is passed the arrays: local variables, registers of addresses
        self.labels: list[tuple[dict[str, str], list[Instruction]]] = []
        self.count = 0
        self.place: Place | None = None
        self.used = -1
        # They stand behind the kernels.
        self.files = {
            int(n): name for n, name in re.findall(r'^\s*\.file\s+(\d{1,9})\s+"([^"\n]*)"', text, re.M)
        }

    def bad(self, words: str) -> PtxError:
        line = self.lines[min(self.at, len(self.lines) - 1)] if self.lines else 0
        at = f" ({self.place.file.rsplit('/', 1)[-1]}:{self.place.line})" if self.place else ""
        return PtxError(f"PTX line {line}{at}: {words}")

    def take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1]

    def peek(self) -> str:
        return self.tokens[self.at]

    def expect(self, what: str) -> None:
        if (token := self.take()) != what:
            self.at -= 1
            raise self.bad(f"{token!r} stands where {what!r} should")

    def until(self, *ends: str) -> list[str]:
        taken = []
        while self.peek() not in ends:
            taken.append(self.take())
        return taken

    def whole(self, token: str) -> int:
        try:
            return (
                int(token.rstrip("U"), 0)
                if not token.startswith("0") or "x" in token.lower()
                else int(token.rstrip("U") or "0", 8 if len(token.rstrip("U")) > 1 else 10)
            )
        except ValueError:
            raise self.bad(f"{token!r} is no whole number") from None

    # --- the module ---

    def module(self) -> Module:
        module = Module("", {}, {}, self.files)
        while self.at < len(self.tokens):
            word = self.take()
            if word == ".version":
                self.take()
                if self.at < len(self.tokens) and self.peek().startswith("."):
                    self.take()
            elif word == ".target":
                module.target = self.take()
                while self.peek() == ",":
                    self.take()
                    self.take()
            elif word == ".address_size":
                if self.take() != "64":
                    raise self.bad("only addresses of 64 bits are understood")
            elif word == ".file":
                self.file()
            elif word == ".section":
                self.until("{")
                self.skip_braces()
            elif word in (".visible", ".extern", ".weak", ".common"):
                if word == ".extern" and self.peek() in (".shared", ".global", ".const"):
                    self.variable(self.take()[1:], module.variables, external=True)
                elif word == ".extern" and self.peek() == ".func":
                    self.until(";")
                    self.take()
            elif word == ".entry":
                kernel = self.entry(module)
                module.kernels[kernel.name] = kernel
            elif word == ".func":
                self.function(module)
            elif word in (".global", ".const", ".shared"):
                self.variable(word[1:], module.variables)
            elif word == ";":
                continue
            elif word == ".pragma":
                self.until(";")
                self.take()
            else:
                self.at -= 1
                raise self.bad(f"{word!r} is not understood here")
        return module

    def file(self) -> None:
        number = self.whole(self.take())
        self.files[number] = self.take().strip('"')
        while self.at < len(self.tokens) and self.peek() == ",":
            self.take()
            self.take()

    def skip_braces(self) -> None:
        self.expect("{")
        depth = 1
        while depth:
            token = self.take()
            depth += (token == "{") - (token == "}")

    def variable(self, space: str, into: dict[str, Variable], external: bool = False) -> None:
        align, kind, vector = 0, "", 1
        while self.peek().startswith("."):
            word = self.take()[1:]
            if word == "align":
                align = self.whole(self.take())
            elif word in ("v2", "v4"):
                vector = int(word[1:])
            elif word in ("ptr", "attribute", "managed"):
                raise self.bad(f".{word} is not understood")
            else:
                kind = word
        size = self.size_of(kind) * vector
        while True:
            name = self.take()
            count = 1
            while self.peek() == "[":
                self.take()
                count *= 0 if self.peek() == "]" else self.whole(self.take())
                self.expect("]")
            if count * size > MOST_VARIABLE:
                raise self.bad(f"{name} of {count * size:,} bytes is too large")
            content: bytes | None = None
            references: tuple[tuple[int, str, int], ...] = ()
            if self.peek() == "=":
                self.take()
                content, references = self.content(self.size_of(kind), count * size)
            own = name
            if self.scopes and space == "local":  # another function may have one of the same name
                self.count += 1
                own = f"{name}'{self.count}"
                self.scopes[-1][name] = own
                self.places[own] = Operand("symbol", own)
            into[own] = Variable(
                own, space, count * size, max(align, size if size < 32 else 16), content, external, references
            )
            if self.peek() == ",":
                self.take()
                continue
            self.expect(";")
            return

    def size_of(self, kind: str) -> int:
        size = SIZES.get(kind.lstrip("bsuf"), 0)
        if not size:
            raise self.bad(f"variables of the type .{kind} are not understood")
        return size

    def content(self, size: int, nbytes: int) -> tuple[bytes, tuple[tuple[int, str, int], ...]]:
        """The bytes of a variable, and where the address of something else stands among them."""
        values: list[int | tuple[str, int]] = []
        if self.peek() != "{":
            values.append(self.constant())
        else:
            depth = 0
            while True:
                token = self.peek()
                if token in "{}":
                    self.take()
                    depth += 1 if token == "{" else -1
                    if not depth:
                        break
                elif token == ",":
                    self.take()
                else:
                    values.append(self.constant())
        mask = (1 << 8 * size) - 1
        references = tuple((n * size, *v) for n, v in enumerate(values) if not isinstance(v, int))
        if references and size != 8:
            raise self.bad("an address stands where there is no room for one")
        plain = (value if isinstance(value, int) else 0 for value in values)
        content = b"".join((value & mask).to_bytes(size, "little") for value in plain)
        if len(content) > nbytes:
            raise self.bad("a variable begins with more than it has room for")
        return content.ljust(nbytes, b"\0"), references

    def constant(self) -> int | tuple[str, int]:
        """A number, or the name of something whose address it is, and how much more."""
        token = self.take()
        if token == "-":
            value = self.constant()
            return -value if isinstance(value, int) else value
        generic = token == "generic" and self.peek() == "("
        if generic or token[0].isalpha() or token[0] in "_$":
            name = token
            if generic:
                self.take()
                name = self.take()
                self.expect(")")
            more = 0
            while self.peek() == "+":
                self.take()
                more += self.whole(self.take())
            return name, more
        if token[:2].lower() in ("0f", "0d"):
            return int(token[2:], 16)
        if not token[0].isdigit():
            self.at -= 1
            raise self.bad(f"a variable that begins with {token!r} is not understood")
        return self.whole(token)

    # --- a kernel ---

    def entry(self, module: Module) -> Kernel:
        kernel = Kernel(self.take())
        if self.peek() == "(":
            self.take()
            params: dict[str, Variable] = {}
            while self.peek() != ")":
                if self.take() == ".param":
                    self.parameter(params)
            self.take()
            kernel.params = list(params.values())
        while self.peek() != "{":
            token = self.take()
            if token == ";":
                raise self.bad(f"{kernel.name} is only declared")
            if token == ".reqnctapercluster":
                sizes = [self.whole(self.take())]
                while self.peek() == ",":
                    self.take()
                    sizes.append(self.whole(self.take()))
                kernel.cluster = (*sizes, 1, 1)[0], (*sizes, 1, 1)[1], (*sizes, 1, 1)[2]
                if not 1 <= math.prod(kernel.cluster) <= MOST_CLUSTER:
                    raise self.bad(f"a cluster of {math.prod(kernel.cluster)} blocks is none")
        self.place = None
        self.used = -1
        self.scopes, self.labels = [], []
        self.scope(kernel)
        self.scopes = []
        return kernel

    def function(self, module: Module) -> None:
        """A function that kernels call; of one that is only declared nothing is kept."""
        function = Kernel("")
        self.place, self.used = None, -1
        self.scopes, self.labels = [{}], []
        while self.peek().startswith("."):
            self.take()
        if self.peek() == "(":
            function.back = self.formals(function)
        function.name = self.take()
        if self.peek() == "(":
            function.given = self.formals(function)
        self.until("{", ";")
        if self.peek() == ";":
            self.take()
        else:
            self.scope(function)
            module.functions[function.name] = function
        self.scopes = []

    def formals(self, function: Kernel) -> list[str]:
        self.expect("(")
        found = []
        while self.peek() != ")":
            if self.take() in (".param", ".reg"):
                found.append(self.passed(function, formal=True))
        self.take()
        return found

    def parameter(self, into: dict[str, Variable]) -> None:
        align, kind = 0, ""
        while self.peek().startswith("."):
            word = self.take()[1:]
            if word == "align":
                align = self.whole(self.take())
            elif word not in ("ptr", "global", "const", "shared", "local"):
                kind = word
        size, count, name = self.size_of(kind), 1, self.take()
        if self.peek() == "[":
            self.take()
            count = self.whole(self.take())
            self.expect("]")
        if count * size > 1 << 16:
            raise self.bad(f"{name} of {count * size:,} bytes is too large for a parameter")
        into[name] = Variable(name, "param", size * count, max(size, align))

    def scope(self, kernel: Kernel) -> None:
        self.expect("{")
        self.scopes.append({})
        self.labels.append(({}, []))
        while self.peek() != "}":
            self.statement(kernel)
        self.take()
        self.scopes.pop()
        # A label is known in its own braces; the same name may stand in others.
        own, jumps = self.labels.pop()
        for jump in jumps:
            target = jump.operands[0]
            if target.name in own:
                jump.operands[0] = Operand("symbol", own[target.name])
            elif self.labels:
                self.labels[-1][1].append(jump)

    def statement(self, kernel: Kernel) -> None:
        token = self.peek()
        if token == "{":
            if len(self.scopes) > 50:
                raise self.bad("too many blocks lie in each other")
            self.scope(kernel)
        elif token == ".reg":
            self.take()
            self.registers(kernel)
        elif token == ".loc":
            self.take()
            self.loc()
        elif token in (".shared", ".local"):
            self.take()
            self.variable(token[1:], kernel.variables)
        elif token == ".pragma":
            self.take()
            words = self.until(";")
            self.take()
            if words and (found := re.search(r"used_bytes_mask (0x[0-9a-fA-F]+|\d+)", words[0])):
                self.used = int(found[1], 0)
        elif token == ";":
            self.take()
        elif token == ".param":
            self.take()
            self.passed(kernel)
            self.expect(";")
        elif token.startswith("."):
            raise self.bad(f"{token} is not understood")
        elif self.at + 1 < len(self.tokens) and self.tokens[self.at + 1] == ":":
            name = self.take()
            self.take()
            if self.peek() in (".branchtargets", ".calltargets", ".callprototype"):
                kind, words = self.take(), self.until(";")
                if kind == ".branchtargets":
                    # They are of the braces in which the table stands.
                    jumps = [
                        Instruction(("bra",), [Operand("symbol", w)], None, 0, None)
                        for w in words
                        if w != ","
                    ]
                    kernel.tables[name] = jumps
                    self.labels[-1][1].extend(jumps)
                return
            known = self.labels[-1][0]
            if name in known:
                raise self.bad(f"the label {name} stands twice")
            self.count += 1
            known[name] = name if len(self.labels) == 1 else f"{name}'{self.count}"
            kernel.body.append(known[name])
        else:
            instruction = self.instruction()
            kernel.body.append(instruction)
            if (
                instruction.op[0] == "bra"
                and instruction.operands
                and instruction.operands[0].kind == "symbol"
            ):
                self.labels[-1][1].append(instruction)

    def registers(self, kernel: Kernel) -> None:
        kind = self.take()[1:]
        if kind in ("v2", "v4"):
            raise self.bad("registers that are vectors are not understood")
        if kind not in KINDS:
            raise self.bad(f"registers of the type .{kind} are not understood")
        while True:
            name = self.take()
            names = [name]
            if self.peek() == "<":
                self.take()
                count = self.whole(self.take())
                if count > 1 << 20:
                    raise self.bad(f"{count:,} registers are too many")
                names = [f"{name}{i}" for i in range(count)]
                self.expect(">")
            for each in names:
                self.count += 1
                own = each if len(self.scopes) == 1 else f"{each}'{self.count}"
                self.scopes[-1][each] = own
                kernel.registers[own] = kind
            if self.take() == ";":
                return

    def passed(self, kernel: Kernel, formal: bool = False) -> str:
        """What is handed to a function, or what it gives back: a register. Of an array the caller has a place
        in local memory, and the function a register with its address."""
        align = 0
        while self.peek() == ".align":
            self.take()
            align = self.whole(self.take())
        kind, name, nbytes = self.take()[1:], self.take(), -1
        if kind not in KINDS:
            raise self.bad(f".{kind} is not understood here")
        if self.peek() == "[":
            self.take()
            nbytes = 0 if self.peek() == "]" else self.whole(self.take()) * self.size_of(kind)
            self.expect("]")
            if nbytes > 1 << 16:
                raise self.bad(f"{name} of {nbytes:,} bytes is too large for a parameter")
        self.count += 1
        own = f"{name}'{self.count}"
        self.scopes[-1][name] = own
        if nbytes < 0:
            self.handed.add(own)
            kernel.registers[own] = kind
            return own
        self.arrays.add(own)
        kernel.arrays.add(own)
        if formal:
            kernel.registers[own] = "b64"
        else:
            kernel.variables[own] = Variable(own, "local", nbytes, max(align, 8))
            self.places[own] = Operand("symbol", own)
        return own

    def call(self, op: tuple[str, ...]) -> list[Operand]:
        """Of a call what it gives (or none), the function's name, and its arguments."""
        given = [Operand("none")]
        if self.peek() == "(":
            self.take()
            given = list(self.listed(")", 0))
        elif not self.peek()[0].isalpha() and self.peek()[0] not in "_$%":
            raise self.bad(f"{self.peek()!r} is no function")
        if self.peek() == ",":
            self.take()
        name, arguments = self.take(), []
        function = Operand("register", self.named(name)) if name[0] == "%" else Operand("symbol", name)
        if self.peek() == ",":
            self.take()
            self.expect("(")
            arguments = list(self.listed(")", 0))
        if self.peek() == ",":  # of which functions it may be one
            self.until(";")
        if len(given) != 1 or self.peek() != ";":
            raise self.bad(f"a call of {name} is not understood")
        return [given[0], function, *arguments]

    def loc(self) -> None:
        file, line = self.whole(self.take()), self.whole(self.take())
        if self.at < len(self.tokens) and self.peek()[0].isdigit():
            self.take()
        name = self.files.get(file, f"file {file}")
        outer_file, outer = name, line
        if self.peek() == ",":
            self.take()
            if self.take() != "function_name":
                raise self.bad("a .loc is not understood")
            self.take()
            if self.peek() == "+":
                self.take()
                self.take()
            self.expect(",")
            self.take()
            at, outer = self.whole(self.take()), self.whole(self.take())
            outer_file = self.files.get(at, f"file {at}")
            if self.peek()[0].isdigit():
                self.take()
            # Of a function within a function the line of the kernel's own text is not said here.
            known = self.place
            if known is not None and known.file == outer_file and known.line == outer:
                outer_file, outer = known.outer_file, known.outer_line
        if line:
            self.place = Place(name, line, outer_file, outer)

    def instruction(self) -> Instruction:
        line = self.lines[self.at]
        guard = None
        if self.peek().startswith("@"):
            if self.take() != "@":
                raise self.bad("a guard is not understood")
            negated = self.peek() == "!"
            if negated:
                self.take()
            guard = (self.named(self.take()), negated)
        op = tuple(part for part in self.take().split(".") if part)
        if not op or not op[0][0].isalpha():
            self.at -= 1
            raise self.bad(f"{self.peek()!r} is no instruction")
        operands = self.call(op) if op[0] == "call" else []
        while self.peek() != ";":
            operands.append(self.operand())
            if self.peek() == ",":
                self.take()
            elif self.peek() != ";":
                raise self.bad(f"{self.peek()!r} is not understood behind an operand")
        self.take()
        if op[:2] in (("ld", "param"), ("st", "param")) and len(operands) == 2:
            place, value = operands if op[0] == "st" else operands[::-1]
            name = place.parts[0].name if place.kind == "address" else ""
            if name in self.handed:
                pair = [place.parts[0], value] if op[0] == "st" else [value, place.parts[0]]
                if place.value or value.kind == "vector":
                    raise self.bad("a part of a number that is passed is not understood")
                return Instruction(("mov", op[-1]), pair, guard, line, self.place)
            if name in self.arrays:
                op = (op[0], "local", *(word for word in op[2:] if word != "func"))
        used, self.used = (self.used, -1) if op[0] == "ld" else (-1, self.used)
        return Instruction(op, operands, guard, line, self.place, used)

    def named(self, name: str) -> str:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        raise self.bad(f"the register {name} is not declared")

    def operand(self, depth: int = 0) -> Operand:
        token = self.take()
        if depth > 4:
            raise self.bad("operands lie too deep in each other")
        if token == "{":
            return Operand("vector", parts=tuple(self.listed("}", depth)))
        if token == "[":
            base = self.operand(depth + 1)
            offset = 0
            if self.peek() == ",":  # a texture and its coordinates
                self.take()
                inner = self.operand(depth + 1)
                self.expect("]")
                return Operand("texture", parts=(base, inner))
            while self.peek() in ("+", "-"):
                sign = -1 if self.take() == "-" else 1
                if self.peek() == "-":
                    self.take()
                    sign = -sign
                offset += sign * self.whole(self.take())
            self.expect("]")
            if base.kind == "number":
                base, offset = Operand("number", value=0), offset + base.value
            return Operand("address", value=offset, parts=(base,))
        if token == "-":
            inner = self.operand(depth + 1)
            if inner.kind != "number" or inner.width:
                raise self.bad("a minus stands before a number alone")
            return Operand("number", value=-inner.value)
        if token == "!":
            return Operand("register", self.named(self.take()), negated=True)
        if token[0].isdigit():
            if token[:2].lower() in ("0f", "0d") and len(token) in (10, 18):
                return Operand("number", value=int(token[2:], 16), width=4 * (len(token) - 2))
            return Operand("number", value=self.whole(token))
        if token == "_":
            return Operand("none")
        operand = self.name(token)
        if self.peek() == "|":
            self.take()
            other = self.take()
            second = Operand("none") if other == "_" else self.name(other)
            return Operand("pair", parts=(operand, second))
        return operand

    def name(self, token: str) -> Operand:
        for scope in reversed(self.scopes):
            if token in scope:
                return self.places.get(scope[token]) or Operand("register", scope[token])
        if not (token[0].isalpha() or token[0] in "_$%"):
            self.at -= 1
            raise self.bad(f"{token!r} is no operand")
        return Operand("symbol", token)

    def listed(self, end: str, depth: int) -> Iterator[Operand]:
        while self.peek() != end:
            yield self.operand(depth + 1)
            if self.peek() == ",":
                self.take()
        self.take()


def flat(operands: Sequence[Operand]) -> Iterator[Operand]:
    """The operands and what they are made of."""
    for operand in operands:
        yield operand
        yield from flat(operand.parts)
