#include "vitrove/params.h"

#include "identity/canonical_encoder.h"

namespace vitrove {

std::string ResolvedParams::canonical() const {
  CanonicalEncoder encoder;
  encoder.params(*this);
  return encoder.take();
}

}  // namespace vitrove
