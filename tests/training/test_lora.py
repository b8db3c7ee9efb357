"""LoRA: trained weights, files of a run, and equal scores before and after saving and merging."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import AutoModel, PreTrainedTokenizerBase

import run_sts
from sts_regression.command.arguments import parse_stages
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.options.model_arguments import ModelArguments
from sts_regression.training.learning_rates import learning_rates
from sts_regression.training.lora import add_lora, merge_adapter
from sts_regression.training.training_arguments import STSTrainingArguments

peft = pytest.importorskip("peft")

Train = Callable[..., Path]
MakeModel = Callable[..., STSRegressionModel]
WORDS = ["cat", "dog", "man", "park", "water", "house", "red", "big"]
PAIR = [["the red cat", "a dog in the park"], ["water", "a big house"]]

# Loads a checkpoint where PEFT is not installed, and prints the scores of the pairs.
SCORE_WITHOUT_PEFT = """
import json
sys.modules["peft"] = None
import torch
from transformers import AutoModel, AutoTokenizer

folder, pairs = sys.argv[1], json.loads(sys.argv[2])
tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
model = AutoModel.from_pretrained(folder, trust_remote_code=True)
scores = []
for pair in pairs:
    inputs = tokenizer(pair, padding=True, return_tensors="pt")
    with torch.no_grad():
        scores.append(model(**{name: tensor[None] for name, tensor in inputs.items()}).scores.item())
print(json.dumps(scores))
"""


@pytest.fixture
def train(tiny_encoder_path: Path, tmp_path: Path) -> Train:
    """`train(*options)` runs the command with LoRA on the tiny encoder and returns the folder of the run."""
    rows = [f"the {WORDS[i % 8]} {WORDS[i % 5]},a {WORDS[i * i % 8]},{i % 6}" for i in range(24)]
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("\n".join(["sentence1,sentence2,label", *rows]))

    def run(*options: str, output_dir: Path = tmp_path / "run") -> Path:
        files = [f"--{split}_file={pairs}" for split in ("train", "validation", "test")]
        common = ["--report_to=none", "--num_train_epochs=2", "--disable_tqdm=true", "--leak_filter=none"]
        common += [f"--model_name_or_path={tiny_encoder_path}", "--learning_rate=1e-2", "--use_peft", "--lora_r=4"]
        run_sts.run_stages([*files, *common, f"--output_dir={output_dir}", *options])
        return output_dir

    return run


@torch.no_grad()
def score(model: STSRegressionModel, tokenizer: PreTrainedTokenizerBase) -> list[float]:
    batches = [tokenizer(pair, padding=True, return_tensors="pt") for pair in PAIR]
    return [model(**{name: tensor[None] for name, tensor in batch.items()}).scores.item() for batch in batches]


def trained_layers(model: STSRegressionModel) -> dict[str, Tensor]:
    """LoRA's layers with random numbers where training starts from zero, so that there is something to merge."""
    torch.manual_seed(1)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.5)
    return {name: parameter for name, parameter in model.named_parameters() if "lora_" in name}


def test_every_way_of_loading_a_run_gives_one_score(
    train: Train, tiny_encoder_path: Path, tokenizer: PreTrainedTokenizerBase, run_in_subprocess: Callable[..., str]
) -> None:
    folder = train()
    assert {path.name for path in (folder / "adapter").iterdir()} == {
        "adapter_config.json",
        "adapter_model.safetensors",
        "head.safetensors",
    }
    merged = STSRegressionModel.from_pretrained(folder)
    expected = score(merged, tokenizer)
    plain = run_in_subprocess(SCORE_WITHOUT_PEFT, folder, json.dumps(PAIR))
    assert json.loads(plain) == pytest.approx(expected, abs=1e-5)

    base = STSRegressionModel.from_pretrained(folder)
    base.encoder = AutoModel.from_pretrained(tiny_encoder_path, add_pooling_layer=False)
    assert score(base, tokenizer) != pytest.approx(expected, abs=1e-3)
    base.encoder = peft.PeftModel.from_pretrained(base.encoder, folder / "adapter")
    base.head.load_state_dict(load_file(folder / "adapter" / "head.safetensors"))
    assert score(base, tokenizer) == pytest.approx(expected, abs=1e-5)

    measured = json.loads((folder / "run.json").read_text())["results"]["after training"]["test"]
    train(f"--model_name_or_path={folder}", "--do_eval", output_dir=folder / "evaluation")
    again = json.loads((folder / "evaluation" / "run.json").read_text())["results"]["as loaded"]["test"]
    assert again == pytest.approx(measured, abs=1e-5)


