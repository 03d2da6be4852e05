"""Payload → bytes for HTTP, files and terminals; one module per format."""

from tb_tpuprof.encode.columns import encode_columns
from tb_tpuprof.encode.csv import encode_csv
from tb_tpuprof.encode.json import encode_json
from tb_tpuprof.encode.text import encode_text

__all__ = ["encode_columns", "encode_csv", "encode_json", "encode_text"]
