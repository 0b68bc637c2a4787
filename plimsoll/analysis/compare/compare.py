"""`plimsoll compare`: a verdict on every gate."""

import json
import sys
from pathlib import Path
from typing import Literal

import click

from plimsoll.analysis.page.verdict import DocumentFiles, document_options, text_lines
from plimsoll.common.commands import json_option, progress_option
from plimsoll.common.errors import OutputError
from plimsoll.common.progress import is_shown, progress_bar

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("paths", metavar="BASELINE [CANDIDATE]", nargs=-1, required=True, type=_PATH)
@click.option("--baseline", metavar="NAME", help="Take the runs of this backend as the baseline.")
@click.option("--candidate", metavar="NAME", help="Take the runs of this backend as the candidate.")
@click.option("--gates", metavar="FILE", type=_PATH, help="The limits (docs/compare.md). Default: see there.")
@click.option(
    "--time-zone",
    "zone",
    metavar="ZONE",
    help="Hours of the week of imported access logs, such as Europe/Berlin.  [default: UTC]",
)
@click.option(
    "--planned",
    metavar="N",
    type=int,
    help="Runs a side that were planned before the first look.  [default: the experiment's, else none]",
)
@click.option(
    "--looks",
    type=click.Choice(["end", "blocks"]),
    help="When the plan is looked at: at its end, or after each block.  [default: end]",
)
@click.option("--html", metavar="FILE", type=_PATH, help="Write the comparison as a page, too.")
@document_options
@json_option
@progress_option
def compare(
    paths: tuple[Path, ...],
    baseline: str | None,
    candidate: str | None,
    gates: Path | None,
    zone: str | None,
    planned: int | None,
    looks: Literal["end", "blocks"] | None,
    html: Path | None,
    junit_file: Path | None,
    markdown_file: Path | None,
    as_json: bool,
    progress: bool | None,
) -> None:
    """Say whether the candidate keeps its limits against the baseline.

    \b
    Examples:
        plimsoll compare results/two-servers-* --baseline old --candidate new
        plimsoll compare results/before results/after --gates examples/gates.yml --html comparison.html
        plimsoll compare results/before results/after --junit compare.xml --markdown compare.md
        plimsoll compare results/before results/after --planned 8
        plimsoll compare results/before results/after --json | jq .verdict

    Each is a run directory, a folder of them, or the folder of an experiment. With one only, --baseline and
    --candidate choose two of its backends. The run is what is counted, so each side takes four or more.
    Imported access logs are weeks before and weeks after: there the day is what is counted.

    Exit codes: 0 PASS; 1 FAIL; 2 wrong usage or unreadable input; 3 INCONCLUSIVE.
    """  # noqa: D301 \b is click's: keep these lines as they are
    from plimsoll.analysis.compare.comparison import compare as compare_sides
    from plimsoll.analysis.compare.gates import read_gates
    from plimsoll.analysis.compare.looks import Plan
    from plimsoll.analysis.compare.page import comparison_document, comparison_page
    from plimsoll.analysis.compare.weeks import compare_weeks, find_weeks
    from plimsoll.analysis.page.shell import write_page
    from plimsoll.analysis.statistics.standardised import UTC

    if looks is not None and planned is None:
        raise click.UsageError("--looks: belongs to --planned N, the runs a side that were planned")
    if len(paths) > 2:
        raise click.UsageError("give two sides at most: BASELINE and CANDIDATE")
    if html is not None and html.is_dir():
        raise OutputError(f"{html}: is a directory; give the name of a file with --html")
    files = DocumentFiles(junit_file, markdown_file)
    if gates is not None:
        read_gates(gates)  # a wrong one is reported before any run is read
    if (weeks := find_weeks(paths, baseline, candidate)) is not None:
        if any(each is not None for each in (gates, planned, html, junit_file, markdown_file)):
            raise click.UsageError(
                "imported access logs are compared without --gates, --planned, --html, --junit and --markdown"
            )
        with progress_bar("reading", "requests", is_shown(progress)) as advance:
            judged = compare_weeks(*weeks, advance, zone or UTC)
        click.echo(json.dumps(judged.as_json(), indent=2) if as_json else "\n".join(judged.lines()))
        sys.exit(judged.exit_code)
    if zone is not None:
        raise click.UsageError("--time-zone: belongs to imported access logs, and not all of the runs are")
    with progress_bar("reading", "requests", is_shown(progress)) as advance:
        plan = None if planned is None else Plan(planned, looks or "end")
        found = compare_sides(paths, baseline, candidate, gates, advance, plan)
    if html is not None:
        write_page(html, comparison_page(found), "--html")
    document = comparison_document(found, "compare")
    files.write(document)
    if as_json:
        click.echo(json.dumps(found.as_json(), indent=2, allow_nan=False))
    else:
        click.echo("\n".join(text_lines(document)))
    sys.exit(found.exit_code)
