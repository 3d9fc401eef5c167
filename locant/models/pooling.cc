#include "locant/models/pooling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "locant/core/error.h"
#include "locant/io/config.h"
#include "locant/io/file.h"
#include "locant/models/model.h"

namespace locant::inline v0 {
namespace {

// What a row counts in the sum of `count` rows.
using Weight = double (*)(int64_t row, int64_t count);

double first(int64_t row, int64_t /*count*/) {
  return row == 0 ? 1 : 0;
}

double last(int64_t row, int64_t count) {
  return row == count - 1 ? 1 : 0;
}

double mean(int64_t /*row*/, int64_t count) {
  return 1 / static_cast<double>(count);
}

double mean_by_root(int64_t /*row*/, int64_t count) {
  return 1 / std::sqrt(static_cast<double>(count));
}

// Later rows weigh more: 1, 2, 3, ...
double mean_by_place(int64_t row, int64_t count) {
  const auto n = static_cast<double>(count);
  return static_cast<double>(row + 1) / (n * (n + 1) / 2);
}

struct Mode {
  const char* name;
  const char* flag;  // of older files
  Weight weight;     // null: the largest number of each column, not a sum
};

// By sentence-transformers' names, in the order in which several are joined.
constexpr Mode kModes[] = {
    {"cls", "pooling_mode_cls_token", first},
    {"max", "pooling_mode_max_tokens", nullptr},
    {"mean", "pooling_mode_mean_tokens", mean},
    {"mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens", mean_by_root},
    {"weightedmean", "pooling_mode_weightedmean_tokens", mean_by_place},
    {"lasttoken", "pooling_mode_lasttoken", last},
};

// Rows [begin, end) of h as one.
void pool(const Mode& mode, const ConstView& h, int64_t begin, int64_t end, std::span<double> out) {
  const double least = mode.weight == nullptr ? -std::numeric_limits<double>::infinity() : 0;
  std::fill(out.begin(), out.end(), least);
  for (int64_t row = begin; row < end; ++row) {
    const float* x = h.at<float>(row);
    if (mode.weight == nullptr) {
      for (size_t c = 0; c < out.size(); ++c)
        if (!(x[c] <= out[c]) && !std::isnan(out[c])) out[c] = x[c];  // NaN stays
    } else if (const double weight = mode.weight(row - begin, end - begin); weight != 0) {
      for (size_t c = 0; c < out.size(); ++c) out[c] += weight * x[c];
    }
  }
}

const Mode& mode_named(const std::string& name) {
  std::string known;
  for (const Mode& mode : kModes) {
    if (name == mode.name) return mode;
    known.append(known.empty() ? "" : ", ").append(mode.name);
  }
  fail("model", "the folder's embeddings need ", legible(name), ", but known are ", known,
       "; last_hidden_state is there without it");
}

std::vector<std::string> modes_of(const Config& config) {
  if (config.has("pooling_mode"))
    return config.is_list("pooling_mode") ? config.texts("pooling_mode")
                                          : std::vector{config.text("pooling_mode")};
  std::vector<std::string> modes;
  for (const Mode& mode : kModes)
    if (config.flag_or(mode.flag, false)) modes.emplace_back(mode.name);
  return modes;
}

// "Pooling" of "sentence_transformers.models.Pooling".
std::string class_of(const Config& module) {
  const std::string type = module.text("type");
  return type.substr(type.rfind('.') + 1);
}

// A folder beside config.json, and no other.
Config pooling_config(const std::string& dir, const Config& module) {
  const std::string name = module.text("path");
  if (name.empty() || name == "." || name == ".." || name.find_first_of("/\\") != std::string::npos)
    module.reject("path", "must name a folder of the model's, got " + shown(name));
  return Config::read(join_path(join_path(dir, name), "config.json"));
}

}  // namespace

std::vector<std::string> read_pooling(const std::string& dir) {
  const std::string path = join_path(dir, "modules.json");
  std::vector<std::string> modes;
  if (is_file(path)) {
    constexpr size_t kMost = 1 << 20;  // bytes
    // The file holds a list, and Config an object.
    const Config file =
        Config::parse("{\"modules\": " + read_file("load", path, kMost) + "}", path);
    for (const Config& module : file.children("modules")) {
      const std::string type = class_of(module);
      if (type == "Pooling")
        modes = modes_of(pooling_config(dir, module));
      else if (type != "Transformer" && type != "Normalize")
        return {type};
    }
  }
  if (modes.empty()) modes = {"mean"};
  return modes;
}

Tensor sentence_embeddings(const ModelOutput& output, const ModelInfo& info, bool normalize) {
  require(static_cast<bool>(output.last_hidden_state), "model",
          "sentence embeddings need last_hidden_state: load the model with head base");
  const ConstView h = output.last_hidden_state.view();
  const int64_t count = static_cast<int64_t>(output.offsets.size()) - 1, width = h.shape[1];
  std::vector<const Mode*> modes;
  for (const std::string& name : info.pooling) modes.push_back(&mode_named(name));
  Tensor out(DType::f32, {count, width * std::ssize(modes)});
  std::vector<double> values(static_cast<size_t>(width) * modes.size());
  for (int64_t n = 0; n < count; ++n) {
    for (size_t m = 0; m < modes.size(); ++m)
      pool(*modes[m], h, output.offsets[n], output.offsets[n + 1],
           std::span(values).subspan(m * static_cast<size_t>(width), static_cast<size_t>(width)));
    double factor = 1;
    if (normalize) {
      double squares = 0;
      for (const double value : values) squares += value * value;
      factor = squares > 0 ? 1 / std::sqrt(squares) : 0.0;
    }
    for (size_t c = 0; c < values.size(); ++c)
      *out.view().at<float>(n, static_cast<int64_t>(c)) = static_cast<float>(values[c] * factor);
  }
  return out;
}

}  // namespace locant::inline v0
