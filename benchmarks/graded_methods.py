"""The methods that `graded_pairs.py` compares: they learn from a budget of graded pairs to score other pairs.

Our methods are options of the training command. Methods of sentence-transformers are its trainer with a loss: once
with the arguments of its training overview, and once with those of its STS-B example and a learning rate that is
chosen like ours. Heads of frozen encoders are solved for.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch
import torch.nn.functional as F
from datasets import Dataset
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from benchmarks.graded_data import LabelledPair
from sts_regression import modeling_sts_regression
from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.evaluation.measures import PairScores
from sts_regression.evaluation.sts_evaluation import correlate
from sts_regression.evaluation.sts_metric import STSMetric
from sts_regression.grader import PairGrader
from sts_regression.grading.grading import measure_intervals
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.encoding import LIBRARY_BATCH_SIZE, model_scorer, score_with_embeddings
from sts_regression.models.loading import find_model
from sts_regression.options.model_arguments import DEFAULT_CACHE_DIR

Settings = Mapping[str, float]


class Predictions(NamedTuple):
    """
    The predictions of a method for pairs.

    Attributes:
        scores: scores of the pairs.
        grades: grades of shape (pairs,), if the method gives any.
        low, high: ends of the interval of each label, shape (pairs,), if the method gives any.
    """

    scores: PairScores
    grades: np.ndarray | None = None
    low: np.ndarray | None = None
    high: np.ndarray | None = None


LearnedScorer = Callable[[list[str], list[str]], Predictions]


@dataclass(frozen=True)
class Task:
    """
    The input of a method.

    Attributes:
        pairs: training pairs; a method may hold some of them out.
        top_grade: the highest grade; labels lie between 0 and this.
        seed: seed of training.
        folder: folder for the files of training.
        model: encoder to start from; `None` for the default.
    """

    pairs: list[LabelledPair]
    top_grade: int
    seed: int
    folder: Path
    model: str | None = None


@dataclass(frozen=True)
class Method:
    """
    A method that learns from graded pairs.

    Attributes:
        learn: trains on a task, with options, and returns a function that scores other pairs.
        options: options that are the same for every task.
        tuned: name and values of the setting that development pairs choose, if any.
        trains: whether the method trains anything.
        title: title in charts; empty for the name.
    """

    learn: Callable[[Task, Mapping[str, Any]], LearnedScorer]
    options: Mapping[str, Any] = field(default_factory=dict)
    tuned: tuple[str, tuple[float, ...]] | None = None
    trains: bool = True
    title: str = ""

    @property
    def grid(self) -> list[Settings]:
        """The settings to choose from; a single empty one if there is nothing to choose."""
        if self.tuned is None:
            return [{}]
        name, values = self.tuned
        return [{name: value} for value in values]


def load_libraries() -> None:
    """Imports the libraries of the methods, so that forked processes need not."""
    for name in ("peft", "sentence_transformers"):
        importlib.import_module(name)


def keep_encoder(task: Task, options: Mapping[str, Any]) -> LearnedScorer:
    """Scores pairs with the untouched encoder."""
    grader = PairGrader(task.model)
    scorer = model_scorer(grader.model, grader.tokenizer)
    return lambda first, second: Predictions(PairScores(None, scorer(first, second)["cosine"]))


def train_grader(task: Task, options: Mapping[str, Any]) -> PairGrader:
    """Trains with our command on the pairs of the task."""
    chosen = {
        "label_values": list(range(task.top_grade + 1)),
        "embedding_cache": task.folder / "embeddings",  # with a shared cache, earlier runs would save this one time
        "seed": task.seed,
        "cpu_threads": 1,
        "disable_tqdm": True,
        **options,
    }
    return PairGrader(task.model).fit(task.pairs, output_dir=task.folder / "run", **chosen)


def run_command(task: Task, options: Mapping[str, Any]) -> LearnedScorer:
    """Learns with our training command."""
    grader = train_grader(task, options)

    def score(first: list[str], second: list[str]) -> Predictions:
        rows = grader.grade(list(zip(first, second, strict=True)))
        found = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        scores = PairScores(found.get("score"), found.get("cosine"))
        return Predictions(scores, *(found.get(name) for name in ("grade", "low", "high")))

    return score


def run_linear_head(task: Task, options: Mapping[str, Any]) -> LearnedScorer:
    """
    As [`run_command`], with a linear head whose start differs from the package's, which is random.

    It starts as the `mean` of the training labels, or as the `cosine`: then the head reads embeddings of length 1, its
    weight for each product of two numbers is the range of the scale, and all others are 0.
    """
    chosen = dict(options)
    start = chosen.pop("head_start")
    mean = float(np.mean([label for *_, label in task.pairs]))
    initialise, features = STSRegressionModel._init_weights, modeling_sts_regression.pair_features

    @torch.no_grad()
    def start_head(model: STSRegressionModel, module: nn.Module) -> None:
        initialise(model, module)
        if module is not getattr(model, "head", None):
            return
        if start == "mean":
            model.head.bias.fill_(mean)
        else:
            model.head.weight.zero_()
            model.head.weight[:, -model.config.encoder_config.hidden_size :] = task.top_grade  # the products come last
            model.head.bias.zero_()

    def of_unit_length(u: Tensor, v: Tensor, config: STSRegressionConfig) -> Tensor:
        return features(F.normalize(u, dim=-1), F.normalize(v, dim=-1), config)

    reads_features = partial(
        patch.object, modeling_sts_regression, "pair_features", of_unit_length if start == "cosine" else features
    )
    with reads_features(), patch.object(STSRegressionModel, "_init_weights", start_head):
        scorer = run_command(task, chosen)

    def score(first: list[str], second: list[str]) -> Predictions:
        with reads_features():
            return scorer(first, second)

    return score


def train_with_library(task: Task, options: Mapping[str, Any]) -> LearnedScorer:
    """Learns with sentence-transformers' trainer and one of its losses, on labels from 0 to 1."""
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
    from sentence_transformers.sentence_transformer import losses
    from sentence_transformers.sentence_transformer.training_args import SentenceTransformerTrainingArguments

    arguments = dict(options)
    loss = getattr(losses, arguments.pop("loss"))
    model = SentenceTransformer(find_model(task.model).path)
    first, second, labels = zip(*task.pairs, strict=True)
    columns = {"sentence1": first, "sentence2": second, "label": np.array(labels) / task.top_grade}
    training_args = SentenceTransformerTrainingArguments(
        output_dir=str(task.folder),
        seed=task.seed,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        **arguments,
    )
    SentenceTransformerTrainer(model, training_args, Dataset.from_dict(columns), loss=loss(model)).train()

    def encode(texts: list[str]) -> np.ndarray:
        return model.encode(texts, batch_size=LIBRARY_BATCH_SIZE, show_progress_bar=False)

    def score(first: list[str], second: list[str]) -> Predictions:
        return Predictions(PairScores(None, score_with_embeddings(encode, first, second)["cosine"]))

    return score


