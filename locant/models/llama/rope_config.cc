#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "locant/models/llama/config.h"
#include "locant/models/named.h"
#include "locant/models/sizes.h"

namespace locant::inline v0 {
namespace {

// Hugging Face's words for the scalings, and ours. "su" is what early Phi-3 configs say.
constexpr std::pair<const char*, const char*> kKinds[] = {
    {"default", "none"},      {"linear", "linear"}, {"ntk", "ntk"},
    {"dynamic", "dynamic"},   {"yarn", "yarn"},     {"llama3", "llama3"},
    {"longrope", "longrope"}, {"su", "longrope"},   {"proportional", "proportional"}};

std::string scaling_of(const Config& settings) {
  const char* key = settings.has("rope_type") ? "rope_type" : "type";
  return named(settings, key, settings.text_or(key, "default"), kKinds);
}

}  // namespace

RopeConfig rope_config(const Config& config, int64_t heads, int64_t head_dim) {
  std::optional<Config> settings;
  for (const char* key : {"rope_parameters", "rope_scaling"})
    if (!settings && config.has(key)) settings = config.child(key);
  // Where transformers 5 has all numbers in one object, older files have some beside it.
  const auto number = [&](const char* key, double fallback, double least) {
    return settings && settings->has(key) ? settings->number(key, least)
                                          : config.number_or(key, fallback, least);
  };
  RopeConfig out;
  out.heads = heads;
  out.head_dim = head_dim;
  out.base = number("rope_theta", 10000, 0);
  out.partial_rotary_factor = number("partial_rotary_factor", 1, 0);
  if (!settings) return out;
  for (const char* key : {"full_attention", "sliding_attention"})
    if (settings->has(key))
      settings->reject(key, "is a rotation for some of the layers, but one for all is known");

  out.scaling = scaling_of(*settings);
  if (out.scaling == "none") return out;
  constexpr const char* kOriginal = "original_max_position_embeddings";
  const int64_t longest = config.integer_or("max_position_embeddings", 2048, 1, kMostConfigured);
  // Phi-3 has it beside rope_scaling, and that comes first. Dynamic NTK counts from the longest.
  out.original_max_position = longest;
  if (out.scaling != "dynamic")
    out.original_max_position =
        config.integer_or(kOriginal, settings->integer_or(kOriginal, longest, 1, kMostConfigured),
                          1, kMostConfigured);
  const bool from_lengths = (out.scaling == "yarn" || out.scaling == "longrope");
  if (from_lengths && !settings->has("factor"))
    out.factor = static_cast<double>(longest) / static_cast<double>(out.original_max_position);
  else if (out.scaling == "proportional")
    out.factor = settings->number_or("factor", 1, 0);
  else
    out.factor = settings->number("factor", 0);

  if (from_lengths) out.attention_factor = settings->number_or("attention_factor", 0, 0);
  if (out.scaling == "yarn") {
    out.beta_fast = settings->number_or("beta_fast", out.beta_fast, 0);
    out.beta_slow = settings->number_or("beta_slow", out.beta_slow, 0);
    out.mscale = settings->number_or("mscale", 0, 0);
    out.mscale_all_dim = settings->number_or("mscale_all_dim", 0, 0);
    out.truncate = settings->flag_or("truncate", true);
  } else if (out.scaling == "llama3") {
    out.low_freq_factor = settings->number("low_freq_factor", 0);
    out.high_freq_factor = settings->number("high_freq_factor", 0);
  } else if (out.scaling == "longrope") {
    out.short_factor = settings->numbers("short_factor");
    out.long_factor = settings->numbers("long_factor");
  }
  return out;
}

}  // namespace locant::inline v0
