"""Model cards: numbers of the record, no blanks, and nothing that names of files or grades could smuggle in."""

import copy
import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from huggingface_hub import ModelCard

import run_sts
from sts_regression.evaluation.verdict import Verdict
from sts_regression.grading.grading import fit_grading
from sts_regression.grading.in_checkpoints import in_words
from sts_regression.hub.card_tables import code, data_table, label_scale, limits, options_table, selection
from sts_regression.hub.model_card import check_card, model_card, write_model_card
from sts_regression.hub.public_record import public_options, public_record
from sts_regression.training.run_folder import holds_card

TOKEN = f"hf_{'aB3' * 11}x"  # of the form that the Hub's have
RECORD_FILE = Path(run_sts.__file__).resolve().parent / "results" / "quickstart" / "smooth_k2.json"
NASTY = "a|b`]()**<script>\n---\nlicense: mit # {{ seed }} ```\r\u2028\x1b[0m.csv"
LEAKS = {
    "leak_filter": "none",
    "pairs": 9,
    "found": 5,
    "removed": 0,
    "by_test_set": {"/data/x.csv": 5},
    "examples": [],
}


@pytest.fixture
def record() -> dict[str, Any]:
    """The record of a finished training, that of the quick start."""
    return json.loads(RECORD_FILE.read_text(encoding="utf-8"))


def rename(pairs: dict[str, Any], source: str) -> None:
    """Gives a set of pairs another origin."""
    pairs["source"] = source
    for part in pairs["parts"]:
        part["source"] = source


def tasks(spearman: float) -> dict[str, Any]:
    score = {"all": {"spearman": spearman, "interval": [spearman - 0.1, spearman + 0.1]}}
    names = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
    return {
        "tasks": {name: {"pairs": 1379, "cosine": score, "head": score} for name in names},
        "average": {"cosine": score, "head": score},
    }


def with_tasks(record: dict[str, Any], source: str) -> dict[str, Any]:
    sets = {name: {"source": source, "pairs": 1379, "sha256": ""} for name in tasks(0.5)["tasks"]}
    return {**record, "sts_tasks": tasks(0.81234), "data": {**record["data"], **sets}}


def test_several_processes_are_named(record: dict[str, Any]) -> None:
    assert "processes, " not in model_card(record, "me/grades")
    record["environment"]["processes"] = 2
    assert "(2 processes, 2 CPU threads per process)" in model_card(record, "me/grades")


def test_a_model_that_was_not_scored_before_training_has_dashes(record: dict[str, Any]) -> None:
    record["results"]["before training"] = {}
    assert re.search(r"\| before training \|( – \|)+", model_card(record, "me/grades"))


def test_the_metadata_is_what_the_hub_reads(record: dict[str, Any]) -> None:
    data = ModelCard(model_card(with_tasks(record, "/data/x.csv"), "me/grades", license="apache-2.0")).data.__dict__
    assert (data["pipeline_tag"], data["library_name"]) == ("sentence-similarity", "transformers")
    assert (data["license"], data["language"], data["datasets"]) == ("apache-2.0", ["en"], None)
    assert data["base_model"] == "sentence-transformers/all-MiniLM-L6-v2"
    assert data["model_name"] == "grades"
    results = {(r.dataset_config, r.dataset_split, r.metric_type): r.metric_value for r in data["eval_results"]}
    measures = record["results"]["after training"]
    assert results["test", "test", "mae_head"] == measures["test"]["mae_head"]
    assert results["validation", "validation", "pearson_cosine"] == measures["validation"]["pearson_cosine"]
    assert results["SICK-R", "test", "spearman_cosine"] == 0.81234
    assert len(results) == sum(map(len, measures.values())) - 2 * 2 + 7


