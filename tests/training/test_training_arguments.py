"""Every field of transformers' TrainingArguments, in one table: it works, or is refused in a line before training."""

import csv
import dataclasses
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from safetensors.torch import load_file
from transformers import BertConfig, BertModel, PreTrainedTokenizerBase, TrainingArguments
from transformers.utils import logging as transformers_logging

import run_sts
from sts_regression.command.arguments import parse_stages
from sts_regression.training.training_arguments import STSTrainingArguments

WORDS = ["cat", "dog", "man", "park", "water", "house", "red", "big"]
PAIRS = 12  # three steps of four
# Of a training without dropout, whose weights hardly depend on rounding.
BASE = [
    *("--report_to=none", "--num_train_epochs=1", "--per_device_train_batch_size=4", "--warmup_steps=0"),
    *("--learning_rate=1e-2", "--adam_epsilon=1e-3", "--logging_steps=3", "--leak_filter=none", "--disable_tqdm=true"),
]
OTHER, SAME = False, True  # weights than, or as, without the option

Run = dict[str, Any]


class Works(NamedTuple):
    """
    An option that has its effect.

    Attributes:
        words: of the command line; FOLDER stands for a folder of the test.
        weights: whether they are those of a training without it; `None` where that says nothing.
        effect: further evidence that it acted: from the record of the run and its folder to whether it is so.
    """

    words: list[str]
    weights: bool | None = SAME
    effect: Callable[[Run, Path], bool] | None = None


class Refused(NamedTuple):
    """An option that is refused when it is read, with a message that holds the text."""

    words: list[str]
    message: str


class RefusedInTraining(Refused):
    """One that is refused when the model is known, before anything is written."""


def entries(run: Run, key: str) -> list[Any]:
    return [entry[key] for entry in run["training"]["log_history"] if key in entry]


def measured(run: Run) -> int:
    return len(entries(run, "eval_spearman_cosine"))


def steps(run: Run) -> int:
    return run["training"]["steps"]


def checkpoints(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("checkpoint-*"))


