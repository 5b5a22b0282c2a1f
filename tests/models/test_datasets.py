"""Data sets: those shipped and downloaded, the user's own folders, and what is said when one is missing."""

from __future__ import annotations

import gzip
import hashlib
import socket
import struct
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from kernels.errors import DataError, InputError
from models import datasets, download, names
from models.datasets import preprocess


def idx(array: np.ndarray) -> bytes:
    header = struct.pack(">HBB", 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    return gzip.compress(header + array.tobytes())


def test_digits_ship_with_a_fixed_held_out_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERNELSCOPE_DATA", raising=False)
    test, train = datasets.load("digits"), datasets.load("digits", split="train")
    assert (len(test), len(train)) == (360, 1437)
    assert test.images.shape == (360, 28, 28)
    assert test.images.dtype == np.uint8
    assert test.images.max() == 255
    assert test.labels is not None
    assert set(test.labels) == set(range(10))
    assert test.classes == tuple("0123456789")
    assert len(datasets.load("digits", 7)) == 7
    assert len(datasets.load("digits", 100_000)) == 360


def test_attribution_lies_beside_the_digits() -> None:
    text = (datasets.SHIPPED / "digits.md").read_text(encoding="utf-8")
    assert "CC BY 4.0" in text
    assert "Alpaydin" in text


@pytest.mark.usefixtures("offline_data")
@pytest.mark.parametrize("name", ["fashion-mnist", "mnist"])
def test_offline_copy_is_read(name: str) -> None:
    data = datasets.load(name, 1000)
    assert data.images.shape == (1000, 28, 28)
    assert data.labels is not None
    assert set(data.labels) == set(range(10))
    assert datasets.available(name) is None


def test_offline_copy_without_the_file_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KERNELSCOPE_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"KERNELSCOPE_DATA has no .*fashion-mnist"):
        datasets.load("fashion-mnist")
    reason = datasets.available("fashion-mnist")
    assert reason is not None
    assert "missing" in reason


def test_damaged_offline_file_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KERNELSCOPE_DATA", str(tmp_path))
    (tmp_path / "mnist").mkdir()
    for file in names.datasets()["mnist"]["test"].values():
        (tmp_path / "mnist" / file).write_bytes(b"not the file")
    with pytest.raises(DataError, match="damaged"):
        datasets.load("mnist")


