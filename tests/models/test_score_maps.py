"""An affine map of the score for each source of training pairs."""

import csv
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from datasets import Dataset
from transformers import PreTrainedTokenizerBase

from sts_regression.losses_sts_regression import smooth_k2
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.score_maps import fit_group_intercepts, fit_score_maps
from sts_regression.models.tokenization import tokenize_pairs
from sts_regression.run_sts import run_stages
from sts_regression.training.trainer import STSTrainer
from sts_regression.training.training_arguments import STSTrainingArguments

TEXTS = ["the cat", "a dog in the park", "red water", "a big house", "the man", "cat and dog"]


def test_a_map_takes_the_first_scale_to_the_other() -> None:
    cosines = np.array([0.0, 0.5, 1.0, 0.2, 0.6, 1.0])
    labels = np.where(np.arange(6) < 3, 1 + 4 * cosines, -0.5 + 2 * cosines)
    maps = fit_score_maps(cosines, labels, np.array([0, 0, 0, 1, 1, 1]), ["a", "b"])
    assert maps[0] == pytest.approx([0, 1])
    assert maps[1, 0] + maps[1, 1] * (1 + 4 * 0.3) == pytest.approx(-0.5 + 2 * 0.3)  # the score of a cosine of 0.3


@pytest.mark.parametrize("labels", [[0, 1, 2, 5, 3, 1], [0, 1, 2, 1, 1, 1]])
def test_a_source_whose_labels_do_not_rise_is_refused(labels: list[float]) -> None:
    cosines = np.array([0.0, 0.5, 1.0, 0.2, 0.6, 1.0])
    with pytest.raises(ValueError, match="labels of b do not rise"):
        fit_score_maps(cosines, np.array(labels, float), np.array([0, 0, 0, 1, 1, 1]), ["a", "b"])


def test_intercepts_are_the_predictions_of_a_random_intercept_model() -> None:
    generator = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), generator.integers(2, 12, 40))
    cosines = generator.uniform(0, 1, len(groups))
    offsets = generator.normal(0, 0.5, 40)
    labels = 1 + 3 * cosines + offsets[groups] + generator.normal(0, 0.3, len(groups))
    intercepts = fit_group_intercepts(
        cosines, labels, np.zeros(len(groups), dtype=int), groups, np.arange(len(groups))
    )
    assert all(np.ptp(intercepts[groups == number]) == 0 for number in range(40))
    of_groups = np.array([intercepts[groups == number][0] for number in range(40)])
    assert np.corrcoef(of_groups, offsets)[0, 1] > 0.95
    # Shrunken towards 0, the more the fewer pairs a group has.
    line = np.polyfit(cosines, labels, 1)
    means = np.array([(labels - np.polyval(line, cosines))[groups == number].mean() for number in range(40)])
    shrinkage = of_groups / means
    sizes = np.bincount(groups)
    expected = 0.5**2 / (0.5**2 + 0.3**2 / sizes)
    np.testing.assert_allclose(shrinkage, expected, atol=0.05)


