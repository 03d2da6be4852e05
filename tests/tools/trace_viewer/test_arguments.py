"""Arguments of events as people read them: scaled, with units; breakdowns of memory accesses decoded."""

from __future__ import annotations

import pytest

from tb_tpuprof.tools.trace_viewer.argument_units import shown


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("flops", "1342177280", "1.34 GFLOP"),
        ("model_flops", "999", "999 FLOP"),
        ("flops", "999999", "1.00 MFLOP"),
        ("bytes_accessed", "3328599654", "3.10 GiB"),
        ("requested_bytes", "2048", "2.00 KiB"),
        ("flops", "1000000000000000", "1.00 PFLOP"),
        ("flops", "1200", "1.20 kFLOP"),
        ("flops", "2500000000000", "2.50 TFLOP"),
        ("flops", "0.5", "0.500 FLOP"),
        ("flops", "-1342177280", "-1.34 GFLOP"),
        ("Bytes", "1023", ""),
        ("Bytes", "1024", "1.00 KiB"),
        ("Bytes", "-2048", "-2.00 KiB"),
        ("delay_ms", "2.5", "2.50 ms"),
        ("Total Allocated", "1048576", "1.00 MiB"),
        ("device_offset_ps", "20675626726250", "20.7 s"),
        ("device_duration_ps", "0", ""),
        ("dma_stall_duration_ps", "1500000", "1.50 µs"),
        ("queued_ns", "-1500", "-1.50 µs"),
        ("duration_us", "2500", "2.50 ms"),
        ("slack_us", "0.5", "500 ns"),
        ("avg_wait (us)", "2500", "2.50 ms"),
        ("correlation_id", "123456", ""),
        ("flops", "many", ""),
        ("bytes_accessed", "nan", ""),
        ("is_ps", "yes", ""),
        ("address_bytes", "inf", ""),
        ("groups", "5000", ""),
        ("kilobytes_per_s", "5000", ""),
        ("s", "5", ""),
    ],
)
def test_values_get_the_units_of_their_names(name: str, value: str, text: str) -> None:
    assert shown(name, value) == text
