"""What the tests share: a small tokenizer, tiny encoders built from a configuration, and a helper for fresh processes.

Nothing here downloads anything. Configurations are made anew for each test, because tests may change them.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer, BertConfig, BertModel, PretrainedConfig, PreTrainedTokenizerBase

from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.modeling_sts_regression import STSRegressionModel

FIXTURES = Path(__file__).parent / "fixtures"

# Hides the helper package from a fresh process even where it is installed into the environment.
HIDE_PACKAGE = "import sys; sys.modules['sts_regression'] = None\n"
SUBPROCESS_TIMEOUT = 300  # seconds


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerBase:
    """The committed WordPiece tokenizer, lower-case, with the special tokens of BERT."""
    return AutoTokenizer.from_pretrained(FIXTURES / "tokenizer")


def build_tiny_encoder_config(tokenizer: PreTrainedTokenizerBase) -> BertConfig:
    return BertConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        vocab_size=len(tokenizer),
        max_position_embeddings=128,
    )


@pytest.fixture
def tiny_encoder_config(tokenizer: PreTrainedTokenizerBase) -> BertConfig:
    """A BERT of two layers that fits the tokenizer; dropout as in BERT."""
    return build_tiny_encoder_config(tokenizer)


@pytest.fixture(scope="session")
def tiny_encoder_path(tmp_path_factory: pytest.TempPathFactory, tokenizer: PreTrainedTokenizerBase) -> Path:
    """A folder with a tiny BERT of fixed random weights and its tokenizer, to train from."""
    folder = tmp_path_factory.mktemp("tiny-encoder")
    torch.manual_seed(0)
    BertModel(build_tiny_encoder_config(tokenizer), add_pooling_layer=False).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def make_model(tiny_encoder_config: BertConfig) -> Callable[..., STSRegressionModel]:
    """`make_model(**options)`: an STSRegressionModel with fixed random weights, in evaluation mode."""

    def make(
        encoder_config: PretrainedConfig | None = None,
        model_class: type[STSRegressionModel] = STSRegressionModel,
        **options: Any,
    ) -> STSRegressionModel:
        torch.manual_seed(0)
        config = STSRegressionConfig(encoder_config=encoder_config or tiny_encoder_config, **options)
        return model_class(config).eval()

    return make


@pytest.fixture(scope="session")
def run_in_subprocess(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """`run_in_subprocess(code, *arguments, cwd=None, env=None)`: what the code prints in a fresh process.

    The process starts outside the repository, cannot import the helper package, is offline, has nothing on its
    standard input and begins with an empty cache of code from checkpoints. `cwd` defaults to an empty folder; `env` is
    added to the environment. The test fails with the process's error output if the process fails.
    """

    def run(code: str, *arguments: object, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
        environment = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "HF_HUB_OFFLINE": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_MODULES_CACHE": str(tmp_path_factory.mktemp("modules-cache")),
            "TRANSFORMERS_VERBOSITY": "error",
            **(env or {}),
        }
        process = subprocess.run(
            [sys.executable, "-c", HIDE_PACKAGE + code, *map(str, arguments)],
            cwd=cwd or tmp_path_factory.mktemp("working-directory"),
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SUBPROCESS_TIMEOUT,
        )
        if process.returncode != 0:
            pytest.fail(f"the process ended with code {process.returncode}:\n{process.stderr}", pytrace=False)
        return process.stdout

    return run