def test_a_source_has_a_line_of_its_own() -> None:
    cosines, set_of_pair = np.tile([0.0, 0.5, 1.0, 0.25], 3), np.repeat([0, 1, 1], 4)
    labels = np.where(set_of_pair == 0, 1 + cosines, 5 - cosines)
    intercepts = fit_group_intercepts(cosines, labels, set_of_pair, np.arange(12) // 2, np.arange(12))
    np.testing.assert_allclose(intercepts, 0, atol=1e-12)


@pytest.mark.parametrize("groups", [range(8), [0] * 2 + [*range(1, 7)], [0] * 8])
def test_groups_without_others_have_no_intercept(groups: Sequence[int]) -> None:
    """A common effect of single pairs, or of the only larger group, cannot be told from noise."""
    labels = np.array([0.0, 3, 1, 2, 0, 1, 3, 2])
    zeros = np.zeros(8, dtype=int)
    assert not fit_group_intercepts(np.linspace(0, 1, 8), labels, zeros, np.array(groups), np.arange(8)).any()


def test_equal_labels_and_cosines_have_no_intercept() -> None:
    zeros = np.zeros(6, dtype=int)
    assert not fit_group_intercepts(np.ones(6), np.ones(6), zeros, np.arange(6) // 2, np.arange(6)).any()


def test_the_loss_is_that_of_mapped_scores(
    make_model: Callable[..., STSRegressionModel], tokenizer: PreTrainedTokenizerBase, tmp_path: Path
) -> None:
    model = make_model(score_function="cosine", loss_type="smooth_k2", label_values=[0, 1, 2]).eval()
    pairs = Dataset.from_dict({"sentence1": TEXTS, "sentence2": TEXTS[::-1], "label": [0.0, 1, 2, 2, 1, 0]})
    encoded = tokenize_pairs(pairs, tokenizer, "bi-encoder").add_column("score_map", [[0.0, 1.0], [0.5, 2.0]] * 3)
    args = STSTrainingArguments(
        output_dir=str(tmp_path), report_to="none", use_cpu=True, eval_strategy="no", load_best_model_at_end=False
    )
    trainer = STSTrainer(model, args, encoded, processing_class=tokenizer)
    batch = trainer.data_collator([encoded[row] for row in range(6)])
    maps = batch["score_maps"]
    loss, outputs = trainer.compute_loss(trainer.model, dict(batch), return_outputs=True)
    expected = smooth_k2(maps[:, 0] + maps[:, 1] * outputs["scores"], batch["labels"], 2.0, 0.25)
    torch.testing.assert_close(loss, expected)


def write(path: Path, labels: Sequence[float]) -> Path:
    with path.open("w", newline="") as file:
        rows = ((TEXTS[i % 6], TEXTS[i % 6] if i % 3 == 0 else TEXTS[i % 5], label) for i, label in enumerate(labels))
        csv.writer(file).writerows([("sentence1", "sentence2", "label"), *rows])
    return path


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], ""),
        (["--loss=pearson"], "`source_scales` maps the scores of a bi-encoder"),
        (["--encoder_type=cross-encoder"], "`source_scales` maps the scores of a bi-encoder"),
        (["--freeze_encoder"], "`source_scales` compares a trained encoder"),
        (["one file"], "`source_scales` needs several training sets"),
    ],
)
def test_a_run_maps_the_scores_of_its_sources(
    options: list[str], message: str, tiny_encoder_path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    labels = [2 * (i % 3 == 0) + i % 2 for i in range(36)]  # higher for equal texts
    first, second = (
        write(tmp_path / "first.csv", labels),
        write(tmp_path / "second.csv", [3 - 3 / (1 + x) for x in labels]),
    )
    files = [f"--train_file={first}"] if options == ["one file"] else ["--train_file", str(first), str(second)]
    command = [*files, f"--validation_file={first}", "--source_scales=true", "--label_values", "0", "1", "2", "3"]
    command += [f"--model_name_or_path={tiny_encoder_path}", f"--output_dir={tmp_path / 'run'}", "--max_steps=1"]
    command += [
        "--report_to=none",
        "--disable_tqdm=true",
        "--leak_filter=none",
        *(o for o in options if o != "one file"),
    ]
    if message:
        with pytest.raises(ValueError, match=re.escape(message)):
            run_stages(command)
        return
    with caplog.at_level("INFO"):
        run_stages(command)
    lines = [line for line in caplog.messages if "* score" in line]
    assert lines[0].endswith("first.csv: label = +0.00 +1.00 * score")
    assert re.search(r"second\.csv: label = [+-]\d\.\d\d \+0\.\d\d \* score", lines[1])


def test_a_run_leaves_out_what_pairs_of_a_text_have_in_common(
    tiny_encoder_path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    words = ["red", "big", "dog", "cat", "man", "park"]
    rows = [
        (f"the {word}", f"a {other} {word}", i % 2 + (j > 2))
        for i, word in enumerate(words)
        for j, other in enumerate(words)
    ]
    with (tmp_path / "pairs.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("sentence1", "sentence2", "label"), *rows])
    command = [f"--train_file={tmp_path / 'pairs.csv'}", "--group_intercepts=true", "--label_values", "0", "1", "2"]
    command += [f"--model_name_or_path={tiny_encoder_path}", f"--output_dir={tmp_path / 'run'}", "--max_steps=1"]
    command += [f"--embedding_cache={tmp_path / 'embeddings'}", "--report_to=none", "--disable_tqdm=true"]
    technical = ("sentences encoded, ", "an offset for each group of pairs that share a text (standard")
    run_stages(command)
    assert not any(words in line for words in technical for line in caplog.messages)
    run_stages([*command, "--verbose", "--overwrite_output_dir"])
    assert all(any(words in line for line in caplog.messages) for words in technical)
    with pytest.raises(ValueError, match="`group_intercepts` maps the scores of a bi-encoder"):
        run_stages([*command, "--loss=pearson", "--overwrite_output_dir"])


def test_copies_of_a_pair_have_no_intercept_of_their_own() -> None:
    generator = np.random.default_rng(0)
    cosines, labels, zeros = generator.normal(size=20), generator.integers(0, 5, 20), np.zeros(60, dtype=int)
    pairs = np.tile(np.arange(20), 3)
    assert not fit_group_intercepts(cosines[pairs], labels[pairs], zeros, pairs, keys=pairs).any()


def test_intercepts_do_not_depend_on_the_numbers_of_the_keys() -> None:
    generator = np.random.default_rng(0)
    cosines, labels, zeros = generator.normal(size=60), generator.normal(size=60), np.zeros(60, dtype=int)
    groups, keys = np.arange(60) // 4, np.arange(60) // 2
    first, second = (
        fit_group_intercepts(cosines, labels, zeros, groups, renamed[keys])
        for renamed in (np.arange(30), generator.permutation(30))
    )
    assert first.any()
    assert first.tolist() == second.tolist()