def test_a_head_that_ranks_like_the_cosine_is_not_listed(record: dict[str, Any]) -> None:
    record = with_tasks(record, "/data/x.csv")
    card = model_card(record, "me/grades")
    assert "spearman_head" not in card
    assert "kendall_head" not in card
    assert "`_head` for the score, which ranks pairs like the cosine." in card
    assert "| task | pairs | cosine | 95 % interval |\n" in card
    record["sts_tasks"]["tasks"]["STS12"]["head"] = {"all": {"spearman": 0.81, "interval": [0.71, 0.91]}}
    record["results"]["after training"]["test"]["spearman_head"] -= 0.1
    results = ModelCard(model_card(record, "me/grades")).data.__dict__["eval_results"]
    listed = {(result.dataset_config, result.metric_value) for result in results if "spearman_h" in result.metric_type}
    assert {("STS12", 0.81), ("SICK-R", 0.81234)} < listed
    assert len(listed) == 2 + 7


@pytest.mark.parametrize("hub_set", ["mteb/sts12-sts", "mteb/STSBenchmarkv2"])
def test_data_sets_of_the_hub_are_named_as_such(record: dict[str, Any], hub_set: str) -> None:
    record = with_tasks(record, f"{hub_set} (test)")
    record["arguments"] |= {"dataset_name": ["sentence-transformers/stsb"], "language": ["de"]}
    rename(record["data"]["train"], "sentence-transformers/stsb (train)")
    data = ModelCard(model_card(record, "grades")).data.__dict__
    assert (data["datasets"], data["language"]) == (["sentence-transformers/stsb"], ["de"])
    assert {result.dataset_type for result in data["eval_results"]} == {"unknown", hub_set}


@pytest.mark.parametrize("share", ["20", "0.5"])
def test_held_out_pairs_are_counted(record: dict[str, Any], share: str) -> None:
    parts = [{"source": f"{share} % of /data/{name}.csv", "pairs": 1200} for name in "ab"]
    record["data"]["validation"] |= {"source": "", "parts": parts[:1], "pairs": 1200}
    card = model_card(record, "me/grades")
    assert "Development pairs: 1,200 held out of `a.csv`." in card
    names = {result.dataset_name for result in ModelCard(card).data.__dict__["eval_results"]}
    assert "1,200 pairs held out of a.csv (development)" in names
    record["data"]["validation"] |= {"parts": parts, "pairs": 2400}
    card = model_card(record, "me/grades")
    assert "Development pairs: 1,200 held out of `a.csv`, 1,200 held out of `b.csv`." in card
    assert f"{share} % of" not in card


def test_the_first_screen_has_the_average_of_the_tasks(record: dict[str, Any]) -> None:
    record = with_tasks(record, "x.csv")
    average = "the average of Spearman's correlations is 81.23 (95 % interval 71.23–91.23)"
    said = f"On the seven English STS tasks, {average}"
    assert f"\n\n{said}.\n" in model_card(record, "me/grades").split("## Use")[0]
    untouched = copy.deepcopy({**record, "sts_tasks": tasks(0.7)})
    card = model_card(record, "me/grades", untouched=untouched)
    assert f"\n\n{said}; for the untouched encoder, it is 70.00 (60.00–80.00).\n" in card.split("## Use")[0]
    untouched["data"]["STS-B"]["sha256"] = "other pairs"
    with pytest.raises(ValueError, match="`untouched` must be an evaluation"):
        model_card(record, "me/grades", untouched=untouched)


def test_sets_in_a_folder_of_the_sts_tasks_are_named_as_on_the_hub(record: dict[str, Any]) -> None:
    record = with_tasks(record, "/data/x.csv")
    record["arguments"]["sts_data"] = "/data"
    record["data"]["STS-B"]["pairs"], record["data"]["STS12"]["parts"] = 1362, [{"source": name} for name in "ab"]
    sources = ["/data/stsbenchmark/sts-train.csv", "/data/SICK/SICK_train.txt", "/own/sick/a.csv", "/data/own.csv"]
    record["data"]["train"]["parts"] = [{"source": source, "pairs": 9} for source in sources]
    data = ModelCard(model_card(record, "grades")).data.__dict__
    assert data["datasets"] == ["mteb/stsbenchmark-sts", "mteb/sickr-sts"]
    types = {result.dataset_config: result.dataset_type for result in data["eval_results"]}
    assert (types["STS12"], types["STS-B"], types["SICK-R"]) == ("mteb/sts12-sts", "mteb/STSBenchmarkv2", "unknown")
    assert types["validation"] == types["test"] == "unknown"
    record["data"]["SICK-R"]["pairs"] = 9927
    results = ModelCard(model_card(record, "grades")).data.__dict__["eval_results"]
    assert {result.dataset_type for result in results if result.dataset_config == "SICK-R"} == {"mteb/sickr-sts"}