EACH_STEP = ["--eval_strategy=steps", "--eval_steps=1", "--save_strategy=steps", "--save_steps=1"]
LAUNCHED = "Leave it out. Launch with a file of `accelerate_configs`."
WORKER = "--dataloader_num_workers=1"
TABLE: dict[str, Works | Refused] = {
    "output_dir": Works(["--output_dir=FOLDER/other"], SAME, lambda run, folder: folder.name == "other"),
    "per_device_train_batch_size": Works(["--per_device_train_batch_size=6"], OTHER, lambda run, _: steps(run) == 2),
    "num_train_epochs": Works(["--num_train_epochs=2"], OTHER, lambda run, _: steps(run) == 6),
    "max_steps": Works(["--max_steps=2"], OTHER, lambda run, _: steps(run) == 2),
    "learning_rate": Works(["--learning_rate=1e-3"], OTHER),
    "lr_scheduler_type": Works(["--lr_scheduler_type=cosine"], OTHER),
    "lr_scheduler_kwargs": Works(
        ["--lr_scheduler_type=cosine_with_restarts", '--lr_scheduler_kwargs={"num_cycles": 2}'], OTHER
    ),
    "warmup_steps": Works(["--warmup_steps=2"], OTHER),
    "optim": Works(["--optim=adagrad"], OTHER),
    "optim_args": Works(["--optim=sgd", "--optim_args=momentum=0.9"], OTHER),
    "weight_decay": Works(["--weight_decay=0.5"], OTHER),
    "adam_beta1": Works(["--adam_beta1=0.5"], OTHER),
    "adam_beta2": Works(["--adam_beta2=0.5"], OTHER),
    "adam_epsilon": Works(["--adam_epsilon=1e-8"], OTHER),
    "optim_target_modules": Works(["--optim_target_modules=all-linear"]),
    "gradient_accumulation_steps": Works(["--gradient_accumulation_steps=2"], OTHER, lambda run, _: steps(run) == 2),
    "average_tokens_across_devices": Refused(
        ["--average_tokens_across_devices=false"], "is False, but a loss is the mean over the pairs of all processes"
    ),
    "max_grad_norm": Works(["--max_grad_norm=1e-3"], OTHER),
    "label_smoothing_factor": Refused(
        ["--label_smoothing_factor=0.1"], "is 0.1, but it smooths classes, and labels are grades. Leave it out."
    ),
    "bf16": Works(["--bf16=true"], OTHER, lambda run, _: run["environment"]["precision"] == "bf16"),
    "fp16": Refused(["--fp16=true", "--use_cpu=true"], "`fp16` needs an accelerator. Give `--bf16` on a CPU."),
    "bf16_full_eval": RefusedInTraining(["--bf16_full_eval=true"], "would convert the weights before training."),
    "fp16_full_eval": RefusedInTraining(["--fp16_full_eval=true"], "would convert the weights before training."),
    "tf32": Works(["--tf32=false"]),
    "activation_checkpointing": Works(["--activation_checkpointing"]),
    "activation_checkpointing_kwargs": Works(
        ["--activation_checkpointing", '--activation_checkpointing_kwargs={"use_reentrant": true}']
    ),
    "gradient_checkpointing": Works(["--gradient_checkpointing=true"]),
    "gradient_checkpointing_kwargs": Works(
        ["--gradient_checkpointing=true", '--gradient_checkpointing_kwargs={"use_reentrant": true}']
    ),
    "torch_compile": Works(["--torch_compile=true", "--torch_compile_backend=eager"]),
    "torch_compile_backend": Works(["--torch_compile_backend=eager"]),
    "torch_compile_mode": Works(["--torch_compile_backend=eager", "--torch_compile_mode=reduce-overhead"]),
    "use_liger_kernel": Refused(["--use_liger_kernel=true"], "is True, but its kernels are for language models."),
    "liger_kernel_config": Refused(['--liger_kernel_config={"rope": true}'], "invalid dict value"),
    "use_cache": Refused(["--use_cache=true"], "is True, but nothing is generated. Leave it out."),
    "neftune_noise_alpha": Works(["--neftune_noise_alpha=5"], OTHER),
    "torch_empty_cache_steps": Works(["--torch_empty_cache_steps=1"]),
    "auto_find_batch_size": Works(["--auto_find_batch_size=true"]),
    "logging_strategy": Works(["--logging_strategy=no"], SAME, lambda run, _: entries(run, "loss") == []),
    "logging_steps": Works(["--logging_steps=1"], SAME, lambda run, _: len(entries(run, "loss")) == 3),
    "logging_first_step": Works(["--logging_first_step=true"], SAME, lambda run, _: len(entries(run, "loss")) == 2),
    "log_on_each_node": Works(["--log_on_each_node=false"]),
    "logging_nan_inf_filter": Works(["--logging_nan_inf_filter=true"]),
    "include_num_input_tokens_seen": Works(
        ["--include_num_input_tokens_seen=true"], SAME, lambda run, _: entries(run, "num_input_tokens_seen")[-1] > 0
    ),
    "log_level": Works(
        ["--log_level=error"], SAME, lambda run, _: transformers_logging.get_verbosity() == transformers_logging.ERROR
    ),
    "log_level_replica": Works(["--log_level_replica=error"]),
    "disable_tqdm": Works(["--disable_tqdm=false"]),
    "report_to": Refused(["--report_to=teletype"], "`report_to`: teletype is not supported, only azure_ml, comet_ml"),
    "run_name": Works(["--run_name=first"]),
    "project": Works(["--project=sts"]),
    "trackio_space_id": Works(["--trackio_space_id=me/space"]),
    "trackio_bucket_id": Works(["--trackio_bucket_id=me/bucket"]),
    "trackio_static_space_id": Works(["--trackio_static_space_id=me/space"]),
    "eval_strategy": Works(
        ["--eval_strategy=no", "--load_best_model_at_end=false"], SAME, lambda run, _: measured(run) == 0
    ),
    "eval_steps": Works(EACH_STEP, None, lambda run, _: measured(run) == 3),
    "eval_delay": Works(["--eval_delay=2"], SAME, lambda run, _: measured(run) == 0),
    "per_device_eval_batch_size": Works(["--per_device_eval_batch_size=5"]),
    "prediction_loss_only": Refused(
        ["--prediction_loss_only=true"], "is True, but measures need the scores. Leave it out."
    ),
    "eval_on_start": Works(["--eval_on_start=true"], SAME, lambda run, _: measured(run) == 2),
    "eval_do_concat_batches": Refused(["--eval_do_concat_batches=false"], "the scores of all pairs are measured"),
    "eval_use_gather_object": Refused(["--eval_use_gather_object=true"], "the scores of all pairs are measured"),
    "eval_accumulation_steps": Works(["--eval_accumulation_steps=1", "--per_device_eval_batch_size=5"]),
    "include_for_metrics": Refused(["--include_for_metrics", "loss"], "measures need scores and labels alone."),
    "batch_eval_metrics": Refused(["--batch_eval_metrics=true"], "the scores of all pairs are measured"),
    "save_only_model": Works(
        ["--save_only_model=true"], SAME, lambda _, folder: not list(folder.rglob("optimizer.pt"))
    ),
    "save_strategy": Works(
        ["--save_strategy=no", "--load_best_model_at_end=false"], SAME, lambda _, folder: checkpoints(folder) == []
    ),
    "save_steps": Works(
        ["--load_best_model_at_end=false", "--save_strategy=steps", "--save_steps=2"],
        *(SAME, lambda _, folder: checkpoints(folder) == ["checkpoint-3"]),
    ),
    "save_on_each_node": Works(["--save_on_each_node=true"]),
    "save_total_limit": Works(
        ["--save_total_limit=2", "--save_strategy=steps", "--save_steps=1", "--load_best_model_at_end=false"],
        *(SAME, lambda _, folder: checkpoints(folder) == ["checkpoint-2", "checkpoint-3"]),
    ),
    "enable_jit_checkpoint": Refused(
        ["--enable_jit_checkpoint=true"], "Leave it out. `--resume_from_checkpoint true` resumes from the last"
    ),
    "push_to_hub": Refused(["--push_to_hub"], "`hub_model_id` must name a repository as USER/NAME"),
    "hub_token": Works(["--hub_token=secret"], SAME, lambda run, _: "secret" not in json.dumps(run)),
    "hub_private_repo": Works(["--hub_private_repo=true"]),
    "hub_model_id": Works(["--hub_model_id=me/model"]),
    "hub_strategy": Refused(
        ["--push_to_hub", "--hub_model_id=me/model", "--hub_strategy=checkpoint"], "have no checkpoints to publish"
    ),
    "hub_always_push": Refused(
        ["--push_to_hub", "--hub_model_id=me/model", "--hub_always_push=true"], "have no checkpoints to publish"
    ),
    "hub_revision": Works(["--hub_revision=second"]),
    "load_best_model_at_end": Works(["--load_best_model_at_end=true", *EACH_STEP]),
    "metric_for_best_model": Works(["--metric_for_best_model=mae_head"]),
    "greater_is_better": Refused(
        ["--greater_is_better=false"], "for `metric_for_best_model` spearman_cosine, higher is better."
    ),
    "ignore_data_skip": Works(["--ignore_data_skip=true"]),
    "restore_callback_states_from_checkpoint": Works(["--restore_callback_states_from_checkpoint=true"]),
    "full_determinism": Works(
        ["--full_determinism=true"], SAME, lambda run, _: torch.are_deterministic_algorithms_enabled()
    ),
    "seed": Works(["--seed=7"], OTHER, lambda run, _: run["seed"] == 7),
    "data_seed": Works(["--data_seed=7"], OTHER),
    "use_cpu": Works(["--use_cpu=true"]),
    "accelerator_config": Works(['--accelerator_config={"split_batches": true}']),
    "parallelism_config": Refused(["--parallelism_config=x"], "invalid ParallelismConfig value"),
    "dataloader_drop_last": Works(
        ["--dataloader_drop_last=true", "--per_device_train_batch_size=5", "--per_device_eval_batch_size=5"],
        *(OTHER, lambda run, _: steps(run) == 2 and measured(run) == 1),
    ),
    "dataloader_num_workers": Works([WORKER]),
    "dataloader_pin_memory": Works(["--dataloader_pin_memory=false"]),
    "dataloader_persistent_workers": Works(["--dataloader_persistent_workers=true", WORKER]),
    "dataloader_prefetch_factor": Works(["--dataloader_prefetch_factor=1", WORKER]),
    "dataloader_multiprocessing_context": Refused(
        ["--dataloader_multiprocessing_context=spawn", WORKER], "must be fork, but is 'spawn'"
    ),
    "dataloader_in_order": Refused(
        ["--dataloader_in_order=false"], "is False, but scores would not be in the order of their pairs."
    ),
    "remove_unused_columns": Works(["--remove_unused_columns=false"]),
    "label_names": Refused(["--label_names", "labels"], "To name grades, give `--grade_names`."),
    "train_sampling_strategy": Works(["--train_sampling_strategy=sequential"], OTHER),
    "length_column_name": Refused(["--length_column_name=size"], "lengths are counted when pairs are tokenised."),
    "ddp_find_unused_parameters": Works(["--ddp_find_unused_parameters=true"]),
    "ddp_bucket_cap_mb": Works(["--ddp_bucket_cap_mb=5"]),
    "ddp_broadcast_buffers": Works(["--ddp_broadcast_buffers=true"]),
    "ddp_static_graph": Works(["--ddp_static_graph=true"]),
    "ddp_backend": Refused(["--ddp_backend=gloo"], "is for several processes. Launch them with accelerate, or leave"),
    "ddp_timeout": Works(["--ddp_timeout=60"]),
    "fsdp": Refused(["--fsdp"], LAUNCHED),
    "fsdp_config": Refused(['--fsdp_config={"version": 2}'], LAUNCHED),
    "deepspeed": Refused(['--deepspeed={"zero_optimization": {"stage": 2}}'], LAUNCHED),
    "debug": Works(["--debug=underflow_overflow"]),
    "skip_memory_metrics": Works(["--skip_memory_metrics=false"]),
    "do_train": Works(["--do_train"], SAME, lambda run, _: measured(run) == 1),
    "do_eval": Works(["--do_train", "--do_eval"]),
    "do_predict": Works(
        ["--do_train", "--do_predict", "--predict_file=FOLDER/pairs.csv"],
        *(SAME, lambda _, folder: (folder / "predictions.csv").is_file()),
    ),
    "resume_from_checkpoint": Works(["--resume_from_checkpoint=true"]),
    "local_rank": Works(["--local_rank=0"]),
}
FIELDS = [field.name for field in dataclasses.fields(TrainingArguments)]
for newer in {"activation_checkpointing", "activation_checkpointing_kwargs"}.difference(FIELDS):  # transformers 5.23
    del TABLE[newer]
