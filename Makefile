# lacuna: make demo, make test, make build, make wheel, make package, make bench, make fuzz, make campaign, make format, make install
BUILD := build
JOBS  ?= $(shell nproc)

.PHONY: package package-test campaign test-mpi test-cuda test-threads test-kernels test-optimised test-memory build demo wheel test test-everything bench fuzz format install clean
build:
	@tools/install-packages.sh build
	@cmake -S . -B $(BUILD)/release -G Ninja -DCMAKE_BUILD_TYPE=Release -DLACUNA_TESTS=OFF > $(BUILD)-configure.log 2>&1 \
	  || (cat $(BUILD)-configure.log; exit 1); rm -f $(BUILD)-configure.log
	@ninja -C $(BUILD)/release

demo: build
	@tools/demo.sh $(BUILD)/release/lacuna $(BUILD)/demo

# The Python package: dist/lacuna-*.whl for any Python from 3.9 on, on Linux with an x86-64 CPU.
wheel: build
	@tools/install-packages.sh wheel
	@strip -o $(BUILD)/release/wheel-liblacuna.so $(BUILD)/release/liblacuna.so
	@/usr/bin/python3 tools/make_wheel.py $(BUILD)/release/wheel-liblacuna.so dist

# dist/: .deb files for Debian 12 and a tar for other distributions. The same sources give the same bytes.
package:
	@tools/install-packages.sh build package
	cmake -S . -B $(BUILD)/package -G Ninja -DCMAKE_BUILD_TYPE=Release -DLACUNA_TESTS=OFF -DLACUNA_CUDA=OFF -DLACUNA_MPI=OFF \
	  -DCMAKE_CXX_FLAGS=-ffile-prefix-map=$(CURDIR)=lacuna
	ninja -C $(BUILD)/package all lacuna_portable
	tools/package.sh $(BUILD)/package dist
package-test:
	@tools/install-packages.sh build package
	tools/package_test.sh dist

install: build
	cmake --install $(BUILD)/release $(if $(PREFIX),--prefix $(PREFIX))

clean:
	rm -rf $(BUILD)

# Two builds, one compiled by g++, one under sanitizers by clang; a test runs where it finds most (tests/CMakeLists.txt).
# Kernels are compiled as released and once, the rest for a short build; the engine of GPUs for one of them where there is none
# to run it. Then both are built and run side by side, so that no CPU waits for the last compiler or test of one.
test:
	@tools/install-packages.sh build test
	@$(MAKE) --no-print-directory -j2 test-optimised test-memory
	@tools/check-skips.py $(BUILD)/memory $(BUILD)/test

test-kernels:
	cmake -S . -B $(BUILD)/test -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE="-Og -DNDEBUG" \
	  -DCMAKE_EXE_LINKER_FLAGS="-fuse-ld=lld -B/usr/lib/llvm-14/bin" -DLACUNA_TEST_SET=optimised -DLACUNA_TEST_COMPILER=clang++-14 \
	  $(if $(wildcard /dev/nvidiactl),,-DCMAKE_CUDA_ARCHITECTURES=90-real -DLACUNA_CUDA_UNITY=ON)
	ninja -C $(BUILD)/test -j $(JOBS) lacuna_kernels
test-optimised: test-kernels
	ninja -C $(BUILD)/test -j $(JOBS)
	ctest --test-dir $(BUILD)/test --output-on-failure -j $(JOBS)
test-memory: test-kernels
	CC=clang-14 CXX=clang++-14 cmake -S . -B $(BUILD)/memory -G Ninja -DCMAKE_BUILD_TYPE=Debug -DLACUNA_SANITIZE=ON \
	  -DLACUNA_TEST_SET=memory -DLACUNA_CUDA=OFF -DLACUNA_MPI=OFF -DLACUNA_KERNELS=$(abspath $(BUILD)/test)
	ninja -C $(BUILD)/memory -j $(JOBS)
	ctest --test-dir $(BUILD)/memory --output-on-failure -j $(JOBS)

