// Llama's layers with any position encoding of the registry instead of RoPE: checkpoints of
// model_type "locant", as the study of lengths writes them.
//   config.json           "position_encoding": {"name": "shaw", its fields as `locant list` has them}
//   model.safetensors     encoding.N.NAME: the parameter NAME of layer N's encoding; if layer 1 has
//                         none of its own, that of layer 0 serves all
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "locant/encodings/encoding.h"
#include "locant/io/config.h"
#include "locant/models/source.h"

namespace locant::inline v0 {

// What config.json says; the name is empty where it says nothing, and positions are RoPE's.
struct PositionEncoding {
  std::string name;
  FieldValues fields;
};

// Fails by the file and the key if no encoding has that name, or it has no such field.
PositionEncoding position_encoding_of(const Config& config);

// One encoding for each layer, with its parameters set; layers may share one.
std::vector<std::shared_ptr<const Encoding>> build_encodings(const PositionEncoding& position,
                                                             int64_t layers, const Source& source);

}  // namespace locant::inline v0