def solve_ridge(task: Task, options: Mapping[str, Any]) -> LearnedScorer:
    """
    Ridge regression on features (u, v, |u - v|, u ∘ v) of frozen embeddings of length 1.

    SetFit fits a classifier in the same way in its second phase.
    """
    grader = PairGrader(task.model)
    ridge = make_pipeline(StandardScaler(), Ridge(**options))

    def embed(texts: list[str]) -> np.ndarray:
        embeddings = grader.encode(texts)
        return embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)

    def features(u: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.concatenate([u, v, np.abs(u - v), u * v], axis=1)  # (pairs, 4 · hidden)

    def score(first: list[str], second: list[str]) -> Predictions:
        u, v = embed(first), embed(second)
        return Predictions(PairScores(ridge.predict(features(u, v)), (u * v).sum(axis=1)))

    texts1, texts2, labels = (list(column) for column in zip(*task.pairs, strict=True))
    ridge.fit(features(embed(texts1), embed(texts2)), labels)
    return score


RATES = ("learning_rate", (2e-5, 5e-5, 1e-4, 2e-4))
# Options that remove single parts of the recipes for own pairs.
WITHOUT: dict[str, dict[str, Any]] = {
    "bundled_pairs": {"bundled_pairs_first": False},
    "distillation": {"self_distillation": 0},
    "group_intercepts": {"group_intercepts": False},
    "second_training": {"refit": False},
    "frozen_embeddings": {"freeze_embeddings": False},
}
SHARED = {"embedding_cache": str(DEFAULT_CACHE_DIR)}  # with the weights that an earlier run trained on bundled pairs
PARTS_OFF = {name: value for part in WITHOUT.values() for name, value in part.items()}
PLAIN: dict[str, Any] = {**PARTS_OFF, "keep_start_if_better": False}
LIBRARY_LOSSES = {"cosine_similarity": "CosineSimilarityLoss", "cosent": "CoSENTLoss", "angle": "AnglELoss"}
FEWEST_OF_A_GRADE = 20
# sentence-transformers 6: the example of its training overview, and its STS-B example without the learning rate.
OVERVIEW = {"num_train_epochs": 1, "per_device_train_batch_size": 16, "learning_rate": 2e-5, "warmup_steps": 0.1}
STS_EXAMPLE = {"num_train_epochs": 4, "per_device_train_batch_size": 16, "warmup_steps": 0.1}
LIBRARY_METHODS = {
    **{
        f"st_{name}_1_epoch": Method(train_with_library, {"loss": loss, **OVERVIEW}, title=loss)
        for name, loss in LIBRARY_LOSSES.items()
    },
    **{
        f"st_{name}": Method(train_with_library, {"loss": loss, **STS_EXAMPLE}, RATES, title=f"{loss}, tuned")
        for name, loss in LIBRARY_LOSSES.items()
    },
}
# With the epochs of the recipes for own pairs.
LINEAR = {**PLAIN, "score_function": "linear", "num_train_epochs": 2, "load_best_model_at_end": False}
FEATURES_BY_START = {"mean": ["u", "v", "abs_diff"], "cosine": ["u", "v", "abs_diff", "product"]}
METHODS = {
    "untouched": Method(keep_encoder, trains=False),
    **LIBRARY_METHODS,
    "frozen_ridge": Method(solve_ridge, tuned=("alpha", (1e1, 1e2, 1e3, 1e4, 1e5)), title="frozen encoder, ridge"),
    "frozen_head": Method(
        run_command,
        {"freeze_encoder": True, "head_solver": "lbfgs"},
        ("weight_decay", (1e-4, 1e-3, 1e-2, 1e-1, 1.0)),
        title="frozen encoder, linear head",
    ),
    "linear": Method(run_command, {"score_function": "linear"}, RATES, title="linear head"),
    **{
        f"linear_from_{start}": Method(
            run_linear_head, {**LINEAR, "pair_features": features, "head_start": start}, RATES
        )
        for start, features in FEATURES_BY_START.items()
    },
    "cosine": Method(run_command, PLAIN, RATES, title="cosine alone"),
    "lora": Method(run_command, {"score_function": "cosine", "use_peft": True}, RATES, title="LoRA"),
    "cross_encoder": Method(run_command, {"encoder_type": "cross-encoder"}, RATES, title="cross-encoder"),
    **{f"default_without_{part}": Method(run_command, {**options, **SHARED}) for part, options in WITHOUT.items()},
    "default": Method(run_command, title="this project"),
}


def read_score(scores: PairScores, top_grade: int) -> np.ndarray:
    """The returned score from 0 to `top_grade`: the score of the head, or else the cosine on that scale."""
    if scores.head is not None:
        return scores.head
    assert scores.cosine is not None
    return top_grade * scores.cosine


def measure_predictions(found: Predictions, labels: np.ndarray, top_grade: int) -> dict[str, float | None]:
    """
    Measures of scored pairs.

    Args:
        found: the predictions for the pairs.
        labels: labels from 0 to `top_grade`, shape (pairs,). The grade of a label between two grades is the nearest.
        top_grade: the highest grade; the lowest is 0.

    Returns:
        A `dict` with `spearman` of the returned score; `spearman_cosine`, `None` without a cosine; `mae`, in grades,
        and `quadratic_kappa` of the predicted grade, or of the grade nearest to the score; and for intervals,
        `coverage`, the lowest coverage of a grade with 20 pairs or more (`coverage_of_a_grade`) and the mean `width`,
        `None` without intervals.
    """
    read = read_score(found.scores, top_grade)
    nodes, references = np.arange(top_grade + 1.0), np.floor(labels + 0.5)
    grades = STSMetric(keep_in_memory=True).compute(
        predictions=read if found.grades is None else found.grades,
        references=references,
        label_values=nodes.tolist(),
    )
    cosine = found.scores.cosine
    measures = {
        "spearman": correlate(read, labels)["spearman"],
        "spearman_cosine": None if cosine is None else correlate(cosine, labels)["spearman"],
        "mae": grades["mae"],
        "quadratic_kappa": grades["quadratic_kappa"],
        **dict.fromkeys(("coverage", "coverage_of_a_grade", "width")),
    }
    if found.low is not None and found.high is not None:
        measured = measure_intervals(found.low, found.high, labels, nodes)
        by_grade = [part["coverage"] for part in measured["coverage_by_grade"] if part["pairs"] >= FEWEST_OF_A_GRADE]
        measures |= {"coverage_of_a_grade": min(by_grade), **{name: measured[name] for name in ("coverage", "width")}}
    return measures
