#include "locant/kernels/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace locant {
namespace {

constexpr size_t kMega = size_t{1} << 20;

// An item's use of the arena: a little that lives throughout, and two large pieces.
void run_item(Arena& arena, size_t bytes) {
  const Arena::Scope scope(arena);
  static_cast<void>(arena.take<std::byte>(1000));
  static_cast<void>(arena.take<std::byte>(bytes));
  const Arena::Scope inner(arena);
  static_cast<void>(arena.take<std::byte>(bytes / 2));
}

TEST(Arenas, HoldWhatTheLargestItemNeedsHoweverSizesCame) {
  constexpr size_t kLeast = 4 * kMega, kMost = 16 * kMega, kStep = kMega / 16;
  Arena rising, falling;
  for (size_t bytes = kLeast; bytes <= kMost; bytes += kStep) run_item(rising, bytes);
  for (size_t bytes = kMost; bytes >= kLeast; bytes -= kStep) run_item(falling, bytes);
  const size_t needed = kMost + kMost / 2;
  EXPECT_LE(falling.bytes(), needed + needed / 4 + kMega);
  EXPECT_LE(rising.bytes(), needed + needed / 4 + kMega);
}

TEST(Arenas, KeepTheirMemoryForTheNextItem) {
  Arena arena;
  run_item(arena, 5 * kMega);
  const size_t bytes = arena.bytes();
  for (int n = 0; n < 10; ++n) run_item(arena, 5 * kMega - static_cast<size_t>(n) * 100'000);
  EXPECT_EQ(arena.bytes(), bytes);
}

// Pieces of many sizes, some of them given back: those still in use keep what was written.
TEST(Arenas, PiecesInUseStayWhereTheyAreAndApart) {
  struct Piece {
    uint8_t* data;
    size_t size;
    uint8_t value;
  };
  Arena arena;
  std::vector<Piece> pieces;
  uint8_t value = 0;
  const auto take = [&](size_t size) {
    auto* data = arena.take<uint8_t>(size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 128, 0u);
    std::fill_n(data, size, ++value);
    pieces.push_back({data, size, value});
  };
  const auto expect_untouched = [&] {
    for (const Piece& p : pieces)
      EXPECT_TRUE(std::all_of(p.data, p.data + p.size, [&](uint8_t x) { return x == p.value; }));
  };
  for (size_t round = 1; round <= 12; ++round) {
    pieces.clear();
    const Arena::Scope scope(arena);
    take(100 * round);
    take(kMega * round / 3);
    for (size_t inside = 1; inside <= 4; ++inside) {
      const size_t outer = pieces.size();
      {
        const Arena::Scope inner(arena);
        take(300'000 * round * inside);
        take(17);
        take(kMega / 2 * inside);
        expect_untouched();
      }
      pieces.resize(outer);
      take(1000 * inside);
      expect_untouched();
    }
  }
}

}  // namespace
}  // namespace locant
