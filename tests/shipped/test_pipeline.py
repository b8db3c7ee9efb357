"""The pipeline for pairs: input, output, and the grades of the command, in a fresh process too."""

import copy
import csv
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from datasets import Dataset
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast, RobertaConfig
from transformers.pipelines.pt_utils import KeyDataset, KeyPairDataset

import run_sts
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.encoding import model_scorer
from sts_regression.pipeline_sts_regression import STSRegressionPipeline, grades_of

GRADES = ["irrelevant", "relevant", "highly relevant"]
# Of different lengths, one longer than the limit of the tests, texts that come twice, an empty one.
PAIRS = [
    ("the cat", "a big red house in the park, and the water"),
    ("the cat", "a dog"),
    ("a man", "a man"),
    ("water " * 40, "the cat"),
    ("", "a dog"),
]
MAX_LENGTH = 12  # tokens

# Loads a pipeline in a fresh process and prints its output for given pairs, in several forms.
GRADE = """
import json
import sys

from transformers import pipeline

pairs = json.loads(sys.argv[2])
grade = pipeline("semantic-textual-similarity", model=sys.argv[1], trust_remote_code=True)
print(json.dumps({
    "module": type(grade).__module__,
    "list": grade(pairs),
    "batched": grade(pairs, batch_size=4),
    "generator": list(grade((tuple(pair) for pair in pairs), batch_size=4)),
    "single": [grade({"sentence1": first, "sentence2": second}) for first, second in pairs],
}))
"""

MakeModel = Callable[..., STSRegressionModel]
MakePipeline = Callable[..., STSRegressionPipeline]


@pytest.fixture
def make_pipeline(
    make_model: MakeModel, tokenizer: PreTrainedTokenizerBase, monkeypatch: pytest.MonkeyPatch
) -> MakePipeline:
    monkeypatch.setattr(tokenizer, "model_max_length", MAX_LENGTH)

    def make(**options: Any) -> STSRegressionPipeline:
        return build_pipeline(make_model(**options), tokenizer=tokenizer, device="cpu")

    return make


def build_pipeline(model: STSRegressionModel, **options: Any) -> STSRegressionPipeline:
    """Takes options as they are: transformers' types know neither fast tokenizers nor names of devices."""
    return STSRegressionPipeline(model=model, **options)


def values(results: list[dict[str, Any]], name: str) -> list[float]:
    return [result[name] for result in results]


# Against the command


@pytest.mark.parametrize(
    "options",
    [["--grade_names", *GRADES], ["--encoder_type=cross-encoder", "--loss=binary_cross_entropy"]],
    ids=["bi-encoder", "cross-encoder"],
)
def test_a_fresh_process_grades_like_the_command(
    tiny_encoder_path: Path, tmp_path: Path, run_in_subprocess: Callable[..., str], options: list[str]
) -> None:
    pairs = PAIRS[:-1] * 2  # the command refuses empty sentences
    for name, labels in (("pairs.csv", GRADES if "--grade_names" in options else "012"), ("new.csv", None)):
        with (tmp_path / name).open("w", newline="") as file:
            rows = [(*pair, *([labels[i % 3]] if labels else [])) for i, pair in enumerate(pairs)]
            csv.writer(file).writerows([("sentence1", "sentence2", "label")[: len(rows[0])], *rows])
    data = [f"--{split}_file={tmp_path / 'pairs.csv'}" for split in ("train", "validation")]
    run_sts.run_stages(
        [
            *(*data, f"--predict_file={tmp_path / 'new.csv'}", f"--model_name_or_path={tiny_encoder_path}"),
            *(f"--output_dir={tmp_path / 'run'}", f"--max_seq_length={MAX_LENGTH}", "--num_train_epochs=1"),
            *("--report_to=none", "--disable_tqdm=true", *options),
        ]
    )
    with (tmp_path / "run" / "predictions.csv").open(newline="") as file:
        predicted = list(csv.DictReader(file))
    printed = json.loads(run_in_subprocess(GRADE, tmp_path / "run", json.dumps(pairs)).splitlines()[-1])
    assert printed.pop("module").startswith("transformers_modules.")
    for results in printed.values():
        assert len(results) == len(pairs)
        for result, row in zip(results, predicted, strict=True):
            assert str(result["grade"]) == row["grade"]
            assert set(result) == set(row) - {"sentence1", "sentence2"}
            assert result["unreliable"] == row["unreliable"]
            for name in set(result) - {"grade", "unreliable"}:
                assert result[name] == pytest.approx(float(row[name]), abs=1e-5)


