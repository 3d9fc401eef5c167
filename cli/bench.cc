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
  const EncodingEntry* entry = nullptr;
  std::unique_ptr<Encoding> encoding;
  double seconds = std::numeric_limits<double>::infinity();  // minimum
  double total = 0;
  int runs = 0;
  std::optional<int64_t> extra_memory;
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

// "max_distance=16" -> fields of those encodings that have it. Fails if none has.
FieldValues fields_for(const EncodingEntry& entry, const BenchFlags& flags) {
  FieldValues out = {{"heads", flags.heads}, {"head_dim", flags.head_dim}};
  for (const std::string& setting : flags.set) {
    const size_t equals = setting.find('=');
    require(equals != std::string::npos, "bench", "--set takes key=value, got '", setting, "'");
    const std::string key = setting.substr(0, equals);
    for (const Field& field : entry.fields)
      if (field.name == key) out[key] = parse_field(entry.name, field, setting.substr(equals + 1));
  }
  return out;
}

void require_known_settings(const std::vector<const EncodingEntry*>& entries,
                            const BenchFlags& flags) {
  for (const std::string& setting : flags.set) {
    const std::string key = setting.substr(0, setting.find('='));
    const bool known = std::any_of(entries.begin(), entries.end(), [&](const EncodingEntry* entry) {
      return std::any_of(entry->fields.begin(), entry->fields.end(),
                         [&](const Field& field) { return field.name == key; });
    });
    require(known, "bench", "--set ", key, ": no chosen encoding has this field (see locant list)");
  }
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

template <class Real>
std::vector<Timing> measure(const std::vector<const EncodingEntry*>& entries,
                            const BenchFlags& flags, int64_t q_len, int64_t k_len) {
  Tensors<Real> x(flags, q_len, k_len);
  AttendOptions options;
  options.causal = flags.causal;
  options.q_start = k_len - q_len;  // the queries are the last positions
  std::vector<Timing> timings;
  for (const EncodingEntry* entry : entries) {
    Timing& timing = timings.emplace_back();
    timing.entry = entry;
    timing.encoding = entry->make(fields_for(*entry, flags));
    timing.encoding->init(1);
  }
  const auto call = [&](const Timing& timing) {
    attend(x.q, x.k, x.v, *timing.encoding, options, x.out);
  };
  for (Timing& timing : timings) timing.extra_memory = extra_peak_memory([&] { call(timing); });

  // Rounds alternate, so that a disturbance of the machine does not hit one encoding only.
  const auto unfinished = [&](const Timing& timing) {
    return timing.runs < flags.repeat || timing.total < flags.min_seconds;
  };
  while (std::any_of(timings.begin(), timings.end(), unfinished))
    for (Timing& timing : timings) {
      const auto begin = std::chrono::steady_clock::now();
      call(timing);
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
      timing.seconds = std::min(timing.seconds, elapsed.count());
      timing.total += elapsed.count();
      ++timing.runs;
    }
  return timings;
}

nlohmann::ordered_json json_of(const Timing& timing, const BenchFlags& flags, int64_t q_len,
                               int64_t k_len, double gflops, double ratio) {
  nlohmann::ordered_json fields;
  for (const auto& [name, value] : timing.encoding->fields())
    std::visit([&, key = name](const auto& held) { fields[key] = held; }, value);
  nlohmann::ordered_json out = {
      {"encoding", timing.entry->name}, {"fields", fields},      {"batch", flags.batch},
      {"kv_heads", flags.kv_heads},     {"q_len", q_len},        {"k_len", k_len},
      {"causal", flags.causal},         {"dtype", flags.dtype},  {"isa", isa()},
      {"threads", num_threads()},       {"runs", timing.runs},   {"seconds", timing.seconds},
      {"gflops_if_dense", gflops},      {"ratio_to_none", ratio}};
  if (timing.extra_memory) out["extra_peak_bytes"] = *timing.extra_memory;
  return out;
}

int bench(BenchFlags flags) {
  if (flags.kv_heads == 0) flags.kv_heads = flags.heads;
  require(flags.heads % flags.kv_heads == 0, "bench", "--heads ", flags.heads,
          " is not a multiple of --kv-heads ", flags.kv_heads);
  const std::vector<const EncodingEntry*> entries = chosen_encodings(flags);
  require_known_settings(entries, flags);
  if (flags.threads > 0) set_num_threads(flags.threads);
  std::ofstream json_file;
  if (!flags.json.empty()) {
    json_file.open(flags.json);
    require(json_file.is_open(), "bench", "cannot write ", flags.json);
  }

  fmt::print("B={} H={} Hkv={} d={} {}{}, {} threads, {}; minimum of at least {} runs\n",
             flags.batch, flags.heads, flags.kv_heads, flags.head_dim, flags.dtype,
             flags.causal ? " causal" : "", num_threads(), isa(), flags.repeat);
  fmt::print("{:<14}{:>8}{:>8}{:>12}{:>10}{:>9}{:>12}\n", "encoding", "Lq", "Lk", "ms", "GFLOP/s",
             "/ none", "extra MiB");
  nlohmann::ordered_json records = nlohmann::ordered_json::array();
  for (const int64_t k_len : flags.lengths) {
    const int64_t q_len = flags.q_len > 0 ? flags.q_len : k_len;
    require(q_len <= k_len, "bench", "--q-len ", q_len, " is longer than length ", k_len);
    const std::vector<Timing> timings = flags.dtype == "f32"
                                            ? measure<float>(entries, flags, q_len, k_len)
                                            : measure<double>(entries, flags, q_len, k_len);
    // As if dense, whatever is masked: 2 flops for each product in QKᵀ and PV.
    const double flops = 4.0 * q_len * k_len * flags.head_dim * flags.heads * flags.batch;
    for (const Timing& timing : timings) {
      const double gflops = flops / timing.seconds * 1e-9;
      const double ratio = timing.seconds / timings.front().seconds;
      fmt::print(
          "{:<14}{:>8}{:>8}{:>12.4f}{:>10.1f}{:>9.3f}{:>12}\n", timing.entry->name, q_len, k_len,
          timing.seconds * 1e3, gflops, ratio,
          timing.extra_memory ? fmt::format("{:.2f}", *timing.extra_memory / 1048576.0) : "?");
      records.push_back(json_of(timing, flags, q_len, k_len, gflops, ratio));
    }
  }
  if (json_file.is_open()) {
    json_file << records.dump(2) << '\n' << std::flush;
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
      ->check(CLI::PositiveNumber);
  command->add_option("--q-len", flags->q_len, "Queries, the last positions; 0: as many as keys")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--batch", flags->batch, "Sequences")->check(CLI::PositiveNumber);
  command->add_option("--heads", flags->heads, "Query heads")->check(CLI::PositiveNumber);
  command->add_option("--kv-heads", flags->kv_heads, "Key/value heads; 0: as many as query heads")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--head-dim", flags->head_dim, "Head size d")->check(CLI::PositiveNumber);
  command->add_option("--threads", flags->threads, "Threads; 0: the library's choice")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--dtype", flags->dtype, "Number type")->check(CLI::IsMember({"f32", "f64"}));
  command->add_flag("--causal", flags->causal, "Queries see no later key");
  command->add_option("--repeat", flags->repeat, "Runs of each, at least")
      ->check(CLI::PositiveNumber);
  command->add_option("--min-seconds", flags->min_seconds, "Time of each, at least")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--json", flags->json, "Write the numbers to this file as well");
  command->add_option("--set", flags->set, "A field of the encodings, e.g. --set max_distance=16")
      ->expected(1)
      ->take_all();
  command->footer("GFLOP/s count 4·Lq·Lk·d·H·B operations, as if nothing were masked.");
  return [flags] { return bench(*flags); };
}

}  // namespace locant::cli
