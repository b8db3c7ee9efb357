"""Speed and memory on a GPU beside sentence-transformers, the tests that need one, and the launch files.

    python benchmarks/gpu.py all                           every piece that is not done yet; each takes minutes
    python benchmarks/gpu.py training-bert-bf16 table      these pieces
    python benchmarks/gpu.py encoding                      all pieces that begin so

The result of a piece is kept in the output folder as soon as it is there; `table` writes `gpu.md` from all results.
Models have random weights: nothing is downloaded. Pieces that need a missing package are skipped, and the package is
named.
"""

import argparse
import json
import sys
import tomllib
from collections.abc import Iterator, Sequence
from importlib import metadata, util
from itertools import product
from pathlib import Path
from re import match
from typing import Any

from benchmarks.fresh_process import ROOT, measure_in_fresh_process

TABLE = "table"
GPU_SHAPES = ("minilm", "bert", "modernbert")
OPTIONAL_PACKAGES = ("sentence-transformers", "pytest", "hypothesis", "deepspeed", "flash_attn")
SECONDS_OF_A_PIECE = 460
SECONDS_OF_ROUNDS = 270  # no contender takes a turn later


def main(argv: Sequence[str] | None = None) -> None:
    """Measures the pieces that the command line names, and keeps their results."""
    args = parse_gpu_arguments(argv)
    pieces = list(pieces_named(args.pieces, args.shapes))
    if missing := missing_packages():
        say(f"Not installed: {', '.join(missing)}.")
    failed = []
    if args.device == "cuda" and not has_cuda() and pieces != [TABLE]:
        say(f"No CUDA device: of {', '.join(pieces)} only `{TABLE}` can run.")
        failed, pieces = pieces, [piece for piece in pieces if piece == TABLE]
    for piece in pieces:
        if piece != TABLE and not args.overwrite and piece in read_results(file_of(piece, args.output_dir)):
            say(f"{piece}: done before")
            continue
        try:
            run_piece(piece, args)
        except RuntimeError as error:
            lines = str(error).strip().splitlines()
            say(f"{piece}: failed: {lines[-1]}")
            failed.append(piece)
    if failed:
        sys.exit(1)


def parse_gpu_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options of the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pieces", nargs="+", metavar="PIECE", help=f"all, {', '.join(all_pieces(GPU_SHAPES))}")
    parser.add_argument("--output_dir", type=Path, default=ROOT / "results" / "gpu")
    parser.add_argument("--overwrite", action="store_true", help="repeat finished pieces")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="cpu: for a trial of this command")
    parser.add_argument("--shapes", nargs="+", choices=[*GPU_SHAPES, "tiny"], default=list(GPU_SHAPES))
    parser.add_argument("--batch_sizes", nargs="+", type=int, default=[16, 64, 256], help="pairs of a training step")
    parser.add_argument("--steps", type=int, default=12, help="timed training steps of a round")
    parser.add_argument("--sentences", type=int, default=10_000, help="encoded in a round")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args(argv)
    for name in args.pieces:
        if not list(pieces_named([name], args.shapes)):
            parser.error(f"unknown piece {name!r}; known are all, {', '.join(all_pieces(args.shapes))}")
    return args


def all_pieces(shapes: Sequence[str]) -> list[str]:
    """The names of all pieces, those that compile for minutes last."""
    training = [f"training-{shape}-{precision}" for precision, shape in product(("bf16", "float32", "tf32"), shapes)]
    encoding, compiled = [f"encoding-{shape}" for shape in shapes], [f"training-{shape}-compile" for shape in shapes]
    return ["tests", *training, *encoding, "launches", *compiled, TABLE]


def pieces_named(names: Sequence[str], shapes: Sequence[str]) -> Iterator[str]:
    """The pieces that are meant by names or by how they begin, in their order."""
    for piece in all_pieces(shapes):
        if any(name in ("all", piece) or piece.startswith(f"{name}-") for name in names):
            yield piece


def missing_packages() -> list[str]:
    """Of the packages that the project and these measurements need, those that are not installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [found.group() for found in (match(r"[\w-]+", text) for text in project["dependencies"]) if found]
    return [name for name in (*needed, *OPTIONAL_PACKAGES) if not is_installed(name)]


def is_installed(package: str) -> bool:
    """Whether there is a distribution of that name."""
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def has_cuda() -> bool:
    """Whether torch is there and finds a GPU."""
    if util.find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


def run_piece(piece: str, args: argparse.Namespace) -> None:
    """
    Measures a piece and keeps its result, or writes the table.

    Raises:
        RuntimeError: if its process fails or takes too long.
    """
    say(f"{piece} …")
    if piece == TABLE:
        measure_in_fresh_process("tables/gpu_report.py", [str(args.output_dir)], {})
        return
    names = ("device", "batch_sizes", "steps", "rounds", "sentences")
    settings = {name: getattr(args, name) for name in names} | {"seconds": SECONDS_OF_ROUNDS}
    variables = {"TOKENIZERS_PARALLELISM": "false"} if piece.startswith("training") else {}  # workers are forked
    arguments = [piece, json.dumps(settings)]
    record = measure_in_fresh_process("gpu_contenders.py", arguments, variables, SECONDS_OF_A_PIECE)
    path = file_of(piece, args.output_dir)
    keep_result({**read_results(path), piece: {"settings": settings, **record}}, path)


def file_of(piece: str, folder: Path) -> Path:
    """The file of results that holds a piece: `tests`, `training`, `encoding` or `launches`."""
    return folder / f"{piece.partition('-')[0]}.json"


def read_results(path: Path) -> dict[str, Any]:
    """The results in a file, by piece; none if there is no file."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def keep_result(results: dict[str, Any], path: Path) -> None:
    """Writes the file as a whole or not at all, by the standard library alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(results, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    unfinished.replace(path)


def say(line: str) -> None:
    """A line on the console, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
