// Asking an encoding what it does: its scores on chosen queries and keys, and the rows of tables
// that it reads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/show/pictures.h"
#include "locant/core/view.h"
#include "locant/encodings/encoding.h"
#include "locant/layers/attend.h"

namespace locant::cli {

// The encoding of a request: `usual` are this picture's fields, which the request overrides. Its
// parameters are random.
std::unique_ptr<Encoding> make(const Request& request, FieldValues usual);

// Fails by name if its pictures would need gigabytes.
void check_drawable(const Encoding& encoding);

// A field of an encoding.
int64_t integer(const Encoding& encoding, const char* name);
bool flag(const Encoding& encoding, const char* name);

// "heads 8, head_dim 64": the fields that the picture or the user set.
std::string settings_text(const Encoding& encoding, const std::vector<std::string>& names);

std::vector<double> random_values(int64_t count, uint64_t seed);

// (rows, d) of mean 0 and variance 1 in which neighbouring rows resemble each other.
std::vector<double> smooth_rows(int64_t rows, int64_t d, uint64_t seed);

std::vector<double> range(int64_t first, int64_t last);  // first, first + 1, ..., last

// Every term's scores for one sequence, by the encoding itself.
struct Scores {
  int64_t heads = 0, q_len = 0, k_len = 0;
  // Each (heads, q_len, k_len), by the term's name; NaN where a pair is not visible.
  std::vector<std::pair<std::string, std::vector<double>>> terms;
  std::vector<double> probabilities;

  bool has(const std::string& term) const;

  // The matrix (q_len, k_len) of a head; an error if the encoding has no such term.
  std::vector<double> matrix(const std::string& term, int64_t head = 0) const;
  std::vector<double> probability_matrix(int64_t head = 0) const;
};

//   q (heads, q_len, d)   k (heads, k_len, d)
Scores scores_of(const Encoding& encoding, const std::vector<double>& q,
                 const std::vector<double>& k, const AttendOptions& options = {});

// The same for one query and keys at the offsets first, ..., last from it; all heads have the query
// q (d), and all keys are k (d).
Scores scores_by_offset(const Encoding& encoding, const std::vector<double>& q,
                        const std::vector<double>& k, int64_t first, int64_t last,
                        AttendOptions options = {});

// The row of the parameter `table` that a term reads for each offset first, ..., last.
//   table (rows, d) or (heads, rows, d), as the user gave it
std::vector<double> rows_by_offset(const Encoding& encoding, const std::string& term,
                                   const ConstView& table, int64_t first, int64_t last);

// (length, length) from values by offset -(length - 1), ..., length - 1.
std::vector<double> by_pair(const std::vector<double>& by_offset, int64_t length);

}  // namespace locant::cli