def test_the_text_has_the_numbers_of_the_record(record: dict[str, Any]) -> None:
    text = model_card(with_tasks(record, "x.csv"), "grades", ["scores.png"])
    after = record["results"]["after training"]["test"]
    [row] = re.findall(r"\| after training \|.*", text)
    assert row.endswith(f"{100 * after['spearman_cosine']:.2f} |")
    assert "| `spearman_head` |" not in text  # it is the cosine's
    after["spearman_head"] = 0.5
    other = model_card(record, "grades")
    [row] = re.findall(r"\| after training \|.*", other)
    assert row.endswith(f"{100 * after['spearman_cosine']:.2f} | 50.00 |")
    assert "| `spearman_head` |" in other
    assert "| SICK-R | 1,379 | 81.23 | 71.23–91.23 |" in text
    assert f"{record['training']['steps']} optimizer steps, seed {record['seed']}; {record['seconds']:.0f} s" in text
    assert "| `learning_rate` | `0.0001` |" in text
    assert ("(scores.png)" in text, "(loss_curve.png)" in text) == (True, False)
    assert re.search(r"\b(nan|unknown)\b|None[^]]", ModelCard(text).text) is None


def test_what_a_record_lacks_is_named(record: dict[str, Any]) -> None:
    del record["seconds"], record["model"]["parameters"]
    record["training"] = None
    with pytest.raises(ValueError, match=r"lacks `seconds`, `model\.parameters`, `training\.steps`, and a model card"):
        model_card(record, "grades")


