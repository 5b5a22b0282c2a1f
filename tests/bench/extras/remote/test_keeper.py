"""What a keeper has of a session, and what of it is left when the keeper is gone."""

import os

import pytest

from bench.extras.remote import keeper
from bench.extras.remote.frames import Errors, Frames, Heard
from bench.extras.remote.keeper import Spool


def words(spool):
    frames = Frames(Heard | Errors)
    return [frame for number in range(len(spool)) for frame in frames.feed(spool.read(number))]


@pytest.mark.parametrize("heard", [-1, 1])
def test_a_disk_that_was_full_for_a_while_leaves_no_gap(tmp_path, monkeypatch, heard):
    spool = Spool(tmp_path / "spool")
    said = [Heard(number, b"%d" % number) for number in range(5)]
    spool.append(said[0])
    with monkeypatch.context() as full:
        full.setattr(keeper.os, "pwrite", lambda *_: os.write(-1, b""))
        for word in said[1:4]:
            spool.append(word)
        spool.heard(heard)
        assert spool.problem
        assert len(Spool(tmp_path / "spool")) == 1
    spool.append(said[4])
    assert not spool.problem
    again = words(Spool(tmp_path / "spool"))
    assert [word.number for word in again] == [0, 1, 2, 3, 4]
    assert again[heard + 1 :] == said[heard + 1 :], "what was not heard yet is there"


def test_what_was_heard_and_is_lost_counts(tmp_path):
    spool = Spool(tmp_path / "spool")
    spool.append(Heard(0, b"0"))
    spool.count_on(3)
    assert [word.number for word in words(spool)] == [0, 1, 2, 3]
    spool.count_on(1 << 60)  # of whoever wants nothing
    assert len(spool) == 4
