"""Opens the demo runs with the installed package, as a user would: `python wheel_smoke.py DEMO_LOGS`.
Builders of wheels run it.
"""

import sys
from importlib.metadata import entry_points, version
from pathlib import Path

import tb_tpuprof
from tb_tpuprof.encode import encode_json
from tb_tpuprof.native import IS_COMPILED
from tb_tpuprof.session import Session
from tb_tpuprof.tools import all_tools, get_tool


def main(demo_logs: str) -> None:
    """Load the plugin, check the bundle, make every tool's payload. Ends with a traceback where something is
    missing.
    """
    assert version("tb-tpuprof") == tb_tpuprof.__version__
    assert IS_COMPILED, "the inner loops are not compiled"
    (entry,) = entry_points(group="tensorboard_plugins", name="tb_tpuprof")
    entry.load()
    assert (Path(tb_tpuprof.__file__).parent / "serve" / "static" / "index.js").exists(), (
        "the frontend is not in the wheel"
    )
    assert not {"tensorflow", "xprof", "jax"} & set(sys.modules)
    for run_dir in {file.parent for file in Path(demo_logs).rglob("*.xplane.pb")}:
        session = Session(str(run_dir), cache=False)
        for tool in all_tools():
            if tool.available(session):
                print(run_dir.name, tool.name, len(encode_json(tool.run(session, None, {}))), "bytes")
        found = get_tool("trace_viewer").run(session, None, {"query": "name~.", "limit": "1"}, "slices")
        assert found.tables["slices"].n_rows == 1, "a regular expression finds nothing"
    print(tb_tpuprof.__file__)


if __name__ == "__main__":
    main(sys.argv[1])