def test_names_from_data_and_options_mean_nothing_in_markdown_and_yaml(record: dict[str, Any]) -> None:
    plain = model_card(record, "grades")
    record["arguments"] |= {
        "train_file": [f"/data/{NASTY}"],
        "grade_names": [NASTY],
        "run_name": NASTY,
    }  # run_name: left out
    record["model"]["config"]["label_names"] = [f"{NASTY}{grade}" for grade in range(6)]
    record["environment"]["device"] = NASTY
    for pairs in record["data"].values():
        rename(pairs, f"/data/{NASTY}")
    record["leakage"]["train"] = {f"/data/{NASTY}": LEAKS | {"removed": 5}}
    text = model_card(record, f"grades {NASTY}")
    card = ModelCard(text)
    assert set(card.data.to_dict()) == set(ModelCard(plain).data.to_dict()) - {"language"}
    assert card.data["license"] is None
    outside_code = re.sub(r"(?ms)^```.*?^```$", "", card.text)
    outside_code = re.sub(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", "", outside_code)
    assert not re.search(r"script|license: mit|seed \}\}|\x1b|\u2028", outside_code)
    assert [line for line in card.text.splitlines() if line.startswith("#")] == [
        line.replace("`grades`", code(f"grades {NASTY}")) for line in plain.splitlines() if line.startswith("#")
    ]
    rows = [re.sub(r"\\\|", "", line).count("|") for line in card.text.splitlines() if line.startswith("|")]
    assert rows == [line.count("|") for line in plain.splitlines() if line.startswith("|")] + [3, 3]  # more options


@pytest.mark.parametrize(
    ("text", "span"),
    [("a.csv", "`a.csv`"), ("a`b", "`` a`b ``"), ("``", "``` `` ```"), (" a\n b", "`a  b`"), ("\n", "–")],
)
def test_a_code_span_holds_any_text(text: str, span: str) -> None:
    assert code(text) == span


def test_the_public_record_has_neither_folders_nor_sentences(record: dict[str, Any]) -> None:
    record["arguments"] |= {
        "model_name_or_path": "/models/x",
        "train_file": ["/data/a.csv", "C:\\data\\b.csv"],
        "deepspeed": "/etc/zero.json",
        "grade_names": ["n/a", "a/b"],
        "dataset_name": ["me/pairs", "/data/pairs"],
        "report_to": ["none"],
    }
    record["command"] = ["--train_file", "/data/a.csv"]
    record["model"] |= {"base_model": "/models/x", "hub_base_model": "/models/x"}
    parts = [
        {"source": source, "pairs": 9} for source in ("10 % of /data/a.csv", "me/pairs (train)", "/data/pairs (train)")
    ]
    record["data"]["train"] |= {"source": "", "parts": parts}
    record["data"]["validation"] |= {"source": "20 % of a.csv", "parts": [{"source": "20 % of a.csv", "pairs": 9}]}
    sentence = {"pair": ["A secret.", "b"], "test_set": "x", "test_pair": ["c", "d"]}
    record["leakage"] = {"train": {"10 % of /data/a.csv": {**LEAKS, "examples": [sentence]}}}
    record["stages"] = [copy.deepcopy(record)]
    public = public_record(record)
    text = json.dumps(public)
    assert not re.search(r"/data|/models|/etc|C:|secret", text)
    assert public["data"]["train"]["source"] == "10 % of a.csv + me/pairs (train) + pairs (train)"
    assert public["data"]["validation"]["source"] == "20 % of a.csv"
    assert [part["hub_dataset"] for part in public["data"]["train"]["parts"]] == [None, "me/pairs", None]
    assert public["data"]["train"]["parts"][0]["leaks"]["by_test_set"] == {"x.csv": 5}
    assert public["arguments"]["train_file"] == ["a.csv", "b.csv"]
    assert public["arguments"]["grade_names"] == ["n/a", "a/b"]
    assert public["model"]["base_model"] is None
    assert public["stages"][0]["data"] == public["data"]


RELATIVE = [
    "data/secret/a.csv",
    "secret/a.csv",
    "../secret/a.csv",
    "secret\\a.csv",
    "..\\secret\\a.csv",
    "./secret/a.csv",
]


@pytest.mark.parametrize("path", RELATIVE)
def test_relative_paths_are_not_published(record: dict[str, Any], path: str) -> None:
    record["arguments"] |= {
        **dict.fromkeys(("accelerator_config", "deepspeed", "dataset_config_name", "init_from"), path),
        "lr_scheduler_kwargs": {"path": path, path: 1},
        "train_file": [path],
        "label_ranges": [f"{path}=0:5"],
        "dataset_name": ["me/pairs", f"../{path}"],
    }
    rename(record["data"]["train"], path)
    for text in (json.dumps(public_record(record)), model_card(record, "grades")):
        assert "secret" not in text
        assert "a.csv" in text
        assert "me/pairs" in text
    arguments = public_record(record)["arguments"]
    assert (arguments["label_ranges"], arguments["accelerator_config"]) == (["a.csv=0:5"], "a.csv")


@pytest.mark.parametrize("option", ["dataset_name", "validation_dataset_name"])
def test_a_folder_of_pairs_is_not_published_as_a_data_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret" / "pairs").mkdir(parents=True)
    assert public_options({option: "secret/pairs"}) == {option: "pairs"}
    assert public_options({option: "me/pairs"}) == {option: "me/pairs"}


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("sentence1_prefix", "this/that: "),
        ("grade_names", ["yes/no", "n/a"]),
        ("label_column", ["rating/mean"]),
        ("lora_target_modules", [r".*\.query"]),
    ],
)
def test_texts_with_a_slash_are_published(option: str, value: Any) -> None:
    assert public_options({option: value}) == {option: value}


def test_no_token_is_published(record: dict[str, Any]) -> None:
    record["arguments"] |= {"run_name": TOKEN, "dataset_config_name": TOKEN, "grade_names": [f"a {TOKEN}"]}
    text = model_card(record, "grades")
    assert TOKEN not in text
    assert "a …" in text


