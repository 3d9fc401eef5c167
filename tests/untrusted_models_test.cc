// Folders that were made to break something: what fuzzing found, and what it might have.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "locant/encodings/registry.h"
#include "locant/layers/attend.h"
#include "locant/models/model.h"
#include "tests/made_up_checkpoint.h"
#include "tests/message_of.h"
#include "tests/safetensors_file.h"
#include "tests/stored_tensor.h"
#include "tests/temporary_folder.h"

namespace locant {
namespace {

// What load() says of a config.json beside an empty checkpoint, without the path.
std::string complaint_about(const std::string& config) {
  const TemporaryFolder folder;
  folder.write("config.json", config);
  folder.write("model.safetensors", safetensors_file("{}"));
  const std::string message = message_of([&] { load(folder.path()); });
  const size_t path = message.find(folder.path());
  return path == message.npos ? message : message.substr(path + folder.path().size());
}

std::string bert_with(const std::string& key, const std::string& value) {
  std::string config =
      R"({"model_type":"bert","vocab_size":8,"hidden_size":8,"num_attention_heads":2,
          "intermediate_size":8,"max_position_embeddings":8)";
  if (key != "num_hidden_layers") config += R"(,"num_hidden_layers":1)";
  return config + ",\"" + key + "\":" + value + "}";
}

// A few hundred bytes must not ask for gigabytes before the first weight is missed.
TEST(UntrustedConfigs, SizesThatWouldBeAllocatedAreRefused) {
  EXPECT_EQ(complaint_about(bert_with("num_hidden_layers", "65536")),
            "/config.json: num_hidden_layers must be an integer from 1 to 4096, got 65536");
  const std::string llama =
      R"({"model_type":"llama","vocab_size":8,"hidden_size":8,"num_hidden_layers":1,
          "intermediate_size":8,"num_attention_heads":)";
  EXPECT_EQ(complaint_about(llama + R"(1,"head_dim":2147483648})"),
            "/config.json: head_dim is 2147483648 for each of 1 heads, too much: at most 65536, "
            "and 2^31 in all");
  EXPECT_EQ(complaint_about(llama + R"(2147483648,"head_dim":2})"),
            "/config.json: head_dim is 2 for each of 2147483648 heads, too much: at most 65536, "
            "and 2^31 in all");
  EXPECT_EQ(complaint_about(R"({"model_type":"umt5","vocab_size":8,"d_model":8,"d_kv":4,"d_ff":8,
                                "num_layers":4000,"num_heads":2,
                                "relative_attention_max_distance":16777216})"),
            "/config.json: relative_attention_max_distance is 16777216 in each of 4000 layers: "
            "more than 4194304 in all");
  EXPECT_EQ(complaint_about(R"({"model_type":"deberta-v2","vocab_size":8,"hidden_size":8,
                                "num_hidden_layers":1000,"num_attention_heads":2,
                                "intermediate_size":8,"relative_attention":true,
                                "pos_att_type":["c2p"],"max_relative_positions":1000000})"),
            "/config.json: max_relative_positions is 1000000 in each of 1000 layers: more than "
            "4194304 in all");
  // Five buckets reach to M·M/2.
  EXPECT_EQ(
      complaint_about(R"({"model_type":"deberta-v2","vocab_size":8,"hidden_size":8,
                                "num_hidden_layers":60,"num_attention_heads":2,
                                "intermediate_size":8,"relative_attention":true,
                                "pos_att_type":["c2p"],"max_relative_positions":4096,
                                "position_buckets":5})"),
      "/config.json: position_buckets with max_relative_positions tells apart distances up to "
      "8384518 in each of 60 layers: more than 4194304 in all");
}

// Text of the file that a message shows is short, and printable.
TEST(UntrustedConfigs, MessagesStayShort) {
  const std::string name = "\"" + std::string(1'000'000, 'x') + "\\u0007\"";
  for (const std::string& config :
       {"{\"model_type\":" + name + "}", bert_with("hidden_act", name),
        bert_with("position_embedding_type", name), bert_with("architectures", "[" + name + "]"),
        bert_with("architectures", R"(["BertForTokenClassification"],"id2label":{)" + name + ":0}"),
        bert_with("num_hidden_layers", name)}) {
    const std::string message = complaint_about(config);
    EXPECT_NE(message, "no error");
    EXPECT_LT(message.size(), 1000u) << message.substr(0, 200);
    EXPECT_EQ(message.find('\a'), message.npos);
  }
}