def test_a_run_names_no_local_path(train: Train, tiny_encoder_path: Path) -> None:
    folder = train("--num_train_epochs=1")
    for path in (folder / "config.json", *folder.rglob("adapter_config.json")):
        assert tiny_encoder_path.name not in path.read_text()


def test_only_the_named_modules_and_the_head_change(train: Train, tiny_encoder_path: Path) -> None:
    folder = train("--lora_target_modules", "query", "layer.1.output.dense")
    before, after = load_file(tiny_encoder_path / "model.safetensors"), load_file(folder / "model.safetensors")
    assert after.keys() == {f"encoder.{name}" for name in before} | {"head.weight", "head.bias"}
    changed = {name for name, value in before.items() if not torch.equal(value, after[f"encoder.{name}"])}
    queries = {f"encoder.layer.{layer}.attention.self.query.weight" for layer in (0, 1)}
    assert changed == queries | {"encoder.layer.1.output.dense.weight"}


def test_checkpoints_hold_adapter_and_head_and_the_best_one_ends_the_run(train: Train) -> None:
    folder = train("--num_train_epochs=4", "--save_total_limit=5")
    checkpoints = list(folder.glob("checkpoint-*"))
    assert len(checkpoints) == 4
    assert not any((checkpoint / "model.safetensors").exists() for checkpoint in checkpoints)
    best = json.loads((folder / "run.json").read_text())["training"]["best_step"]
    for name in ("adapter_model.safetensors", "head.safetensors"):
        saved, kept = (load_file(path / name) for path in (folder / f"checkpoint-{best}", folder / "adapter"))
        assert saved.keys() == kept.keys()
        assert all(torch.equal(saved[key], kept[key]) for key in kept)


def test_a_resumed_run_ends_as_an_uninterrupted_one(train: Train) -> None:
    options = ["--num_train_epochs=3", "--save_total_limit=5", "--load_best_model_at_end=false"]
    folder = train(*options)
    whole = load_file(folder / "model.safetensors")
    first, *later = sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
    for path in later:
        shutil.rmtree(path)
    (folder / "run.json").unlink()
    train(*options, "--resume_from_checkpoint=true")
    assert first.is_dir()
    for name, value in load_file(folder / "model.safetensors").items():
        torch.testing.assert_close(value, whole[name], atol=1e-6, rtol=1e-5)


def test_a_run_without_lora_that_replaces_one_with_it_leaves_no_adapter(train: Train) -> None:
    folder = train("--num_train_epochs=1")
    train("--num_train_epochs=1", "--use_peft=false", "--lora_r=16", "--overwrite_output_dir")
    assert not (folder / "adapter").exists()


def test_averages_are_of_merged_weights(train: Train, tiny_encoder_path: Path, tmp_path: Path) -> None:
    no_selection = ["--eval_strategy=no", "--save_strategy=no", "--load_best_model_at_end=false"]
    start = load_file(tiny_encoder_path / "model.safetensors")
    tuned, mixed = (
        load_file(train(*no_selection, *options, output_dir=tmp_path / name) / "model.safetensors")
        for name, options in (("tuned", []), ("mixed", ["--wise_ft_alpha=0.25"]))
    )
    name = "encoder.layer.0.attention.self.query.weight"
    assert not torch.allclose(tuned[f"encoder.{name}"], start[name], atol=1e-3)
    for name, value in start.items():
        expected = 0.75 * value + 0.25 * tuned[f"encoder.{name}"]
        torch.testing.assert_close(mixed[f"encoder.{name}"], expected, atol=1e-5, rtol=1e-4)

    folder = train(*no_selection, "--model_soup=2", output_dir=tmp_path / "soup")
    soup = load_file(folder / "model.safetensors")
    first, second = (load_file(folder / f"member-{number}" / "model.safetensors") for number in (1, 2))
    assert not torch.equal(first["head.weight"], second["head.weight"])
    for name, value in soup.items():
        torch.testing.assert_close(value, (first[name] + second[name]) / 2)


