"""The leak filter: equal pairs, counts, and the command."""

import csv
import json
from pathlib import Path

import pytest
from datasets import Dataset

from sts_regression.data import leakage
from sts_regression.data.columns import ROWS_READ_AT_ONCE
from sts_regression.data.leakage import LeakFilter, describe_leaks, fold_text, leak_matrix, leak_table, matrix_tables
from sts_regression.data.pairs import read_pairs

TEST_PAIR = ("A cat sleeps.", "The dog barks!")


def pairs(*rows: tuple[str, str]) -> Dataset:
    return Dataset.from_dict({"sentence1": [first for first, _ in rows], "sentence2": [second for _, second in rows]})


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("A cat , sleeping .", "acatsleeping"),
        ("don't  STOP", "dontstop"),
        ("\ufb01ve \u216b \uff21", "fivexiia"),  # a ligature, a Roman numeral, a wide letter
        ("Stra\u00dfe", "strasse"),
        ("cafe\u0301", "caf\u00e9"),  # composed
        ("\u0928\u092e\u0938\u094d\u0924\u0947!", "\u0928\u092e\u0938\u094d\u0924\u0947"),  # vowel signs are kept
        ("\u4f60\u597d\u3002", "\u4f60\u597d"),
        ("3.5 kg", "35kg"),
        ("! ?", "!?"),
        ("\U0001f600", "\U0001f600"),
        ("\u2764\ufe0f", "\u2764"),  # a heart with a selector of its look
        ("I love it \u2764\ufe0f", "iloveit"),
    ],
)
def test_folding_keeps_letters_and_digits_alone(text: str, folded: str) -> None:
    assert fold_text(text) == folded


@pytest.mark.parametrize(
    ("pair", "found_by"),
    [
        (TEST_PAIR, {"exact", "normalized", "sentence"}),
        (TEST_PAIR[::-1], {"exact", "normalized", "sentence"}),
        (("a cat sleeps", "the dog barks ."), {"normalized", "sentence"}),
        (("a cat sleeps", "Another sentence."), {"sentence"}),
        (("Another sentence.", "THE DOG BARKS"), {"sentence"}),
        (("A cat sleeps. The dog", "barks!"), set()),
        (("Another sentence.", "And one more."), set()),
    ],
)
@pytest.mark.parametrize("mode", ["exact", "normalized", "sentence"])
def test_what_each_mode_finds(pair: tuple[str, str], found_by: set[str], mode: str) -> None:
    clean, counts = LeakFilter({"test": pairs(TEST_PAIR)}, mode).apply(pairs(pair))
    found = int(mode in found_by)
    assert (counts.found, counts.removed, len(clean)) == (found, found, 1 - found)


def test_without_a_filter_pairs_are_found_and_kept() -> None:
    given = pairs(("a cat sleeps", "the dog barks"), ("x", "y"))
    clean, counts = LeakFilter({"test": pairs(TEST_PAIR)}, "none").apply(given)
    assert clean is given
    assert (counts.leak_filter, counts.pairs, counts.found, counts.removed) == ("none", 2, 1, 0)


def test_a_pair_in_two_test_sets_is_counted_for_both_and_removed_once() -> None:
    test_sets = {"one": pairs(TEST_PAIR), "two": pairs(("x", "y"), TEST_PAIR[::-1]), "three": pairs(("v", "w"))}
    clean, counts = LeakFilter(test_sets, "exact").apply(pairs(TEST_PAIR, ("x", "y"), ("a", "b")))
    assert clean[:]["sentence1"] == ["a"]
    assert (counts.pairs, counts.found, counts.removed) == (3, 2, 2)
    assert counts.by_test_set == {"one": 1, "two": 2, "three": 0}


def test_one_sentence_of_two_sets_counts_for_both() -> None:
    test_sets = {"one": pairs(("x", "y")), "two": pairs(("y", "z")), "three": pairs(("z", "x"))}
    _, counts = LeakFilter(test_sets, "sentence").apply(pairs(("y", "w")))
    assert (counts.found, counts.by_test_set) == (1, {"one": 1, "two": 1, "three": 0})


def test_examples_show_the_first_pairs_and_what_they_equal() -> None:
    rows = [(f"Sentence {i}.", f"Other {i}.") for i in range(5)]
    _, counts = LeakFilter({"test": pairs(*rows)}, "normalized").apply(pairs(*[(b.upper(), a) for a, b in rows]))
    assert len(counts.examples) == leakage.EXAMPLES_KEPT
    assert counts.examples[0] == {
        "pair": ["OTHER 0.", "Sentence 0."],
        "test_set": "test",
        "test_pair": ["Sentence 0.", "Other 0."],
    }


def test_other_columns_and_the_order_stay() -> None:
    given = pairs(("a", "b"), TEST_PAIR, ("c", "d")).add_column("label", [1.0, 2.0, 3.0])
    clean, _ = LeakFilter({"test": pairs(TEST_PAIR)}, "exact").apply(given)
    assert clean[:] == {"sentence1": ["a", "c"], "sentence2": ["b", "d"], "label": [1.0, 3.0]}


def test_more_pairs_than_one_batch() -> None:
    count = ROWS_READ_AT_ONCE + 5
    rows = [(f"s{i}", f"t{i}") for i in range(count)]
    clean, counts = LeakFilter({"test": pairs(rows[0], rows[-1])}, "exact").apply(pairs(*rows))
    assert (len(clean), counts.found) == (count - 2, 2)


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="`leak_filter` must be one of exact, normalized, sentence, none, but is 'x'"):
        LeakFilter({}, "x")


def test_the_table_has_a_line_per_set_and_their_sum() -> None:
    leak_filter = LeakFilter({"one": pairs(TEST_PAIR), "two": pairs(("x", "y"))}, "exact")
    counts = {
        "a.csv": leak_filter.apply(pairs(TEST_PAIR, ("a", "b")))[1],
        "b.csv": leak_filter.apply(pairs(("y", "x")))[1],
    }
    assert [line.split() for line in leak_table(counts).splitlines()] == [
        ["leak", "filter:", "exact", "pairs", "found", "left", "one", "two"],
        ["a.csv", "2", "1", "1", "1", "0"],
        ["b.csv", "1", "1", "0", "0", "1"],
        ["sum", "3", "2", "1", "1", "1"],
    ]
    assert "sum" not in leak_table({"a.csv": counts["a.csv"]})
    assert json.loads(json.dumps(describe_leaks({"train": counts})))["train"]["b.csv"]["by_test_set"]["two"] == 1


MATRIX_TESTS = {"one": pairs(("A", "B"), ("C", "D"), ("A", "C")), "two": pairs(("A", "X"))}
MATRIX_SET = [("a.csv", pairs(("a.", "b"), ("A", "Y"), ("Y", "Y")))]


@pytest.mark.parametrize(
    ("mode", "sentences", "one", "two"),
    [
        ("exact", 4, (0, 1, 2), (0, 1, 1)),
        ("normalized", 3, (1, 2, 2), (0, 1, 1)),
        ("none", 3, (1, 2, 2), (0, 1, 1)),
        ("sentence", 3, (2, 2, 2), (2, 1, 1)),
    ],
)
def test_the_matrix_counts_pairs_and_sentences_both_ways(
    mode: str, sentences: int, one: tuple[int, ...], two: tuple[int, ...]
) -> None:
    names = ("pairs", "sentences", "test_pairs")
    assert leak_matrix(MATRIX_SET, MATRIX_TESTS, mode) == {
        "leak_filter": mode,
        "test_sets": {"one": {"pairs": 3}, "two": {"pairs": 1}},
        "sets": {
            "a.csv": {
                "pairs": 3,
                "sentences": sentences,
                "by_test_set": {
                    "one": dict(zip(names, one, strict=True)),
                    "two": dict(zip(names, two, strict=True)),
                },
            }
        },
    }


