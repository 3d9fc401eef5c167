#include "locant/models/deberta/config.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "locant/models/sizes.h"

namespace locant::inline v0 {
namespace {

// "c2p|p2c" or ["c2p", "p2c"], in small letters; missing: nothing.
std::vector<std::string> words_of(const Config& config, const char* key) {
  if (!config.has(key)) return {};
  if (!config.is_text(key)) return config.texts(key);
  std::vector<std::string> words(1);
  for (const char c : config.text(key)) {
    if (c == '|')
      words.emplace_back();
    else if (std::isspace(static_cast<unsigned char>(c)) == 0)
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return words;
}

bool has_word(const std::vector<std::string>& words, const char* word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

DebertaModelConfig read_deberta_config(const Config& config) {
  DebertaModelConfig out;
  out.info = sizes_of(config);
  out.info.token_types = config.integer_or("type_vocab_size", 0, 0, kMostConfigured);
  out.v1 = out.info.model_type == "deberta";
  const int64_t width = out.info.hidden_size;
  out.embedding_size = config.integer_or("embedding_size", width, 1, kMostConfigured);
  out.positions = config.integer_or("max_position_embeddings", 512, 1, kMostConfigured);
  out.eps = config.number_or("layer_norm_eps", 1e-7, 0);
  out.position_biased_input = config.flag_or("position_biased_input", true);
  out.relative = config.flag_or("relative_attention", false);
  const std::vector<std::string> types = words_of(config, "pos_att_type");
  out.c2p = has_word(types, "c2p");
  out.p2c = has_word(types, "p2c");
  // v1 counts whatever the list holds, v2 what it computes.
  out.scale_factor = 1 + (out.v1 ? static_cast<int64_t>(types.size()) : out.c2p + out.p2c);
  out.max_relative = config.integer_or("max_relative_positions", -1, -1, kMostConfigured);
  if (out.max_relative < 1) out.max_relative = out.positions;
  if (out.relative)
    check_distances(config, "max_relative_positions", out.max_relative, out.info.layers);
  if (out.v1) {
    out.talking_heads = config.flag_or("talking_head", false);
    return out;
  }
  out.position_buckets =
      std::max<int64_t>(0, config.integer_or("position_buckets", -1, -1, kMostConfigured));
  out.share_key = config.flag_or("share_att_key", false);
  out.norm_table = has_word(words_of(config, "norm_rel_ebd"), "layer_norm");
  const int64_t head = config.integer_or("attention_head_size", out.head_dim(), 1);
  if (head != out.head_dim())
    config.reject("attention_head_size", "is " + std::to_string(head) + ", but hidden_size " +
                                             std::to_string(width) + " with " +
                                             std::to_string(out.info.heads) + " heads makes " +
                                             std::to_string(out.head_dim()));
  out.conv_kernel = config.integer_or("conv_kernel_size", 0, 0, 1 << 16);
  out.conv_groups = config.integer_or("conv_groups", 1, 1, kMostConfigured);
  if (out.conv_kernel > 0 && out.conv_kernel % 2 == 0)
    config.reject("conv_kernel_size",
                  "must be odd, got " + std::to_string(out.conv_kernel));
  if (width % out.conv_groups != 0)
    config.reject("conv_groups", "is " + std::to_string(out.conv_groups) +
                                     ", which does not divide hidden_size " +
                                     std::to_string(width));
  return out;
}

}  // namespace locant::inline v0
