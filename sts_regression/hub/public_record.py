"""The public part of a `run.json`, without folders of the machine it ran on and without sentences of its data."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any

from sts_regression.basics.hub_names import is_hub_id
from sts_regression.data.sources import parse_source
from sts_regression.data.sts_tasks import (
    ALL_OF_SICK,
    HUB_SETS,
    SICKR,
    STSB,
    STSB_VERSION_2_ON_HUB,
    STSB_VERSION_2_PAIRS,
)
from sts_regression.models.loading import DEFAULT_ENCODER
from sts_regression.training.run_folder import FREE_OPTIONS

# Options whose values may hold a slash but are not paths: names on the Hub; texts, grades, columns, name patterns.
DATASET_OPTIONS = {"dataset_name", "validation_dataset_name"}
TEXT_OPTIONS = {
    *("sentence1_prefix", "sentence2_prefix", "grade_names", "sentence1_column", "sentence2_column", "label_column"),
    "lora_target_modules",
}
# Options that only name local files or actions, and do not change results.
LOCAL_OPTIONS = FREE_OPTIONS | {
    *("model_name_or_path", "sts_data", "predict_file", "predict_output", "embedding_cache", "logging_dir"),
    *("do_train", "do_eval", "do_predict", "predict_chunk_size", "run_name", "dataloader_pin_memory"),
}
# Folders of training pairs beside the STS tasks, in lower case.
HUB_SETS_BY_FOLDER = {"stsbenchmark": HUB_SETS[STSB], "sick": HUB_SETS[SICKR]}


def public_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """
    The parts of a record that may be published; others, such as the command, are left out.

    Paths of files are reduced to their names. The findings of leak filters, without examples, move to `leaks` of their
    sets of pairs. In `model`, `base_model` is the Hub id of the model that training began with, or `None`. Each set of
    pairs has the Hub id of its data set as `hub_dataset`, also if it was read from a folder of the STS tasks.

    Args:
        record: a parsed `run.json`, or one of its `stages`.
    """
    named = [*HUB_SETS.values(), STSB_VERSION_2_ON_HUB, *_named_datasets(record.get("arguments", {}))]
    hub_datasets = {name for name in named if is_hub_id(name) and not Path(name).exists()}
    public = {
        name: record[name]
        for name in (
            *("seed", "environment", "training", "results", "verdict", "grading", "sts_tasks"),
            *("folds", "refit", "learning_curve", "bundled_pairs", "seconds", "peak_memory_bytes"),
        )
        if name in record
    }
    if source := (record.get("grading") or {}).get("source"):
        public["grading"] = {**record["grading"], "source": _public_source(source, hub_datasets)[0]}
    if "arguments" in record:
        public["arguments"] = public_options(record["arguments"])
    if "model" in record:
        model = dict(record["model"])
        # Earlier versions did not record it: the base model is the default encoder, or perhaps a local folder.
        known = model["base_model"] if model.get("base_model") == DEFAULT_ENCODER else None
        hub_base_model = model.pop("hub_base_model", known)
        public["model"] = {**model, "base_model": hub_base_model if is_hub_id(hub_base_model) else None}
    if "data" in record:
        leaks = record.get("leakage", {})
        public["data"] = {
            split: _public_set(pairs, leaks.get(split, {}), hub_datasets) for split, pairs in record["data"].items()
        }
        _name_hub_sets(public["data"], record)
    if "stages" in record:
        public["stages"] = [public_record(stage) for stage in record["stages"]]
    return public


def public_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options without local ones, and with the names of files in place of their paths."""
    return {name: _without_paths(value, name) for name, value in options.items() if name not in LOCAL_OPTIONS}


def _named_datasets(options: Mapping[str, Any]) -> Iterable[str]:
    yield from options.get("dataset_name") or []
    if options.get("validation_dataset_name"):
        yield options["validation_dataset_name"]


def _public_set(pairs: Mapping[str, Any], leaks: Mapping[str, Any], hub_datasets: set[str]) -> dict[str, Any]:
    parts = []
    for part in pairs.get("parts", [pairs]):
        name, hub_dataset = _public_source(part["source"], hub_datasets)
        public = {**part, "source": name, "hub_dataset": hub_dataset}
        if part["source"] in leaks:
            counts = {key: value for key, value in leaks[part["source"]].items() if key != "examples"}
            by_test_set = {file_name(test_set): found for test_set, found in counts.pop("by_test_set", {}).items()}
            public["leaks"] = {**counts, "by_test_set": by_test_set}
        parts.append(public)
    source = " + ".join(part["source"] for part in parts)
    return {"source": source, "pairs": pairs["pairs"], "sha256": pairs["sha256"], "parts": parts}


def _public_source(source: str, hub_datasets: set[str]) -> tuple[str, str | None]:
    """The name of a set of pairs without folders, and its Hub id if it is on the Hub."""
    match = parse_source(source)
    if match["split"] is not None and match["name"] in hub_datasets:
        return source, match["name"]
    share = match["part"] or ""
    return share + file_name(source.removeprefix(share)), None


def _name_hub_sets(data: Mapping[str, Any], record: Mapping[str, Any]) -> None:
    """Sets `hub_dataset` of tasks, and of training pairs, that were read from a folder of the STS tasks."""
    folder = record.get("arguments", {}).get("sts_data")
    for task in HUB_SETS.keys() & data.keys():
        for part in data[task]["parts"]:
            part["hub_dataset"] = part["hub_dataset"] or _hub_set_of_task(task, data[task]["pairs"])
    if folder is None or "train" not in data:
        return
    sources = [part["source"] for part in record["data"]["train"].get("parts", [record["data"]["train"]])]
    for part, source in zip(data["train"]["parts"], sources, strict=True):
        if PurePath(folder) in PurePath(source).parents:
            part["hub_dataset"] = part["hub_dataset"] or HUB_SETS_BY_FOLDER.get(PurePath(source).parent.name.lower())


def _hub_set_of_task(task: str, num_pairs: int) -> str | None:
    """The data set on the Hub whose test split holds the pairs of a task; `None` for the test pairs of SICK."""
    if task == SICKR and num_pairs != ALL_OF_SICK:
        return None
    return STSB_VERSION_2_ON_HUB if (task, num_pairs) == (STSB, STSB_VERSION_2_PAIRS) else HUB_SETS[task]


def _without_paths(value: Any, option: str) -> Any:
    if isinstance(value, list):
        return [_without_paths(item, option) for item in value]
    if isinstance(value, dict):
        return {_without_paths(key, option): _without_paths(item, option) for key, item in value.items()}
    return file_name(value) if isinstance(value, str) and _is_local_path(value, option) else value


def _is_local_path(text: str, option: str) -> bool:
    """Whether the value of an option may be a local path, such as any value with a slash for most options."""
    if option in DATASET_OPTIONS:
        return not is_hub_id(text) or Path(text).exists()
    if option not in TEXT_OPTIONS:
        return "/" in text or "\\" in text
    # A text such as `n/a` or `query/` is not a path; one that begins like a path may be.
    return (
        PurePosixPath(text).is_absolute()
        or PureWindowsPath(text).is_absolute()
        or text.startswith(("~", "./", "../", ".\\", "..\\"))
    )


def file_name(path: str) -> str:
    """The last part of a path of any operating system."""
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1]
