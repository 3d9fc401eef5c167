// Symmetries of attention that no formula names: heads know nothing of each other.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "locant/encodings/registry.h"
#include "locant/layers/attend.h"
#include "tests/every_encoding.h"
#include "tests/stored_tensor.h"

namespace locant {
namespace {

std::vector<int64_t> shape_of(const ConstView& x) {
  return {x.shape.begin(), x.shape.begin() + x.rank};
}

// `x` with blocks along `axis` in another order: block n of the result is block order[n] of x.
StoredTensor permuted(const StoredTensor& x, int axis, const std::vector<int64_t>& order) {
  const ConstView from = x.view();
  StoredTensor out(from.dtype, shape_of(from));
  const int64_t block = from.shape[axis] / static_cast<int64_t>(order.size());
  Extents at{};
  for (at[0] = 0; at[0] < from.shape[0]; ++at[0])
    for (at[1] = 0; at[1] < from.shape[1]; ++at[1])
      for (at[2] = 0; at[2] < from.shape[2]; ++at[2])
        for (at[3] = 0; at[3] < from.shape[3]; ++at[3]) {
          Extents source = at;
          source[axis] = order[at[axis] / block] * block + at[axis] % block;
          set_element(out.view(), element(from, source[0], source[1], source[2], source[3]), at[0],
                      at[1], at[2], at[3]);
        }
  return out;
}

// The axis of a parameter that counts heads, by its description ("num_buckets, heads"), or -1.
int head_axis(const Parameter& parameter) {
  std::istringstream words(parameter.shape_in_words);
  std::string word;
  for (int axis = 0; std::getline(words, word, ','); ++axis) {
    word.erase(0, word.find_first_not_of(' '));
    if (word == "heads" || word == "heads·head_dim") return axis;
  }
  return -1;
}

class HeadsOf : public testing::TestWithParam<std::string> {};

TEST_P(HeadsOf, MayChangePlaces) {
  const EncodingEntry& entry = find_encoding(GetParam());
  for (const FieldValues& fields : entry.cases) {
    const auto straight = entry.make(fields);
    FieldValues turned_fields = straight->fields();
    const int64_t H = std::get<int64_t>(turned_fields.at("heads"));
    const int64_t d = std::get<int64_t>(turned_fields.at("head_dim"));
    std::vector<int64_t> order(H);
    std::iota(order.begin(), order.end(), 0);
    std::rotate(order.begin(), order.begin() + 1, order.end());
    auto turned = entry.make(turned_fields);
    if (auto slopes = turned_fields.find("slopes"); slopes != turned_fields.end()) {
      // ALiBi's are no parameter but a field; given or not, the test gives its own.
      std::vector<double> given(H), moved(H);
      for (int64_t h = 0; h < H; ++h) given[h] = 0.1 * static_cast<double>(h + 1);
      for (int64_t h = 0; h < H; ++h) moved[h] = given[order[h]];
      slopes->second = moved;
      turned = entry.make(turned_fields);
      slopes->second = given;
    }
    const auto first = entry.make(turned_fields);
    std::deque<StoredTensor> tables;
    for (const Parameter& parameter : first->parameters()) {
      const int axis = head_axis(parameter);
      tables.emplace_back(DType::f32, parameter.shape, 10 + tables.size(), 0.4);
      first->set(parameter.name, tables.back().view());
      if (axis >= 0) tables.push_back(permuted(tables.back(), axis, order));
      turned->set(parameter.name, tables.back().view());
    }
    const StoredTensor q(DType::f32, {2, H, 19, d}, 1), k(DType::f32, {2, H, 45, d}, 2),
        v(DType::f32, {2, H, 45, d}, 3), out(DType::f32, {2, H, 19, d}),
        other(DType::f32, {2, H, 19, d});
    attend(q.view(), k.view(), v.view(), *first, {.q_start = 26}, out.view());
    attend(permuted(q, 1, order).view(), permuted(k, 1, order).view(), permuted(v, 1, order).view(),
           *turned, {.q_start = 26}, other.view());
    EXPECT_EQ(permuted(out, 1, order).values(), other.values()) << entry.name << ' ' << d;
    if (H > 1) {
      EXPECT_NE(out.values(), other.values()) << "nothing was turned";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, HeadsOf, testing::ValuesIn(every_encoding()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace locant
