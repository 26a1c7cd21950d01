"""The check of docs and docstrings that `make lint` runs."""

import pytest

from tests.plain_english import hits


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("a.md", "Run it anew."),
        ("a.md", "```sh\nx\n```\nNobody can read it."),
        ("a.py", '"""Return the key by which it is found."""'),
        ("a.py", 'A = 1\n"""Nothing\n\nmore."""'),
        ("a.py", 'def f():\n    """Return whatever it is."""'),
    ],
)
def test_an_excluded_expression_is_found(file: str, text: str) -> None:
    (found,) = hits(file, text)
    assert found.startswith(f"{file}:")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("a.md", "The user `nobody` runs it.\n```\nnothing\n```\nThere is no limit."),
        ("a.py", '"""Return None if it is None."""\nA = "nothing"  # nothing\n'),
    ],
)
def test_code_and_plain_english_are_accepted(file: str, text: str) -> None:
    assert list(hits(file, text)) == []