def test_trainings_in_a_row_share_tables() -> None:
    def training(source: str, **arguments: Any) -> dict[str, Any]:
        part = {"source": source, "pairs": 1000, "label_scale": [0.0, 1.0, 2.0]}
        return {"data": {"train": {"parts": [part]}}, "arguments": arguments}

    trainings = [
        training("nli.jsonl", seed=1, bf16=True),
        training("nli.jsonl"),
        training("a|b.csv", learning_rate=1e-4),
    ]
    trainings[2]["data"]["train"]["parts"][0]["leaks"] = LEAKS
    assert data_table(trainings).splitlines()[2:] == [
        "| 1, 2 | `nli.jsonl` | 1,000 | 0 to 2 | – | – | – |",
        r"| 3 | `a\|b.csv` | 1,000 | 0 to 2 | none | 5 | 0 |",
    ]
    assert options_table(trainings).splitlines() == [
        "| option | stage 1 | stage 2 | stage 3 |",
        "| --- | --- | --- | --- |",
        "| `seed` | `1` | – | – |",
        "| `bf16` | `true` | – | – |",
        "| `learning_rate` | – | – | `0.0001` |",
    ]
    assert data_table(trainings[:1]).splitlines()[0] == "| source | pairs | label scale |"
    assert options_table([training("a.csv", grade_names=["low", "not low"])]).endswith("| `low, not low` |")


def test_trainings_in_a_row_are_measured_from_the_first_on(record: dict[str, Any]) -> None:
    first = copy.deepcopy(record)
    first["results"]["before training"]["validation"]["spearman_cosine"] = 0.125
    first["data"]["test"]["sha256"] = "other pairs"
    record["stages"] = [first]
    record["model"]["base_model"] = first["arguments"]["output_dir"] = "outputs/run/stage-1"
    (row,) = [line for line in model_card(record, "x").splitlines() if line.startswith("| before training")]
    cells = [cell.strip() for cell in row.split("|")[2:-1]]
    assert cells == ["12.50", "–"]


def test_a_verdict_on_the_last_stage_alone_is_left_out(record: dict[str, Any]) -> None:
    verdict = Verdict(0.6, 0.65, 0.01, 0.09, 0.02, 600)
    record |= {"stages": [copy.deepcopy(record)], "verdict": verdict.to_dict()}
    assert str(verdict) in model_card(record, "me/model")
    record["model"]["base_model"] = record["stages"][0]["arguments"]["output_dir"] = "outputs/run/stage-1"
    assert "untouched encoder." not in model_card(record, "me/model").split("## Use")[0]


def test_grades_are_shown_by_name() -> None:
    assert label_scale({"label_values": [0.0, 1.5]}) == "0, 1.5"
    assert label_scale({"label_values": [0.0, 1.0], "label_names": ["low", "`"]}) == "0 (`low`), 1 (`` ` ``)"


def test_what_speaks_against_the_model_is_said(record: dict[str, Any]) -> None:
    record["leakage"] = {"train": {record["data"]["train"]["source"]: LEAKS}}
    record["results"]["before training"]["test"]["spearman_cosine"] = 0.95
    record["model"]["config"] |= {"loss_type": "pearson", "grading": None}  # not calibrated
    public = public_record(record)
    after = 100 * record["results"]["after training"]["test"]["spearman_cosine"]
    assert list(limits(public, [public])) == [
        "The loss `pearson` orders pairs; the scores are not on the label scale.",
        "5 test pairs were trained on: test scores are higher than they would be on new pairs.",
        f"On the test pairs, the cosine has a lower Spearman's correlation after training than before: {after:.2f} "
        "against 95.00.",
    ]


