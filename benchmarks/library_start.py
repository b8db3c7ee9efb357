"""Begins a training with sentence-transformers: `python benchmarks/library_start.py MODEL PAIRS_FOLDER OUTPUT_FOLDER`.

A script with the library for the work of our quick start until its first step: `dev.csv` and `test.csv` are
scored before the training on `train.csv`, whose `score` is 0 to 5. `contenders.py` measures how long this takes.
"""

import sys
from pathlib import Path

from datasets import load_dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator
from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss
from sentence_transformers.sentence_transformer.training_args import SentenceTransformerTrainingArguments


def main() -> None:
    """Loads model and pairs, scores the pairs that are not trained on, and writes the line."""
    name, pairs_folder, folder = sys.argv[1:]
    model = SentenceTransformer(name, device="cpu")
    files = {split: str(Path(pairs_folder, f"{split}.csv")) for split in ("train", "dev", "test")}
    pairs = load_dataset("csv", data_files=files, cache_dir=folder)
    for split in ("dev", "test"):
        first, second, scores = (list(pairs[split][name]) for name in ("sentence1", "sentence2", "score"))
        EmbeddingSimilarityEvaluator(first, second, scores)(model)
    train = pairs["train"].map(lambda row: {"score": row["score"] / 5})
    args = SentenceTransformerTrainingArguments(output_dir=folder, report_to="none", use_cpu=True)
    SentenceTransformerTrainer(model, args, train, loss=CosineSimilarityLoss(model)).get_train_dataloader()
    sys.stdout.write(f"Training on {len(train)} pairs\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
