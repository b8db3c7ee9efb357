"""Our checkpoints in the runner of the mteb package, which the extra `mteb` installs.

import mteb
from sts_regression.mteb_bridge import STSRegressionEncoder

mteb.evaluate(STSRegressionEncoder("outputs/pairs-smooth_k2"), mteb.get_tasks(["STSBenchmark"]))
"""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from mteb.models.abs_encoder import AbsEncoder
from mteb.models.model_meta import ModelMeta, ScoringFunction
from torch.nn import functional as F
from torch.utils.data import DataLoader

from sts_regression.encoding import encode_sentences
from sts_regression.loading import ModelSource, find_model, load_model, prepare_for_scoring


class STSRegressionEncoder(AbsEncoder):
    """
    A bi-encoder checkpoint, or a plain encoder, as mteb's `EncoderProtocol`. Similarity is the cosine.

    Args:
        model_name: Hub id or folder.
        revision: branch, tag or commit on the Hub; the main branch by default.
        device: where to compute, for example "cuda"; a GPU where there is one by default.
        max_seq_length: longest text in tokens; by default the model's own.
        trust_remote_code: whether an encoder's own code may run. A checkpoint of ours needs none.

    Raises:
        ValueError: where there is no such model, or it is a cross-encoder.
    """

    def __init__(
        self,
        model_name: str,
        revision: str | None = None,
        *,
        device: str | None = None,
        max_seq_length: int | None = None,
        trust_remote_code: bool = False,
    ) -> None:
        source = find_model(model_name, revision or "main", trust_remote_code)
        self.model, self.tokenizer, _ = load_model(source, {})
        if self.model.config.encoder_type == "cross-encoder":
            raise ValueError(f"{model_name!r} is a cross-encoder, which has no embeddings for mteb to compare.")
        prepare_for_scoring(self.model, self.tokenizer, max_seq_length, device)
        self.normalizes = self.model.config.normalize_embeddings
        self.mteb_model_meta = ModelMeta.create_empty(
            {
                "name": f"local/{Path(model_name).resolve().name}" if Path(model_name).is_dir() else model_name,
                "revision": _weights_revision(source),
                "n_parameters": self.model.num_parameters(),
                "max_tokens": self.tokenizer.model_max_length,
                "embed_dim": self.model.config.encoder_config.hidden_size,
                "similarity_fn_name": ScoringFunction.COSINE,
                "framework": ["PyTorch", "Transformers"],
            }
        )

    def encode(self, inputs: DataLoader, *, show_progress_bar: bool = False, **unused: Any) -> np.ndarray:
        """
        Embeddings of the texts of a task.

        Args:
            inputs: batches, each a `dict` with a list of strings under `text`.
            show_progress_bar: whether to draw one.
            **unused: what mteb says of the task, on which prompts would depend, and of the batch size, where tokens
                are counted here.

        Returns:
            Array of shape (texts, hidden), float32.
        """
        texts = [text for batch in inputs for text in batch["text"]]
        prefix = self.model.config.sentence1_prefix
        embeddings = encode_sentences(
            self.model, self.tokenizer, texts, show_progress=show_progress_bar, prefix=prefix
        )
        return (F.normalize(embeddings, dim=-1) if self.normalizes else embeddings).numpy()


def _weights_revision(source: ModelSource) -> str:
    """
    The commit on the Hub, or for a folder a digest of its weights.

    mteb keeps results by name and revision: without the digest it would answer for a model trained anew in the same
    folder with the results of the one before.
    """
    commit = getattr(source.config, "_commit_hash", None)
    if commit is not None:
        return str(commit)
    digest = hashlib.sha256()
    for path in sorted(Path(source.path).glob("*.safetensors")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
