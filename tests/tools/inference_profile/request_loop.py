"""Requests one after another, with kernels and calls at given times."""

from collections.abc import Mapping

from tb_tpuprof.trace.trace import Trace
from tests.builders import DrawnPlane, build, event


def loop(
    n: int, length: int, calls: Mapping[str, tuple[int, int]] | None = None, name: str = "predict"
) -> Trace:
    """Requests one after another, each with kernels and calls of unlike kinds at given times (start,
    length).
    """
    host, stream = [], []
    for i in range(n):
        start = 2 * length * i
        host.append(event(name, start, length, _r=1, step_num=i))
        for what, (begin, time) in (calls or {}).items():
            if what.startswith("k"):
                host.append(event("cudaLaunchKernel", start, 1, correlation_id=i + 1))
                stream.append(event(what, start + begin, time, correlation_id=i + 1))
            elif what.startswith("Memcpy"):
                stream.append(event(what, start + begin, time, correlation_id=i + 1))
            else:
                host.append(event(what, start + begin, time))
    host.sort(key=lambda one: (one.start_ps, -one.duration_ps))
    planes = [DrawnPlane("/host:CPU", {"main": host}), DrawnPlane("/device:GPU:0", {"stream": stream})]
    return build([plane for plane in planes if any(plane.lines.values())])


WAIT = {"cudaStreamSynchronize": (1, 97)}
