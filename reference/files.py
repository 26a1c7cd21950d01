"""The generated files that users and editors read."""

import json
from collections.abc import Mapping

from reference.page import page
from reference.schema import schema


def files() -> Mapping[str, str]:
    """Return the contents of the files by their names."""
    made = schema()
    return {
        "settings.schema.json": json.dumps(made, indent=2, ensure_ascii=False) + "\n",
        "docs/settings.md": page(made),
    }
