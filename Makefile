# The front door. `make demo` and `make check` do everything on a fresh machine.
PREFIX ?= /usr/local
.DEFAULT_GOAL := help
.PHONY: help setup build demo check asan lint format bench install clean

help:
	@echo "make demo      set up, build, and take a real model from its weights to an NPU"
	@echo "make check     set up, build, and run every test"
	@echo "make build     the program: build/release/winml"
	@echo "make asan      the unit tests under AddressSanitizer and UBSan"
	@echo "make lint      layers, sizes, banned words, tables"
	@echo "make format    clang-format over the sources"
	@echo "make bench     time optimize and perf against their peers"
	@echo "make install   the program and ONNX Runtime under PREFIX=$(PREFIX)"
	@echo "make clean     remove build/"

setup:
	@scripts/setup

build: setup
	@mkdir -p build; cmake --preset release >build/.configure.log 2>&1 || { cat build/.configure.log; rm -f build/.configure.log; exit 1; }
	@rm -f build/.configure.log
	@cmake --build build/release --target winml

demo: build
	@scripts/models
	@scripts/demo

check:
	@scripts/setup --check
	@scripts/models --check || true
	@tests/run

asan: setup
	@cmake --preset asan >/dev/null
	@cmake --build build/asan
	@ctest --test-dir build/asan --output-on-failure

lint:
	@scripts/lint

format:
	@find src app tests bench -name '*.[ch]' | xargs clang-format -i

bench: build
	@cmake --build build/release --target bench_make_model bench_ort_loop winml
	@bench/run
	@if [ -n "$$WINML_PEERS_VENV" ]; then bench/nodes; else echo "bench: no WINML_PEERS_VENV, nodes not compared with peers (bench/nodes --help)"; fi

install: build
	@cmake --install build/release --prefix $(PREFIX)

clean:
	@rm -rf build
