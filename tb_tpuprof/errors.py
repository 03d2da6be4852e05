"""The exception tree: what went wrong, where, and what the user can do about it.

    ProfilerError ─┬─ TraceFormatError   a file is damaged                         422   3
                   │  └─ NotATrace       a file is intact, but not a trace         422   3
                   ├─ HostsUnreadable    no requested host is readable             as the first error
                   ├─ RunNotFound        no such run below the logdir              404   4
                   ├─ LogDirectory       a folder with runs below it, not a run    404   4
                   ├─ HostNotFound       the run has no such host                  404   4
                   ├─ ToolNotFound       no tool of that name                      404   4
                   ├─ EventNotFound      no event or track of that id              404   4
                   ├─ ToolUnavailable    the run lacks the data the tool needs     409   5
                   ├─ BadParameter       a parameter's value is not allowed        400   2
                   ├─ BadQuery           a query of events cannot be read          400   2
                   ├─ TooLarge           the response would exceed a limit         413   2
                   ├─ StorageError       a file or folder cannot be reached        404   4
                   ├─ ExecutorFailed     processes or cluster gone                 502   1
                   ├─ TpuLookupFailed    a TPU's name cannot be resolved           409   6
                   ├─ CaptureFailed      a profiled process returned no profile    502   6
                   ├─ CaptureBusy        another capture is running                409   6
                   ├─ CaptureNotFound    no capture or monitor of that id          404   4
                   └─ Forbidden          the server's owner does not allow it      403   7

The first number is the HTTP status, the second the command line's exit code. Errors are raised where the
problem is detected and translated once in `serve/respond.py` and once in `cli/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ProfilerError(Exception):
    """Base of all expected failures: `kind` is a stable identifier for programs, `message` and `remedy` are
    for people.
    """

    kind = "profiler_error"
    http_status = 500
    exit_code = 1
    details = ""  # for looking into it: a file's whole path, the position in it
    parameter = ""  # the invalid field of a request, if that is the problem
    host = ""  # the host whose file cannot be read, if that is the problem

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __reduce__(self) -> tuple[Any, ...]:
        """Makes errors picklable regardless of their constructors' parameters."""
        return _restored, (type(self), self.args, self.__dict__)


def _restored(
    kind: type[ProfilerError], args: tuple[object, ...], attributes: dict[str, object]
) -> ProfilerError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(attributes)
    return error


class TraceFormatError(ProfilerError):
    """A trace file that cannot be decoded; `offset` is the byte at which reading failed, or -1.

    `what` completes "NAME …". The message has only the file's name, `details` its path and the byte.
    """

    kind = "trace_format"
    http_status = 422
    exit_code = 3

    def __init__(self, path: str, offset: int, what: str, remedy: str = "") -> None:
        super().__init__(
            f"{_file_name(path)} {what}.",
            remedy or "Capture the profile again, or copy the file again if it was cut off in transfer.",
        )
        self.details = path + (f", byte {offset:,}" if offset >= 0 else "")
        self.path = path
        self.offset = offset
        self.what = what


def _file_name(path: str) -> str:
    """The last part of a path or URL."""
    return path.replace("\\", "/").rpartition("/")[2] or path


class NotATrace(TraceFormatError):
    """A file of another kind; `what` completes "NAME is …". The message has only the file's name: a server's
    paths are private.
    """

    kind = "not_a_trace"

    def __init__(self, path: str, what: str, remedy: str) -> None:
        ProfilerError.__init__(self, f"{_file_name(path)} is {what}.", remedy)
        self.path = path
        self.offset = -1
        self.what = what


class HostsUnreadable(ProfilerError):
    """Files of hosts that cannot be read, by host; status and exit code are those of the first error. Callers
    that can work without these hosts catch it.
    """

    _LISTED = 20

    def __init__(self, failures: Mapping[str, ProfilerError]) -> None:
        first = next(iter(failures.values()))
        count = f"None of the {len(failures):,} hosts can be read. " if len(failures) > 1 else ""
        super().__init__(count + first.message, first.remedy)
        self.details = (
            first.details
            if len(failures) == 1
            else "\n".join(
                " ".join(filter(None, (error.message, error.details)))
                for error in list(failures.values())[: self._LISTED]
            )
        )
        self.failures = dict(failures)
        self.kind, self.http_status, self.exit_code = first.kind, first.http_status, first.exit_code


class RunNotFound(ProfilerError):
    """The requested run does not exist (anymore)."""

    kind = "run_not_found"
    http_status = 404
    exit_code = 4

    def __init__(self, run: str, why: str = "") -> None:
        super().__init__(
            f"There is no run {run!r}{': ' + why if why else ''}.", "Choose a run from the list."
        )


