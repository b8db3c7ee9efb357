"""
Training on the bundled pairs before the user's own (intermediate-task training, Phang et al. 2018).

The weights of eight short trainings are averaged (a model soup, Wortsman et al. 2022). Of four, the mean ranked about
as well with 100 pairs: `results/graded_pairs/own_pairs_choice.md`.
"""

import copy
import hashlib
import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from accelerate import PartialState
from datasets import Dataset
from filelock import FileLock
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor
from tqdm.auto import tqdm
from transformers import PreTrainedTokenizerBase, PrinterCallback

from sts_regression.basics.distributed import set_cpu_threads
from sts_regression.basics.files import file_sha256, replacing
from sts_regression.basics.quiet import draws_bars
from sts_regression.basics.tables import percent
from sts_regression.command.stages import Stage
from sts_regression.data.columns import PairColumns, numbers_of, texts_of
from sts_regression.data.leakage import LeakFilter
from sts_regression.data.sources import BUNDLED_FILES
from sts_regression.data.splits import Splits, load_splits
from sts_regression.data.text_splits import groups_to_resample
from sts_regression.evaluation.measures import PairScores
from sts_regression.evaluation.verdict import Verdict, judge
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.encoding import model_scorer
from sts_regression.models.fingerprint import fingerprint
from sts_regression.models.tokenization import tokenize_pairs
from sts_regression.options.data_arguments import DataArguments
from sts_regression.options.model_arguments import EMBEDDING_CACHE_OFF
from sts_regression.preparation import prepare_model, read_inputs, report_pairs, tell_stage
from sts_regression.quickstart import BUNDLED_FOLDER
from sts_regression.training.checkpoints import StopWithCheckpoint
from sts_regression.training.inner_runs import drop_weights, leave_weights
from sts_regression.training.run_folder import RUN_FILE, begin_run, is_finished, resumes_last
from sts_regression.training.run_record import describe_arguments, write_run_record
from sts_regression.training.trainer import STSTrainer
from sts_regression.training.training_arguments import STSTrainingArguments
from sts_regression.training.weight_averaging import copy_weights, interpolate, mean_of

logger = logging.getLogger(__name__)

TRAININGS = 8
SETTINGS: dict[str, Any] = {"max_steps": 24, "learning_rate": 2e-4}
PAIRS_IN_STEP = 16  # of all processes together
LABEL_VALUES = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
MOST_JUDGED = 1_000  # of the user's pairs; more take long to score
# Options of the machine, which training on bundled pairs shares with that on the user's.
MACHINE_OPTIONS = ("use_cpu", "precision", "bf16", "fp16", "cpu_threads", "dataloader_num_workers")


def train_on_bundled_pairs(stage: Stage, later: Sequence[Stage], given: Mapping[str, Dataset] | None = None) -> None:
    """
    Trains on the bundled pairs, and leaves the encoder's weights and a record in the folder of the stage.

    It leaves weights only if they rank the user's training pairs better, which neither encoder was trained on. It does
    not train if the user's pairs share a text with the bundled ones, since development pairs would no longer be new. A
    run that is resumed does not train again.

    Args:
        stage: the options of the user's training, with a folder of its own.
        later: the stages after it.
        given: the user's pairs in memory, by split.

    Raises:
        ValueError: for options or pairs that cannot be used.
    """
    args, started = stage.training_args, time.perf_counter()
    if is_finished(later[-1].training_args) or (resumes_last(args) and (stage.folder / RUN_FILE).is_file()):
        logger.info(f"{stage.folder} is already finished")
        return
    set_cpu_threads(args.cpu_threads)
    inputs = read_inputs(stage, given)
    own = _judged_pairs(inputs.splits, args.seed)
    bundled = load_splits(DataArguments(label_values=LABEL_VALUES), PairColumns(), None)
    model, tokenizer = prepare_model(_with_cosine(stage), inputs._replace(splits=bundled))
    report_pairs(stage, inputs, model, tokenizer)
    tell_stage(stage, 1, 1 + len(later))
    if args.should_save:
        begin_run(args, describe_arguments(*stage.options))
        drop_weights(stage.folder)  # those of a replaced run
    known = {**inputs.splits.pairs, **{task.name: task.pairs for task in inputs.sts_tasks}}
    if LeakFilter(known, "sentence").apply(bundled.pairs["train"])[1].found:
        logger.info("Your pairs share texts with the bundled ones. Training starts from the untouched encoder.")
        return
    model.to(args.device)
    before = _cosines(model, tokenizer, own)
    trained, is_stored = _trained(stage, model, tokenizer, bundled)
    interpolate(model.encoder, trained, 0.0)
    groups = groups_to_resample(texts_of(own, "sentence1"), texts_of(own, "sentence2"))
    verdict = judge(before, _cosines(model, tokenizer, own), numbers_of(own, "label"), groups=groups)
    assert verdict is not None  # a bi-encoder has cosines before training
    if args.process_index == 0:
        if _helps(verdict):
            leave_weights(stage.folder, model.encoder)
        record = {
            "pairs": len(bundled.pairs["train"]),
            "trainings": TRAININGS,
            "settings": {**SETTINGS, "pairs_in_step": PAIRS_IN_STEP},
            "is_stored": is_stored,
            "verdict": replace(verdict, kept="trained" if _helps(verdict) else "start").to_dict(),
            "seconds": time.perf_counter() - started,
        }
        write_run_record(record, stage.folder)
    logger.info(_in_words(verdict, len(inputs.splits.pairs["train"])))


def _with_cosine(stage: Stage) -> Stage:
    """The stage with the model that the bundled pairs train, and without options for the user's pairs."""
    model_args, training_args = copy.copy(stage.model_args), copy.copy(stage.training_args)
    model_args.score_function, model_args.freeze_embeddings = "cosine", True
    model_args.loss = model_args.loss_slope = model_args.loss_threshold = model_args.loss_temperature = None
    training_args.source_scales = training_args.group_intercepts = False
    return stage._replace(model_args=model_args, training_args=training_args)


