// Counts with one sketch in each of four threads, merges them, and finds what changed between two windows.
//
//   ./merge

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include <thalweg_sketch.h>

namespace {

void check(thalweg_status status) {
  if (status != THALWEG_STATUS_OK) throw std::runtime_error(thalweg_last_error());
}

// Owns a sketch.
using Sketch = std::unique_ptr<thalweg_sketch, decltype(&thalweg_sketch_free)>;

Sketch make_sketch(uint64_t sampler_seed) {
  thalweg_sketch_options options;
  check(thalweg_sketch_options_init(&options, sizeof options));
  options.kind = THALWEG_KIND_K_ARY;
  options.width = 4096;
  options.top_k = 5;
  options.inverse_probability = 16;
  options.sampler_seed = sampler_seed;
  thalweg_sketch *sketch = nullptr;
  check(thalweg_sketch_create(&options, &sketch));
  return Sketch(sketch, &thalweg_sketch_free);
}

// A thread's share of a window: 1,000 keys of equal weight, and one that has as much more as `surplus` says.
void count(thalweg_sketch *sketch, uint32_t thread, int64_t surplus) {
  constexpr uint32_t batch = 1000;
  std::vector<std::array<uint8_t, 4>> keys(batch);
  std::vector<int64_t> weights(batch, 100);
  weights[7] += surplus;
  for (uint32_t key = 0; key < batch; key++) keys[key] = {10, 0, uint8_t(key >> 8), uint8_t(key)};
  for (uint32_t round = 0; round < 200 + thread; round++) {
    check(thalweg_sketch_update(sketch, keys[0].data(), 4, weights.data(), batch));
  }
}

Sketch window(int64_t surplus, uint64_t seed) {
  constexpr uint32_t threads = 4;
  std::vector<Sketch> parts;
  for (uint32_t thread = 0; thread < threads; thread++) parts.push_back(make_sketch(seed + thread));
  std::vector<std::thread> running;
  for (uint32_t thread = 0; thread < threads; thread++) {
    running.emplace_back(count, parts[thread].get(), thread, surplus);
  }
  for (auto &thread : running) thread.join();
  for (uint32_t thread = 1; thread < threads; thread++) {
    check(thalweg_sketch_merge(parts[0].get(), parts[thread].get()));
  }
  return std::move(parts[0]);
}

}  // namespace

int main() try {
  Sketch before = window(0, 1), now = window(400, 11);
  check(thalweg_sketch_subtract(now.get(), before.get()));

  std::array<uint8_t, THALWEG_KEY_MAX> key;
  size_t length = 0, found = 0;
  thalweg_estimate change;
  check(thalweg_sketch_largest(now.get(), 1, key.data(), &length, &change, &found));
  if (found != 1) throw std::runtime_error("no key grew");
  std::printf("version %s: %u.%u.%u.%u grew by %.0f", thalweg_version(), key[0], key[1], key[2], key[3], change.value);
  const double truth = 400.0 * (200 + 201 + 202 + 203);
  std::printf(", in truth by %.0f\n", truth);
  return key[3] == 7 && std::abs(change.value - truth) < 0.2 * truth ? 0 : 1;
} catch (const std::exception &error) {
  std::fprintf(stderr, "merge: %s\n", error.what());
  return 1;
}
