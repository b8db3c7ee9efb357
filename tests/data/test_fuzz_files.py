"""Files drawn at random: every one is read as an independent reader reads it, or refused by name."""

import csv
import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st

from sts_regression.data.columns import PairColumns
from sts_regression.data.pairs import PairSet, read_pairs, stream_sentences
from sts_regression.serving.pair_file import check_pair_file

Fuzz = Callable[..., None]
Attempt = Callable[..., Any]

# Emoji joined by invisible characters, text from right to left, combining characters, line ends of Unicode, quotes.
ODD_TEXT = (
    "👩‍👩‍👧",
    "שלום",
    "e\u0301",
    "a\u2028b",
    "\u200b",
    "\ufeff",
    '"',
    "''",
    "a\tb",
    "a\nb",
    "a\rb",
    "\x85",
    "\x1f",
    "x" * 5000,
)
TEXT = st.one_of(st.sampled_from(ODD_TEXT), st.text(max_size=12))
SENTENCE = st.builds("a{}".format, TEXT)  # never blank
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
ODD_LABELS = (
    *(
        "1e400",
        "-1e400",
        "1,000",
        "1.000,5",
        "1_000",
        "3.5",
        "\uff13.\uff15",
        "٣",
        "½",
        "0x10",
        "nan",
        "-inf",
        "Infinity",
    ),
    *("", " ", " 2 ", "+1", "-0", "1e-3", "1e-400", "yes", "true", "None", "−1", "1 2", "１"),
)
JSON_VALUE = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from(ODD_LABELS), TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=4,
)
HEADER = ("sentence1", "sentence2", "label")


def is_sentence(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and not any("\ud800" <= c <= "\udfff" for c in value)


def rows_of(found: PairSet) -> list[tuple[str, str, float]]:
    return list(zip(*(found.pairs[name] for name in HEADER), strict=True))


def table(rows: list[tuple[Any, ...]], delimiter: str, quoting: Any, line_end: str) -> str:
    text = io.StringIO(newline="")
    quotes: dict[str, Any] = {"quoting": quoting}
    if quoting == csv.QUOTE_NONE:
        quotes |= {"quotechar": None}
    csv.writer(text, delimiter=delimiter, lineterminator=line_end, **quotes).writerows(rows)
    return text.getvalue()


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_tables_are_read_as_they_were_written(fuzz: Fuzz, tmp_path: Path, delimiter: str) -> None:
    path = tmp_path / "pairs.csv"

    def check(
        attempt: Attempt, rows: list[tuple[str, str, float]], order: list[int], quoting: int, bom: bool, blank: str
    ) -> None:
        lines = [tuple(row[column] for column in order) for row in [HEADER, *rows]]
        written = table(lines, delimiter, quoting, "\r\n").replace("\r\n", f"\r\n{blank}", 1)  # after the header
        path.write_text(written, encoding="utf-8-sig" if bom else "utf-8", newline="")
        found = attempt(lambda: read_pairs(path), path)
        if found is None:
            assert any(not is_sentence(text) or "\0" in text for row in rows for text in row[:2])
        else:
            assert rows_of(found) == rows

    rows = st.lists(st.tuples(TEXT, SENTENCE, NUMBER), min_size=1, max_size=5)
    quotings = st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL])
    fuzz(
        *("tables with quoted fields", check, rows, st.permutations(range(3)), quotings, st.booleans()),
        st.sampled_from(["", "\n", "\r\n\r\n"]),
    )