@pytest.mark.parametrize("padding_side", ["right", "left"])
@pytest.mark.parametrize("loss_type", ["smooth_k2", "binary_cross_entropy", "cross_entropy"])
@pytest.mark.parametrize(
    ("encoder_type", "pooling"), [("bi-encoder", "mean"), ("bi-encoder", "cls"), ("cross-encoder", "cls")]
)
def test_batches_change_nothing(
    make_pipeline: MakePipeline,
    monkeypatch: pytest.MonkeyPatch,
    encoder_type: str,
    pooling: str,
    loss_type: str,
    padding_side: str,
) -> None:
    grade = make_pipeline(encoder_type=encoder_type, pooling=pooling, loss_type=loss_type, label_values=[1, 2, 3])
    monkeypatch.setattr(grade.tokenizer, "padding_side", padding_side)
    expected = model_scorer(grade.model, grade.tokenizer)(*map(list, zip(*PAIRS, strict=True)))
    for batch_size in (1, 2, 8):
        results = grade(PAIRS, batch_size=batch_size)
        assert values(results, "score") == pytest.approx(expected["head"].tolist(), abs=1e-5)
        if encoder_type == "bi-encoder":
            assert values(results, "cosine") == pytest.approx(expected["cosine"].tolist(), abs=1e-5)
        else:
            assert all(set(result) == {"score", "grade", "unreliable"} for result in results)


def test_padding_of_roberta_counts_no_positions(
    make_pipeline: MakePipeline, tokenizer: PreTrainedTokenizerBase
) -> None:
    config = RobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
        type_vocab_size=2,
        pad_token_id=tokenizer.pad_token_id,
    )
    for encoding in ("auto", "padded"):
        grade = make_pipeline(encoder_config=config, encoding=encoding)
        alone, together = (grade(PAIRS, batch_size=batch_size) for batch_size in (1, 8))
        assert values(together, "score") == pytest.approx(values(alone, "score"), abs=1e-5)


