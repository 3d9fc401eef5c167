// model.safetensors.index.json over two good shards: whatever opens is in the folder, and is what
// the index names. A third good file lies outside of the folder, where no index may lead.
#include "locant/io/weights.h"
#include "tests/fuzz/fuzz.h"
#include "tests/safetensors_file.h"
#include "tests/temporary_folder.h"

namespace locant {
namespace {

using fuzz::complaint_of;
using fuzz::expect;

// outside.safetensors; model/one.safetensors (a, b); model/two.safetensors (c)
class Folder {
 public:
  Folder() : model_(top_ / "model") {
    std::filesystem::create_directory(model_);
    const auto tensor = [](const char* name, int begin) {
      return tensor_json(name, "F32", "2", begin, begin + 8);
    };
    const std::string data(16, '\x3f');
    top_.write("outside.safetensors",
               safetensors_file("{" + tensor("secret", 0) + "}", data.substr(8)));
    top_.write("model/one.safetensors",
               safetensors_file("{" + tensor("a", 0) + "," + tensor("b", 8) + "}", data));
    top_.write("model/two.safetensors",
               safetensors_file("{" + tensor("c", 0) + "}", data.substr(8)));
  }

  void open(std::string_view index) const {
    top_.write("model/model.safetensors.index.json", index);
    complaint_of([&] {
      const Weights weights = Weights::open(model_);
      expect(weights.tensors().size() <= 3, "more tensors than the folder has");
      expect(!weights.has("secret"), "a file outside of the folder was opened");
      for (const StoredTensor* tensor : weights.tensors()) {
        expect(tensor->name == "a" || tensor->name == "b" || tensor->name == "c", "a new tensor");
        const ConstView values = weights.get(tensor->name, {2});
        expect(values && element(values, 1) == element(values, 0), "other values");
      }
      expect(weights.unexpected().empty(), "a tensor that was asked for is unexpected");
      static_cast<void>(weights.not_finite());
      static_cast<void>(weights.get("d", {2}));
      expect(complaint_of([&] { weights.require_complete(); }) != "", "'d' is not missed");
    });
  }

 private:
  TemporaryFolder top_;
  std::string model_;
};

}  // namespace
}  // namespace locant

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const locant::Folder folder;
  folder.open({reinterpret_cast<const char*>(data), size});
  return 0;
}
