"""How fast the engine is beside the neighbour search that it cannot do without.

Everything grows together, a thousand records at a time in turn, so that what else the machine does
slows all of it alike:

- *search 64* is hnswlib alone, one search and one add a vector (64 numbers, ef 50);
- *tree 64* is the engine without disk on the same vectors: hybrid index, tree by average linkage,
  entity events;
- *search* is hnswlib alone on the records' own vectors, as long and with the same settings as the
  engine's;
- *records* is the engine without disk on those records: index, learned linkage, entity events;
- *end to end* takes the records as lines of JSON and ends with messages in files and all state in
  RocksDB.

Above the engine's crossover its search is hnswlib's; below, a scan.
"""

from __future__ import annotations

import itertools
import json
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import hnswlib
import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from clustering.features.leaves import Weighed
from clustering.fitting import fit_model
from clustering.model import first_model
from eval.synthetic import noisy_copies
from stream.config import Config, to_field_specs
from stream.embedding import Embedded, Embedder
from stream.engine import Engine
from stream.normalise import Normaliser
from stream.records import Upsert
from stream.resolver import Resolver
from stream.run import Partition
from stream.sources import open_source
from tests.benchmarks.people import FIELDS, Town

Vector = npt.NDArray[np.float32]

ROUND = 1_000
FITTED_RECORDS = 2_000
VECTOR_FIELD = {"vector": "text"}

# "wall" is what a user waits for; "cpu" is steadier on a machine that others use.
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}