def test_a_text_of_a_batch_is_encoded_once(make_pipeline: MakePipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    grade = make_pipeline()
    encoded = []
    encode = grade.model.get_text_features

    def count(input_ids: torch.Tensor, **inputs: Any) -> torch.Tensor:
        encoded.append(len(input_ids))
        return encode(input_ids, **inputs)

    monkeypatch.setattr(grade.model, "get_text_features", count)
    grade([("a cat", "a dog"), ("a cat", "a man"), ("a cat", "a cat")], batch_size=3)
    assert encoded == [3]


@pytest.mark.gpu
def test_a_gpu_is_used_where_there_is_one(make_model: MakeModel, tokenizer: PreTrainedTokenizerBase) -> None:
    grade = build_pipeline(make_model(), tokenizer=tokenizer)
    assert grade.model.device.type == "cuda"
    on_cpu = build_pipeline(make_model(), tokenizer=tokenizer, device="cpu")(PAIRS)
    assert values(grade(PAIRS, batch_size=3), "score") == pytest.approx(values(on_cpu, "score"), abs=1e-4)


# Output


def test_the_grade_is_the_name_of_the_nearest_or_its_value(make_pipeline: MakePipeline) -> None:
    named, unnamed = make_pipeline(label_values=[0, 1, 2], label_names=GRADES), make_pipeline(label_values=[0, 1, 2])
    for score, grade in ((-3.0, 0), (0.6, 1), (9.0, 2)):
        for pipe, expected in ((named, GRADES[grade]), (unnamed, float(grade))):
            torch.nn.init.zeros_(pipe.model.head.weight)
            torch.nn.init.constant_(pipe.model.head.bias, score)
            result = pipe(("a cat", "a dog"))
            assert (result["score"], result["grade"]) == (pytest.approx(score), expected)
            assert isinstance(result["cosine"], float)


@pytest.mark.parametrize(("nodes", "grades"), [([0, 57, 80], ["0", "57", "80"]), ([0, 0.5, 1], ["0.0", "0.5", "1.0"])])
def test_whole_grades_have_no_decimals(make_pipeline: MakePipeline, nodes: list[float], grades: list[str]) -> None:
    pipe = make_pipeline(label_values=nodes)
    assert list(map(str, grades_of(pipe.model.config))) == grades
    result = pipe(("a cat", "a dog"))
    assert str(result["grade"]) in grades
    assert isinstance(result["score"], float)


def test_a_loss_that_trains_no_head_leaves_the_cosine(make_pipeline: MakePipeline) -> None:
    results = make_pipeline(loss_type="cosent")(PAIRS, batch_size=2)
    assert all(set(result) == {"cosine", "unreliable"} for result in results)
    assert values(results, "cosine") == pytest.approx(values(make_pipeline()(PAIRS), "cosine"))


def test_half_precision_gives_plain_numbers(make_pipeline: MakePipeline) -> None:
    grade = make_pipeline()
    expected = grade(PAIRS[0])
    grade.model.bfloat16()
    result = grade(PAIRS[0])
    assert result["score"] == pytest.approx(expected["score"], abs=0.05)
    assert json.loads(json.dumps(result)) == result


# Input


def as_dataset() -> Dataset:
    first, second = zip(*PAIRS, strict=True)
    return Dataset.from_dict({"sentence1": first, "sentence2": second, "label": range(len(PAIRS))})


@pytest.mark.parametrize(
    "inputs",
    [
        PAIRS,
        tuple(PAIRS),
        [list(pair) for pair in PAIRS],
        [{"sentence1": first, "sentence2": second, "label": 1} for first, second in PAIRS],
        [{"text": first, "text_pair": second} for first, second in PAIRS],
        as_dataset(),
        as_dataset().to_iterable_dataset(),
        KeyPairDataset(as_dataset(), "sentence1", "sentence2"),
        KeyDataset([{"pair": pair} for pair in PAIRS], "pair"),  # type: ignore[arg-type] # any sequence of rows
    ],
    ids=["list", "tuple", "lists", "sentences", "texts", "dataset", "iterable dataset", "pair dataset", "key dataset"],
)
@pytest.mark.parametrize("batch_size", [1, 2])
def test_pairs_come_in_many_forms(make_pipeline: MakePipeline, inputs: Any, batch_size: int) -> None:
    grade = make_pipeline()
    results = grade(inputs, batch_size=batch_size)
    assert isinstance(results, list) is isinstance(inputs, list | tuple)
    assert values(list(results), "score") == pytest.approx(values(grade(PAIRS), "score"), abs=1e-5)


@pytest.mark.parametrize(
    "pair",
    [("a cat", "a dog"), ["a cat", "a dog"], {"sentence1": "a cat", "sentence2": "a dog"}],
    ids=["tuple", "list", "dict"],
)
def test_one_pair_gives_one_result(make_pipeline: MakePipeline, pair: Any) -> None:
    grade = make_pipeline()
    assert grade(pair) == grade([("a cat", "a dog")])[0]


def test_pairs_of_a_generator_are_read_as_results_are(make_pipeline: MakePipeline) -> None:
    read = []

    def pairs() -> Iterator[tuple[str, str]]:
        for pair in PAIRS:
            read.append(pair)
            yield pair

    for inputs in (pairs(), iter(pairs())):
        read.clear()
        results = iter(make_pipeline()(inputs))
        next(results)
        assert len(read) < len(PAIRS)
        assert len(list(results)) == len(PAIRS) - 1


def test_no_pairs_give_no_results(make_pipeline: MakePipeline) -> None:
    grade = make_pipeline()
    assert grade([]) == list(grade(iter([]))) == []


@pytest.mark.parametrize(
    "inputs",
    [
        "a cat",
        ["a cat"],
        ["a cat", "a dog", "a man"],
        [("a cat", None)],
        [("a cat", "a dog"), ("a cat",)],
        {"sentence1": "a cat", "text_pair": "a dog"},
        3,
    ],
    ids=["text", "one text", "texts", "missing", "half a pair", "mixed keys", "number"],
)
def test_what_is_no_pair_is_refused(make_pipeline: MakePipeline, inputs: Any) -> None:
    with pytest.raises(ValueError, match=r"`inputs` must be pairs of two strings, each a tuple, .* but hold"):
        make_pipeline()(inputs)


def test_a_text_that_is_missing_is_shown_with_its_pair(make_pipeline: MakePipeline) -> None:
    with pytest.raises(ValueError, match=r"but hold \('a cat', None\)\."):
        make_pipeline()(("a cat", None))


@pytest.mark.parametrize("inputs", [("a cat", "\ud83d"), [("a", "b"), {"text": "\ud83d", "text_pair": "a"}]])
def test_half_a_character_is_refused(make_pipeline: MakePipeline, inputs: Any) -> None:
    with pytest.raises(
        ValueError, match=r"`inputs` hold .*'\\ud83d'.*, with half of a character \(a lone surrogate\)"
    ):
        make_pipeline()(inputs)


@pytest.mark.parametrize("encoder_type", ["bi-encoder", "cross-encoder"])
def test_texts_without_a_token_are_scored(make_model: MakeModel, encoder_type: str) -> None:
    tokenizer = PreTrainedTokenizerFast(  # adds no special tokens
        tokenizer_object=Tokenizer(models.WordLevel({"[PAD]": 0, "[UNK]": 1, "cat": 2}, "[UNK]")),
        pad_token="[PAD]",
        model_max_length=MAX_LENGTH,
    )
    grade = build_pipeline(make_model(encoder_type=encoder_type), tokenizer=tokenizer, device="cpu")
    scorer = model_scorer(grade.model, grade.tokenizer)
    for pairs in ([("", "")], [("", ""), ("cat", "")]):
        first, second = map(list, zip(*pairs, strict=True))
        scores = values(grade(pairs, batch_size=2), "score")
        assert scores == pytest.approx(scorer(first, second)["head"].tolist(), abs=1e-5)


def test_a_very_long_text_is_cut_before_it_is_paired(make_pipeline: MakePipeline) -> None:
    grade = make_pipeline(encoder_type="cross-encoder")
    long, cut = ("water " * 100_000, "a cat"), ("water " * MAX_LENGTH, "a cat")
    assert grade(long)["score"] == pytest.approx(grade(cut)["score"], abs=1e-6)


@pytest.mark.parametrize("encoder_type", ["bi-encoder", "cross-encoder"])
def test_threads_share_a_tokenizer(make_pipeline: MakePipeline, encoder_type: str) -> None:
    grade = make_pipeline(encoder_type=encoder_type)
    inputs = [[(f"water {i} " * (1 + 7 * i % 60), f"the cat {i} " * (1 + 11 * i % 60))] * 4 for i in range(15)]
    expected = list(map(grade, inputs))
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(grade, inputs * 20)) == expected * 20


