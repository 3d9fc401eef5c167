#include "locant/core/memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "locant/core/tensor.h"

namespace locant {
namespace {

constexpr size_t kMega = size_t{1} << 20;

TEST(Memory, BlocksAreAlignedAndApart) {
  std::vector<Block> blocks;
  for (const size_t bytes : {size_t{1}, size_t{1000}, kMega / 8, kMega, 3 * kMega, 80 * kMega})
    for (int n = 0; n < 2; ++n) {
      blocks.emplace_back(bytes);
      ASSERT_GE(blocks.back().bytes(), bytes);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(blocks.back().data()) % 128, 0u) << bytes;
      std::memset(blocks.back().data(), static_cast<int>(blocks.size()), bytes);
    }
  for (size_t n = 0; n < blocks.size(); ++n)
    EXPECT_EQ(blocks[n].data()[0], std::byte(n + 1)) << "another block was written over this one";
}

TEST(Memory, ABlockGivenBackServesTheNextOfItsSize) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "under ASan nothing is kept";
#endif
  const std::byte* first = nullptr;
  {
    const Block block(5 * kMega);
    first = block.data();
  }
  const Block smaller(kMega);  // a fifth: it must not take the large one
  EXPECT_NE(smaller.data(), first);
  const Block again(5 * kMega - 1000);
  EXPECT_EQ(again.data(), first);
}

TEST(Memory, NothingAndMovedBlocksHoldNothing) {
  const Block none(0);
  EXPECT_EQ(none.data(), nullptr);
  Block a(kMega);
  std::byte* data = a.data();
  const Block b = std::move(a);
  EXPECT_EQ(b.data(), data);
  EXPECT_EQ(a.data(), nullptr);  // NOLINT(bugprone-use-after-move): that is the question
}

TEST(Memory, TensorsAreZeroOnMemoryThatWasUsed) {
  for (int n = 0; n < 3; ++n) {
    Tensor tensor(DType::f32, {300, 1000});
    float* at = tensor.view().at<float>();
    for (int64_t i = 0; i < 300'000; ++i) {
      ASSERT_EQ(at[i], 0.0f) << i;
      at[i] = 7.0f;
    }
  }
}

TEST(Memory, ThreadsNeverShareABlock) {
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&wrong, t] {
      for (int n = 0; n < 300; ++n) {
        const Block block(kMega / 4 + static_cast<size_t>(n % 7) * 10'000);
        std::memset(block.data(), t + 1, block.bytes());
        for (size_t i = 0; i < block.bytes(); i += 4096)
          wrong[t] += block.data()[i] != std::byte(t + 1);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace locant