WORKING = {name: row for name, row in TABLE.items() if isinstance(row, Works)}
REFUSED = {name: row for name, row in TABLE.items() if type(row) is Refused}
REFUSED_IN_TRAINING = {name: row for name, row in TABLE.items() if isinstance(row, RefusedInTraining)}
# Other values, and options that stand in each other's way.
FURTHER = [
    *(
        Refused([f"--{name}=true", f'--{name}_kwargs={{"no": 1}}'], "has an unknown key 'no'. Known")
        for name in ("activation_checkpointing", "gradient_checkpointing")
        if name in FIELDS
    ),
    Refused(["--save_only_model=true", "--resume_from_checkpoint=true"], "Leave one of them out."),
    Refused(["--torch_compile_backend=gcc"], "`torch_compile_backend` must be one of eager, aot_eager, inductor"),
    Refused(["--torch_compile_mode=fast"], "`torch_compile_mode` must be one of default, reduce-overhead"),
    Refused(["--neftune_noise_alpha=-1"], "`neftune_noise_alpha` must be at least 0, but is -1.0."),
    Refused(["--eval_accumulation_steps=0"], "`eval_accumulation_steps` must be at least 1, but is 0."),
    Refused(["--save_total_limit=0"], "`save_total_limit` must be at least 1, but is 0."),
    Refused(
        ['--lr_scheduler_kwargs={"no": 1}'], "`lr_scheduler_type` linear cannot be built with `lr_scheduler_kwarg"
    ),
    Refused(["--lr_scheduler_type=cosine_with_min_lr"], "One of min_lr or min_lr_rate should be set"),
    Refused(["--lr_scheduler_type=warmup_stable_decay"], "missing 1 required positional argument: 'num_decay_steps'"),
    Refused(["--lr_scheduler_type=greedy"], "lifts every rate to `min_lr`, 0.001 by default, and `learning_rate` is"),
    Refused(
        ["--lr_scheduler_type=reduce_lr_on_plateau", '--lr_scheduler_kwargs={"mode": "min"}'],
        "`lr_scheduler_kwargs` has the mode 'min', but for spearman_cosine, higher is better. Leave it out.",
    ),
    Refused(
        ["--metric_for_best_model=eval_loss", "--greater_is_better=true"],
        "`greater_is_better` is True, but for `metric_for_best_model` eval_loss, lower is better. Leave",
    ),
    Refused(["--model_soup=2", "--freeze_encoder", "--head_solver=lbfgs"], "`model_soup` averages runs that"),
]
FURTHER_IN_TRAINING = [
    RefusedInTraining(["--optim=lomo"], "`optim` lomo has one learning rate for all layers"),
    RefusedInTraining(
        ["--optim=adamw_torch_xla"], "`optim` adamw_torch_xla cannot be built: Trainer failed to import"
    ),
    RefusedInTraining(["--adam_beta1=1"], "`optim` adamw_torch_fused cannot be built: Invalid beta parameter"),
    RefusedInTraining(["--optim_args=no=1"], "`optim_args`: 'no=1' has no effect with `--optim adamw_torch_fused`."),
    RefusedInTraining(
        ["--optim=sgd", "--optim_args=momentum=0.9,no=1"], "`optim_args`: 'no=1' has no effect with `--optim sgd`."
    ),
    RefusedInTraining(["--optim_args=momentum"], "with `optim_args` 'momentum' cannot be built: not enough values"),
    RefusedInTraining(
        ["--dataloader_drop_last=true", "--per_device_train_batch_size=13"],
        "leaves nothing to train on: the 12 training pairs fill no batch of 13. Leave it out, or lower",
    ),
    RefusedInTraining(["--freeze_encoder", "--neftune_noise_alpha=5"], "acts on a trained encoder, and this one is"),
    RefusedInTraining(
        ["--score_function=linear", "--matryoshka_dims", "16"],
        "shortens embeddings, and a linear head needs whole ones",
    ),
    RefusedInTraining(
        ["--score_function=cosine", "--matryoshka_dims", "16", "32"],
        "must be whole numbers from 1 to 31 for embeddings of 32 numbers, but are 16 32",
    ),
    RefusedInTraining(
        ["--score_function=cosine", "--freeze_encoder", "--matryoshka_dims", "16"],
        "`matryoshka_dims` acts on a trained encoder, and this one is frozen",
    ),
    RefusedInTraining(["--freeze_encoder", "--wise_ft_alpha=0.5"], "acts on a trained encoder, and this one is"),
    RefusedInTraining(["--freeze_encoder", "--train_sampling_strategy=group_by_length"], "have no length. Leave"),
    RefusedInTraining(["--freeze_encoder", "--include_num_input_tokens_seen=true"], "have no tokens. Leave it out."),
    RefusedInTraining(["--metric_for_best_model=rmse"], "rmse is not measured with this model on these development"),
    RefusedInTraining(
        ["--loss=cosent", "--metric_for_best_model=mae_head"],
        "mae_head is not measured with this model on these development pairs. Choose one of spearman_cosine, "
        "pearson_cosine, kendall_cosine, loss.",
    ),
    RefusedInTraining(
        ["--label_values", "0", "2.5", "5", "--metric_for_best_model=accuracy_head"],
        "accuracy_head is not measured with this model on these development pairs. Choose one of spearman_cosine, "
        "pearson_cosine, kendall_cosine, spearman_head, pearson_head, kendall_head, loss.",
    ),
]


