# The few commands a newcomer needs. Each sets up what it needs by itself, packages included.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help build test demo check tidy format clean

help:
	@echo "make build   the program, at build/assay"
	@echo "make test    the whole test suite (CTest)"
	@echo "make demo    the embedded model writes, records itself twice, and the two records are compared"
	@echo "make check   formatting, lints, clang-tidy, the include picture, orphan tests, documents"
	@echo "make tidy    clang-tidy alone (minutes the first time)"
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
	@python3 tools/presubmit.py

tidy:
	@./tools/install_deps.sh build check
	@python3 tools/presubmit.py --rules tidy

format:
	@./tools/install_deps.sh check
	@python3 tools/presubmit.py --fix --rules format

clean:
	rm -rf build build-* out
