"""The seconds from the command to the first training step: modules and work that do not come before it."""

import subprocess
import sys
from pathlib import Path

import run_sts

SLOW_LIBRARIES = ("matplotlib", "sklearn")


def output_of(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def before_training(shown: str, options: list[str]) -> str:
    """The value of an expression in a command at the moment when training would begin."""
    code = f"""
import gc, runpy, sys
from sts_regression.training.trainer import STSTrainer

def stop(*args, **kwargs):
    print({shown})
    sys.exit(0)

STSTrainer.train = stop
sys.argv[1:] = {options!r}
runpy.run_path({run_sts.__file__!r}, run_name="__main__")
"""
    return output_of(code).splitlines()[-1]


def test_libraries_that_draw_and_grade_are_loaded_after_training_begins(
    tiny_encoder_path: Path, tmp_path: Path
) -> None:
    options = [f"--model_name_or_path={tiny_encoder_path}", f"--output_dir={tmp_path / 'run'}"]
    shown = f"[name for name in {SLOW_LIBRARIES} if name in sys.modules], gc.isenabled()"
    assert before_training(shown, options) == "[] True"


def test_no_garbage_is_collected_while_libraries_load() -> None:
    code = """
import gc
from sts_regression.command.command_help import collect_garbage, prepare_process
prepare_process()
print(gc.isenabled())
collect_garbage()
print(gc.isenabled(), gc.get_freeze_count() > 0)
"""
    assert output_of(code).split() == ["False", "True", "True"]
