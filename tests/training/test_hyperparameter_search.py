"""Trainer's own search for settings, with our Trainer."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from transformers import PreTrainedTokenizerBase

from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.tokenization import tokenize_pairs
from sts_regression.training.trainer import STSTrainer
from sts_regression.training.training_arguments import STSTrainingArguments

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "own_pairs.md"
WORDS = ["cat", "dog", "man", "park", "water", "house", "red", "big"]


def test_the_documented_search_runs(
    tiny_encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("optuna", reason="the optuna extra is not installed")
    [code] = re.findall(
        r"```python\n(.*?hyperparameter_search.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL
    )
    lines = [f"a {WORDS[i % 8]},the {WORDS[i * i % 8]} {i % 3},{i % 3}\n" for i in range(60)]
    (tmp_path / "pairs.csv").write_text("sentence1,sentence2,label\n" + "".join(lines))
    monkeypatch.chdir(tmp_path)
    options = ["--train_file=pairs.csv", f"--model_name_or_path={tiny_encoder_path}", "--report_to=none"]
    code = code.replace('"--train_file=pairs.csv"', ", ".join(f'"{option}"' for option in options))
    searched: dict[str, Any] = {}
    exec(code.replace("n_trials=20", "n_trials=2"), searched)
    assert searched["best"].hyperparameters.keys() == {"learning_rate", "num_train_epochs"}
    assert str(searched["best"].hyperparameters) in capsys.readouterr().out
    trials = sorted(path.name for path in (tmp_path / "outputs" / "search").iterdir())
    assert trials == ["run-0", "run-1"]


@pytest.fixture
def trainer(
    make_model: Callable[..., STSRegressionModel], tokenizer: PreTrainedTokenizerBase, tmp_path: Path
) -> STSTrainer:
    columns = {"sentence1": WORDS, "sentence2": WORDS[::-1], "label": [float(i % 6) for i in range(8)]}
    pairs = tokenize_pairs(Dataset.from_dict(columns), tokenizer, "bi-encoder")
    options: dict[str, Any] = {
        **{"output_dir": str(tmp_path), "report_to": "none", "disable_tqdm": True, "num_train_epochs": 1},
        **{"learning_rate": 0.0, "head_learning_rate": 1e-3, "wise_ft_alpha": 0.5, "weight_decay": 0.0},
    }
    return STSTrainer(make_model(), STSTrainingArguments(**options), pairs, pairs, tokenizer)


def test_the_model_of_a_trial_is_averaged_with_its_own_start(
    trainer: STSTrainer, make_model: Callable[..., STSRegressionModel]
) -> None:
    def other_model() -> STSRegressionModel:
        model = make_model()
        with torch.no_grad():
            for parameter in model.encoder.parameters():
                parameter.add_(1.0)
        return model

    trainer.model_init = other_model
    trainer.train()
    expected = other_model().encoder.state_dict()
    for name, value in trainer.model.encoder.state_dict().items():
        torch.testing.assert_close(value, expected[name])


def test_a_search_does_not_lose_an_adapter(trainer: STSTrainer, make_model: Callable[..., STSRegressionModel]) -> None:
    trainer.adapter = object()  # stands for one of PEFT
    trainer.model_init = make_model
    with pytest.raises(ValueError, match="`model_init` makes a model without the adapter of `--use_peft`"):
        trainer.train()