@dataclass
class Measured:
    """What was seen of one contender while it grew.

    seconds: of each round. apart: seconds of each round that went into refits of the model.
    bytes: resident memory that each round added. each: seconds of every single insert, if known.
    """

    seconds: list[float] = field(default_factory=list)
    apart: list[float] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)
    each: list[float] = field(default_factory=list)

    def rate(self, size: int) -> float:
        """Records a second until there were ``size``, refits left out."""
        rounds = size // ROUND
        return size / (sum(self.seconds[:rounds]) - sum(self.apart[:rounds]))

    def rate_at(self, size: int) -> float:
        """Records a second when there are about ``size``: in the tenth before."""
        first, last = size * 9 // 10 // ROUND, size // ROUND
        seconds = sum(self.seconds[first:last]) - sum(self.apart[first:last])
        return (last - first) * ROUND / seconds

    def quantile_at(self, size: int, share: float) -> float:
        """Microseconds that a share of the inserts at about ``size`` take at most."""
        return float(np.quantile(self.each[size * 9 // 10 : size], share)) * 1e6

    def memory(self, size: int) -> float:
        """Bytes a record."""
        return sum(self.bytes[: size // ROUND]) / size


class Contender(Protocol):
    """Something that grows by rounds."""

    measured: Measured

    def grow(self, start: int, clock: Callable[[], float]) -> None:
        """Take in the next ROUND records, whose first has the number ``start``."""


class Hnswlib:
    """hnswlib alone: a search and an add for every vector."""

    def __init__(self, config: Config, capacity: int, rows: Sequence[Vector] | Vector) -> None:
        n = config.neighbours
        self.measured = Measured()
        self._rows = rows
        self._k = config.tree.neighbours
        self._index = hnswlib.Index("ip", n.dimension)
        self._index.init_index(capacity, M=n.m, ef_construction=n.ef_construction, random_seed=1)
        self._index.set_num_threads(1)
        self._index.set_ef(n.ef_search)

    def grow(self, start: int, clock: Callable[[], float]) -> None:
        for number in range(start, start + ROUND):
            row = self._rows[number]
            began = time.perf_counter()
            if number > self._k:
                self._index.knn_query(row, self._k)
            self._index.add_items(row, number)
            self.measured.each.append(time.perf_counter() - began)


class Resolving:
    """The engine without disk: embedded records in, changes of entities out."""

    def __init__(self, resolver: Resolver, rows: Sequence[Embedded]) -> None:
        self.resolver = resolver
        self.measured = Measured()
        self.events = 0
        self._rows = rows

    def grow(self, start: int, clock: Callable[[], float]) -> None:
        for number in range(start, start + ROUND):
            row = self._rows[number]
            began = time.perf_counter()
            self.resolver.add(number, "made up", row)
            self.events += len(self.resolver.settle().changes)
            self.measured.each.append(time.perf_counter() - began)
        # What an engine would write to its store by now.
        self.resolver.take_dirty_nodes()
        self.resolver.take_index_events()


class EndToEnd:
    """Lines of JSON in, messages in files and state in RocksDB out."""

    def __init__(self, config: Config, root: Path, records: Path) -> None:
        self.measured = Measured()
        self.partition = Partition.open(config, root)
        source = open_source(str(records), config.source)
        self._source = source.name
        self._operations = source.read(None, threading.Event())
        self._batch = config.state.batch_records

    def grow(self, start: int, clock: Callable[[], float]) -> None:
        engine, refitted = self.partition.engine, 0.0
        refit = Engine.refit

        def timed_refit() -> None:
            nonlocal refitted
            began = clock()
            refit(engine)
            refitted += clock() - began

        engine.refit = timed_refit  # type: ignore[method-assign]
        done = 0
        while done < ROUND:
            operations = itertools.islice(self._operations, min(self._batch, ROUND - done))
            done += engine.process([o for o in operations if o is not None], self._source)
            self.partition.publish()
        self.measured.apart.append(refitted)


class Embeddings(Sequence[Embedded]):
    """Records of a file as embedded by one model, the last two rounds of them kept."""

    def __init__(self, config: Config, records: Path) -> None:
        source = open_source(str(records), config.source)
        self._operations = source.read(None, threading.Event())
        specs = to_field_specs(config)
        normaliser = Normaliser(specs, config.fields, config.normalise)
        dimension, evidence = config.neighbours.dimension, config.matching.evidence_fields
        embedder = Embedder(first_model(specs, dimension, evidence), normaliser)
        self._waiting = [embedder.bags(next(self)) for _ in range(FITTED_RECORDS)]
        model = fit_model(specs, self._waiting, dimension, evidence, config.model.seed)
        self.embedder = embedder.with_model(model)
        self._first = 0
        self._rows: list[Embedded] = []

    def __next__(self) -> dict[str, object]:
        for operation in self._operations:
            if isinstance(operation, Upsert):
                return dict(operation.fields)
        raise StopIteration

    def next_round(self) -> None:
        """Embed the next ROUND records, and forget the others."""
        self._first += len(self._rows)
        bags = self._waiting[:ROUND]
        del self._waiting[:ROUND]
        bags += [self.embedder.bags(next(self)) for _ in range(ROUND - len(bags))]
        self._rows = [self.embedder.embed(record) for record in bags]

    def __getitem__(self, number: int) -> Embedded:  # type: ignore[override]
        return self._rows[number - self._first]

    def __len__(self) -> int:
        return self._first + len(self._rows)


class VectorsOf(Sequence[Vector]):
    """The search vectors of embedded records."""

    def __init__(self, rows: Embeddings) -> None:
        self._rows = rows

    def __getitem__(self, number: int) -> Vector:  # type: ignore[override]
        return self._rows[number].vector

    def __len__(self) -> int:
        return len(self._rows)


class Bare(Sequence[Embedded]):
    """Vectors as embedded records that have nothing else in them."""

    def __init__(self, vectors: Vector) -> None:
        self._vectors = vectors
        self._weighed = Weighed(
            np.array([0, 1], np.int32),
            np.ones(1, np.int32),
            np.ones(1, np.float32),
            np.zeros(1, np.float32),
            np.ones(1, np.int64),
        )

    def __getitem__(self, number: int) -> Embedded:  # type: ignore[override]
        return Embedded(self._weighed, self._vectors[number], np.empty(0, np.uint64), number)

    def __len__(self) -> int:
        return len(self._vectors)


def resident_bytes() -> int:
    """Memory of this process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096


def config_of(fields: dict[str, str], **sections: dict[str, object]) -> Config:
    """The defaults, with some settings of some sections."""
    return Config.model_validate_json(json.dumps({"fields": fields, **sections}))


def vector_config() -> Config:
    """Average linkage over vectors of 64 numbers, which `noisy_copies` makes."""
    return config_of(
        VECTOR_FIELD,
        matching={"linkage": "average", "threshold": 0.4},
        neighbours={"dimension": 64, "ef_search": 50},
    )


def measure(sizes: Sequence[int], clock: Callable[[], float], folder: Path) -> dict[str, Contender]:
    """Let all grow to the largest size, in turn."""
    largest = max(sizes)
    records = folder / "records.jsonl"
    with records.open("w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in Town(largest).json_lines())
    vectors, _ = noisy_copies(largest, 64, noise=0.6)
    by_vector, by_record = vector_config(), config_of(FIELDS)
    embedded = Embeddings(by_record, records)
    model = first_model(to_field_specs(by_vector), 64, 1)
    contenders: dict[str, Contender] = {
        "search 64": Hnswlib(by_vector, largest, vectors),
        "tree 64": Resolving(Resolver(model, by_vector), Bare(vectors)),
        "search": Hnswlib(by_record, largest, VectorsOf(embedded)),
        "records": Resolving(Resolver(embedded.embedder.model, by_record), embedded),
        "end to end": EndToEnd(by_record, folder / "data", records),
    }
    for start in range(0, largest, ROUND):
        embedded.next_round()
        for contender in contenders.values():
            held, began = resident_bytes(), clock()
            contender.grow(start, clock)
            contender.measured.seconds.append(clock() - began)
            contender.measured.bytes.append(resident_bytes() - held)
    return contenders


def report(console: Console, sizes: Sequence[int], contenders: dict[str, Contender]) -> None:
    """Print what was measured."""
    beside = {"tree 64": "search 64", "records": "search", "end to end": "search"}
    seen = {name: contender.measured for name, contender in contenders.items()}
    for title, rate in (
        ("Records a second from nothing to a size", Measured.rate),
        ("Records a second at a size", Measured.rate_at),
    ):
        table = Table("records", title=title)
        for name in seen:
            table.add_column(name, justify="right")
            if name in beside:
                table.add_column(f"/ {beside[name]}", justify="right")
        for size in sizes:
            cells = []
            for name, measured in seen.items():
                cells.append(f"{rate(measured, size):,.0f}")
                if name in beside:
                    cells.append(f"{rate(measured, size) / rate(seen[beside[name]], size):.0%}")
            table.add_row(f"{size:,}", *cells)
        console.print(table)
    table = Table("records", title="One insert, microseconds: median, 99 %; memory, bytes a record")
    for name in seen:
        table.add_column(name, justify="right")
    for size in sizes:
        cells = []
        for measured in seen.values():
            memory = f"{measured.memory(size):,.0f} B"
            if measured.each:
                middle, high = (measured.quantile_at(size, share) for share in (0.5, 0.99))
                memory = f"{middle:,.0f} {high:,.0f}  {memory}"
            cells.append(memory)
        table.add_row(f"{size:,}", *cells)
    console.print(table)
    before, after = sizes[-2:] if len(sizes) > 1 else (sizes[0], sizes[0])
    losses = ", ".join(
        f"{name} {1 - measured.rate_at(after) / measured.rate_at(before):.0%}"
        for name, measured in seen.items()
    )
    console.print(f"Loss of speed from {before:,} to {after:,} records: {losses}.")
    refits = seen["end to end"].apart
    console.print(
        f"Refits of the model are left out of these: {sum(refits):.1f} s of "
        f"{sum(seen['end to end'].seconds):.1f} s end to end."
    )
    for name in ("tree 64", "records"):
        resolving = contenders[name]
        if isinstance(resolving, Resolving):
            work = {k: f"{v / max(sizes):.2f}" for k, v in resolving.resolver.tree.work.items()}
            console.print(f"{name}: {resolving.events} events; an insert has {work}")


def run(console: Console, sizes: Sequence[int], clock: str = "wall") -> None:
    """Measure and print. sizes: ascending multiples of ROUND, at least FITTED_RECORDS."""
    with tempfile.TemporaryDirectory(prefix="graftd-bench-") as folder:
        contenders = measure(sizes, CLOCKS[clock], Path(folder))
        report(console, sizes, contenders)
        end_to_end = contenders["end to end"]
        if isinstance(end_to_end, EndToEnd):
            end_to_end.partition.close()
