"""The command line. Everything heavy is imported inside the commands, so that help stays quick."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

import floorkit
from floorkit.core.cache_commands import cache
from floorkit.core.compare_commands import compare, history
from floorkit.core.errors import FloorkitError, ManifestError, Problem
from floorkit.formats.convert_commands import convert
from floorkit.formats.reviews_commands import reviews
from floorkit.getting_started import COMMANDS as GETTING_STARTED
from floorkit.reports.commands import export_command, timelines_command

INTERRUPTED = 130

MANIFEST = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)


class Cli(click.Group):
    """Core commands, and those of the installed plugins, which are looked up only when needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *_plugin_commands()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, cmd_name) or _plugin_commands().get(cmd_name)


def _plugin_commands() -> dict[str, click.Command]:
    """Commands of every plugin that loads; one that does not is told by ``floorkit plugins``."""
    from floorkit.core import registry

    commands: dict[str, click.Command] = {}
    for plugin in registry.discover():
        loaded = registry.load(plugin)
        if isinstance(loaded, registry.Failed):
            continue
        for command in registry.commands(loaded)[0]:
            commands.setdefault(str(command.name), command)
    return commands


@click.group(cls=Cli, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(floorkit.__version__, prog_name="floorkit")
def cli() -> None:
    """Score saved predictions under frozen benchmark protocols.

    \b
    Examples:
      floorkit run protocols.toml
      floorkit check protocols.toml
      floorkit plugins
    """


def _manifest_options(command: Any) -> Any:
    for decorator in reversed(
        [
            click.argument("manifest", type=MANIFEST),
            click.option("--only", multiple=True, metavar="NAME", help="Only this entry (repeatable)."),
            click.option(
                "--set",
                "settings",
                multiple=True,
                metavar="KEY=VALUE",
                help="Change a value of the manifest, e.g. protocols.NAME.params.KEY=0.8 (repeatable).",
            ),
            click.option(
                "--jobs",
                type=click.IntRange(1),
                default=1,
                show_default=True,
                metavar="N",
                help="Worker processes.",
            ),
            click.option(
                "--executor",
                default="local",
                show_default=True,
                metavar="WHERE",
                help="Where units are computed: local, dask, dask://HOST:PORT or ray.",
            ),
            click.option("--rehash", is_flag=True, help="Hash every input file, remembered or not."),
            click.option("--frozen", is_flag=True, help="Require a recorded source hash for all code."),
            click.option(
                "--allow-source-drift",
                is_flag=True,
                help="Go on although code differs from its recorded hash; marks every output unverified.",
            ),
            click.option("--quiet", is_flag=True, help="Print errors only."),
            click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output."),
            click.option("--debug", is_flag=True, help="Show tracebacks."),
        ]
    ):
        command = decorator(command)
    return command


@cli.command()
@_manifest_options
@click.option("--fresh", is_flag=True, help="Take nothing from the cache: hash, check and score everything.")
@click.option("--explain-cache", is_flag=True, help="Say for each unit why it is reused or computed.")
@click.option("--output", type=FOLDER, help="Results folder [default: the manifest's, else results].")
def run(**options: Any) -> None:
    """Evaluate the entries of MANIFEST, print the report and write the results.

    \b
    Examples:
      floorkit run protocols.toml --jobs 4
      floorkit run protocols.toml --only demo --set protocols.demo.params.window=full
      floorkit run protocols.toml --explain-cache
      floorkit run protocols.toml --executor dask://head-node:8786
    """
    from floorkit.run import request_of, run_manifest

    run_manifest(request_of(options), sys.argv[1:])


@cli.command()
@_manifest_options
def check(**options: Any) -> None:
    """Check everything up to scoring (hashes, datasets, predictions, rules) and list every problem.

    \b
    Examples:
      floorkit check protocols.toml
      floorkit check protocols.toml --only demo --json
    """
    from floorkit.run import check_manifest, request_of

    check_manifest(request_of(options))


@cli.command()
@click.argument("manifest", type=MANIFEST)
def lock(manifest: Path) -> None:
    """Write version and source hash of the core and of every plugin into MANIFEST, in place.

    \b
    Example:
      floorkit lock protocols.toml
    """
    from floorkit.run import lock_manifest

    lock_manifest(manifest)


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
@click.option("--debug", is_flag=True, help="Show the tracebacks of plugins that fail to load.")
def plugins(as_json: bool, debug: bool) -> None:
    """List the installed plugins: version, source hash, location, protocols, hooks, load errors.

    \b
    Examples:
      floorkit plugins
      floorkit plugins --json
    """
    from floorkit.reports.plugins import print_plugins

    print_plugins(as_json, debug)


@cli.command()
@click.argument("results", type=FOLDER)
@click.option("--root", type=FOLDER, help="The manifest's folder, where it moved since the run.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def verify(results: Path, root: Path | None, as_json: bool) -> None:
    """Hash plugin sources and inputs again, compare with RESULTS, and say what changed.

    \b
    Examples:
      floorkit verify results
      floorkit verify results --root /data/study
    """
    from floorkit.run import verify_results

    verify_results(results, root, as_json)


for command in (
    cache,
    compare,
    history,
    export_command,
    timelines_command,
    convert,
    reviews,
    *GETTING_STARTED,
):
    cli.add_command(command)


def main(arguments: Sequence[str] | None = None) -> None:
    """The console script: runs a command and turns every error into one short block and an exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in arguments
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(
                errors="backslashreplace"
            )  # a terminal that cannot show a sign loses only that
    try:
        code = cli.main(args=arguments, prog_name="floorkit", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except click.exceptions.Abort:
        _interrupted()
    except KeyboardInterrupt:
        _interrupted()
    except click.ClickException as error:
        error.show()
        sys.exit(ManifestError.exit_code)
    except FloorkitError as error:
        if debug:
            import traceback

            traceback.print_exc()
        print_error(error)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        if debug:
            raise
        place = str(error.filename or "")
        print_error(FloorkitError(Problem("the system refused", place, error.strerror or str(error))))
        sys.exit(1)


def _interrupted() -> None:
    click.echo("floorkit: interrupted; earlier results are untouched", err=True)
    sys.exit(INTERRUPTED)


def print_error(error: FloorkitError) -> None:
    """One short block on standard error: what is wrong, and every problem."""
    click.echo(f"floorkit: {error.headline}", err=True)
    click.echo(str(error), err=True)


if __name__ == "__main__":
    main()
