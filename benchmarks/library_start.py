"""Begins a training with sentence-transformers: `python benchmarks/library_start.py MODEL PAIRS_FILE FOLDER`.

What a user of the library writes, until the first step; pairs have a `score` of 0 to 5. `contenders.py` measures how
long this takes.
"""

import sys

from datasets import load_dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator
from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss
from sentence_transformers.sentence_transformer.training_args import SentenceTransformerTrainingArguments


def main() -> None:
    """Loads model and pairs, scores development pairs once, as our command does, and writes the line."""
    name, pairs_file, folder = sys.argv[1:]
    model = SentenceTransformer(name, device="cpu")
    pairs = load_dataset("csv", data_files=pairs_file, cache_dir=folder, split="train")
    pairs = pairs.map(lambda row: {"score": row["score"] / 5}).train_test_split(0.1, seed=0)
    development = [pairs["test"][column] for column in ("sentence1", "sentence2", "score")]
    EmbeddingSimilarityEvaluator(*development)(model)
    args = SentenceTransformerTrainingArguments(output_dir=folder, report_to="none", use_cpu=True)
    trainer = SentenceTransformerTrainer(model, args, pairs["train"], loss=CosineSimilarityLoss(model))
    trainer.get_train_dataloader()
    sys.stdout.write(f"Training on {len(pairs['train'])} pairs\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
