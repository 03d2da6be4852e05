"""`tpuprof query RUN_DIR QUERY`: the events of a run that match, or their totals by group, as text, CSV or
JSON.
"""

from __future__ import annotations

import argparse
import sys

from tb_tpuprof.analysis.query.grammar import FIELDS
from tb_tpuprof.cli.reading import reading
from tb_tpuprof.encode import encode_csv, encode_json
from tb_tpuprof.encode.text import printable, table_text
from tb_tpuprof.errors import BadParameter
from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tb_tpuprof.tools.payload import Column, Payload, Table
from tb_tpuprof.units import format_time

_SHOWN = ("host", "track_name", "name", "step", "start_ps", "duration_ps", "self_ps")
_EXAMPLE = "'dur>1ms name~^dot track:stream step:34..40 -name:copy'"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the subcommand."""
    fields = "\n".join(f"  {field.name:<9} {field.meaning}" for field in FIELDS)
    parser = subparsers.add_parser(
        "query",
        help="find events by name, duration, track, step or argument, and add up their times",
        description=f"Find events: tpuprof query RUN_DIR {_EXAMPLE}\n\nFields:\n{fields}\n\n"
        "Operators: ':' contains, '=' exactly, '~' regular expression, > >= < <=; '-' in front excludes.\n"
        "All conditions must hold; OR (or |) between them: one side is enough. What stands side by side\n"
        "binds closer; brackets group: 'dur>1ms (name:dot OR track:python)'.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "run_dir",
        metavar="RUN_DIR",
        help="folder with *.xplane.pb or *.trace.json files, or a single such file",
    )
    parser.add_argument("query", metavar="QUERY", nargs="?", default="", help="which events; default: all")
    parser.add_argument("--host", action="append", default=[], metavar="H", help="a host; may be repeated")
    parser.add_argument(
        "--group",
        default="",
        metavar="KEY",
        help="totals by name, track, step, … or arg.NAME instead of events",
    )
    parser.add_argument(
        "--sort",
        default="",
        metavar="KEY",
        help="start (default), dur, self (largest first), name, track, step or host",
    )
    parser.add_argument("--reverse", action="store_true", help="the other way round")
    parser.add_argument(
        "--limit", default="", metavar="N", help="number of rows; default: 40, with --csv 100000"
    )
    parser.add_argument("--args", default="", metavar="NAMES", help="arguments to show, separated by commas")
    parser.add_argument(
        "--derived", action="store_true", help="events of derived tracks instead of recorded ones"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="print CSV: exact numbers in ps")
    form.add_argument("--json", action="store_true", help="print the answer as over HTTP")
    parser.add_argument("--no-cache", action="store_true", help="do not use the caches on disk")
    parser.set_defaults(run_command=run_command, reads_traces=True)


def run_command(arguments: argparse.Namespace) -> str:
    """The answer, encoded. Raises BadQuery, BadParameter."""
    limit = arguments.limit or ("100000" if arguments.csv or arguments.json else "40")
    params = {"query": arguments.query, "limit": limit, "of": "derived" if arguments.derived else "auto"}
    if arguments.group:
        for option, value in (("--sort", arguments.sort), ("--args", arguments.args)):
            if value:
                raise BadParameter(option, value, "only without --group")
        params["by"] = arguments.group
    else:
        params |= {
            "sort": arguments.sort or "start",
            "descending": str((arguments.sort in ("dur", "self")) != arguments.reverse).lower(),
            "arguments": arguments.args,
        }
    session = Session(arguments.run_dir, cache=not arguments.no_cache)
    with reading(session, sys.stderr):
        question = "groups" if arguments.group else "slices"
        payload = get_tool("trace_viewer").run(session, arguments.host, params, question)
    if arguments.csv:
        return encode_csv(payload).decode()
    return (
        encode_json(payload).decode() + "\n"
        if arguments.json
        else printable(_text(payload, int(limit) if limit.isdecimal() else 0))
    )


def _text(payload: Payload, limit: int) -> str:
    """What was found in one line, then the table, and what it leaves out."""
    value = {name: scalar.value or 0 for name, scalar in payload.scalars.items()}
    is_grouped = "groups" in payload.tables
    n, n_rows = (
        int(value["n_events" if is_grouped else "n_matches"]),
        payload.tables["groups" if is_grouped else "slices"].n_rows,
    )
    kind = " on derived tracks" if value["is_derived"] else ""
    lines = [f"{n:,} {'event' if n == 1 else 'events'}{kind}, {format_time(value['total_ps'])} in total"]
    if value["n_derived"] and not value["is_derived"]:
        lines[0] += f"; {int(value['n_derived']):,} more on derived tracks (--derived)"
    if n_rows:
        lines += ["", table_text(_shown(payload, is_grouped), n_rows)]
    n_left = (int(value["n_groups"]) if is_grouped else n) - n_rows
    if n_left > 0:
        lines.append(f"… and {n_left:,} more (--limit, now {limit:,}; --csv)")
    lines += [f"{d.severity}: {d.message} {d.remedy}".rstrip() for d in payload.diagnostics]
    return "\n".join(lines) + "\n"


def _shown(payload: Payload, is_grouped: bool) -> Table:
    """The columns that people read: no ids, and no host if there is only one."""
    table = payload.tables["groups" if is_grouped else "slices"]

    def is_read(column: Column) -> bool:
        if is_grouped:
            return not column.name.startswith("longest")
        return column.name.startswith("argument") or (
            column.name in _SHOWN and (column.name != "host" or len(payload.hosts) > 1)
        )

    return Table(table.title, tuple(column for column in table.columns if is_read(column)), table.note)
