// .safetensors files: values bit for bit, and every kind of bad file by its message.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "locant/io/safetensors.h"
#include "tests/message_of.h"
#include "tests/safetensors_file.h"
#include "tests/temporary_folder.h"

namespace locant {
namespace {

// What opening a file of this content complains about, without "[safetensors] path: ".
std::string complaint(const std::string& content) {
  const TemporaryFolder folder;
  const std::string path = folder.write("model.safetensors", content);
  const std::string message = message_of([&] { Safetensors file(path); });
  const std::string begin = "[safetensors] " + path + ": ";
  return message.starts_with(begin) ? message.substr(begin.size()) : "without a name: " + message;
}

// The same of a header that names one tensor "x" with this description, and some data.
std::string entry_complaint(const std::string& entry, const std::string& data = "12345678") {
  const std::string message = complaint(safetensors_file(R"({"x":)" + entry + "}", data));
  const std::string begin = "tensor 'x': ";
  return message.starts_with(begin) ? message.substr(begin.size()) : "without a name: " + message;
}

TEST(Safetensors, TensorsAreReadInPlaceBitForBit) {
  const std::vector<float> f = {1.5f,  -0.0f,          std::numeric_limits<float>::denorm_min(),
                                3e38f, std::nanf("7"), -INFINITY};
  const std::vector<double> d = {1.0 + 0x1p-40, -1e300};
  const std::vector<int64_t> i = {-1, int64_t{1} << 62};
  const std::string data = bytes_of<double>(d) + bytes_of<int64_t>(i) + bytes_of<float>(f);
  std::string header =
      R"({"__metadata__":{"format":"pt"},)" + tensor_json("f", "F32", "2,3", 32, 56) + "," +
      tensor_json("d", "F64", "2", 0, 16) + "," + tensor_json("i", "I64", "2,1", 16, 32) + "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');  // as writers pad
  const TemporaryFolder folder;
  const Safetensors file(folder.write("a.safetensors", safetensors_file(header, data)));
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.tensors()[0].name, "d");  // in order of the data
  EXPECT_EQ(file.metadata().at("format"), "pt");
  EXPECT_EQ(file.find("g"), nullptr);

