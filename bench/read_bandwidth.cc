// Reads a buffer of this size over and over on some threads and prints the median bandwidth:
//
//   read_bandwidth THREADS [MIB [REPETITIONS]]
//
// What a machine can read a second is what decoding is measured against, and it changes from hour
// to hour on a shared host.
#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <span>
#include <thread>
#include <vector>

namespace {

// Several sums, so that additions do not wait for each other.
uint64_t Sum(std::span<const uint64_t> words) {
  uint64_t sums[8] = {};
  for (size_t i = 0; i + 8 <= words.size(); i += 8) {
    for (size_t j = 0; j < 8; ++j) sums[j] += words[i + j];
  }
  return std::accumulate(std::begin(sums), std::end(sums), uint64_t{0});
}

double SecondsToRead(std::span<const uint64_t> words, size_t threads) {
  std::barrier start(static_cast<ptrdiff_t>(threads) + 1);
  std::vector<uint64_t> sums(threads);
  std::chrono::steady_clock::time_point begin;
  {
    std::vector<std::jthread> pool;
    const size_t share = words.size() / threads;
    for (size_t i = 0; i < threads; ++i) {
      pool.emplace_back([&, i] {
        start.arrive_and_wait();
        sums[i] = Sum(words.subspan(i * share, share));
      });
    }
    start.arrive_and_wait();
    begin = std::chrono::steady_clock::now();
  }
  const auto end = std::chrono::steady_clock::now();
  // Using the sums keeps the reads.
  if (std::accumulate(sums.begin(), sums.end(), uint64_t{0}) == 1) std::puts("");
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int index, long fallback) {
    return argc > index ? std::strtol(argv[index], nullptr, 10) : fallback;
  };
  const long threads = argument(1, 1);
  const long mib = argument(2, 1024);
  const long repetitions = argument(3, 9);
  if (threads < 1 || mib < 1 || repetitions < 1) {
    std::fputs("usage: read_bandwidth THREADS [MIB [REPETITIONS]], each at least 1\n", stderr);
    return 64;
  }
  const std::vector<uint64_t> words(static_cast<size_t>(mib) * (1024 * 1024 / sizeof(uint64_t)), 2);
  std::vector<double> rates;
  for (long i = 0; i < repetitions; ++i) {
    const double seconds = SecondsToRead(words, static_cast<size_t>(threads));
    rates.push_back(static_cast<double>(words.size() * sizeof(uint64_t)) / seconds / 1e9);
  }
  std::sort(rates.begin(), rates.end());
  std::printf("%.2f GB/s\n", rates[rates.size() / 2]);
  return 0;
}