def test_tab_separated_tables_are_read_as_they_were_written(fuzz: Fuzz, tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"

    def check(attempt: Attempt, rows: list[tuple[str, str, float]], line_end: str) -> None:
        path.write_bytes(line_end.join("\t".join(map(str, row)) for row in [HEADER, *rows]).encode())
        found = attempt(lambda: read_pairs(path), path)
        assert (found is None) == any("\0" in text for row in rows for text in row[:2])
        if found is not None:
            assert rows_of(found) == rows

    text = SENTENCE.filter(lambda text: not set(text) & set("\t\r\n"))
    rows = st.lists(st.tuples(text, text, NUMBER), min_size=1, max_size=5)
    fuzz("tab-separated tables", check, rows, st.sampled_from(["\n", "\r\n"]))


def test_json_lines_of_any_values_are_read_as_they_were_written(
    fuzz: Fuzz, as_number: Callable[[Any], float | None], tmp_path: Path
) -> None:
    path = tmp_path / "pairs.jsonl"

    def check(attempt: Attempt, rows: list[dict[str, Any]], ascii_only: bool) -> None:
        text = "".join(json.dumps(row, ensure_ascii=ascii_only) + "\n" for row in rows)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))  # which is no UTF-8 where there is half a character
        found = attempt(lambda: read_pairs(path), path)
        labels = [as_number(row["label"]) for row in rows]
        is_sound = all(is_sentence(row["sentence1"]) and is_sentence(row["sentence2"]) for row in rows)
        half = any(not is_sentence(f"a{row.get('subset')}") for row in rows if "subset" in rows[0])
        is_sound = is_sound and not half and (text == "" or is_sentence(text))
        assert (found is None) == (not is_sound or None in labels or not rows)
        if found is not None:
            assert rows_of(found) == [
                (row["sentence1"], row["sentence2"], label) for row, label in zip(rows, labels, strict=True)
            ]
            if "subset" in rows[0]:
                assert found.pairs["subset"] == [
                    "" if row.get("subset") is None else str(row["subset"]) for row in rows
                ]

    half_character = st.text(st.characters(categories=["Cs", "L"]), min_size=1, max_size=3)
    sentence = st.one_of(SENTENCE, SENTENCE, SENTENCE, half_character, JSON_VALUE)
    label = st.one_of(NUMBER, st.integers(), st.sampled_from(ODD_LABELS), JSON_VALUE)
    fields = {"sentence1": sentence, "sentence2": sentence, "label": label}
    row = st.fixed_dictionaries(
        fields, optional={"subset": st.one_of(half_character, st.integers(0, 3)), "x": JSON_VALUE}
    )
    good = st.fixed_dictionaries({"sentence1": SENTENCE, "sentence2": SENTENCE, "label": NUMBER})
    fuzz("JSON lines", check, st.lists(st.one_of(row, good, good), max_size=4), st.booleans())


ARROW_TYPES = [
    pa.string(),
    pa.large_string(),
    pa.float32(),
    pa.int64(),
    pa.float64(),
    pa.int8(),
    pa.bool_(),
    pa.binary(),
]


def test_parquet_files_of_any_types_are_read_as_they_were_written(fuzz: Fuzz, tmp_path: Path) -> None:
    path = tmp_path / "pairs.parquet"
    by_type = {"string": SENTENCE, "large_string": SENTENCE, "float": st.floats(width=32), "double": NUMBER}
    by_type |= {"int8": st.integers(-128, 127), "int64": st.integers(-(2**63), 2**63 - 1)}
    by_type |= {"bool": st.booleans(), "binary": st.binary(max_size=3)}

    def check(attempt: Attempt, is_odd: bool, data: st.DataObject) -> None:
        types: list[pa.DataType] = [pa.string(), pa.string(), pa.float64()]
        names = list(HEADER)
        if is_odd:
            types = data.draw(st.lists(st.sampled_from(ARROW_TYPES), min_size=3, max_size=3))
            names = data.draw(st.lists(st.sampled_from(HEADER), min_size=3, max_size=3))
        values = [by_type[str(kind)] | st.none() if is_odd else by_type[str(kind)] for kind in types]
        columns = [data.draw(st.lists(value, min_size=2, max_size=2)) for value in values]
        pq.write_table(pa.table([pa.array(*column) for column in zip(columns, types, strict=True)], names=names), path)
        found = attempt(lambda: read_pairs(path), path)
        assert found is not None or is_odd
        if found is not None:
            assert sorted(names) == sorted(HEADER)
            assert all(map(math.isfinite, found.pairs["label"]))
            first, second, labels = (columns[names.index(name)] for name in HEADER)
            rounded = np.asarray(labels, dtype=float).tolist()  # of large integers
            assert rows_of(found) == list(zip(first, second, rounded, strict=True))

    fuzz("Parquet files", check, st.booleans(), st.data())


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_damaged_files_are_read_as_they_stand_or_refused(
    fuzz: Fuzz, damaged: Callable[[bytes, int], bytes], tmp_path: Path, suffix: str
) -> None:
    path, rows = tmp_path / f"pairs.{suffix}", [(f"A {i}, b.", f'c "{i}"', i % 6 / 2) for i in range(6)]
    if suffix == "parquet":
        pq.write_table(pa.table(dict(zip(HEADER, map(list, zip(*rows, strict=True)), strict=True))), path)
        sound = path.read_bytes()
    elif suffix == "jsonl":
        sound = "".join(json.dumps(dict(zip(HEADER, row, strict=True))) + "\n" for row in rows).encode()
    elif suffix == "tsv":
        sound = "".join("\t".join(map(str, row)) + "\n" for row in [HEADER, *rows]).encode()
    else:
        sound = table([HEADER, *rows], ",", csv.QUOTE_MINIMAL, "\n").encode()

    def check(attempt: Attempt, seed: int, encoding: str | None) -> None:
        content = sound if suffix == "parquet" or encoding is None else sound.decode().encode(encoding)
        path.write_bytes(damaged(content, seed))
        found = attempt(lambda: read_pairs(path), path)
        unlabelled, streamed = (
            outcome(lambda: read_pairs(path, labelled=False)),
            outcome(lambda: list(stream_sentences(path))),
        )
        if isinstance(unlabelled, str):
            assert streamed == unlabelled
            assert found is None
        else:
            assert streamed == list(zip(unlabelled.pairs["sentence1"], unlabelled.pairs["sentence2"], strict=True))
            assert check_pair_file(path).num_pairs == len(unlabelled.pairs)
        if found is not None and suffix != "parquet":
            assert rows_of(found) == independently_read(path)

    encodings = st.sampled_from([*[None] * 9, "utf-8-sig", "utf-16", "utf-16-le", "latin-1", "utf-32"])
    fuzz(f"damaged {suffix} files", check, st.integers(0, 2**32), encodings)


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except ValueError as error:
        return str(error)