  const ConstView view = file.find("f")->view();
  EXPECT_EQ(view.dtype, DType::f32);
  EXPECT_EQ(shape_text(view), "(2, 3)");
  EXPECT_EQ(view.data, file.find("f")->bytes.data()) << "not in place";
  EXPECT_EQ(std::memcmp(view.data, f.data(), 24), 0);
  EXPECT_EQ(*file.find("d")->view().at<double>(0), d[0]);
  EXPECT_EQ(*file.find("i")->view().at<int64_t>(1), i[1]);
}

TEST(Safetensors, HalvesAndDoublesBecomeFloat32) {
  const std::array<uint16_t, 4> half = {0x3c01, 0x8000, 0x0001,
                                        0xfc00};  // 1+2^-10, -0, 2^-24, -inf
  const std::array<uint16_t, 4> bfloat = {0x3f81, 0x8000, 0x0001,
                                          0x7f80};  // 1+2^-7, -0, 2^-133, inf
  const std::array<double, 2> d = {0.1, 1e300};
  const std::string data =
      bytes_of<double>(d) + bytes_of<uint16_t>(half) + bytes_of<uint16_t>(bfloat);
  const TemporaryFolder folder;
  const Safetensors file(folder.write(
      "a.safetensors", safetensors_file("{" + tensor_json("d", "F64", "2", 0, 16) + "," +
                                            tensor_json("h", "F16", "2,2", 16, 24) + "," +
                                            tensor_json("b", "BF16", "4", 24, 32) + "}",
                                        data)));
  const auto values = [&](const char* name) {
    const Tensor tensor = file.find(name)->to_float32();
    const ConstView view = tensor.view();
    EXPECT_EQ(view.dtype, DType::f32);
    const float* at = static_cast<const float*>(view.data);
    return std::vector<float>(at, at + view.size());
  };
  EXPECT_EQ(values("h"), (std::vector<float>{1 + 0x1p-10f, -0.0f, 0x1p-24f, -INFINITY}));
  EXPECT_EQ(values("b"), (std::vector<float>{1 + 0x1p-7f, -0.0f, 0x1p-133f, INFINITY}));
  EXPECT_EQ(values("d"), (std::vector<float>{0.1f, INFINITY}));
  EXPECT_EQ(file.find("b")->copy().view().dtype, DType::bf16);
}

TEST(Safetensors, UnalignedDataIsCopied) {
  const std::vector<float> f = {1, 2, 3};
  // One byte in front puts the floats anywhere but on a multiple of four, whatever the header's
  // size.
  for (size_t spaces = 0; spaces < 4; ++spaces) {
    const std::string header = "{" + tensor_json("a", "U8", "1", 0, 1) + "," +
                               tensor_json("f", "F32", "3", 1, 13) + "}" + std::string(spaces, ' ');
    const TemporaryFolder folder;
    const Safetensors file(folder.write(
        "a.safetensors", safetensors_file(header, std::string("x") + bytes_of<float>(f))));
    const StoredTensor& tensor = *file.find("f");
    const Tensor copy = tensor.copy();
    EXPECT_EQ(*copy.view().at<float>(2), 3);
    if ((8 + header.size() + 1) % 4 == 0) continue;
    EXPECT_FALSE(tensor.aligned());
    EXPECT_EQ(message_of([&] { tensor.view(); }),
              "[safetensors] tensor 'f' does not begin at a multiple of 4 bytes; copy() it");
  }
}

TEST(Safetensors, TypesWithoutAViewAreListed) {
  std::string header = "{", data;
  for (const auto& [name, size] : stored_types()) {
    header += std::string(header.size() > 1 ? "," : "") +
              tensor_json(name, name, "2", data.size(), data.size() + 2 * size);
    data += std::string(2 * size, '\0');
  }
  const TemporaryFolder folder;
  const Safetensors file(folder.write("a.safetensors", safetensors_file(header + "}", data)));
  EXPECT_EQ(file.tensors().size(), stored_types().size());
  for (const StoredTensor& tensor : file.tensors()) EXPECT_EQ(tensor.elements(), 2);
  EXPECT_EQ(message_of([&] { file.find("I32")->view(); }),
            "[safetensors] tensor 'I32' has dtype I32, which is only listed, not read");
  EXPECT_EQ(message_of([&] { file.find("I64")->to_float32(); }),
            "[safetensors] tensor 'I64' has dtype I64, which does not serve as float32");
}

TEST(Safetensors, EmptyTensorsAndScalarsAreFine) {
  const TemporaryFolder folder;
  const Safetensors file(folder.write(
      "a.safetensors",
      safetensors_file("{" + tensor_json("none", "F32", "0,4611686018427387904,8", 0, 0) + "," +
                           tensor_json("one", "F32", "", 0, 4) + "}",
                       std::string(4, '\0'))));
  EXPECT_EQ(file.find("none")->elements(), 0);
  EXPECT_EQ(file.find("one")->elements(), 1);
  EXPECT_EQ(*file.find("one")->to_float32().view().at<float>(), 0);
  EXPECT_EQ(Safetensors(folder.write("b.safetensors", safetensors_file("{}"))).tensors().size(),
            0u);
}

TEST(BadSafetensors, LengthsOfTheHeader) {
  EXPECT_EQ(complaint("1234567"),
            "has 7 bytes, too short for a safetensors file; download or save it again");
  EXPECT_EQ(complaint(""),
            "has 0 bytes, too short for a safetensors file; download or save it again");
  EXPECT_EQ(complaint(little_endian(0)),
            "the header of 0 bytes must begin with '{', got ''; not a safetensors file?");
  EXPECT_EQ(complaint(little_endian(uint64_t{1} << 63) + "{}"),
            "header length 9223372036854775808 is beyond the limit of 100000000 bytes; "
            "not a safetensors file?");
  EXPECT_EQ(
      complaint(little_endian(3) + "{}"),
      "header length 3 is beyond the file's end (10 bytes); the file is truncated, download or "
      "save it again");
  EXPECT_EQ(complaint(safetensors_file("[1,2]")),
            "the header of 5 bytes must begin with '{', got '[1,2]'; not a safetensors file?");
}

TEST(BadSafetensors, HeadersThatAreNotJson) {
  EXPECT_TRUE(complaint(safetensors_file("{\"a\"")).starts_with("not JSON: "));
  EXPECT_TRUE(complaint(safetensors_file("{\"a\xff\":1}")).starts_with("not JSON: "));
  EXPECT_EQ(complaint(safetensors_file(std::string("{}\0\0", 4))), "not JSON: it has a NUL byte");
  EXPECT_EQ(complaint(safetensors_file("{\"a\":" + std::string(100000, '['))),
            "JSON nested more than 32 deep");
  EXPECT_EQ(complaint(safetensors_file("{\"a\":" + std::string(100000, '[') +
                                       std::string(100000, ']') + "}")),
            "JSON nested more than 32 deep");
  EXPECT_EQ(complaint(safetensors_file("{" + tensor_json("x", "F32", "1", 0, 4) + "," +
                                           tensor_json("x", "F32", "1", 0, 4) + "}",
                                       "1234")),
            "the key 'x' appears twice");
  EXPECT_EQ(complaint(safetensors_file(R"({"__metadata__":{"a":1}})")),
            "__metadata__ 'a' must be a string");
}

TEST(BadSafetensors, EntriesThatMakeNoSense) {
  EXPECT_EQ(entry_complaint("7"), "must be an object, got number");
  EXPECT_EQ(entry_complaint("{}"), "dtype must be a string, got nothing");
  EXPECT_EQ(entry_complaint(R"({"dtype":"F32"})"), "shape must be a list, got nothing");
  EXPECT_EQ(entry_complaint(R"({"dtype":"F32","shape":[1],"data_offsets":4})"),
            "data_offsets must be a list, got number");
  EXPECT_EQ(entry_complaint(R"({"dtype":"F4","shape":[],"data_offsets":[0,1]})"),
            "unknown dtype 'F4'; known: F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8, "
            "BOOL, F8_E4M3, F8_E5M2, F8_E8M0, C64");
  EXPECT_EQ(entry_complaint(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})"),
            "shape must hold whole numbers >= 0, got '-1'");
  EXPECT_EQ(entry_complaint(R"({"dtype":"F32","shape":[1.5],"data_offsets":[0,4]})"),
            "shape must hold whole numbers >= 0, got '1.5'");
  EXPECT_EQ(
      entry_complaint(R"({"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]})"),
      "shape has 18446744073709551615, beyond 2^63");
  EXPECT_EQ(entry_complaint(R"({"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]})"),
            "has 9 axes, more than 8");
}