def test_idx_files_are_read_and_broken_ones_refused(tmp_path: Path) -> None:
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    path = tmp_path / "a.gz"
    path.write_bytes(idx(array))
    np.testing.assert_array_equal(datasets.read_idx(path), array)
    for broken in (idx(array)[:-9], gzip.compress(b"xy"), gzip.compress(gzip.decompress(idx(array))[:-1])):
        path.write_bytes(broken)
        with pytest.raises(DataError, match="not a whole gzipped IDX file"):
            datasets.read_idx(path)


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Address and folder of a mirror on this machine."""
    folder = tmp_path / "mirror"
    folder.mkdir()
    http = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(folder)))
    thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{http.server_address[1]}/", folder
    http.shutdown()
    http.server_close()
    thread.join()


@pytest.fixture
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.delenv("KERNELSCOPE_DATA", raising=False)
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path / "cache"


def leftovers(cache: Path) -> list[Path]:
    return [file for file in cache.rglob("*") if file.is_file()]


def refused_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}/"


def test_download_goes_to_the_next_mirror_shows_progress_and_is_kept(
    server: tuple[str, Path], own_cache: Path
) -> None:
    address, folder = server
    content = np.random.RandomState(0).bytes(3_000_000)
    (folder / "f.gz").write_bytes(content)
    known = {"f.gz": hashlib.sha256(content).hexdigest()}
    told: list[tuple[str, float | None]] = []
    mirrors = [refused_port(), address]
    path = download.fetch("set", "f.gz", known, mirrors, lambda t, f: told.append((t, f)))
    assert path.read_bytes() == content
    assert leftovers(own_cache) == [path]
    assert all("set/f.gz" in text for text, _ in told)
    (folder / "f.gz").unlink()
    assert download.fetch("set", "f.gz", known, mirrors) == path  # from the cache now


def test_damaged_cache_is_downloaded_again(server: tuple[str, Path], own_cache: Path) -> None:
    address, folder = server
    (folder / "f.gz").write_bytes(b"whole")
    known = {"f.gz": hashlib.sha256(b"whole").hexdigest()}
    cached = own_cache / "data" / "set" / "f.gz"
    cached.parent.mkdir(parents=True)
    cached.write_bytes(b"who")
    assert download.fetch("set", "f.gz", known, [address]).read_bytes() == b"whole"


def test_wrong_file_from_the_mirror_is_refused_and_not_kept(
    server: tuple[str, Path], own_cache: Path
) -> None:
    address, folder = server
    (folder / "f.gz").write_bytes(b"something else")
    with pytest.raises(DataError, match="SHA-256 differs"):
        download.fetch("set", "f.gz", {"f.gz": "0" * 64}, [address])
    assert not leftovers(own_cache)


def test_missing_file_on_the_mirror_is_said(server: tuple[str, Path], own_cache: Path) -> None:
    with pytest.raises(DataError, match="the server answered 404"):
        download.fetch("set", "f.gz", {"f.gz": "0" * 64}, [server[0]])
    assert not leftovers(own_cache)


@pytest.mark.usefixtures("own_cache")
def test_no_network_is_one_sentence_with_the_way_out() -> None:
    with pytest.raises(DataError) as caught:
        download.fetch("set", "f.gz", {"f.gz": "0" * 64}, [refused_port(), refused_port()])
    text = str(caught.value)
    assert "no mirror answered" in text
    assert "KERNELSCOPE_DATA" in text
    assert "\n" not in text


def test_silent_network_is_given_up(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "ANSWER_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes the connection and never says a word
        with pytest.raises(DataError, match="no mirror answered"):
            download.fetch(
                "set", "f.gz", {"f.gz": "0" * 64}, [f"http://127.0.0.1:{silent.getsockname()[1]}/"]
            )
        assert not leftovers(own_cache)  # at once, though its thread still waits
    assert not list((own_cache / "data" / "set").iterdir())


def test_silence_is_borne_for_less_than_five_seconds() -> None:
    assert download.ANSWER_S < 5


def test_interrupted_download_leaves_nothing(own_cache: Path) -> None:
    def interrupt(text: str, fraction: float | None) -> None:
        if fraction is not None:
            raise KeyboardInterrupt

    with socket.create_server(("127.0.0.1", 0)) as half:
        address = f"http://127.0.0.1:{half.getsockname()[1]}/"

        def answer() -> None:
            connection, _ = half.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n" + b"x" * 1_000_000)
                ended.wait(30)

        ended = threading.Event()
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            download.fetch("set", "f.gz", {"f.gz": "0" * 64}, [address], interrupt)
        assert not list((own_cache / "data" / "set").iterdir())
        ended.set()
        thread.join()


def test_unusable_cache_is_said(own_cache: Path) -> None:
    own_cache.write_text("a file where the folder should be")
    with pytest.raises(DataError, match="KERNELSCOPE_CACHE"):
        download.fetch("set", "f.gz", {"f.gz": "0" * 64}, [refused_port()])


@pytest.mark.parametrize(
    ("spec", "said"), [("fashion-mnst", "did you mean 'fashion-mnist'"), ("imagenet", "not known")]
)
def test_unknown_data_set(spec: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        datasets.load(spec)


def test_no_images_is_refused() -> None:
    with pytest.raises(InputError, match="0 images"):
        datasets.load("digits", 0)


def test_absent_split_is_refused() -> None:
    for name, split in (("mnist", "train"), ("fashion-mnist", "sha256"), ("digits", "validation")):
        with pytest.raises(DataError, match="use 'test'"):
            datasets.load(name, split=split)


def test_random_images_fit_the_model_and_repeat() -> None:
    few = datasets.load("random", 3, shape=("N", 3, 20, 30), seed=4)
    many = datasets.load("random", 5, shape=(3, 20, 30), seed=4)
    assert few.images.shape == (3, 20, 30, 3)
    assert not few.labelled
    np.testing.assert_array_equal(few.images, many.images[:3])
    assert (datasets.load("random", 3, shape=(3, 20, 30), seed=5).images != few.images).any()


def picture(path: Path, value: int, size: tuple[int, int] = (9, 7), mode: str = "L") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, value if mode == "L" else (value, 0, 0)).save(path)


def test_folder_with_a_sub_folder_a_class(tmp_path: Path) -> None:
    for index in range(8):
        picture(tmp_path / "cat" / f"{index}.png", 10)
        picture(tmp_path / "dog" / f"{index}.png", 200)
    (tmp_path / "cat" / "notes.txt").write_text("no image")
    data = datasets.load(f"folder:{tmp_path}")
    assert data.classes == ("cat", "dog")
    images = np.stack(data.first(16))
    assert images.shape == (16, 7, 9)
    np.testing.assert_array_equal(data.labels, np.where(images[:, 0, 0] == 10, 0, 1))
    assert data.numbers == "", "an order of names is the order of no model"
    few = datasets.load(f"folder:{tmp_path}", 8)
    assert few.labels is not None
    assert set(few.labels) == {0, 1}  # the first images are of all classes
    np.testing.assert_array_equal(few.labels, datasets.load(f"folder:{tmp_path}", 8).labels)


def test_folder_names_are_found_among_the_models_classes(tmp_path: Path) -> None:
    picture(tmp_path / "bag" / "a.png", 1)
    picture(tmp_path / "t-shirt top" / "b.png", 2)
    classes = names.datasets()["fashion-mnist"]["classes"]
    data = datasets.load(f"folder:{tmp_path}")
    numbers = data.matched(classes, 10, "net").numbers
    assert data.labels is not None
    assert numbers is not None
    assert {int(i[0, 0]): classes[numbers[k]] for i, k in zip(data.first(2), data.labels, strict=True)} == {
        1: "Bag",
        2: "T-shirt/top",
    }


def test_folder_names_that_are_numbers_are_labels(tmp_path: Path) -> None:
    picture(tmp_path / "3" / "a.png", 1)
    picture(tmp_path / "12" / "b.png", 2)
    data = datasets.load(f"folder:{tmp_path}")
    assert data.labels is not None
    assert sorted(data.labels) == [3, 12]
    assert len(data.classes) == 13


def test_images_of_several_kinds_are_fed_counted_and_told(tmp_path: Path) -> None:
    folder = tmp_path / "0"
    picture(folder / "1.png", 50)
    picture(folder / "2.jpg", 250, (30, 40), "RGB")
    Image.new("CMYK", (8, 8), (0, 255, 255, 0)).save(folder / "3.jpg")
    turned = Image.new("RGB", (20, 10), (255, 0, 0))
    turned.getexif()[0x0112] = 6  # held upright: to be turned by a quarter
    turned.save(folder / "4.jpg", exif=turned.getexif())
    Image.fromarray(np.full((5, 5), 40_000, np.uint16)).save(folder / "5.png")
    whole = (folder / "2.jpg").read_bytes()
    (folder / "6.jpg").write_bytes(whole[: len(whole) // 2])
    (folder / "7.png").write_bytes(b"no image")
    data = datasets.load(f"folder:{tmp_path}")
    images, places = data.read(0, len(data))
    by_name = {
        data.images._files[place].name: image  # type: ignore[union-attr]
        for place, image in zip(places, images, strict=True)
    }
    assert sorted(by_name) == ["1.png", "2.jpg", "3.jpg", "4.jpg", "5.png"]
    assert by_name["4.jpg"].shape == (20, 10, 3)
    assert by_name["3.jpg"][0, 0, 0] > 200 > 60 > by_name["3.jpg"][0, 0, 1], "red, not its negative"
    assert by_name["5.png"].max() == 155, "of 16 bits the upper ones"
    broken, kinds = data.notes()
    assert broken.startswith("2 of 7 image files cannot be read and are left out: ")
    assert "6.jpg" in broken
    assert "7.png" in broken
    for words in ("of 7 images 2 grey", "1 CMYK", "1 turned upright"):
        assert words in kinds
    assert preprocess(images, "imagenet", ("N", 3, 16, 16)).shape == (5, 3, 16, 16)


def test_a_file_of_many_is_decoded_when_it_is_asked_for(tmp_path: Path) -> None:
    for index in range(5):
        picture(tmp_path / "0" / f"{index}.png", index)
    data = datasets.load(f"folder:{tmp_path}")
    for file in (tmp_path / "0").iterdir():
        file.write_bytes(b"gone bad")
    with pytest.raises(DataError, match=r"no image of folder:.* can be read"):
        data.first(2)


@pytest.mark.parametrize("header", ["file,label\n", "Filename,Class\n", ""])
def test_csv_of_files_and_labels(tmp_path: Path, header: str) -> None:
    picture(tmp_path / "x.png", 5)
    picture(tmp_path / "y.png", 6)
    table = tmp_path / "list.csv"
    table.write_text(header + "y.png,7\nx.png,2\n")
    for spec in (f"folder:{table}", f"folder:{tmp_path}"):
        data = datasets.load(spec)
        assert data.labels is not None
        assert data.labels.tolist() == [7, 2]
        assert [int(image[0, 0]) for image in data.first(2)] == [6, 5]


def test_csv_says_which_columns_are_meant(tmp_path: Path) -> None:
    picture(tmp_path / "x.png", 5)
    (tmp_path / "list.csv").write_text("id,label,file\n9,cat,x.png\n")
    assert datasets.load(f"folder:{tmp_path}").classes == ("cat",)


def test_what_is_wrong_with_a_folder_is_named(tmp_path: Path) -> None:
    def said(path: Path) -> str:
        with pytest.raises(DataError) as caught:
            datasets.load(f"folder:{path}").first(1)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    assert "neither a folder nor a CSV" in said(tmp_path / "absent")
    assert "holds no images" in said(tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n cut off")
    assert "broken.png" in said(tmp_path)
    table = tmp_path / "list.csv"
    for text, words in (
        ("gone.png,1\n", "gone.png does not exist"),
        ("file,label\nonly-a-file\n", "line 2"),
        ("", "lists no images"),
    ):
        table.write_text(text)
        assert words in said(table)