# Saved again


def test_a_saved_pipeline_names_itself(
    make_pipeline: MakePipeline, tmp_path: Path, run_in_subprocess: Callable[..., str]
) -> None:
    make_pipeline().save_pretrained(tmp_path / "first")
    code = """
import sys
from transformers import pipeline

grade = pipeline(model=sys.argv[1], trust_remote_code=True)
grade.save_pretrained(sys.argv[2])
saved = pipeline(model=sys.argv[2], trust_remote_code=True)
print(grade(("a cat", "a dog"))["score"], saved(("a cat", "a dog"))["score"])
"""
    scores = run_in_subprocess(code, tmp_path / "first", tmp_path / "second").split()
    assert [float(score) for score in scores] == pytest.approx([make_pipeline()(("a cat", "a dog"))["score"]] * 2)
    configs = [json.loads((tmp_path / name / "config.json").read_text()) for name in ("first", "second")]
    assert configs[0]["custom_pipelines"] == configs[1]["custom_pipelines"]
    assert list(configs[0]["custom_pipelines"]) == ["semantic-textual-similarity"]


def test_a_model_scores_pairs_as_its_pipeline_does(
    make_model: Callable[..., STSRegressionModel], tokenizer: PreTrainedTokenizerBase
) -> None:
    model = make_model(label_values=[0, 1, 2]).train()
    pairs = [("a cat", "the dog"), ("the park", "water")]
    scored = model.score(pairs, tokenizer)
    grade = STSRegressionPipeline(model=copy.deepcopy(model).eval(), tokenizer=tokenizer)  # type: ignore[arg-type] # typed for some of them
    assert [row["score"] for row in scored] == pytest.approx([grade(pair)["score"] for pair in pairs], abs=1e-5)
    assert model.training


def test_a_model_scores_one_pair_and_refuses_a_table(
    make_model: Callable[..., STSRegressionModel], tokenizer: PreTrainedTokenizerBase
) -> None:
    """The names of columns are no pair of texts."""
    model = make_model(label_values=[0, 1, 2])
    first, second = "a cat", "the dog"
    [expected] = model.score([(first, second)], tokenizer)
    one_pair: tuple[Any, ...] = ((first, second), {"sentence1": first, "sentence2": second})
    for pairs in (*one_pair, iter([(first, second)])):
        assert model.score(pairs, tokenizer) == [pytest.approx(expected, abs=1e-6)]
    table = {"sentence1": [first, first], "sentence2": [second, second]}
    for pairs in (table, pd.DataFrame(table)):
        with pytest.raises(ValueError, match="must be pairs of two strings"):
            model.score(pairs, tokenizer)
