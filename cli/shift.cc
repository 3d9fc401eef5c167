// locant shift: do an encoding's scores change when all positions shift?
#include <fmt/core.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/settings.h"
#include "cli/validators.h"
#include "locant/check/random.h"
#include "locant/encodings/registry.h"
#include "locant/layers/analysis.h"

namespace locant::cli {
namespace {

struct ShiftFlags {
  std::string name;
  std::vector<int64_t> shifts = {1, 17, 1000};
  int64_t length = 64, heads = 4, head_dim = 32;
  std::string dtype = "f32";
  std::vector<std::string> set;  // key=value
};

template <class Real>
std::vector<ShiftChange> measure(const ShiftFlags& flags, const Encoding& encoding) {
  Random random(1);
  const int64_t H = flags.heads, L = flags.length, d = flags.head_dim;
  std::vector<Real> q(H * L * d), k(q.size());
  for (Real& value : q) value = static_cast<Real>(random.symmetric());
  for (Real& value : k) value = static_cast<Real>(random.symmetric());
  return shift_invariance(view(q.data(), {1, H, L, d}), view(k.data(), {1, H, L, d}), encoding, {},
                          flags.shifts);
}

int shift(const ShiftFlags& flags) {
  const EncodingEntry& entry = find_encoding(flags.name);
  require_known_settings("shift", {&entry}, flags.set);
  FieldValues fields = {{"heads", flags.heads}, {"head_dim", flags.head_dim}};
  apply_settings(entry, flags.set, fields);
  const std::unique_ptr<Encoding> encoding = entry.make(fields);
  encoding->init(1);
  const std::vector<ShiftChange> changes =
      flags.dtype == "f32" ? measure<float>(flags, *encoding) : measure<double>(flags, *encoding);
  fmt::print("{}, H={} d={} L={} {}{}\n", entry.name, flags.heads, flags.head_dim, flags.length,
             flags.dtype, encoding->embed_dim() > 0 ? ", added to the inputs of both sides" : "");
  fmt::print("{:>20}{:>18}{:>18}{:>12}\n", "shift", "largest change", "largest score", "ratio");
  for (const ShiftChange& change : changes)
    fmt::print("{:>20}{:>18.3e}{:>18.3e}{:>12.1e}\n", change.shift, change.worst_change,
               change.largest_score, change.worst_change / change.largest_score);
  return 0;
}

}  // namespace

Command add_shift(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "shift", "How much the scores of random q and k change when all positions shift");
  auto flags = std::make_shared<ShiftFlags>();
  command->option_defaults()->always_capture_default();
  command->add_option("name", flags->name, "Encoding")->required();
  command->add_option("--by", flags->shifts, "Shifts, comma separated")->delimiter(',');
  command->add_option("--length", flags->length, "Queries and keys")->check(at_least(1));
  command->add_option("--heads", flags->heads, "Heads")->check(at_least(1));
  command->add_option("--head-dim", flags->head_dim, "Head size d")->check(at_least(1));
  command->add_option("--dtype", flags->dtype, "Number type")->check(CLI::IsMember({"f32", "f64"}));
  command->add_option("--set", flags->set, "A field of the encoding, e.g. --set max_len=2048")
      ->expected(1)
      ->take_all();
  command->footer("Relative encodings change by rounding only. Exit code 0 whatever the change.");
  return [flags] { return shift(*flags); };
}

}  // namespace locant::cli
