// locant bench: how long attention takes with each encoding, and how that compares with none.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cli/commands.h"
#include "cli/memory.h"
#include "cli/settings.h"
#include "cli/validators.h"
#include "locant/check/random.h"
#include "locant/core/error.h"
#include "locant/core/executor.h"
#include "locant/encodings/registry.h"
#include "locant/kernels/isa.h"
#include "locant/layers/attend.h"

namespace locant::cli {
namespace {

struct BenchFlags {
  std::vector<std::string> names;
  std::vector<int64_t> lengths = {128, 512, 2048};
  int64_t heads = 12, head_dim = 64, batch = 1;
  int64_t kv_heads = 0;  // 0: heads
  int64_t q_len = 0;     // 0: the length itself
  int threads = 0;       // 0: as the library chooses
  std::string dtype = "f32";
  bool causal = false;
  int repeat = 10;
  double min_seconds = 0.5;
  std::string json;
  std::vector<std::string> set;  // key=value
};

struct Timing {
  double seconds = std::numeric_limits<double>::infinity();  // minimum
  double total = 0;
  int runs = 0;
};

// q, k, v and out of one length, in the (B, L, H, d) order of a model's projections.
template <class Real>
struct Tensors {
  Tensors(const BenchFlags& flags, int64_t q_len, int64_t k_len) {
    const int64_t H = flags.heads, G = flags.kv_heads, B = flags.batch, d = flags.head_dim;
    Random random(1);
    const auto make = [&](std::vector<Real>& values, int64_t heads, int64_t length) {
      values.resize(B * length * heads * d);
      for (Real& value : values) value = static_cast<Real>(random.symmetric());
      return View(values.data(), dtype_of<Real>(), Extents{B, heads, length, d},
                  Extents{length * heads * d, d, heads * d, 1});
    };
    q = make(q_values, H, q_len);
    k = make(k_values, G, k_len);
    v = make(v_values, G, k_len);
    out = make(out_values, H, q_len);
  }

