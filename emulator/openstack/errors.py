"""Errors of the installation of the local OpenStack."""


class OpenStackError(Exception):
    """The local OpenStack cannot be installed; the message names the cause or a log."""
