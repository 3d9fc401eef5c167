// Axes, numbers and lines of pictures; whole pictures are looked at in python/tests/test_show.py.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "locant/draw/axis.h"
#include "locant/draw/canvas.h"
#include "locant/draw/colours.h"
#include "locant/draw/line_chart.h"
#include "locant/draw/text.h"
#include "locant/draw/token_map.h"

namespace locant {
namespace {

std::string words_of(const Axis& axis, int count) {
  std::string out;
  for (const auto& [value, words] : axis.ticks(count)) out += (out.empty() ? "" : " ") + words;
  return out;
}

TEST(Axis, TicksAreRoundNumbersWithinTheAxis) {
  EXPECT_EQ(words_of({.low = -1.08, .high = 1.08}, 5), "−1.0 −0.5 0.0 0.5 1.0");
  EXPECT_EQ(words_of({.low = 0, .high = 127}, 6), "0 50 100");
  EXPECT_EQ(words_of({.low = -0.03, .high = 0.05}, 4), "−0.02 0.00 0.02 0.04");
  EXPECT_EQ(words_of({.low = 1e-6, .high = 1, .logarithmic = true}, 7),
            "10⁻⁶ 10⁻⁵ 10⁻⁴ 10⁻³ 0.01 0.1 1");
  EXPECT_EQ(words_of({.low = 6, .high = 5e5, .logarithmic = true}, 3), "10 1000 10⁵");
}

TEST(Axis, LogarithmsArePlacedEvenly) {
  const Axis axis{.low = 1, .high = 10000, .logarithmic = true};
  EXPECT_DOUBLE_EQ(axis.part(100), 0.5);
  EXPECT_DOUBLE_EQ(Axis({.low = 2, .high = 4}).part(3), 0.5);
}

TEST(Axis, HoldsWhatIsFinite) {
  const Axis axis = axis_around({3, NAN, -2, INFINITY});
  EXPECT_EQ(axis.low, -2);
  EXPECT_EQ(axis.high, 3);
  EXPECT_LT(axis_around({5, 5}).low, 5);
  EXPECT_GT(axis_around({5, 5}).high, 5);
  EXPECT_LT(axis_around({}).low, axis_around({}).high);
  EXPECT_EQ(axis_around({-1, 0, 10, 1000}, true).low, 10);
}

TEST(Text, NumbersAreShortAndLabelsAligned) {
  EXPECT_EQ(number_text(12.5, 1), "12.5");
  EXPECT_EQ(number_text(12.04, 1), "12");
  EXPECT_EQ(number_text(-0.04, 1), "0");
  EXPECT_EQ(number_text(100, 0), "100");
  EXPECT_EQ(label_text(-1, 1), "−1.0");
  EXPECT_EQ(label_text(-0.01, 1), "0.0");
  EXPECT_EQ(escaped("<q, k> & \"x\""), "&lt;q, k&gt; &amp; &quot;x&quot;");
}

TEST(Text, AnyBytesBecomeCharactersOfXml) {
  EXPECT_EQ(printable("a b\nc\x01\x7f", 9), "a b↵c··");
  EXPECT_EQ(printable("▁été你😀", 9), "▁été你😀");
  EXPECT_EQ(printable("▁été你😀", 4), "▁été…");
  EXPECT_EQ(printable("abcd", 4), "abcd");
  // Cut short, a lone continuation, too long, a surrogate, beyond Unicode, no character.
  for (const char* bytes : {"\xe4\xbd", "\x80\x80", "\xc1\x81"})
    EXPECT_EQ(printable(bytes, 9), "\uFFFD\uFFFD") << bytes;
  for (const char* bytes : {"\xe0\x81\x81", "\xed\xa0\x80", "\xef\xbf\xbe"})
    EXPECT_EQ(printable(bytes, 9), "\uFFFD\uFFFD\uFFFD");
  for (const char* bytes : {"\xf4\x90\x80\x80", "\xf0\x80\x80\x80", "\xf5\x80\x80\x80"})
    EXPECT_EQ(printable(bytes, 9), "\uFFFD\uFFFD\uFFFD\uFFFD");
}

TEST(TokenMap, LeavesOutLabelsThatHaveNoRoom) {
  const auto labels = [](int count) {
    TokenMap map{.title = "head 0", .width = kThird};
    for (int n = 0; n < count; ++n) map.rows.push_back("t" + std::to_string(n));
    map.columns = map.rows;
    map.values.assign(map.rows.size() * map.rows.size(), 0.5);
    const std::string text = draw(map).canvas.elements();
    size_t found = 0;
    for (size_t at = text.find(">t"); at != std::string::npos; at = text.find(">t", at + 1))
      ++found;
    return found;
  };
  EXPECT_EQ(labels(1), 2u);
  EXPECT_EQ(labels(12), 24u);
  EXPECT_LT(labels(100), 60u);
  EXPECT_GT(labels(100), 10u);
}

TEST(Canvas, PathsLeaveOutPointsOnTheWay) {
  Canvas canvas;
  canvas.path({{0, 0}, {1, 0}, {2, 0}, {3, 0}, {3, 4}, {3, 8}, {4, 9.04}}, "w");
  EXPECT_EQ(canvas.elements(), "<path class=\"w\" d=\"M0 0L3 0L3 8L4 9\"/>\n");
}

TEST(Colours, EndsAndMiddleOfTheMaps) {
  EXPECT_EQ(hex_text(sequential_colour(0)), "#440154");
  EXPECT_EQ(hex_text(sequential_colour(7)), "#fde725");
  EXPECT_EQ(hex_text(diverging_colour(0.5)), "#f7f7f7");
  EXPECT_FALSE(is_bright(sequential_colour(0)));
  EXPECT_TRUE(is_bright(sequential_colour(1)));
}

TEST(LineChart, NotANumberIsAGapAndNoCoordinate) {
  const Panel panel = draw(LineChart{.title = "t",
                                     .x_label = "x",
                                     .y_label = "y",
                                     .series = {{.x = {0, 1, 2, 3, 4}, .y = {0, 1, NAN, 1, 0}}}});
  const std::string& text = panel.canvas.elements();
  EXPECT_EQ(text.find("nan"), std::string::npos);
  size_t paths = 0;
  for (size_t at = text.find("<path"); at != std::string::npos; at = text.find("<path", at + 1))
    ++paths;
  EXPECT_EQ(paths, 2u);
}

}  // namespace
}  // namespace locant
