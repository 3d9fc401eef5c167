// No positions: attention sees a set of words.
#include "cli/show/pictures.h"
#include "cli/show/probe.h"
#include "locant/draw/heat_map.h"

namespace locant::cli {
namespace {

const std::vector<std::string> kWords = {"the", "cat", "saw", "the", "dog"};
constexpr uint64_t kMeanings[] = {1, 2, 3, 1, 4};  // the two "the" are one vector

Panel draw_order(const Encoding& encoding, const std::vector<int>& order, const char* title) {
  const int64_t H = integer(encoding, "heads"), d = integer(encoding, "head_dim");
  std::vector<double> x;
  NumberMatrix matrix{
      .title = title, .x_label = "key", .y_label = "query", .rows = 5, .columns = 5, .decimals = 2};
  for (int64_t h = 0; h < H; ++h)
    for (const int word : order) {
      const std::vector<double> vector = random_values(d, kMeanings[word]);
      x.insert(x.end(), vector.begin(), vector.end());
    }
  for (const int word : order) {
    matrix.row_names.push_back(kWords[word]);
    matrix.column_names.push_back(kWords[word]);
  }
  matrix.values = scores_of(encoding, x, x).probability_matrix();
  return draw(matrix);
}

}  // namespace

Figure draw_none(const Request& request) {
  const std::unique_ptr<Encoding> encoding = make(request, {{"head_dim", int64_t{8}}});
  return {.title = "none",
          .lines = {"S = ⟨q, k⟩/√d: no positions. In any order each word gives the same weights to "
                    "the same words.",
                    "The two “the” cannot be told apart: attention alone reads a bag of words."},
          .panels = {draw_order(*encoding, {0, 1, 2, 3, 4}, "weights of “the cat saw the dog”"),
                     draw_order(*encoding, {3, 4, 2, 0, 1}, "… and of “the dog saw the cat”")}};
}

}  // namespace locant::cli
