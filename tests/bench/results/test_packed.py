"""A run in one file is the run again; a file of somebody else's fills neither memory nor disk, and writes
nowhere else."""

from __future__ import annotations

import stat
import zipfile
from pathlib import Path

import pytest

from bench.results import packed
from bench.results.folders import copy, open_folder
from bench.results.summaries import SAMPLE
from kernels.errors import InputError

pytestmark = pytest.mark.usefixtures("own_cache")


def content(folder: Path) -> dict[str, bytes]:
    return {str(it.relative_to(folder)): it.read_bytes() for it in folder.rglob("*") if it.is_file()}


def test_a_run_in_one_file_is_the_same_run(tmp_path):
    file = copy(SAMPLE, tmp_path / "sample.zip")
    found = open_folder(file)
    assert content(found.path) == content(SAMPLE)
    assert found.measurements() == open_folder(SAMPLE).measurements()
    assert open_folder(file).path == found.path  # unpacked once
    assert content(copy(file, tmp_path / "again")) == content(SAMPLE)
    with pytest.raises(InputError, match="is there already"):
        copy(SAMPLE, file)


def written(file: Path, names: dict[str, bytes], mode: int = 0, method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(file, "w") as archive:
        for name, held in names.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            archive.writestr(info, held, method)
    return file


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ({"../evil": b"x", "../b/run.json": b"{}"}, "outside it|one folder"),
        ({"run/../../evil": b"x"}, "outside it"),
        ({"/run/evil": b"x"}, "outside it"),
        ({"run\\..\\..\\evil": b"x"}, "one folder|outside it"),
        ({"run/C:\\evil": b"x"}, "holds no run|outside it"),
        ({"run.json": b"{}"}, "something else than one folder"),
        ({"a/run.json": b"{}", "b/run.json": b"{}"}, "something else than one folder"),
        ({}, "something else than one folder"),
        ({"run/a": b"x", "run/a/b": b"y"}, "cannot be unpacked"),
        ({"run/a": b"x"}, "holds no run"),
    ],
)
def test_what_no_run_has_is_refused(tmp_path, names, told):
    before = {tmp_path / "evil.zip", tmp_path / "cache"}
    with pytest.raises(InputError, match=told):
        open_folder(written(tmp_path / "evil.zip", names))
    assert set(tmp_path.iterdir()) <= before
    assert not list(tmp_path.rglob("evil"))


def test_links_strange_packing_and_what_grows_without_end_are_refused(tmp_path, monkeypatch):
    def told(file: Path) -> str:
        with pytest.raises(InputError) as refused:
            open_folder(file)
        return str(refused.value)

    link = written(tmp_path / "link.zip", {"run/run.json": b"/etc/passwd"}, stat.S_IFLNK | 0o777)
    assert "run/run.json is no file" in told(link)
    other = written(tmp_path / "lzma.zip", {"run/run.json": b"{}"}, method=zipfile.ZIP_LZMA)
    assert "packed in a way that is not known" in told(other)
    monkeypatch.setattr(packed, "MOST_NBYTES", 100_000)
    large = written(tmp_path / "large.zip", {"run/run.json": bytes(200_000)})
    assert "unpacks to 200,000 bytes" in told(large)
    data = large.read_bytes()
    size = (200_000).to_bytes(4, "little")
    assert size in data
    large.write_bytes(data.replace(size, (10).to_bytes(4, "little")))  # it claims less than it has
    assert "cannot be" in told(large) or "can be read" in told(large)
    monkeypatch.setattr(packed, "MOST_FILES", 3)
    assert "holds 4 files" in told(written(tmp_path / "many.zip", {f"run/{n}": b"" for n in range(4)}))
    monkeypatch.setattr(packed, "MOST_CONTENTS_NBYTES", 100)
    assert "table of contents" in told(tmp_path / "many.zip")
    for damaged in (data[:-1], data[:100], b"", b"PK\5\6"):
        (tmp_path / "damaged.zip").write_bytes(damaged)
        assert "can be read" in told(tmp_path / "damaged.zip") or "unpacked" in told(tmp_path / "damaged.zip")
    assert not list((tmp_path / "cache" / "unpacked").iterdir()), "something was left"
