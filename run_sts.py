"""Trains, evaluates and applies a model of graded similarity.

    accelerate launch run_sts.py --loss smooth_k2                 the quick start: bundled pairs, bundled MiniLM
    accelerate launch run_sts.py recipes/stsb.yaml --seed 1       a recipe; options override it
    python run_sts.py --train_file pairs.csv --grade_names irrelevant relevant "highly relevant"
    python run_sts.py --model_name_or_path outputs/pairs-smooth_k2 --predict_file new_pairs.csv
    python run_sts.py --do_eval --model_name_or_path MODEL --sts_data FOLDER       the seven STS tasks, for any encoder

`python run_sts.py --help` lists all options, those of transformers' TrainingArguments among them.
"""

import logging
import os
import sys
import time
from pathlib import Path
from typing import Any

# Training on a CPU allocates the gradients of large embeddings in every step; with huge pages, where the system offers
# them, steps take a tenth less time. torch reads the variable when it is imported.
os.environ["THP_MEM_ALLOC_ENABLE"] = os.environ.get("THP_MEM_ALLOC_ENABLE", "1")

from transformers import set_seed

from sts_regression.arguments import Stage, parse_stages
from sts_regression.configuration_sts_regression import HEADLESS_LOSSES
from sts_regression.data import PairColumns
from sts_regression.embedding_store import add_anchors, embed_pairs
from sts_regression.encoding import model_scorer, sentence_transformers_scorer
from sts_regression.head_solver import check_convex
from sts_regression.leakage import describe_leaks
from sts_regression.loading import find_model, load_model, resolve_max_seq_length
from sts_regression.lora import add_lora
from sts_regression.model_card import write_model_card
from sts_regression.pair_file import check_pair_file
from sts_regression.plots import plot_loss_curve, plot_scores
from sts_regression.prediction import check_whole_model, write_predictions
from sts_regression.publish import check_repository, publish, repository_of
from sts_regression.reporting import results_table, usage_example
from sts_regression.run_folder import (
    begin_run,
    check_output_dir,
    checkpoint_to_resume,
    is_finished,
)
from sts_regression.run_record import (
    describe_arguments,
    describe_command,
    describe_environment,
    describe_model,
    describe_pairs,
    describe_stages,
    describe_training,
    peak_memory_bytes,
    write_run_record,
)
from sts_regression.splits import check_files, load_splits
from sts_regression.sts_report import evaluate_sts_tasks
from sts_regression.sts_tasks import load_sts_tasks
from sts_regression.tokenization import tokenize_pairs
from sts_regression.trainer import STSTrainer, set_cpu_threads

logger = logging.getLogger("sts_regression")


def main(argv: list[str] | None = None) -> None:
    """Runs the command with the given options, or those of the command line: one training, or several in a row."""
    stages = parse_stages(argv)
    logging.basicConfig(format="%(message)s", stream=sys.stdout)
    for stage in stages:
        check_output_dir(stage.training_args, describe_arguments(*stage[:3]))
        check_files(stage.data_args)
    last = stages[-1]
    repository = repository_of(last.training_args)  # asked before Trainer is kept from publishing
    if repository is not None:
        check_repository(repository)
    for number, stage in enumerate(stages, start=1):
        logger.setLevel(logging.INFO if stage.training_args.should_log else logging.ERROR)
        if len(stages) > 1:
            logger.info(f"\nStage {number} of {len(stages)}: {stage.folder}")
        if is_finished(stage.training_args):
            logger.info(f"{stage.folder} is finished already")
            continue
        run(stage, sys.argv[1:] if argv is None else argv, stages[: number - 1], stages[number:])
    if repository is not None and last.training_args.process_index == 0:
        logger.info("\n" + publish(last.folder, repository, last.model_args.license, last.model_args.language))


