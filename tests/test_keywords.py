"""Messages for callers in Python name keyword arguments, and leave everything else as it is."""

import pytest

from sts_regression.keywords import as_keywords, as_keywords_of_evaluate, keywords_in_errors


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("`--sentence1_column 'a b' --label_column c`", '`sentence1_column="a b", label_column="c"`'),
        ("list them: `--grade_names LOWEST … HIGHEST`.", "list them: `grades=[LOWEST, …, HIGHEST]`."),
        ("give `--grade_names 2 1 0`", 'give `grades=["2", "1", "0"]`'),
        ("for example `--label_values 0 25.5 100`.", "for example `label_values=[0, 25.5, 100]`."),
        ("with `--label_ranges pairs.csv=0:1`.", 'with `label_ranges="pairs.csv=0:1"`.'),
        ("give it, such as `--label_ranges 'a b.csv=1:3'`.", 'give it, such as `label_ranges="a b.csv=1:3"`.'),
        ("`--validation_file`, or raise `--validation_split_percentage`", "`eval_pairs`, or raise `validation_split_"),
        (
            "`--overwrite_output_dir` or `--resume_from_checkpoint true`",
            "`overwrite_output_dir=True` or `resume_from_",
        ),
        ("`--folds 5` gives numbers", "`folds=5` gives numbers"),
        ("argument --pair_features/--pair-features: invalid", "argument pair_features: invalid"),
        (
            "unknown option '--los'. `--help_all` lists",
            "unknown option 'los'. `sts-regression train --help_all` lists",
        ),
        ("`grade_names` ['a']; `model_name_or_path`: './b'", "`grades` ['a']; `name_or_path`: './b'"),
    ],
)
def test_options_become_keyword_arguments(message: str, expected: str) -> None:
    assert as_keywords(message).startswith(expected)


def test_evaluate_takes_the_scale_of_one_set() -> None:
    for option in ("--label_ranges 'test pairs=1:3'", "--label_ranges pairs.csv=1:3"):
        assert as_keywords_of_evaluate(f"give `{option}`.") == "give `label_values=[1, 3]`."
    assert as_keywords_of_evaluate("`--label_ranges` sets another") == "`label_values` sets another"


@pytest.mark.parametrize(
    "message",
    [
        "the texts 'a --seed 5' and '--seed'",
        "use `sts-regression publish FOLDER --hub_model_id me/model`",
        "with `--no_option_of_training 5`",
        "`--label_column 'a value that is cut`",
        "`train_file` names pairs",
    ],
)
def test_everything_else_stays(message: str) -> None:
    assert as_keywords(message) == message


def test_errors_keep_their_kind() -> None:
    with pytest.raises(ValueError, match=r"^Leave `folds` out\.$"), keywords_in_errors():
        raise ValueError("Leave `--folds` out.")
    with pytest.raises(UnicodeDecodeError, match="invalid start byte"), keywords_in_errors():
        b"\xff".decode()
