// Characters: UTF-8 in and out, and the properties that BERT's tokenizer asks for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace locant::inline v0 {

// A character and the bytes of the text that it stands for.
struct Character {
  int32_t code = 0;
  size_t begin = 0, end = 0;
};

// Fails, naming `what` and the byte, unless the text is UTF-8: no surrogates, nothing overlong.
void require_utf8(std::string_view what, std::string_view text);

// The characters of valid UTF-8; byte ranges start at `offset`.
std::vector<Character> characters_of(std::string_view text, size_t offset = 0);

void append_utf8(int32_t code, std::string& out);

// Classes as Hugging Face's tokenizers have them, which is Unicode 8.0: what has been assigned
// since is neither punctuation nor a mark nor a control character.
bool is_punctuation(int32_t code);  // categories P*, and ASCII's symbols
bool is_control(int32_t code);      // Cc, Cf and Co without tab and line ends
bool is_accent(int32_t code);       // Mn
bool is_space(int32_t code);        // Unicode's White_Space
bool is_chinese(int32_t code);      // ideographs as BERT counts them; not kana, not hangul

// Of a word as regular expressions have it, \w: letters, what counts as one (Ⓐ, Ⅳ), marks, decimal
// digits, connectors and joiners.
bool is_word(int32_t code);

// Lower case, one character after another: no rule looks at neighbours.
void append_lower_case(const Character& character, std::vector<Character>& out);

// Canonical decomposition (NFD), marks in canonical order.
std::vector<Character> decomposed(const std::vector<Character>& text);

}  // namespace locant::inline v0