def independently_read(path: Path) -> list[tuple[str, str, float]]:
    text = path.read_bytes().decode("utf-8-sig")
    if path.suffix == ".jsonl":
        found = [json.loads(line) for line in text.split("\n") if line.strip()]
    else:
        form: Any = {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if path.suffix == ".tsv" else {}
        header, *records = [row for row in csv.reader(io.StringIO(text, newline=""), **form) if row]
        found = [dict(zip(header, row, strict=True)) for row in records]
    keys = [next(key for key in found[0] if key.strip().lower() == name) for name in HEADER]
    return [(row[keys[0]], row[keys[1]], float(row[keys[2]])) for row in found]


def test_any_bytes_under_any_name_are_refused_by_name(fuzz: Fuzz, tmp_path: Path) -> None:
    def check(attempt: Attempt, content: bytes, suffix: str) -> None:
        path = tmp_path / f"pairs{suffix}"
        path.write_bytes(content)
        assert attempt(lambda: read_pairs(path), path) is None
        assert attempt(lambda: check_pair_file(path), path) is None

    starts = st.sampled_from(
        [b"", b"PAR1", b"\x1f\x8b\x08", b"PK\x03\x04", b"sentence1,sentence2,label", b"{}", b"[", b"[" * 5000]
    )
    content = st.builds(bytes.__add__, starts, st.binary(max_size=60))
    suffixes = st.sampled_from([".csv", ".tsv", ".txt", ".json", ".jsonl", ".parquet", ".csv.gz", ".xlsx", ""])
    fuzz("files of arbitrary bytes", check, content, suffixes)


NAMES = ["sentence1", "Sentence1", "sentence2 ", "sentence2", "label", "LABEL", "score", "premise", "x", ""]


def test_names_of_columns_are_found_or_asked_for(fuzz: Fuzz, tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"

    def check(attempt: Attempt, header: list[str], given: list[str | None]) -> None:
        path.write_text(f"{','.join(header)}\n{','.join(map(str, range(len(header))))}\n")
        chosen = PairColumns(*given) if given[0] is None or given[0] != given[1] else PairColumns(label=given[2])
        found = attempt(lambda: read_pairs(path, chosen), path)
        if found is not None:
            [row] = rows_of(found)
            places = [int(row[0]), int(row[1]), int(row[2])]
            assert len(set(places)) == 3
            for place, name in zip(places, (chosen.sentence1, chosen.sentence2, chosen.label), strict=True):
                assert name is None or header[place] == name
                assert (
                    name is not None
                    or [column.strip().lower() for column in header].count(header[place].strip().lower()) == 1
                )

    name = st.sampled_from(NAMES)
    fuzz(
        "table headers",
        check,
        st.one_of(st.permutations([*HEADER, "x"]), st.permutations([*HEADER, "Label"]), st.lists(name, max_size=6)),
        st.lists(st.sampled_from([*[None] * 6, *NAMES]), min_size=3, max_size=3),
    )
