"""Finished pages of older profilers, written by hand: three steps, operations and cores that differ."""

from __future__ import annotations

import gzip
import json
from typing import Any

from tests.ingest.messages import written


def data_table(columns: list[str], rows: list[list[Any]], **properties: str) -> dict[str, Any]:
    """A table as google.visualization.DataTable has it."""
    return {
        "cols": [{"id": name, "label": name, "type": "string"} for name in columns],
        "rows": [{"c": [{"v": value} for value in row]} for row in rows],
        "p": properties,
    }


STEP_TABLE = data_table(
    ["stepnum", "computeTimeMs", "inputTimeMs", "idleTimeMs", "tooltip", "infeedPercentAverage"],
    [["7", 10.5, 2.0, 0.5, "a", 15.25], ["8", 12.0, 1.0, 0.25, "b", 7.5], ["9", 30.0, 40.0, 0, "c", 57.0]],
    steptime_ms_average="32.1",
    hardware_type="TPU",
    summary_conclusion="Your program is <b>HIGHLY</b> input-bound.",
)
OVERVIEW_JSON = json.dumps(
    [
        data_table(
            ["selfTimePercent", "cumulativeTimePercent", "category", "operation", "flopRate"],
            [
                [0.5, 0.5, "Conv2D", "a/Conv2D", 1797.5],
                [0.25, 0.75, "Relu", "a/Relu", 0],
                [0.125, 0.875, "Add", "b/Add", 12],
            ],
            mxu_utilization_percent="48.8%",
            remark_color="red",
            roofline_tool_link="/x",
        ),
        STEP_TABLE,
        data_table(["host_id"], [], device_type="TPU v2", batch_size="1024"),
        data_table(
            ["tip_type", "link"], [["host", 'See <a href="https://x">the guide</a>'], ["doc", "Read"]]
        ),
        {"cols": [], "rows": []},
        None,
    ]
).encode()
INPUT_JSON = json.dumps(
    [
        STEP_TABLE,
        data_table(
            ["opName", "count", "timeInMs", "timeInPercent", "selfTimeInMs", "selfTimeInPercent", "category"],
            [
                ["Iterator::Map", 20, 2943.5, 0.75, 43.5, 0.25, "Preprocessing"],
                ["Iterator::Batch", 5, 100.0, 0.2, 90.0, 0.5, "Enqueue"],
            ],
            enqueue_us="12.5",
        ),
    ]
).encode()


def core(chip: int, **times: Any) -> dict[str, Any]:
    return {"chipId": chip, "nodeId": 1, "hostName": "w1", "stepNum": 5, "bottleneck": "Infeed", **times}


POD_JSON = json.dumps(
    {
        "podStatsSequence": {
            "podStatsMap": [
                {
                    "stepNum": 5,
                    "podStatsPerCore": {
                        "0": core(
                            0, totalDurationUs=100.5, highFlopsComputeUs=60, hostInfeedDurationUs=30.25
                        ),
                        "3": core(1, totalDurationUs=110, highFlopsComputeUs=70, crsDurationUs=8),
                        "4": core(2, totalDurationUs=90, sendDurationUs=1, recvDurationUs=2),
                    },
                    "coreIdToReplicaIdMap": {"0": 2, "3": 1, "4": 0},
                    "allReduceOpDb": [
                        {"name": "all-reduce.1", "occurrences": 8, "durationUs": 34.5, "dataSize": "2654208"},
                        {"name": "all-reduce.2", "occurrences": 4, "durationUs": 1, "dataSize": "16"},
                    ],
                    "channelDb": [
                        {
                            "channelId": "16436",
                            "srcCoreId": 14,
                            "dstCoreId": 7,
                            "dataSize": "2764800",
                            "durationUs": 34.5,
                            "occurrences": 1,
                            "hloNames": ["send.42", "recv.43"],
                        },
                        {"channelId": "9", "srcCoreIds": [1, 2], "dstCoreIds": [3], "durationUs": 2},
                    ],
                },
                {"stepNum": 6, "podStatsPerCore": {"0": core(0, stepNum=6, totalDurationUs=7)}},
            ]
        },
        "runEnvironment": {"tpuType": "TPU v3", "topology": {"xDimension": "4"}},
    }
).encode()


def node(name: str, time: float, *children: Any, **xla: str) -> dict[str, Any]:
    return {
        "name": name,
        "metrics": {"time": time, "flops": time / 2},
        "children": list(children),
        **({"xla": xla} if xla else {}),
    }


