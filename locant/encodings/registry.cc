#include "locant/encodings/registry.h"

#include "locant/encodings/alibi/alibi.h"
#include "locant/encodings/deberta/deberta.h"
#include "locant/encodings/kerple/kerple.h"
#include "locant/encodings/learned/learned.h"
#include "locant/encodings/none/none.h"
#include "locant/encodings/rope/rope.h"
#include "locant/encodings/shaw/shaw.h"
#include "locant/encodings/sinusoidal/sinusoidal.h"
#include "locant/encodings/t5/t5.h"
#include "locant/encodings/transformer_xl/transformer_xl.h"
#include "locant/encodings/xlnet/xlnet.h"

namespace locant::inline v0 {
namespace {

template <class E>
EncodingEntry entry() {
  return {
      E::kName,
      E::kClassName,
      E::kSummary,
      E::description().describe(),
      [](const FieldValues& fields) { return std::make_unique<E>(E::description().parse(fields)); },
      E::cases()};
}

}  // namespace

const std::vector<EncodingEntry>& encodings() {
  static const std::vector<EncodingEntry> all = {
      // The empty comments keep one entry to a line.
      entry<None>(),           //
      entry<Sinusoidal>(),     //
      entry<Learned>(),        //
      entry<Shaw>(),           //
      entry<TransformerXL>(),  //
      entry<XLNet>(),          //
      entry<T5>(),             //
      entry<Alibi>(),          //
      entry<Kerple>(),         //
      entry<Deberta>(),        //
      entry<Rope>(),
  };
  return all;
}

const EncodingEntry& find_encoding(const std::string& name) {
  std::string known;
  for (const EncodingEntry& encoding : encodings()) {
    if (encoding.name == name) return encoding;
    known += (known.empty() ? "" : ", ") + encoding.name;
  }
  fail("encodings", "unknown encoding '", name, "'; known: ", known);
}

std::unique_ptr<Encoding> make_encoding(const std::string& name, const FieldValues& fields) {
  return find_encoding(name).make(fields);
}

}  // namespace locant::inline v0
