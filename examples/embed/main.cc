// Shaw attention over a padded batch, beside the paper's formulas in float64.
#include <locant/encodings/shaw/shaw.h>
#include <locant/layers/attend.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

int main() {
  const int64_t B = 2, H = 4, L = 96, d = 64;
  std::mt19937 random(0);
  std::normal_distribution<float> normal;
  std::vector<float> q(B * H * L * d), k(q), v(q), out(q);
  for (auto* x : {&q, &k, &v}) std::generate(x->begin(), x->end(), [&] { return normal(random); });

  locant::Shaw shaw({.heads = H, .head_dim = d, .max_distance = 16});
  shaw.init(/*seed=*/1);
  const std::vector<int64_t> lengths = {96, 50};
  const locant::AttendOptions options{.lengths = lengths, .causal = true};
  const auto tensor = [&](auto& x) { return locant::view(x.data(), {B, H, L, d}); };
  locant::attend(tensor(q), tensor(k), tensor(v), shaw, options, tensor(out));

  std::vector<double> exact(out.size());
  locant::attend_reference(tensor(q), tensor(k), tensor(v), shaw, options, tensor(exact));
  double worst = 0;
  for (size_t i = 0; i < out.size(); ++i) worst = std::max(worst, std::abs(out[i] - exact[i]));
  std::printf("worst difference from the float64 reference: %.1e\n", worst);
  return worst < 1e-5 ? 0 : 1;
}
