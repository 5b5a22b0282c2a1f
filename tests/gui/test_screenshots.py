"""The pictures of the window: every page that there is, in both themes, small, and of what is shown."""

import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from PySide6.QtGui import QImage

from bench.run.beforehand import Looked
from gui.pages.ladder import LadderPage
from gui.pages.page import page_types
from tests import sampling
from tests.gui import screenshots
from tests.gui.recorded import RECORDED


def _lightness(picture):
    return picture.convert("L").resize((1, 1)).getpixel((0, 0))


@pytest.mark.sampled(6, "longest")
def test_every_page_is_taken_in_both_themes(make_window, tmp_path, monkeypatch):
    settle = screenshots.settle
    monkeypatch.setattr(screenshots, "settle", lambda window, seconds=0.1: settle(window, min(seconds, 0.02)))
    monkeypatch.setattr(LadderPage, "showcase", lambda page: None)  # it would measure a whole ladder
    window = make_window("ok", begin=False)
    window.resize(1000, 650)  # large ones take long to write
    window.theming.apply()  # as the program does at its start
    shown = shutil.copytree(RECORDED, window.session.runs / "recorded")
    screenshots.open_run(window, shown)
    screenshots.settle(window)
    screenshots.select(window)
    assert window.state.case is not None
    assert window.state.layer
    # In one theme after the other, each run in one of the two, and the last page in both at once: a change of
    # the theme polishes every widget of all pages anew, which would be most of the time.
    themes = sampling.some("theme of pictures", ("light", "dark"), 1)
    taken = []
    for theme in themes:
        pictures = screenshots.Screenshots(window, tmp_path, (theme,))
        pictures.pages()
        taken += pictures.taken
    names = [f"{page.title.lower()}-{theme}" for theme in themes for page in page_types()]
    assert [path.stem for path in taken] == names
    both = screenshots.Screenshots(window, tmp_path, ("light", "dark"))
    both.take("both")
    first, then = themes[-1], {"light": "dark", "dark": "light"}[themes[-1]]
    assert [path.stem for path in both.taken] == [f"both-{first}", f"both-{then}"], (
        "that which is on comes first"
    )
    last, _, _ = taken[-1].stem.rpartition("-")
    for theme in themes:
        picture, like = tmp_path / f"both-{theme}.png", tmp_path / f"{last}-{theme}.png"
        with Image.open(picture) as one, Image.open(like) as other:
            assert _lightness(one) == pytest.approx(_lightness(other), abs=10)
    for path in (*taken, *both.taken):
        assert path.stat().st_size <= screenshots.MAX_NBYTES
        with Image.open(path) as image:
            assert image.size == (window.width(), window.height())
    with (
        Image.open(tmp_path / "both-light.png") as light,
        Image.open(tmp_path / "both-dark.png") as dark,
    ):
        assert _lightness(light) > 200
        assert _lightness(dark) < 70


@pytest.mark.sampled(4, "long")
def test_a_picture_with_too_much_in_it_gets_fewer_colours(tmp_path, monkeypatch):
    y, x = np.mgrid[:200, :300]
    colours = np.stack([x * y, x * 7 + y * y, x * x + y], axis=2).astype(np.uint8)  # below 256 by overflow
    image = QImage(colours.tobytes(), 300, 200, 3 * 300, QImage.Format.Format_RGB888)
    screenshots.write(image, tmp_path / "all.png")
    whole = (tmp_path / "all.png").stat().st_size
    monkeypatch.setattr(screenshots, "MAX_NBYTES", whole - 1)
    screenshots.write(image, tmp_path / "few.png")
    assert (tmp_path / "few.png").stat().st_size < whole
    with Image.open(tmp_path / "few.png") as few:
        assert few.size == (300, 200)


def test_the_colours_that_mean_something_stay_what_they_are():
    """A few pixels of a backend's colour among many greys, as text is drawn."""
    grey = np.repeat(np.arange(256, dtype=np.uint8), 3).reshape(-1, 3)
    noise = np.random.default_rng(1).integers(90, 110, (3000, 3), dtype=np.uint8)
    colour = np.array([[0xCC, 0x66, 0x77]] * 20, np.uint8)
    pixels = np.concatenate([grey, noise, colour])
    palette, indices = screenshots.reduced(pixels, 256)
    assert len(palette) <= 256
    assert (palette[indices[-20:]] == colour).all()
    assert np.abs(palette[indices].astype(int) - pixels).max() < 32


def test_the_matrix_is_every_size_in_a_folder_of_its_own_and_tells_of_a_complaint(tmp_path, monkeypatch):
    asked = []

    def run(command, env, check):
        asked.append((command, env["QT_SCALE_FACTOR"]))
        return SimpleNamespace(returncode=int("960x540" in command or "1280x720" in command))

    monkeypatch.setattr(screenshots.subprocess, "run", run)
    assert screenshots.main(["--out", str(tmp_path), "--matrix"]) == 1
    read = [screenshots._arguments(command[3:]) for command, _ in asked]
    assert len({each.out for each in read}) == len(screenshots.MATRIX)
    assert {each.theme for each in read} == {"all"}
    sizes = [(w * int(scale), h * int(scale)) for (w, h), (_, scale) in zip(
        (each.size for each in read), asked, strict=True
    )]  # fmt: skip
    assert sizes == [(width, height) for width, height, _, _ in screenshots.MATRIX]


def test_what_is_no_run_is_told(make_window, tmp_path):
    from kernels.errors import InputError

    with pytest.raises(InputError):
        screenshots.open_run(make_window("ok", begin=False), tmp_path)


def test_that_others_use_the_machine_is_no_complaint_of_the_window(make_window):
    window = make_window("ok", begin=False)
    window.session._warn(Looked(("Another program, python, uses 99 % of one core (this machine has 2).",)))
    assert window.banner.text
    window.session._warn(Looked(("Another program, make, uses 80 % of one core (this machine has 2).",)))
    assert "make" in window.banner.text
    assert "python" not in window.banner.text, "what was so at an earlier start"
    window.tell("Something else.")
    window.session._warn(Looked())
    assert window.banner.text == "Something else."
    window.banner.dismiss()
    window.session._warn(Looked(("Another program, python, uses 99 % of one core (this machine has 2).",)))
    assert screenshots.complaints(window) == ""
    window.tell("The log cannot be written.")
    assert screenshots.complaints(window) == "The log cannot be written."