@pytest.mark.parametrize(
    ("found", "removed", "expected"),
    [
        (None, 0, ""),
        (0, 0, "No test pair helped choose the checkpoint."),
        (5, 5, "No test pair helped choose the checkpoint."),
        (5, 0, "5 of the 300 development pairs are test pairs, so test pairs helped choose the checkpoint."),
    ],
)
def test_whether_test_pairs_helped_choose_is_said(
    record: dict[str, Any], found: int | None, removed: int, expected: str
) -> None:
    if found is not None:
        record["leakage"] = {
            split: {record["data"][split]["source"]: {**LEAKS, "found": found, "removed": removed}}
            for split in ("train", "validation")
        }
    else:
        record["leakage"] = {}
    assert selection(public_record(record)) == expected


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ("", "has no metadata"),
        ("- a list", "cannot be read .*should be a dict"),
        ("license: [", "cannot be read"),
        ("pipeline_tag: similarity", "`pipeline_tag` must be one of sentence-similarity, .* but is 'similarity'"),
        ("{pipeline_tag: sentence-similarity, license: My Own}", "`license` must be an identifier of the Hub"),
        ("{pipeline_tag: sentence-similarity, language: English}", "`language` must hold codes"),
    ],
)
def test_metadata_that_the_hub_would_refuse_is_refused_here(metadata: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_card(f"---\n{metadata}\n---\nText.\n")


def test_the_python_of_the_card_runs(tiny_encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = [
        f"--model_name_or_path={tiny_encoder_path}",
        f"--output_dir={tmp_path / 'run'}",
        "--max_train_samples=8",
    ]
    run_sts.run_stages(
        [*options, "--num_train_epochs=1", "--max_eval_samples=8", "--report_to=none", "--disable_tqdm=true"]
    )
    blocks = re.findall(r"```python\n(.*?)```", (tmp_path / "run" / "README.md").read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    has_library = importlib.util.find_spec("sentence_transformers") is not None
    names: dict[str, Any] = {}
    exec("\n".join(block for block in blocks if has_library or "sentence_transformers" not in block), names)
    assert tuple(names["indices"].shape) == (1, 2)


def test_without_a_trained_head_the_cosine_is_the_score(record: dict[str, Any]) -> None:
    record["model"]["config"]["loss_type"] = "cosent"
    for measures in record["results"]["after training"].values():
        for name in [name for name in measures if name.endswith("_head")]:
            del measures[name]
    text = model_card(record, "grades")
    assert 'score="cosine")' in text
    assert "on the scale" not in text
    assert "- The loss `cosent` trains no head: the cosine is the score, and `.scores` mean nothing." in text
    assert '["cosine"], 2))' in text


@pytest.mark.parametrize(
    ("loss_type", "is_calibrated", "score"),
    [
        ("mse", True, "is an increasing function of the cosine"),
        ("mse", False, "is an affine function of the cosine"),
        ("hl_gauss", True, "is the mean of a distribution over the grades"),
    ],
)
def test_the_card_says_what_the_score_is(
    record: dict[str, Any], loss_type: str, is_calibrated: bool, score: str
) -> None:
    record["model"]["config"] |= {"loss_type": loss_type, "score_function": "cosine"}
    if not is_calibrated:
        record["model"]["config"]["grading"] = None
    assert f"with the loss `{loss_type}`; its score {score}. The method" in model_card(record, "grades")


def test_a_cross_encoder_has_no_search(record: dict[str, Any]) -> None:
    record["model"]["config"]["encoder_type"] = "cross-encoder"
    text = model_card(record, "grades")
    assert "cross-encoder" in ModelCard(text).data["tags"]
    assert "top_k" not in text
    assert "get_text_features" not in text


def test_a_readme_of_something_else_is_left_alone(
    record: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "run.json").write_text(json.dumps(record))
    (tmp_path / "README.md").write_text("# My project\n")
    write_model_card(tmp_path)
    assert (tmp_path / "README.md").read_text() == "# My project\n"
    assert "is not a model card and stays as it is" in caplog.text
    (tmp_path / "README.md").unlink()
    for _ in range(2):
        write_model_card(tmp_path)
        assert holds_card(tmp_path)


def test_the_default_language_and_name_are_those_of_the_run(record: dict[str, Any], tmp_path: Path) -> None:
    rename(record["data"]["train"], "german.csv")
    (tmp_path / "run.json").write_text(json.dumps(record))
    (tmp_path / "loss_curve.png").touch()
    write_model_card(tmp_path)
    card = ModelCard.load(tmp_path / "README.md")
    assert (card.data["language"], card.data["model_name"]) == (None, tmp_path.name)
    assert "(loss_curve.png)" in card.text
    assert yaml.safe_load(card.data.to_yaml())["model-index"][0]["name"] == tmp_path.name


def test_what_was_learned_of_grades_and_what_training_gained_is_said(record: dict[str, Any]) -> None:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 6, 600).astype(float)
    grading = fit_grading(labels + generator.normal(size=600), labels, range(6))
    verdict = Verdict(0.6, 0.65, 0.01, 0.09, 0.02, 600)
    record |= {"grading": grading.to_dict(), "verdict": verdict.to_dict()}
    card = model_card(record, "me/model")
    assert str(verdict) in card
    assert in_words(grading) in card
    lowest = grading.report["coverage_by_grade"][0]
    assert f"| 0 | {lowest['pairs']} | {100 * lowest['coverage']:.0f} |" in card
    threshold = next(row for row in grading.thresholds if row["grade"] == 3 and row["wanted"] == 0.8)
    [row] = [line for line in card.splitlines() if line.startswith("| 3 | ") and line.count("|") == 8]
    assert row.startswith(f"| 3 | {threshold['score']:.3g} | ")
    record["model"]["config"]["label_names"] = ["none", "poor", "fair", "good", "very good", "best"]
    named = model_card(record, "me/model")
    assert f"| `none` | {lowest['pairs']} | {100 * lowest['coverage']:.0f} |" in named
    assert row.replace("| 3 |", "| `good` |") in named


def test_without_grades_or_a_verdict_nothing_is_said_of_them(record: dict[str, Any]) -> None:
    card = model_card({**record, "grading": None, "verdict": None}, "me/model")
    assert "training changed Spearman's correlation" not in card
    assert "Grades by learned cut points" not in card
    assert "cross-validated" not in card


def test_few_pairs_are_not_said_to_be_cross_validated(record: dict[str, Any]) -> None:
    grading = fit_grading(np.arange(6.0), np.arange(6.0), range(6))
    card = model_card({**record, "grading": grading.to_dict()}, "me/model")
    assert str(grading.no_intervals) in card
    assert "cross-validated" not in card


def test_the_one_source_of_grades_is_named_without_its_folder(record: dict[str, Any]) -> None:
    grading = fit_grading(np.arange(6.0), np.arange(6.0), range(6)).to_dict()
    card = model_card({**record, "grading": {**grading, "source": "10 % of /home/me/own*pairs*.csv"}}, "me/model")
    assert "are learned from `10 % of own*pairs*.csv` alone" in card
    assert "/home/me" not in card


def test_exact_hits_of_many_grades_are_left_out(record: dict[str, Any]) -> None:
    assert "accuracy_head" in model_card(record, "me/model")
    labels = np.random.default_rng(0).integers(0, 101, 300).astype(float)
    record["model"]["config"]["label_values"] = [float(node) for node in range(101)]
    record["grading"] = fit_grading(labels, labels, range(101)).to_dict()
    card = model_card(record, "me/model")
    assert re.findall("accuracy_head|macro_f1_head|in their interval", card) == []
    assert "| `mae_head` |" in card


def test_the_time_is_that_of_all_trainings(record: dict[str, Any]) -> None:
    record |= {"seconds": 10.0, "folds": {"count": 5, "seconds": 50.0}}
    assert "; 60 s in all, evaluation included" in model_card(record, "me/model")
    assert "; 75 s in all" in model_card({**record, "stages": [{**record, "seconds": 15.0}]}, "me/model")


def test_a_card_without_a_license_says_so(record: dict[str, Any]) -> None:
    assert "The publisher states no license." in model_card(record, "me/model")
    assert "The publisher stated the license above." in model_card(record, "me/model", license="mit")
