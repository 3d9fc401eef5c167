// classify DIR TEXT: what a checkpoint for sequence classification says about a text.
#include <locant/models/model.h>
#include <locant/text/tokenizer.h>

#include <cstdio>
#include <exception>

int main(int argc, char** argv) try {
  if (argc != 3) return std::fprintf(stderr, "usage: classify DIR TEXT\n"), 2;
  const auto model = locant::load(argv[1], {.head = "sequence_classification"});
  const auto tokenizer = locant::load_tokenizer(argv[1]);
  const locant::Encoded text = tokenizer->encode(argv[2]);
  const locant::ModelOutput out =
      model->run({.ids = {text.ids}, .token_types = {text.token_type_ids}});
  for (size_t n = 0; n < model->info().labels.size(); ++n)
    std::printf("%s %.6f\n", model->info().labels[n].c_str(), *out.logits.view().at<float>(0, n));
} catch (const std::exception& error) {
  std::fprintf(stderr, "classify: %s\n", error.what());
  return 2;
}
