"""On the path of a process that is to measure briefly: Python runs this at its start."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3]))

from tests.bench.brief import install

install()
