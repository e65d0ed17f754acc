# The commands of the project; each installs what is missing, builds what changed, and runs.
.PHONY: all setup build demo test check bench docs clean
all: build

setup:
	@scripts/setup

build: setup
	@cmake --preset release >/dev/null
	@cmake --build --preset release

demo: build
	@scripts/demo build/tessera

test: build
	@scripts/test build

check: build
	@scripts/check

bench: build
	@build/tessera bench --json build/bench.jsonl

# Regenerates the pages that are made from the code.
docs: build
	@build/tessera list ops --markdown > docs/operations.md
	@scripts/tables.py

clean:
	rm -rf build build-*
