// What doctor says of the claims of a store, by which servers that share it keep from encoding the
// same item at the same time.
#pragma once

#include "cli/file_store_check.h"
#include "vitrove/embedding_store.h"

namespace vitrove::cli {

// Claims the key, which nobody else may have, tries to claim it once more, and renews and releases
// it. Claims that do not work are a warning: servers encode without them. One that could not be
// released goes by itself after a few seconds.
Remarks remarks_on_claims(EmbeddingStore& store, const EmbeddingKey& key);

}  // namespace vitrove::cli
