// A small image as a data URI: heat maps as one element instead of thousands of rectangles.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "locant/draw/colours.h"

namespace locant::inline v0 {

// The palette index of pixels that let the paper through.
inline constexpr uint8_t kTransparent = 255;

// "data:image/png;base64,..." of a picture with a palette of at most 255 colours.
//   pixels (height, width): indices into the palette, or kTransparent
std::string png_uri(int64_t width, int64_t height, std::span<const uint8_t> pixels,
                    std::span<const Colour> palette);

}  // namespace locant::inline v0
