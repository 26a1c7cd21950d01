"""Lets several threads of a service write to one SQLite database."""

from __future__ import annotations

from typing import Any

import sqlalchemy
from oslo_db.sqlalchemy import exc_filters


def take_turns() -> None:
    """Take the lock of each transaction at its first write, and report a locked database as a deadlock.

    By default SQLite's transactions begin without a lock. If two transactions read before they write, one fails at
    once: "database is locked". Here the first write waits for the lock. Remaining failures are raised as DBDeadlock,
    which the services retry (`oslo_db.api.wrap_db_retry`). The lock cannot be taken at the start, because Neutron nests
    writers.
    """
    sqlalchemy.event.listen(sqlalchemy.engine.Engine, "before_cursor_execute", _begin_late, retval=True)
    locked = exc_filters.filters("sqlite", sqlalchemy.exc.OperationalError, r".*database is locked.*")
    locked(exc_filters._deadlock_error)  # its only public interface is a decorator for new handlers


def _begin_late(
    connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool
) -> tuple[str, Any]:
    if statement == "BEGIN":
        cursor.connection.isolation_level = "IMMEDIATE"
        return "SELECT 1", parameters
    if statement.startswith("SAVEPOINT") and not cursor.connection.in_transaction:
        cursor.execute("BEGIN IMMEDIATE")
    return statement, parameters