OP_PROFILE_JSON = json.dumps(
    {
        "byCategory": node(
            "whole",
            0.8,
            node("fusion", 0.6, node("%fusion.1", 0.4, category="fusion", provenance="a/Conv2D")),
            node("copy", 0.2),
        ),
        "deviceType": "TPU v3",
    }
).encode()
MEMORY_JSON = json.dumps(
    {
        "memoryProfilePerAllocator": {
            "GPU_0_bfc": {
                "profileSummary": {
                    "peakBytesUsageLifetime": "5000",
                    "peakStats": {
                        "peakBytesInUse": "4000",
                        "heapAllocatedBytes": "3000",
                        "fragmentation": 0.25,
                    },
                    "peakStatsTimePs": "77",
                    "memoryCapacity": "9000",
                },
                "memoryProfileSnapshots": [
                    {"activityMetadata": {"tfOpName": "early", "allocationBytes": "1"}},
                    {
                        "activityMetadata": {
                            "tfOpName": "a/Conv2D",
                            "allocationBytes": "2048",
                            "requestedBytes": "2000",
                            "dataType": "float",
                            "tensorShape": "[2,3]",
                        }
                    },
                ],
                "activeAllocations": [
                    {"snapshotIndex": "1", "numOccurrences": "3"},
                    {"snapshotIndex": "-1", "specialIndex": "0", "numOccurrences": "1"},
                    {"snapshotIndex": "2"},
                ],
                "specialAllocations": [
                    {"tfOpName": "unused preallocated device memory", "allocationBytes": "900"}
                ],
            },
            "cpu": {"profileSummary": {"peakStats": {"peakBytesInUse": "10"}}},
        }
    }
).encode()


def any_of(name: str, message: bytes) -> bytes:
    return written((1, f"type.googleapis.com/tensorflow.profiler.{name}"), (2, message))


STEPS = [
    any_of(
        "PerGenericStepDetails", written((2, 1106.5), (3, 6.5), (6, 196.0), (8, 3.5), (9, 2.5), (11, 898.0))
    ),
    any_of("PerGenericStepDetails", written((1, 1), (3, 1.5), (6, 95.0), (11, 3.5), (12, 0.25))),
    any_of("PerGenericStepDetails", written((1, 2), (6, 50.0))),
]
INPUT_PB = written(
    *((4, step) for step in STEPS),
    (5, written((2, 3201.5), (3, 203.0))),
    (
        6,
        written(
            (1, "Iterator::Map"),
            (2, 80),
            (3, 892.25),
            (4, 43.25),
            (5, 800.0),
            (6, 40.0),
            (7, "Preprocessing"),
        ),
    ),
    (6, written((1, "Iterator::Batch"), (2, 3), (3, 1.5), (4, 1.0))),
    (
        7,
        written(
            (1, 'tune <a href="https://x">prefetch</a>'),
            (
                2,
                any_of(
                    "BottleneckAnalysis", written((1, "host"), (2, "HIGHLY input-bound"), (3, "no"), (4, ""))
                ),
            ),
            (3, "Look at Section 3"),
        ),
    ),
    (9, "GPU"),
)
OVERVIEW_PB = written(
    (2, INPUT_PB),
    (
        3,
        written(
            (4, written((1, "a/Conv2D"), (2, "Conv2D"), (3, 0.5), (4, 0.5), (5, 7.5))),
            (4, written((1, "a/Relu"), (2, "Relu"), (3, 0.25), (4, 0.75))),
            (10, 100.0),
        ),
    ),
    (4, written((1, "host"), (2, "HIGHLY input-bound"), (3, written((1, "use the trace viewer"))))),
    (6, written((1, 2), (4, "Nvidia GPU"), (5, 8))),
)
STATS_PB = written(
    (
        4,
        written(
            (
                1,
                written(
                    (1, 1), (2, "Device"), (3, "IDLE"), (4, "IDLE"), (5, 1), (6, 9223372036854.775), (8, 5.0)
                ),
            ),
            (
                1,
                written(
                    (2, "Device"),
                    (3, "Conv2D"),
                    (4, "a/Conv2D"),
                    (5, 32),
                    (6, 256.5),
                    (8, 200.25),
                    (10, 0.75),
                    (14, 1797.5),
                    (15, 281.5),
                    (16, 6.5),
                    (17, "Memory"),
                ),
            ),
            (
                1,
                written(
                    (2, "Host"), (3, "Dataset"), (4, "Iterator"), (5, 3), (6, 279.5), (8, 168.5), (12, 0.5)
                ),
            ),
        ),
    ),
    (5, written((1, written((4, "without idle"))))),
    (6, "GPU"),
)
KERNELS_PB = written(
    (
        1,
        written(
            (1, "sgemm"),
            (2, 64),
            (3, 1024),
            (5, bytes([32, 4, 1])),
            (6, bytes([8, 1, 1])),
            (7, 5000),
            (8, 900),
            (9, 2100),
            (12, "a/MatMul"),
            (13, 3),
        ),
    ),
    (1, written((1, "copy"), (7, 10), (8, 10), (9, 10), (13, 1), (4, 2048))),
)
PAGES = {
    "h.overview_page.json": OVERVIEW_JSON,
    "h.input_pipeline.json": INPUT_JSON,
    "h.pod_viewer.json": POD_JSON,
    "h.op_profile.json": OP_PROFILE_JSON,
    "h.memory_profile.json.gz": gzip.compress(MEMORY_JSON),
    "h.overview_page.pb": OVERVIEW_PB,
    "h.input_pipeline.pb": INPUT_PB,
    "h.tensorflow_stats.pb": STATS_PB,
    "h.kernel_stats.pb": KERNELS_PB,
}
