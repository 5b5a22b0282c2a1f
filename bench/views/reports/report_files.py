"""What every Markdown report is made of: small pictures, links from the report, templates, plain text."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from bench.results.store import write_atomically
from bench.views.tables.table import Table, to_markdown, with_headings
from bench.words import plain

if TYPE_CHECKING:
    import numpy as np
    from jinja2 import Environment
    from PIL import Image

MAX_CHART_NBYTES = 80_000
COLOURS = (64, 48, 32)  # sizes of palette tried until a chart is small enough
SHRINK = 0.8
NEAR = 24  # colours whose channels differ by less in all count as one
# A colour is no grey whose channels lie so far apart, and no rare one of so many pixels; the cosine of the
# angle under which white sees a colour and what it is mixed to.
TINTED, RARE, ALIGNED = 40, 24, 0.996
GREYS = 6  # steps from paper to ink


@dataclass
class ReportPictures:
    """The charts of one report, files of a folder: two that would have one name are told apart by a
    number."""

    folder: Path
    most_nbytes: int = MAX_CHART_NBYTES
    _taken: set[str] = field(default_factory=set)

    def save(self, stem: str, png: bytes) -> Path:
        """The file that was written. Raises InputError where it cannot be."""
        name, number = stem, 1
        while name in self._taken:
            number += 1
            name = f"{stem}-{number}"
        self._taken.add(name)
        path = self.folder / f"{name}.png"
        write_atomically(path, small(png, self.most_nbytes))
        return path


def small(png: bytes, most: int = MAX_CHART_NBYTES) -> bytes:
    """A PNG with a palette of its own colours, at most `most` bytes: with fewer colours, and at last fewer
    pixels, where that is what it takes."""
    from PIL import Image

    with Image.open(io.BytesIO(png)) as opened:
        image = opened.convert("RGB")
    drawn = _drawn(*_counted(image))  # of fewer pixels none may be as a line was drawn
    while True:
        chosen = _palette(image, drawn, COLOURS[0])
        for colours in COLOURS:
            made = Image.new("P", (1, 1))
            made.putpalette(chosen[: 3 * colours])
            buffer = io.BytesIO()
            image.quantize(palette=made, dither=Image.Dither.NONE).save(buffer, "png", optimize=True)
            if buffer.tell() <= most or max(image.size) < 64:
                return buffer.getvalue()
        size = (round(image.width * SHRINK), round(image.height * SHRINK))
        image = image.resize(size, Image.Resampling.LANCZOS)


def _counted(image: Image.Image) -> tuple[np.ndarray, np.ndarray]:
    """Its colours, (n, 3), and how many pixels each has, the most frequent first."""
    import numpy as np

    found = image.getcolors(image.width * image.height) or []
    counts = np.array([count for count, _ in found])
    colours = np.array([colour for _, colour in found], np.int16).reshape(-1, 3)
    order = np.lexsort((*colours.T[::-1], counts))[::-1]
    return colours[order], counts[order]


def _palette(image: Image.Image, drawn: np.ndarray, most: int) -> bytes:
    """Colours for the image, none close to another: paper, ink and some greys between them; those that were
    drawn with, and what they are half mixed with white, however little of the image they cover, since what is
    told by a colour is lost without it; then what covers most. Median cut would merge the small areas of a
    breakdown, and by what they cover alone the greys of text would leave no room for lines."""
    import numpy as np

    colours, counts = _counted(image)
    greys = colours[(_tint(colours) < TINTED) & (counts >= RARE)]
    ends = greys[[greys.sum(axis=1).argmax(), greys.sum(axis=1).argmin()]] if len(greys) else greys
    steps = np.arange(1, GREYS, dtype=np.int16)[:, None] if len(ends) else np.empty((0, 1), np.int16)
    between = ends[:1] + (ends[1:] - ends[:1]) * steps // GREYS
    chosen: list[bytes] = []
    for left in (ends, drawn[: most // 3], between, (drawn[: most // 6] + 255) // 2, colours):
        for colour in chosen:
            left = left[np.abs(left - np.frombuffer(colour, np.uint8)).sum(axis=1) > NEAR]
        while len(left) and len(chosen) < most:
            chosen.append(left[0].astype(np.uint8).tobytes())
            left = left[np.abs(left - left[0]).sum(axis=1) > NEAR]
    return b"".join(chosen)


def _tint(colours: np.ndarray) -> np.ndarray:
    """How far apart the channels of each lie."""
    return colours.max(axis=1) - colours.min(axis=1)


def _drawn(colours: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Of the colours that are no greys, the most frequent first, those that the others are blends of: edges
    are mixed with white, so that a line and its edges lie in one direction from there. Of each direction the
    darkest that is no rare one."""
    import numpy as np

    seen = (_tint(colours) >= TINTED) & (counts >= RARE)
    colours, counts = colours[seen], counts[seen]
    away = 255.0 - colours
    length = np.linalg.norm(away, axis=1)
    drawn = []
    left = np.ones(len(colours), bool)
    for place in range(len(colours)):
        if left[place]:
            alike = left & (away @ away[place] > ALIGNED * length * length[place])
            usual = alike & (counts >= counts[place] / 20)
            drawn.append(colours[np.where(usual, length, 0.0).argmax()])
            left &= ~alike
    return np.array(drawn, np.int16).reshape(-1, 3)


def link(path: Path, report: Path) -> str:
    """`path` as a link in the report: relative, with what Markdown would stumble over quoted."""
    try:
        relative = os.path.relpath(path, report.parent)
    except ValueError:  # another drive
        return path.absolute().as_uri()
    return quote(Path(relative).as_posix())


def template_folders() -> list[Path]:
    """Where templates lie: here, and with the satellites whose reports they are."""
    here = Path(__file__).parent
    return [here / "templates", *sorted(here.parents[1].glob("extras/*/templates"))]


def templates() -> Environment:
    """The reports' templates in Markdown, which escapes nothing by itself: see bench.words.plain."""
    return with_filters(
        escaped=False,
        plain=plain.markdown,
        table=to_markdown,
        titled=lambda made, level=2: with_headings([made] if isinstance(made, Table) else made, level),
        prose=str,
        cell=plain.cell,
    )


def with_filters(escaped: bool, **filters: Callable[..., Any]) -> Environment:
    """The reports' templates. escaped: as HTML. filters: `plain` text as it stands, `table`, `titled` (below
    its heading), our own `prose`, a `cell`'s text."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(template_folders()),
        undefined=StrictUndefined,
        autoescape=escaped,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= filters
    return made
