// What SentencePiece does not check in a model that nobody vouches for.
#pragma once

#include <string>
#include <string_view>

namespace locant::inline v0 {

// Fails, naming `path`, if the model's table of normalisations would lead SentencePiece outside of
// its memory: it follows the offsets of that table as they are.
void check_sentencepiece_model(const std::string& path, std::string_view model);

}  // namespace locant::inline v0