TEST(BadSafetensors, SizesThatWrapAround) {
  // 4194305·4194305·211106198978564 = 2^64·… + 4: a reader that multiplies first sees four
  // elements.
  EXPECT_EQ(
      entry_complaint(
          R"({"dtype":"F32","shape":[4194305,4194305,211106198978564],"data_offsets":[0,16]})"),
      "shape (4194305, 4194305, 211106198978564) has more bytes than 64 bits can count");
  EXPECT_EQ(
      entry_complaint(R"({"dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4]})"),
      "shape (4611686018427387905) has more bytes than 64 bits can count");
  EXPECT_EQ(entry_complaint(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"),
            "shape (3) of F32 takes 12 bytes, but data_offsets 0 to 8 hold 8");
}

TEST(BadSafetensors, Offsets) {
  EXPECT_EQ(entry_complaint(R"({"dtype":"F32","shape":[1],"data_offsets":[-4,0]})"),
            "data_offsets must hold whole numbers >= 0, got '-4'");
  EXPECT_EQ(entry_complaint(R"({"dtype":"F32","shape":[1],"data_offsets":[4]})"),
            "data_offsets must hold 2 numbers, got 1");
  EXPECT_EQ(entry_complaint(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4,8]})"),
            "data_offsets must hold 2 numbers, got 3");
  EXPECT_EQ(entry_complaint(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})"),
            "data_offsets end before they begin: 4 to 0");
  EXPECT_EQ(entry_complaint(R"({"dtype":"F32","shape":[4],"data_offsets":[0,16]})"),
            "ends at byte 16 of the data, but the file holds 8; the file is truncated, download or "
            "save it again");
  const auto two = [](uint64_t begin, size_t size) {
    return complaint(safetensors_file("{" + tensor_json("a", "F32", "1", 0, 4) + "," +
                                          tensor_json("b", "F32", "1", begin, begin + 4) + "}",
                                      std::string(size, 'x')));
  };
  EXPECT_EQ(two(2, 8), "tensors 'a' (0 to 4) and 'b' (2 to 6) overlap");
  EXPECT_EQ(two(6, 10), "bytes 4 to 6 of the data, before tensor 'b', belong to no tensor");
  EXPECT_EQ(two(4, 11), "the last 3 of 11 bytes of data belong to no tensor");
}

