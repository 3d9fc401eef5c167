#include "locant/encodings/rope/rope_config.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "locant/encodings/checks.h"
#include "locant/encodings/rope/rope_frequencies.h"

namespace locant::inline v0 {
namespace {

const std::vector<std::string>& layouts() {
  static const std::vector<std::string> all = {"half", "interleaved"};
  return all;
}

const std::vector<std::string>& scalings() {
  static const std::vector<std::string> all = {
      "none", "linear", "ntk", "dynamic", "yarn", "llama3", "longrope", "proportional", "xpos"};
  return all;
}

const std::vector<std::string>& axes_kinds() {
  static const std::vector<std::string> all = {"1d", "sections", "2d_split", "2d_alternating"};
  return all;
}

const std::vector<std::string>& sections_layouts() {
  static const std::vector<std::string> all = {"contiguous", "interleaved"};
  return all;
}

// Configurations that come as fields are checked when parsed; those made in C++ are checked here.
void check_choice(const char* name, const std::string& value,
                  const std::vector<std::string>& choices) {
  Field field{.name = name, .fallback = std::string(), .doc = "", .choices = choices};
  converted(Rope::kName, field, value);
}

void check_positive(const char* name, double value) {
  require(std::isfinite(value) && value > 0, Rope::kName, name, " must be finite and > 0, got ",
          value);
}

void check_not_negative(const char* name, double value) {
  require(std::isfinite(value) && value >= 0, Rope::kName, name, " must be finite and >= 0, got ",
          value);
}

void check_rotary_dim(const RopeConfig& config) {
  const double part = config.partial_rotary_factor;
  require(part > 0 && part <= 1, Rope::kName, "partial_rotary_factor must be > 0 and <= 1, got ",
          part);
  const int64_t rot = rotary_dim(config);
  require(rot >= 2 && rot % 2 == 0, Rope::kName,
          "the rotated columns int(head_dim·partial_rotary_factor) must be even and >= 2, got ",
          rot, " of head_dim ", config.head_dim);
}

void check_factors(const char* name, const std::vector<double>& factors, int64_t pairs) {
  require(static_cast<int64_t>(factors.size()) == pairs, Rope::kName, name, " must have ", pairs,
          " numbers, one for each pair, got ", factors.size());
  for (const double factor : factors) check_positive(name, factor);
}

void check_scaling(const RopeConfig& config) {
  const std::string& scaling = config.scaling;
  const auto is_one_of = [&](std::initializer_list<const char*> names) {
    return std::find(names.begin(), names.end(), scaling) != names.end();
  };
  require(config.original_max_position >= 0, Rope::kName,
          "original_max_position must be >= 0, got ", config.original_max_position);
  require(config.max_position >= 0, Rope::kName, "max_position must be >= 0, got ",
          config.max_position);
  if (is_one_of({"dynamic", "yarn", "llama3", "longrope"}))
    require(config.original_max_position >= 2, Rope::kName, "scaling '", scaling,
            "' needs original_max_position >= 2, got ", config.original_max_position);
  check_not_negative("attention_factor", config.attention_factor);
  if (scaling == "yarn") {
    check_positive("beta_fast", config.beta_fast);
    check_positive("beta_slow", config.beta_slow);
    check_not_negative("mscale", config.mscale);
    check_not_negative("mscale_all_dim", config.mscale_all_dim);
  }
  if (scaling == "llama3") {
    check_positive("low_freq_factor", config.low_freq_factor);
    require(
        std::isfinite(config.high_freq_factor) && config.high_freq_factor > config.low_freq_factor,
        Rope::kName, "high_freq_factor must be > low_freq_factor = ", config.low_freq_factor,
        ", got ", config.high_freq_factor);
  }
  if (scaling == "longrope") {
    check_factors("short_factor", config.short_factor, rotary_dim(config) / 2);
    check_factors("long_factor", config.long_factor, rotary_dim(config) / 2);
  }
}

void check_axes(const RopeConfig& config) {
  const int64_t pairs = rotary_dim(config) / 2;
  require(config.axes == "1d" || config.scaling != "xpos", Rope::kName,
          "scaling 'xpos' is for axes '1d', got '", config.axes, "'");
  if (config.axes == "2d_split" || config.axes == "2d_alternating") {
    require(config.scaling == "none", Rope::kName, "axes '", config.axes, "' has no scaling, got '",
            config.scaling, "'");
    require(pairs % 2 == 0, Rope::kName, "axes '", config.axes,
            "' needs an even number of pairs, got ", pairs);
  }
  if (config.axes != "sections") {
    require(config.sections.empty(), Rope::kName, "sections are for axes 'sections', but axes is '",
            config.axes, "'");
    return;
  }

  for (const double pairs_of_axis : config.sections)
    require(pairs_of_axis >= 0 && pairs_of_axis == std::floor(pairs_of_axis), Rope::kName,
            "sections must be whole numbers >= 0, got ", pairs_of_axis);
  const double sum = std::accumulate(config.sections.begin(), config.sections.end(), 0.0);
  require(sum == static_cast<double>(pairs), Rope::kName, "sections must add up to the ", pairs,
          " pairs, got ", text_of(config.sections), " with sum ", sum);
  if (config.sections_layout == "contiguous") return;
  require(config.sections.size() == 3, Rope::kName, "interleaved sections must be 3, got ",
          config.sections.size());
  for (const int64_t axis : {1, 2})
    require(3 * (static_cast<int64_t>(config.sections[axis]) - 1) + axis < pairs, Rope::kName,
            "section ", axis, " has ", config.sections[axis], " pairs, but every third of ", pairs,
            " is not so many");
}

}  // namespace

const RopeConfig& checked(const RopeConfig& config) {
  check_heads(Rope::kName, config);
  check_choice("layout", config.layout, layouts());
  check_choice("scaling", config.scaling, scalings());
  check_choice("axes", config.axes, axes_kinds());
  check_choice("sections_layout", config.sections_layout, sections_layouts());
  require(std::isfinite(config.base) && config.base > 1, Rope::kName,
          "base must be finite and > 1, got ", config.base);
  check_positive("factor", config.factor);
  check_rotary_dim(config);
  check_scaling(config);
  check_axes(config);
  return config;
}

const Fields<RopeConfig>& Rope::description() {
  static const Fields<RopeConfig> fields{
      kName,
      {
          field("heads", &RopeConfig::heads, "query heads"),
          field("head_dim", &RopeConfig::head_dim, "width d of a head"),
          field("base", &RopeConfig::base, "θ_t = base^(-2t/rot)"),
          field("partial_rotary_factor", &RopeConfig::partial_rotary_factor,
                "part of the columns that turn"),
          field("layout", &RopeConfig::layout, "columns of pair t: (t, t + rot/2) or (2t, 2t + 1)",
                layouts()),
          field("scaling", &RopeConfig::scaling, "how θ changes for longer contexts", scalings()),
          field("factor", &RopeConfig::factor, "s: how much longer"),
          field("original_max_position", &RopeConfig::original_max_position,
                "L0: the length the model was trained for"),
          field("max_position", &RopeConfig::max_position,
                "yarn, longrope: s = max_position / L0 if factor is 1"),
          field("beta_fast", &RopeConfig::beta_fast, "yarn: pairs that turn as often keep θ"),
          field("beta_slow", &RopeConfig::beta_slow, "yarn: pairs that turn as seldom take θ/s"),
          field("truncate", &RopeConfig::truncate, "yarn: the ramp begins and ends at whole pairs"),
          field("attention_factor", &RopeConfig::attention_factor,
                "yarn, longrope: factor of cos and sin; 0: the paper's"),
          field("mscale", &RopeConfig::mscale, "yarn: with mscale_all_dim, another such factor"),
          field("mscale_all_dim", &RopeConfig::mscale_all_dim, "yarn: see mscale"),
          field("low_freq_factor", &RopeConfig::low_freq_factor,
                "llama3: wavelengths beyond L0 / this take θ/s"),
          field("high_freq_factor", &RopeConfig::high_freq_factor,
                "llama3: wavelengths below L0 / this keep θ"),
          field("short_factor", &RopeConfig::short_factor, "longrope: divides θ up to L0, (rot/2)"),
          field("long_factor", &RopeConfig::long_factor, "longrope: divides θ beyond L0, (rot/2)"),
          field("axes", &RopeConfig::axes, "numbers of a position: one, one per section, two",
                axes_kinds()),
          field("sections", &RopeConfig::sections, "pairs of each axis: M-RoPE"),
          field("sections_layout", &RopeConfig::sections_layout,
                "axes one after another (Qwen2-VL) or every third pair (Qwen3-VL)",
                sections_layouts()),
      }};
  return fields;
}

}  // namespace locant::inline v0
