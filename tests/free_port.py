"""Prints the given port if it is free on this machine, else one that is."""

import socket
import sys


def free_port(wanted: int = 0) -> int:
    """`wanted` if nothing listens on it, else any free port."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("localhost", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError("no free port")


if __name__ == "__main__":
    print(free_port(int(sys.argv[1])))
