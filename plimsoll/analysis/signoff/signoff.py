"""`plimsoll signoff` writes a document to sign, and `plimsoll signoff verify` checks one."""

import json
import sys
from pathlib import Path
from typing import Any

import click

from plimsoll.analysis.page.verdict import DocumentFiles, document_options, text_lines
from plimsoll.common.commands import json_option, out_option, progress_option
from plimsoll.common.hostile import printable
from plimsoll.common.progress import is_shown, progress_bar

_PATH = click.Path(path_type=Path)
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


class _SignOff(click.Command):
    """Takes two sides; or the word `verify`, which is a command of its own."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if args[:1] == ["verify"]:
            return verify.make_context(f"{info_name} verify", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command(cls=_SignOff)
@click.argument("paths", metavar="BASELINE [CANDIDATE]", nargs=-1, required=True, type=_PATH)
@click.option("--baseline", metavar="NAME", help="Take the runs of this backend as the baseline.")
@click.option("--candidate", metavar="NAME", help="Take the runs of this backend as the candidate.")
@click.option("--gates", metavar="FILE", type=_FILE, required=True, help="The limits (docs/compare.md).")
@out_option("DIR", "Folder for the document; must not exist.", required=True)
@click.option(
    "--question", metavar="TEXT", help="What is to be decided. Default: whether the limits are kept."
)
@click.option("--signer", "signers", metavar="NAME", multiple=True, help="Who signs; may be given again.")
@click.option(
    "--key",
    metavar="FILE",
    type=_FILE,
    help="Sign with this key of ssh-keygen; of one in an agent, give the public key.",
)
@click.option(
    "--same",
    metavar="FOLDER",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The result of plimsoll same on the two sites: pages that differ exclude a PASS.",
)
@click.option(
    "--against-log",
    metavar="DIR",
    type=_PATH,
    help="Hold the replays against their log, which plimsoll import accesslog made DIR of.",
)
@document_options
@json_option
@progress_option
def signoff(
    junit_file: Path | None,
    markdown_file: Path | None,
    as_json: bool,
    progress: bool | None,
    **given: Any,
) -> None:
    """Write a document to sign: verdict, gates, evidence and its limits, sums of all raw data.

    \b
    Examples:
        plimsoll signoff results/two-servers-* --baseline old --candidate new \\
            --gates examples/gates.yml --out signed
        plimsoll signoff results/before results/after --gates examples/gates.yml \\
            --out moved --signer 'A. Bell' --same results/same/*
        plimsoll signoff verify signed

    Sides are given as to plimsoll compare, and judged as by it, but that their runs have to alternate in
    time. `plimsoll signoff verify DIR` checks such a document.

    Exit codes: 0 PASS; 1 FAIL; 2 wrong usage or unreadable input; 3 INCONCLUSIVE. The document is written
    with each verdict.
    """  # noqa: D301 \b is click's: keep these lines as they are
    from plimsoll.analysis.compare.page import comparison_document
    from plimsoll.analysis.signoff.document import SignOffOptions, write_signoff
    from plimsoll.analysis.signoff.seal import PAGE, PDF

    options = SignOffOptions(**given)
    if len(options.paths) > 2:
        raise click.UsageError("give two sides at most: BASELINE and CANDIDATE")
    files = DocumentFiles(junit_file, markdown_file)
    shown = is_shown(progress)
    made = write_signoff(options, lambda what, unit: progress_bar(what, unit, shown))
    document = comparison_document(made.found, "signoff")
    files.write(document)
    if made.without_pdf:
        click.echo(f"plimsoll signoff: without a PDF: {printable(made.without_pdf)}; print {PAGE}.", err=True)
    if as_json:
        click.echo(json.dumps(made.data, indent=2, allow_nan=False))
    else:
        click.echo("\n".join(text_lines(document)))
        click.echo("")
        click.echo(f"on every page: {made.sums_sha256}")
        for name in (PAGE, *([] if made.without_pdf else [PDF])):
            click.echo(f"document: {printable(str(options.out / name), 4096)}")
    sys.exit(made.found.exit_code)


@click.command()
@click.argument("directory", metavar="DIR", type=_PATH)
@click.option(
    "--allowed-signers",
    metavar="FILE",
    type=_PATH,
    help="Who may sign, as ssh-keygen reads it: one of them must have signed the manifest.",
)
@progress_option
def verify(directory: Path, allowed_signers: Path | None, progress: bool | None) -> None:
    """Check every file of a sign-off and of its raw data, and the signature.

    \b
    Examples:
        plimsoll signoff verify signed --allowed-signers ~/.ssh/allowed_signers

    It names each file that is missing, was added or changed.

    Exit codes: 0 all is as it was; 1 something was changed, or is signed by nobody allowed; 2 wrong usage, or
    there is no sign-off.
    """  # noqa: D301 \b is click's: keep these lines as they are
    from plimsoll.analysis.signoff.seal import verify_signoff

    with progress_bar("checking", "files", is_shown(progress)) as advance:
        found = verify_signoff(directory, allowed_signers, advance)
    for text in found.good:
        click.echo(f"good: {printable(text, 4096)}")
    for text in found.notes:
        click.echo(f"note: {printable(text, 4096)}")
    for text in found.problems:
        click.echo(f"WRONG: {printable(text, 4096)}")
    sys.exit(1 if found.problems else 0)
