// config.json to a model: the input is the config. Weights are made up as the model asks for them,
// so that configs which still make sense after a mutation are built, run and compared with
// themselves. What is too large is only refused.
#include <cstring>

#include "locant/core/executor.h"
#include "tests/fuzz/fuzz.h"
#include "tests/made_up_checkpoint.h"

namespace locant {
namespace {

using fuzz::complaint_of;
using fuzz::expect;

void expect_same(const Tensor& a, const Tensor& b) {
  const ConstView x = a.view(), y = b.view();
  expect(x.shape == y.shape, "two runs differ in shape");
  expect(std::memcmp(x.data, y.data, x.size() * size_of(x.dtype)) == 0, "two runs differ in bits");
}

void run(const Model& model) {
  const int64_t last = model.info().vocab_size - 1;
  const ModelInput input = {.ids = {{0, last, 0}, {last}}};
  complaint_of([&] {
    const ModelOutput one = model.run(input), two = model.run(input);
    if (one.last_hidden_state) expect_same(one.last_hidden_state, two.last_hidden_state);
    if (one.logits) expect_same(one.logits, two.logits);
  });
  complaint_of([&] { static_cast<void>(model.generate(input, {.max_new_tokens = 2})); });
  const std::string refusal =
      complaint_of([&] { static_cast<void>(model.run({.ids = {{last + 1}}})); });
  expect(!refusal.empty(), "an id that is no word is taken");
}

}  // namespace
}  // namespace locant

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const locant::TemporaryFolder folder;
  static const bool alone = (locant::set_num_threads(1), true);
  static_cast<void>(alone);
  folder.write("config.json", {reinterpret_cast<const char*>(data), size});
  const auto model = locant::MadeUpCheckpoint::load_from(folder, locant::fuzz::complaint_of);
  if (model != nullptr) locant::run(*model);
  return 0;
}
