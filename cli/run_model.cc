// locant run: a checkpoint's answers to texts or token ids.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/answers.h"
#include "cli/commands.h"
#include "cli/npy.h"
#include "cli/queries.h"
#include "cli/run_generate.h"
#include "cli/validators.h"
#include "locant/core/error.h"
#include "locant/core/executor.h"
#include "locant/io/config.h"
#include "locant/io/file.h"
#include "locant/models/model.h"

namespace locant::cli {
namespace {

using nlohmann::ordered_json;

struct RunFlags {
  std::string dir, npy;
  QueryFlags queries;
  LoadOptions load;
  AnswerOptions answers;
  GenerateFlags generate;
  int64_t batch = 16;
  int threads = 0;
  bool normalize = true, json = false, raw = false;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// A line on stderr every two seconds: on a terminal it overwrites itself, elsewhere the time
// between lines grows, so that a log of hours stays short.
class Progress {
 public:
  explicit Progress(size_t total) : total_(total) {}

  void show(size_t done, int64_t tokens) {
    const double now = seconds_since(start_);
    if (now < next_ || done == total_) return;
    fmt::print(stderr, "{}{} of {}, {:.0f} tokens per second{}", terminal_ ? "\r\033[K" : "", done,
               total_, static_cast<double>(tokens) / now, terminal_ ? "" : "\n");
    std::fflush(stderr);
    shown_ = true;
    next_ = terminal_ ? now + 2 : now * 1.5;
  }

  void clear() {
    if (shown_ && terminal_) fmt::print(stderr, "\r\033[K");
    shown_ = false;
  }

 private:
  const size_t total_;
  const bool terminal_ = isatty(STDERR_FILENO) != 0;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double next_ = 2;
  bool shown_ = false;
};

// Results by name, and whether they have a row per token.
struct Result {
  const char* name;
  ConstView values;
  bool per_token;
};

// Of the head "base" the embeddings, and with `raw` what they are made of.
std::vector<Result> results_of(const Results& results, const ModelInfo& info, bool raw) {
  const ModelOutput& out = results.out;
  std::vector<Result> list;
  const auto add = [&](const char* name, const Tensor& tensor, bool per_token) {
    if (tensor) list.push_back({name, tensor.view(), per_token});
  };
  if (raw) {
    add("last_hidden_state", out.last_hidden_state, true);
    add("pooler_output", out.pooler_output, false);
  }
  add("embeddings", results.embeddings, false);
  add("logits", out.logits, info.per_token);
  add("start_logits", out.start_logits, true);
  add("end_logits", out.end_logits, true);
  return list;
}

ordered_json json_row(const ConstView& values, int64_t row) {
  if (values.rank == 1) return *values.at<float>(row);
  const float* first = values.at<float>(row);
  return std::vector<float>(first, first + values.shape[1]);
}

// The arrays of sequence n by Hugging Face's names; the embedding is in the answer already.
void add_raw(const Results& results, const ModelInfo& info, size_t n, ordered_json& line) {
  for (const Result& result : results_of(results, info, true)) {
    if (result.name == std::string("embeddings")) continue;
    if (!result.per_token) {
      line[result.name] = json_row(result.values, static_cast<int64_t>(n));
      continue;
    }
    for (int64_t row = results.out.offsets[n]; row < results.out.offsets[n + 1]; ++row)
      line[result.name].push_back(json_row(result.values, row));
  }
}

// Softmax over labels unless config.json says otherwise, as Hugging Face's losses do.
LabelKind label_kind(const Config& config, const ModelInfo& info) {
  const std::string kind = config.text_or("problem_type", "");
  if (kind == "multi_label_classification") return LabelKind::any_of;
  if (kind == "regression" || info.labels.size() == 1) return LabelKind::regression;
  return LabelKind::one_of;
}

// Loads a model, asks it everything, batch after batch, and prints.
class Run {
 public:
  explicit Run(const RunFlags& flags)
      : flags_(flags),
        questions_(read_questions(flags.queries)),
        model_(load(flags.dir, flags.load)),
        info_(model_->info()),
        answers_(flags.answers),
        files_(flags.npy) {
    if (questions_.from_text) words_ = load_words(flags.dir, flags.queries.max_length);
    const Config config = Config::read(join_path(flags.dir, "config.json"));
    answers_.labels = label_kind(config, info_);
    if (info_.head == "causal_lm")
      most_positions_ = config.integer_or("max_position_embeddings", 0, 0);
  }

