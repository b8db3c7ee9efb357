"""Compares speed and memory with sentence-transformers and the paper's loop, each contender in its own process.

    pip install -c constraints.txt ".[quickstart,sentence-transformers,search,peft]"
    python benchmarks/speed.py --pairs_file sts-train.csv          writes results/speed/speed.json

Contenders of a comparison take turns for several rounds; median, smallest and largest value are kept. `--scale 0.1`
makes everything smaller, for a trial.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from benchmarks.fresh_process import measure_in_fresh_process
from sts_regression.basics.tables import write_json
from sts_regression.quickstart import BUNDLED_FOLDER
from sts_regression.training.run_record import describe_environment

ROOT = Path(__file__).resolve().parent.parent
SPEED_FILE = ROOT / "results" / "speed" / "speed.json"
# The contenders of each comparison, with their number of steps, sentences or pairs in a round.
ENCODING = (
    *("encoding", "encoding-st-32", "encoding-st-64", "encoding-st-128", "encoding-onnx"),
    *("encoding-bf16", "encoding-st-bf16", "encoding-onnx-int8"),
)
COMPARISONS = {
    "training": {
        "training": 20,
        "training-padded": 10,
        "training-paper": 2,
        "training-paper-fair": 8,
        "training-st-cosine": 8,
        "training-st-cosent": 8,
    },
    "training-bf16": {"training-bf16": 20, "training-st-bf16": 16},
    "options": {"training": 20, "training-bf16": 20, "training-frozen-embeddings": 20, "training-both": 20},
    "lora": {"training": 20, "training-lora": 20, "memory": 5, "memory-lora": 5},
    "start": {"start": 2, "start-st": 2},
    "encoding": dict.fromkeys(ENCODING, 3000),
    "backend": dict.fromkeys(("encoding", "encoding-int8", "encoding-onnx-int8"), 3000),
    "evaluation": {"evaluation": 1500, "evaluation-st": 1500, "evaluation-paper": 64},
    "frozen": {"frozen": 5749, "frozen-paper": 4},
    "matrix": {"matrix": 1024, "matrix-cdist": 1024},
    "search": {"search-cosine": 50_000, "search-head": 50_000, "search-st": 50_000},
    "memory": {"memory": 5},
    "profile": {"profile": 10, "profile-bf16": 10},
}


def main() -> None:
    """Runs the comparisons that the command line names, and keeps their results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("comparisons", nargs="*", default=list(COMPARISONS), help=", ".join(COMPARISONS))
    parser.add_argument(
        "--pairs_file", type=Path, default=BUNDLED_FOLDER / "train.csv", help="default: the bundled training pairs"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="of the work in each round")
    parser.add_argument("--output_file", type=Path, default=SPEED_FILE)
    args = parser.parse_args()
    unknown = set(args.comparisons) - set(COMPARISONS)
    if unknown:
        parser.error(f"unknown comparisons {', '.join(sorted(unknown))}; known are {', '.join(COMPARISONS)}")
    environment = describe_environment()  # before a tracked file is written, which counts as a change
    result = json.loads(args.output_file.read_text(encoding="utf-8")) if args.output_file.exists() else {}
    for comparison in args.comparisons:
        rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in COMPARISONS[comparison]}
        for _ in range(args.rounds):
            for name, amount in COMPARISONS[comparison].items():
                rounds[name].append(measure_contender(name, args.pairs_file, max(2, round(amount * args.scale))))
        result[comparison] = {
            "pairs_file": args.pairs_file.name,
            "environment": environment,
            "contenders": {name: summary_of_times(records) for name, records in rounds.items()},
        }
        write_json(result, args.output_file)


def measure_contender(name: str, pairs_file: Path, amount: int) -> dict[str, Any]:
    """Measures one contender in a fresh process."""
    record = measure_in_fresh_process("contenders.py", [name, str(pairs_file), str(amount)], {})
    sys.stdout.write(f"{name}: {record['count'] / record['seconds']:,.1f} {record['unit']}/s\n")
    sys.stdout.flush()
    return record


def spread_of_rates(rates: list[float]) -> dict[str, float]:
    """Median, smallest and largest."""
    return {"median": statistics.median(rates), "min": min(rates), "max": max(rates)}


def summary_of_times(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Median, smallest and largest value of a contender's rounds."""
    rates = [record["count"] / record["seconds"] for record in records]
    result: dict[str, Any] = {
        "unit": f"{records[0]['unit']}/s",
        "rate": spread_of_rates(rates),
        "peak_memory_bytes": statistics.median(record["peak_memory_bytes"] for record in records),
        "sgemm_flops_per_second": [max(record["sgemm_flops_per_second"]) for record in records],
        "threads": records[0]["threads"],
    }
    if "flops" in records[0]:
        result["share_of_sgemm"] = statistics.median(
            record["flops"] / record["seconds"] / max(record["sgemm_flops_per_second"]) for record in records
        )
    if "details" in records[0]:
        result["count"] = records[0]["count"]
        names = set.intersection(*(set(record["details"]) for record in records))
        result["details"] = {
            name: statistics.median(record["details"][name] for record in records)
            for name in records[0]["details"]
            if name in names
        }
    return result


if __name__ == "__main__":
    main()
