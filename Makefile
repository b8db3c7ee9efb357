# Short names for the project's own commands.
.PHONY: test slow lint format quickstart results audit

test:
	python -m pytest

slow:
	python -m pytest -m "slow and not gpu and not network"

lint:
	ruff check .
	ruff format --check .
	mypy

format:
	ruff check --fix .
	ruff format .

quickstart:
	accelerate launch run_sts.py --loss smooth_k2

results:
	python -m benchmarks.tables.results_table

audit:
	python -m pip install pip-audit
	pip-audit --requirement constraints.txt --no-deps --disable-pip --strict
