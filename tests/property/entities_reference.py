"""The rules of `clustering.entities`, read off its docstring one by one; slow and direct."""

from __future__ import annotations

from typing import NamedTuple

Cluster = frozenset[int]


class Outcome(NamedTuple):
    """Entities after a change, and what became of each entity that was there before."""

    live: dict[int, Cluster]
    next_number: int
    kinds: dict[int, str]
    """of each entity that changed, came or went"""


def heir(entity: Cluster, clusters: list[Cluster]) -> Cluster | None:
    """Which new cluster an entity passes to, None when all of its records are gone."""
    holding = [cluster for cluster in clusters if cluster & entity]
    if not holding:
        return None
    most = max(len(cluster & entity) for cluster in holding)
    tied = [cluster for cluster in holding if len(cluster & entity) == most]
    return min(tied, key=lambda cluster: min(cluster & entity))


def keeper(cluster: Cluster, before: dict[int, Cluster], clusters: list[Cluster]) -> int | None:
    """The entity that keeps its id in a new cluster, None when none passes to it."""
    claims = [number for number, members in before.items() if heir(members, clusters) == cluster]
    return min(claims, key=lambda number: (-len(before[number]), number), default=None)


def step(before: dict[int, Cluster], next_number: int, clusters: list[Cluster]) -> Outcome:
    """Let all records be in these clusters and in no others; ``before`` maps ids to records."""
    live: dict[int, Cluster] = {}
    kinds: dict[int, str] = {}
    for cluster in sorted(clusters, key=min):
        number = keeper(cluster, before, clusters)
        if number is None:
            number = next_number
            next_number += 1
            old = any(cluster & members for members in before.values())
            kinds[number] = "split" if old else "created"
        elif before[number] != cluster:
            kinds[number] = "changed"
        live[number] = cluster
    for number in before.keys() - live.keys():
        passed_on = any(before[number] & cluster for cluster in clusters)
        kinds[number] = "merged" if passed_on else "retired"
    return Outcome(live, next_number, kinds)