constexpr const char* kDeberta =
    R"({"model_type":"deberta-v2","vocab_size":8,"hidden_size":8,"num_hidden_layers":1,
        "num_attention_heads":2,"intermediate_size":8,"max_position_embeddings":16,
        "relative_attention":true,"pos_att_type":["c2p"],"type_vocab_size":0,"position_buckets":)";

// The table has two rows for each bucket.
TEST(UntrustedConfigs, BucketsMustFitTheTable) {
  const TemporaryFolder folder;
  folder.write("config.json", kDeberta + std::string("4}"));
  ASSERT_NE(MadeUpCheckpoint::load_from(folder, message_of), nullptr);
  folder.write("config.json", kDeberta + std::string("6}"));
  const std::string message = message_of([&] { load(folder.path()); });
  EXPECT_NE(message.find("1 mis-shaped: encoder.rel_embeddings.weight is (8, 8), not (12, 8)"),
            message.npos)
      << message;
}

std::string llama_with(const std::string& more) {
  return R"({"model_type":"llama","vocab_size":8,"hidden_size":8,"num_hidden_layers":1,
             "num_attention_heads":2,"intermediate_size":8,"max_position_embeddings":16,)" +
         more + "}";
}

TEST(UntrustedConfigs, FactorsOfRotationsArePositiveNumbers) {
  const auto factor = [](const char* text) {
    return complaint_about(
        llama_with(R"("rope_scaling":{"rope_type":"linear","factor":)" + std::string(text) + "}"));
  };
  EXPECT_EQ(factor("-1"), "/config.json: rope_scaling.factor must be a number >= 0, got -1");
  EXPECT_EQ(factor("0"), "[rope] factor must be finite and > 0, got 0");
  EXPECT_TRUE(factor("NaN").starts_with("/config.json: not JSON, which has no NaN"))
      << factor("NaN");
  EXPECT_TRUE(factor("1e999").starts_with("/config.json: not JSON")) << factor("1e999");
}

// Hugging Face writes the one or the other; where both are, the newer name counts.
TEST(UntrustedConfigs, RopeParametersCountBeforeRopeScaling) {
  const auto logits = [](const std::string& more) {
    const TemporaryFolder folder;
    folder.write("config.json", llama_with(more));
    const auto model = MadeUpCheckpoint::load_from(folder, message_of);
    EXPECT_NE(model, nullptr);
    const ModelOutput out = model->run({.ids = {{1, 2, 3, 4, 5}}});
    const ConstView x = out.last_hidden_state.view();
    return std::vector<float>(x.at<float>(), x.at<float>() + x.size());
  };
  const std::string newer = R"("rope_parameters":{"rope_type":"linear","factor":4.0})";
  const std::string older = R"("rope_scaling":{"rope_type":"linear","factor":2.0})";
  EXPECT_EQ(logits(newer + "," + older), logits(newer));
  EXPECT_NE(logits(older), logits(newer));
}

// Added to a position they would leave 64 bits.
TEST(UntrustedCalls, WindowsBeyondAllPositionsHideNothing) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const StoredTensor q(DType::f32, {1, 2, 9, 8}, 1), k(DType::f32, {1, 2, 30, 8}, 2);
  const auto none = make_encoding("none", {{"heads", 2}, {"head_dim", 8}});
  for (const int64_t start : {int64_t{0}, -kMaxPosition, kMaxPosition}) {
    StoredTensor open(DType::f32, {1, 2, 9, 8}), wide(DType::f32, {1, 2, 9, 8});
    AttendOptions options;
    options.q_start = start;
    options.k_start = -start;
    attend(q.view(), k.view(), k.view(), *none, options, open.view());
    for (const int64_t window : {kMost, kMost - 1, kMost / 2, kMost / 2 + 1}) {
      options.window_left = options.window_right = window;
      attend(q.view(), k.view(), k.view(), *none, options, wide.view());
      EXPECT_EQ(wide.values(), open.values()) << start << ' ' << window;
    }
  }
}

}  // namespace
}  // namespace locant