def by_name(rows: list[Any]) -> list[Any]:
    return [pytest.param(row, id=" ".join(row.words)) for row in rows]


@pytest.fixture(scope="module")
def files(tokenizer: PreTrainedTokenizerBase, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with twelve pairs, and an encoder without dropout."""
    folder = tmp_path_factory.mktemp("files")
    with (folder / "pairs.csv").open("w", newline="") as file:
        rows = [(f"the {WORDS[i % 8]} {WORDS[i % 5]} {i}", f"a {WORDS[i * i % 8]}", i % 6) for i in range(PAIRS)]
        csv.writer(file).writerows([("sentence1", "sentence2", "label"), *rows])
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    torch.manual_seed(0)
    BertModel(config, add_pooling_layer=False).save_pretrained(folder / "encoder")
    tokenizer.save_pretrained(folder / "encoder")
    return folder


def run_command(files: Path, folder: Path, *words: str) -> Path:
    """Trains on the twelve pairs, unless the words say otherwise; returns the folder of the run."""
    given = [word.replace("FOLDER", str(files)) for word in words]
    own = [f"--{split}_file={files / 'pairs.csv'}" for split in ("train", "validation", "test")]
    own += [f"--model_name_or_path={files / 'encoder'}", f"--embedding_cache={files / 'cache'}"]
    run_sts.run_stages([*BASE, *own, f"--output_dir={folder}", *given])
    other = [word.partition("=")[2] for word in given if word.startswith("--output_dir=")]
    return Path(other[0]) if other else folder


@pytest.fixture
def train(files: Path, tmp_path: Path) -> Callable[..., Path]:
    """`train(*words)` runs the command and returns the folder of the run."""
    return lambda *words, name="run": run_command(files, tmp_path / name, *words)


@pytest.fixture(scope="module")
def without(files: Path) -> dict[str, torch.Tensor]:
    """The weights of a training without any further option."""
    return load_file(run_command(files, files / "without") / "model.safetensors")


@pytest.fixture
def as_before() -> Iterator[None]:
    """Some options set state of the whole process."""
    verbosity, environment = transformers_logging.get_verbosity(), dict(os.environ)
    yield
    transformers_logging.set_verbosity(verbosity)
    torch.use_deterministic_algorithms(False)
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]


def test_the_table_knows_every_field() -> None:
    assert sorted(TABLE) == sorted(FIELDS)


@pytest.mark.parametrize("name", TABLE)
def test_the_table_tries_the_field_that_it_names(name: str) -> None:
    words = TABLE[name].words
    assert any(word.partition("=")[0] == f"--{name}" for word in words) or name == "greater_is_better"


@pytest.mark.parametrize("name", WORKING)
def test_what_works_is_read(name: str) -> None:
    [without], [stage] = (
        parse_stages(["--train_file=a.csv", "--refit=false", *BASE, *words]) for words in ([], WORKING[name].words)
    )
    usual = [getattr(without.training_args, name), TrainingArguments.__dataclass_fields__[name].default]
    assert any(getattr(stage.training_args, name) != value for value in usual)


@pytest.mark.parametrize("row", [*by_name(list(REFUSED.values())), *by_name(FURTHER)])
def test_what_cannot_work_is_refused_when_it_is_read(row: Refused) -> None:
    with pytest.raises(ValueError, match=re.escape(row.message)) as raised:
        parse_stages(["--train_file=a.csv", *row.words])
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize("row", [*by_name(list(REFUSED_IN_TRAINING.values())), *by_name(FURTHER_IN_TRAINING)])
def test_what_this_training_cannot_do_is_refused_before_anything_is_written(
    train: Callable[..., Path], tmp_path: Path, row: RefusedInTraining
) -> None:
    with pytest.raises(ValueError, match=re.escape(row.message)) as raised:
        train(*row.words)
    assert len(str(raised.value).splitlines()) == 1
    assert not list((tmp_path / "run").rglob("*"))


@pytest.mark.parametrize("name", ["bf16_full_eval", "fp16_full_eval"])
def test_an_evaluation_may_score_in_half_precision(train: Callable[..., Path], name: str) -> None:
    folder = train()
    weights = load_file(folder / "model.safetensors")
    score = ["--do_eval", f"--model_name_or_path={folder}"]
    results = [
        json.loads((train(*score, *words, name=output) / "run.json").read_text())["results"]["as loaded"]["test"]
        for output, words in (("single", []), ("half", [f"--{name}=true"]))
    ]
    assert results[0] != results[1]
    assert results[1]["pearson_cosine"] == pytest.approx(results[0]["pearson_cosine"], abs=0.1)
    assert all(torch.equal(value, weights[key]) for key, value in load_file(folder / "model.safetensors").items())


@pytest.mark.slow
@pytest.mark.usefixtures("as_before")
@pytest.mark.parametrize("name", WORKING)
def test_what_works_does_what_it_is_for(
    without: dict[str, torch.Tensor], train: Callable[..., Path], name: str
) -> None:
    row = WORKING[name]
    folder = train(*row.words)
    run = json.loads((folder / "run.json").read_text())
    if row.weights is not None:
        weights = load_file(folder / "model.safetensors")
        is_same = all(torch.allclose(weights[key], value, atol=1e-5, rtol=1e-4) for key, value in without.items())
        assert is_same is row.weights
    assert row.effect is None or row.effect(run, folder)


def test_the_pairs_of_a_fixed_number_of_steps_are_counted(tmp_path: Path) -> None:
    options: dict[str, Any] = {"output_dir": str(tmp_path), "report_to": "none", "per_device_train_batch_size": 8}
    args = STSTrainingArguments(**options, gradient_accumulation_steps=2, max_steps=10)
    assert args.num_pairs_of_steps == 160
    assert STSTrainingArguments(**options).num_pairs_of_steps is None
    assert STSTrainingArguments(**options, max_steps=10, head_solver="lbfgs").num_pairs_of_steps is None
