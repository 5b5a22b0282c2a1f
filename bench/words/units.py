"""Numbers as people read them: SI prefixes, at most three digits that mean something."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

MOST_DECIMALS = 9
_PREFIXES = (
    (1e15, "P"),
    (1e12, "T"),
    (1e9, "G"),
    (1e6, "M"),
    (1e3, "k"),
    (1.0, ""),
    (1e-3, "m"),
    (1e-6, "µ"),
    (1e-9, "n"),
)


def digits(value: float, significant: int = 3) -> str:
    """`value` with that many significant digits, without an exponent for what a table holds: 1.50, 12.3,
    1,234. What is so small that no digit of it would show is "0"."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    value = float(f"{value:.{significant - 1}e}")  # 0.9999 has the digits of 1.00
    decimals = max(0, significant - 1 - math.floor(math.log10(abs(value))))
    if not round(value, MOST_DECIMALS):
        return "0"
    return f"{value:,.{min(decimals, MOST_DECIMALS)}f}"


def si(value: float, unit: str = "", significant: int = 3) -> str:
    """`value` in `unit` with an SI prefix: si(0.00123, "s") = "1.23 ms"; si(45600) = "45.6 k"."""
    size = abs(value)
    if size == 0 or not math.isfinite(value):
        return f"{digits(value)} {unit}".rstrip()
    # Half of the last digit shown: 999.9 µs reads 1.00 ms, not "1,000 µs".
    rounded = size * (1 + 0.5 * 10.0**-significant)
    scale, prefix = next(((s, p) for s, p in _PREFIXES if rounded >= s), _PREFIXES[-1])
    number = digits(value / scale, significant)
    return f"{number} {prefix if number != '0' else ''}{unit}".rstrip()


def duration(time_ns: float, significant: int = 3) -> str:
    """Nanoseconds as "1.23 ms"."""
    return si(time_ns * 1e-9, "s", significant)


def change(time_ns: float) -> str:
    """By how much a time changed: "+401 µs", "−12.0 µs"."""
    size = duration(abs(time_ns))
    return "±0 s" if size == "0 s" else f"{'+' if time_ns > 0 else '−'}{size}"


def clock(seconds: float) -> str:
    """Seconds as "1:05", or "2:03:04" from an hour on."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def left(span: tuple[float, float]) -> str:
    """How long something may still take: "1:05 to 4:30 left" or, where both ends are the same, "about 2:10
    left"."""
    low, high = map(clock, span)
    return f"about {low} left" if low == high else f"{low} to {high} left"


def nbytes(size: float) -> str:
    """Bytes as "1.2 MiB"."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024 or unit == "GiB":
            return f"{size:.0f} B" if unit == "B" else f"{digits(size, 3 if size < 100 else 4)} {unit}"
        size /= 1024
    raise AssertionError("unreachable")


def half_width(fraction: float) -> str:
    """Half an interval, as a fraction of its value: beyond ten times that it tells nothing but that."""
    return f"{fraction * 100:.1f} %" if fraction < 10 else "> 999 %"


def percent(fraction: float, decimals: int = 2) -> str:
    """A fraction as "97.25 %"; what is not quite 100 never reads 100."""
    text = f"{fraction * 100:.{decimals}f}"
    if fraction < 1 and float(text) >= 100:
        text = f"{100 - 10.0**-decimals:.{decimals}f}"
    return f"{text} %"


def exponent(value: float) -> str:
    """An error as "2.1e-07"."""
    return f"{value:.1e}"


def count(number: int, thing: str) -> str:
    """ "1 thread", "2 threads"."""
    return f"{number:,} {thing}{'s' * (number != 1)}"


def times(ratio: float) -> str:
    """A ratio as "1.30×"."""
    return f"{digits(ratio)}×"


def spans(values: Iterable[int], known: Iterable[int]) -> str:
    """Batch sizes as short text: neighbours in `known` join ("1-64"), the others are listed ("1, 16-64")."""
    order = sorted(set(known))
    wanted = sorted(set(values))
    groups: list[list[int]] = []
    for value in wanted:
        joins = bool(groups) and value in order and order.index(value) - 1 == order.index(groups[-1][-1])
        if joins:
            groups[-1].append(value)
        else:
            groups.append([value])
    return ", ".join(f"{g[0]:,}" if len(g) == 1 else f"{g[0]:,}–{g[-1]:,}" for g in groups)


def instances(measured: Iterable[Sequence[int]]) -> str:
    """In how many instances each was timed, of which instance each of its rounds was; "" where of one."""
    counts = [max(1, len(set(of))) for of in measured]
    low, high = min(counts, default=1), max(counts, default=1)
    if high == 1:
        return ""
    return f"each timed in {high} instances" if low == high else f"timed in {low} to {high} instances each"
