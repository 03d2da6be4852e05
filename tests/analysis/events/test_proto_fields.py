"""Small protobuf messages without descriptors, and the list of library files."""

from tb_tpuprof.analysis.events.library_files import library_files
from tb_tpuprof.analysis.events.metadata_names import metadata_names
from tb_tpuprof.analysis.events.proto_fields import number_field
from tests.builders import drawing
from tests.synthetic import field


def test_the_last_varint_of_a_field_counts() -> None:
    message = field(1, 5) + field(2, 300) + field(1, 7) + field(3, b"abc") + field(2, 0)
    assert [number_field(message, i) for i in (1, 2, 3, 4)] == [7, 0, 0, 0]
    assert number_field(b"", 1) == 0


def test_what_comes_before_a_malformed_byte_is_read() -> None:
    assert number_field(field(1, 9) + b"\xff", 1) == 9


def test_library_files_by_section() -> None:
    files = library_files()
    assert set(files) == {"framework", "library", "either", "common"}
    assert "pjit" in files["framework"]
    assert not any(
        "#" in word or "[" in word or word.endswith(".py") for words in files.values() for word in words
    )
    assert all(files.values())


def test_names_of_metadata_rows() -> None:
    trace = drawing("main  [b ][a ][b ]\nother  [c ]")
    assert metadata_names(trace) == ["b", "a", "c"]