  void operator()() {
    if (flags_.generate.count > 0) return generate();
    require(info_.head != "seq2seq_lm", "run", "a ", info_.model_type,
            " model answers texts with --generate N; --head base gives embeddings");
    Progress progress(questions_.size());
    for (size_t done = 0; done < questions_.size();) {
      const std::vector<Query> batch = next_batch(done);
      const Results results = ask(batch, done);
      progress.clear();
      print(results, batch, done);
      done += batch.size();
      progress.show(done, tokens_);
    }
    files_.close();
    progress.clear();
    fmt::print(stderr, "{} {}, {} tokens, {:.3f} s, {:.0f} tokens per second\n", questions_.size(),
               questions_.from_text ? "texts" : "sequences", tokens_, seconds_,
               static_cast<double>(tokens_) / seconds_);
    note_cuts();
  }

 private:
  void generate() {
    GenerateFlags flags = flags_.generate;
    flags.json = flags_.json;
    flags.batch = flags_.batch;
    if (!questions_.from_text) return run_generate(*model_, questions_.sequences.ids, flags, {});
    std::vector<std::vector<int64_t>> prompts;
    for (size_t n = 0; n < questions_.size(); ++n) {
      Query query = query_of(questions_, n, words_, info_);
      require(!query.passage.pair, "run", "text ", n, " has a pair, which --generate cannot use");
      require(!query.encoded.ids.empty(), "run", "text ", n,
              " is empty, and its tokenizer puts no token before texts: there is nothing to "
              "continue");
      if (query.encoded.cut > 0) ++cut_;
      prompts.push_back(std::move(query.encoded.ids));
    }
    note_cuts();
    for (size_t n = 0; n < prompts.size(); ++n) note_long(n, std::ssize(prompts[n]));
    run_generate(*model_, prompts, flags, words_.decode);
  }

  void note_cuts() const {
    if (cut_ > 0)
      fmt::print(stderr, "{} of {} texts were cut to {} tokens\n", cut_, questions_.size(),
                 flags_.queries.max_length);
  }

  // Rotations go on beyond the lengths that a model was trained with, but seldom well.
  void note_long(size_t n, int64_t tokens) const {
    if (most_positions_ == 0 || tokens + flags_.generate.count <= most_positions_) return;
    fmt::print(stderr,
               "text {} has {} tokens{}, but the model was made for {}: the end may be poor\n", n,
               tokens,
               flags_.generate.count > 0
                   ? fmt::format(", {} with those of --generate", tokens + flags_.generate.count)
                   : "",
               most_positions_);
  }

  // --batch sequences, or fewer where the logits of every token over the vocabulary grow large.
  std::vector<Query> next_batch(size_t begin) {
    constexpr int64_t kMostLogits = int64_t{1} << 26;
    const bool language = info_.head == "masked_lm" || info_.head == "causal_lm";
    const int64_t most = language ? kMostLogits / std::max<int64_t>(info_.vocab_size, 1) : 0;
    const size_t end = std::min(questions_.size(), begin + static_cast<size_t>(flags_.batch));
    std::vector<Query> batch;
    int64_t tokens = 0;
    for (size_t n = begin; n < end; ++n) {
      Query query = query_of(questions_, n, words_, info_);
      tokens += std::ssize(query.encoded.ids);
      if (most > 0 && tokens > most && !batch.empty()) break;
      if (query.encoded.cut > 0) ++cut_;
      note_long(n, std::ssize(query.encoded.ids));
      batch.push_back(std::move(query));
    }
    return batch;
  }

  Results ask(const std::vector<Query>& batch, size_t begin) {
    const auto start = std::chrono::steady_clock::now();
    Results results;
    try {
      results.out = model_->run(input_of(batch));
    } catch (const std::exception& error) {
      if (begin == 0) throw;  // numbers in the message are those of the whole list
      fail("run", "counted from sequence ", begin, ": ", error.what());
    }
    if (info_.head == "base")
      results.embeddings = sentence_embeddings(results.out, info_, flags_.normalize);
    seconds_ += seconds_since(start);
    tokens_ += results.out.offsets.back();
    return results;
  }

