"""The results of the web page: the pipeline's scores, within stated limits, and files without formulas."""

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import PreTrainedTokenizerBase

from sts_regression.data.columns import PairColumns
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.encoding import model_scorer
from sts_regression.pipeline_sts_regression import STSRegressionPipeline
from sts_regression.serving import demo
from sts_regression.serving.demo_scoring import (
    MAX_FILE_BYTES,
    MAX_FILE_PAIRS,
    MAX_LIST_SENTENCES,
    MAX_TEXT_CHARACTERS,
    DemoModel,
    describe_limits,
    describe_model,
    load_demo_model,
    rank,
    score_file,
    score_two,
    shown_score,
)

GRADES = ["irrelevant", "relevant", "highly relevant"]
GRADED = {"label_values": [0, 1, 2], "label_names": GRADES}
SENTENCES = ["a dog", "the cat", "the big house", "the cat", "a man in the park"]
TOO_LONG = "x" * (MAX_TEXT_CHARACTERS + 1)

MakeModel = Callable[..., STSRegressionModel]
MakeDemoModel = Callable[..., DemoModel]


@pytest.fixture
def make_demo_model(make_model: MakeModel, tokenizer: PreTrainedTokenizerBase) -> MakeDemoModel:
    def make(**options: object) -> DemoModel:
        model = make_model(**options)
        return DemoModel("tiny", model.config, model_scorer(model, tokenizer), tokenizer)

    return make


@pytest.fixture
def named(make_demo_model: MakeDemoModel) -> DemoModel:
    return make_demo_model(**GRADED)


