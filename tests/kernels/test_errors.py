"""A library's exceptions become errors of ours, and nothing else does."""

from __future__ import annotations

import pytest

from kernels.errors import InputError, KernelError, KernelscopeError, OutOfMemoryError, Translated


class _OfALibrary(Translated):
    __slots__ = ()

    def ours(self, error: Exception) -> KernelscopeError | None:
        if isinstance(error, MemoryError):
            return self.ran_out("no room")
        return KernelError(f"it failed on {self._what}") if isinstance(error, ValueError) else None


def test_what_a_library_raises_is_told_in_a_sentence_about_what_it_was_asked_for():
    with pytest.raises(KernelError, match="it failed on the net") as caught, _OfALibrary("the net"):
        raise ValueError("E17")
    assert isinstance(caught.value.__cause__, ValueError)
    no_room = pytest.raises(OutOfMemoryError, match="memory did not suffice for the net: no room")
    with no_room, _OfALibrary("the net"):
        raise MemoryError


@pytest.mark.parametrize("raised", [InputError("a name"), KeyError("a bug"), KeyboardInterrupt()])
def test_what_is_ours_already_or_has_no_words_goes_on_as_it_is(raised: BaseException):
    with pytest.raises(type(raised)) as caught, _OfALibrary("the net"):
        raise raised
    assert caught.value is raised


def test_nothing_is_raised_where_nothing_was():
    with _OfALibrary("the net"):
        pass
