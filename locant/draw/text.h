// Numbers and words as SVG and HTML write them.
#pragma once

#include <string>
#include <string_view>

namespace locant::inline v0 {

// With at most `decimals` digits after the point and no trailing zeros: "0.5", "-3", "12".
// Locale, printf and iostream settings do not matter, so pictures are the same everywhere.
std::string number_text(double value, int decimals);

// For readers: with a minus sign as long as a digit, and all decimals.
std::string label_text(double value, int decimals);

// Any bytes as characters that XML allows, at most `most` of them and then an ellipsis: a line's
// end becomes ↵, other control characters a dot, and bytes that are no UTF-8 U+FFFD.
std::string printable(std::string_view text, int most);

// & < > " as entities.
std::string escaped(std::string_view text);

}  // namespace locant::inline v0
