# The commands of the project; each installs what is missing, builds what changed, and runs.
.PHONY: all setup configure build demo test check bench pack wheel deb docs clean
all: build

setup:
	@scripts/setup

configure: setup
	@cmake --preset release >/dev/null

# With the Python package where its tools can be had; where not, the reason is printed.
build: setup
	@scripts/python_env build/python >/dev/null || [ $$? -eq 77 ]
	@cmake --preset release >/dev/null
	@cmake --build --preset release

# Builds only what it shows: the command line and the library.
demo: configure
	@cmake --build --preset release --target tessera_cli
	@scripts/demo build/tessera

test: build
	@scripts/test build

check: build
	@scripts/check

# PYTHON may name one that has PyTorch, which is then measured too. Results of a quiet machine belong in bench/results.
PYTHON ?= python3
bench: build
	@build/tessera bench --json build/bench.jsonl --python $(PYTHON)
	@build/tessera_capi_bench | tee -a build/bench.jsonl
	@if [ -f build/python/stamp ]; then export PYTHONPATH=build/python; \
	  python=$$($(PYTHON) -c 'import sys, numpy, torch, tessera; print(sys.executable)' 2>/dev/null || echo build/python/env/bin/python); \
	  $$python bench/python.py | tee -a build/bench.jsonl; fi
	@bench/gpt.py --python $(PYTHON) -- --steps 200 | tee -a build/bench.jsonl
	@bench/gpt.py --python $(PYTHON) -- --layers 4 --width 256 --heads 4 --context 128 --steps 20 | tee -a build/bench.jsonl

# Kernels for all GPUs, compiled ahead of time; needs NVIDIA's run-time compiler, not a GPU.
pack: build
	@cmake --build --preset release --target pack

# The Python packages `tessera` and `tessera-cudnn`, in build/wheels; with kernels when there is a pack.
wheel: build
	@scripts/wheel build

# The Debian packages, in build-deb/packages.
deb: setup
	@cmake --preset deb >/dev/null
	@cmake --build --preset deb
	@cd build-deb && cpack

# Regenerates the pages that are made from the code.
docs: build
	@build/tessera list ops --markdown > docs/operations.md
	@scripts/tables.py
	@PYTHONPATH=build/python build/python/env/bin/python scripts/python_stub > build/_tessera.pyi && mv build/_tessera.pyi python/tessera

clean:
	rm -rf build build-*
