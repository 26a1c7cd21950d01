"""Values of the example stacks that a site has to replace. They contain `replace-me`, or `replaceme` in names."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from stacks.config.errors import ConfigError
from stacks.config.sections import texts

_PLACEHOLDER: Final = re.compile("replace-?me")


def unreplaced(raw: Mapping[str, object]) -> Iterator[ConfigError]:
    """Yield values that are still those of the example. raw: by key without the project's name."""
    for path, text in texts((), raw):
        if _PLACEHOLDER.search(text):
            yield ConfigError(
                path,
                "this is the value of the example",
                'set your own. The examples mark all values to replace with "yours"',
                value=text,
            )