  std::vector<Real> q_values, k_values, v_values, out_values;
  View q, k, v, out;
};

FieldValues fields_for(const EncodingEntry& entry, const BenchFlags& flags) {
  FieldValues out = {{"heads", flags.heads}, {"head_dim", flags.head_dim}};
  apply_settings(entry, flags.set, out);
  return out;
}

// `none` comes first: it is what the others are compared with.
std::vector<const EncodingEntry*> chosen_encodings(const BenchFlags& flags) {
  std::vector<const EncodingEntry*> out = {&find_encoding("none")};
  for (const std::string& name : flags.names)
    if (name != "none") out.push_back(&find_encoding(name));
  if (flags.names.empty())
    for (const EncodingEntry& entry : encodings())
      if (entry.name != "none") out.push_back(&entry);
  return out;
}

using Encodings = std::vector<std::unique_ptr<Encoding>>;

AttendOptions options_for(const BenchFlags& flags, int64_t q_len, int64_t k_len) {
  AttendOptions options;
  options.causal = flags.causal;
  options.q_start = k_len - q_len;  // the queries are the last positions
  return options;
}

// What a model does once, when it is loaded, is not part of a call.
void project(const Encodings& chosen, int64_t q_len, int64_t k_len) {
  for (const auto& encoding : chosen) encoding->project(1 - k_len, q_len - 1);
}

// Extra memory of one call with each encoding.
template <class Real>
std::vector<std::optional<int64_t>> measure_memory(const Encodings& chosen, const BenchFlags& flags,
                                                   int64_t q_len, int64_t k_len) {
  const Tensors<Real> x(flags, q_len, k_len);
  const auto start_threads = [] {
    executor()->parallel_for(8 * num_threads(), [](int64_t, int) {});
  };
  std::vector<std::optional<int64_t>> out;
  project(chosen, q_len, k_len);
  for (const auto& encoding : chosen)
    out.push_back(extra_peak_memory(start_threads, [&] {
      attend(x.q, x.k, x.v, *encoding, options_for(flags, q_len, k_len), x.out);
    }));
  return out;
}

template <class Real>
std::vector<Timing> measure_time(const Encodings& chosen, const BenchFlags& flags, int64_t q_len,
                                 int64_t k_len) {
  const Tensors<Real> x(flags, q_len, k_len);
  const AttendOptions options = options_for(flags, q_len, k_len);
  project(chosen, q_len, k_len);
  for (const auto& encoding : chosen) attend(x.q, x.k, x.v, *encoding, options, x.out);  // warm up
  std::vector<Timing> timings(chosen.size());
  const auto unfinished = [&](const Timing& timing) {
    return timing.runs < flags.repeat || timing.total < flags.min_seconds;
  };
  // Rounds alternate, so that a disturbance of the machine does not hit one encoding only.
  while (std::any_of(timings.begin(), timings.end(), unfinished))
    for (size_t n = 0; n < chosen.size(); ++n) {
      const auto begin = std::chrono::steady_clock::now();
      attend(x.q, x.k, x.v, *chosen[n], options, x.out);
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
      timings[n].seconds = std::min(timings[n].seconds, elapsed.count());
      timings[n].total += elapsed.count();
      ++timings[n].runs;
    }
  return timings;
}

// One line of the table.
struct Record {
  const Encoding* encoding = nullptr;
  int64_t q_len = 0, k_len = 0;
  Timing timing;
  std::optional<int64_t> extra_memory;
  double gflops = 0, ratio = 0;
};

nlohmann::ordered_json json_of(const Record& record, const BenchFlags& flags) {
  nlohmann::ordered_json fields;
  for (const auto& [name, value] : record.encoding->fields())
    std::visit([&, key = name](const auto& held) { fields[key] = held; }, value);
  nlohmann::ordered_json out = {{"encoding", record.encoding->name()},
                                {"fields", fields},
                                {"batch", flags.batch},
                                {"kv_heads", flags.kv_heads},
                                {"q_len", record.q_len},
                                {"k_len", record.k_len},
                                {"causal", flags.causal},
                                {"dtype", flags.dtype},
                                {"isa", isa()},
                                {"threads", num_threads()},
                                {"runs", record.timing.runs},
                                {"seconds", record.timing.seconds},
                                {"gflops_if_dense", record.gflops},
                                {"ratio_to_none", record.ratio}};
  if (record.extra_memory) out["extra_peak_bytes"] = *record.extra_memory;
  return out;
}

void print(const Record& record) {
  fmt::print("{:<16}{:>8}{:>8}{:>12.4f}{:>10.1f}{:>9.3f}{:>12}\n", record.encoding->name(),
             record.q_len, record.k_len, record.timing.seconds * 1e3, record.gflops, record.ratio,
             record.extra_memory ? fmt::format("{:.2f}", *record.extra_memory / 1048576.0) : "?");
}

template <class Real>
std::vector<Record> measure(const Encodings& chosen, const BenchFlags& flags) {
  const auto q_len_for = [&](int64_t k_len) { return flags.q_len > 0 ? flags.q_len : k_len; };
  // Memory first: the children that measure it must not inherit what timed calls keep.
  std::vector<std::vector<std::optional<int64_t>>> memory;
  for (const int64_t k_len : flags.lengths)
    memory.push_back(measure_memory<Real>(chosen, flags, q_len_for(k_len), k_len));

  std::vector<Record> records;
  for (size_t at = 0; at < flags.lengths.size(); ++at) {
    const int64_t k_len = flags.lengths[at], q_len = q_len_for(k_len);
    const std::vector<Timing> timings = measure_time<Real>(chosen, flags, q_len, k_len);
    // As if dense, whatever is masked: 2 flops for each product in QKᵀ and PV.
    const double flops = 4.0 * q_len * k_len * flags.head_dim * flags.heads * flags.batch;
    for (size_t n = 0; n < chosen.size(); ++n) {
      records.push_back({chosen[n].get(), q_len, k_len, timings[n], memory[at][n],
                         flops / timings[n].seconds * 1e-9,
                         timings[n].seconds / timings.front().seconds});
      print(records.back());
    }
  }
  return records;
}

int bench(BenchFlags flags) {
  if (flags.kv_heads == 0) flags.kv_heads = flags.heads;
  require(flags.heads % flags.kv_heads == 0, "bench", "--heads ", flags.heads,
          " is not a multiple of --kv-heads ", flags.kv_heads);
  for (const int64_t length : flags.lengths)
    require(flags.q_len <= length, "bench", "--q-len ", flags.q_len, " is longer than length ",
            length);
  const std::vector<const EncodingEntry*> entries = chosen_encodings(flags);
  require_known_settings("bench", entries, flags.set);
  Encodings chosen;
  for (const EncodingEntry* entry : entries) {
    chosen.push_back(entry->make(fields_for(*entry, flags)));
    chosen.back()->init(1);
  }
  if (flags.threads > 0) set_num_threads(flags.threads);
  std::ofstream json_file;
  if (!flags.json.empty()) {
    json_file.open(flags.json);
    require(json_file.is_open(), "bench", "cannot write ", flags.json);
  }

  fmt::print("B={} H={} Hkv={} d={} {}{}, {} threads, {}; minimum of at least {} runs\n",
             flags.batch, flags.heads, flags.kv_heads, flags.head_dim, flags.dtype,
             flags.causal ? " causal" : "", num_threads(), isa(), flags.repeat);
  fmt::print("{:<16}{:>8}{:>8}{:>12}{:>10}{:>9}{:>12}\n", "encoding", "Lq", "Lk", "ms", "GFLOP/s",
             "/ none", "extra MiB");
  std::fflush(stdout);  // children must not inherit unwritten text
  const auto measure_all = flags.dtype == "f64"    ? measure<double>
                           : flags.dtype == "f16"  ? measure<Half>
                           : flags.dtype == "bf16" ? measure<Bfloat>
                                                   : measure<float>;
  const std::vector<Record> records = measure_all(chosen, flags);
  if (json_file.is_open()) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const Record& record : records) all.push_back(json_of(record, flags));
    json_file << all.dump(2) << '\n' << std::flush;
    require(json_file.good(), "bench", "cannot write ", flags.json);
  }
  return 0;
}

}  // namespace

