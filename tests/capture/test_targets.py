"""What users type as targets, and the names of their files."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_tpuprof.capture.targets import Target, check_allowed, file_stems, parse_targets
from tb_tpuprof.errors import BadParameter, Forbidden

GOOD = {
    "localhost:6009": ["localhost:6009"],
    " grpc://a:1 , b:2,": ["a:1", "b:2"],
    "GRPC://Host.Internal:8466/": ["host.internal:8466"],
    "10.0.0.2:8466": ["10.0.0.2:8466"],
    "[::1]:1,[2001:db8:0:0::1]:65535": ["[::1]:1", "[2001:db8::1]:65535"],
    "worker_0:1": ["worker_0:1"],
}
BAD = [
    "",
    ",",
    "a",
    "a:",
    ":1",
    "a:0",
    "a:65536",
    "a:1x",
    "a b:1",
    "unix:/x:1",
    "http://a:1",
    "a:1,a:1",
    "::1:1",
    "[x]:1",
    "[::1",
    "a/b:1",
    "-:1",
    "a:１",
]


@pytest.mark.parametrize("text", GOOD)
def test_good_ones(text: str) -> None:
    assert [str(target) for target in parse_targets(text)] == GOOD[text]
    assert all(target.uri == f"dns:///{target}" for target in parse_targets(text))


@pytest.mark.parametrize("text", BAD)
def test_bad_ones(text: str) -> None:
    with pytest.raises(BadParameter, match="targets"):
        parse_targets(text)


def test_too_many() -> None:
    with pytest.raises(BadParameter, match="257"):
        parse_targets(",".join(f"h{i}:1" for i in range(257)))


@given(st.text(max_size=60))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        targets = parse_targets(text)
    except BadParameter:
        return
    assert parse_targets(",".join(map(str, targets))) == targets
    assert all(re.fullmatch(r"dns:///(\[[0-9a-f:.]+\]|[a-z0-9_.-]+):\d+", target.uri) for target in targets)


@given(
    st.lists(
        st.builds(
            Target, st.sampled_from(["a", "A.b", "::1", "::_1", "a_1", "..", "é/x"]), st.integers(1, 12)
        )
    )
)
def test_file_names_are_safe_and_unique(targets: list[Target]) -> None:
    stems = file_stems(targets)
    assert len({*stems}) == len(targets)
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", stem) for stem in stems)


def test_an_address_becomes_a_file_name() -> None:
    assert file_stems(parse_targets("localhost:6009,10.0.0.2:8466,[::1]:1")) == [
        "localhost_6009",
        "10.0.0.2_8466",
        "1_1",
    ]


def test_allowed_targets() -> None:
    targets = parse_targets("w0.internal:8466,localhost:6009")
    check_allowed(targets, ())
    check_allowed(targets, ("*.internal:8466", "LOCALHOST:*"))
    for patterns in (("*.internal:8466",), ("w?.internal:1", "localhost:6009"), ("localhost",)):
        with pytest.raises(Forbidden, match="does not allow"):
            check_allowed(targets, patterns)


@pytest.mark.parametrize(
    ("target", "pattern", "is_allowed"),
    [
        ("10.0.0.7:8466", "10.0.0.*:8466", True),
        ("10.0.1.7:8466", "10.0.0.*:8466", False),
        ("10.0.0.7:9012", "10.0.0.*:8466", False),
        ("10.0.0.evil.invalid:8466", "10.0.0.*:8466", False),
        ("10.0.0.1.evil.invalid:8466", "10.0.0.*:8466", False),
        ("[::1]:9012", "[::1]:9012", True),
        ("[::1]:9012", "[::2]:9012", False),
        ("[fd00::5]:9012", "[fd00::*]:*", True),
        ("[fe80::5]:9012", "[fd00::*]:*", False),
        ("1.invalid:9012", "[::1]:9012", False),
        ("a.b:1", "*", True),
        ("a.b:1", "a?b:1", True),
        ("axb:1", "a.b:1", False),
        ("a[1]b:1", "a[1]b:1", None),
    ],
)
def test_patterns_of_addresses_match_addresses_only(
    target: str, pattern: str, is_allowed: bool | None
) -> None:
    if is_allowed is None:  # such a name is no target at all
        with pytest.raises(BadParameter):
            parse_targets(target)
    elif is_allowed:
        assert check_allowed(parse_targets(target), [pattern])
    else:
        with pytest.raises(Forbidden):
            check_allowed(parse_targets(target), [pattern])


def test_the_address_that_was_checked_is_the_address_that_is_connected_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second lookup of the name gives another address, which must not be used."""
    answers = iter(["10.0.0.5", "169.254.169.254"])

    def lookup(*_: object, **__: object) -> list[tuple[object, ...]]:
        return [(2, 1, 6, "", (next(answers), 8466))]

    monkeypatch.setattr("tb_tpuprof.capture.targets.socket.getaddrinfo", lookup)
    (target,) = check_allowed(parse_targets("worker-1:8466"), ["10.0.0.*:8466"])
    assert (str(target), target.uri) == ("worker-1:8466", "dns:///10.0.0.5:8466")
    with pytest.raises(Forbidden):
        check_allowed(parse_targets("worker-1:8466"), ["10.0.0.*:8466"])
