"""The loop on files: read a batch, let the engine store it, publish what it says.

Publishing comes after storing, and every message has a number, so whatever instant the process is
killed at, the next run continues the output files without a lost or a repeated line.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clustering.errors import DataError
from state.codecs import Settings
from state.data_dir import DataDir, open_data_dir
from state.partition_reader import PartitionReader
from state.partition_state import PartitionState
from state.rocksdb_store import RocksDBReader, RocksDBStore
from stream.config import Config, load_config, to_field_specs
from stream.engine import Engine
from stream.init_file import to_fields
from stream.messages import ASSIGNMENTS, DEAD_LETTERS, ENTITY_UPDATES
from stream.profile import profile
from stream.records import Bad, BadReason, Operation, Upsert
from stream.sinks import JsonlSinks
from stream.sources import Source

# Records that the fields' types are decided from when the configuration names none.
PROFILED_RECORDS = 500


@dataclass
class Observer:
    """What a run tells whoever watches it.

    opened: called with the partition before anything is read into it.
    batch: called after each published batch with the number of operations in it.
    event: called with a name and details of what does not happen every day.
    """

    opened: Callable[[Partition], None] = lambda *_: None
    batch: Callable[[int], None] = lambda *_: None
    event: Callable[[str, dict[str, Any]], None] = lambda *_: None


@dataclass
class Partition:
    """An open data directory: its engine, its store and its output files."""

    engine: Engine
    state: PartitionState
    store: RocksDBStore
    sinks: JsonlSinks
    observer: Observer = field(default_factory=Observer)

    @classmethod
    def open(cls, config: Config, root: Path, observer: Observer | None = None) -> Partition:
        """Open a data directory for writing and publish what a crash left unpublished.

        config: with the fields that are compared. Raises StoreLockedError when another process
        has the directory, StoreError when it is damaged, ConfigError when it was made with other
        settings.
        """
        observer = Observer() if observer is None else observer
        data_dir = open_data_dir(root)
        store = RocksDBStore.open(data_dir.db, sync=config.state.sync)
        sinks = None
        try:
            state = PartitionState(store)
            sinks = open_sinks(config, data_dir)
            sinks.check_belongs(state.counters.outbox, state.published())
            for path, cut in sinks.cut_bytes.items():
                if cut:
                    observer.event("partial_line_cut", {"path": str(path), "bytes": cut})
            engine = Engine(config, state, data_dir, observer.event)
            partition = cls(engine, state, store, sinks, observer)
            partition.publish()
        except BaseException:
            if sinks is not None:
                sinks.close()
            store.close()
            raise
        return partition

    def consume(
        self,
        source: Source,
        stop: threading.Event,
        operations: Iterable[Operation | None] | None = None,
    ) -> None:
        """Read a source to its end, or until ``stop``; what was read is stored and published.

        operations: what the source gives, if reading it has begun already.
        """
        settings = self.engine.config.state
        if operations is None:
            operations = source.read(self.engine.position(source.name), stop)
        for batch in batches(operations, settings.batch_records, settings.batch_wait):
            self.engine.process(batch, source.name)
            self.publish()
            self.observer.batch(len(batch))
            if stop.is_set():
                return

    def finish(self) -> None:
        """The end of all input: refit once more where the configuration says so."""
        if self.engine.refit_due(at_end=True):
            self.engine.refit()
            self.publish()

    def publish(self) -> None:
        """Append the outbox to the output files."""
        rows = list(self.state.outbox(self.engine.published))
        self.sinks.publish(rows)
        self.engine.note_published(rows)

    def close(self) -> None:
        """Release the files and the lock."""
        self.sinks.close()
        self.store.close()


def open_sinks(config: Config, data_dir: DataDir) -> JsonlSinks:
    """The output files of a data directory."""
    output = config.output
    names = {
        ENTITY_UPDATES: output.entity_updates,
        ASSIGNMENTS: output.assignments,
        DEAD_LETTERS: output.dead_letters,
    }
    return JsonlSinks(data_dir.out, names)


def batches(
    operations: Iterable[Operation | None], most: int, longest_wait: float
) -> Iterator[list[Operation]]:
    """Cut a stream into batches: full ones, and earlier where the stream pauses or is slow.

    None in the stream is a pause. longest_wait: seconds from a batch's first operation on.
    """
    batch: list[Operation] = []
    deadline = 0.0
    for operation in operations:
        if operation is not None:
            if not batch:
                deadline = time.monotonic() + longest_wait
            batch.append(operation)
        if batch and (operation is None or len(batch) >= most or time.monotonic() > deadline):
            yield batch
            batch = []
    if batch:
        yield batch


def first_operations(operations: Iterator[Operation | None]) -> list[Operation]:
    """The first operations of a stream, up to a pause or PROFILED_RECORDS."""
    found: list[Operation] = []
    for operation in operations:
        if operation is not None:
            found.append(operation)
        if len(found) == PROFILED_RECORDS or (operation is None and found):
            break
    return found


def upserted(operations: Iterable[Operation]) -> list[Upsert]:
    """Those of the operations that bring a record."""
    return [operation for operation in operations if isinstance(operation, Upsert)]


def check_readable(first: Sequence[Operation], name: str) -> None:
    """Raise DataError when none of the first operations of an input brings a record.

    name: of the input, for the message.
    """
    if upserted(first):
        return
    bad = next((operation for operation in first if isinstance(operation, Bad)), None)
    why = "it is empty" if bad is None else f"{bad.detail}"
    advice = ""
    if bad is not None and bad.reason is BadReason.MISSING_ID:
        advice = (
            "; name the field that holds it: source.id_field in the configuration, which "
            "graftd init --id-field writes"
        )
    raise DataError(f"{name}: none of its first records can be read: {why}{advice}")


def stored_config(settings: Settings) -> Config:
    """The configuration that a data directory was made with, as far as it depends on it."""
    return Config.model_validate_json(settings.schema)


def config_for(path: Path | None, root: Path) -> Config:
    """The configuration of a run: from a file, or as the data directory has it, or the defaults.

    What the environment sets comes first. Raises ConfigError.
    """
    config = load_config(path)
    settings = read_settings(root) if path is None else None
    if settings is None:
        return config
    defaults, stored = Config(), stored_config(settings)
    kept = {
        name: getattr(stored, name)
        for name in stored.model_fields_set
        if getattr(config, name) == getattr(defaults, name)
    }
    return config.model_copy(update=kept)


def with_fields(config: Config, settings: Settings | None, first: Sequence[Operation]) -> Config:
    """The configuration with its fields decided: as given, as stored, or from first records.

    Raises DataError when nothing says what to compare.
    """
    if to_field_specs(config):
        return config
    if settings is not None:
        fields = stored_config(settings).fields
    else:
        check_readable(first, "the input")
        records = [record.fields for record in upserted(first)]
        fields = to_fields(profile(records, config.source.reserved))
    config = config.model_copy(update={"fields": fields})
    if not to_field_specs(config):
        raise DataError(
            "no field of the first records can be compared; name the fields in a configuration "
            "(graftd init writes one)"
        )
    return config


def read_settings(root: Path) -> Settings | None:
    """What a data directory was made with; None when it is new."""
    data_dir = DataDir(root)
    # A store that lost its FORMAT, or was killed before it got one, is not a new one.
    if not data_dir.format_file.exists() and not data_dir.db.exists():
        return None
    data_dir = open_data_dir(root)
    with RocksDBReader.open(data_dir.db) as reader:
        return PartitionReader(reader).settings()


def run(
    config: Config,
    root: Path,
    sources: Sequence[Source],
    stop: threading.Event,
    observer: Observer | None = None,
) -> Partition:
    """Resolve the records of some sources, one after the other, in a data directory.

    Returns the partition, still open, when the sources end or ``stop`` is set.
    """
    settings = read_settings(root)
    first: list[Operation] = []
    begun: dict[str, Iterable[Operation | None]] = {}
    if not to_field_specs(config) and settings is None:
        for source in sources:
            operations = source.read(None, stop)
            first = first_operations(operations)
            begun[source.name] = itertools.chain(first, operations)
            if first:
                break
    config = with_fields(config, settings, first)
    partition = Partition.open(config, root, observer)
    try:
        if observer is not None:
            observer.opened(partition)
        for source in sources:
            partition.consume(source, stop, begun.get(source.name))
            if stop.is_set():
                return partition
        partition.finish()
    except BaseException:
        partition.close()
        raise
    return partition


__all__ = [
    "Observer",
    "Partition",
    "batches",
    "check_readable",
    "config_for",
    "first_operations",
    "run",
    "stored_config",
    "upserted",
    "with_fields",
]
