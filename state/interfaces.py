"""What a store is: ordered bytes in column families, changed by atomic batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol


class WriteBatch:
    """Changes that a store applies together or not at all, in the order they were added."""

    def __init__(self) -> None:
        self.operations: list[tuple[str, bytes, bytes | None]] = []
        """(family, key, value); value None deletes"""

    def put(self, family: str, key: bytes, value: bytes) -> None:
        """Set a row."""
        self.operations.append((family, key, value))

    def delete(self, family: str, key: bytes) -> None:
        """Remove a row; no error when there is none."""
        self.operations.append((family, key, None))

    def __len__(self) -> int:
        return len(self.operations)


class Reader(Protocol):
    """Read access. Families are those of keys.FAMILIES; everything raises StoreError."""

    def get(self, family: str, key: bytes) -> bytes | None:
        """The row's value, None when there is none."""

    def scan(
        self, family: str, start: bytes = b"", end: bytes | None = None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Rows with start <= key < end in key order, as they were when scan was called."""

    def stats(self) -> dict[str, int]:
        """Figures for metrics, by name; sizes in bytes."""

    def close(self) -> None:
        """Give everything back. Twice is fine; any other use afterwards raises StoreError."""


class Store(Reader, Protocol):
    """Read and write access for the one owner of a store."""

    def write(self, batch: WriteBatch) -> None:
        """Apply a batch atomically; when this returns, a killed process does not lose it."""
