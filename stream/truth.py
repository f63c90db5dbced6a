"""Reads which records truly belong together, for measuring and for training."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

from clustering.errors import DataError
from clustering.types import RecordKey
from eval.labels import membership


def read_truth(path: Path, known: Iterable[RecordKey]) -> dict[RecordKey, str]:
    """The true cluster of each record in a CSV file with the columns id, cluster[, source].

    known: the records there are; a row without a source means the one of them with its id, and an
    id that none has stays as it is, without a source. Raises DataError for an unusable file, and
    for an id without a source that several sources have.
    """
    by_id: dict[str, list[RecordKey]] = {}
    for key in known:
        by_id.setdefault(key.id, []).append(key)
    rows = []
    for number, row in enumerate(_rows(path), 2):
        name, cluster, source = row.get("id"), row.get("cluster"), row.get("source")
        if not name or not cluster:
            raise DataError(f"{path}, line {number}: no id or no cluster; give both")
        found = [RecordKey(source, name)] if source else by_id.get(name, [RecordKey("", name)])
        if len(found) > 1:
            among = ", ".join(key.source for key in found)
            raise DataError(
                f"{path}, line {number}: several sources have the id {name} ({among}); "
                "add a column source"
            )
        rows.append((found[0], cluster))
    return membership(rows, str(path))


def _rows(path: Path) -> Iterable[dict[str, str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            if not {"id", "cluster"} <= set(reader.fieldnames or ()):
                raise DataError(
                    f"{path} must have the columns id and cluster (and source, where ids are not "
                    f"unique); it has {', '.join(reader.fieldnames or ()) or 'none'}"
                )
            return list(reader)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}; check the path") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} is not a CSV file in UTF-8: {error}") from error


__all__ = ["read_truth"]
