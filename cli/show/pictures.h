// A figure for each encoding. What is drawn comes from the encodings' own functions: embed(),
// prepare(), rotate(), and the scores of each term that the materialised path gives.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "locant/draw/figure.h"
#include "locant/encodings/registry.h"

namespace locant::cli {

// What is to be drawn: an encoding, and those of its fields that the user chose.
struct Request {
  const EncodingEntry& entry;
  FieldValues fields;
};

using MakeFigure = Figure (*)(const Request&);

Figure draw_none(const Request& request);
Figure draw_sinusoidal(const Request& request);
Figure draw_learned(const Request& request);
Figure draw_shaw(const Request& request);
Figure draw_transformer_xl(const Request& request);
Figure draw_xlnet(const Request& request);
Figure draw_t5(const Request& request);
Figure draw_alibi(const Request& request);
Figure draw_kerple(const Request& request);
Figure draw_deberta(const Request& request);
Figure draw_rope(const Request& request);

// By the encoding's name; a test holds it beside the registry.
const std::vector<std::pair<std::string, MakeFigure>>& pictures();

}  // namespace locant::cli
