"""Encoders of common shapes with random weights, and sentences of random words that are as long as those of STS-B."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import AutoModel, BertConfig, ModernBertConfig, PretrainedConfig, PreTrainedTokenizerFast

from benchmarks.growth import SHAPES
from sts_regression.data.pairs import read_pairs
from sts_regression.quickstart import BUNDLED_FOLDER

SPECIAL_WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
TINY: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
SHAPE_CONFIGS: dict[str, Callable[[], PretrainedConfig]] = {
    "minilm": lambda: BertConfig(**SHAPES["MiniLM-L6"]),
    "bert": lambda: BertConfig(**SHAPES["BERT-base"]),
    "modernbert": lambda: ModernBertConfig(pad_token_id=0, cls_token_id=2, sep_token_id=3),
    "tiny": lambda: BertConfig(**TINY),
}
# Tokens of a training sentence of STS-B: these shares of the sentences have as many or fewer.
SHARES_OF_SENTENCES = (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99, 1)
TOKENS_OF_SENTENCES = (6, 8, 9, 10, 11, 12, 13, 15, 18, 21, 26, 31, 39, 47)


def write_encoder(shape: str, folder: Path) -> Path:
    """An encoder of that shape with random weights, and a tokenizer that makes each word one token."""
    tokenizer = word_tokenizer(bundled_words())
    torch.manual_seed(0)
    config = SHAPE_CONFIGS[shape]()
    config.vocab_size = max(config.vocab_size, len(tokenizer)) if shape != "tiny" else len(tokenizer)
    AutoModel.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def bundled_words() -> list[str]:
    """The words of the bundled training pairs."""
    pairs = read_pairs(BUNDLED_FOLDER / "train.csv").pairs[:]
    words = " ".join([*pairs["sentence1"], *pairs["sentence2"]]).lower().split()
    return sorted({word for word in words if word.isalpha()})


def word_tokenizer(words: list[str]) -> PreTrainedTokenizerFast:
    """Lower case, split at spaces and punctuation."""
    vocabulary = {word: i for i, word in enumerate([*SPECIAL_WORDS, *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=SPECIAL_WORDS[1]))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token"), SPECIAL_WORDS, strict=True))
    inputs = ["input_ids", "attention_mask"]
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_input_names=inputs, model_max_length=256, **names)


def random_sentences(count: int) -> list[str]:
    """So many sentences of random words, with the lengths of STS-B in tokens."""
    generator = random.Random(0)
    drawn = [generator.random() for _ in range(count)]
    lengths = np.interp(drawn, SHARES_OF_SENTENCES, TOKENS_OF_SENTENCES).round().astype(int)
    words = bundled_words()
    return [" ".join(generator.choices(words, k=length - 2)) for length in lengths]  # beside [CLS] and [SEP]


def random_pairs(count: int) -> Dataset:
    """So many pairs of such sentences."""
    sentences = random_sentences(2 * count)
    labels = [float(i % 6) for i in range(count)]
    return Dataset.from_dict({"sentence1": sentences[:count], "sentence2": sentences[count:], "label": labels})
