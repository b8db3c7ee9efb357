"""Checkpoints in mteb's own runner, as the document says, on a task whose pairs are made here."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset, DatasetDict
from scipy import stats
from transformers import PreTrainedTokenizerBase

import run_sts
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.encoding import encode_sentences

mteb = pytest.importorskip("mteb", reason="mteb is not installed")
from mteb.abstasks import AbsTaskSTS  # noqa: E402
from mteb.abstasks.task_metadata import TaskMetadata  # noqa: E402

DOCUMENT = Path(run_sts.__file__).resolve().parent / "docs" / "evaluating.md"
PAIRS: dict[str, Any] = {
    "sentence1": ["the cat", "a red house", "the dog in the park", "water", "a big man"],
    "sentence2": ["a cat", "the water", "a dog", "the big house in the park", "a big man"],
    "score": [4.0, 0.5, 3.0, 1.0, 5.0],
}


class LocalSTSTask(AbsTaskSTS):
    metadata = TaskMetadata(
        name="LocalSTSTask",
        type="STS",
        description="Pairs of a test.",
        dataset={"path": "local/pairs", "revision": "1"},
        main_score="cosine_spearman",
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
    )

    def load_data(self, num_proc: int | None = None, **kwargs: Any) -> None:
        self.dataset = DatasetDict({"test": Dataset.from_dict(PAIRS)})
        self.data_loaded = True


def run_the_document(checkpoint: Path, more: str = "") -> dict[str, float]:
    [code] = re.findall(r"```python\n(import mteb\n.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    *lines, last = code.replace('"outputs/pairs-smooth_k2"', repr(str(checkpoint))).strip().splitlines()
    shown = last.replace('mteb.get_tasks(["STSBenchmark"])', "LocalSTSTask()")
    assert shown != last
    names: dict[str, Any] = {"LocalSTSTask": LocalSTSTask}
    exec("\n".join([*lines, more, f"results = {shown}"]), names)
    return names["results"].task_results[0].scores["test"][0]


def check_correlations(
    checkpoint: Path, tokenizer: PreTrainedTokenizerBase, scores: dict[str, float], prefix: str = ""
) -> None:
    model = STSRegressionModel.from_pretrained(checkpoint).eval()
    u, v = (encode_sentences(model, tokenizer, PAIRS[name], prefix=prefix) for name in ("sentence1", "sentence2"))
    cosine = torch.cosine_similarity(u, v)
    assert scores["cosine_spearman"] == pytest.approx(stats.spearmanr(cosine, PAIRS["score"]).statistic, abs=1e-5)
    assert scores["cosine_pearson"] == pytest.approx(stats.pearsonr(cosine, PAIRS["score"]).statistic, abs=1e-5)


@pytest.mark.parametrize(
    ("options", "more"),
    [
        ({}, ""),
        ({"normalize_embeddings": True}, ""),
        ({"sentence1_prefix": "a man ", "sentence2_prefix": "a man "}, ""),
        ({"sentence1_prefix": "a man ", "sentence2_prefix": "the "}, 'model.default_prompt_name = "query"'),
    ],
    ids=["plain", "normalized", "one prefix", "two prefixes"],
)
def test_the_runner_finds_our_cosines_correlation(
    make_model: Callable[..., STSRegressionModel],
    tokenizer: PreTrainedTokenizerBase,
    save_checkpoint: Callable[..., Path],
    tmp_path: Path,
    options: dict[str, Any],
    more: str,
) -> None:
    checkpoint = save_checkpoint(make_model(**options), tokenizer, tmp_path)
    scores = run_the_document(checkpoint, more)
    check_correlations(checkpoint, tokenizer, scores, options.get("sentence1_prefix", ""))


def test_another_model_is_not_answered_for_with_the_results_of_the_first(
    make_model: Callable[..., STSRegressionModel],
    tokenizer: PreTrainedTokenizerBase,
    save_checkpoint: Callable[..., Path],
    tmp_path: Path,
) -> None:
    model = make_model()
    first = run_the_document(save_checkpoint(model, tokenizer, tmp_path / "first"))
    torch.nn.init.normal_(model.get_parameter("encoder.embeddings.word_embeddings.weight"))
    second = run_the_document(save_checkpoint(model, tokenizer, tmp_path / "second"))
    assert abs(second["cosine_pearson"] - first["cosine_pearson"]) > 1e-3  # more than rounding errors
    check_correlations(tmp_path / "second", tokenizer, second)
