#include "locant/models/batch.h"

#include <algorithm>
#include <string>

#include "locant/core/error.h"

namespace locant::inline v0 {
namespace {

constexpr const char* kScope = "model";

void check_ids(const char* name, size_t n, const std::vector<int64_t>& ids, int64_t count,
               const char* what) {
  for (size_t i = 0; i < ids.size(); ++i)
    require(ids[i] >= 0 && ids[i] < count, kScope, name, "[", n, "][", i, "] is ", ids[i],
            " but must be from 0 to ", count - 1, ": the model has ", count, " ", what);
}

void check_shapes(const ModelInput& input) {
  const size_t count = input.ids.size();
  require(input.token_types.empty() || input.token_types.size() == count, kScope,
          "token_types has ", input.token_types.size(), " sequences but ids has ", count);
  require(input.starts.empty() || input.starts.size() == count, kScope, "starts has ",
          input.starts.size(), " entries but ids has ", count, " sequences");
  for (size_t n = 0; n < count; ++n)
    require(!input.ids[n].empty(), kScope, "ids[", n, "] is empty: a sequence needs a token");
  for (size_t n = 0; n < input.token_types.size(); ++n)
    require(input.token_types[n].size() == input.ids[n].size(), kScope, "token_types[", n, "] has ",
            input.token_types[n].size(), " entries but ids[", n, "] has ", input.ids[n].size());
  for (size_t n = 0; n < input.starts.size(); ++n)
    require(input.starts[n] >= 0 && input.starts[n] <= kMaxPosition, kScope, "starts[", n,
            "] must be from 0 to ", kMaxPosition, ", got ", input.starts[n]);
}

// Inputs that the model would not look at.
void check_takes(const ModelInput& input, const ModelInfo& info) {
  const auto check = [&](const char* name, bool given) {
    require(!given || std::find(info.takes.begin(), info.takes.end(), name) != info.takes.end(),
            kScope, "a ", info.model_type, " model takes no ", name);
  };
  check("mems", !input.mems.empty() || input.use_mems);
  check("perm_mask", !input.perm_masks.empty());
  check("target_mapping", !input.target_mappings.empty());
}

void add_positions(const std::vector<int64_t>& ids, int64_t start, const PositionRule& rule,
                   std::vector<int64_t>& positions) {
  int64_t counted = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!rule.padding) {
      positions.push_back(start + static_cast<int64_t>(i));
    } else {
      positions.push_back(ids[i] == *rule.padding ? *rule.padding : *rule.padding + ++counted);
    }
  }
}

// Its ids, and its rows after those that are there.
void add_sequence(const char* name, size_t n, const std::vector<int64_t>& ids,
                  const ModelInfo& info, Batch& batch) {
  check_ids(name, n, ids, info.vocab_size, "words");
  const auto length = static_cast<int64_t>(ids.size());
  const int64_t first = batch.offsets.back();
  batch.ids.insert(batch.ids.end(), ids.begin(), ids.end());
  batch.firsts.push_back(first);
  batch.sequences.push_back(
      {.batch = 0, .q_begin = first, .q_len = length, .k_begin = first, .k_len = length});
  batch.offsets.push_back(first + length);
}

}  // namespace

Batch make_batch(const ModelInput& input, const ModelInfo& info, const PositionRule& rule) {
  check_shapes(input);
  check_takes(input, info);
  require(input.attention_layer >= -1 && input.attention_layer < info.layers, kScope,
          "attention_layer must be from 0 to ", info.layers - 1, ", got ", input.attention_layer);
  require(input.decoder_ids.empty() || info.decoder_layers > 0, kScope, "a ", info.model_type,
          " model with head ", info.head, " has no decoder: leave out decoder_ids");
  Batch batch;
  for (size_t n = 0; n < input.ids.size(); ++n) {
    const std::vector<int64_t>& ids = input.ids[n];
    const auto length = static_cast<int64_t>(ids.size());
    const int64_t start = input.starts.empty() || rule.padding ? 0 : input.starts[n];
    require(info.max_length == 0 || length <= info.max_length - start, kScope, "ids[", n, "] has ",
            length, " tokens", start > 0 ? " and starts at position " + std::to_string(start) : "",
            " but the model has positions for ", info.max_length);
    add_sequence("ids", n, ids, info, batch);
    if (info.token_types > 0) {
      if (input.token_types.empty()) {
        batch.token_types.insert(batch.token_types.end(), ids.size(), 0);
      } else {
        check_ids("token_types", n, input.token_types[n], info.token_types, "token types");
        batch.token_types.insert(batch.token_types.end(), input.token_types[n].begin(),
                                 input.token_types[n].end());
      }
    }
    if (rule.table_rows > 0) add_positions(ids, start, rule, batch.positions);
  }
  return batch;
}

Batch make_decoder_batch(const ModelInput& input, const ModelInfo& info) {
  require(input.decoder_ids.size() == input.ids.size(), kScope, "decoder_ids has ",
          input.decoder_ids.size(), " sequences but ids has ", input.ids.size());
  Batch batch;
  for (size_t n = 0; n < input.decoder_ids.size(); ++n) {
    require(!input.decoder_ids[n].empty(), kScope, "decoder_ids[", n,
            "] is empty: a sequence needs a token");
    add_sequence("decoder_ids", n, input.decoder_ids[n], info, batch);
  }
  return batch;
}

}  // namespace locant::inline v0
