// What Python cannot reach: results that the caller allocates.
#include "locant/layers/two_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "locant/encodings/xlnet/xlnet.h"
#include "tests/message_of.h"

namespace locant {
namespace {

class TwoStreamOutputs : public testing::Test {
 protected:
  TwoStreamOutputs() { xlnet.init(1); }

  std::string error() {
    return message_of(
        [&] { two_stream({.q_h = q_h, .q_g = q_g, .k = k, .v = v}, xlnet, {}, out_h, out_g); });
  }

  XLNet xlnet{{.heads = 2, .head_dim = 4}};
  std::vector<float> data = std::vector<float>(1000, 0.5f);
  ConstView q_h = view(data.data(), {1, 2, 5, 4}), q_g = view(data.data() + 100, {1, 2, 5, 4});
  ConstView k = view(data.data() + 200, {1, 2, 8, 4}), v = view(data.data() + 300, {1, 2, 8, 3});
  View out_h = view(data.data() + 400, {1, 2, 5, 3}), out_g = view(data.data() + 500, {1, 2, 5, 3});
};

TEST_F(TwoStreamOutputs, OfTheRightShapeAreFilled) {
  EXPECT_EQ(error(), "no error");
  // All values are 0.5, and so are their means.
  EXPECT_NEAR(*out_h.at<float>(0, 1, 4, 2), 0.5f, 1e-6f);
  EXPECT_NEAR(*out_g.at<float>(0, 1, 4, 2), 0.5f, 1e-6f);
}

TEST_F(TwoStreamOutputs, OfAnotherShapeAreRefusedBeforeAnythingIsComputed) {
  out_h = view(data.data() + 400, {1, 2, 5, 4});
  std::fill_n(data.begin() + 500, 30, 7.0f);
  EXPECT_EQ(error(), "[two_stream] out_h is f32 (1, 2, 5, 4) but must be f32 (1, 2, 5, 3)");
  EXPECT_TRUE(std::all_of(data.begin() + 500, data.begin() + 530,
                          [](float value) { return value == 7.0f; }));
}

TEST_F(TwoStreamOutputs, OfTheQueryStreamMustNotOverwriteWhatTheContentStreamReads) {
  out_g = view(data.data() + 210, {1, 2, 5, 3});
  EXPECT_EQ(error(), "[two_stream] out_g overlaps k in memory");
  out_g = view(data.data() + 410, {1, 2, 5, 3});
  EXPECT_EQ(error(), "[two_stream] out_g overlaps out_h in memory");
}

}  // namespace
}  // namespace locant