# Before a release: every test twice, as released and under sanitizers, all by g++. Takes three times as long.
test-everything:
	@tools/install-packages.sh build test
	cmake -S . -B $(BUILD)/everything -G Ninja -DCMAKE_BUILD_TYPE=Release
	ninja -C $(BUILD)/everything
	cmake -S . -B $(BUILD)/sanitize -G Ninja -DCMAKE_BUILD_TYPE=Debug -DLACUNA_SANITIZE=ON -DLACUNA_CUDA=OFF
	ninja -C $(BUILD)/sanitize
	ctest --test-dir $(BUILD)/sanitize --output-on-failure -j $(JOBS)
	ctest --test-dir $(BUILD)/everything --output-on-failure -j $(JOBS)
	@tools/check-skips.py $(BUILD)/sanitize $(BUILD)/everything

# Whatever runs in several threads, once more under the thread sanitizer, which does not go together with the others.
# Where addresses are more random than it can bear (vm.mmap_rnd_bits above 28), setarch takes that away.
test-threads:
	@tools/install-packages.sh build test
	CC=clang-14 CXX=clang++-14 cmake -S . -B $(BUILD)/thread -G Ninja -DCMAKE_BUILD_TYPE=Debug -DLACUNA_SANITIZE=thread \
	  -DLACUNA_CUDA=OFF -DLACUNA_MPI=OFF
	setarch -R ninja -C $(BUILD)/thread lacuna_program test_base test_model test_serve test_serve_faults
	setarch -R tools/test_threads.py $(BUILD)/thread

# Training under mpirun: same bytes as one process, mistakes, killed ranks. Takes minutes on a few CPUs.
test-mpi:
	@tools/install-packages.sh build mpi
	cmake -S . -B $(BUILD)/mpi -G Ninja -DCMAKE_BUILD_TYPE=Release -DLACUNA_TESTS=OFF -DLACUNA_MPI=ON
	ninja -C $(BUILD)/mpi
	tests/mpi.sh $(BUILD)/mpi/lacuna $(BUILD)/mpi/liblacuna_mpi.so .

# The engine of NVIDIA GPUs against the reference, on the GPU of this machine; fails where there is none.
test-cuda:
	@tools/install-packages.sh build test
	cmake -S . -B $(BUILD)/test -G Ninja -DCMAKE_BUILD_TYPE=Release -DLACUNA_CUDA=ON
	ninja -C $(BUILD)/test lacuna_cuda test_engines test_mtd
	LACUNA_REQUIRE_GPU=1 $(BUILD)/test/tests/test_engines
	$(BUILD)/test/tests/test_mtd

bench:
	@tools/install-packages.sh build bench
	cmake -S . -B $(BUILD)/bench -G Ninja -DCMAKE_BUILD_TYPE=Release -DLACUNA_TESTS=OFF -DLACUNA_BENCH=ON
	ninja -C $(BUILD)/bench
	bench/run $(BUILD)/bench $(BUILD)/bench.json $(ONLY)

SECONDS ?= 30
fuzz:
	@tools/install-packages.sh build test
	CXX=clang++-14 cmake -S . -B $(BUILD)/fuzz -G Ninja -DCMAKE_BUILD_TYPE=Debug -DLACUNA_TESTS=OFF -DLACUNA_FUZZ=ON
	ninja -C $(BUILD)/fuzz tests/fuzz/all
	tests/fuzz/run.sh $(BUILD)/fuzz $(SECONDS) $(FORMS)

# A year of faults: fuzzing, kills, full disks, injected errors, memory limits, threads. Prints one table.
HOURS ?= 1
campaign:
	@tools/install-packages.sh build test
	tools/campaign.sh $(BUILD) $(HOURS)

format:
	git ls-files '*.cc' '*.h' | xargs clang-format -i
