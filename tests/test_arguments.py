"""Options: defaults, recipes, overrides, and what is refused."""

import re
from pathlib import Path

import pytest

from sts_regression.arguments import QUICKSTART_RECIPE, parse_arguments
from sts_regression.configuration_sts_regression import STSRegressionConfig

ROOT = Path(__file__).resolve().parent.parent
RECIPES = [*sorted((ROOT / "recipes").glob("*.yaml")), QUICKSTART_RECIPE]


def write_recipe(folder: Path, text: str) -> str:
    path = folder / "recipe.yaml"
    path.write_text(text)
    return str(path)


def test_the_bare_command_is_the_quick_start() -> None:
    model_args, data_args, training_args = parse_arguments(["--loss", "smooth_k2"])
    assert (model_args.score_function, training_args.num_train_epochs) == ("cosine", 2)
    assert not data_args.has_pairs
    assert training_args.output_dir == str(Path("outputs/quickstart-smooth_k2"))


def test_options_win_over_the_quick_start() -> None:
    model_args, _, training_args = parse_arguments(["--score_function", "linear", "--num_train_epochs", "1"])
    assert (model_args.score_function, training_args.num_train_epochs) == ("linear", 1)


def test_own_pairs_do_not_use_the_quick_start() -> None:
    model_args, _, training_args = parse_arguments(["--train_file", "data/pairs.csv", "--loss", "mse"])
    assert model_args.config_overrides() == {"loss_type": "mse"}
    assert training_args.num_train_epochs == 4
    assert training_args.output_dir == str(Path("outputs/pairs-mse"))


def test_the_command_line_wins_over_a_recipe(tmp_path: Path) -> None:
    recipe = write_recipe(tmp_path, "train_file: a.csv\nseed: 1\nlearning_rate: 5e-5\nbf16: false\nrun_name: null\n")
    _, data_args, training_args = parse_arguments([recipe, "--seed", "7"])
    assert (data_args.train_file, training_args.seed, training_args.learning_rate) == ("a.csv", 7, 5e-5)


def test_lists_of_a_recipe_are_lists(tmp_path: Path) -> None:
    recipe = write_recipe(
        tmp_path,
        "train_file: a.csv\nlabel_values: [-1, 0, 1]\npair_features: [sum, abs_diff]\ngrade_names: [a, b c, d]\n",
    )
    model_args, data_args, _ = parse_arguments([recipe])
    assert data_args.label_values == [-1, 0, 1]
    assert model_args.pair_features == ["sum", "abs_diff"]
    assert data_args.grade_names == ["a", "b c", "d"]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)
def test_every_recipe_parses_into_a_valid_configuration(recipe: Path) -> None:
    model_args, data_args, _ = parse_arguments([str(recipe), "--train_file", "a.csv"])
    scale = {} if data_args.label_values is None else {"label_values": data_args.label_values}
    STSRegressionConfig(**model_args.config_overrides(), **scale)


@pytest.mark.parametrize(
    ("arguments", "do_train", "do_eval", "do_predict"),
    [
        ([], True, True, False),
        (["--train_file", "a.csv"], True, True, False),
        (["--predict_file", "a.csv"], False, False, True),
        (["--train_file", "a.csv", "--predict_file", "b.csv"], True, True, True),
        (["--do_eval"], False, True, False),
        (["--do_eval", "--test_file", "a.csv"], False, True, False),
        (["--do_train", "--train_file", "a.csv"], True, False, False),
    ],
)
def test_what_runs(arguments: list[str], do_train: bool, do_eval: bool, do_predict: bool) -> None:
    _, _, args = parse_arguments(arguments)
    assert (args.do_train, args.do_eval, args.do_predict) == (do_train, do_eval, do_predict)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--los", "mse"], "unknown option '--los'. Did you mean 'loss'?"),
        (["--qqq", "1"], "unknown option '--qqq'. `python run_sts.py --help` lists all options."),
        (["--loss", "huber"], "argument --loss: invalid choice: 'huber' (choose from 'smooth_k2'"),
        (["--num_train_epochs", "many"], "invalid float value: 'many'"),
        (["--label_names", "labels"], "Names of grades are given with `--grade_names`."),
        (["--layerwise_lr_decay", "1.5"], "`layerwise_lr_decay` must be greater than 0 and at most 1, but is 1.5"),
        (["--head_learning_rate", "0"], "`head_learning_rate` must be greater than 0, but is 0.0"),
        (["--cpu_threads", "0"], "`cpu_threads` must be at least 1, but is 0"),
        (["--validation_split_percentage", "100"], "`validation_split_percentage` must lie between 0 and 100"),
        (["--max_train_samples", "0"], "`max_train_samples` must be at least 1, but is 0"),
        (["--predict_output", "a.xlsx"], "`predict_output` must end in .csv or .jsonl, but is 'a.xlsx'"),
        (["--do_predict"], "`--do_predict` needs pairs to score. Name their file with `--predict_file`."),
        (["--dataset_name", "a/b", "--train_file", "c.csv"], "`dataset_name` and local files exclude each other"),
        (["absent.yaml"], "absent.yaml: no such recipe."),
    ],
)
def test_what_is_refused(arguments: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_arguments(arguments)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("learning_rat: 1", "unknown key 'learning_rat'. Did you mean 'learning_rate'?"),
        ("- a\n- b", "a recipe is a mapping of options to values, but this is list."),
        ("a: [", "not valid YAML"),
        ("learning_rate: fast", "invalid float value: 'fast'"),
    ],
)
def test_a_bad_recipe_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_arguments([write_recipe(tmp_path, text)])
