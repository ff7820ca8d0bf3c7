# The few commands a newcomer needs. Each sets up what it needs by itself, packages included.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help build test demo check tidy format clean

# Every rule but clang-tidy, which has findings left and runs with `make tidy` until it has none.
comma := ,
CHECK_RULES = $(shell python3 tools/presubmit.py --list | grep -vx tidy | paste -sd$(comma) -)

help:
	@echo "make build   the program, at build/assay"
	@echo "make test    the whole test suite (CTest)"
	@echo "make demo    the embedded model writes, records itself twice, and the two records are compared"
	@echo "make check   formatting, lints, the include picture, orphan tests, documents"
	@echo "make tidy    clang-tidy over every source (minutes; has findings left)"
	@echo "make format  runs clang-format over the sources"
	@echo "make clean   removes everything that was built"
	@echo
	@echo "JOBS=N sets the number of parallel jobs (default: one a core)."

build:
	@./tools/install_deps.sh build
	@./tools/build.sh release assay

test:
	@./tools/install_deps.sh build
	@./tools/build.sh release
	@ctest --preset release $(if $(JOBS),--parallel $(JOBS))

demo:
	@./tools/demo.sh

check:
	@./tools/install_deps.sh build check
	@python3 tools/presubmit_test.py
	@python3 tools/presubmit.py --rules $(CHECK_RULES)

tidy:
	@./tools/install_deps.sh build check
	@python3 tools/presubmit.py --rules tidy

format:
	@./tools/install_deps.sh check
	@python3 tools/presubmit.py --fix --rules format

clean:
	rm -rf build build-* out
