"""Captures `products.pt.trace.json.gz` and `products.json`: a small program on the CPU, profiled with the
sizes of its inputs, and its FLOPs by `torch.utils.flop_counter`. `python capture_products.py OUT`, with
PyTorch 2.14.
"""

import gzip
import json
import sys
from pathlib import Path

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

OUT = Path(sys.argv[1])


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.strided = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.grouped = nn.Conv2d(8, 16, 3, groups=4, padding=2, dilation=2)
        self.transposed = nn.ConvTranspose2d(16, 6, 2, stride=2)
        self.wide, self.square = nn.Linear(6 * 32 * 32, 48), nn.Linear(48, 48)
        self.table, self.heads = nn.Embedding(100, 16), nn.Linear(16, 48)

    def forward(self, images, tokens):
        features = torch.relu(self.grouped(torch.relu(self.strided(images))))
        features = self.square(torch.relu(self.wide(self.transposed(features).flatten(1))))
        words = self.table(tokens)
        q, k, v = (part.unflatten(-1, (2, 8)).transpose(1, 2) for part in self.heads(words).chunk(3, -1))
        attended = nn.functional.scaled_dot_product_attention(q, k, v)
        turned = words.transpose(1, 2)
        scores = torch.baddbmm(torch.bmm(words, turned), words, turned)
        spread = torch.matmul(words.unsqueeze(1), torch.ones(5, 16, 7))
        return features.sum() + attended.sum() + scores.sum() + spread.sum()


torch.manual_seed(0)
network, images, tokens = Network(), torch.randn(4, 3, 32, 32), torch.randint(0, 100, (4, 11))
network(images, tokens).backward()
with FlopCounterMode(display=False) as counter:
    network(images, tokens).backward()
with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
    network(images, tokens).backward()
profiler.export_chrome_trace(str(OUT / "raw.json"))
raw = (OUT / "raw.json").read_bytes()
(OUT / "products.pt.trace.json.gz").write_bytes(gzip.compress(raw, mtime=0))
(OUT / "raw.json").unlink()
counts = {str(name): flops for name, flops in counter.get_flop_counts()["Global"].items()}
(OUT / "products.json").write_text(json.dumps(counts), "utf-8")
