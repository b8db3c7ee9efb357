"""Runs the trainings behind the tables in `results/` and keeps their run files there; finished ones are skipped.

python benchmarks/reproduce.py quickstart
python benchmarks/reproduce.py stsb --stsb_dir …/stsbenchmark
python -m sts_regression.results_table          writes the tables from the run files
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results"
STSB_LOSSES = ("smooth_k2", "translated_relu", "mse", "l1")
STSB_SCORE_FUNCTIONS = ("linear", "cosine")


def main() -> None:
    """Runs the experiments that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", choices=["quickstart", "stsb"])
    parser.add_argument("--stsb_dir", type=Path, help="folder of sts-train.csv, sts-dev.csv and sts-test.csv")
    args = parser.parse_args()
    if args.experiment == "quickstart":
        output = run("quickstart", "smooth_k2", ["--loss", "smooth_k2"])
        if output is not None:
            keep_usage_example(output)
        return
    if args.stsb_dir is None:
        parser.error("stsb needs --stsb_dir")
    splits = {"train": "train", "validation": "dev", "test": "test"}
    files = [f"--{split}_file={args.stsb_dir / f'sts-{name}.csv'}" for split, name in splits.items()]
    for score_function in STSB_SCORE_FUNCTIONS:
        for loss in STSB_LOSSES:
            options = [f"--loss={loss}", f"--score_function={score_function}"]
            run("stsb", f"{loss}-{score_function}", ["recipes/stsb.yaml", *files, *options])


def run(group: str, name: str, options: list[str]) -> str | None:
    """Runs one training, keeps its run file as `results/<group>/<name>.json`, and returns what it printed."""
    kept = RESULTS / group / f"{name}.json"
    if kept.exists():
        sys.stdout.write(f"{kept.relative_to(ROOT)} is there already\n")
        return None
    output_dir = Path("outputs") / f"{group}-{name}"
    command = ["accelerate", "launch", "run_sts.py", *options, f"--output_dir={output_dir}", "--overwrite_output_dir"]
    sys.stdout.write(" ".join(command) + "\n")
    sys.stdout.flush()
    finished = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, check=True)
    kept.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(ROOT / output_dir / "run.json", kept)
    for checkpoint in (ROOT / output_dir).glob("checkpoint-*"):
        shutil.rmtree(checkpoint)
    results = json.loads(kept.read_text(encoding="utf-8"))["results"]
    sys.stdout.write(json.dumps(results["after training"]["test"]) + "\n")
    return finished.stdout


def keep_usage_example(output: str) -> None:
    """Runs the lines of Python that the quick start printed, and keeps them with what they print."""
    match = re.search(r"(?m)(^    from transformers import .*(?:\n    .*|\n)+)", output)
    if match is None:
        raise ValueError("the command printed no usage example")
    code = textwrap.dedent(match[1]).strip()
    printed = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, text=True, stdout=subprocess.PIPE, check=True
    ).stdout
    kept = RESULTS / "quickstart" / "usage_example.json"
    kept.write_text(json.dumps({"code": code, "printed": printed.strip()}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
