"""The head solved for at once: it is the minimum, and losses without one are refused."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from safetensors.torch import load_file
from transformers import PreTrainedTokenizerBase

import run_sts
from sts_regression.configuration_sts_regression import BUFFER_ZONE_LOSSES, REGRESSION_LOSSES, STSRegressionConfig
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.embedding_store import EmbeddedPairs, embed_pairs
from sts_regression.training import head_solver
from sts_regression.training.head_solver import check_convex, solve_head

WORDS = ("cat", "dog", "man", "park", "water", "house", "red", "big")
MakeModel = Callable[..., STSRegressionModel]


@pytest.fixture
def embed(tokenizer: PreTrainedTokenizerBase, tmp_path: Path) -> Callable[[STSRegressionModel], EmbeddedPairs]:
    rows = [(f"the {WORDS[i % 8]} {WORDS[i % 5]}", f"a {WORDS[i * i % 8]}", float(i % 6)) for i in range(60)]
    columns = {name: [row[k] for row in rows] for k, name in enumerate(("sentence1", "sentence2", "label"))}
    return lambda model: embed_pairs({"train": Dataset.from_dict(columns)}, model, tokenizer, tmp_path)["train"]


def objective(model: STSRegressionModel, pairs: EmbeddedPairs, l2_penalty: float) -> torch.Tensor:
    loss = model(**pairs.__getitems__(list(range(len(pairs))))).loss
    return loss + l2_penalty / 2 * model.head.weight.square().sum()


def test_mse_has_the_solution_of_ridge_regression(make_model: MakeModel, embed: Any) -> None:
    model = make_model(loss_type="mse")
    pairs = embed(model)
    batch = pairs.__getitems__(list(range(60)))
    u, v = batch["embeddings"].double().unbind(dim=1)
    features = torch.cat([u, v, (u - v).abs(), torch.ones(60, 1)], dim=1).numpy()
    penalty = np.diag([0.1] * (features.shape[1] - 1) + [0.0])
    factor = 2 / 60  # of the mean of squares
    expected = np.linalg.solve(
        factor * features.T @ features + penalty, factor * features.T @ batch["labels"].double().numpy()
    )
    solve_head(model, pairs, l2_penalty=0.1)
    found = torch.cat([model.head.weight[0], model.head.bias]).detach().numpy()
    np.testing.assert_allclose(found, expected, atol=5e-3)


@pytest.mark.parametrize(
    "options",
    [
        *({"loss_type": loss} for loss in ("smooth_k2", "translated_relu", "mse", "l1", "cross_entropy")),
        {"loss_type": "binary_cross_entropy"},
        {"loss_type": "corn"},
        {"loss_type": "smooth_k2", "boundary": "relax"},
        {"loss_type": "smooth_k2", "score_function": "cosine"},
    ],
    ids=str,
)
def test_no_small_step_leads_further_down(make_model: MakeModel, embed: Any, options: dict[str, Any]) -> None:
    model = make_model(**options)
    pairs = embed(model)
    before = objective(model, pairs, 0.01).item()
    losses: list[float] = []
    numbers: list[int] = []

    def note(number: int, loss: float) -> None:
        numbers.append(number)
        losses.append(loss)

    iterations = solve_head(model, pairs, 0.01, on_iteration=note)
    assert numbers == sorted(numbers)
    assert 0 < numbers[-1] == iterations <= 20 * len(losses)
    assert losses[0] == pytest.approx(before, rel=1e-5)
    with torch.no_grad():
        best = objective(model, pairs, 0.01).item()
        assert best < before
        generator = torch.Generator().manual_seed(0)
        for _ in range(20):
            steps = [0.01 * torch.randn(p.shape, generator=generator) for p in model.head.parameters()]
            for parameter, step in zip(model.head.parameters(), steps, strict=True):
                parameter.add_(step)
            assert objective(model, pairs, 0.01).item() > best - 1e-3
            for parameter, step in zip(model.head.parameters(), steps, strict=True):
                parameter.sub_(step)


def test_iterations_that_were_not_run_do_not_count(make_model: MakeModel, embed: Any) -> None:
    model = make_model(loss_type="mse", score_function="cosine")  # two numbers
    pairs = embed(model)
    solve_head(model, pairs, 0.01)
    assert solve_head(model, pairs, 0.01) < 20


def test_blocks_change_nothing(make_model: MakeModel, embed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    heads = []
    for size in (60, 7):
        monkeypatch.setattr(head_solver, "PAIRS_AT_ONCE", size)
        model = make_model(loss_type="mse")
        solve_head(model, embed(model), 0.1)
        heads.append(model.head.weight)
    torch.testing.assert_close(*heads, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoder_type": "cross-encoder"}, r'`encoder_type="cross-encoder"` has no embeddings'),
        ({"loss_type": "info_nce"}, r'`loss_type="info_nce"` trains no head'),
        ({"boundary": "mask_negative"}, r'`boundary="mask_negative"` makes the loss non-convex'),
    ],
)
def test_what_has_no_single_minimum_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=rf"`head_solver`: {message}.*`--head_solver adamw`"):
        check_convex(STSRegressionConfig(**options))


def is_convex(model: STSRegressionModel, label: float) -> bool:
    """Whether the loss of a label is convex in the score, looked at from far below the scale to far above it."""
    labels = torch.tensor([label], dtype=torch.float64)
    scores = torch.linspace(-2, 5, 141, dtype=torch.float64)
    costs = torch.vmap(lambda score: model.compute_loss(score[None, None], score[None], None, labels))(scores)
    return bool((costs[2:] - 2 * costs[1:-1] + costs[:-2] > -1e-9).all())


@pytest.mark.parametrize("loss", REGRESSION_LOSSES)
def test_relax_is_refused_with_labels_whose_loss_it_bends_and_with_no_others(make_model: MakeModel, loss: str) -> None:
    model = make_model(loss_type=loss, boundary="relax", label_values=[0, 1, 2, 3])
    free = 0.25 if loss in BUFFER_ZONE_LOSSES else 0.0
    num_bent = 0
    for label in (i / 20 for i in range(-10, 71)):  # every 0.05, some of them beyond the scale
        labels = torch.tensor([0.0, 3.0, label])
        is_bent = free < label < 0.5 or 2.5 <= label < 3 - free
        assert is_convex(model, label) is not is_bent, label
        if is_bent:
            num_bent += 1
            message = f'`boundary="relax"` makes the loss of label {label:g}, near an end of the scale, non-convex'
            remedy = "Use `--head_solver adamw`, or `--boundary none`."
            with pytest.raises(ValueError, match=re.escape(f"`head_solver`: {message}. {remedy}")):
                check_convex(model.config, labels)
        else:
            check_convex(model.config, labels)
    assert num_bent == (9 if free else 19)


def test_fractional_labels_under_relax_are_refused_before_anything_is_written(
    tiny_encoder_path: Path, small_sts_data: Path, tmp_path: Path
) -> None:
    pairs = tmp_path / "pairs.csv"
    rows = [f"the {WORDS[i % 8]},a {WORDS[i * i % 8]},{i % 6}" for i in range(12)] + ["the cat,a dog,4.6"]
    pairs.write_text("\n".join(["sentence1,sentence2,label", *rows]))
    options = [
        *("--model_name_or_path", str(tiny_encoder_path), "--embedding_cache", str(tmp_path / "cache")),
        *("--train_file", str(pairs), "--validation_file", str(small_sts_data / "stsbenchmark" / "sts-dev.csv")),
        *("--label_values", "0", "1", "2", "3", "4", "5", "--freeze_encoder", "--head_solver=lbfgs"),
        *("--output_dir", str(tmp_path / "run"), "--report_to=none", "--disable_tqdm=true"),
    ]
    with pytest.raises(ValueError, match=r"`head_solver`: `boundary=\"relax\"` makes the loss of label 4\.6, near"):
        run_sts.run_stages([*options, "--boundary=relax"])
    assert not list((tmp_path / "run").rglob("*"))
    run_sts.run_stages(options)
    assert (tmp_path / "run" / "run.json").is_file()


def test_the_command_solves_for_the_head(tiny_encoder_path: Path, small_sts_data: Path, tmp_path: Path) -> None:
    options = [
        *("--model_name_or_path", str(tiny_encoder_path), "--embedding_cache", str(tmp_path / "cache")),
        *("--train_file", str(small_sts_data / "stsbenchmark" / "sts-train.csv")),
        *("--validation_file", str(small_sts_data / "stsbenchmark" / "sts-dev.csv")),
        *("--output_dir", str(tmp_path / "run"), "--report_to=none", "--head_solver=lbfgs", "--disable_tqdm=true"),
    ]
    with pytest.raises(
        ValueError, match=r"`head_solver`: lbfgs solves on .* frozen encoder\. Give `--freeze_encoder`"
    ):
        run_sts.run_stages(options)
    run_sts.run_stages([*options, "--freeze_encoder"])
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    losses = [entry["loss"] for entry in record["training"]["log_history"]]
    assert losses[-1] < losses[0]
    assert 0 < record["training"]["steps"] <= 20 * len(losses)
    encoder = load_file(tiny_encoder_path / "model.safetensors")
    trained = load_file(tmp_path / "run" / "model.safetensors")
    assert all(torch.equal(trained[f"encoder.{name}"], value) for name, value in encoder.items())
    assert (tmp_path / "run" / "loss_curve.png").is_file()
