// How a folder of sentence-transformers says that the rows of a sequence become its embedding.
#pragma once

#include <string>
#include <vector>

namespace locant::inline v0 {

// By its modules.json and the config.json of its pooling: ModelInfo::pooling. A folder without them
// asks for the mean. What is not computed (a layer after the pooling) stands there by its name, and
// sentence_embeddings() refuses it: the model itself can still be run.
std::vector<std::string> read_pooling(const std::string& dir);

}  // namespace locant::inline v0
