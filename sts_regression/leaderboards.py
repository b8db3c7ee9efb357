"""Scores for the leaderboards that data sets have on the Hub, as `.eval_results/sts_regression.yaml` of a model.

A data set has a leaderboard where its repository holds `eval.yaml`; the Hub refuses scores for others. Those of MTEB
rank the STS tasks by Spearman's correlation of the cosines, in percent
(https://huggingface.co/docs/hub/eval-results, [MTEB](https://arxiv.org/abs/2210.07316)).
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import EvalResultEntry, HfApi, eval_result_entries_to_yaml
from huggingface_hub.errors import EntryNotFoundError, RepositoryNotFoundError

from sts_regression.run_folder import RUN_FILE

EVAL_RESULTS_FILE = ".eval_results/sts_regression.yaml"
LEADERBOARD_FILE = "eval.yaml"
FRAMEWORK = "mteb"
CONFIG, SPLIT = "default", "test"
NOTES = "Spearman correlation of the cosines, in percent"
DECIMALS = 5  # MTEB's


def eval_results(public: Mapping[str, Any], api: HfApi, run_url: str) -> bytes | None:
    """
    The scores that leaderboards take.

    Args:
        public: see [`public_record`].
        api: asked which of the data sets that the model was scored on have a leaderboard.
        run_url: where the Hub shows that record.

    Returns:
        Contents of the file; `None` where no data set of the Hub was scored on, or none of these has a leaderboard.

    Raises:
        huggingface_hub.errors.HfHubHTTPError: where the Hub does not answer.
    """
    entries = []
    for task, measures in public.get("sts_tasks", {}).get("tasks", {}).items():
        parts = public["data"][task]["parts"]
        dataset = parts[0]["hub_dataset"] if len(parts) == 1 else None
        if dataset is None or "cosine" not in measures:
            continue
        value = round(100 * measures["cosine"]["all"]["spearman"], DECIMALS)
        entries += [
            EvalResultEntry(dataset, name, value, source_url=run_url, source_name=RUN_FILE, notes=NOTES)
            for name in _leaderboards(dataset, api)
        ]
    return yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False).encode() if entries else None


def _leaderboards(dataset: str, api: HfApi) -> list[str]:
    """The tasks that a data set ranks models by in MTEB's manner, those on its whole test split."""
    with tempfile.TemporaryDirectory() as cache:
        try:
            path = api.hf_hub_download(dataset, LEADERBOARD_FILE, repo_type="dataset", cache_dir=cache)
            described = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        except (EntryNotFoundError, RepositoryNotFoundError, yaml.YAMLError):
            return []
    if not isinstance(described, dict) or described.get("evaluation_framework") != FRAMEWORK:
        return []  # none, or ranked by something else
    return [
        task["id"]
        for task in described.get("tasks", [])
        if task.get("config", CONFIG) == CONFIG and task.get("split", SPLIT) == SPLIT
    ]
