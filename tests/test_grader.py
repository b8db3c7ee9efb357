"""The Python interface: pairs at hand in, grades out, by the code of the command."""

import json
import logging
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from datasets import Dataset
from tokenizers import Tokenizer

import sts_regression
from sts_regression import PairGrader
from sts_regression import grader as grader_module
from sts_regression.models.loading import find_model
from sts_regression.run_sts import run_stages

pytestmark = pytest.mark.smoke

WORDS = ["cat", "dog", "man", "park", "water", "house", "red", "big"]
ROWS = [(f"the {WORDS[i % 8]} {i}", f"a {WORDS[i * i % 8]}", i % 3) for i in range(24)]
NAMES = ["low", "middle", "high"]
FAST: dict[str, Any] = {
    **{"num_train_epochs": 1, "per_device_train_batch_size": 8, "leak_filter": "none", "disable_tqdm": True},
    "validation_split_percentage": 25,
}


@pytest.fixture
def grader(tiny_encoder_path: Path) -> PairGrader:
    return PairGrader(tiny_encoder_path)


def test_every_name_of_the_interface_is_there() -> None:
    assert len(sts_regression.__all__) == 10
    assert all(getattr(sts_regression, name).__doc__ for name in sts_regression.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = sts_regression.nothing


@pytest.mark.parametrize(
    "make",
    [
        lambda rows: rows,
        lambda rows: pd.DataFrame(rows, columns=["text_a", "text_b", "label"]).rename(
            columns={"text_a": "sentence1", "text_b": "sentence2"}
        ),
        lambda rows: Dataset.from_dict(dict(zip(["sentence1", "sentence2", "label"], zip(*rows, strict=True)))),  # noqa: B905
        lambda rows: dict(zip(["sentence1", "sentence2", "score"], zip(*rows, strict=True), strict=True)),
        lambda rows: [dict(zip(["sentence1", "sentence2", "label"], row, strict=True)) for row in rows],
        lambda rows: [
            (first, second, label if i % 2 else str(label)) for i, (first, second, label) in enumerate(rows)
        ],
    ],
    ids=["triples", "DataFrame", "Dataset", "columns", "rows by column", "labels of two types"],
)
def test_pairs_of_every_kind_train_as_the_command_does(
    make: Callable[[Any], Any], grader: PairGrader, tiny_encoder_path: Path, tmp_path: Path
) -> None:
    file = tmp_path / "pairs.csv"
    pd.DataFrame(ROWS, columns=["sentence1", "sentence2", "label"]).to_csv(file, index=False)
    words = [f"--{name}={value}" for name, value in FAST.items()]
    names = [f"--train_file={file}", f"--model_name_or_path={tiny_encoder_path}", f"--output_dir={tmp_path / 'run'}"]
    run_stages([*words, *names, "--report_to=none"])
    expected = PairGrader(tmp_path / "run").grade([row[:2] for row in ROWS])
    assert grader.fit(make(ROWS), **FAST).grade([row[:2] for row in ROWS]) == expected


def test_a_trained_model_grades_encodes_searches_and_measures(grader: PairGrader) -> None:
    named = [(first, second, NAMES[label]) for first, second, label in ROWS]
    grader.fit(named, eval_pairs=named, test_pairs=named, grades=NAMES, **FAST)
    [graded] = grader.grade([("the cat", "a dog")])
    for one in (("the cat", "a dog"), ["the cat", "a dog"], {"sentence1": "the cat", "sentence2": "a dog"}):
        assert grader.grade(one) == graded
    assert set(graded) == {"score", "grade", "cosine", "unreliable"}
    assert graded["grade"] in NAMES
    embeddings = grader.encode(["the cat", "a dog"])
    assert embeddings.shape == (2, 32)
    np.testing.assert_allclose(grader.encode("the cat"), embeddings[0], atol=1e-6)
    cosine = embeddings[0] @ embeddings[1] / np.linalg.norm(embeddings[0]) / np.linalg.norm(embeddings[1])
    assert graded["cosine"] == pytest.approx(cosine, abs=1e-5)
    [hits] = grader.search("the cat", ["a dog", "water"], k=1)
    assert list(hits[0]) == ["text", "index", "score", "unreliable"]
    assert len(grader.search(["the cat", "water"], ["a dog", "water"], score="cosine")[0]) == 2
    measures = grader.evaluate(named)
    assert grader.folder is not None
    record = json.loads((grader.folder / "run.json").read_text())
    assert measures["spearman_head"] == pytest.approx(record["results"]["after training"]["test"]["spearman_head"])
    assert "accuracy_head" in measures


def test_a_grader_shows_its_model_and_its_grades(grader: PairGrader, tiny_encoder_path: Path, tmp_path: Path) -> None:
    assert repr(grader) == f"PairGrader({str(tiny_encoder_path)!r}, grades=None)"
    grader.fit([(*row[:2], NAMES[row[2]]) for row in ROWS], grades=NAMES, **FAST)  # in a temporary folder
    assert repr(grader) == f"PairGrader({str(tiny_encoder_path)!r}, grades=['low', 'middle', 'high'])"
    grader.fit(ROWS, output_dir=tmp_path / "run", label_values=list(range(11)), **FAST)
    assert repr(grader) == f"PairGrader({str(tmp_path / 'run')!r}, grades=[0, 1, 2, 3, 4, 5, ...])"


def test_loading_and_saving_draw_no_bars(
    tiny_encoder_path: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    grader = PairGrader(tiny_encoder_path)
    grader.fit(ROWS, quiet=True, **FAST)
    grader.save(tmp_path / "saved")
    assert capfd.readouterr() == ("", "")


def test_quiet_means_that_a_program_with_handlers_hears_nothing(
    grader: PairGrader, caplog: pytest.LogCaptureFixture
) -> None:
    package = logging.getLogger("sts_regression")
    level = package.level
    with caplog.at_level(logging.DEBUG):
        grader.fit(ROWS, quiet=True, **FAST)
        grader.evaluate([(*row[:2], row[2] / 2) for row in ROWS], quiet=True)
    assert [record.name for record in caplog.records if record.name.startswith("sts_regression")] == []
    assert package.level == level
    with caplog.at_level(logging.INFO):
        grader.evaluate([(*row[:2], row[2] / 2) for row in ROWS])
    assert "label scale" in caplog.text


def test_an_unknown_device_is_named(tiny_encoder_path: Path) -> None:
    with pytest.raises(ValueError, match="`device` 'gpu' is unknown to torch"):
        PairGrader(tiny_encoder_path, device="gpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there_is_named(tiny_encoder_path: Path) -> None:
    with pytest.raises(ValueError, match="`device` 'cuda' cannot be used"):
        PairGrader(tiny_encoder_path, device="cuda")


def test_a_grader_does_not_depend_on_the_working_folder(
    tiny_encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "models").mkdir()
    shutil.copytree(tiny_encoder_path, tmp_path / "models" / "encoder")
    monkeypatch.chdir(tmp_path / "models")
    grader = PairGrader("encoder")
    monkeypatch.chdir(tmp_path)
    grader.fit(ROWS, output_dir="run", **FAST)
    monkeypatch.chdir(tmp_path / "models")
    grader.save("saved")
    assert grader.folder == tmp_path / "run"
    assert PairGrader("saved").verdict == grader.verdict
    assert (tmp_path / "models" / "saved" / "report.html").is_file()


def test_the_scale_of_labels_is_set_by_the_argument_that_evaluate_has(
    grader: PairGrader, caplog: pytest.LogCaptureFixture
) -> None:
    grader.fit(ROWS, quiet=True, **FAST)
    rows = [(*row[:2], 50 * row[2]) for row in ROWS]
    with caplog.at_level(logging.INFO):
        grader.evaluate(rows)
    [line] = [message for message in caplog.messages if "sets another" in message]
    assert "`label_values` sets another" in grader_module.as_keywords_of_evaluate(line)
    assert grader.evaluate(rows, label_values=[0, 50, 100], quiet=True)
    with pytest.raises(ValueError, match=r"such as `label_values=\[1, 3\]`\. If not, correct the labels"):
        grader.evaluate([(*row[:2], 1 + row[2]) for row in ROWS])


@pytest.mark.parametrize("quiet", [False, True])
def test_reversed_labels_are_noticed_when_a_model_is_evaluated(
    grader: PairGrader, quiet: bool, caplog: pytest.LogCaptureFixture
) -> None:
    texts = [f"the {first}" for first in ("cat", "dog", "man", "park", "water")]
    rows = [(one, other, 0 if one == other else 2) for one in texts for other in texts]
    with caplog.at_level(logging.INFO):
        measures = grader.evaluate(rows, label_values=[0, 1, 2], quiet=quiet)
    assert measures["spearman_cosine"] < -0.5
    assert ("The scores and the labels of the test pairs correlate at -0." in caplog.text) != quiet


def test_what_is_saved_loads_again(grader: PairGrader, tmp_path: Path) -> None:
    grader.fit(ROWS, **FAST)
    grader.save(tmp_path / "saved")
    assert grader.folder is not None
    for folder in (tmp_path / "saved", grader.folder):
        for file in ("tokenizer.json", "encoder/tokenizer.json"):  # read without transformers
            tokenizer = Tokenizer.from_file(str(folder / file))
            assert [len(row.ids) for row in tokenizer.encode_batch(["water", "water " * 500])] == [3, 128], file
    assert PairGrader(tmp_path / "saved").grade(ROWS[:2]) == grader.grade(ROWS[:2])
    with pytest.raises(ValueError, match="is the folder of the run, which already holds the checkpoint"):
        grader.save(str(grader.folder))


def test_a_saved_grader_keeps_report_and_verdict(grader: PairGrader, tmp_path: Path) -> None:
    grader.save(tmp_path / "untrained")
    assert PairGrader(tmp_path / "untrained").verdict is None
    grader.fit(ROWS, **FAST)
    assert grader.verdict is not None
    assert grader.folder is not None
    report = (grader.folder / "report.html").read_text()
    for saved, other in (("first", grader), ("second", PairGrader(grader.folder))):
        other.save(tmp_path / saved)
        assert PairGrader(tmp_path / saved).verdict == grader.verdict
        assert (tmp_path / saved / "report.html").read_text() == report
    PairGrader(tmp_path / "second").save(tmp_path / "second")
    assert PairGrader(tmp_path / "second").verdict == grader.verdict
    PairGrader(tmp_path / "untrained").save(tmp_path / "first")
    assert PairGrader(tmp_path / "first").verdict is None
    assert not (tmp_path / "first" / "report.html").exists()
    assert grader.folder is not None
    other = PairGrader(grader.name_or_path).fit(ROWS, loss="mse", **FAST)  # replaces nothing: another folder
    assert other.folder is not None
    (other.folder / "test_scores.parquet").touch()
    grader.save(other.folder)
    left = {path.name for path in other.folder.iterdir()}
    assert not left & {"README.md", "options.json", "test_scores.parquet", "loss_curve.png", "scores.png"}
    assert (other.folder / "run.json").read_bytes() == (grader.folder / "run.json").read_bytes()


def test_a_table_may_have_further_columns_of_several_types(grader: PairGrader) -> None:
    frame = pd.DataFrame(ROWS, columns=["sentence1", "sentence2", "label"])
    frame["notes"] = [1.5, "seen twice", None] * 8
    whole = frame[["sentence1", "sentence2", "label"]]
    pairs = [row[:2] for row in ROWS]
    expected = PairGrader(grader.name_or_path).fit(whole, **FAST).grade(pairs)
    assert PairGrader(grader.name_or_path).fit(frame, **FAST).grade(pairs) == expected
    frame.loc[5, "sentence2"] = np.nan
    with pytest.raises(ValueError, match="line 6: `sentence2` is empty"):
        grader.fit(frame, **FAST)


def test_no_pairs_have_no_grades(grader: PairGrader) -> None:
    grader.fit(ROWS, **FAST)
    assert grader.grade([]) == []


def test_a_corpus_may_be_a_column_of_a_table(grader: PairGrader) -> None:
    texts = pd.Series([f"a {word}" for word in WORDS], index=range(100, 100 + len(WORDS)))
    (hits,) = grader.search("a cat", texts, k=2, score="cosine")
    assert hits[0]["text"] == "a cat"
    assert grader.search("a cat", []) == [[]]


def test_a_model_is_not_saved_to_a_file(grader: PairGrader, tmp_path: Path) -> None:
    (tmp_path / "model").write_text("")
    with pytest.raises(ValueError, match="is a file"):
        grader.save(tmp_path / "model")


def test_a_model_in_the_folder_is_not_replaced(grader: PairGrader, tmp_path: Path) -> None:
    (tmp_path / "encoder").mkdir()
    with pytest.raises(ValueError, match="has a folder 'encoder', which the encoder of the trained model would"):
        grader.save(tmp_path)
    with pytest.raises(ValueError, match=r"`output_dir` .* has a folder 'encoder'"):
        grader.fit(ROWS, output_dir=tmp_path, **FAST)
    assert [path.name for path in tmp_path.iterdir()] == ["encoder"]


def test_files_of_others_are_not_replaced(grader: PairGrader, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    message = "holds files that no run wrote, such as 'config.json'. Name another one"
    with pytest.raises(ValueError, match=re.escape(f"{message}.")):
        grader.save(tmp_path)
    with pytest.raises(ValueError, match=re.escape(f"{message}, or replace files of the same names with `overwrite")):
        grader.fit(ROWS, output_dir=tmp_path, **FAST)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["{}"]


def test_options_may_be_mappings(grader: PairGrader) -> None:
    schedule: dict[str, Any] = {"lr_scheduler_type": "cosine_with_min_lr", "lr_scheduler_kwargs": {"min_lr_rate": 0.5}}
    folder = grader.fit(ROWS, **FAST, **schedule).folder
    assert folder is not None
    arguments = json.loads((folder / "run.json").read_text(encoding="utf-8"))["arguments"]
    assert arguments["lr_scheduler_kwargs"] == {"min_lr_rate": 0.5}


def test_training_starts_afresh(grader: PairGrader, tiny_encoder_path: Path) -> None:
    pairs = [row[:2] for row in ROWS]
    grades = grader.fit(ROWS, **FAST).grade(pairs)
    first = grader.folder
    assert grader.fit(ROWS, **FAST).grade(pairs) == grades
    assert grader.folder is not None
    assert first is not None
    assert not first.exists()
    options = json.loads((grader.folder / "options.json").read_text())["options"]
    assert options["model_name_or_path"] == str(tiny_encoder_path)


def test_code_of_an_encoder_may_still_run_after_training(
    grader: PairGrader, tiny_encoder_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed = []

    def find(name: str | None, revision: str, trust_remote_code: bool) -> Any:
        allowed.append((name, trust_remote_code))
        return find_model(name, revision)

    monkeypatch.setattr(grader_module, "find_model", find)
    trusting = PairGrader(tiny_encoder_path, trust_remote_code=True).fit(ROWS, **FAST)
    assert allowed == [(str(tiny_encoder_path), True), (str(trusting.folder), True)]


def test_columns_are_those_of_training_or_named(grader: PairGrader) -> None:
    table = pd.DataFrame(ROWS, columns=["request", "reply", "human"])
    table["score"] = [2 - label for *_, label in ROWS]  # another system's
    grader.fit(table, sentence1_column="request", sentence2_column="reply", label_column="human", **FAST)
    pairs = [row[:2] for row in ROWS]
    assert grader.grade(table) == grader.grade(pairs)
    right = grader.evaluate(ROWS, quiet=True)
    assert grader.evaluate(table, quiet=True) == right
    assert grader.evaluate(table, label_column="score", quiet=True) != right
    renamed = table.rename(columns={"request": "q", "reply": "a"})
    assert grader.grade(renamed, sentence1_column="q", sentence2_column="a") == grader.grade(pairs)
    numbered: Any = {"sentence1_column": 0, "sentence2_column": 1}  # as pandas reads a file without a header
    grader.fit(pd.DataFrame(ROWS), **numbered, label_column=2, **FAST)
    assert grader.grade(pd.DataFrame(ROWS)) == grader.grade(pd.DataFrame(ROWS), **numbered) == grader.grade(pairs)


@pytest.mark.parametrize("corpus", ["a text", pd.DataFrame({"text": ["a text"]}), {"text": ["a text"]}])
def test_a_corpus_is_a_sequence_of_texts(grader: PairGrader, corpus: Any) -> None:
    with pytest.raises(ValueError, match="`corpus` must be texts, but is a"):
        grader.search("a", corpus)
    assert len(grader.search("a", ["a text", "another"], k=np.int64(1))[0]) == 1  # type: ignore[arg-type]


def test_half_a_character_is_named(grader: PairGrader) -> None:
    half = "\ud83d"
    calls: list[tuple[Callable[[], Any], str]] = [
        (lambda: grader.fit([*ROWS, ("the cat", half, 1)], **FAST), "`sentence2` of pair "),
        (lambda: grader.evaluate({"sentence1": ["a"], "sentence2": [half], "label": [1]}), "`sentence2` of pair 1 is"),
        (lambda: grader.search(half, ["a dog"]), "`queries`: item 0 is"),
        (lambda: grader.search("a dog", ["a", half]), "`corpus`: item 1 is"),
        (lambda: grader.encode(half), "`sentences`: item 0 is"),
    ]
    for call, message in calls:
        with pytest.raises(ValueError, match=rf"{message}.*'\\ud83d', half of a character \(a lone surrogate\)"):
            call()


def test_queries_may_be_of_any_kind(grader: PairGrader) -> None:
    texts, corpus = ["the cat", "a dog"], ["a", "the dog"]
    expected = grader.search(texts, corpus)
    kinds: list[Callable[[list[str]], Any]] = [iter, np.array, pd.Series, tuple]
    for kind in kinds:
        assert grader.search(kind(texts), kind(corpus)) == expected


def test_an_untrained_head_is_not_asked(grader: PairGrader) -> None:
    with pytest.raises(ValueError, match=r"has no trained head\. Train it with `fit`"):
        grader.grade([("a", "b")])
    with pytest.raises(ValueError, match="there is no run to publish"):
        grader.push_to_hub("me/model")
    measures = {"spearman_cosine", "pearson_cosine", "kendall_cosine"}
    assert set(grader.evaluate(ROWS)) == {*measures, "ndcg@10_cosine"}  # three second texts with many first ones each
    assert set(grader.evaluate([(first, f"{second} {first}", label) for first, second, label in ROWS])) == measures
    assert len(grader.search("the cat", ["a dog"])[0]) == 1  # by the cosine


def test_a_loss_without_a_head_is_named_where_grades_are_asked_for(grader: PairGrader) -> None:
    grader.model.config.loss_type = "cosent"
    with pytest.raises(
        ValueError, match=r"^the loss cosent trains no head, so there are no grades\. Fit with another"
    ):
        grader.grade([("a", "b")])


def test_it_reads_no_command_line_and_leaves_logging_alone(
    grader: PairGrader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["notebook", "--no-such-option"])
    handlers = list(logging.getLogger().handlers)
    grader.fit(ROWS, **FAST)
    assert logging.getLogger().handlers == handlers


@pytest.mark.parametrize("pairs", [[], pd.DataFrame({"sentence1": [], "sentence2": [], "label": []})])
def test_no_pairs_are_refused(grader: PairGrader, pairs: Any) -> None:
    with pytest.raises(ValueError, match="train pairs: holds no pairs"):
        grader.fit(pairs)


def test_pairs_are_passed_or_named_but_not_both(grader: PairGrader) -> None:
    with pytest.raises(ValueError, match="`train_file` names pairs, but `fit` trains on the pairs that you pass"):
        grader.fit(ROWS, train_file="pairs.csv", **FAST)


def test_training_prints_what_the_command_prints(
    grader: PairGrader, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # pytest has some
    twice = [*ROWS, (*ROWS[0][:2], 2), (*ROWS[1][:2], 0)]
    grader.fit(twice, eval_pairs=ROWS, quiet=True, **FAST)
    assert not capsys.readouterr().out
    grader.fit(twice, eval_pairs=ROWS, **FAST)
    printed = capsys.readouterr().out
    assert "2 training pairs occur with different labels" in printed
    assert f"{grader.verdict}" in printed
    assert "sts-regression predict" not in printed
    assert "label scale 0 1 2, guessed; `label_values` sets another" in printed
    assert "--" not in printed
    grader.fit(ROWS, **FAST)
    in_stages = capsys.readouterr().out
    assert "Stage 2 of 2, on all pairs\n" in in_stages
    assert str(grader.folder) not in printed + in_stages  # a temporary folder
    assert not logging.getLogger("sts_regression").handlers


def test_labels_that_are_nodes_of_the_scale_are_on_it(grader: PairGrader) -> None:
    four = [(first, second, i % 4) for i, (first, second, _) in enumerate(ROWS)]
    grader.fit(four, eval_pairs=four, **FAST)
    low = [row for row in four if row[2] < 2]
    graded = grader.grade([row[:2] for row in low])
    mae = np.mean([abs(float(found["grade"]) - label) for found, (*_, label) in zip(graded, low, strict=True)])
    assert grader.evaluate(low)["mae_head"] == pytest.approx(mae)
    assert "mae_head" not in grader.evaluate(low, label_values=[0, 1])  # two other grades


def test_an_unknown_option_is_refused_with_the_one_that_is_meant(grader: PairGrader) -> None:
    with pytest.raises(ValueError, match=r"unknown option 'learnin_rate'\. Did you mean `learning_rate`\?"):
        grader.fit(ROWS, learnin_rate=1e-5)
    with pytest.raises(ValueError, match=r"unknown option 'grade'\. Did you mean `grades`\?"):
        grader.fit(ROWS, grade=NAMES)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda grader: grader.fit([(*row[:2], NAMES[row[2]]) for row in ROWS]), "`grades=[LOWEST, …, HIGHEST]`"),
        (
            lambda grader: grader.fit(ROWS[:4]),
            "Give at least 10 pairs, or development pairs with `eval_pairs`.",
        ),
        *(
            (
                lambda grader, grades=grades: grader.fit(ROWS, grades=grades),
                "`grades` must be a list, the lowest grade first, but is",
            )
            for grades in ("low", {"high": 1, "low": 0}, {"low", "high"}, {"low": 0, "high": 1}.keys())
        ),
        (lambda grader: grader.grade(["the cat"]), "`pairs` must hold two texts each, but pair 1 is one text."),
        (lambda grader: grader.evaluate(pd.DataFrame(ROWS, columns=["q", "a", "m"])), 'label_column="m"`'),
        (lambda grader: grader.grade({"q": ["a"], "a": ["b"]}), '`sentence1_column="q", sentence2_column="a"`'),
        (lambda grader: PairGrader("./gone"), "`name_or_path`: cannot load './gone'"),
    ],
)
def test_errors_name_arguments_of_python(grader: PairGrader, call: Callable[[PairGrader], Any], message: str) -> None:
    grader.model.config.head_is_trained = True  # so that it grades
    with pytest.raises(ValueError, match=re.escape(message)):
        call(grader)


def test_a_cross_encoder_has_no_embeddings(grader: PairGrader) -> None:
    grader.fit(ROWS, encoder_type="cross-encoder", **FAST)
    assert "cosine" not in grader.grade(ROWS[:1])[0]
    for call in (lambda: grader.encode("a"), lambda: grader.search("a", ["b"])):
        with pytest.raises(ValueError, match="needs a bi-encoder"):
            call()