Command add_bench(CLI::App& app) {
  CLI::App* command = app.add_subcommand("bench", "Time attention with each encoding");
  auto flags = std::make_shared<BenchFlags>();
  command->option_defaults()->always_capture_default();
  command->add_option("names", flags->names, "Encodings; all if none is named");
  command->add_option("--lengths", flags->lengths, "Keys, comma separated")
      ->delimiter(',')
      ->check(at_least(1));
  command->add_option("--q-len", flags->q_len, "Queries, the last positions; 0: as many as keys")
      ->check(at_least(0));
  command->add_option("--batch", flags->batch, "Sequences")->check(at_least(1));
  command->add_option("--heads", flags->heads, "Query heads")->check(at_least(1));
  command->add_option("--kv-heads", flags->kv_heads, "Key/value heads; 0: as many as query heads")
      ->check(at_least(0));
  command->add_option("--head-dim", flags->head_dim, "Head size d")->check(at_least(1));
  command->add_option("--threads", flags->threads, "Threads; 0: the library's choice")
      ->check(at_least(0));
  command->add_option("--dtype", flags->dtype, "Number type")
      ->check(CLI::IsMember({"f32", "f64", "bf16", "f16"}));
  command->add_flag("--causal", flags->causal, "Queries see no later key");
  command->add_option("--repeat", flags->repeat, "Runs of each, at least")->check(at_least(1));
  command->add_option("--min-seconds", flags->min_seconds, "Time of each, at least")
      ->check(CLI::Range(0.0, 3600.0));
  command->add_option("--json", flags->json, "Write the numbers to this file as well");
  command->add_option("--set", flags->set, "A field of the encodings, e.g. --set max_distance=16")
      ->expected(1)
      ->take_all();
  command->footer("GFLOP/s count 4·Lq·Lk·d·H·B operations, as if nothing were masked.");
  return [flags] { return bench(*flags); };
}

}  // namespace locant::cli
