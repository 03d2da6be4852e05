"""The HTTP routes of docs/http_api.md. Each is thin: find the run, call the tool, encode."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from werkzeug.wrappers import Request

from tb_tpuprof import __version__, encode
from tb_tpuprof.encode.gzip import FAST
from tb_tpuprof.encode.json import dumps
from tb_tpuprof.errors import BadParameter, ProfilerError, StorageError
from tb_tpuprof.ingest.storage.run_info import HLO, OK, RunInfo
from tb_tpuprof.serve.capture_routes import CaptureRoutes
from tb_tpuprof.serve.hosts import HostRules
from tb_tpuprof.serve.logdirs import Logdirs
from tb_tpuprof.serve.respond import Body, error_object, fingerprint, wsgi
from tb_tpuprof.serve.rules import CaptureRules
from tb_tpuprof.session import Session, SessionStore
from tb_tpuprof.session.memory import Memory
from tb_tpuprof.settings import source_folders, source_links
from tb_tpuprof.tools import all_tools, get_tool
from tb_tpuprof.tools.base import Availability, Param
from tb_tpuprof.tools.payload import Payload
from tb_tpuprof.tools.run_card import RunCard, run_card
from tb_tpuprof.tools.tool import Tool
from tb_tpuprof.tools.verdicts import is_diagnosed

STATIC = Path(__file__).parent / "static"
_OWN_ARGUMENTS = ("run", "hosts", "format", "table", "v", "diagnosis")
_ASSET_NAME = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+")
_YEAR_SECONDS = 31_536_000
_CARD_BYTES = 64 * 2**20  # memory for the outlines that one card reads


class Routes:
    """Routes over the runs of some logdirs."""

    def __init__(
        self,
        logdirs: Logdirs,
        plugin_name: str,
        rules: CaptureRules | None = None,
        executor: str = "",
        hosts: HostRules | None = None,
    ) -> None:
        self.logdirs = logdirs
        self.hosts = hosts or HostRules()
        self.capture = CaptureRoutes(logdirs, rules or CaptureRules(), self.hosts)
        self.plugin_name = plugin_name
        self.sessions = SessionStore(executor=executor)

    def apps(self) -> dict[str, Callable[..., object]]:
        """WSGI applications by route. All but the page's own files check the server's name."""
        checked = partial(wsgi, check=self.hosts.check)
        apps = {
            "/runs": checked(self.runs),
            "/tools": checked(self.tools),
            "/badges": checked(self.badges),
            "/card": checked(self.card),
            "/progress": checked(self.progress),
        }
        for tool in all_tools():
            for question in ("", *(named.name for named in tool.questions)):
                route = f"/data/{tool.name}/{question}".rstrip("/")
                apps[route] = checked(partial(self.data, tool, question))
        apps["/data/*"] = checked(self.unknown_tool)
        apps |= {f"/{name}": wsgi(static(name)) for name in ("index.js", "index.html", "style.css")}
        return apps | {"/assets/*": wsgi(asset)} | self.capture.apps()

    def runs(self, _request: Request) -> Body:
        """All runs below the logdirs, and the tools, which the menu lists before a run is read."""
        runs = [_run_object(run) for run in self.logdirs.runs()]
        tools = [_listed_tool(tool) for tool in all_tools() if not tool.only_for]
        links = source_links()
        sources = {
            "links": [{"prefix": rule.prefix, "address": rule.target} for rule in links.rules],
            "problems": [*links.problems, *source_folders().problems],
        }
        answer = {"plugin": self.plugin_name, "version": __version__, "runs": runs, "tools": tools}
        return _json({**answer, "sources": sources})

    def tools(self, request: Request) -> Body:
        """The run's hosts, and each tool with whether it has something to show."""
        session = self._session(request)
        files = session.info.files if session.info.has_hosts else ()
        tools, failure = _tool_objects(session)
        failed = session.known_failures(file.host for file in files)
        hosts = [
            {
                "host": file.host,
                "size_bytes": file.size_bytes,
                "failure": failed[file.host].message if file.host in failed else "",
            }
            for file in files
        ]
        info = session.info
        return _json(
            {
                "run": session.run,
                "state": info.state,
                "message": info.message,
                "hosts": hosts,
                "tools": tools,
                "failure": error_object(failure) if failure else None,
            }
        )

    def badges(self, request: Request) -> Body:
        """What the menu shows next to tools, as far as it is known: reads nothing."""
        session = self._session(request)
        badges = {tool.name: text for tool in all_tools() if (text := _badge(tool, session))}
        return _json({"run": session.run, "badges": badges})

    def card(self, request: Request) -> Body:
        """Device, framework and damaged hosts of a run, without reading large files. A list asks for many
        runs, so the sessions in use are left alone.
        """
        run = self.logdirs.run(self._run_name(request))
        if run.state not in (OK, HLO):  # saved pages name no device as a trace does
            return _json({"run": run.name, **asdict(RunCard())})
        session = Session(run.path, name=run.name, memory=Memory(_CARD_BYTES))
        return _json({"run": run.name, **asdict(run_card(session))})

    def progress(self, request: Request) -> Body:
        """Read progress of a run that other requests wait for."""
        progress = self.sessions.progress(request.args.get("run", ""))
        return _json({"reading": asdict(progress) if progress else None})

    def unknown_tool(self, request: Request) -> Body:
        """Every other path below /data."""
        _, _, path = request.path.rpartition("/data/")
        name, _, question = path.partition("/")
        get_tool(name).question(question)
        raise StorageError("There is no such page.", "Reload the page.")

    def data(self, tool: Tool, question: str, request: Request) -> Body:
        """A tool's answer in the requested format; nothing is computed for a client that has it already."""
        session = self._session(request)
        form = request.args.get("format", "json")
        hosts = split_hosts(request.args.get("hosts", ""), session.hosts)
        params = {name: value for name, value in request.args.items() if name not in _OWN_ARGUMENTS}
        waits = _waits(request)
        tag = self._tag(tool, question, session, hosts, request)
        files = {} if question else {kind.format: kind.content_type for kind in tool.files}
        forms = ("json", "columns", "csv", *files)
        if form not in forms:
            raise BadParameter("format", form, f"{', '.join(forms[:-1])} or {forms[-1]}")
        if request.if_none_match.contains(tag):
            return Body(b"", "application/json", tag)
        if form in files:
            name, parts = tool.file(session, hosts, params, form)
            return Body(b"".join(parts), files[form], tag, name)
        payload = tool.run(session, hosts, params, question, waits)
        return _encoded(payload, form, request.args.get("table", ""), tag)

    def _tag(self, tool: Tool, question: str, session: Session, hosts: list[str], request: Request) -> str:
        """Identifies the answer. Where the diagnosis may come later, the tag also depends on whether it is
        there.
        """
        query = request.query_string.decode("latin-1")
        knows = bool(question) or _waits(request) or is_diagnosed(tool.name, session, hosts or session.hosts)
        return fingerprint(
            __version__, tool.name, question, query, session.run, session.fingerprint(), str(knows)
        )

    def _session(self, request: Request) -> Session:
        return self.sessions.open(self.logdirs.run(self._run_name(request)))

    def _run_name(self, request: Request) -> str:
        name: str = request.args.get("run", "")
        if not name:
            raise BadParameter("run", name, "the name of a run, as /runs lists them")
        return name