def write_file(path: Path, rows: list[tuple[str, ...]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def read_scores(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize(
    "options",
    [GRADED, {}, {"encoder_type": "cross-encoder", "loss_type": "binary_cross_entropy"}],
)
def test_two_sentences_get_the_scores_of_the_pipeline(
    options: dict,
    make_demo_model: MakeDemoModel,
    make_model: MakeModel,
    tokenizer: PreTrainedTokenizerBase,
) -> None:
    scores = score_two(make_demo_model(**options), "the cat", "a big dog")
    inputs: dict[str, Any] = {"tokenizer": tokenizer, "device": "cpu"}  # transformers types neither as it takes them
    pipeline = STSRegressionPipeline(model=make_model(**options), **inputs)
    expected = pipeline(("the cat", "a big dog"))
    assert set(scores) == set(expected)
    for name, score in scores.items():
        assert score == (pytest.approx(expected[name], abs=2e-6) if name in ("score", "cosine") else expected[name])


def test_a_model_without_a_trained_head_gives_the_cosine_alone(make_demo_model: MakeDemoModel, tmp_path: Path) -> None:
    model = make_demo_model(head_is_trained=False, **GRADED)
    assert list(score_two(model, "the cat", "a dog")) == ["cosine", "unreliable"]
    assert "It has no trained head: there is a cosine, but no score." in describe_model(model)
    cosines = [row["cosine"] for row in rank(model, "the cat", "\n".join(SENTENCES))]
    assert cosines == sorted(cosines, reverse=True)
    path = write_file(tmp_path / "pairs.csv", [("sentence1", "sentence2"), ("a", "b")])
    assert list(read_scores(score_file(model, path, PairColumns()))[0]) == [
        "sentence1",
        "sentence2",
        "cosine",
        "unreliable",
    ]


def test_the_description_names_the_scale_but_no_folder(
    make_model: MakeModel,
    tokenizer: PreTrainedTokenizerBase,
    save_checkpoint: Callable[..., Path],
    tmp_path: Path,
) -> None:
    path = save_checkpoint(make_model(**GRADED), tokenizer, tmp_path / "my-run")
    model = load_demo_model(str(path), max_seq_length=16)
    assert model.config.head_is_trained
    assert describe_model(model) == "my-run\nLabel scale: 0 irrelevant, 1 relevant, 2 highly relevant"
    assert score_two(model, "the cat", "a dog")["grade"] in GRADES


def test_many_nodes_are_described_by_their_ends(make_demo_model: MakeDemoModel) -> None:
    model = make_demo_model(label_values=list(range(101)))
    assert describe_model(model).endswith("\nLabel scale: 0 to 100 in steps of 1")


def test_a_cross_encoder_has_no_cosine(make_demo_model: MakeDemoModel) -> None:
    model = make_demo_model(encoder_type="cross-encoder")
    assert describe_model(model).endswith("It is a cross-encoder: there is a score, but no cosine.")
    rows = rank(model, "the cat", "a dog\nthe cat")
    assert set(rows[0]) == {"sentence", "grade", "score", "unreliable"}


def test_a_list_is_ranked_by_the_score_and_equals_keep_their_order(named: DemoModel) -> None:
    rows = rank(named, "the cat", "\n\n  ".join(SENTENCES) + "\r\n")
    assert sorted(row["sentence"] for row in rows) == sorted(SENTENCES)
    scores = [row["score"] for row in rows]
    assert scores == sorted(scores, reverse=True)
    for row in rows:
        alone = score_two(named, "the cat", row["sentence"])
        assert row["score"] == pytest.approx(alone["score"], abs=2e-6)
        assert row["grade"] == alone["grade"]
    first, second = [place for place, row in enumerate(rows) if row["sentence"] == "the cat"]
    assert second == first + 1
    assert rows[first] == rows[second]


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ("", "`First sentence` is empty. Write a sentence."),
        (None, "`First sentence` is empty. Write a sentence."),
        (" \n", r"`First sentence` is ' \\n'. Write"),
        ("\ud800", "`First sentence` is .* half of a character"),
        (TOO_LONG, "`First sentence` has 2,001 characters, but at most 2,000 are allowed. Shorten it."),
    ],
)
def test_a_sentence_that_is_none_or_too_long_is_refused(named: DemoModel, sentence: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        score_two(named, sentence, "a dog")


def test_the_longest_sentence_is_scored(named: DemoModel) -> None:
    assert score_two(named, TOO_LONG[1:], "a dog")["grade"] in GRADES


@pytest.mark.parametrize(
    ("query", "text", "message"),
    [
        ("", "a", "`Query` is empty"),
        ("the cat", "", "`Sentences` must hold 1 to 200 sentences, one per line, but holds 0"),
        ("the cat", None, "`Sentences` must hold 1 to 200"),
        ("the cat", "a\n" * (MAX_LIST_SENTENCES + 1), "but holds 201"),
        ("the cat", f"a\n{TOO_LONG}", "`Sentences: number 2` has 2,001 characters"),
    ],
)
def test_a_list_that_is_empty_or_too_long_is_refused(named: DemoModel, query: str, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rank(named, query, text)


def test_a_file_gets_a_line_of_scores_per_pair(named: DemoModel, tmp_path: Path) -> None:
    pairs = [("the cat", 'a "big; dog'), ("water", "a, man")]
    path = write_file(tmp_path / "pairs.csv", [("sentence1", "sentence2"), *pairs])
    text = score_file(named, path, PairColumns())
    rows = read_scores(text)
    assert all(len(row["score"].partition(".")[2]) > 2 for row in rows)  # two digits are for the page alone
    assert [(row["sentence1"], row["sentence2"]) for row in rows] == pairs
    for row, pair in zip(rows, pairs, strict=True):
        alone = score_two(named, *pair)
        assert float(row["score"]) == pytest.approx(alone["score"], abs=2e-6)
        assert row["grade"] == alone["grade"]
        assert float(row["cosine"]) == pytest.approx(alone["cosine"], abs=2e-6)
    assert text.splitlines()[1].startswith('"the cat","a ""big; dog",')  # in quotes wherever cells are separated


def test_no_cell_of_the_scores_is_a_formula(make_demo_model: MakeDemoModel, tmp_path: Path) -> None:
    model = make_demo_model(label_values=[0, 1, 2], label_names=["=1+1", "@SUM(A1)", "+3"])
    sentences = ["=cmd", "+1", "-1", "@x", "\t=x", " =x", "＝x", "a=b", "'=x"]
    path = write_file(tmp_path / "pairs.csv", [("sentence1", "sentence2"), *((text, "a") for text in sentences)])
    rows = read_scores(score_file(model, path, PairColumns()))
    expected = ["'=cmd", "'+1", "'-1", "'@x", "'\t=x", "' =x", "'＝x", "a=b", "'=x"]
    assert [row["sentence1"] for row in rows] == expected
    assert {row["grade"][0] for row in rows} == {"'"}
    assert any(float(row["score"]) < 0 or float(row["score"]) > 0 for row in rows)  # numbers stay numbers


def test_columns_may_be_named(named: DemoModel, tmp_path: Path) -> None:
    path = write_file(tmp_path / "pairs.tsv", [("left", "right"), ("the cat", "a dog")])
    assert len(read_scores(score_file(named, path, PairColumns("left", "right")))) == 1


@pytest.mark.parametrize(
    ("name", "rows", "message"),
    [
        ("pairs.txt", [("sentence1", "sentence2"), ("a", "b")], r"^pairs.txt: unknown kind of file '.txt'"),
        ("pairs.csv", [("left", "right"), ("a", "b")], r"^pairs.csv: cannot tell which of the columns"),
        ("pairs.csv", [("sentence1", "sentence2"), ("a", "")], r"^pairs.csv: 1 bad value \(line 2: `sentence2`"),
        ("pairs.csv", [("sentence1", "sentence2")], r"^pairs.csv: holds no pairs"),
        ("pairs.csv", [], r"^pairs.csv: holds no pairs"),
        ("pairs.csv", [("sentence1", "sentence2")] + [("a", "b")] * (MAX_FILE_PAIRS + 1), "more than 1,000 pairs"),
        ("pairs.csv", [("sentence1", "sentence2"), ("a", TOO_LONG)], "`pairs.csv: pair 1` has 2,001 characters"),
        ("pairs.csv", [("sentence1", "sentence2"), ("a", "x" * MAX_FILE_BYTES)], "is larger than 1 MiB. Split it"),
    ],
)
def test_a_file_that_is_wrong_or_too_large_is_refused_without_its_folder(
    named: DemoModel, tmp_path: Path, name: str, rows: list[tuple[str, ...]], message: str
) -> None:
    path = write_file(tmp_path / name, rows)
    with pytest.raises(ValueError, match=message) as raised:
        score_file(named, path, PairColumns())
    assert str(tmp_path) not in str(raised.value)


def test_a_file_that_is_missing_is_refused_without_its_folder(named: DemoModel, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^none.csv: no such file"):
        score_file(named, tmp_path / "none.csv", PairColumns())


def test_the_limits_are_stated() -> None:
    stated = "2,000 characters per sentence, 200 sentences per list, 1,000 pairs and 1 MiB per file."
    assert describe_limits() == f"At most {stated}"


def test_the_page_shows_two_digits() -> None:
    assert [shown_score(value) for value in (1.23456, -0.5, -0.001)] == ["1.23", "−0.50", "0.00"]


def test_the_command_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        SystemExit, match=r"error: the web page needs gradio. Install it with `pip install \"\.\[demo\]"
    ):
        demo.main(["--model_name_or_path", "outputs/my-run"])


def test_a_cross_encoder_without_a_head_is_refused(
    make_model: MakeModel,
    tokenizer: PreTrainedTokenizerBase,
    save_checkpoint: Callable[..., Path],
    tmp_path: Path,
) -> None:
    model = make_model(encoder_type="cross-encoder", head_is_trained=False)
    path = save_checkpoint(model, tokenizer, tmp_path / "my-run")
    with pytest.raises(ValueError, match="a cross-encoder without a trained head has no scores"):
        load_demo_model(str(path))
