// Llama's layers with any position encoding of the registry instead of RoPE: checkpoints of
// model_type "locant", as the study of lengths writes them.
//   config.json           "position_encoding": {"name": "shaw", its fields as `locant list` has them}
//   model.safetensors     encoding.N.NAME: the parameter NAME of layer N's encoding; a layer that has
//                         none of its own uses that of layer 0
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

// Of a model with so many heads. Fails by the file and the key if no encoding has that name, or it has
// no such field, or is for other heads.
PositionEncoding position_encoding_of(const Config& config, int64_t heads, int64_t head_dim);

// One encoding for each layer, with its parameters set; layers may share one.
std::vector<std::shared_ptr<const Encoding>> build_encodings(const PositionEncoding& position,
                                                             int64_t layers, const Source& source);

}  // namespace locant::inline v0