def split_hosts(text: str, known_hosts: Sequence[str]) -> list[str]:
    """The hosts of a list separated by commas, which may also occur in a host's name: the longest name that
    the run has wins.
    """
    pieces = [piece for piece in text.split(",") if piece]
    with_comma = {host for host in known_hosts if "," in host}
    most = max((host.count(",") + 1 for host in with_comma), default=1)
    hosts = []
    while pieces:
        lengths = range(min(most, len(pieces)), 1, -1)
        n = next((n for n in lengths if ",".join(pieces[:n]) in with_comma), 1)
        hosts.append(",".join(pieces[:n]))
        pieces = pieces[n:]
    return hosts


def _waits(request: Request) -> bool:
    """Whether the answer waits for the diagnosis of what limits the job: `diagnosis=wait`."""
    chosen: str = request.args.get("diagnosis", "known")
    if chosen not in ("known", "wait"):
        raise BadParameter("diagnosis", chosen, "known or wait")
    return chosen == "wait"


def static(name: str) -> Callable[[Request], Body]:
    """A file of the bundle that has a fixed name, revalidated on each page load."""
    return lambda _request: _file(STATIC / name, 0)


def asset(request: Request) -> Body:
    """A file of the bundle whose name holds a hash of its content: a browser may keep it."""
    name = request.path.rsplit("/", 1)[-1]
    if not _ASSET_NAME.fullmatch(name):
        raise StorageError(f"There is no file {name[:80]!r}.", "Reload the page.")
    return _file(STATIC / "assets" / name, _YEAR_SECONDS)


