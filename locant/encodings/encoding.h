// An encoding is a small compiler: fields + parameters + lengths -> prepared q and k, and terms.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "locant/core/api.h"
#include "locant/core/fields.h"
#include "locant/core/tensor.h"
#include "locant/core/view.h"
#include "locant/encodings/embed.h"
#include "locant/encodings/reference.h"
#include "locant/terms/gradients.h"
#include "locant/terms/problem.h"
#include "locant/terms/terms.h"

namespace locant::inline v0 {

// A weight of an encoding. Tables start as normal(0, init_std) unless the user sets them.
struct Parameter {
  std::string name;
  std::vector<int64_t> shape;
  std::string shape_in_words;  // "2·max_distance + 1, head_dim"
  double init_std = 0.02;
  int64_t fan_in = 1;  // products that one result sums: 1 for tables, columns for matrices
  std::string doc;
};

// What prepare() gives to attention. q and k are the caller's own views unless the encoding rotates
// them; then they point into `storage`.
struct Prepared {
  ConstView q, k;
  Terms terms;
  std::vector<std::shared_ptr<const void>> storage;
};

// By the parameter's name, in its shape.
using ParameterGradients = std::map<std::string, Tensor>;

// The base of all encodings; programs may derive their own and give it to attend().
class LOCANT_API Encoding {
 public:
  virtual ~Encoding() = default;

  const std::string& name() const { return name_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  virtual FieldValues fields() const = 0;

  // How many numbers a position may have: more than one for encodings of images and video.
  virtual int64_t position_axes() const { return 1; }

  // Fails by name if `positions`, as a Problem has them, have another number of axes.
  void check_position_axes(const char* name, const ConstView& positions) const;

  // Uses `values` as the parameter `name`: a view, not a copy; it must outlive the encoding.
  void set(const std::string& name, const ConstView& values);

  // Draws every parameter from its initial distribution (float32, owned by the encoding).
  void init(uint64_t seed);

  // The parameter's current values, (shape of the description).
  ConstView parameter(const std::string& name) const;

  // Computes once what prepare() would make from weights alone in every call: tables for offsets
  // pos(key) - pos(query) from first_offset to last_offset. Calls with others still work, without
  // this saving. set() and init() drop the tables; after changing weights in place, call it again.
  // Most encodings have no such work.
  virtual void project(int64_t first_offset, int64_t last_offset);

  // Whether the encoding has a segment term; check_segments fails by name if it has none but the
  // problem has segments.
  virtual bool uses_segments() const { return false; }
  void check_segments(const Problem& problem) const;

  // All of these checks: what attend() asks before prepare().
  void check_problem(const Problem& problem) const;

  // q (B, H, Lq, d), k (B, Hkv, Lk, d) -> prepared q and k, and the terms of the scores.
  virtual Prepared prepare(const Problem& problem, const ConstView& q,
                           const ConstView& k) const = 0;

  // A tensor of zeros for each parameter: f64 where the parameter is, else f32.
  ParameterGradients zero_gradients() const;

  // The transpose of prepare(): d(prepared q), d(prepared k), d(terms) -> d(q), d(k) in place; what
  // the parameters get is added to `gradients`, which has a tensor for each. By default for
  // encodings without parameters that hand q and k on as they are.
  virtual void pullback(const Problem& problem, const Prepared& prepared, const View& dq,
                        const View& dk, const TermGradients& dterms,
                        ParameterGradients& gradients) const;

  // The width D of the inputs that embed() adds to; 0: the encoding acts on the scores only.
  virtual int64_t embed_dim() const { return 0; }

  // out = x + PE.  x, out (B, L, D) of one type, f32 or f64, any strides; out may be x itself.
  virtual void embed(const ConstView& x, const EmbedOptions& options, const View& out) const;

  // The same by the paper's formula in plain loops; out is f64. Shares nothing with embed().
  virtual void embed_reference(const ConstView& x, const EmbedOptions& options,
                               const View& out) const;

  // The transpose of embed(): d(x) is d(out) itself; what the parameters get from dout (B, L, D) is
  // added to `gradients`, which has a tensor for each.
  virtual void embed_pullback(const ConstView& dout, const EmbedOptions& options,
                              ParameterGradients& gradients) const;

  // The paper in plain loops, one sequence at a time; shares nothing with prepare().
  virtual void reference(const ReferenceProblem<double>& problem,
                         ReferenceResult<double>& out) const = 0;
  virtual void reference(const ReferenceProblem<float>& problem,
                         ReferenceResult<float>& out) const = 0;

 protected:
  Encoding(std::string name, std::vector<Parameter> parameters);

  // Called when set() or init() has given a parameter new values.
  virtual void parameter_changed(const std::string& name);

 private:
  std::string name_;
  std::vector<Parameter> parameters_;
  std::map<std::string, ConstView> values_;
  std::map<std::string, std::vector<float>> owned_;
};

}  // namespace locant::inline v0
