"""The paper's published code, repeated: separate passes for both sides, and tokenisation of one sentence at a time."""

from collections.abc import Iterator
from typing import Any

import torch
from datasets import Dataset
from torch import Tensor, nn
from transformers import AutoModel, AutoTokenizer

from benchmarks.contenders_of_speed.shared import BATCH_SIZE, tokenize_padded
from sts_regression.models.loading import find_model


class PaperModel(nn.Module):
    """Two passes, mean pooling, (u, v, |u - v|), one linear output."""

    def __init__(self, encoder: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.encoder, self.head = encoder, head

    def embed(self, side: dict[str, Tensor]) -> Tensor:
        """(sentences, hidden)."""
        hidden = self.encoder(**side)[0]
        mask = side["attention_mask"][:, :, None].float()
        return (hidden * mask).sum(dim=1) / mask.sum(dim=1)

    def forward(self, first: dict[str, Tensor], second: dict[str, Tensor]) -> Tensor:
        """(batch,)."""
        u, v = self.embed(first), self.embed(second)
        return self.head(torch.cat([u, v, (u - v).abs()], dim=-1))[:, 0]


def paper_model() -> tuple[PaperModel, Any]:
    """The paper's model around MiniLM, and its tokenizer."""
    path = find_model(None).path
    encoder = AutoModel.from_pretrained(path, add_pooling_layer=False)
    return PaperModel(encoder, nn.Linear(3 * encoder.config.hidden_size, 1)), AutoTokenizer.from_pretrained(path)


def batches_of_the_paper(pairs: Dataset, tokenizer: Any, padding: str | bool) -> Iterator[tuple[Any, Any, Tensor]]:
    """Yields batches padded to 256 tokens, sentence by sentence, or, in the fair form, to their longest sentence."""
    for start in range(0, len(pairs) - BATCH_SIZE, BATCH_SIZE):
        rows = pairs[start : start + BATCH_SIZE]
        sides = []
        for name in ("sentence1", "sentence2"):
            if padding == "max_length":
                alone = [tokenize_padded([text], tokenizer, padding) for text in rows[name]]
                sides.append({key: torch.cat([text[key] for text in alone]) for key in alone[0]})
            else:
                sides.append(tokenize_padded(rows[name], tokenizer, padding))
        yield sides[0], sides[1], torch.tensor(rows["label"])
