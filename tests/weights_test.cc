// The named set of tensors: prefixes, shards, and one message for all that does not fit.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "locant/io/weights.h"
#include "tests/message_of.h"
#include "tests/safetensors_file.h"
#include "tests/temporary_folder.h"

namespace locant {
namespace {

// A file of float32 tensors with shape (2), numbered by their place.
std::string numbered(const std::vector<std::string>& names) {
  std::string header, data;
  for (size_t n = 0; n < names.size(); ++n) {
    const std::vector<float> values(2, static_cast<float>(n + 1));
    header += std::string(n > 0 ? "," : "{") + tensor_json(names[n], "F32", "2", 8 * n, 8 * n + 8);
    data += bytes_of<float>(values);
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return safetensors_file(header, data);
}

float first(const ConstView& view) {
  return view ? *view.at<float>() : -1;
}

TEST(WeightSets, FindNamesWithAndWithoutTheBasePrefix) {
  const TemporaryFolder bare, prefixed;
  bare.write("model.safetensors", numbered({"embeddings.w", "layer.0.q", "classifier.w"}));
  prefixed.write("model.safetensors",
                 numbered({"deberta.embeddings.w", "deberta.layer.0.q", "classifier.w"}));
  for (const TemporaryFolder* folder : {&bare, &prefixed}) {
    const Weights weights = Weights::open(folder->path());
    EXPECT_EQ(first(weights.get("embeddings.w", {2})), 1);
    EXPECT_EQ(first(weights.get("deberta.embeddings.w", {2})), 1);
    EXPECT_EQ(first(weights.scope("layer.").scope("0.").get("q", {2})), 2);
    EXPECT_EQ(weights.unexpected(), std::vector<std::string>{"classifier.w"});
    EXPECT_EQ(first(weights.get("classifier.w", {2})), 3);
    weights.require_complete();
    EXPECT_TRUE(weights.unexpected().empty());
  }
}

TEST(WeightSets, FindNormsUnderTheirOldNames) {
  const TemporaryFolder folder;
  folder.write("model.safetensors", numbered({"bert.LayerNorm.gamma", "bert.LayerNorm.beta"}));
  const Weights weights = Weights::open(folder.path());
  EXPECT_EQ(first(weights.get("LayerNorm.weight", {2})), 1);
  EXPECT_EQ(first(weights.get("LayerNorm.bias", {2})), 2);
}

TEST(WeightSets, GiveFloat32InPlaceAndCopiesOfOthers) {
  const TemporaryFolder folder;
  const std::vector<uint16_t> half = {0x3c00, 0x4000};
  const std::vector<float> f = {5, 6};
  folder.write(
      "model.safetensors",
      safetensors_file("{" + tensor_json("h", "F16", "2", 0, 4) + "," +
                           tensor_json("f", "F32", "2", 4, 12) + "," +
                           tensor_json("c", "U8", "1", 12, 13) + "," +
                           tensor_json("u", "F32", "2", 13, 21) + "}  ",
                       bytes_of<uint16_t>(half) + bytes_of<float>(f) + "x" + bytes_of<float>(f)));
  ConstView h, u;
  std::shared_ptr<const void> hold;
  {
    const Weights weights = Weights::open(folder.path());
    h = weights.get("h", {2});
    u = weights.get("u", {2});
    EXPECT_EQ(weights.get("h", {2}).data, h.data) << "converted twice";
    const ConstView view = weights.get("f", {2});
    const StoredTensor* stored = weights.find("f");
    EXPECT_EQ(view.data == stored->bytes.data(), stored->aligned());
    hold = weights.hold();
  }
  EXPECT_EQ(h.dtype, DType::f32);
  EXPECT_EQ(*h.at<float>(1), 2);
  EXPECT_EQ(*u.at<float>(1), 6);
}

TEST(BadWeights, OneMessageTellsAll) {
  const TemporaryFolder folder;
  folder.write("model.safetensors", numbered({"a", "b", "layer.position_ids", "qq"}));
  const Weights weights = Weights::open(folder.path());
  weights.ignore("position_ids");
  EXPECT_TRUE(weights.get("a", {2}));
  EXPECT_FALSE(weights.get("b", {2, 3}));
  EXPECT_FALSE(weights.scope("layer.").get("q", {4}));
  EXPECT_EQ(message_of([&] { weights.require_complete(); }),
            "[weights] " + folder.path() +
                ": the checkpoint does not fit its config.json. 1 missing: layer.q (4). "
                "1 mis-shaped: b is (2), not (2, 3). 1 unexpected: qq.");
}

TEST(BadWeights, IntegersAreNoWeights) {
  const TemporaryFolder folder;
  folder.write("model.safetensors",
               safetensors_file("{" + tensor_json("a", "I32", "1", 0, 4) + "}", "1234"));
  const Weights weights = Weights::open(folder.path());
  EXPECT_FALSE(weights.get("a", {1}));
  EXPECT_EQ(
      message_of([&] { weights.require_complete(); }),
      "[weights] " + folder.path() +
          ": the checkpoint does not fit its config.json. 1 mis-shaped: a is of I32, not of a "
          "floating type.");
}

TEST(BadWeights, LongListsAreCut) {
  const TemporaryFolder folder;
  folder.write("model.safetensors", numbered({"a"}));
  const Weights weights = Weights::open(folder.path());
  for (int n = 0; n < 1000; ++n) weights.get(std::string("w") + std::to_string(n), {1});
  const std::string message = message_of([&] { weights.require_complete(); });
  EXPECT_NE(message.find("1000 missing: w0 (1), "), message.npos);
  EXPECT_NE(message.find("w19 (1) and 980 more. 1 unexpected: a."), message.npos);
}

TEST(BadWeights, FoldersWithoutSafetensors) {
  const TemporaryFolder folder;
  const auto complaint = [&](const std::string& dir) {
    return message_of([&] { Weights::open(dir); });
  };
  const std::string begin = "[weights] " + folder.path() + ": ";
  EXPECT_EQ(complaint(folder.path()),
            begin + "has neither model.safetensors nor model.safetensors.index.json");
  EXPECT_EQ(complaint(folder / "none"),
            "[weights] " + (folder / "none") +
                ": No such file or directory; give the folder that holds config.json");
  folder.write("pytorch_model.bin", "");
  EXPECT_EQ(complaint(folder.path()),
            begin +
                "has pytorch_model.bin but no model.safetensors; convert it once in Python: "
                "AutoModel.from_pretrained(\"" +
                folder.path() + "\").save_pretrained(\"" + folder.path() +
                "\"), with the model's own Auto class");
  EXPECT_EQ(complaint(folder / "pytorch_model.bin"),
            "[weights] " + (folder / "pytorch_model.bin") +
                ": is not a folder; give the folder that holds config.json");
  std::filesystem::create_symlink("model.safetensors", folder / "model.safetensors");
  EXPECT_EQ(complaint(folder.path()), "[safetensors] " + (folder / "model.safetensors") +
                                          ": Too many levels of symbolic links");
}

TEST(Shards, AreOneSet) {
  const TemporaryFolder folder;
  folder.write("one.safetensors", numbered({"a", "b"}));
  folder.write("two.safetensors", numbered({"c"}));
  folder.write("model.safetensors.index.json",
               R"({"metadata":{"total_size":24},"weight_map":{"a":"one.safetensors",
                   "b":"one.safetensors","c":"two.safetensors"}})");
  const Weights weights = Weights::open(folder.path());
  EXPECT_EQ(first(weights.get("b", {2})), 2);
  EXPECT_EQ(first(weights.get("c", {2})), 1);
  EXPECT_EQ(weights.tensors().size(), 3u);
}

TEST(BadShards, IndexesThatDoNotFit) {
  const TemporaryFolder folder;
  folder.write("one.safetensors", numbered({"a"}));
  const std::string begin = "[weights] " + (folder / "model.safetensors.index.json") + ": ";
  const auto complaint = [&](const std::string& map) {
    folder.write("model.safetensors.index.json", R"({"weight_map":)" + map + "}");
    const std::string message = message_of([&] { Weights::open(folder.path()); });
    return message.starts_with(begin) ? message.substr(begin.size()) : message;
  };
  EXPECT_EQ(complaint(R"({"a":"one.safetensors"})"), "no error");
  EXPECT_EQ(complaint(R"({"a":"two.safetensors"})"),
            "the shard 'two.safetensors' is missing; download it again");
  EXPECT_EQ(complaint(R"({"a":"one.safetensors","b":"one.safetensors"})"),
            "tensor 'b' is said to be in 'one.safetensors' but is not");
  for (const char* name : {"../one.safetensors", "/etc/passwd", "", "..", "x/one.safetensors"})
    EXPECT_EQ(complaint(R"({"a":")" + std::string(name) + "\"}"),
              "the shard '" + std::string(name) + "' is not the plain name of a file beside it");
  EXPECT_EQ(complaint(R"({"a":"one.safetensors\u0000"})"),
            "the shard 'one.safetensors\\x00' is not the plain name of a file beside it");
  EXPECT_EQ(complaint(R"({"a":1})"), "the file of tensor 'a' must be a string");
  EXPECT_EQ(complaint("[]"), "weight_map must be an object of tensor and file names");
}

TEST(WeightSets, TellWhatIsNotFinite) {
  const TemporaryFolder folder;
  const std::vector<float> values = {1, NAN, -INFINITY, 2};
  folder.write("model.safetensors",
               safetensors_file("{" + tensor_json("a", "F32", "2,2", 0, 16) + "}   ",
                                bytes_of<float>(values)));
  EXPECT_EQ(Weights::open(folder.path()).not_finite(), std::vector<std::string>{"a: 2 of 4"});
}

}  // namespace
}  // namespace locant
