"""Why the local kubelet cannot start a container."""

from __future__ import annotations


class MissingError(Exception):
    """The pod needs an object, or a key of one, that is not there (yet)."""


class UnsupportedError(Exception):
    """The pod asks for what the local kubelet does not do."""


class UnknownImageError(Exception):
    """The kubelet has nothing to run for an image; the message lists what it can run."""
