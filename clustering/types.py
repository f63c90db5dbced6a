"""Names shared by every folder: what a record is called."""

from __future__ import annotations

from typing import NamedTuple


class RecordKey(NamedTuple):
    """Identity of a record: which source it came from and its id there.

    Two records are the same record exactly when both parts are equal, so ``crm:1`` and ``erp:1``
    are different records. The parts are never joined with a delimiter to make a key.
    """

    source: str
    id: str

    def __str__(self) -> str:
        return f"{self.source}:{self.id}"
