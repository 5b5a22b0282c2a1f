"""Where a run cannot be kept: what is said names what works for whoever reads it."""

from pathlib import Path

import pytest

from bench.results import folders
from bench.run.kinds.comparison import KIND as COMPARISON
from kernels.errors import InputError
from tests.bench import synthetic


@pytest.mark.parametrize("named", [True, False])
def test_a_folder_that_cannot_be_made_is_told_to_who_named_it_and_to_who_did_not(
    tmp_path: Path, named: bool
) -> None:
    (tmp_path / "runs").write_text("in the way")
    run, _ = synthetic.run(backends=("ort-cpu",), batches=(1,))
    runs = tmp_path / "runs"
    with pytest.raises(InputError) as told:
        folders.begin(COMPARISON, run, runs / "mine" if named else None, runs, "")
    words = str(told.value)
    if named:
        assert words.endswith("; name another folder")
    else:
        assert "name another" not in words, "the window has no field for it"
        assert words.endswith(f"; allow writing to {runs}, or start Kernelscope in another folder")
