#include "locant/core/fields.h"

#include <algorithm>
#include <charconv>

namespace locant::inline v0 {
namespace {

std::string number_text(double number) {
  char buffer[32];
  // The shortest text that reads back as the same number.
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, number);
  (void)error;  // 32 characters hold every double
  return std::string(buffer, end);
}

std::string list_text(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ", ") + item;
  return text;
}

template <class Number>
bool parse_number(const std::string& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return !text.empty() && error == std::errc() && end == text.data() + text.size();
}

[[noreturn]] void fail_parse(std::string_view scope, const Field& field, const std::string& text) {
  fail(scope, field.name, " must be ", type_name_of(field.fallback), ", got '", text, "'");
}

}  // namespace

std::string text_of(const FieldValue& value) {
  struct Text {
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(int64_t number) const { return std::to_string(number); }
    std::string operator()(double number) const { return number_text(number); }
    std::string operator()(const std::string& text) const { return text; }
    std::string operator()(const std::vector<double>& numbers) const {
      std::string text;
      for (const double number : numbers) {
        if (!text.empty()) text += ',';
        text += number_text(number);
      }
      return text;
    }
  };
  return std::visit(Text{}, value);
}

const char* type_name_of(const FieldValue& value) {
  struct Name {
    const char* operator()(bool) const { return "true or false"; }
    const char* operator()(int64_t) const { return "an integer"; }
    const char* operator()(double) const { return "a number"; }
    const char* operator()(const std::string&) const { return "a string"; }
    const char* operator()(const std::vector<double>&) const { return "a list of numbers"; }
  };
  return std::visit(Name{}, value);
}

FieldValue converted(std::string_view scope, const Field& field, const FieldValue& given) {
  if (given.index() == field.fallback.index()) {
    const std::string* text = std::get_if<std::string>(&given);
    if (text == nullptr || field.choices.empty()) return given;
    for (const std::string& choice : field.choices)
      if (choice == *text) return given;
    fail(scope, field.name, " must be one of ", list_text(field.choices), ", got '", *text, "'");
  }
  if (std::holds_alternative<double>(field.fallback) && std::holds_alternative<int64_t>(given))
    return static_cast<double>(std::get<int64_t>(given));
  fail(scope, field.name, " must be ", type_name_of(field.fallback), ", got ", type_name_of(given),
       " (", text_of(given), ")");
}

FieldValue parse_field(std::string_view scope, const Field& field, const std::string& text) {
  switch (field.fallback.index()) {
    case 0:
      if (text == "true" || text == "1") return true;
      if (text == "false" || text == "0") return false;
      fail_parse(scope, field, text);
    case 1: {
      int64_t number = 0;
      if (!parse_number(text, number)) fail_parse(scope, field, text);
      return number;
    }
    case 2: {
      double number = 0;
      if (!parse_number(text, number)) fail_parse(scope, field, text);
      return number;
    }
    case 3:
      return converted(scope, field, text);
    default: {
      std::vector<double> numbers;
      for (size_t begin = 0; begin < text.size();) {
        const size_t comma = std::min(text.find(',', begin), text.size());
        double number = 0;
        if (!parse_number(text.substr(begin, comma - begin), number) || comma + 1 == text.size())
          fail_parse(scope, field, text);
        numbers.push_back(number);
        begin = comma + 1;
      }
      return numbers;
    }
  }
}

}  // namespace locant::inline v0
