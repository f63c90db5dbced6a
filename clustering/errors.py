"""The exception tree of graftd.

    GraftdError                 70  root; an internal fault unless a subclass says otherwise
    ├── UsageError               2  the command line was wrong
    ├── DataError               65  an input file, record or vector is unusable
    ├── UnavailableError        69  something outside that we need cannot be reached
    ├── StoreError              74  the data directory is damaged or cannot be read or written
    │   └── StoreLockedError    73  another process owns the data directory
    └── ConfigError             78  the configuration is wrong

``exit_code`` is what a command exits with (the numbers of sysexits.h). Every message says what is
wrong, where, and how to mend it.
"""

from __future__ import annotations


class GraftdError(Exception):
    """Root of everything graftd raises on purpose."""

    exit_code = 70


class UsageError(GraftdError):
    """The command line asks for something that makes no sense; correct the command."""

    exit_code = 2


class DataError(GraftdError):
    """An input (file, record, vector) is unusable; correct the input named in the message."""

    exit_code = 65


class UnavailableError(GraftdError):
    """Something outside cannot be reached; try again once it is back."""

    exit_code = 69


class StoreError(GraftdError):
    """The data directory is damaged or unreadable; restore it or rebuild it as the message says."""

    exit_code = 74


class StoreLockedError(StoreError):
    """Another process owns the data directory; stop that process or use another directory."""

    exit_code = 73


class ConfigError(GraftdError):
    """The configuration is wrong; correct the key named in the message."""

    exit_code = 78
