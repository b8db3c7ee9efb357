"""Recipes: layers, stages, and refusals."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from transformers import BertConfig
from transformers.trainer_utils import IntervalStrategy

from benchmarks.tables.paper_tables import CODE_ENDING, TABLES, recipes_of_table
from sts_regression.command.arguments import parse_stages
from sts_regression.command.default_recipe import QUICKSTART_RECIPE
from sts_regression.command.recipes import read_recipe
from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.quickstart import BUNDLED_FOLDER

ROOT = Path(__file__).resolve().parents[2]
RECIPES = [*sorted((ROOT / "recipes").rglob("*.yaml")), QUICKSTART_RECIPE]
PAPER_ROWS = [recipe for number in TABLES for recipe in recipes_of_table(ROOT / "recipes" / "paper", number)]


def name_of(path: Path) -> str:
    return "/".join(path.parts[-2:])


@pytest.mark.parametrize("recipe", RECIPES, ids=name_of)
def test_every_recipe_builds_a_model(recipe: Path, tiny_encoder_config: BertConfig) -> None:
    for stage in parse_stages([str(recipe)]):
        values = stage.data_args.label_values
        scale: dict[str, Any] = {} if values is None else {"label_values": values}
        config = STSRegressionConfig(tiny_encoder_config, **stage.model_args.config_overrides(), **scale)
        assert STSRegressionModel(config).head.weight.numel()


@pytest.mark.parametrize("recipe", PAPER_ROWS, ids=name_of)
def test_each_row_of_the_paper_has_a_form_of_its_code(recipe: Path) -> None:
    of_code = recipe.with_name(f"{recipe.stem}{CODE_ENDING}.yaml")
    assert f"extends: {recipe.name}\n" in of_code.read_text(encoding="utf-8")
    is_nli = recipe.parent.name != "table3" and not recipe.stem.startswith(("jina", "nomic"))
    factor = 4 if is_nli else 2  # of the batch, and of the steps that the schedule is made for
    for paper, code in zip(parse_stages([str(recipe)]), parse_stages([str(of_code)]), strict=True):
        assert (paper.training_args.schedule_stretch, code.training_args.schedule_stretch) == (1, factor)
        batches = [stage.training_args.per_device_train_batch_size for stage in (paper, code)]
        assert batches == [16, 16 * factor]
        if code.training_args.eval_strategy == IntervalStrategy.STEPS:
            assert code.training_args.eval_steps == math.ceil((paper.training_args.eval_steps or 0) / factor)
        boundaries = [stage.model_args.boundary for stage in (paper, code)]
        assert boundaries in (["relax", "mask_negative"], ["none", "none"])


@pytest.mark.parametrize("recipe", PAPER_ROWS, ids=name_of)
def test_recipes_of_the_paper_say_source_score_and_cost(recipe: Path) -> None:
    about = read_recipe(recipe).about
    assert set(about) - {"note"} == {"source", "expected", "cost"}
    assert about["source"].startswith(f"Table {recipe.parent.name.removeprefix('table')},")
    measures = {name: float(value) for name, value in about["expected"].items()}
    if len(measures) == 8:  # the seven tasks and their average, each rounded
        average = measures.pop("average")
        assert abs(sum(measures.values()) / 7 - average) < 0.011


def write(folder: Path, text: str, name: str = "recipe.yaml") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_options_as_on_the_command_line(tmp_path: Path) -> None:
    path = write(tmp_path, "loss: mse\ntrain_file: [a.csv, b.csv]\nlearning_rate: null\nlr_scheduler_kwargs: {x: 2}\n")
    assert read_recipe(path).stages == [
        ["--loss=mse", "--train_file", "a.csv", "b.csv", '--lr_scheduler_kwargs={"x": 2}']
    ]


def test_a_recipe_extends_another_and_wins(tmp_path: Path) -> None:
    write(tmp_path, "loss: mse\nlearning_rate: 1e-5\nabout: {source: base, cost: low}\n", "shared/base.yaml")
    write(tmp_path, "extends: shared/base.yaml\nlearning_rate: 2e-5\n", "middle.yaml")
    recipe = read_recipe(write(tmp_path, "extends: middle.yaml\nloss: l1\nabout: {source: top}\n"))
    assert recipe.stages == [["--loss=l1", "--learning_rate=2e-5"]]
    assert recipe.about == {"source": "top", "cost": "low"}


def test_a_bundled_recipe_needs_no_folder(tmp_path: Path) -> None:
    bundled = read_recipe("own_pairs.yaml")
    assert bundled.stages == read_recipe(BUNDLED_FOLDER / "own_pairs.yaml").stages
    path = write(tmp_path, "extends: own_pairs.yaml\nloss: mse\n")
    assert read_recipe(path).stages == [[*bundled.stages[0], "--loss=mse"]]
    write(tmp_path, "loss: l1\n", "own_pairs.yaml")
    assert read_recipe(path).stages == [["--loss=mse"]]
    with pytest.raises(ValueError, match=r"absent/own_pairs\.yaml: no such recipe"):
        read_recipe("absent/own_pairs.yaml")


def test_null_takes_an_inherited_option_back(tmp_path: Path) -> None:
    write(tmp_path, "loss: mse\nlearning_rate: 1e-5\n", "base.yaml")
    assert read_recipe(write(tmp_path, "extends: base.yaml\nloss: null\n")).stages == [["--learning_rate=1e-5"]]


def test_each_stage_has_what_is_shared_and_its_own(tmp_path: Path) -> None:
    path = write(tmp_path, "loss: mse\nlearning_rate: 1e-5\nstages: [{freeze_encoder: true}, {learning_rate: 2e-5}]")
    assert read_recipe(path).stages == [
        ["--loss=mse", "--learning_rate=1e-5", "--freeze_encoder=true"],
        ["--loss=mse", "--learning_rate=2e-5"],
    ]


def test_stages_extend_those_of_the_base(tmp_path: Path) -> None:
    write(tmp_path, "loss: mse\nstages: [{freeze_encoder: true}, {learning_rate: 2e-5, boundary: relax}]", "base.yaml")
    path = write(tmp_path, "extends: base.yaml\nstages: [{}, {learning_rate: 3e-5}]\nloss: l1")
    assert read_recipe(path).stages == [
        ["--loss=l1", "--freeze_encoder=true"],
        ["--loss=l1", "--learning_rate=3e-5", "--boundary=relax"],
    ]
    path = write(tmp_path, "extends: base.yaml\nlearning_rate: 4e-5")
    assert all("--learning_rate=4e-5" in options for options in read_recipe(path).stages)
    path = write(tmp_path, "extends: base.yaml\nstages: [{}]")
    with pytest.raises(ValueError, match="there must be as many `stages` as in the recipe that it extends"):
        read_recipe(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stages: 3", "`stages` must be a list of mappings"),
        ("stages: []", "`stages` must be a list of mappings"),
        ("stages: [loss]", "`stages` must be a list of mappings"),
        ("stages: [{los: mse}]", "unknown key 'los'. Did you mean `loss`?"),
        ("about: mse", "`about` must be a mapping, but is 'mse'."),
        ("extends: recipe.yaml", "extends itself."),
        ("stages: [{stages: [{}]}]", "a stage must not have `stages` of its own."),
        ("loss: mse\nloss: l1", "not valid YAML (a key occurs more than once"),
        ("seed: !!int x", "not valid YAML (could not determine a constructor for the tag"),
        ("seed: !!python/object:os.system x", "not valid YAML (could not determine a constructor"),
        ("train_file: &a [*a]", "not valid YAML (an alias must stand for a plain value"),
        ("base: &a {loss: l1}\n<<: *a", "not valid YAML (an alias must stand for a plain value"),
        ("<<: {loss: l1}", "unknown key '<<'"),
        ('run_name: "\\UFFFFFFFF"', "not valid YAML ("),
        ("[" * 5000, "not valid YAML ("),
        ("train_file: [null]", "`train_file` must be a list of plain values."),
        ("grade_names: [a, --seed=1]", "`grade_names` must be a list of plain values."),
        (
            "lr_scheduler_kwargs: {a: {b: 1}}",
            "`lr_scheduler_kwargs` must be a mapping of names to plain values.",
        ),
        ("extends: [a.yaml, b.yaml]", "`extends` must be the name of one file, but is ['a.yaml', 'b.yaml']."),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ValueError, match=re.escape(f"{path}: {message}")):
        read_recipe(path)


def test_values_within_a_mapping_are_numbers_booleans_null_or_text(tmp_path: Path) -> None:
    path = write(
        tmp_path, "lr_scheduler_kwargs: {a: 1e-3, b: no, c: null, d: 2020-01-01, e: 1:30, f: '0777', g: 1e400, h: -2}"
    )
    [[option]] = read_recipe(path).stages
    assert json.loads(option.partition("=")[2]) == {
        **{"a": 0.001, "b": False, "c": None, "d": "2020-01-01", "e": "1:30", "f": "0777", "g": "1e400", "h": -2}
    }


def test_an_alias_of_a_plain_value_is_read(tmp_path: Path) -> None:
    assert read_recipe(write(tmp_path, "\ufeffseed: &s 7\ndata_seed: *s")).stages == [["--seed=7", "--data_seed=7"]]


def test_a_recipe_that_is_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "loop.yaml"
    path.symlink_to(path)
    with pytest.raises(ValueError, match=r"loop\.yaml: no such recipe"):
        read_recipe(path)


def test_a_missing_base_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, "extends: base.yaml")
    with pytest.raises(ValueError, match=re.escape(f"{tmp_path / 'base.yaml'}: no such recipe.")):
        read_recipe(path)


def test_stages_follow_one_another(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "model_name_or_path: some/encoder\ntrain_file: a.csv\n"
        "stages: [{freeze_encoder: true, num_train_epochs: 1}, {num_train_epochs: 2}]",
    )
    first, second = parse_stages([str(path), "--output_dir", "runs/two", "--seed", "7", "--predict_file", "b.csv"])
    assert (first.model_args.model_name_or_path, first.model_args.freeze_encoder) == ("some/encoder", True)
    assert (second.model_args.model_name_or_path, second.model_args.freeze_encoder) == ("runs/two/stage-1", False)
    assert (first.training_args.output_dir, second.training_args.output_dir) == ("runs/two/stage-1", "runs/two")
    assert [stage.training_args.num_train_epochs for stage in (first, second)] == [1, 2]
    assert [stage.training_args.seed for stage in (first, second)] == [7, 7]
    assert [stage.data_args.predict_file for stage in (first, second)] == [None, "b.csv"]
    assert [stage.repeats_pairs for stage in (first, second)] == [False, True]


def test_an_option_overrides_the_stages_that_set_it(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "train_file: a.csv\nloss: mse\nstages: [{self_distillation: 1.0, learning_rate: 1.0e-3}, "
        "{learning_rate: 2.0e-3, freeze_encoder: true}]",
    )
    options = ["--self_distillation", "0.5", "--loss=l1", "--learning-rate=3e-3", "--wise_ft_alpha=0.9"]
    first, second = parse_stages([str(path), *options])
    assert [stage.training_args.self_distillation for stage in (first, second)] == [0.5, 0.0]
    assert [stage.training_args.learning_rate for stage in (first, second)] == [3e-3, 3e-3]
    assert [stage.model_args.loss for stage in (first, second)] == ["l1", "l1"]
    assert [stage.training_args.wise_ft_alpha for stage in (first, second)] == [0.9, 0.9]
    extending = write(tmp_path, "extends: recipe.yaml\nstages: [{}, {wise_ft_alpha: 0.5}]", "extending.yaml")
    assert [stage.training_args.wise_ft_alpha for stage in parse_stages([str(extending), *options])] == [1.0, 0.9]


def test_stages_are_not_evaluated_alone(tmp_path: Path) -> None:
    path = write(tmp_path, "train_file: a.csv\nstages: [{loss: mse}, {loss: l1}]")
    with pytest.raises(ValueError, match="trains in each stage"):
        parse_stages([str(path), "--do_eval"])


def test_the_members_of_a_model_soup_come_before_it(tmp_path: Path) -> None:
    path = write(tmp_path, "train_file: a.csv\nstages: [{model_soup: 2, wise_ft_alpha: 0.5}, {loss: mse}]")
    stages = parse_stages([str(path), "--output_dir=runs/x", "--seed=3"])
    folders = ["runs/x/stage-1/member-1", "runs/x/stage-1/member-2", "runs/x/stage-1", "runs/x"]
    assert [str(stage.folder) for stage in stages] == folders
    assert [stage.training_args.data_seed for stage in stages] == [3, 1003, None, None]
    assert [stage.training_args.seed for stage in stages] == [3] * 4
    assert [stage.training_args.model_soup for stage in stages] == [1, 1, 2, 1]
    assert [list(map(str, stage.members)) for stage in stages] == [[], [], folders[:2], []]
    assert stages[3].model_args.model_name_or_path == "runs/x/stage-1"


CHOICE = json.loads((ROOT / "results" / "choice" / "choice.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("method", CHOICE)
def test_the_settings_of_a_method_are_those_that_were_chosen(method: str) -> None:
    [recipe, *_] = sorted((ROOT / "recipes" / "minilm").rglob(f"{method}.yaml"), reverse=True)
    stage = parse_stages([str(recipe)])[0]
    chosen = dict(re.findall(r"(learning_rate|wise_ft_alpha)=([\d.]+(?:e-\d+)?)", CHOICE[method]["chosen"]))
    assert {name: getattr(stage.training_args, name) for name in chosen} == {
        name: float(value) for name, value in chosen.items()
    }
    settings = CHOICE[method]["settings"]
    assert len(settings) == 6
    assert max(settings, key=lambda setting: settings[setting]["mean"]) == CHOICE[method]["chosen"]
