#include "cli/show/pictures.h"

namespace locant::cli {

const std::vector<std::pair<std::string, MakeFigure>>& pictures() {
  static const std::vector<std::pair<std::string, MakeFigure>> all = {
      {"none", draw_none},
      {"sinusoidal", draw_sinusoidal},
      {"learned", draw_learned},
      {"shaw", draw_shaw},
      {"transformer_xl", draw_transformer_xl},
      {"xlnet", draw_xlnet},
      {"t5", draw_t5},
      {"alibi", draw_alibi},
      {"kerple", draw_kerple},
      {"deberta", draw_deberta},
      {"rope", draw_rope},
  };
  return all;
}

}  // namespace locant::cli
