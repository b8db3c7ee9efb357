"""Reads Parquet files in parts that fit into memory. Small files that would unpack to gigabytes are refused.

Values are packed twice: a repeated text is stored once in a dictionary, and pages are compressed as a whole. The
footer states the unpacked size of pages. The unpacked size of a dictionary is known only from the indices into it.
"""

import io
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

MAX_PART_ROWS = 1_000
MAX_PART_BYTES = 2**26
BUFFER_BYTES = 2**20  # per column; without a buffer, a column of a row group is read at once
# Pairs are packed to a third or a tenth of their size. A file that exceeds both limits holds something else.
MAX_EXPANSION = 1_000
ALWAYS_ALLOWED_BYTES = 2**28
# A column is kept packed until the size of its values is known, if one of its row groups is at most this small or
# compressed this well. Other columns are not: all distinct texts of a row group would be held in memory.
SMALL_BYTES, COMPRESSED_WELL = 2**22, 100


def parquet_schema(path: Path) -> pa.Schema:
    """
    The columns of a Parquet file, without lists and structures, which may hold any number of values per row.

    Raises:
        ValueError: if the file would unpack to far more than its size.
        OSError, pyarrow.ArrowException: if it cannot be read.
    """
    _check_footer(path)
    with pq.ParquetFile(path) as file:
        _check_expansion(path, sum(size for size, _ in _row_groups(file.metadata)))
        schema = file.schema_arrow
    return pa.schema([field for field in schema if not pa.types.is_nested(field.type)], schema.metadata)


def parquet_batches(path: Path) -> Iterator[pa.RecordBatch]:
    """
    Yields the rows of a Parquet file in parts of at most 1,000 rows and, unless a single row is larger, 64 MiB.

    Raises:
        ValueError, OSError, pyarrow.ArrowException: as [`parquet_schema`].
    """
    schema = parquet_schema(path)
    metadata = pq.read_metadata(path)
    packed = [field.name for field in schema if _is_text(field.type) and _may_expand(metadata, field.name)]
    unpacked_bytes = 0
    with pq.ParquetFile(path, read_dictionary=packed, buffer_size=BUFFER_BYTES, pre_buffer=False) as file:
        longest = max((size / max(1, rows) for size, rows in _row_groups(metadata)), default=1)
        rows_at_once = int(min(MAX_PART_ROWS, max(1, MAX_PART_BYTES // max(1, longest))))
        for batch in file.iter_batches(rows_at_once, columns=schema.names):
            sizes = sum((_unpacked_bytes(column) for column in batch.columns), np.zeros(len(batch), np.int64))
            unpacked_bytes += int(sizes.sum())
            _check_expansion(path, unpacked_bytes)
            for part in _parts(batch, sizes):
                columns = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in part.columns]
                yield pa.RecordBatch.from_arrays(columns, names=schema.names)


def read_parquet(path: Path) -> pa.Table:
    """
    Reads a whole Parquet file, without lists and structures.

    Raises:
        ValueError, OSError, pyarrow.ArrowException: as [`parquet_schema`].
    """
    schema = parquet_schema(path)
    tables = [pa.Table.from_batches([batch]) for batch in parquet_batches(path)]
    return pa.concat_tables(tables).cast(schema) if tables else schema.empty_table()


class _Footer(io.FileIO):
    """A Parquet file that refuses to read anything but the footer."""

    is_read = False

    class NeedsMoreError(Exception):
        """Raised when more than the footer is read."""

    def read(self, size: int | None = -1) -> bytes:
        if self.is_read:
            raise self.NeedsMoreError
        return super().read(-1 if size is None else size)


def _check_footer(path: Path) -> None:
    """
    Raises pyarrow's exception if a column's part of the footer is damaged.

    Accessing such a part in pyarrow would end the whole process. Its reader checks all parts first, and raises an
    exception.
    """
    with _Footer(path) as footer, pq.ParquetFile(footer, pre_buffer=True) as file:
        footer.is_read = True
        with suppress(_Footer.NeedsMoreError):
            next(file.iter_batches(1), None)


def _is_text(kind: pa.DataType) -> bool:
    return any(is_kind(kind) for is_kind in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary))


def _row_groups(metadata: pq.FileMetaData) -> Iterator[tuple[int, int]]:
    """Yields bytes and rows of each row group, as stated in the footer."""
    lengths = [metadata.schema.column(i).length for i in range(metadata.num_columns)]
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        columns = [group.column(i) for i in range(metadata.num_columns)]
        # A value that is stored as an index only counts as one byte at least.
        sizes = (
            max(column.total_uncompressed_size, column.num_values * max(1, length))
            for column, length in zip(columns, lengths, strict=True)
        )
        yield sum(sizes, start=group.num_rows), group.num_rows


def _may_expand(metadata: pq.FileMetaData, name: str) -> bool:
    """Whether a few bytes of a column may stand for many values."""
    chunks = [
        metadata.row_group(number).column(i)
        for i in range(metadata.num_columns)
        if metadata.schema.column(i).path == name
        for number in range(metadata.num_row_groups)
    ]
    return any(
        chunk.total_uncompressed_size <= SMALL_BYTES
        or chunk.total_uncompressed_size > COMPRESSED_WELL * chunk.total_compressed_size
        for chunk in chunks
    )


def _unpacked_bytes(column: pa.Array) -> np.ndarray:
    """The least size of each value of a column; for texts, packed or not, based on their length."""
    is_packed = pa.types.is_dictionary(column.type)
    if not _is_text(column.type.value_type if is_packed else column.type):
        return np.full(len(column), 8, np.int64)
    lengths = pc.binary_length(column.dictionary).take(column.indices) if is_packed else pc.binary_length(column)
    return pc.fill_null(lengths, 0).to_numpy(zero_copy_only=False).astype(np.int64) + 8


def _parts(batch: pa.RecordBatch, sizes: np.ndarray) -> Iterator[pa.RecordBatch]:
    """Yields slices of a batch of at most `MAX_PART_BYTES`, or of a single row."""
    start = 0
    while start < len(batch):
        fitting = int(np.searchsorted(np.cumsum(sizes[start:]), MAX_PART_BYTES, side="right"))
        yield batch.slice(start, max(1, fitting))
        start += max(1, fitting)


def _check_expansion(path: Path, unpacked_bytes: int) -> None:
    packed_bytes = path.stat().st_size
    if unpacked_bytes > max(ALWAYS_ALLOWED_BYTES, MAX_EXPANSION * packed_bytes):
        raise ValueError(f"its {packed_bytes:,} bytes would unpack to {unpacked_bytes:,} or more")