@pytest.mark.parametrize(
    "options",
    [
        ["--encoder_type=cross-encoder"],
        ["--gradient_checkpointing=true"],
        ["--freeze_embeddings", "--lora_target_modules", "query", "word_embeddings"],
        ["--self_distillation=1", "--score_function=cosine"],
    ],
    ids=lambda options: options[0],
)
def test_the_encoder_learns_together_with_other_options(
    train: Train, tiny_encoder_path: Path, tmp_path: Path, options: list[str]
) -> None:
    folder = train("--num_train_epochs=1", f"--embedding_cache={tmp_path / 'embeddings'}", *options)
    before, after = load_file(tiny_encoder_path / "model.safetensors"), load_file(folder / "model.safetensors")
    names = ("embeddings.word_embeddings.weight", "encoder.layer.0.attention.self.query.weight")
    assert [torch.equal(before[name], after[f"encoder.{name}"]) for name in names] == [True, False]


def test_scores_do_not_change_by_adding_and_merging(make_model: MakeModel, tokenizer: PreTrainedTokenizerBase) -> None:
    model = make_model()
    untouched = score(model, tokenizer)
    adapter = add_lora(model, r=4, alpha=8, dropout=0.0)
    assert score(model, tokenizer) == untouched
    trained_layers(model)
    trained = score(model, tokenizer)
    assert trained != pytest.approx(untouched, abs=1e-3)
    model.config.encoding = "padded"
    assert score(model, tokenizer) == pytest.approx(trained, abs=1e-5)
    merge_adapter(adapter)
    assert score(model, tokenizer) == pytest.approx(trained, abs=1e-5)
    assert model.state_dict().keys() == make_model().state_dict().keys()
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_learning_rates_fall_from_layer_to_layer(make_model: MakeModel, tmp_path: Path) -> None:
    model = make_model()
    add_lora(model, r=4, alpha=8, dropout=0.0)
    args = STSTrainingArguments(
        output_dir=str(tmp_path), learning_rate=1.0, head_learning_rate=3.0, layerwise_lr_decay=0.5
    )
    rates = learning_rates(model, args)
    by_name = {name: rates[parameter] for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert {rate for name, rate in by_name.items() if "layer.0." in name} == {0.5}
    assert {rate for name, rate in by_name.items() if "layer.1." in name} == {1.0}
    assert {rate for name, rate in by_name.items() if "lora_" not in name} == {3.0}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--lora_r=8"], "`lora_r` is an option of LoRA. Give `--use_peft`, too"),
        (["--use_peft", "--lora_r=0"], "`lora_r` must be at least 1, but is 0."),
        (["--use_peft", "--lora_alpha=0"], "`lora_alpha` must be at least 1, but is 0."),
        (["--use_peft", "--lora_dropout=1"], "`lora_dropout` must be at least 0 and less than 1, but is 1.0."),
        (["--use_peft", "--freeze_encoder"], "`use_peft` changes the encoder that `--freeze_encoder` leaves as it is"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_stages(options)


def test_modules_that_the_encoder_lacks_are_refused(make_model: MakeModel) -> None:
    with pytest.raises(ValueError, match=r"`lora_target_modules`: Target modules .*quary.* not found"):
        add_lora(make_model(), r=4, alpha=8, dropout=0.0, target_modules=["quary"])


def test_without_peft_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sts_regression.options.model_arguments.importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        ValueError, match=re.escape('`use_peft` needs the PEFT library. Install it with `pip install "')
    ):
        ModelArguments(use_peft=True)
