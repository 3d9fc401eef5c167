// A .safetensors file: what opens is consistent, and every byte that it names is in the file.
//   first byte 0: the rest is the file
//   else:         header, 0x1e, data; the length is put in front, so that mutations reach the JSON
#include "locant/io/safetensors.h"

#include <cmath>

#include "locant/core/half.h"
#include "tests/fuzz/fuzz.h"
#include "tests/safetensors_file.h"
#include "tests/temporary_folder.h"

namespace locant {
namespace {

using fuzz::Bytes;
using fuzz::complaint_of;
using fuzz::expect;

std::string file_of(Bytes bytes) {
  if (bytes.byte() == 0) return std::string(bytes.rest());
  const std::string_view header = bytes.part();
  return safetensors_file(header, bytes.rest());
}

void read_all(const Safetensors& file, size_t file_size) {
  size_t sum = 0;
  for (const StoredTensor& tensor : file.tensors()) {
    expect(file.find(tensor.name) == &tensor, "a tensor is not found by its name");
    sum += tensor.bytes.size();
    // No product of extents that is beyond the file: it may wrap. Zeros first.
    std::vector<int64_t> extents = tensor.shape;
    std::sort(extents.begin(), extents.end());
    int64_t elements = 1;
    for (const int64_t extent : extents) {
      expect(extent >= 0, "a negative extent");
      expect(elements == 0 || extent <= static_cast<int64_t>(file_size) / elements, "too large");
      elements *= elements == 0 ? 0 : extent;
    }
    expect(elements == tensor.elements(), "another number of elements than the shape's");
    uint8_t all = 0;  // reads every byte: beyond the mapping is a fault
    for (const std::byte byte : tensor.bytes) all |= static_cast<uint8_t>(byte);
    complaint_of([&] { static_cast<void>(tensor.view()); });
    complaint_of([&] {
      const Tensor copy = tensor.copy();
      expect(all != 0 || copy.view().size() == 0 || element(copy.view()) == 0, "a copy differs");
    });
    complaint_of([&] {
      const Tensor wide = tensor.to_float32();
      expect(wide.view().size() == tensor.elements(), "a copy has another size");
    });
  }
  expect(sum <= file_size, "tensors have more bytes than the file");
}

}  // namespace
}  // namespace locant

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const locant::TemporaryFolder folder;
  const std::string content = locant::file_of({data, size});
  const std::string path = folder.write("model.safetensors", content);
  locant::fuzz::complaint_of([&] {
    const locant::Safetensors file(path);
    locant::read_all(file, content.size());
  });
  return 0;
}
