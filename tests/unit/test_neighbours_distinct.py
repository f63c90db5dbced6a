from __future__ import annotations

import numpy as np

from clustering.neighbours.distinct import Change, DistinctVectors
from clustering.neighbours.labels import NONE

A = np.array([1, 0], np.float32)
B = np.array([0, 1], np.float32)


def test_the_smallest_label_represents_its_vector() -> None:
    groups = DistinctVectors()
    assert groups.join(5, A) == Change(NONE, 5)
    assert groups.join(9, A) == Change(5, 5)
    assert groups.join(2, A) == Change(5, 2)
    assert groups.join(7, B) == Change(NONE, 7)
    labels, firsts = groups.pairs()
    assert labels.tolist() == [2, 5, 7, 9]
    assert firsts.tolist() == [2, 2, 7, 2]
    assert len(groups) == 4


def test_a_leaving_representative_hands_over_to_the_next_smallest() -> None:
    groups = DistinctVectors()
    for label in (5, 9, 2, 7):
        groups.join(label, A)
    assert groups.leave(7) == Change(2, 2)
    assert groups.leave(2) == Change(2, 5)
    assert groups.leave(5) == Change(5, 9)
    assert groups.leave(9) == Change(9, NONE)
    assert len(groups) == 0


def test_a_label_that_left_for_another_vector_does_not_represent_the_old_one() -> None:
    groups = DistinctVectors()
    for label in (1, 2, 3):
        groups.join(label, A)
    groups.leave(2)
    groups.join(2, B)
    assert groups.leave(1) == Change(1, 3)
    assert groups.shares(2, B)
    assert not groups.shares(2, A)
    assert not groups.shares(1, A)


def test_a_freed_group_is_used_again_for_another_vector() -> None:
    groups = DistinctVectors()
    groups.join(1, A)
    groups.join(3, A)
    groups.leave(1)
    groups.leave(3)
    assert groups.join(8, B) == Change(NONE, 8)
    assert groups.join(9, A) == Change(NONE, 9)


def test_labels_that_come_and_go_leave_nothing_behind() -> None:
    groups = DistinctVectors()
    groups.join(0, A)
    groups.join(1, A)
    for label in range(2, 5_000):
        groups.join(label, A)
        groups.leave(label)
    assert groups.leave(0) == Change(0, 1)
    assert max(len(heap) for heap in groups._heaps.values()) < 50
