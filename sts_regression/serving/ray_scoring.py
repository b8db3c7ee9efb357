"""The scores of `--do_predict` in a Ray Data job, for clusters; the extra `ray` installs Ray.

scored = pairs.map_batches(RayScorer, fn_constructor_args=["checkpoint"], batch_size=4096, …)

docs/scale_out.md has the whole job.
"""

import numpy as np
import torch

from sts_regression.data.pairs import sentence_problem
from sts_regression.models.encoding import model_scorer
from sts_regression.models.loading import find_model, load_model, prepare_for_scoring
from sts_regression.serving.prediction import free_names, score_pairs


class RayScorer:
    """
    A checkpoint as a callable class for `ray.data.Dataset.map_batches`. Each actor loads it once.

    Args:
        model_name_or_path: Hub id, or a folder that all machines of the cluster share.
        sentence1_column: column of the first sentences in the batches.
        sentence2_column: column of the second sentences in the batches.
        revision: branch, tag or commit on the Hub.
        trust_remote_code: whether an encoder's own code from the Hub may run.
        max_seq_length: longest sentence in tokens. Default: the checkpoint's own limit.
        device: for example "cuda". Default: a GPU if the actor has one, else the CPU.
        bf16: whether to score in mixed precision.

    Raises:
        ValueError: if the checkpoint does not exist, or has no trained head.
    """

    def __init__(
        self,
        model_name_or_path: str,
        *,
        sentence1_column: str = "sentence1",
        sentence2_column: str = "sentence2",
        revision: str = "main",
        trust_remote_code: bool = False,
        max_seq_length: int | None = None,
        device: str | None = None,
        bf16: bool = False,
    ) -> None:
        self.columns = (sentence1_column, sentence2_column)
        model, tokenizer = load_model(find_model(model_name_or_path, revision, trust_remote_code), {})
        if not model.config.head_is_trained:
            raise ValueError(
                f"`model_name_or_path`: {model_name_or_path!r} has no trained head. Give a checkpoint that "
                "`run_sts.py` trained."
            )
        prepare_for_scoring(model, tokenizer, max_seq_length, device)
        self.tokenizer, self.config, self.bf16, self.device_type = tokenizer, model.config, bf16, model.device.type
        self.scorer = model_scorer(model, tokenizer)

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """
        Scores a batch of pairs.

        Args:
            batch: arrays of shape (pairs,) by column.

        Returns:
            The batch with the columns `score`, `grade`, `unreliable`, for a bi-encoder `cosine`, and `low` and `high`
            if intervals were learned; see [`score_pairs`]. Columns of the batch with such names become `input_score`
            and so on.

        Raises:
            ValueError: for a missing column or an empty sentence.
        """
        if not any(map(len, batch.values())):
            return batch  # Ray passes empty blocks, sometimes without columns
        sentences = []
        for column in self.columns:
            if column not in batch:
                raise ValueError(
                    f"the batch has no column {column!r} among {list(batch)}. Name it with `sentence1_column` or "
                    "`sentence2_column`."
                )
            sentences.append(batch[column].tolist())
            problem = next(filter(None, map(sentence_problem, sentences[-1])), None)
            if problem is not None:
                raise ValueError(f"a value of the column {column!r} {problem}. Correct or filter out such rows.")
        with torch.autocast(self.device_type, torch.bfloat16, enabled=self.bf16):
            scored = score_pairs(self.scorer, self.tokenizer, self.config, *sentences)
        kept = dict(zip(free_names(batch, scored), batch.values(), strict=True))
        return {**kept, **{column: np.array(values) for column, values in scored.items()}}
