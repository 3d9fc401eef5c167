// PNG (ISO/IEC 15948) with stored deflate blocks (RFC 1951): no compression, and no library for it.
#include "locant/draw/png.h"

#include <algorithm>

#include "locant/core/error.h"

namespace locant::inline v0 {
namespace {

void append_big_endian(std::string& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
}

uint32_t crc32(const std::string& bytes) {
  uint32_t crc = 0xffffffffu;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}

uint32_t adler32(const std::string& bytes) {
  uint32_t a = 1, b = 0;
  for (const char byte : bytes) {
    a = (a + static_cast<uint8_t>(byte)) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

void append_chunk(std::string& png, const char* type, const std::string& data) {
  append_big_endian(png, static_cast<uint32_t>(data.size()));
  const std::string body = type + data;
  png += body;
  append_big_endian(png, crc32(body));
}

std::string stored(const std::string& raw) {
  std::string out = "\x78\x01";
  constexpr size_t kMost = 65535;
  for (size_t begin = 0; begin < raw.size(); begin += kMost) {
    const size_t size = std::min(kMost, raw.size() - begin);
    out += static_cast<char>(begin + size == raw.size());
    for (const size_t word : {size, ~size & 0xffff}) {
      out += static_cast<char>(word & 0xff);
      out += static_cast<char>(word >> 8);
    }
    out += raw.substr(begin, size);
  }
  append_big_endian(out, adler32(raw));
  return out;
}

std::string base64(const std::string& bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t n = 0; n < bytes.size(); n += 3) {
    uint32_t word = 0;
    for (size_t m = 0; m < 3; ++m)
      word = word << 8 | (n + m < bytes.size() ? static_cast<uint8_t>(bytes[n + m]) : 0);
    for (size_t m = 0; m < 4; ++m)
      out += n + m <= bytes.size() ? kDigits[word >> (18 - 6 * m) & 63] : '=';
  }
  return out;
}

}  // namespace

std::string png_uri(int64_t width, int64_t height, std::span<const uint8_t> pixels,
                    std::span<const Colour> palette) {
  require(width > 0 && height > 0 && static_cast<int64_t>(pixels.size()) == width * height, "draw",
          "an image of ", width, " x ", height, " needs as many pixels, got ", pixels.size());
  require(palette.size() <= kTransparent, "draw", "at most 255 colours, got ", palette.size());
  std::string header, colours, rows;
  append_big_endian(header, static_cast<uint32_t>(width));
  append_big_endian(header, static_cast<uint32_t>(height));
  header += std::string("\x08\x03\x00\x00\x00", 5);  // 8 bits, palette
  std::string opacity;
  for (size_t n = 0; n <= kTransparent; ++n) {
    const Colour colour = n < palette.size() ? palette[n] : Colour{};
    for (const uint8_t part : {colour.red, colour.green, colour.blue})
      colours += static_cast<char>(part);
    opacity += static_cast<char>(n == kTransparent ? 0 : 255);
  }
  const bool holes = std::find(pixels.begin(), pixels.end(), kTransparent) != pixels.end();
  if (!holes) colours.resize(3 * palette.size());
  for (int64_t y = 0; y < height; ++y) {
    rows += '\0';  // no filter
    for (int64_t x = 0; x < width; ++x) rows += static_cast<char>(pixels[y * width + x]);
  }
  std::string png = "\x89PNG\r\n\x1a\n";
  append_chunk(png, "IHDR", header);
  append_chunk(png, "PLTE", colours);
  if (holes) append_chunk(png, "tRNS", opacity);
  append_chunk(png, "IDAT", stored(rows));
  append_chunk(png, "IEND", "");
  return "data:image/png;base64," + base64(png);
}

}  // namespace locant::inline v0
