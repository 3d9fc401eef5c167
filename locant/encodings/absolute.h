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
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "locant/encodings/checks.h"
#include "locant/encodings/encoding.h"
#include "locant/encodings/none/none.h"

namespace locant::inline v0 {

// The configuration with its fields checked and dim = 0 replaced by heads·head_dim.
template <class Config>
Config with_dim(std::string_view scope, Config config) {
  constexpr int64_t kMaxDim = int64_t{1} << 20, kMaxPaddingIdx = int64_t{1} << 24;
  check_heads(scope, config);
  require(config.heads <= kMaxDim && config.head_dim <= kMaxDim, scope,
          "heads and head_dim must be <= ", kMaxDim, ", got ", config.heads, " and ",
          config.head_dim);
  require(config.dim >= 0, scope, "dim must be >= 0, got ", config.dim);
  if (config.dim == 0) config.dim = config.heads * config.head_dim;
  require(config.dim <= kMaxDim, scope, "dim must be <= ", kMaxDim, ", got ", config.dim);
  require(config.padding_idx >= -1 && config.padding_idx <= kMaxPaddingIdx, scope,
          "padding_idx must be from -1 to ", kMaxPaddingIdx, ", got ", config.padding_idx);
  return config;
}

class LOCANT_API Absolute : public Encoding {
 public:
  int64_t embed_dim() const final { return dim_; }
  void embed(const ConstView& x, const EmbedOptions& options, const View& out) const final;
  void embed_reference(const ConstView& x, const EmbedOptions& options,
                       const View& out) const final;
  void embed_pullback(const ConstView& dout, const EmbedOptions& options,
                      ParameterGradients& gradients) const final;

  Prepared prepare(const Problem& problem, const ConstView& q, const ConstView& k) const final;
  void pullback(const Problem&, const Prepared&, const View&, const View&, const TermGradients&,
                ParameterGradients&) const final {}  // the scores know no parameter
  void reference(const ReferenceProblem<double>&, ReferenceResult<double>&) const final;
  void reference(const ReferenceProblem<float>&, ReferenceResult<float>&) const final;

 protected:
  // Config has been through with_dim().
  template <class Config>
  Absolute(const char* name, const Config& config, std::vector<Parameter> parameters)
      : Encoding(name, std::move(parameters)),
        plain_({.heads = config.heads, .head_dim = config.head_dim}),
        dim_(config.dim),
        padding_idx_(config.padding_idx) {}

  // Fails by name if PE has no such row.
  virtual void check_position(int64_t position) const = 0;

  // Calls use(n, row) with the row PE[positions[n]], (D), for every n in order. A row depends on
  // its position alone, to the last bit: a decode step then gets what the whole sequence got.
  template <class Real>
  using UseRow = std::function<void(int64_t, const Real*)>;
  virtual void each_row(std::span<const int64_t> positions, const UseRow<float>& use) const = 0;
  virtual void each_row(std::span<const int64_t> positions, const UseRow<double>& use) const = 0;

  // The transpose of each_row for channels [begin, end): what dout (B, L, D) gives to parameters,
  // with positions (1 | B, L). Called for all channels, from several threads.
  virtual void pull_back_rows(std::span<const int64_t> positions, const ConstView& dout,
                              int64_t begin, int64_t end, ParameterGradients& gradients) const = 0;

  // PE[position, channel] as the paper writes it.
  virtual double reference_element(int64_t position, int64_t channel) const = 0;

 private:
  std::vector<int64_t> find_positions(const ConstView& x, const EmbedOptions& options) const;
  template <class Real>
  void add(const ConstView& x, std::span<const int64_t> positions, const View& out) const;

  None plain_;  // the attention that follows
  int64_t dim_, padding_idx_;
};

}  // namespace locant::inline v0
