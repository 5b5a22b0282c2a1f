"""Known mistakes, and the answers that they give, with which a wrong answer is compared.

`mistakes(p, *inputs)` of `common` tells those of the operator of `p`, which a function in one of the other
files is registered for; `of_any` has those of any operator, told from the right answer alone. A mistake is
known by its words, which say nothing of a shape: it explains a rung where it gives the rung's very answers on
every shape that fails (bench.judge.diagnosis). The likelier of two that give the same answers comes first.
"""

from __future__ import annotations

from bench.judge.mistakes import elementwise, moving, products, rows, tasks, windows
from bench.judge.mistakes.common import Mistake, mistakes, of_any

__all__ = ["Mistake", "elementwise", "mistakes", "moving", "of_any", "products", "rows", "tasks", "windows"]
