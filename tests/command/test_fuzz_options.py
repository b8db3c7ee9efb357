"""Options, recipes, configurations and labels drawn at random: taken as they are written, or refused by name."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from hypothesis import strategies as st

from sts_regression.command.arguments import parse_stages
from sts_regression.command.recipes import read_recipe
from sts_regression.configuration_sts_regression import LOSS_TYPES, STSRegressionConfig
from sts_regression.data.labels import NLI_SCALE, LabelScale, infer_scale, parse_labels
from sts_regression.models.loading import find_model
from sts_regression.training.training_arguments import OPTION_NAMES

Fuzz = Callable[..., None]
Attempt = Callable[..., Any]

NUMBER = st.floats(allow_nan=False, allow_infinity=False)
WORDS = st.sampled_from(
    [
        *("", " ", "0", "-1", "1", "2", "2.0", "02", "0.5", "1e-3", "1e400", "-inf", "nan", "NaN", "1_000", "５"),
        *("1,5", "9" * 400, "true", "no", "Yes", "null", "~", "None", "{}", "[]", '{"a": 1}', '{"a":', "neutral"),
        *("ENTAILMENT", "contradiction", "-", "--", "--loss", "2020-01-01", "0777", "1:30", "=", "<<", "é", "👩‍👧"),
        *("שלום", "a b", "x" * 300, "x" * 5000),
    ]
)  # fmt: skip
JSON_VALUE = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.just(10**400), WORDS, st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=5,
)


def test_scales_that_are_taken_map_there_and_back(fuzz: Fuzz) -> None:
    def check(attempt: Attempt, start: float, step: float, nodes: list[Any] | None, shares: list[float]) -> None:
        given = [start + step * i for i in range(6)] if nodes is None else nodes
        config = attempt(lambda: STSRegressionConfig(label_values=given, loss_type="mse"), "`label_values`")
        if config is None:
            return
        assert config.label_values == given
        assert math.isfinite(config.label_step)
        assert (np.diff(np.array(given, dtype=np.float32)) > 0).all()  # as training sees them
        scale, other = LabelScale(tuple(config.label_values)), LabelScale((0.0, 1.0, 2.0))
        low, high = scale.values[0], scale.values[-1]
        labels = np.array([low, high, *(low + (high - low) * share for share in shares)])
        mapped = scale.map_to(other, labels)
        np.testing.assert_allclose(mapped[:2], [0, 2], rtol=1e-12)
        assert (mapped >= -1e-9).all()
        assert (mapped <= 2 + 1e-9).all()
        back = other.map_to(scale, mapped)
        np.testing.assert_allclose(back, labels, atol=1e-9 * (high - low), rtol=1e-9)

    nodes = st.one_of(st.none(), st.none(), st.lists(st.one_of(NUMBER, st.integers(), JSON_VALUE), max_size=4))
    small = st.one_of(st.sampled_from([1.0, 0.2, 1 / 3]), st.floats(-100, 100), NUMBER)
    fuzz("label scales", check, small, small, nodes, st.lists(st.floats(0, 1), max_size=5))


def test_labels_are_the_numbers_or_grades_that_are_written(
    fuzz: Fuzz, as_number: Callable[[Any], float | None]
) -> None:
    def check(attempt: Attempt, labels: list[Any], names: list[str] | None, is_nli: bool) -> None:
        grades = None if names is None else {name: 10.0 * i for i, name in enumerate(names)}
        parsed = attempt(lambda: parse_labels(labels, grades, is_nli), "of premise and hypothesis are ambiguous")
        if parsed is None:
            assert is_nli
            return
        assert len(parsed.values) == len(labels)
        classes = dict(zip(NLI_SCALE.names or (), NLI_SCALE.values, strict=True))
        for row, (label, value) in enumerate(zip(labels, parsed.values, strict=True)):
            text = str(label).strip()
            number = as_number(label.replace(",", ".") if parsed.has_decimal_commas and label == "1,5" else label)
            if row in parsed.problems:
                assert grades is not None or number is None
                assert len(parsed.problems[row]) < 400
            elif value is None:
                assert text in ("-", "-1", "-1.0")
            elif names is not None and text in names:
                assert value == 10.0 * names.index(text)
            elif names is None and text.casefold() in classes:
                assert value == classes[text.casefold()]
            elif names is not None and any(as_number(name) is not None for name in names):
                assert number in [as_number(name) for name in names]  # called by its number, in another writing
                assert value == 10.0 * [as_number(name) for name in names].index(number)
            else:
                assert value == number

    label = st.one_of(WORDS, st.sampled_from(["0", "1", "2", 0, 1, 2.0]), NUMBER, JSON_VALUE)
    names = st.sampled_from([None, None, ["low", "high"], ["2", "1", "0"], ["no", "yes"], ["0.5", "1"]])
    fuzz("labels", check, st.lists(label, max_size=6), names, st.booleans())


def test_guessed_scales_hold_the_labels_and_fit_a_model(fuzz: Fuzz) -> None:
    def check(attempt: Attempt, labels: list[float]) -> None:
        scale = attempt(lambda: infer_scale(labels), "`--label_values")
        if scale is not None:
            assert scale.spans(labels)
            assert STSRegressionConfig(label_values=scale.values).label_values == list(scale.values)

    few = st.lists(st.one_of(st.floats(-10, 110), st.integers(-5, 5).map(float)), min_size=1, max_size=6)
    fuzz("guessed label scales", check, st.one_of(few, st.lists(NUMBER, min_size=1, max_size=3)))


def test_configurations_with_any_values_load_or_are_refused(
    fuzz: Fuzz, tmp_path: Path, tiny_encoder_config: Any
) -> None:
    STSRegressionConfig(tiny_encoder_config).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    sound = json.loads(path.read_text())
    own = [name for name in sound if name not in ("model_type", "transformers_version")]

    def check(attempt: Attempt, changes: dict[str, Any], inner: dict[str, Any], cut: int | None) -> None:
        content = {**sound, "encoder_config": {**sound["encoder_config"], **inner}, **changes}
        path.write_text(json.dumps(content)[:cut])
        source = attempt(lambda: find_model(str(tmp_path)), tmp_path)
        if source is None:
            return
        config = source.checkpoint_config
        assert config is not None
        assert config.loss_type in LOSS_TYPES
        assert all(map(math.isfinite, (*config.label_values, config.loss_slope, config.loss_threshold)))
        for name in ("loss_slope", "loss_type", "label_values", "label_names", "pair_features", "pooling", "boundary"):
            assert getattr(config, name) == content[name]

    changes = st.one_of(
        st.just({}),
        st.dictionaries(st.sampled_from(own), JSON_VALUE, max_size=2),
        st.dictionaries(st.text(max_size=8), JSON_VALUE, max_size=1),
        st.builds(lambda loss, slope: {"loss_type": loss, "loss_slope": slope}, st.sampled_from(LOSS_TYPES), NUMBER),
    )
    inner_names = st.sampled_from([*sound["encoder_config"], "code_revision", "auto_map", "x"])
    inner = st.dictionaries(inner_names, JSON_VALUE, max_size=1)
    cut = st.one_of(st.none(), st.none(), st.none(), st.integers(0, 400))
    fuzz("config.json", check, changes, st.one_of(st.just({}), inner), cut)


PLAIN = st.one_of(WORDS, st.text(max_size=8))


def test_recipes_are_read_as_they_were_written(fuzz: Fuzz, tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"

    def check(attempt: Attempt, options: dict[str, Any]) -> None:
        path.write_text(yaml.safe_dump(options, allow_unicode=True, default_style='"'), encoding="utf-8")
        recipe = attempt(lambda: read_recipe(path), path)
        if recipe is None:
            assert any(
                isinstance(value, list) and any(word.startswith("--") for word in value) for value in options.values()
            )
            return
        words = [
            [f"--{key}", *value] if isinstance(value, list) else [f"--{key}={value}"]
            for key, value in sorted(options.items())
        ]
        assert recipe.stages == [[word for option in words for word in option]]

    # The characters that YAML allows in a file; a lone surrogate cannot be written at all.
    plain = PLAIN.filter(lambda text: text.isprintable())
    names = st.sampled_from(OPTION_NAMES)
    fuzz(
        "recipes", check, st.dictionaries(names, st.one_of(plain, st.lists(plain, max_size=3)), min_size=1, max_size=4)
    )


SNIPPETS = (
    *("loss: mse", "loss: l1", "seed: 1", "seed: !!int x", "seed: !!bool x", "seed: !!timestamp x"),
    *("seed: !!float x", "seed: !!int ''", "seed: !!python/object/apply:os.system [x]", "seed: !!binary x"),
    *("seed: !!set {a}", "? [a]\n: b", "? {a: b}\n: c", "null: 1", "label_values: &a [0, 1]", "grade_names: *a"),
    *("grade_names: *none", "train_file: &r [*r]", "fsdp_config: &m {x: *m}", "<<: *a", "!!merge <<: {loss: l1}"),
    *("stages: [{loss: mse}]", "stages: [{stages: [{}]}]", "stages: []", "stages: 1"),
    *("about: {x: 1}", "about: x", "extends: base.yaml"),
    *("extends: recipe.yaml", "extends: .", "extends: ''", 'extends: "a\\0b"', "extends: [a]"),
    *(f"extends: {'x' * 300}", "lr_scheduler_kwargs: {a: 1e-3, b: no}", "lr_scheduler_kwargs: {a: {b: c}}"),
    *("lr_scheduler_kwargs: {a: [b]}", "lr_scheduler_kwargs: {a: 2020-01-01}", "run_name: 2020-01-01"),
    *("train_file: [null]", "train_file: [[a]]", "train_file: []", "learning_rate: 1e-3", "learning_rate: .inf"),
    *("do_train: yes", "%YAML 9.9", 'run_name: "\\uD800"', 'run_name: "\\UFFFFFFFF"', "run_name: 'a", "a: b: c"),
    *("\t", "---", "...", "- a", "[" * 2000, "{", "\0", "\ufeff"),
    *(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)),
)  # fmt: skip


def test_surprises_of_yaml_are_refused_by_name(fuzz: Fuzz, tmp_path: Path) -> None:
    path, base = tmp_path / "recipe.yaml", tmp_path / "base.yaml"

    def check(attempt: Attempt, lines: list[str], of_base: list[str], junk: str) -> None:
        base.write_text("\n".join(of_base), encoding="utf-8")
        path.write_text("\n".join([*lines, junk]), encoding="utf-8", errors="replace")
        recipe = attempt(lambda: read_recipe(path), tmp_path)
        if recipe is None:
            return
        keys = [line.partition(":")[0] for line in lines if ":" in line]
        assert len(keys) == len(set(keys))
        assert not any(line.startswith(("!!", "a1", "? ", "<<")) or "!!" in line for line in lines)
        for word in [word for stage in recipe.stages for word in stage if word.startswith("--")]:
            assert word[2:].partition("=")[0] in OPTION_NAMES

    lines = st.lists(st.sampled_from(SNIPPETS), max_size=4)
    fuzz("unusual YAML", check, lines, lines, st.one_of(st.just(""), st.just(""), st.text(max_size=10)))


def test_any_words_on_the_command_line_are_options_or_refused(
    fuzz: Fuzz, as_number: Callable[[Any], float | None]
) -> None:
    def check(attempt: Attempt, options: list[tuple[str, list[str]]]) -> None:
        argv = [word for name, words in options for word in (f"--{name}", *words)]
        places = [name for name, _ in options] + [word for _, words in options for word in words if word]
        stages = attempt(lambda: parse_stages(argv), *places, "`hub_model_id`", "--load_best_model_at_end")
        if stages is None:
            return
        groups = stages[-1].options
        for name, words in options:
            [value] = [getattr(group, name) for group in groups if hasattr(group, name)]
            if isinstance(value, float) and not isinstance(value, bool):
                assert math.isfinite(value)
                assert value == as_number(words[-1].replace("_", ""))

    names = st.sampled_from([name for name in OPTION_NAMES if name != "use_peft"])
    options = st.lists(
        st.tuples(names, st.lists(PLAIN, min_size=1, max_size=1)), max_size=2, unique_by=lambda pair: pair[0]
    )
    fuzz("command-line arguments", check, options, share=0.5)