class LogDirectory(ProfilerError):
    """The requested run is a folder with runs below it; `runs` are their paths, newest first."""

    kind = "log_directory"
    http_status = 404
    exit_code = 4
    _SHOWN = 5

    def __init__(self, path: str, runs: list[str]) -> None:
        n = len(runs)
        listed = "".join(f"\n    {run}" for run in runs[: self._SHOWN]) + (
            f"\n    … and {n - self._SHOWN} more" if n > self._SHOWN else ""
        )
        super().__init__(
            f"{path} is a log directory, not a run.",
            f"Name the run below it:{listed}"
            if n == 1
            else f"Name one of the {n} runs below it, newest first:{listed}",
        )
        self.runs = runs


class HostNotFound(ProfilerError):
    """The run has no trace of that host."""

    kind = "host_not_found"
    http_status = 404
    exit_code = 4

    def __init__(self, host: str, hosts: list[str]) -> None:
        some = ", ".join(hosts[:8]) + (" …" if len(hosts) > 8 else "")
        super().__init__(
            f"The run has no host {host!r}.", f"Its hosts are: {some}." if hosts else "The run has no hosts."
        )


class ToolNotFound(ProfilerError):
    """No tool has that name."""

    kind = "tool_not_found"
    http_status = 404
    exit_code = 4

    def __init__(self, tool: str, tools: list[str]) -> None:
        super().__init__(f"There is no tool {tool!r}.", f"The tools are: {', '.join(tools)}.")


class EventNotFound(ProfilerError):
    """No event, track or other part of a trace has that id."""

    kind = "event_not_found"
    http_status = 404
    exit_code = 4


class ToolUnavailable(ProfilerError):
    """The run lacks the data that the tool needs."""

    kind = "tool_unavailable"
    http_status = 409
    exit_code = 5

    def __init__(self, tool: str, reason: str, remedy: str) -> None:
        super().__init__(f"{tool} has nothing to show: {reason}", remedy)
        self.tool = tool
        self.reason = reason


class BadParameter(ProfilerError):
    """A parameter whose value is not allowed; `allowed` describes the allowed values."""

    kind = "bad_parameter"
    http_status = 400
    exit_code = 2

    def __init__(self, name: str, value: object, allowed: str) -> None:
        super().__init__(f"The parameter {name} cannot be {str(value)[:80]!r}.", f"Allowed: {allowed}.")
        self.parameter = name


class BadQuery(ProfilerError):
    """A query that cannot be read or answered; `position` is the index of the character where."""

    kind = "bad_query"
    http_status = 400
    exit_code = 2
    parameter = "query"
    _SHOWN = 24

    def __init__(self, query: str, position: int, reason: str, remedy: str) -> None:
        rest = query[position : position + self._SHOWN]
        place = f"at character {position + 1}, {rest!r}" if rest.strip() else "at its end"
        super().__init__(f"The query cannot be read {place}: {reason}.", remedy)
        self.position = position


class TooLarge(ProfilerError):
    """The response would exceed a limit."""

    kind = "too_large"
    http_status = 413
    exit_code = 2


class StorageError(ProfilerError):
    """A file or folder that cannot be reached or read."""

    kind = "storage"
    http_status = 404
    exit_code = 4


class ExecutorFailed(ProfilerError):
    """The processes or the cluster for the analyses cannot be reached, or died."""

    kind = "executor"
    http_status = 502
    exit_code = 1


class TpuLookupFailed(ProfilerError):
    """The Cloud TPU API does not return the addresses of a TPU's workers: no such TPU, not ready, no
    permission, no credentials.
    """

    kind = "tpu_lookup"
    http_status = 409
    exit_code = 6


class CaptureFailed(ProfilerError):
    """A profiled process that returned no profile. `reason` is one word for programs, such as refused,
    deadline or unimplemented.
    """

    kind = "capture_failed"
    http_status = 502
    exit_code = 6

    def __init__(self, target: str, reason: str, message: str, remedy: str = "") -> None:
        super().__init__(message, remedy)
        self.target = target
        self.reason = reason


class CaptureBusy(ProfilerError):
    """A capture cannot start because another one is running."""

    kind = "capture_busy"
    http_status = 409
    exit_code = 6


class CaptureNotFound(ProfilerError):
    """No capture or monitor has that id."""

    kind = "capture_not_found"
    http_status = 404
    exit_code = 4


class Forbidden(ProfilerError):
    """An action that the server's owner does not allow, or a request that did not come from the plugin's own
    page.
    """

    kind = "forbidden"
    http_status = 403
    exit_code = 7

    def __init__(self, message: str, remedy: str = "", parameter: str = "") -> None:
        super().__init__(message, remedy)
        self.parameter = parameter
