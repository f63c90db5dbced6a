"""A store in memory, for tests: the contract of RocksDBStore without its files."""

from __future__ import annotations

from collections.abc import Iterator

from clustering.errors import StoreError
from state import keys
from state.interfaces import WriteBatch


class MemoryStore:
    """Implements Store; what it holds is gone when it is closed."""

    def __init__(self) -> None:
        self._families: dict[str, dict[bytes, bytes]] = {name: {} for name in keys.FAMILIES}
        self._closed = False

    def get(self, family: str, key: bytes) -> bytes | None:
        return self._rows(family).get(key)

    def scan(
        self, family: str, start: bytes = b"", end: bytes | None = None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        rows = self._rows(family)
        within = sorted(key for key in rows if key >= start and (end is None or key < end))
        return self._walk([(key, rows[key]) for key in (reversed(within) if reverse else within)])

    def write(self, batch: WriteBatch) -> None:
        for family, *_ in batch.operations:
            self._rows(family)
        for family, key, value in batch.operations:
            if value is None:
                self._families[family].pop(key, None)
            else:
                self._families[family][key] = value

    def stats(self) -> dict[str, int]:
        return {f"{name}_rows": len(self._rows(name)) for name in keys.FAMILIES}

    def close(self) -> None:
        self._closed = True

    def _rows(self, family: str) -> dict[bytes, bytes]:
        if self._closed:
            raise StoreError("the store in memory is closed: open a new one")
        if family not in self._families:
            raise StoreError(f"there is no column family {family!r}: use one of {keys.FAMILIES}")
        return self._families[family]

    def _walk(self, rows: list[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
        for row in rows:
            if self._closed:
                raise StoreError("the store in memory was closed during a scan")
            yield row
