"""Tables and trees for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from clustering.types import RecordKey
from stream.cli.printing import shown
from stream.explain import LEARNED, MOST_AGREEMENT, How, Merge, PairEvidence, Why
from stream.searching import Search

Record = tuple[RecordKey, Mapping[str, Any]]


def records_table(title: str, records: Sequence[Record]) -> Table:
    """Records below each other; columns without any value are left out."""
    names = dict.fromkeys(
        name for _, fields in records for name, value in fields.items() if value not in (None, "")
    )
    table = Table("record", title=f"{title}, {counted(len(records), 'record')}", box=SIMPLE_HEAD)
    table.title_justify = "left"
    for name in names:
        table.add_column(shown(name), overflow="fold")
    for key, fields in records:
        table.add_row(_text(key), *(_text(fields.get(name)) for name in names))
    return table


def evidence_table(evidence: PairEvidence, a: str, b: str) -> Table:
    """What each field says of two records named ``a`` and ``b``."""
    learned = evidence.linkage == LEARNED
    table = Table("field", box=SIMPLE_HEAD, show_footer=learned)
    table.add_column(shown(a), overflow="fold")
    table.add_column(shown(b), overflow="fold")
    table.add_column("similarity", justify="right")
    table.add_column("agreement", justify="right")
    if learned:
        for name in ("weight", "rarity", "total"):
            table.add_column(name, justify="right")
    for field in evidence.fields:
        known = field.similarity is not None
        row: list[Text | str] = [
            _text(field.field),
            _text(field.a),
            _text(field.b),
            f"{field.similarity:.3f}" if known else "missing",
            f"{field.level} of {MOST_AGREEMENT}" if known else "",
        ]
        if learned:
            row += [f"{x:+.2f}" if known else "" for x in (field.weight, field.rarity, field.total)]
        table.add_row(*row)
    if learned:
        table.add_section()
        blanks = [""] * 6
        table.add_row("before any field", *blanks, f"{evidence.bias:+.2f}")
        if evidence.limit:
            table.add_row("too few fields agree", *blanks, f"{evidence.limit:+.2f}")
        table.columns[0].footer = "score"
        table.columns[-1].footer = f"{evidence.score:+.2f}"
    return table


def why_tables(result: Why) -> Iterator[RenderableType]:
    """Two records side by side."""
    evidence = result.evidence
    yield evidence_table(evidence, str(result.a), str(result.b))
    if evidence.probability is None:
        yield f"similarity by the {evidence.linkage} linkage: {evidence.score:.3f}"
    else:
        yield f"probability that these two are one entity: {_percent(evidence.probability)}"
    if result.together:
        unlike = evidence.probability is not None and evidence.probability < 0.5
        yield f"they are together in {result.entity_a}" + (
            ", brought together by other records of it" if unlike else ""
        )
    else:
        yield f"they are apart, in {result.entity_a} and {result.entity_b}"
    if result.meet is not None:
        yield (
            f"their groups of records, {result.meet.records} in all, meet at a linkage of "
            f"{_linkage(result.meet)}"
        )
    elif result.a != result.b:
        yield "nothing links their groups of records"


def how_tree(result: How) -> Tree:
    """The merges that formed an entity, the last one on top."""
    merges = {merge.node: merge for merge in result.merges}
    title = f"entity {result.entity_id}, {counted(len(result.records), 'record')}"
    top = Tree(Text(title))
    waiting = [(top, result.root)]
    while waiting:
        above, node = waiting.pop()
        merge = merges.get(node)
        if merge is None:
            key, fields = result.records[node]
            said = ", ".join(shown(v) for v in fields.values() if v not in (None, ""))
            above.add(Text.assemble((shown(key), "bold"), "  ", said, overflow="ellipsis"))
            continue
        branch = above.add(Text(f"{merge.records} records, linkage {_linkage(merge)}"))
        waiting += [(branch, merge.right), (branch, merge.left)]
    return top


def search_tables(result: Search) -> Iterator[RenderableType]:
    """What a record would join, and the records most like it."""
    sure = "" if result.probability is None else f", probability {_percent(result.probability)}"
    match result.joins:
        case ():
            yield "it would be an entity of its own"
        case (one,):
            yield f"it would join {one} (linkage {result.linkage:.2f}{sure})"
        case several:
            names = ", ".join(several)
            yield f"it would bring together {names} (linkage {result.linkage:.2f}{sure})"
    if not result.candidates:
        yield "no record is like it"
        return
    learned = result.candidates[0].evidence.linkage == LEARNED
    table = Table("record", "entity", title="most alike", box=SIMPLE_HEAD)
    table.title_justify = "left"
    table.add_column("score" if learned else "similarity", justify="right")
    if learned:
        table.add_column("probability", justify="right")
    for found in result.candidates:
        evidence = found.evidence
        row: list[Text | str] = [_text(found.key), Text(found.entity_id), f"{evidence.score:+.2f}"]
        if evidence.probability is not None:
            row.append(_percent(evidence.probability))
        table.add_row(*row)
    yield table
    best = result.candidates[0]
    yield evidence_table(best.evidence, "searched for", str(best.key))


def counted(number: int, what: str) -> str:
    """A number of things, in words."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _linkage(merge: Merge) -> str:
    sure = "" if merge.probability is None else f" (probability {_percent(merge.probability)})"
    return f"{merge.linkage:.2f}{sure}"


def _percent(share: float) -> str:
    """A probability; never rounded to certainty."""
    if 0.0 < share < 0.0001:
        return "<0.01%"
    if 0.9999 < share < 1.0:
        return ">99.99%"
    return f"{share:.2%}"


def _text(value: object) -> Text:
    return Text(shown(value))


__all__ = [
    "counted",
    "evidence_table",
    "how_tree",
    "records_table",
    "search_tables",
    "why_tables",
]
