// Colours that stay apart with any kind of colour blindness.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace locant::inline v0 {

struct Colour {
  uint8_t red = 0, green = 0, blue = 0;
};

// From dark to bright, for amounts: 0 <= t <= 1. Values outside are held at the ends.
Colour sequential_colour(double t);

// Blue, white, red, for signed values: t = 0.5 is zero.
Colour diverging_colour(double t);

// "#1f9e89"
std::string hex_text(const Colour& colour);

// Whether dark letters can be read on it.
bool is_bright(const Colour& colour);

// Okabe and Ito's colours without their yellow, which white paper swallows, and without their
// black: a line in the text's own colour comes last (class c6 of the style sheet).
inline constexpr int kLineColours = 7;
inline constexpr std::array<const char*, kLineColours - 1> kLinePalette = {
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};

}  // namespace locant::inline v0
