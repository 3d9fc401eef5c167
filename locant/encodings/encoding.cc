#include "locant/encodings/encoding.h"

#include <algorithm>
#include <utility>

namespace locant::inline v0 {
namespace {

// One of 2^64 numbers per (key, counter), by the SplitMix64 finaliser: no state, any order.
uint64_t random_bits(uint64_t key, uint64_t counter) {
  uint64_t z = key + (counter + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Nearly normal(0, 1): the sum of twelve 16-bit uniforms, less its mean. In place of a logarithm
// and a cosine it needs integer sums only, so every platform draws the same numbers to the last
// bit.
double random_normal(uint64_t key, uint64_t counter) {
  int64_t sum = 0;
  for (uint64_t word = 0; word < 3; ++word) {
    const uint64_t bits = random_bits(key, 3 * counter + word);
    for (int shift = 0; shift < 64; shift += 16) sum += (bits >> shift) & 0xffff;
  }
  return static_cast<double>(2 * sum - 12 * 0xffff) / (2.0 * 0x10000);
}

// FNV-1a: a parameter's draws depend on its name, not on which others the fields switch on.
uint64_t hash_of(const std::string& name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

const Parameter& find(const std::string& encoding, const std::vector<Parameter>& parameters,
                      const std::string& name) {
  std::string known;
  for (const Parameter& parameter : parameters) {
    if (parameter.name == name) return parameter;
    known += (known.empty() ? "" : ", ") + parameter.name;
  }
  fail(encoding, "unknown parameter '", name, "'; known: ", known.empty() ? "none" : known);
}

[[noreturn]] void fail_embed(const std::string& encoding) {
  fail(encoding, "acts on the scores, it adds nothing to the input; give it to attend() instead");
}

}  // namespace

Encoding::Encoding(std::string name, std::vector<Parameter> parameters)
    : name_(std::move(name)), parameters_(std::move(parameters)) {}

void Encoding::set(const std::string& name, const ConstView& values) {
  const Parameter& parameter = find(name_, parameters_, name);
  require(is_floating(values.dtype), name_, name, " must be f32, f64, f16 or bf16, got ",
          name_of(values.dtype));
  const bool same_shape = std::equal(parameter.shape.begin(), parameter.shape.end(),
                                     values.shape.begin(), values.shape.begin() + values.rank);
  require(same_shape, name_, name, " has shape ", shape_text(values), " but must be ",
          shape_text(parameter.shape), " (", parameter.shape_in_words, ")");
  require(values.data != nullptr, name_, name, " must not be null");
  values_[name] = values;
  owned_.erase(name);
  parameter_changed(name);
}

void Encoding::check_position_axes(const char* name, const ConstView& positions) const {
  if (!positions || positions.rank < 3) return;
  require(positions.shape[2] == position_axes(), name_, name, " has shape ", shape_text(positions),
          ", ", positions.shape[2], " numbers for each position, but ", position_axes(),
          position_axes() == 1 ? " is needed" : " are needed");
}

void Encoding::init(uint64_t seed) {
  for (const Parameter& parameter : parameters_) {
    int64_t size = 1;
    for (const int64_t extent : parameter.shape) size *= extent;
    const uint64_t key = random_bits(seed, hash_of(parameter.name));
    std::vector<float>& values = owned_[parameter.name];
    values.resize(size);
    for (int64_t n = 0; n < size; ++n)
      values[n] = static_cast<float>(parameter.init_std * random_normal(key, n));
    values_.erase(parameter.name);
    parameter_changed(parameter.name);
  }
}

void Encoding::project(int64_t first_offset, int64_t last_offset) {
  require(first_offset <= last_offset, name_, "project needs first_offset <= last_offset, got ",
          first_offset, " and ", last_offset);
}

void Encoding::parameter_changed(const std::string&) {}

void Encoding::check_segments(const Problem& problem) const {
  require(uses_segments() || !problem.q_segments, name_,
          "has no segment term: leave out q_segments and k_segments");
}

void Encoding::check_problem(const Problem& problem) const {
  check_position_axes("q_positions", problem.q_positions);
  check_position_axes("k_positions", problem.k_positions);
  check_segments(problem);
}

ConstView Encoding::parameter(const std::string& name) const {
  const Parameter& description = find(name_, parameters_, name);
  if (const auto given = values_.find(name); given != values_.end()) return given->second;
  // Made anew each time: a copied encoding then points at its own numbers.
  const auto drawn = owned_.find(name);
  require(drawn != owned_.end(), name_, "parameter '", name, "' ", shape_text(description.shape),
          " has no values; give it some with set() or draw them with init()");
  return ConstView(drawn->second.data(), DType::f32, description.shape);
}

ParameterGradients Encoding::zero_gradients() const {
  ParameterGradients out;
  for (const Parameter& description : parameters_) {
    const bool wide = parameter(description.name).dtype == DType::f64;
    out.emplace(description.name, Tensor(wide ? DType::f64 : DType::f32, description.shape));
  }
  return out;
}

void Encoding::pullback(const Problem&, const Prepared& prepared, const View&, const View&,
                        const TermGradients&, ParameterGradients&) const {
  require(parameters_.empty() && prepared.storage.empty(), name_,
          "has no gradients: it does not say how with pullback()");
}

void Encoding::embed(const ConstView&, const EmbedOptions&, const View&) const {
  fail_embed(name_);
}

void Encoding::embed_pullback(const ConstView&, const EmbedOptions&, ParameterGradients&) const {
  fail_embed(name_);
}

void Encoding::embed_reference(const ConstView&, const EmbedOptions&, const View&) const {
  fail_embed(name_);
}

}  // namespace locant::inline v0
