// Absolute encodings: what those that are added to the input have in common.
//
//   out[b,l] = x[b,l] + PE[position(b,l)]      x, out (B, L, D)
//   S[i,j]   = <q_i, k_j> / sqrt(d)            plain attention afterwards
//
//   position(b,l) = positions[b,l] if these are given, else by one of two rules:
//     padding_idx < 0   start + l                                             (the paper, BERT)
//     padding_idx >= 0  padding_idx at padding, and at real tokens
//                       padding_idx + 1 + start + real tokens of b before l   (fairseq, RoBERTa)
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "locant/encodings/checks.h"
#include "locant/encodings/encoding.h"
#include "locant/encodings/none/none.h"

namespace locant {

// The width D that a configuration means: dim, or heads·head_dim if that is 0. Fails by name if one
// of the three is out of range.
int64_t resolved_dim(std::string_view scope, int64_t heads, int64_t head_dim, int64_t dim);

class Absolute : public Encoding {
 public:
  int64_t embed_dim() const final { return dim_; }
  void embed(const ConstView& x, const EmbedOptions& options, const View& out) const final;
  void embed_reference(const ConstView& x, const EmbedOptions& options,
                       const View& out) const final;

  Prepared prepare(const Problem& problem, const ConstView& q, const ConstView& k) const final;
  void reference(const ReferenceProblem<double>&, ReferenceResult<double>&) const final;
  void reference(const ReferenceProblem<float>&, ReferenceResult<float>&) const final;

 protected:
  // Config has heads, head_dim, dim (not 0 any more) and padding_idx.
  template <class Config>
  Absolute(const char* name, const Config& config, std::vector<Parameter> parameters)
      : Encoding(name, std::move(parameters)),
        plain_({.heads = config.heads, .head_dim = config.head_dim}),
        dim_(config.dim),
        padding_idx_(config.padding_idx) {}

  // Fails by name if PE has no such row.
  virtual void check_position(int64_t position) const = 0;

  // The rows PE[position] of checked positions, (n, D). A row depends on its position alone, to the
  // last bit: a decode step then gets what the whole sequence got.
  virtual void fill_rows(std::span<const int64_t> positions, float* rows) const = 0;
  virtual void fill_rows(std::span<const int64_t> positions, double* rows) const = 0;

  // PE[position, channel] as the paper writes it.
  virtual double reference_element(int64_t position, int64_t channel) const = 0;

 private:
  std::vector<int64_t> find_positions(const ConstView& x, const EmbedOptions& options) const;
  template <class Real>
  void add(const ConstView& x, std::span<const int64_t> positions, const View& out) const;

  None plain_;  // the attention that follows
  int64_t dim_, padding_idx_;
};

}  // namespace locant
