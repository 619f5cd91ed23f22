// How fast and how lean the way out is, beside its peers: from inside a guest's network namespace to nginx in another.
// The ways are interleaved round by round; medians, and their ratios to the first row, are what travels.
// usage: bench_egress [ROUNDS [stream|rate|idle [WAY]]]: that column and that way alone, beside direct loopback
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "egress_load.h"
#include "egress_ways.h"

namespace {

using belljar::bench::Rate;
using belljar::bench::Way;
using belljar::bench::World;

constexpr size_t kFile = size_t{1} << 30U;
constexpr size_t kIdle = 5000;
constexpr size_t kAtOnce = 32;
constexpr double kRateSeconds = 1.5;

struct Row {
  std::vector<double> gigabytes, cpu, rates, cpu_a_call, p50, p99;
  double idle_bytes = -1;
  double idle_count = 0;
  double failures = 0;
};

double median(std::vector<double> values) {
  if (values.empty()) return -1;
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void stream_once(const World& world, const Way& way, Row& row) {
  const double before = way.pid > 0 ? belljar::bench::cpu_seconds(way.pid) : 0;
  const auto seconds =
      world.run(way, [&] { return std::vector<double>{get_bytes(way.door, belljar::bench::kFileService, kFile)}; });
  if (seconds.empty() || seconds[0] < 0) {
    ++row.failures;
    return;
  }
  const double size = static_cast<double>(kFile) / 1e9;
  row.gigabytes.push_back(size / seconds[0]);
  if (way.pid > 0) row.cpu.push_back((belljar::bench::cpu_seconds(way.pid) - before) / size);
}

void connect_once(const World& world, const Way& way, Row& row) {
  const double before = way.pid > 0 ? belljar::bench::cpu_seconds(way.pid) : 0;
  const auto made = world.run(way, [&] {
    const Rate rate = connect_often(way.door, belljar::bench::kHelloService, kRateSeconds, kAtOnce);
    return std::vector<double>{rate.per_second, rate.p50_ms, rate.p99_ms, static_cast<double>(rate.failures)};
  });
  if (made.size() != 4) return;
  row.rates.push_back(made[0]);
  row.p50.push_back(made[1]);
  row.p99.push_back(made[2]);
  row.failures += made[3];
  if (way.pid > 0) {
    row.cpu_a_call.push_back((belljar::bench::cpu_seconds(way.pid) - before) / (made[0] * kRateSeconds) * 1e6);
  }
}

void hold_many(const World& world, const Way& way, Row& row) {
  if (way.pid <= 0) return;
  const double before = belljar::bench::private_bytes(way.pid);
  std::vector<double> made;
  const belljar::base::Fd leash = world.run_and_stay(
      way,
      [&] {
        const auto held = hold(way.door, belljar::bench::kHoldService, kIdle);
        return std::vector<double>{static_cast<double>(held.size())};
      },
      made);
  row.idle_count = made.empty() ? 0 : made[0];
  if (row.idle_count > 0) row.idle_bytes = (belljar::bench::private_bytes(way.pid) - before) / row.idle_count;
}

std::string cell(double value, double of, const char* format) {
  if (value < 0) return "-";
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  std::string out = text;
  if (of > 0) {
    std::snprintf(text, sizeof text, " (%.2f)", value / of);
    out += text;
  }
  return out;
}

void print(const std::vector<Way>& ways, const std::vector<Row>& rows) {
  const double direct = median(rows[0].gigabytes);
  const double calls = median(rows[0].rates);
  std::puts(
      "| way | GB/s of one stream (to direct) | CPU s per GB | new CONNECTs/s (to direct) | CPU us each | p50 ms | "
      "p99 ms | bytes per idle tunnel | failures |");
  std::puts("|---|---|---|---|---|---|---|---|---|");
  for (size_t i = 0; i < ways.size(); ++i) {
    if (!ways[i].missing.empty()) {
      std::printf("| %s | %s |\n", ways[i].name.c_str(), ways[i].missing.c_str());
      continue;
    }
    const Row& row = rows[i];
    const std::string idle = row.idle_bytes < 0 ? "-"
                             : row.idle_count < kIdle
                                 ? "only " + std::to_string(static_cast<int>(row.idle_count)) + " held"
                                 : cell(row.idle_bytes, 0, "%.0f");
    std::printf("| %s | %s | %s | %s | %s | %s | %s | %s | %.0f |\n", ways[i].name.c_str(),
                cell(median(row.gigabytes), direct, "%.2f").c_str(), cell(median(row.cpu), 0, "%.2f").c_str(),
                cell(median(row.rates), calls, "%.0f").c_str(), cell(median(row.cpu_a_call), 0, "%.0f").c_str(),
                cell(median(row.p50), 0, "%.2f").c_str(), cell(median(row.p99), 0, "%.2f").c_str(), idle.c_str(),
                row.failures);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 7;
  const std::string only = argc > 2 ? argv[2] : "";
  const std::string one = argc > 3 ? argv[3] : "";
  const World world(kFile);
  const std::vector<Way>& ways = world.ways();
  std::vector<Row> rows(ways.size());
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < ways.size(); ++i) {
      if (!ways[i].missing.empty() || (i > 0 && !one.empty() && ways[i].name != one)) continue;
      if (only.empty() || only == "stream") stream_once(world, ways[i], rows[i]);
      if (only.empty() || only == "rate") connect_once(world, ways[i], rows[i]);
    }
  }
  for (size_t i = 0; i < ways.size(); ++i) {
    const bool wanted = one.empty() || ways[i].name == one;
    if (ways[i].missing.empty() && wanted && (only.empty() || only == "idle")) hold_many(world, ways[i], rows[i]);
  }
  print(ways, rows);
}