def run(stage: Stage, command: list[str], earlier: list[Stage], later: list[Stage]) -> None:
    """
    Runs one training, evaluation or prediction.

    Args:
        stage: its options.
        command: the words of the command line.
        earlier: the stages before it.
        later: the stages after it, to which the STS tasks are left.
    """
    started = time.perf_counter()
    model_args, data_args, training_args, members = stage
    set_seed(training_args.seed)
    set_cpu_threads(training_args.cpu_threads)

    # Whatever is wrong with names, options or data is said before anything is trained or written.
    output_dir = stage.folder
    source = find_model(model_args.model_name_or_path, model_args.model_revision, model_args.trust_remote_code)
    columns = PairColumns(data_args.sentence1_column, data_args.sentence2_column, data_args.label_column)
    new_pairs = None
    if training_args.do_predict and data_args.predict_file is not None:
        new_pairs = check_pair_file(data_args.predict_file, columns)
    sts_tasks = load_sts_tasks(data_args.sts_data, data_args.sick_split) if data_args.sts_data else []
    splits = load_splits(data_args, columns, source.checkpoint_config, training_args, sts_tasks)
    record: dict[str, Any] = {
        "command": describe_command(command),
        "arguments": describe_arguments(model_args, data_args, training_args),
        "seed": training_args.seed,
        "environment": describe_environment(),
        "data": {
            **{split: describe_pairs(pairs, splits.sets[split]) for split, pairs in splits.pairs.items()},
            **{task.name: describe_pairs(task.pairs, task.parts) for task in sts_tasks},
        },
        "leakage": describe_leaks(splits.leaks),
    }
    model_name = source.base_model or Path(source.path).name
    if source.modules is not None and source.modules.unsupported and not (splits.pairs or new_pairs):
        # A sentence-transformers model that ours cannot be built from, and nothing but the STS tasks to score.
        if training_args.process_index == 0:
            scorer = sentence_transformers_scorer(
                source.path, training_args.device, **source.hub_options, show_progress=not training_args.disable_tqdm
            )
            record["model"] = {"base_model": model_name, "modules": source.modules.unsupported}
            record["sts_tasks"] = evaluate_sts_tasks(sts_tasks, scorer, model_name, output_dir)
            write_run_record({**record, "seconds": time.perf_counter() - started}, output_dir)
        return
    model, tokenizer, has_head = load_model(source, {**model_args.config_overrides(), **splits.config_overrides()})
    if training_args.do_predict and not (model.config.trains_head if training_args.do_train else has_head):
        raise ValueError(
            "`--do_predict` needs a trained head. Name an STS-Regression checkpoint, or train in the same run, with "
            f"another `--loss` than {' or '.join(HEADLESS_LOSSES)}."
        )
    if training_args.do_train and model.config.loss_type == "info_nce":
        splits.keep_positives(data_args.positive_threshold)
    if training_args.do_train and model_args.freeze_encoder and not model.config.trains_head:
        raise ValueError(
            f"`freeze_encoder` leaves nothing to train with `--loss {model.config.loss_type}`, which trains no head. "
            "Leave it out, or choose another loss."
        )
    if training_args.do_train and training_args.head_solver == "lbfgs":
        check_convex(model.config)
    if model_args.freeze_encoder:
        model.freeze_encoder()
    tokenizer.model_max_length = resolve_max_seq_length(model, tokenizer, model_args.max_seq_length)
    shows_progress = not training_args.disable_tqdm
    if model_args.uses_store and model.config.encoder_type == "bi-encoder":
        model.to(training_args.device)
        inputs = embed_pairs(splits.pairs, model, tokenizer, model_args.embedding_cache, shows_progress)
    else:
        inputs = {
            split: tokenize_pairs(pairs, tokenizer, model.config.encoder_type) for split, pairs in splits.pairs.items()
        }

    anchors = None
    if training_args.do_train and training_args.self_distillation > 0:
        model.to(training_args.device)
        inputs["train"], anchors = add_anchors(
            inputs["train"], splits.pairs["train"], model, tokenizer, model_args.embedding_cache, shows_progress
        )
    adapter = None
    if training_args.do_train and model_args.use_peft and not members:
        adapter = add_lora(model, **model_args.lora_options())
    if model_args.freeze_embeddings:
        model.get_input_embeddings().requires_grad_(False)
    trainer = STSTrainer(
        model, training_args, inputs.get("train"), inputs.get("validation"), tokenizer, anchors, adapter
    )
    if new_pairs is not None:
        check_whole_model(trainer.accelerator)
    results, training = {}, None
    if training_args.do_train:
        results["before training"] = {name: trainer.measure(inputs[name], has_head)[0] for name in splits.scored}
        if training_args.should_save:
            begin_run(training_args, record["arguments"])
            for other in later:
                begin_run(other.training_args, describe_arguments(*other[:3]))
        if members:
            training = trainer.average(members)
        elif training_args.head_solver == "lbfgs":
            training = trainer.solve_head()
        else:
            training = trainer.train(resume_from_checkpoint=checkpoint_to_resume(training_args))
        trainer.save_model()
        has_head = model.config.trains_head
    scored = {name: trainer.measure(inputs[name], has_head) for name in splits.scored}
    results["after training" if training_args.do_train else "as loaded"] = {
        n: measures for n, (measures, _) in scored.items()
    }
    if new_pairs is not None:
        path = Path(data_args.predict_output or output_dir / "predictions.csv")
        write_predictions(
            *(new_pairs, model, tokenizer, trainer.accelerator, path, data_args.predict_chunk_size),
            overwrite=training_args.overwrite_output_dir,
            show_progress=shows_progress,
        )

    if not trainer.is_world_process_zero():
        return
    if splits.scored:
        logger.info("\n" + results_table(results))
    if sts_tasks and training_args.do_eval and not later:
        normalizes = training is None and source.modules is not None and source.modules.normalizes
        scorer = model_scorer(model, tokenizer, has_head, normalizes, shows_progress)
        name = model_name if training is None else output_dir.name
        with trainer.accelerator.autocast():  # in mixed precision, if that is asked for, as the development pairs
            record["sts_tasks"] = evaluate_sts_tasks(sts_tasks, scorer, name, output_dir)
    if splits.scored or "sts_tasks" in record:
        record |= {
            "model": describe_model(model, source),
            "training": None if training is None else describe_training(training.metrics, trainer.state),
            "results": results,
            "stages": describe_stages([other.folder for other in earlier]),
            "seconds": time.perf_counter() - started,
            "peak_memory_bytes": peak_memory_bytes(),
        }
        write_run_record(record, output_dir)
    if training is not None:
        if trainer.state.log_history:  # none of an average
            plot_loss_curve(trainer.state.log_history, output_dir / "loss_curve.png")
        name = splits.scored[-1]
        gold_scores, path = splits.pairs[name]["label"], output_dir / "scores.png"
        plot_scores(scored[name][1], gold_scores, path, name, model.config.label_step, has_head)
        write_model_card(output_dir)
        example = usage_example(str(output_dir), model.config.encoder_type, has_head)
        logger.info(f"\nCheckpoint: {output_dir}\n\n{example}")


if __name__ == "__main__":
    try:
        main()
    except ValueError as error:
        if os.environ.get("STS_REGRESSION_TRACEBACK"):
            raise
        sys.exit(f"run_sts.py: error: {error}")