def _trained(
    stage: Stage, model: STSRegressionModel, tokenizer: PreTrainedTokenizerBase, bundled: Splits
) -> tuple[dict[str, Tensor], bool]:
    """
    The mean of the encoder's weights after several trainings from the same start; whether an earlier run stored it.

    The weights do not depend on the user's pairs or seed, so they are stored for the next run with the same encoder,
    precision, kind of device and number of processes.
    """
    folder, name = stage.model_args.embedding_cache, _digest(model, tokenizer, stage.training_args)
    if folder == EMBEDDING_CACHE_OFF:
        return _mean_of_trainings(stage, model, tokenizer, bundled), False
    stored = Path(folder) / f"bundled-{name}.safetensors"
    with _for_one_command(stored):
        if stored.is_file():
            with suppress(SafetensorError, OSError):  # damaged: trained again
                return load_file(stored), True
        mean = _mean_of_trainings(stage, model, tokenizer, bundled)
        if stage.training_args.process_index == 0:
            with replacing(stored) as file:
                file.write(save({name: value.cpu().contiguous() for name, value in mean.items()}))
    return mean, False


@contextmanager
def _for_one_command(path: Path) -> Iterator[None]:
    """Keeps other commands from a file. All processes of this command see the files of the others."""
    state = PartialState()
    lock = FileLock(f"{path}.lock")
    if state.is_main_process:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    try:
        state.wait_for_everyone()
        yield
    finally:
        lock.release()


def _mean_of_trainings(
    stage: Stage, model: STSRegressionModel, tokenizer: PreTrainedTokenizerBase, bundled: Splits
) -> dict[str, Tensor]:
    """The mean of the encoder's weights after several trainings from the same start."""
    logger.info(
        f"Training {TRAININGS} times on {len(bundled.pairs['train']):,} bundled pairs; later runs reuse the result"
    )
    pairs = tokenize_pairs(bundled.pairs["train"], tokenizer, model.config.encoder_type, model.config.prefixes)
    parts = (model.encoder, model.head)
    start = [copy_weights(part) for part in parts]

    def train(seed: int) -> dict[str, Tensor]:
        for part, weights in zip(parts, start, strict=True):
            interpolate(part, weights, 0.0)
        trainer = STSTrainer(model, _training_args(stage, seed), pairs, None, tokenizer)
        for callback in (PrinterCallback, StopWithCheckpoint):  # it would begin anew
            trainer.remove_callback(callback)
        trainer.train()
        return copy_weights(model.encoder)

    shows_progress = draws_bars(stage.training_args.disable_tqdm)
    seeds = tqdm(range(TRAININGS), desc="bundled pairs", unit="training", leave=False, disable=not shows_progress)
    return mean_of(train(seed) for seed in seeds)


def _digest(model: STSRegressionModel, tokenizer: PreTrainedTokenizerBase, args: STSTrainingArguments) -> str:
    """A name for the weights that the bundled pairs give to an encoder."""
    parts = [
        *(fingerprint(model, tokenizer, with_head=True), model.config.prefixes, TRAININGS, SETTINGS, PAIRS_IN_STEP),
        *(args.mixed_precision, args.trains_in_bfloat16, args.device.type, args.world_size),
        file_sha256(BUNDLED_FOLDER / BUNDLED_FILES["train"]),
    ]
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()


def _training_args(stage: Stage, seed: int) -> STSTrainingArguments:
    """The options of one of the trainings."""
    args = stage.training_args
    shared = {name: getattr(args, name) for name in MACHINE_OPTIONS}
    never: dict[str, Any] = {"eval_strategy": "no", "save_strategy": "no", "load_best_model_at_end": False}
    return STSTrainingArguments(
        output_dir=str(stage.folder),
        **{**SETTINGS, **shared, **never},
        per_device_train_batch_size=max(1, PAIRS_IN_STEP // args.world_size),
        seed=seed,
        disable_tqdm=True,
        logging_strategy="no",
        report_to="none",
    )


def _helps(verdict: Verdict) -> bool:
    """
    Whether to start from the encoder that the bundled pairs trained.

    It need not be significantly better: with few pairs, a smaller gain is still the likelier. But pairs that it ranks
    worse are of another kind, see `results/new_corpora/new_corpora.md`.
    """
    return verdict.difference > 0


def _in_words(verdict: Verdict, num_pairs: int) -> str:
    """Why training on the user's pairs, of which there are `num_pairs`, starts from one encoder or the other."""
    judged = f"your {num_pairs:,}" if verdict.num_pairs == num_pairs else f"{verdict.num_pairs:,} of your"
    rank, start = ("better", "it") if _helps(verdict) else ("no better", "the untouched encoder")
    return (
        f"After training on the bundled pairs, the encoder ranks {judged} training pairs {rank} (Spearman's "
        f"correlation {percent(verdict.before)} before, {percent(verdict.after)} after), so training on your pairs "
        f"starts from {start}."
    )


def _judged_pairs(splits: Splits, seed: int) -> Dataset:
    """The user's training pairs, or some of them if there are many."""
    pairs = splits.pairs["train"]
    return pairs.select(np.random.default_rng(seed).permutation(len(pairs))[:MOST_JUDGED])


def _cosines(model: STSRegressionModel, tokenizer: PreTrainedTokenizerBase, pairs: Dataset) -> PairScores:
    first, second = (list(texts_of(pairs, column)) for column in ("sentence1", "sentence2"))
    return PairScores(None, model_scorer(model, tokenizer)(first, second)["cosine"])
