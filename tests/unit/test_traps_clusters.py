"""Troubles that users of other programs met, each by the smallest input that shows it.

They are about which records come together, what entities are called, and what that depends on.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest

from clustering.types import RecordKey
from stream.messages import ASSIGNMENTS, ENTITY_UPDATES
from tests.support.files import mixed_input
from tests.support.people import Fields, crowd, person, variant
from tests.support.rig import Rig, assigned, small_config, upsert, upserts

ROOT = Path(__file__).parents[2]
ROOMY = {"exact_below": 25_000, "dimension": 96, "ef_search": 100}
LINKAGES = ("learned", "cosine", "average")


@pytest.mark.parametrize("linkage", LINKAGES)
def test_a_chain_of_likenesses_is_not_one_entity(linkage: str, tmp_path: Path) -> None:
    """A1 ~ A2 ~ … ~ A50, each step alike, its ends not at all."""
    words = [person(i)["family"].lower() + f"{i}x" for i in range(54)]
    config = small_config(fields={"title": "text"}, matching={"linkage": linkage}, neighbours=ROOMY)
    rig = Rig(config, tmp_path)

    rig.feed(upserts((str(i), {"title": " ".join(words[i : i + 5])}) for i in range(50)))

    for cluster in rig.clusters():
        numbers = sorted(map(int, cluster))
        assert numbers[-1] - numbers[0] < 10, "its ends have nothing in common"
    assert len(rig.clusters()) >= 5


def test_ids_survive_restarts_refits_and_a_move_to_another_place(tmp_path: Path) -> None:
    """Load 100 records, restart twice, go on from a copy: the ids are those they were."""
    rig = Rig.on_disk(small_config(model={"refit_at": [50]}), tmp_path / "here")
    rig.feed(upserts(crowd(100)))
    ids = rig.partition()
    for _ in range(2):
        rig.restart()
        assert rig.partition() == ids
    rig.engine.refit()
    after_refit = rig.partition()
    same = {name: members for members, name in ids.items()}
    for members, name in after_refit.items():
        assert name not in same or same[name] & members, "an id never moves to other records"
    rig.close()

    shutil.move(tmp_path / "here", tmp_path / "there")
    moved = Rig.on_disk(rig.config, tmp_path / "there")
    assert moved.partition() == after_refit
    moved.feed([upsert("new", person(1_000_001))])
    assert set(moved.partition().values()) > set(after_refit.values())
    moved.close()


def test_the_cluster_of_a_group_does_not_depend_on_strangers(tmp_path: Path) -> None:
    """28 alike records alone, and with 2,400 of other people before and between them."""
    group = [(f"g{i}", variant(5, i)) for i in range(28)]
    strangers = crowd(2400, seed=3)
    crowded = strangers[:1000]
    for i, record in enumerate(group):
        crowded += [record, *strangers[1000 + 50 * i : 1050 + 50 * i]]
    found = []
    for name, records in (("alone", group), ("crowded", crowded)):
        config = small_config(model={"refit_at": [100, 500, 2000]}, neighbours=ROOMY)
        rig = Rig(config, tmp_path / name)
        rig.feed(upserts(records))
        found.append({c for c in rig.clusters() if any(id_.startswith("g") for id_ in c)})
    assert found[0] == found[1] == {frozenset(id_ for id_, _ in group)}


def test_new_records_in_one_batch_meet_each_other(tmp_path: Path) -> None:
    """Each gets its entity told, at once."""
    rig = Rig(small_config(), tmp_path)
    rig.feed(upserts([("1", variant(0, 0)), ("2", variant(0, 1))]))
    assert rig.clusters() == {frozenset({"1", "2"})}
    assert {a["id"]: a["entity_id"] for a in rig.values(ASSIGNMENTS)} == {"1": "E0", "2": "E0"}
    assert [u["kind"] for u in rig.values(ENTITY_UPDATES)] == ["created", "changed"]


def test_equal_ids_of_different_sources_are_different_records(tmp_path: Path) -> None:
    rig = Rig(small_config(), tmp_path)
    rig.feed([upsert("1", person(0), "crm"), upsert("1", person(1), "erp")])
    rig.feed([upsert("c", person(2), "a:b"), upsert("b:c", person(3), "a")])
    rig.restart()
    assert set(rig.partition()) == {
        frozenset({RecordKey(source, id_)})
        for source, id_ in (("crm", "1"), ("erp", "1"), ("a:b", "c"), ("a", "b:c"))
    }
    assert assigned(rig.values(ASSIGNMENTS)) == rig.partition()


def test_a_clean_source_is_clean_in_whole_clusters(tmp_path: Path) -> None:
    """Pairs A1-B1, B1-C1, C1-A2 must not bring A1 and A2 together, nor does any order of them."""
    records = {"A1": "clean", "A2": "clean", "B1": "crm", "C1": "shop"}
    for number, (first, second) in enumerate(combinations(records, 2)):
        order = [first, second, *(id_ for id_ in records if id_ not in {first, second})]
        rig = Rig(small_config(), tmp_path / str(number))
        for id_ in order:
            rig.feed([upsert(id_, variant(0, int(id_[1]) - 1), records[id_])])
        rig.engine.refit()
        rig.publish()
        clusters = rig.clusters()
        assert {id_ for c in clusters for id_ in c} == set(records), "none is left out"
        assert not any({"A1", "A2"} <= c for c in clusters)
        assert len(clusters) == 2


def test_nothing_depends_on_hash_order_or_threads(tmp_path: Path) -> None:
    path = mixed_input(tmp_path / "records.jsonl", 900, seed=2)
    digests = set()
    for seed, threads in (("0", "1"), ("1", "4")):
        names = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        environment = {**os.environ, "PYTHONHASHSEED": seed, **dict.fromkeys(names, threads)}
        command = [sys.executable, "-m", "tests.support.digesting", str(path)]
        ended = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stderr
        digests.add(ended.stdout)
    assert len(digests) == 1


def test_equal_records_are_one_entity_and_counted_as_records(tmp_path: Path) -> None:
    """Three equal rows and two equal rows are five records and two entities."""
    rig = Rig(small_config(), tmp_path)
    rig.feed(upserts((f"{p}{i}", person(p)) for p, n in ((0, 3), (1, 2)) for i in range(n)))
    assert rig.clusters() == {frozenset({"00", "01", "02"}), frozenset({"10", "11"})}
    assert len(rig.engine) == rig.engine.counts["created"] == 5
    assert len(rig.engine.resolver.entities) == 2


def test_work_does_not_grow_with_the_number_of_singletons(tmp_path: Path) -> None:
    """The same 100 records cost the tree as much after 2,000 singletons as after 500."""

    def single(i: int) -> tuple[str, Fields]:
        return f"s{i}", person(1_000_000 + i)

    work = []
    for n in (500, 2000):
        rig = Rig(small_config(model={"refit_at": []}, neighbours=ROOMY), tmp_path / str(n))
        rig.feed(upserts(map(single, range(n))))
        before = rig.engine.resolver.tree.work
        written = len(rig.messages)
        rig.feed(upserts(crowd(100)))
        after = rig.engine.resolver.tree.work
        work.append(sum(after.values()) - sum(before.values()))
        assert len(rig.messages) - written < 400
    assert work[1] < 1.25 * work[0]
