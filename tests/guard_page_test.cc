// No byte outside of a tensor is touched: tensors stand right before, or right after, a page that
// cannot be read or written.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "locant/kernels/isa.h"
#include "locant/layers/attend_backward.h"
#include "tests/attention_case.h"

namespace locant {
namespace {

// Some bytes between two pages without access; they touch the second one, or the first.
class GuardedBytes {
 public:
  GuardedBytes(size_t size, bool at_end) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t inside = (size + page - 1) / page * page;
    length_ = inside + 2 * page;
    base_ = static_cast<std::byte*>(
        mmap(nullptr, length_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(base_, MAP_FAILED);
    EXPECT_EQ(mprotect(base_, page, PROT_NONE), 0);
    EXPECT_EQ(mprotect(base_ + page + inside, page, PROT_NONE), 0);
    data_ = base_ + page + (at_end ? inside - size : 0);
  }
  ~GuardedBytes() { munmap(base_, length_); }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;

  std::byte* data() const { return data_; }

 private:
  std::byte *base_ = nullptr, *data_ = nullptr;
  size_t length_ = 0;
};

// Copies of tensors between guard pages.
class Guarded {
 public:
  explicit Guarded(bool at_end) : at_end_(at_end) {}

  View copy(const ConstView& from) {
    const size_t bytes = from.size() * size_of(from.dtype);
    GuardedBytes& place = places_.emplace_back(bytes, at_end_);
    std::memcpy(place.data(), from.data, bytes);
    return View(place.data(), from.dtype, std::span(from.shape.data(), from.rank));
  }

 private:
  bool at_end_;
  std::deque<GuardedBytes> places_;
};

enum class Mask { none, boolean, additive };

struct GuardCase {
  DType dtype;
  int64_t q_len;
  Mask mask;
  bool at_end;
};

bool same_bytes(const ConstView& a, const ConstView& b) {
  return std::memcmp(a.data, b.data, a.size() * size_of(a.dtype)) == 0;
}

// d(out) of a case, and room for the gradients.
struct Gradients {
  StoredTensor dout, dq, dk, dv;

  explicit Gradients(const AttentionCase& c)
      : dout(c.out.view().dtype, shape_of(c.out), 9),
        dq(c.q.view().dtype, shape_of(c.q)),
        dk(c.k.view().dtype, shape_of(c.k)),
        dv(c.v.view().dtype, shape_of(c.v)) {}

  static std::vector<int64_t> shape_of(const StoredTensor& x) {
    const View view = x.view();
    return {view.shape.begin(), view.shape.begin() + view.rank};
  }
};

void expect_same_between_guards(const EncodingEntry& entry, const GuardCase& guard) {
  // Sizes that leave a rest everywhere: behind vectors, panels, squares of rows and groups.
  AttentionCase c(entry, guard.dtype,
                  {.heads = 4, .kv_heads = 2, .q_len = guard.q_len, .k_len = 37, .dim = 22});
  c.options.causal = true;
  c.options.q_start = 37 - guard.q_len;
  StoredTensor additive(guard.dtype, {1, 4, guard.q_len, 37}, 5);
  std::vector<uint8_t> flags(guard.q_len * 37);
  for (size_t n = 0; n < flags.size(); ++n) flags[n] = n % 5 != 1;
  const int64_t flags_shape[] = {guard.q_len, 37};
  if (guard.mask == Mask::additive) c.options.mask = additive.view();
  if (guard.mask == Mask::boolean)
    c.options.mask = ConstView(flags.data(), DType::boolean, flags_shape);
  c.run();
  const Gradients plain(c);
  attend_backward(c.q.view(), c.k.view(), c.v.view(), *c.encoding, c.options,
                  {c.out.view(), c.lse.view()}, plain.dout.view(), plain.dq.view(), plain.dk.view(),
                  plain.dv.view());

  Guarded guarded(guard.at_end);
  for (size_t n = 0; n < c.tables.size(); ++n)
    c.encoding->set(c.encoding->parameters()[n].name, guarded.copy(c.tables[n].view()));
  AttendOptions options = c.options;
  if (options.mask) options.mask = guarded.copy(options.mask);
  const View out = guarded.copy(c.out.view());
  options.lse = guarded.copy(c.lse.view());
  std::memset(out.data, 0x55, out.size() * size_of(out.dtype));
  std::memset(options.lse.data, 0x55, options.lse.size() * size_of(options.lse.dtype));
  const View q = guarded.copy(c.q.view()), k = guarded.copy(c.k.view());
  const View v = guarded.copy(c.v.view());
  attend(q, k, v, *c.encoding, options, out);
  EXPECT_TRUE(same_bytes(out, c.out.view())) << c.label;
  EXPECT_TRUE(same_bytes(options.lse, c.lse.view())) << c.label;

  const Gradients empty(c);
  const View dq = guarded.copy(empty.dq.view()), dk = guarded.copy(empty.dk.view());
  const View dv = guarded.copy(empty.dv.view());
  attend_backward(q, k, v, *c.encoding, options, {out, options.lse},
                  guarded.copy(plain.dout.view()), dq, dk, dv);
  EXPECT_TRUE(same_bytes(dq, plain.dq.view())) << c.label;
  EXPECT_TRUE(same_bytes(dk, plain.dk.view())) << c.label;
  EXPECT_TRUE(same_bytes(dv, plain.dv.view())) << c.label;
}

TEST(GuardPages, NothingBeyondATensorIsTouched) {
  for (const std::string& name : available_isas()) {
    set_isa(name);
    for (const EncodingEntry* entry : encodings_with(4, 22))
      for (const DType dtype : kFloatingTypes)
        for (const int64_t q_len : {1, 3, 19})  // in place, and packed
          for (const Mask mask : {Mask::none, Mask::boolean, Mask::additive})
            for (const bool at_end : {false, true})
              expect_same_between_guards(*entry, {dtype, q_len, mask, at_end});
  }
  set_isa("best");
}

TEST(GuardPages, TouchingTheGuardIsNoticed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // the pool's threads are running
  const GuardedBytes bytes(10, /*at_end=*/true);
  bytes.data()[9] = std::byte{1};
  EXPECT_DEATH(static_cast<volatile std::byte*>(bytes.data())[10] = std::byte{1}, "");
}

}  // namespace
}  // namespace locant
