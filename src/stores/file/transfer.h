// Moves a value between a file and buffer lists, without a copy in between.
#pragma once

#include "vitrove/embedding_store.h"

namespace vitrove::file {

// Reads a whole value of the lists' size; reports pieces to the context's observer. Answers 0,
// errno, or ENODATA when the file ended too early; ETIMEDOUT or ECANCELED when the context ends.
int read_value(int fd, MutableBufferList buffers, std::size_t key_index,
               const StoreContext& context);

// Writes a whole value from the start of the file. Answers 0 or errno as above.
int write_value(int fd, ConstBufferList buffers, const StoreContext& context);

}  // namespace vitrove::file