def test_the_matrix_has_a_table_for_each_direction() -> None:
    found, shares = matrix_tables(leak_matrix(MATRIX_SET, MATRIX_TESTS, "normalized"))
    assert found == [["set", "pairs / sentences", "one", "two"], ["a.csv", "3 / 3", "1 / 2", "0 / 1"]]
    assert shares == [["set", "one", "two"], ["a.csv", "66.7", "100.0"]]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    contents = {"train": [TEST_PAIR, ("a", "b")], "dev": [("a cat sleeps", "the dog barks")], "test": [TEST_PAIR]}
    for name, rows in contents.items():
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("sentence1", "sentence2"), *rows])  # an audit needs no labels
    return {name: str(tmp_path / f"{name}.csv") for name in contents}


def test_the_command_prints_tables_and_examples_and_writes_json(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = ["--train_file", files["train"], "--validation_file", files["dev"], "--test_file", files["test"]]
    outputs = ["--output_file", str(tmp_path / "audit.json")]
    leakage.main([*inputs, "--leak_filter", "exact", *outputs])
    printed = capsys.readouterr().out
    assert printed.count("leak filter: exact") == 2
    assert f"{files['train']}: {list(TEST_PAIR)}\n  is in {files['test']}: {list(TEST_PAIR)}" in printed
    record = json.loads((tmp_path / "audit.json").read_text())
    assert record["train"][files["train"]]["removed"] == 1
    assert record["validation"][files["dev"]]["found"] == 0
    leakage.main([*inputs, *outputs, "--overwrite"])  # filters as training does
    assert json.loads((tmp_path / "audit.json").read_text())["validation"][files["dev"]]["removed"] == 1


def test_an_output_that_cannot_be_written_is_one_line(files: dict[str, str]) -> None:
    output = Path(files["train"]) / "audit.json"
    with pytest.raises(SystemExit, match=r"^sts-regression leakage: error: .*train\.csv"):
        leakage.main(["--train_file", files["train"], "--test_file", files["test"], "--output_file", str(output)])


def test_the_command_prints_the_matrix_and_writes_it(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = ["--matrix", files["train"], files["dev"], "--test_file", files["test"], "--leak_filter", "normalized"]
    leakage.main([*inputs, "--output_file", str(tmp_path / "matrix.json")])
    record = json.loads((tmp_path / "matrix.json").read_text())
    sets = [(file, read_pairs(file, labelled=False).pairs) for file in (files["train"], files["dev"])]
    assert record == leak_matrix(sets, {files["test"]: pairs(TEST_PAIR)}, "normalized")
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].endswith("how many of them each test set holds (normalized)")
    assert printed[2].split() == [files["train"], "2", "/", "4", "1", "/", "2"]
    assert printed[3].split() == [files["dev"], "1", "/", "2", "1", "/", "2"]
    assert printed[5] == "Test pairs that have a sentence in common with the set, in percent (normalized)"
    assert printed[7].split() == [files["train"], "100.0"]
    assert TEST_PAIR[0] not in "".join(printed)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--matrix", "train", "--train_file", "dev", "--test_file", "test"], r"`matrix` takes .* Name '.*dev\.csv'"),
        (["--matrix", "train"], r"nothing to compare\. Give `--train_file`"),
        (["--train_file", "train"], r"nothing to compare\. Give `--train_file`"),
        (["--test_file", "test"], r"nothing to compare\. Give `--train_file`"),
        (["--train_file", "absent", "--test_file", "test"], r"absent: no such file"),
        (["--train_file", "train", "--sts_data", "absent"], r"`sts_data`: 'absent' holds neither"),
    ],
)
def test_errors_of_the_command_are_one_line(files: dict[str, str], arguments: list[str], message: str) -> None:
    with pytest.raises(SystemExit, match=rf"^sts-regression leakage: error: .*{message}"):
        leakage.main([files.get(argument, argument) for argument in arguments])


def test_columns_of_other_names_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "pairs.csv"
    file.write_text("request,reply\na,b\n")
    columns = ["--sentence1_column", "request", "--sentence2_column", "reply"]
    leakage.main(["--train_file", str(file), "--test_file", str(file), *columns])
    assert "1" in capsys.readouterr().out
