# Short names for the project's own commands.
.PHONY: test slow lowest lint format quickstart results audit

test:
	python -m pytest -n auto

slow:
	python -m pytest -m "slow and not gpu and not network"

# The lowest versions that pyproject.toml allows, in an environment of their own. Needs Python 3.11.
lowest:
	set -e; folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
	python3.11 -m venv "$$folder"; export PATH="$$folder/bin:$$PATH"; \
	pip install -c constraints-lowest.txt -e ".[quickstart,test,sentence-transformers,peft,search,optuna,onnx,demo,browser,ray]"; \
	python -m pytest -n auto

lint:
	ruff check .
	ruff format --check .
	.ci/types

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
