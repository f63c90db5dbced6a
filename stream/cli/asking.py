"""Commands that ask a data directory about records and entities; also while a daemon runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from stream.cli.app import ASKING, command
from stream.cli.options import DataDirOption, Output, OutputOption

if TYPE_CHECKING:
    from state.codecs import EntityRow
    from stream.view import View

Name = Annotated[
    str, typer.Argument(help="Record as SOURCE:ID, or ID alone where one source has it.")
]


@command(ASKING, "graftd get crm 4711 -d DIR", "graftd get 4711 -d DIR", "graftd get E12 -d DIR")
def get(
    name: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE ID | ENTITY", help="Record by source and id, or entity by its id."
        ),
    ],
    data_dir: DataDirOption,
    id_: Annotated[str | None, typer.Argument(metavar="", help="Id, after a source.")] = None,
    output: OutputOption = Output.table,
) -> None:
    """Show a record and its entity, or an entity and its records.

    The id of an entity that is no more stands for the entities that its records went into.
    """
    from clustering.types import RecordKey
    from stream.view import View

    with View.open(data_dir) as view:
        if id_ is not None:
            wanted = RecordKey(name, id_)
        elif view.rows.get_entity(name) is not None:
            _show_entities(view, name, view.entities_named(name), output)
            return
        else:
            wanted = view.find(name)
        row = view.record(wanted)
        entity = view.entity_of(row)
        facts = {**wanted._asdict(), "entity_id": entity.id, "fields": view.fields(row)}
        facts["version"] = row.stamp
    if output is Output.table:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table

        from stream.cli.printing import show, shown
        from stream.cli.tables import counted

        table = Table("field", "value", title=f"record {shown(wanted)}", box=SIMPLE_HEAD)
        table.title_justify = "left"
        for field, value in facts["fields"].items():
            table.add_row(shown(field), shown(value))
        others = entity.size - 1
        beside = f"with {counted(others, 'other record')}" if others else "alone"
        show(table, f"entity {entity.id}, {beside}")
    else:
        from stream.cli.printing import print_json

        print_json(facts, indent=output is Output.json)


def _entity_as_json(view: View, name: str, entity: EntityRow) -> dict[str, Any]:
    records = [{**row.key._asdict(), "fields": view.fields(row)} for row in view.members(entity)]
    return {
        "entity_id": entity.id,
        "asked_for": name,
        "version": entity.version,
        "records": records,
    }


def _show_entities(view: View, name: str, entities: list[EntityRow], output: Output) -> None:
    from stream.cli.printing import print_rows, show, shown
    from stream.cli.tables import records_table

    if output is not Output.table:
        print_rows((_entity_as_json(view, name, entity) for entity in entities), output)
        return
    if name not in {entity.id for entity in entities}:
        show(f"{shown(name)} is retired; its records are now in:")
    for entity in entities:
        rows = view.members(entity)
        show(
            records_table(
                f"entity {entity.id}, version {entity.version}",
                [(row.key, view.fields(row)) for row in rows],
            )
        )


@command(
    ASKING,
    "graftd search -d DIR name='Ann Lee' city=Bonn",
    """graftd search -d DIR --json '{"name": "Ann Lee", "born": 1980}'""",
)
def search(
    data_dir: DataDirOption,
    given: Annotated[
        list[str] | None,
        typer.Argument(metavar="FIELD=VALUE...", help="Fields of the record; twice for a list."),
    ] = None,
    json_: Annotated[
        str | None, typer.Option("--json", help="The record as a JSON object instead.")
    ] = None,
    source: Annotated[str, typer.Option(help="Source that the record would come from.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="Most candidates to show.")] = 5,
    output: OutputOption = Output.table,
) -> None:
    """Say which entity a record would join, without inserting it."""
    from stream.cli.printing import print_json, show
    from stream.cli.tables import search_tables
    from stream.searching import search as find
    from stream.view import View

    fields = _fields(given or [], json_)
    with View.open(data_dir) as view:
        result = find(view, fields, source or view.config.source.default_source, limit)
    if output is Output.table:
        show(*search_tables(result))
    else:
        print_json(result.as_json(), indent=output is Output.json)


@command(ASKING, "graftd why crm:4711 shop:88 -d DIR", "graftd why 4711 4712 -d DIR --output json")
def why(a: Name, b: Name, data_dir: DataDirOption, output: OutputOption = Output.table) -> None:
    """Show what each field says about two records being one entity, and what that adds up to.

    Evidence is in nats: the score is the logarithm of the odds that they are one entity.
    """
    from stream.cli.printing import print_json, show
    from stream.cli.tables import why_tables
    from stream.explain import why as explain
    from stream.view import View

    with View.open(data_dir) as view:
        result = explain(view, view.find(a), view.find(b))
    if output is Output.table:
        show(*why_tables(result))
    else:
        print_json(result.as_json(), indent=output is Output.json)


@command(ASKING, "graftd how E12 -d DIR", "graftd how crm:4711 -d DIR --output json")
def how(
    entity: Annotated[str, typer.Argument(help="Id of an entity, or a record's name.")],
    data_dir: DataDirOption,
    output: OutputOption = Output.table,
) -> None:
    """Show the merges that formed an entity, and how alike the two sides of each are."""
    from stream.cli.printing import print_rows, show
    from stream.cli.tables import how_tree
    from stream.explain import how as explain
    from stream.view import View

    with View.open(data_dir) as view:
        results = [explain(view, row) for row in view.entities_named(entity)]
    if output is Output.table:
        show(*map(how_tree, results))
    else:
        print_rows((result.as_json() for result in results), output)


def _fields(given: list[str], text: str | None) -> dict[str, Any]:
    """The fields of a record on the command line."""
    import json

    from clustering.errors import UsageError

    if bool(given) == (text is not None):
        raise UsageError("give the record as FIELD=VALUE ..., or as --json, but not both")
    if text is not None:
        try:
            fields = json.loads(text)
        except json.JSONDecodeError as error:
            raise UsageError(f"--json is not JSON: {error}") from error
        if not isinstance(fields, dict):
            raise UsageError("--json must be an object of fields")
        return fields
    found: dict[str, Any] = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"{pair} is not FIELD=VALUE")
        if name in found:
            before = found[name]
            found[name] = [*(before if isinstance(before, list) else [before]), value]
        else:
            found[name] = value
    return found
