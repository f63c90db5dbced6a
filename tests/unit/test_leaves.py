"""The leaves' tokens in flat arrays, against a plain dict."""

from __future__ import annotations

import numpy as np
import pytest

from clustering.features.leaves import FREE, LAID, NOBODY, OWNER, Leaves, Weighed
from clustering.linkage.learned_kernels import desk_key, find_slot, lay_out

N_FIELDS = 3


def weighed(seed: int, most: int = 12) -> Weighed:
    """Invented bags of ``N_FIELDS`` fields, some of them missing."""
    draw = np.random.default_rng(seed)
    counts = draw.integers(0, most, N_FIELDS)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    ids = np.concatenate(
        [np.sort(draw.choice(10_000, n, replace=False)) - 5_000 for n in counts.tolist()]
    ).astype(np.int32)
    missing = counts == 0
    return Weighed(
        starts,
        ids,
        draw.random(len(ids), np.float32) + np.float32(0.01),
        np.where(missing, np.nan, draw.random(N_FIELDS)).astype(np.float32),
        np.where(missing, 0, draw.integers(1, 1 << 62, N_FIELDS)),
    )


def check(leaves: Leaves, expected: dict[int, Weighed]) -> None:
    starts, ids, weights, rarity, values = leaves.arrays[:5]
    for leaf, record in expected.items():
        first, last = starts[leaf, 0], starts[leaf, -1]
        assert (starts[leaf] - first).tolist() == record.starts.tolist()
        assert ids[first:last].tolist() == record.ids.tolist()
        assert weights[first:last].tolist() == record.weights.tolist()
        assert rarity[leaf].tobytes() == record.rarity.tobytes()
        assert values[leaf].tolist() == record.values.tolist()
    for leaf in set(range(len(starts))) - expected.keys():
        assert not starts[leaf].any()
        assert not values[leaf].any()
        assert np.isnan(rarity[leaf]).all()


@pytest.mark.parametrize("seed", range(3))
def test_puts_and_drops_in_any_order_are_those_of_a_dict(seed: int) -> None:
    draw = np.random.default_rng(seed)
    leaves, expected = Leaves(N_FIELDS), dict[int, Weighed]()
    capacities = set()
    for step in range(1200):
        leaf = int(draw.integers(0, 150))
        if leaf in expected:
            leaves.drop(leaf)
            del expected[leaf]
        else:
            expected[leaf] = weighed(1000 * seed + step)
            leaves.put(leaf, expected[leaf])
        capacities.add(len(leaves.arrays[1]))
        if step % 100 == 0:
            check(leaves, expected)
    check(leaves, expected)
    assert max(capacities) <= 8192, "tokens of dropped leaves give way to new ones"


def test_a_leaf_of_nothing_is_kept_too() -> None:
    leaves = Leaves(N_FIELDS)
    nothing = weighed(0, 1)
    leaves.put(5, nothing)
    check(leaves, {5: nothing})
    leaves.drop(5)
    check(leaves, {})


def laid_out(leaves: Leaves) -> dict[int, float]:
    keys, weights, state = leaves.arrays[5:8]
    slots = state[2 : 2 + state[LAID]]
    assert sorted(slots.tolist()) == np.flatnonzero(keys != FREE).tolist()
    return dict(zip(keys[slots].tolist(), weights[slots].tolist(), strict=True))


def tokens(record: Weighed) -> dict[int, float]:
    fields = np.repeat(np.arange(N_FIELDS), np.diff(record.starts)).tolist()
    keys = [desk_key(f, token) for f, token in zip(fields, record.ids.tolist(), strict=True)]
    assert len(set(keys)) == len(keys)
    return dict(zip(keys, record.weights.tolist(), strict=True))


def test_the_desk_holds_one_leaf_after_another() -> None:
    leaves = Leaves(N_FIELDS)
    records = {leaf: weighed(leaf, 80) for leaf in range(20)}
    for leaf, record in records.items():
        leaves.put(leaf, record)
    assert laid_out(leaves) == {}
    for leaf, record in records.items():
        lay_out(leaves.arrays, leaf)
        assert leaves.arrays[7][OWNER] == leaf
        assert laid_out(leaves) == tokens(record)
        for key in tokens(record):
            assert leaves.arrays[5][find_slot(leaves.arrays[5], key)] == key


def test_the_desk_grows_with_the_longest_leaf_and_forgets_dropped_ones() -> None:
    leaves = Leaves(N_FIELDS)
    short, long = weighed(1), weighed(2, 3000)
    leaves.put(0, short)
    lay_out(leaves.arrays, 0)
    leaves.put(1, long)
    assert len(leaves.arrays[5]) >= 4 * len(long.ids)
    lay_out(leaves.arrays, 1)
    assert laid_out(leaves) == tokens(long)
    leaves.drop(0)
    assert leaves.arrays[7][OWNER] == 1, "another leaf than the one on it"
    leaves.drop(1)
    assert leaves.arrays[7][OWNER] == NOBODY
    assert laid_out(leaves) == {}
