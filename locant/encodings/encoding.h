// An encoding is a small compiler: fields + parameters + lengths -> prepared q and k, and terms.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "locant/core/api.h"
#include "locant/core/fields.h"
#include "locant/core/view.h"
#include "locant/encodings/reference.h"
#include "locant/terms/problem.h"
#include "locant/terms/terms.h"

namespace locant::inline v0 {

// A weight of an encoding. Tables start as normal(0, init_std) unless the user sets them.
struct Parameter {
  std::string name;
  std::vector<int64_t> shape;
  std::string shape_in_words;  // "2·max_distance + 1, head_dim"
  double init_std = 0.02;
  std::string doc;
};

// What prepare() gives to attention. q and k are the caller's own views unless the encoding rotates
// them; then they point into `storage`.
struct Prepared {
  ConstView q, k;
  Terms terms;
  std::vector<std::shared_ptr<void>> storage;
};

// Gradients of the terms, as attention's backward gives them, in the order of Terms. Filled by the
// fused backward; an encoding's pullback turns them into gradients of its parameters.
struct TermGradients {
  std::vector<double> query_plus;                // (heads, d)
  std::vector<std::vector<double>> biases;       // each (heads, count)
  std::vector<std::vector<double>> projections;  // each (heads | 1, rows, d)
  std::vector<std::vector<double>> values;       // each (heads | 1, rows, dv)
};

using ParameterGradients = std::map<std::string, std::vector<double>>;

// The base of all encodings; programs may derive their own and give it to attend().
class LOCANT_API Encoding {
 public:
  virtual ~Encoding() = default;

  const std::string& name() const { return name_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  virtual FieldValues fields() const = 0;

  // Uses `values` as the parameter `name`: a view, not a copy; it must outlive the encoding.
  void set(const std::string& name, const ConstView& values);

  // Draws every parameter from its initial distribution (float32, owned by the encoding).
  void init(uint64_t seed);

  // The parameter's current values, (shape of the description).
  ConstView parameter(const std::string& name) const;

  // q (B, H, Lq, d), k (B, Hkv, Lk, d) -> prepared q and k, and the terms of the scores.
  virtual Prepared prepare(const Problem& problem, const ConstView& q,
                           const ConstView& k) const = 0;

  // d(prepared q), d(prepared k), d(terms) -> d(q), d(k) in place, and gradients of the parameters.
  virtual void pullback(const Problem& problem, const Prepared& prepared, const View& dq,
                        const View& dk, const TermGradients& dterms,
                        ParameterGradients& gradients) const;

  // The paper in plain loops, one sequence at a time; shares nothing with prepare().
  virtual void reference(const ReferenceProblem<double>& problem,
                         ReferenceResult<double>& out) const = 0;
  virtual void reference(const ReferenceProblem<float>& problem,
                         ReferenceResult<float>& out) const = 0;

 protected:
  Encoding(std::string name, std::vector<Parameter> parameters);

 private:
  std::string name_;
  std::vector<Parameter> parameters_;
  std::map<std::string, ConstView> values_;
  std::map<std::string, std::vector<float>> owned_;
};

}  // namespace locant::inline v0
