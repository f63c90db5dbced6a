"""Commands that compare with a truth: measuring against it, and learning from it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stream.cli.app import ASKING, SETTING_UP, command
from stream.cli.options import (
    ConfigOption,
    DataDirOption,
    FormatOption,
    Output,
    OutputOption,
)

TruthArgument = Annotated[
    Path,
    typer.Argument(
        help="CSV file with the columns id, cluster, and source where ids are not unique."
    ),
]


@command(
    ASKING, "graftd evaluate truth.csv -d DIR", "graftd evaluate truth.csv -d DIR --output json"
)
def evaluate(
    truth: TruthArgument, data_dir: DataDirOption, output: OutputOption = Output.table
) -> None:
    """Compare the entities with the true ones: pairs, B-cubed, exact clusters, adjusted Rand."""
    from eval.report import evaluate as compare
    from stream.cli.printing import print_json, show
    from stream.truth import read_truth
    from stream.view import View

    with View.open(data_dir) as view:
        predicted = dict(view.assignments())
    report = compare(predicted, read_truth(truth, predicted))
    if output is Output.table:
        show(report.as_table())
    else:
        print_json(report.as_json(), indent=output is Output.json)


@command(SETTING_UP, "graftd train customers.csv truth.csv -c graftd.yaml -o customers.model")
def train(
    records: Annotated[str, typer.Argument(help="Records of which some clusters are known.")],
    truth: TruthArgument,
    model: Annotated[
        Path, typer.Option("--model", "-o", help="Model file to write, for matching.model_file.")
    ],
    config: ConfigOption = None,
    format_: FormatOption = None,
    output: OutputOption = Output.table,
) -> None:
    """Learn the weights of all fields from clusters known to be right.

    Prints how well a model that saw four fifths of the clusters resolves the others; the model
    written saw all of them.
    """
    from stream.cli.printing import print_json, show
    from stream.config import load_config
    from stream.run import PROFILED_RECORDS, with_fields
    from stream.sources import open_source
    from stream.training import read_records
    from stream.training import train as fit
    from stream.truth import read_truth

    settings = load_config(config)
    source = open_source(records, settings.source, format=format_)
    read = read_records(source)
    settings = with_fields(settings, None, list(read.values())[:PROFILED_RECORDS])
    result = fit(settings, read, read_truth(truth, read))
    from state.files import write_atomically

    write_atomically(model, result.model.to_bytes())
    if output is not Output.table:
        report = None if result.held_out is None else result.held_out.as_json()
        facts = {
            "model": str(model),
            "records": result.records,
            "labelled": result.labelled,
            "clusters": result.clusters,
            "held_out": report,
        }
        print_json(facts, indent=output is Output.json)
        return
    if result.held_out is None:
        typer.echo("too few clusters to hold some out and measure on them", err=True)
    else:
        show(result.held_out.as_table())
    typer.echo(
        f"wrote {model}, trained on {result.labelled:,} of {result.records:,} records in "
        f"{result.clusters:,} clusters; set matching.model_file to it"
    )