def _file(path: Path, max_age: int) -> Body:
    if not path.is_file():
        is_built = (STATIC / "index.js").is_file()
        remedy = (
            "Reload the page."
            if is_built
            else "The frontend was not built: run make build, then restart TensorBoard."
        )
        raise StorageError(f"There is no file {path.name!r}.", remedy)
    kind = (
        "text/javascript"
        if path.suffix == ".js"
        else mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    )
    return Body(path.read_bytes(), kind, max_age=max_age)


def _encoded(payload: Payload, form: str, table: str, tag: str) -> Body:
    if form == "columns":
        return Body(encode.encode_columns(payload), "application/x-tpuprof-columns", tag, gzip_level=FAST)
    if form == "csv":
        return Body(
            encode.encode_csv(payload, table),
            "text/csv",
            tag,
            f"{payload.tool}_{_file_name(payload.run)}.csv",
        )
    return Body(encode.encode_json(payload), "application/json", tag)


def _file_name(run: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", run)


def _json(value: object) -> Body:
    return Body(dumps(value), "application/json")


def _run_object(run: RunInfo) -> dict[str, object]:
    return {
        "run": run.name,
        "captured_at": run.captured_at,
        "n_hosts": len(run.files) if run.has_hosts else 0,
        "size_bytes": sum(file.size_bytes for file in run.files),
        "state": run.state,
        "message": run.message,
    }


def _listed_tool(tool: Tool) -> dict[str, object]:
    return {"name": tool.name, "title": tool.title, "group": tool.group, "summary": tool.summary}


def _badge(tool: Tool, session: Session) -> str:
    try:
        return tool.badge(session) if session.hosts else ""
    except ProfilerError:
        return ""  # the page says what is wrong


def _tool_objects(session: Session) -> tuple[list[dict[str, object]], ProfilerError | None]:
    """All tools, and the error because of which the run cannot be read: it is reported once, not by each of
    them.
    """
    tools: list[dict[str, object]] = []
    failure: ProfilerError | None = None
    for tool in all_tools():
        if tool.only_for and session.info.state != tool.only_for:
            continue
        availability = Availability(
            "the run holds no trace that can be opened.", session.info.message, "no trace"
        )
        if session.hosts:
            try:
                availability = tool.availability(session)
            except ProfilerError as error:
                failure = failure or error
                availability = Availability(
                    "the run's files cannot be read.", "The page says why.", "unreadable"
                )
        tools.append(_tool_object(tool, availability))
    return tools, failure


def _tool_object(tool: Tool, availability: Availability) -> dict[str, object]:
    return {
        **_listed_tool(tool),
        "hosts": tool.hosts,
        "available": bool(availability),
        "reason": availability.reason,
        "remedy": availability.remedy,
        "short_reason": availability.short,
        "params": [_param_object(param) for param in tool.params],
    }


def _param_object(param: Param) -> dict[str, object]:
    return {
        "name": param.name,
        "title": param.title,
        "kind": param.kind,
        "default": param.default,
        "choices": list(param.choices),
        "help": param.help,
    }
