"""Options: defaults, recipes, overrides, and refusals."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from datasets import Dataset
from transformers import PretrainedConfig

from sts_regression.command.arguments import parse_stages
from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.options.data_arguments import DataArguments
from sts_regression.options.model_arguments import ModelArguments
from sts_regression.training.training_arguments import STSTrainingArguments


def parse_arguments(argv: list[str]) -> tuple[ModelArguments, DataArguments, STSTrainingArguments]:
    stage = parse_stages(argv)[-1]
    return stage.model_args, stage.data_args, stage.training_args


def write_recipe(folder: Path, content: str | bytes) -> str:
    path = folder / "recipe.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def test_options_are_checked_without_the_modules_that_publish() -> None:
    code = (
        "import sys, sts_regression.basics.hub_names\nprint('torch' in sys.modules)\n"
        "import sts_regression.command.arguments\n"
        "print({'model_card', 'hub_repository', 'publish'} & {name.rpartition('.')[2] for name in sys.modules})"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["False", "set()"]


@pytest.mark.parametrize("arguments", [[], ["--loss", "mse"], ["--model_name_or_path", "some/encoder"]])
def test_without_data_the_quick_start_applies(arguments: list[str]) -> None:
    model_args, data_args, training_args = parse_arguments(arguments)
    assert (model_args.score_function, training_args.num_train_epochs) == ("cosine", 2)
    assert not data_args.has_pairs


@pytest.mark.parametrize(
    ("arguments", "train", "evaluate", "predict"),
    [
        ([], True, True, False),
        (["--train_file", "a.csv"], True, True, False),
        (["--test_file", "a.csv"], False, True, False),
        (["--sts_data", "folder"], False, True, False),
        (["--predict_file", "a.csv"], False, False, True),
        (["--predict_file", "a.csv", "--test_file", "b.csv"], False, True, True),
        (["--do_train", "--sts_data", "folder"], True, False, False),
        (["--train_file", "a.csv", "--do_eval", "false"], True, False, False),
    ],
)
def test_the_files_decide_what_runs_unless_it_is_said(
    arguments: list[str], train: bool, evaluate: bool, predict: bool
) -> None:
    training_args = parse_arguments(arguments)[2]
    assert (training_args.do_train, training_args.do_eval, training_args.do_predict) == (train, evaluate, predict)


def test_null_in_a_recipe_keeps_the_default(tmp_path: Path) -> None:
    recipe = write_recipe(tmp_path, "train_file: a.csv\nlearning_rate: null\nseed: ~\n")
    assert parse_arguments([recipe])[2].learning_rate == STSTrainingArguments("x").learning_rate


def test_options_win_over_the_quick_start() -> None:
    model_args, _, training_args = parse_arguments(["--score_function", "linear", "--num_train_epochs=1"])
    assert (model_args.score_function, training_args.num_train_epochs) == ("linear", 1)
    assert training_args.learning_rate == 1e-4


@pytest.mark.parametrize("option", ["--test_file", "--predict_file"])
def test_scoring_own_pairs_uses_no_recipe(option: str) -> None:
    model_args, _, training_args = parse_arguments([option, "a.csv"])
    assert model_args.config_overrides() == {}
    assert (training_args.num_train_epochs, training_args.learning_rate) == (4, 2e-5)


@pytest.mark.parametrize("option", ["--train_file", "--dataset_name"])
def test_own_pairs_are_trained_by_their_recipe_and_options_win(option: str) -> None:
    model_args, _, training_args = parse_arguments([option, "a.csv", "--loss", "mse", "--wise_ft_alpha", "0.9"])
    assert (model_args.score_function, model_args.loss) == ("cosine", "mse")
    assert (training_args.wise_ft_alpha, training_args.keep_start_if_better) == (0.9, True)


FEW, MANY = (5e-5, 1.0), (5e-5, 0.0)  # learning rates and weights of self-distillation of the recipes


def pace(words: list[str], given: dict[str, Dataset] | None = None) -> tuple[float, float]:
    """Learning rate and weight of self-distillation of the last stage."""
    training_args = parse_stages(words, given)[-1].training_args
    return training_args.learning_rate, training_args.self_distillation


@pytest.mark.parametrize(
    ("sizes", "options", "expected"),
    [
        ([499], [], FEW),
        ([500], [], MANY),
        ([250, 250], [], MANY),
        ([500], ["--max_train_samples", "499"], FEW),
        ([500], ["--learning_rate", "1e-3"], (1e-3, 0.0)),
    ],
)
def test_the_number_of_own_pairs_decides_on_the_recipe(
    tmp_path: Path, sizes: list[int], options: list[str], expected: tuple[float, float]
) -> None:
    files = [tmp_path / f"{number}.csv" for number in range(len(sizes))]
    for file, size in zip(files, sizes, strict=True):
        rows = "".join(f"{file.name} a {row},{file.name} b {row},1\n" for row in range(size))
        file.write_text(f"sentence1,sentence2,label\n{rows}", encoding="utf-8")
    assert pace(["--train_file", *map(str, files), *options]) == expected


def test_pairs_in_memory_are_counted_and_data_sets_on_the_hub_count_as_many() -> None:
    in_memory = [pace(["--do_train"], {"train": pairs_of(number, number)}) for number in (10, 499, 500)]
    assert in_memory == [FEW, FEW, MANY]
    assert pace(["--do_train", "--dataset_name", "some/sts"]) == MANY


@pytest.mark.parametrize(
    ("number", "queries", "expected"),
    [(500, 99, FEW), (500, 100, MANY), (9_999, 99, FEW), (9_999, 100, MANY), (10_000, 99, MANY)],
)
def test_pairs_that_share_few_texts_count_as_few(number: int, queries: int, expected: tuple[float, float]) -> None:
    assert pace(["--do_train"], {"train": pairs_of(number, queries)}) == expected


def pairs_of(number: int, queries: int) -> Dataset:
    """Pairs of some queries with candidates of their own."""
    rows = [(f"query {row % queries}", f"candidate {row}", row % 2) for row in range(number)]
    return Dataset.from_dict(dict(zip(("sentence1", "sentence2", "label"), zip(*rows, strict=True), strict=True)))


@pytest.mark.parametrize("content", ["sentence1,sentence2,label\n" + 2000 * 'a,"b,1\n', None])
def test_a_file_that_cannot_be_read_is_reported_later(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "a.csv").write_text(content, encoding="utf-8")
    assert pace(["--train_file", str(tmp_path / "a.csv")]) == FEW


@pytest.mark.parametrize(
    "options",
    [
        ["--save_strategy=no"],
        ["--eval_strategy=no"],
        ["--save_strategy=steps", "--save_steps=100"],
        ["--folds=3", "--save_strategy=no"],
        ["--score_function=linear", "--folds=3", "--save_strategy=no"],
    ],
)
def test_strategies_may_differ_where_no_best_checkpoint_is_kept(options: list[str]) -> None:
    training_args = parse_stages(["--train_file=a.csv", *options])[-1].training_args
    assert not training_args.load_best_model_at_end


@pytest.mark.parametrize(
    "options",
    [
        ["--score_function", "linear"],
        ["--encoder_type", "cross-encoder"],
        ["--pair_features", "sum", "abs_diff"],
        ["--loss", "cross_entropy"],
        ["--freeze_encoder"],
    ],
)
def test_another_kind_of_model_is_not_trained_by_the_recipe_for_own_pairs(options: list[str]) -> None:
    training_args = parse_arguments(["--train_file", "a.csv", *options])[2]
    assert (training_args.num_train_epochs, training_args.keep_start_if_better) == (4, False)


@pytest.mark.parametrize(("score_function", "by_recipe"), [("linear", False), ("cosine", True)])
def test_a_checkpoint_keeps_its_kind_of_head(tmp_path: Path, score_function: str, by_recipe: bool) -> None:
    STSRegressionConfig(score_function=score_function).save_pretrained(tmp_path)
    words = ["--train_file", "a.csv", "--model_name_or_path", str(tmp_path)]
    model_args, _, training_args = parse_arguments(words)
    assert model_args.score_function in (None, score_function)
    assert training_args.keep_start_if_better == by_recipe


@pytest.mark.parametrize(("options", "by_recipe"), [([], False), (["--loss", "mse"], True)])
def test_a_checkpoint_keeps_its_kind_of_loss(tmp_path: Path, options: list[str], by_recipe: bool) -> None:
    STSRegressionConfig(loss_type="cosent", score_function="cosine").save_pretrained(tmp_path)
    words = ["--train_file", "a.csv", "--model_name_or_path", str(tmp_path), *options]
    assert parse_arguments(words)[2].keep_start_if_better == by_recipe


def test_the_recipe_leaves_out_what_needs_stored_embeddings_if_there_are_none(tmp_path: Path) -> None:
    words = ["--train_file", "a.csv", "--embedding_cache", "off"]
    training_args = parse_arguments(words)[2]
    assert (training_args.self_distillation, training_args.group_intercepts) == (0.0, False)
    assert training_args.keep_start_if_better  # by the recipe
    with pytest.raises(ValueError, match="`self_distillation` compares a trained encoder with stored embeddings"):
        parse_arguments([*words, "--self_distillation", "1"])


def test_a_checkpoint_on_the_hub_keeps_its_kind_of_head(monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"model_type": "sts_regression", "score_function": "linear"}
    monkeypatch.setattr("sts_regression.command.default_recipe.check_there", lambda name, file, revision: None)
    monkeypatch.setattr(PretrainedConfig, "get_config_dict", lambda name, revision: (config, {}))
    model_args, _, _ = parse_arguments(["--train_file", "a.csv", "--model_name_or_path", "someone/model"])
    assert model_args.score_function is None


def test_members_of_a_soup_are_kept_whether_better_or_not() -> None:
    stages = parse_stages(["--train_file", "a.csv", "--model_soup=2"])  # by the recipe for own pairs
    assert [stage.training_args.keep_start_if_better for stage in stages] == [False, False, True]
    assert {stage.model_args.score_function for stage in stages} == {"cosine"}


def test_defaults_with_own_pairs() -> None:
    model_args, data_args, training_args = parse_arguments(["--train_file", "a.csv", "--score_function", "linear"])
    assert (training_args.per_device_train_batch_size, training_args.warmup_steps) == (16, 0.1)
    assert (training_args.eval_strategy, training_args.save_strategy) == ("epoch", "epoch")
    assert (training_args.load_best_model_at_end, training_args.metric_for_best_model) == (True, "spearman_cosine")
    assert (training_args.layerwise_lr_decay, training_args.head_learning_rate) == (1.0, 1e-3)
    assert (data_args.validation_split_percentage, data_args.label_values, data_args.grade_names) == (None, None, None)
    assert (model_args.freeze_encoder, model_args.trust_remote_code) == (False, False)


def test_options_of_the_model_go_to_its_configuration_by_its_names() -> None:
    arguments = ["--loss", "l1", "--loss_slope", "3", "--pair_features", "sum", "product", "--encoder_type=bi-encoder"]
    model_args, _, _ = parse_arguments([*arguments, "--train_file", "a.csv", "--max_seq_length", "64"])
    assert model_args.config_overrides() == {
        "loss_type": "l1",
        "loss_slope": 3.0,
        "pair_features": ["sum", "product"],
        "encoder_type": "bi-encoder",
    }


@pytest.mark.parametrize(
    ("arguments", "folder"),
    [
        ([], "quickstart-smooth_k2"),
        (["--loss", "mse"], "quickstart-mse"),
        (["--train_file", "data/pairs.csv", "--test_file", "test.csv"], "pairs-smooth_k2"),
        (["--dataset_name", "some/stsb", "--loss", "l1"], "stsb-l1"),
        (["--predict_file", "new.jsonl"], "all-MiniLM-L6-v2-new"),
        (["--train_file", "a.csv", "b/c.csv", "--dataset_name", "some/sts"], "sts-a-c-smooth_k2"),
        (["--do_eval", "--test_file", "own.csv"], "all-MiniLM-L6-v2-own"),
        (["--model_name_or_path", "outputs/mine", "--sts_data", "folder"], "mine-sts"),
    ],
)
def test_the_folder_of_a_run_is_named_for_what_it_does(arguments: list[str], folder: str) -> None:
    assert parse_arguments(arguments)[2].output_dir == str(Path("outputs") / folder)


def test_the_folder_of_a_run_is_named_for_the_loss_of_its_checkpoint(tmp_path: Path) -> None:
    STSRegressionConfig(loss_type="mse").save_pretrained(tmp_path)
    words = ["--train_file", "a.csv", "--model_name_or_path", str(tmp_path)]
    assert parse_arguments(words)[2].output_dir == str(Path("outputs") / "a-mse")


def test_a_given_folder_is_kept() -> None:
    assert parse_arguments(["--output_dir", "runs/one"])[2].output_dir == "runs/one"


def test_the_command_line_wins_over_a_recipe(tmp_path: Path) -> None:
    recipe = write_recipe(tmp_path, "train_file: a.csv\nseed: 1\nlabel_values: [0, 1, 2]\n")
    _, data_args, training_args = parse_arguments([recipe, "--seed", "7", "--label_values", "0", "5"])
    assert (data_args.train_file, training_args.seed, data_args.label_values) == (["a.csv"], 7, [0, 5])


def test_a_recipe_without_data_replaces_the_quick_start(tmp_path: Path) -> None:
    model_args, data_args, training_args = parse_arguments([write_recipe(tmp_path, "loss: mse\n")])
    assert model_args.config_overrides() == {"loss_type": "mse"}
    assert (data_args.has_pairs, training_args.num_train_epochs) == (False, 4)


@pytest.mark.parametrize(
    ("text", "option", "value"),
    [
        ("learning_rate: 5e-5", "learning_rate", 5e-5),  # a string to YAML, which wants 5.0e-5
        ("max_steps: -2", "max_steps", -2),
        ("load_best_model_at_end: false", "load_best_model_at_end", False),
        ("overwrite_output_dir: true", "overwrite_output_dir", True),
        ("run_name: null", "run_name", None),
        ("run_name: --x y", "run_name", "--x y"),
        ("report_to: none", "report_to", []),
        ("lr_scheduler_type: cosine\nlr_scheduler_kwargs: {num_cycles: 2}", "lr_scheduler_kwargs", {"num_cycles": 2}),
        ("eval_strategy: no\nload_best_model_at_end: false", "eval_strategy", "no"),
    ],
)
def test_values_of_a_recipe(tmp_path: Path, text: str, option: str, value: object) -> None:
    _, _, training_args = parse_arguments([write_recipe(tmp_path, text)])
    assert getattr(training_args, option) == value


def test_lists_of_a_recipe_are_lists(tmp_path: Path) -> None:
    recipe = write_recipe(
        tmp_path,
        "train_file: a.csv\nlabel_values: [-1, 0, 1]\npair_features: [sum, abs_diff]\ngrade_names: [no, b c, yes]\n",
    )
    model_args, data_args, _ = parse_arguments([recipe])
    assert data_args.label_values == [-1, 0, 1]
    assert model_args.pair_features == ["sum", "abs_diff"]
    assert data_args.grade_names == ["no", "b c", "yes"]


@pytest.mark.parametrize(
    ("arguments", "do_train", "do_eval", "do_predict"),
    [
        ([], True, True, False),
        (["--train_file", "a.csv"], True, True, False),
        (["--dataset_name", "a/b"], True, True, False),
        (["--predict_file", "a.csv"], False, False, True),
        (["--train_file", "a.csv", "--predict_file", "b.csv"], True, True, True),
        (["--do_eval"], False, True, False),
        (["--do_eval", "--test_file", "a.csv"], False, True, False),
        (["--do_predict", "--predict_file", "a.csv", "--test_file", "b.csv"], False, False, True),
        (["--do_train", "--train_file", "a.csv"], True, False, False),
        (["--do_train", "--train_file", "a.csv", "--predict_file", "b.csv"], True, False, True),
    ],
)
def test_what_runs(arguments: list[str], do_train: bool, do_eval: bool, do_predict: bool) -> None:
    _, _, args = parse_arguments(arguments)
    assert (args.do_train, args.do_eval, args.do_predict) == (do_train, do_eval, do_predict)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--los", "mse"], "unknown option '--los'. Did you mean `--loss`?"),
        (["--batch-size=8"], "unknown option '--batch-size'. Did you mean `--per_device_train_batch_size`?"),
        (["--train", "a.csv"], "unknown option '--train'. Did you mean `--train_file`?"),
        (
            ["pairs.csv"],
            "'pairs.csv' belongs to no option. Put the option's name in front, such as `--train_file pairs",
        ),
        (["--qqq", "1"], "unknown option '--qqq'. `--help_all` lists all options."),
        (["--loss", "huber"], "argument --loss: invalid choice: 'huber' (choose from 'smooth_k2'"),
        (["--boundary", "clip"], "argument --boundary: invalid choice: 'clip' (choose from 'none', 'relax'"),
        (["--pair_features", "u", "w"], "argument --pair_features/--pair-features: invalid choice: 'w'"),
        (["--trust_remote_code", "perhaps"], "Truthy value expected: got perhaps"),
        (["--num_train_epochs", "many"], "invalid float value: 'many'"),
        (["--label_names", "labels"], "To name grades, give `--grade_names`."),
        (["--wise_ft_alpha", "0"], "`wise_ft_alpha` must be greater than 0 and at most 1, but is 0.0"),
        (["--schedule_stretch", "0.5"], "`schedule_stretch` must be at least 1, but is 0.5"),
        (["--layerwise_lr_decay", "0"], "`layerwise_lr_decay` must be greater than 0 and at most 1, but is 0.0"),
        (["--layerwise_lr_decay", "1.5"], "`layerwise_lr_decay` must be greater than 0 and at most 1, but is 1.5"),
        (["--head_learning_rate", "0"], "`head_learning_rate` must be greater than 0, but is 0.0"),
        (["--head_learning_rate", "nan"], "`head_learning_rate` must be greater than 0, but is nan"),
        (["--cpu_threads", "0"], "`cpu_threads` must be at least 1, but is 0"),
        (
            ["--validation_split_percentage", "0"],
            "`validation_split_percentage` must lie between 0 and 100, but is 0.",
        ),
        (["--validation_split_percentage", "100"], "must lie between 0 and 100, but is 100."),
        (["--max_train_samples", "0"], "`max_train_samples` must be at least 1, but is 0"),
        (["--max_eval_samples", "-1"], "`max_eval_samples` must be at least 1, but is -1"),
        (
            ["--predict_file=a.csv", "--predict_output", "a.xlsx"],
            "`predict_output` must end in .csv or .jsonl, but is 'a.xlsx'",
        ),
        (["--do_predict"], "`--do_predict` needs pairs to score. Name their file with `--predict_file`."),
        (["--loss", "mse", "stsb.yaml"], "'stsb.yaml': a recipe must come first, before the options"),
        (["--leak_filter", "strict"], "argument --leak_filter/--leak-filter: invalid choice: 'strict'"),
        (["absent.yaml"], "absent.yaml: no such recipe."),
        (["--learning_rate", "nan"], "`learning_rate` must be a finite number, but is nan."),
        (["--logging_steps", "inf"], "`logging_steps` must be a finite number, but is inf."),
        (["--positive_threshold", "1e400"], "`positive_threshold` must be a finite number, but is inf."),
        (["--loss_slope", "nan"], "`loss_slope` must be a finite number, but is nan."),
        (["--num_train_epochs", "-1"], "`num_train_epochs` must be at least 0, but is -1.0."),
        (["--per_device_train_batch_size", "0"], "`per_device_train_batch_size` must be at least 1, but is 0."),
        (["--seed", "-1"], "`seed` must be at least 0, but is -1."),
        (["--seed", "4294967296"], "`seed` must be at most 4294967295, but is 4294967296."),
        (["--eval_strategy", "never"], "argument --eval_strategy/--eval-strategy: invalid choice: 'never'"),
        (["--lr_scheduler_kwargs", '{"a":'], "`lr_scheduler_kwargs` must be a mapping as JSON, but is '{\"a\":'."),
        (
            ["--accelerator_config", "absent"],
            "`accelerator_config` must be a mapping as JSON or the name of a JSON file",
        ),
        (["--accelerator_config", '{"a": 1}'], "transformers does not accept these values of --accelerator_config ("),
        (
            ["--train_file", "a", "--train_weights", "1e300"],
            "`train_weights` must be one number greater than 0 for each",
        ),
        (["--trust_remote_code", "a\nb"], "Truthy value expected: got a b"),
        (
            ["--pair_features", "u", "product"],
            "`pair_features` u product are those of a bi-encoder with",
        ),
        (
            ["--pair_features", "sum", "--encoder_type=cross-encoder"],
            "Leave them out, or give `--score_function",
        ),
        (["--train_file=a.csv", "--dataset_config_name=en"], "without `--dataset_name`. Give `--dataset_name`, too"),
        (["--validation_dataset_name=a/b"], "`validation_dataset_name` has no effect without `--dataset_name`."),
        (
            ["--train_file=a.csv", "--validation_file=b.csv", "--validation_split_percentage=20"],
            "`validation_split_percentage` holds out training pairs, but `validation_file` gives development pairs.",
        ),
        (
            ["--train_file=a.csv", "--score_function=linear", "--save_strategy=no"],
            "`save_strategy` is no and `eval_strategy` is epoch, but to keep the best checkpoint, both must be the",
        ),
        (
            ["--train_file=a.csv", "--loss=info_nce", "--score_function=cosine", "--bundled_pairs_first=true"],
            "`bundled_pairs_first`: info_nce uses similar pairs only, which cannot judge the bundled start.",
        ),
        (["--test_file=a.csv", "--predict_output=b.csv"], "`predict_output` has no effect without `--predict_file`."),
    ],
)
def test_what_is_refused(arguments: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_arguments(arguments)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("learning_rat: 1", "unknown key 'learning_rat'. Did you mean `learning_rate`?"),
        ("1: x", "unknown key '1'. `--help_all` lists all options."),
        ("- a\n- b", "a recipe is a mapping of options to values, but this is list."),
        ("", "a recipe is a mapping of options to values, but this is NoneType."),
        ("a: [", "not valid YAML ("),
        (b"run_name: caf\xe9", "not valid UTF-8"),
    ],
)
def test_a_bad_recipe_is_refused_by_name(tmp_path: Path, content: str | bytes, message: str) -> None:
    recipe = write_recipe(tmp_path, content)
    with pytest.raises(ValueError, match=re.escape(f"{recipe}: {message}")):
        parse_arguments([recipe])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("learning_rate: fast", "argument --learning_rate/--learning-rate: invalid float value: 'fast'"),
        ("loss: MSE", "argument --loss: invalid choice: 'MSE' (choose from 'smooth_k2'"),
        ("label_names: [low, high]", "`label_names` is ['low', 'high'], but"),
        ("train_file: [a.csv, b.csv]\ntrain_weights: [1]", "for each of the 2 training sets"),
    ],
)
def test_values_of_a_recipe_are_checked_like_options(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_arguments([write_recipe(tmp_path, text)])


def test_a_folder_is_no_recipe(tmp_path: Path) -> None:
    folder = tmp_path / "folder.yaml"
    folder.mkdir()
    with pytest.raises(ValueError, match=rf"{re.escape(str(folder))}: no such recipe\."):
        parse_arguments([str(folder)])


def test_a_list_that_is_given_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="`--train_file` is given more than once"):
        parse_stages(["--train_file", "a.csv", "--seed", "1", "--train-file=b.csv"])


def test_many_files_have_a_short_name() -> None:
    stages = parse_stages(["--train_file", *(f"part-{i}.csv" for i in range(9)), "--loss=mse", "--do_train"])
    assert stages[-1].folder == Path("outputs/part-0-part-1-part-2-and-6-more-mse")


def test_a_soup_starts_from_the_seed_of_the_data() -> None:
    words = ["--train_file=a.csv", "--model_soup=2", "--refit=false", "--do_train"]
    seeds = [
        [s.training_args.data_seed for s in parse_stages([*words, *more])][:2] for more in ([], ["--data_seed=77"])
    ]
    assert seeds == [[42, 1042], [77, 1077]]


def test_an_adapter_is_not_averaged() -> None:
    pytest.importorskip("peft", reason="the extra `peft` is not installed")
    with pytest.raises(ValueError, match="`refit` averages the weights of two rounds, which an adapter cannot hold"):
        parse_stages(["--train_file=a.csv", "--use_peft", "--refit", "--do_train"])
