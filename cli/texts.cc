#include "cli/texts.h"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "locant/core/error.h"

namespace locant::cli {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // some editors begin a file with it

}  // namespace

void for_each_line(const char* scope, const std::string& path,
                   const std::function<void(const std::string& line, int64_t number)>& take) {
  std::ifstream file;
  if (path != "-") {
    require(!std::filesystem::is_directory(path), scope, path,
            ": is a folder, not a file of texts");
    file.open(path);
    require(file.is_open(), scope, path, ": cannot be read");
  }
  std::istream& in = path == "-" ? std::cin : file;
  std::string line;
  for (int64_t number = 1; std::getline(in, line); ++number) {
    if (line.ends_with('\r')) line.pop_back();
    if (number == 1 && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
    take(line, number);
  }
  require(!in.bad(), scope, path, ": reading failed");
}

std::vector<Passage> read_text_lines(const char* scope, const std::string& path) {
  std::vector<Passage> out;
  for_each_line(scope, path, [&](const std::string& line, int64_t) {
    out.push_back({line, std::nullopt});
  });
  return out;
}

std::vector<Passage> read_json_lines(const char* scope, const std::string& path) {
  std::vector<Passage> out;
  for_each_line(scope, path, [&](const std::string& line, int64_t number) {
    if (line.find_first_not_of(" \t") == std::string::npos) return;
    try {
      const nlohmann::json value = nlohmann::json::parse(line);
      Passage passage;
      if (value.is_string()) {
        passage.text = value;
      } else if (value.is_array()) {
        require(value.size() <= 2, scope, path, ": line ", number, " has ", value.size(),
                " texts, but a text has at most one behind it");
        passage.text = value.at(0);
        if (value.size() > 1) passage.pair = value.at(1).get<std::string>();
      } else {
        passage.text = value.at("text");
        if (value.contains("text_pair") && !value.at("text_pair").is_null())
          passage.pair = value.at("text_pair").get<std::string>();
      }
      out.push_back(std::move(passage));
    } catch (const nlohmann::json::exception& error) {
      fail(scope, path, ": line ", number,
           " must be \"text\" or {\"text\": ..., \"text_pair\": ...} in JSON: ", error.what());
    }
  });
  return out;
}

std::vector<Passage> passages_of(const char* scope, const std::vector<std::string>& texts,
                                 const std::vector<std::string>& pairs) {
  require(pairs.empty() || pairs.size() == texts.size(), scope, "there are ", texts.size(),
          " --text but ", pairs.size(), " --pair; give one for each text, or none");
  std::vector<Passage> out;
  for (size_t n = 0; n < texts.size(); ++n)
    out.push_back({texts[n], pairs.empty() ? std::nullopt : std::optional(pairs[n])});
  return out;
}

}  // namespace locant::cli
