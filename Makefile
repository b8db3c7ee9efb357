# Short names for the project's own commands.
.PHONY: test slow lowest lint format quickstart results docs audit lock sbom

test:
	python -m pytest -n auto

slow:
	python -m pytest -m "slow and not gpu and not network"

# The lowest versions that pyproject.toml allows, in an environment of their own. Needs Python 3.11.
lowest:
	set -e; folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
	python3.11 -m venv "$$folder"; export PATH="$$folder/bin:$$PATH"; \
	pip install -c constraints-lowest.txt -e ".[quickstart,test,sentence-transformers,peft,search,optuna,onnx,demo,browser,ray,excel]"; \
	python -m pytest -n auto

lint:
	ruff check .
	ruff format --check .
	.ci/types

format:
	ruff check --fix .
	ruff format .

quickstart:
	python run_sts.py --loss smooth_k2

results:
	python -m benchmarks.tables.results_table

# The documentation site, into the folder site. Needs the extra `docs`.
docs:
	NO_MKDOCS_2_WARNING=1 python -m mkdocs build --strict

audit:
	python -m pip install pip-audit
	pip-audit --requirement constraints.txt --no-deps --disable-pip --strict
	pip-audit --requirement requirements.lock --no-deps --disable-pip --strict

# Every dependency with its hashes, but for torch: its wheels for CPU and CUDA have one version and different hashes.
lock:
	python -m pip install pip-tools
	pip-compile --quiet --generate-hashes --unsafe-package torch --strip-extras --no-annotate --no-header \
		--no-emit-index-url --no-emit-trusted-host --no-emit-find-links --constraint constraints.txt \
		--extra quickstart --extra test --extra sentence-transformers --extra search --extra peft --extra optuna \
		--extra onnx --extra demo --extra browser --extra excel --output-file requirements.lock pyproject.toml

# What a release is made of, in CycloneDX's format.
sbom:
	python -m pip install cyclonedx-bom
	cyclonedx-py requirements requirements.lock --pyproject pyproject.toml --output-file sbom.json