TEST(BadSafetensors, OtherFilesUnderThisName) {
  EXPECT_EQ(
      complaint("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n"),
      "is a Git LFS pointer of 64 bytes, not the file itself; run `git lfs pull` in its folder");
  const std::string pickle =
      "is a PyTorch pickle under another name; convert it with safetensors.torch.save_file";
  EXPECT_EQ(complaint("PK\x03\x04..............."), pickle);
  EXPECT_EQ(complaint("\x80\x02..............."), pickle);
}

// 640 is 0x0280: its bytes are those that a pickle begins with.
TEST(Safetensors, AHeaderAsLongAsAPickleBegins) {
  const std::string empty = "{" + tensor_json("", "F32", "1", 0, 4) + "}";
  const std::string name(640 - empty.size(), 'x');
  const std::string file =
      safetensors_file("{" + tensor_json(name, "F32", "1", 0, 4) + "}", std::string(4, 'x'));
  ASSERT_EQ(file.substr(0, 2), "\x80\x02");
  EXPECT_EQ(complaint(file), "without a name: no error");
}

TEST(BadSafetensors, PathsThatAreNoFile) {
  const TemporaryFolder folder;
  const auto complaint_of = [&](const std::string& path) {
    return message_of([&] { Safetensors file(path); });
  };
  EXPECT_EQ(complaint_of(folder / "none"),
            "[safetensors] " + (folder / "none") + ": No such file or directory");
  EXPECT_EQ(complaint_of(folder.path()),
            "[safetensors] " + folder.path() + ": is a folder, not a file");
  std::filesystem::create_symlink("b", folder / "a");
  std::filesystem::create_symlink("a", folder / "b");
  EXPECT_EQ(complaint_of(folder / "a"),
            "[safetensors] " + (folder / "a") + ": Too many levels of symbolic links");
  EXPECT_EQ(complaint_of("/dev/zero"), "[safetensors] /dev/zero: is not a regular file");
}

TEST(BadSafetensors, EveryTruncationIsAnError) {
  const std::vector<float> f = {1, 2, 3};
  const std::string whole =
      safetensors_file("{" + tensor_json("f", "F32", "3", 0, 12) + "}", bytes_of<float>(f));
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(complaint(whole.substr(0, size)).empty()) << size;
  const TemporaryFolder folder;
  Safetensors(folder.write("a.safetensors", whole));  // and the whole is none
}

TEST(BadSafetensors, LiesAboutSizesAllocateNothing) {
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  EXPECT_EQ(entry_complaint(
                R"({"dtype":"F32","shape":[1099511627776],"data_offsets":[0,4398046511104]})"),
            "ends at byte 4398046511104 of the data, but the file holds 8; the file is truncated, "
            "download or save it again");
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 64 << 10);  // in KB
}

}  // namespace
}  // namespace locant
