"""The texts that pre-training reads: the same after a restart, others for each step and process, each of one file."""

from itertools import pairwise
from pathlib import Path

import pytest

from components.workloads.training.texts import Texts

LENGTH = 4


def test_a_step_reads_the_same_whenever_it_is_done() -> None:
    assert Texts(None, LENGTH).batch(7, 1, 3) == Texts(None, LENGTH).batch(7, 1, 3)


def test_each_step_and_process_reads_others() -> None:
    texts = Texts(None, LENGTH)
    read = [text for step in range(2) for rank in range(2) for text in texts.batch(step, rank, 4)]
    assert len(set(read)) > 12


def test_what_is_made_up_goes_on_in_even_strides() -> None:
    texts = Texts(None, LENGTH).batch(0, 0, 200)
    assert {len(text) for text in texts} == {LENGTH + 1}
    strides = [{(after - before) % 256 for before, after in pairwise(text)} for text in texts]
    assert all(len(each) == 1 for each in strides)
    assert set.union(*strides) == set(range(1, 16))
    assert max(text[0] for text in texts) > 240


def test_a_text_lies_in_one_file_at_any_of_its_places(tmp_path: Path) -> None:
    """Files of six and five bytes have two places and one; one that is too short has none."""
    (tmp_path / "a.txt").write_bytes(b"abcdef")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "b.txt").write_bytes(b"ABCDE")
    (tmp_path / "short.txt").write_bytes(b"1234")
    assert set(Texts(tmp_path, LENGTH).batch(0, 0, 60)) == {b"abcde", b"bcdef", b"ABCDE"}


def test_a_folder_without_a_file_that_is_long_enough_is_refused(tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_bytes(b"1234")
    with pytest.raises(ValueError, match=f"no file in {tmp_path} has 5 bytes"):
        Texts(tmp_path, LENGTH)
