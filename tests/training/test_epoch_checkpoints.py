"""A checkpoint at the last step of an epoch resumes to the evaluations and weights of an uninterrupted run."""

from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.torch import load_file

from sts_regression.basics.tables import read_record
from sts_regression.run_sts import run_stages


@pytest.mark.parametrize("scheduler", ["linear", "reduce_lr_on_plateau"])
def test_an_evaluation_of_the_epoch_comes_before_its_checkpoint(
    resumable: Callable[..., list[str]], tmp_path: Path, scheduler: str
) -> None:
    options = ["--save_strategy=steps", "--save_steps=3", "--save_total_limit=9", "--load_best_model_at_end=false"]
    options += ["--eval_strategy=epoch", f"--lr_scheduler_type={scheduler}", "--warmup_steps=0"]
    whole = run_stages(resumable(tmp_path / "whole", *options))
    named = f"--resume_from_checkpoint={whole / 'checkpoint-3'}"
    resumed = run_stages(resumable(tmp_path / "resumed", *options, named))
    steps = []
    for folder in (whole, resumed):
        history = read_record(folder / "run.json")["training"]["log_history"]
        steps.append([entry["step"] for entry in history if "eval_spearman_cosine" in entry])
    assert steps == [[3, 6, 9]] * 2
    weights = [load_file(folder / "model.safetensors") for folder in (whole, resumed)]
    assert all(weights[0][name].equal(weights[1][name]) for name in weights[0])
