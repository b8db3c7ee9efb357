"""What the search command reads and writes: texts, and a file of hits that a second run of the search continues."""

import contextlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from sts_regression.file_rows import read_lines, read_rows
from sts_regression.files import replacing

TEXT_COLUMN = "text"
SCORE_DIGITS = 6  # after the point; float32 has no more


def read_texts(path: Path) -> list[str]:
    """
    The texts of a file: the lines of a `.txt`, or the column `text` of a CSV, TSV, JSON-lines or Parquet file.

    Raises:
        ValueError: for a missing or unreadable file, one without texts or without the column, or an empty text; it
            names the file, the line and the remedy.
    """
    texts = []
    if path.suffix.lower() == ".txt" and path.is_file():
        numbered: Any = enumerate((line.rstrip("\r\n") for line in read_lines(path)), start=1)
    else:
        numbered = ((line, _text_of(path, line, row)) for line, row in read_rows(path))
    for line, text in numbered:
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"{path}: line {line} has no text, but {text!r}. Remove the line or fill it in.")
        try:
            text.encode()
        except UnicodeEncodeError as error:  # JSON may escape half a character
            raise ValueError(f"{path}: line {line} holds half a surrogate pair. Correct its \\u escapes.") from error
        texts.append(text)
    if not texts:
        raise ValueError(f"{path}: holds no texts. Give a file with at least one.")
    return texts


def _text_of(path: Path, line: int, row: Mapping[str, Any]) -> Any:
    if TEXT_COLUMN not in row:
        raise ValueError(
            f"{path}: line {line} has no column {TEXT_COLUMN!r} among {', '.join(map(str, row))}. Rename the column "
            "that holds the texts, or give a .txt file with one text a line."
        )
    return row[TEXT_COLUMN]


class HitsFile:
    """
    A file of hits, open to be continued; a context manager.

    Attributes:
        num_done: queries whose hits it held when it was opened.
    """

    def __init__(self, path: Path, num_done: int) -> None:
        self.num_done = num_done
        self._file = path.open("ab")

    def write(
        self, queries: Sequence[str], hits: Sequence[Sequence[tuple[int, float]]], corpus: Sequence[str]
    ) -> None:
        """Appends a line per query, its hits given as index and score; a process that ends later loses none."""
        for query, its_hits in zip(queries, hits, strict=True):
            found = [{"text": corpus[i], "index": i, "score": round(score, SCORE_DIGITS)} for i, score in its_hits]
            self._file.write(
                json.dumps({"query": query, "hits": found}, ensure_ascii=False, allow_nan=False).encode() + b"\n"
            )
        self._file.flush()

    def __enter__(self) -> "HitsFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def meta_file(path: Path) -> Path:
    """The file beside one of hits that says of which run they are."""
    return path.with_name(f"{path.name}.meta.json")


def open_hits(path: Path, digest: str, queries: Sequence[str], overwrite: bool = False) -> HitsFile:
    """
    Opens a new output file, or that of the same run after its last complete line.

    What run it is stands in `<output file>.meta.json` beside it. The queries may have become more since.

    Args:
        path: the output file; folders are made.
        digest: of all that decides the hits of a query.
        queries: all of them, in order.
        overwrite: begin anew whatever is there.

    Raises:
        ValueError: where the file is of another run, holds something else than hits of the first of these queries,
            or cannot be written.
    """
    meta_path = meta_file(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        num_done = 0
        if not overwrite and path.exists() and path.stat().st_size:
            _check_same_run(path, meta_path, digest)
            num_done = _drop_half_line(path, queries)
        else:
            # The old hits go before the new digest comes: at no time does one vouch for the other.
            path.write_bytes(b"")
            with replacing(meta_path) as file:
                file.write(json.dumps({"digest": digest}).encode() + b"\n")
        return HitsFile(path, num_done)
    except OSError as error:
        raise ValueError(f"`output_file`: cannot write {str(path)!r} ({error}). Give another path.") from error


def _check_same_run(path: Path, meta_path: Path, digest: str) -> None:
    recorded = None
    with contextlib.suppress(FileNotFoundError, ValueError, TypeError, KeyError):
        recorded = json.loads(meta_path.read_bytes())["digest"]
    if recorded != digest:
        what = "another model, corpus or options" if recorded is not None else f"no digest in {meta_path.name}"
        raise ValueError(
            f"`output_file`: {str(path)!r} exists, with {what}. Give another path, or begin anew with `--overwrite`."
        )


def _drop_half_line(path: Path, queries: Sequence[str]) -> int:
    """Cuts off what follows the last end of a line; the number of lines before, which must be of these queries."""
    num_done = complete = 0
    with path.open("r+b") as file:
        for line in file:
            if not line.endswith(b"\n"):
                break
            query = None
            with contextlib.suppress(ValueError, TypeError, KeyError):
                query = json.loads(line)["query"]
            if num_done >= len(queries) or query != queries[num_done]:
                raise ValueError(
                    f"`output_file`: line {num_done + 1} of {str(path)!r} is not the hits of query {num_done + 1}. "
                    "Give another path, or begin anew with `--overwrite`."
                )
            num_done += 1
            complete += len(line)
        file.truncate(complete)
    return num_done
