"""Die at the k-th thing that outlives the process: a write to the store, to a file, to a folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from state.rocksdb_store import RocksDBStore

CHANGING_FILES = ("write", "pwrite", "fsync", "ftruncate", "replace", "rename", "unlink", "mkdir")
"""Functions of ``os`` that change what is on disk, or wait for it."""


class CrashError(BaseException):
    """Stands for the end of the process, so nothing may handle it."""


class Crashes:
    """Tells durable steps and raises CrashError instead of one of them and of all after it.

    at: number of the step, from 0; -1 for none. torn: do half of it first, where it is an
    ``os.write``.
    """

    def __init__(self, patch: pytest.MonkeyPatch, at: int = -1, torn: bool = False) -> None:
        self.names: list[str] = []
        """of the steps so far: "store" for a write to the store, the others as in ``os``"""
        self._at = at
        self._torn = torn
        self._dead = False
        for name in CHANGING_FILES:
            patch.setattr(os, name, self._step(name, getattr(os, name)))
        patch.setattr(RocksDBStore, "write", self._step("store", RocksDBStore.write))

    def _step(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **options: Any) -> Any:
            if self._dead:
                raise CrashError(name)
            self.names.append(name)
            self._dead = len(self.names) == self._at + 1
            if not self._dead:
                return function(*arguments, **options)
            if self._torn and name == "write":
                file, data = arguments
                function(file, data[: len(data) // 2])
            raise CrashError(f"at step {len(self.names)}, {name}")

        return step


__all__ = ["CrashError", "Crashes"]
