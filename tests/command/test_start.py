"""The seconds from the command to the first training step: what is not loaded, and not done, before it."""

import subprocess
import sys
from pathlib import Path

SLOW_LIBRARIES = ("matplotlib", "sklearn")


def before_training(shown: str, options: list[str]) -> str:
    """What a command has for an expression at the moment when training would begin."""
    code = f"""
import sys, run_sts
from sts_regression.training.trainer import STSTrainer

def stop(*args, **kwargs):
    print({shown})
    sys.exit(0)

STSTrainer.train = stop
run_sts.main({options!r})
"""
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return finished.stdout.splitlines()[-1]


def test_libraries_that_draw_and_grade_are_loaded_after_training_begins(
    tiny_encoder_path: Path, tmp_path: Path
) -> None:
    options = [f"--model_name_or_path={tiny_encoder_path}", f"--output_dir={tmp_path / 'run'}"]
    assert before_training(f"[name for name in {SLOW_LIBRARIES} if name in sys.modules]", options) == "[]"
