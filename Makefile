# `make demo` plays one episode, `make test` runs the tests; both set up what is missing.

PYTHON ?= python3
VENV ?= .venv

# An interpreter that has everything is used as it is; otherwise an environment is made.
ifeq ($(shell $(PYTHON) -c "import gymnasium, msgspec, pytest, torch, tqdm, triton" 2>/dev/null && echo yes),yes)
RUN := PYTHONPATH=$(CURDIR):$(PYTHONPATH) $(PYTHON)
READY :=
else
RUN := $(VENV)/bin/python
READY := $(VENV)/.ready
endif

.PHONY: demo test test-slow test-gpu lint format doctor clean

demo: $(READY)
	$(RUN) examples/demo.py

test: $(READY)
	$(RUN) -m pytest

test-slow: $(READY)
	$(RUN) -m pytest --run-slow

test-gpu: $(READY)
	$(RUN) -m pytest -m gpu

lint: $(READY)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

format: $(READY)
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

doctor: $(READY)
	$(RUN) -m gym_kernel.cli doctor

$(VENV)/.ready: setup.cfg requirements-dev.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet -r requirements-dev.txt
	touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache
