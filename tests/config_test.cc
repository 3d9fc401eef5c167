// config.json: typed access, and messages for what is not as it should be.
#include <gtest/gtest.h>

#include <string>

#include "locant/io/config.h"
#include "tests/message_of.h"
#include "tests/temporary_folder.h"

namespace locant {
namespace {

// What reading this text and doing something with it complains about, without "[config] c.json: ".
template <class Action>
std::string complaint(const std::string& text, const Action& action) {
  const std::string message = message_of([&] { action(Config::parse(text, "c.json")); });
  const std::string begin = "[config] c.json: ";
  return message.starts_with(begin) ? message.substr(begin.size()) : message;
}

std::string complaint(const std::string& text) {
  return complaint(text, [](const Config&) {});
}

TEST(Configs, GiveValuesByType) {
  const Config config = Config::parse(
      R"({"n":12,"x":1e-7,"whole":2,"on":true,"name":"gelu","list":["c2p","p2c"],"null":null,
          "factors":[1,2.5],"flags":[true,false],"rope":{"factor":8},"parts":[{"a":1},{"a":2}]})",
      "c.json");
  EXPECT_EQ(config.integer("n", 1, 12), 12);
  EXPECT_EQ(config.number("x"), 1e-7);
  EXPECT_EQ(config.number("whole"), 2.0);
  EXPECT_TRUE(config.flag("on"));
  EXPECT_EQ(config.choice("name", {"relu", "gelu"}), "gelu");
  EXPECT_EQ(config.texts("list"), (std::vector<std::string>{"c2p", "p2c"}));
  EXPECT_EQ(config.numbers("factors"), (std::vector<double>{1, 2.5}));
  EXPECT_EQ(config.flags("flags"), (std::vector<bool>{true, false}));
  EXPECT_EQ(config.child("rope").number("factor"), 8);
  EXPECT_EQ(config.children("parts")[1].integer("a"), 2);
  EXPECT_FALSE(config.has("null"));
  EXPECT_EQ(config.integer_or("null", -1), -1);
  EXPECT_EQ(config.text_or("none", "a"), "a");
  EXPECT_EQ(config.keys().size(), 10u);
}

TEST(Configs, TellNullFromMissingAndReadListsOfAnyKinds) {
  const Config config = Config::parse(R"({"a":null,"b":["x",{"y":7},2]})", "c");
  EXPECT_TRUE(config.is_null("a") && !config.has("a"));
  EXPECT_FALSE(config.is_null("b") || config.is_null("c"));
  const Config items = config.items("b");
  EXPECT_EQ(items.text("0"), "x");
  EXPECT_EQ(items.child("1").integer("y"), 7);
  EXPECT_FALSE(items.has("3"));
  EXPECT_EQ(message_of([&] { items.text("2"); }), "[config] c: b.2 must be a string, got 2");
  EXPECT_EQ(message_of([&] { config.items("d"); }), "[config] c: d is missing; it must be a list");
}

TEST(BadConfigs, KeysAndTypes) {
  const auto heads = [](const Config& c) { c.integer("heads", 1, 64); };
  EXPECT_EQ(complaint("{}", heads), "heads is missing; it must be an integer from 1 to 64");
  EXPECT_EQ(complaint(R"({"heads":null})", heads),
            "heads is missing; it must be an integer from 1 to 64");
  EXPECT_EQ(complaint(R"({"heads":"12"})", heads),
            "heads must be an integer from 1 to 64, got '12'");
  EXPECT_EQ(complaint(R"({"heads":12.5})", heads),
            "heads must be an integer from 1 to 64, got 12.5");
  EXPECT_EQ(complaint(R"({"heads":true})", heads),
            "heads must be an integer from 1 to 64, got true");
  EXPECT_EQ(complaint(R"({"heads":[1]})", heads),
            "heads must be an integer from 1 to 64, got a list");
  EXPECT_EQ(complaint(R"({"a":1})", [](const Config& c) { c.flag("a"); }),
            "a must be true or false, got 1");
  EXPECT_EQ(complaint(R"({"a":1})", [](const Config& c) { c.text("a"); }),
            "a must be a string, got 1");
  EXPECT_EQ(complaint(R"({"a":["b",1]})", [](const Config& c) { c.texts("a"); }),
            "a must be a list of strings, got 1");
  EXPECT_EQ(complaint(R"({"a":[true,1]})", [](const Config& c) { c.flags("a"); }),
            "a must be a list of true and false, got 1");
  EXPECT_EQ(complaint(R"({"a":{"b":"x"}})", [](const Config& c) { c.child("a").number("b"); }),
            "a.b must be a number, got 'x'");
  EXPECT_EQ(
      complaint(R"({"a":[{},{"b":"x"}]})", [](const Config& c) { c.children("a")[1].number("b"); }),
      "a[1].b must be a number, got 'x'");
  EXPECT_EQ(complaint(R"({"a":[{},1]})", [](const Config& c) { c.children("a"); }),
            "a must be a list of objects, got 1");
  EXPECT_EQ(complaint(R"({"act":"gelu_x"})",
                      [](const Config& c) {
                        c.choice("act", {"gelu", "relu"});
                      }),
            "act must be one of gelu, relu, got 'gelu_x'");
}

TEST(BadConfigs, NumbersOutOfRange) {
  const auto heads = [](const Config& c) { c.integer("heads", 1); };
  EXPECT_EQ(complaint(R"({"heads":0})", heads), "heads must be an integer >= 1, got 0");
  EXPECT_EQ(complaint(R"({"heads":18446744073709551615})", heads),
            "heads must be an integer >= 1, got 18446744073709551615");
  EXPECT_EQ(complaint(R"({"heads":36893488147419103232})", heads),
            "heads must be an integer >= 1, got 36893488147419103232");
  EXPECT_EQ(complaint(R"({"eps":-1})", [](const Config& c) { c.number("eps", 0, 1); }),
            "eps must be a number from 0 to 1, got -1");
  EXPECT_TRUE(complaint(R"({"eps":1e999})").starts_with("not JSON: ")) << "not finite";
  // Python's json module writes these.
  EXPECT_TRUE(complaint(R"({"eps":NaN})").starts_with("not JSON, which has no NaN: "));
  EXPECT_TRUE(complaint(R"({"eps":-Infinity})").starts_with("not JSON, which has no Infinity: "));
}

TEST(BadConfigs, Texts) {
  EXPECT_TRUE(complaint("").starts_with("not JSON: "));
  EXPECT_TRUE(complaint("{\"a\":1").starts_with("not JSON: "));
  EXPECT_TRUE(complaint("{\"a\":\"\xc3\x28\"}").starts_with("not JSON: ")) << "bad UTF-8";
  EXPECT_EQ(complaint("[1]"), "must be a JSON object, got array");
  EXPECT_EQ(complaint(R"({"a":1,"a":2})"), "the key 'a' appears twice");
  std::string deep;
  for (int n = 0; n < 100000; ++n) deep += "{\"a\":";
  EXPECT_EQ(complaint(deep), "JSON nested more than 32 deep");
}

TEST(BadConfigs, Files) {
  const TemporaryFolder folder;
  EXPECT_EQ(message_of([&] { Config::read(folder / "config.json"); }),
            "[config] " + (folder / "config.json") + ": No such file or directory");
  const std::string large = folder.write("large.json", "");
  std::filesystem::resize_file(large, uint64_t{1} << 34);  // sparse: takes no room
  EXPECT_EQ(message_of([&] { Config::read(large); }),
            "[config] " + large +
                ": has 17179869184 bytes, more than the 16777216 that such a file may have");
}

}  // namespace
}  // namespace locant
