"""Riegeli/records files → their records, whatever these are. Knows neither profiles nor storage.

    file ─ layout ─▶ places of chunks ─ chunk_records ─▶ records of one chunk, end to end

Start with `layout.py`. The format is specified in google/riegeli, `doc/riegeli_records_file_format.md`.
"""