  void print(const Results& results, const std::vector<Query>& batch, size_t begin) {
    if (!flags_.npy.empty())
      for (const Result& result : results_of(results, info_, flags_.raw))
        files_.append(result.name, result.values);
    if (!flags_.npy.empty() && !flags_.json) return;
    for (size_t n = 0; n < batch.size(); ++n) {
      ordered_json answer = answer_of(results, n, batch[n], info_, words_, answers_);
      if (!flags_.json) {
        fmt::print("{}\n", readable(answer, batch[n], begin + n, answers_));
        continue;
      }
      if (flags_.raw) add_raw(results, info_, n, answer);
      // Pieces and answers may end in the middle of a character.
      fmt::print("{}\n", answer.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
    }
  }

  const RunFlags& flags_;
  const Questions questions_;
  const std::shared_ptr<const Model> model_;
  const ModelInfo& info_;
  Words words_;
  AnswerOptions answers_;
  NpyFiles files_;
  int64_t most_positions_ = 0;  // that a model of rotations was trained for; 0: nobody says
  int64_t tokens_ = 0, cut_ = 0;  // cut_: texts
  double seconds_ = 0;
};

int run_model(const RunFlags& flags) {
  if (flags.threads > 0) set_num_threads(flags.threads);
  require(flags.batch >= 1, "run", "--batch must be >= 1, got ", flags.batch);
  require(!flags.raw || flags.json || !flags.npy.empty(), "run", "--raw goes with --json or --npy");
  require(flags.generate.count == 0 || flags.npy.empty(), "run",
          "--npy writes arrays, and --generate gives texts; --json has their ids");
  Run{flags}();
  return 0;
}

void add_query_options(CLI::App& command, QueryFlags& flags) {
  repeated(command.add_option("--text", flags.texts, "A text; may be repeated"));
  repeated(command.add_option("--pair", flags.pairs,
                              "A second text behind the first: where a question's "
                              "answer is looked for"));
  command.add_option("--file", flags.file, "A file with a text on each line; - is standard input");
  command.add_option("--jsonl", flags.jsonl,
                     "A file with {\"text\": ..., \"text_pair\": ...} on each line; - is standard "
                     "input");
  repeated(command.add_option("--ids", flags.ids,
                              "Token ids of a sequence, 101,7592,102; may be repeated"));
  command.add_option("--ids-file", flags.ids_file,
                     "JSON lines, [101,7592,102] or {\"ids\": [...], \"token_types\": [...]}; "
                     "- is standard input");
  command
      .add_option("--max-length", flags.max_length, "Cut texts to so many tokens; else nothing is")
      ->check(at_least(1));
}

}  // namespace

Command add_run(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "run",
      "Run a checkpoint (BERT, RoBERTa, DeBERTa, T5, XLNet, Transformer-XL, Llama) on texts or "
      "token ids, and print what it says: embeddings, labels, answers, guesses for [MASK] and the "
      "next token, or with --generate a continuation");
  auto flags = std::make_shared<RunFlags>();
  command->add_option("dir", flags->dir, "Folder with config.json and model.safetensors")
      ->required();
  add_query_options(*command, flags->queries);
  command->add_option("--head", flags->load.head,
                      "base, masked_lm, sequence_classification, token_classification, "
                      "question_answering, causal_lm or seq2seq_lm; else as config.json says");
  command->add_option("--mask-decoder", flags->load.mask_decoder,
                      "DeBERTa's masked language model: auto, enhanced or plain");
  command->add_option("--batch", flags->batch, "Sequences per call, packed: nothing is padded")
      ->capture_default_str();
  command->add_option("--threads", flags->threads, "Threads; else all CPUs")->check(at_least(1));
  command->add_flag("--normalize,!--no-normalize", flags->normalize,
                    "Embeddings of length 1 (they are unless --no-normalize)");
  command
      ->add_option("--top-k", flags->answers.top_k,
                   "Guesses for a masked word or the next token; labels of a text")
      ->check(at_least(1))
      ->capture_default_str();
  command->add_option("--max-answer", flags->answers.max_answer, "Most tokens of an answer")
      ->check(at_least(1))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "A line of JSON per sequence");
  command->add_flag("--raw", flags->raw,
                    "With --json or --npy: also the model's results by Hugging Face's names, "
                    "last_hidden_state and logits");
  command->add_option("--npy", flags->npy,
                      "Write embeddings or logits to PREFIX.name.npy, rows of all sequences one "
                      "after the other");
  add_generate_options(*command, flags->generate);
  return [flags] { return run_model(*flags); };
}

}  // namespace locant::cli
