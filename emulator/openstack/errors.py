"""What goes wrong when the local OpenStack is made."""


class OpenStackError(Exception):
    """The local OpenStack cannot be installed or made; the message says what to look at."""
