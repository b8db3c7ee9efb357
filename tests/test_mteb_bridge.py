"""Checkpoints in mteb's own runner, on tasks whose pairs are made here."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset, DatasetDict
from scipy import stats
from torch.utils.data import DataLoader
from transformers import PreTrainedTokenizerBase

from sts_regression.encoding import encode_sentences
from sts_regression.modeling_sts_regression import STSRegressionModel

mteb = pytest.importorskip("mteb", reason="the mteb extra is not installed")
from mteb.abstasks import AbsTaskSTS  # noqa: E402
from mteb.abstasks.task_metadata import TaskMetadata  # noqa: E402
from mteb.cache import ResultCache  # noqa: E402
from mteb.models import EncoderProtocol  # noqa: E402

from sts_regression.mteb_bridge import STSRegressionEncoder  # noqa: E402

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


@pytest.fixture
def checkpoint(
    make_model: Callable[..., STSRegressionModel], tokenizer: PreTrainedTokenizerBase, tmp_path: Path
) -> Path:
    make_model().save_pretrained(tmp_path / "checkpoint")
    tokenizer.save_pretrained(tmp_path / "checkpoint")
    return tmp_path / "checkpoint"


def run_in_mteb(model: STSRegressionEncoder, cache: Path) -> dict[str, float]:
    results = mteb.evaluate(model, LocalSTSTask(), cache=ResultCache(cache), show_progress_bar=False)
    return results.task_results[0].scores["test"][0]


def test_the_runner_finds_the_cosines_correlation(
    checkpoint: Path, tokenizer: PreTrainedTokenizerBase, tmp_path: Path
) -> None:
    model = STSRegressionEncoder(str(checkpoint))
    assert isinstance(model, EncoderProtocol)
    scores = run_in_mteb(model, tmp_path / "cache")
    u, v = (encode_sentences(model.model, tokenizer, PAIRS[name]) for name in ("sentence1", "sentence2"))
    cosine = torch.cosine_similarity(u, v)
    assert scores["cosine_spearman"] == pytest.approx(stats.spearmanr(cosine, PAIRS["score"]).statistic)
    assert scores["spearman"] == pytest.approx(scores["cosine_spearman"])


def test_a_model_trained_anew_in_the_same_folder_is_measured_anew(checkpoint: Path, tmp_path: Path) -> None:
    before = run_in_mteb(STSRegressionEncoder(str(checkpoint)), tmp_path / "cache")
    model = STSRegressionModel.from_pretrained(checkpoint)
    with torch.no_grad():
        model.encoder.embeddings.word_embeddings.weight.copy_(
            torch.randn(model.encoder.embeddings.word_embeddings.weight.shape)
        )
    model.save_pretrained(checkpoint)
    assert run_in_mteb(STSRegressionEncoder(str(checkpoint)), tmp_path / "cache") != before


def test_embeddings_keep_the_order_of_the_texts(checkpoint: Path, tokenizer: PreTrainedTokenizerBase) -> None:
    model = STSRegressionEncoder(str(checkpoint), device="cpu")
    batches: Any = [{"text": ["the big house in the park", "a"]}, {"text": ["the cat"]}]
    embeddings = model.encode(batches, batch_size=2, prompt_type=None)
    assert embeddings.shape == (3, 32)
    alone = model.encode(DataLoader(Dataset.from_dict({"text": ["the cat"]})))
    np.testing.assert_allclose(embeddings[2], alone[0], atol=1e-6)


def test_a_cross_encoder_is_refused(
    make_model: Callable[..., STSRegressionModel], tokenizer: PreTrainedTokenizerBase, tmp_path: Path
) -> None:
    make_model(encoder_type="cross-encoder").save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="is a cross-encoder, which has no embeddings for mteb to compare"):
        STSRegressionEncoder(str(tmp_path))
