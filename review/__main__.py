"""Command line of the review; `make review BASE=main` calls it.

python -m review --base main [--stack dev] [--output review.md]

Exit code: 0 when every stack could be previewed at both revisions, 2 when one could not (the review says which and
why), 1 when there is no review.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from review.environment import NoEnvironmentError
from review.markdown import render
from review.revisions import Checkout, ReviewError, cleaned_up, review, revisions
from runner.files import UMASK

CANNOT_PREVIEW = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the review; return the process's exit code."""
    options = _parser().parse_args(arguments)
    os.umask(UMASK)
    try:
        with cleaned_up(), revisions(Checkout.of_this_file(), options.base) as (base, head):
            found = review(base, head, options.stack)
    except (NoEnvironmentError, ReviewError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; nothing was left behind", file=sys.stderr)
        return 130
    text = render(found)
    if options.output is None:
        print(text, end="")
    else:
        options.output.write_text(text)
    return CANNOT_PREVIEW if any(stack.failed for stack in found.stacks) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m review", description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--base", default="main", help="the revision to compare with")
    parser.add_argument("--stack", action="append", default=[], help="look at this stack only; may be given again")
    parser.add_argument("--output", type=Path, help="write here instead of printing")
    return parser


if __name__ == "__main__":
    sys.exit(main())
