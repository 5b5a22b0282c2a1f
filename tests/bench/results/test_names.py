"""What models given by path are called."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.results.names import plain_path, stem, with_distinct_stems

PART = st.sampled_from(["a", "b", "resnet", "v1"])
FILE = st.sampled_from(["model.onnx", "net.onnx"])


@given(st.lists(st.tuples(st.booleans(), st.lists(PART, max_size=4), FILE), max_size=6))
def test_files_of_one_name_get_as_much_of_their_path_as_tells_them_apart(files) -> None:
    paths = tuple(("/" if absolute else "") + "/".join([*parts, file]) for absolute, parts, file in files)
    found = with_distinct_stems(paths)
    different = tuple(dict.fromkeys(paths))
    assert tuple(map(plain_path, found)) == different
    assert all(Path(new) == Path(old) for new, old in zip(found, different, strict=True))
    for new, old in zip(found, different, strict=True):
        alone = sum(stem(other) == stem(old) for other in different) == 1
        assert (new == old) == alone or "//" not in new
    # A relative and an absolute path may have no part that tells them apart.
    if len({absolute for absolute, _, _ in files}) < 2:
        assert len(set(map(stem, found))) == len(different)


def test_a_name_is_no_longer_than_it_needs() -> None:
    found = with_distinct_stems(
        ("zoo/resnet/v1/model.onnx", "zoo/yolo/v1/model.onnx", "zoo/other.onnx", "alexnet-digits")
    )
    assert [stem(name) for name in found] == ["resnet-v1-model", "yolo-v1-model", "other", "alexnet-digits"]


def test_a_longer_name_is_no_other_models() -> None:
    found = with_distinct_stems(("r/a/model.onnx", "r/b/model.onnx", "r/a-model.onnx"))
    assert [stem(name) for name in found] == ["r-a-model", "r-b-model", "a-model"]
    assert with_distinct_stems(("lenet5-digits", "x/lenet5-digits.onnx")) == (
        "lenet5-digits",
        ".//x/lenet5-digits.onnx",
    )


@pytest.mark.parametrize("path", ["m.onnx", "./m.onnx", "/tmp/m.onnx", "C:/nets/m.onnx", "lenet5-digits"])
def test_one_file_keeps_its_path(path: str) -> None:
    assert with_distinct_stems((path,)) == (path,)
