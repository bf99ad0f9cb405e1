// One command of a batch and its answer.
#pragma once

#include <string>

#include "stores/redis/network.h"
#include "stores/redis/resp.h"

namespace vitrove::redis {

struct Command {
  // What is sent: head, payload, tail. The payload's buffers are the caller's.
  std::string head;
  ConstBufferList payload;
  std::string tail;

  // Where a bulk reply of exactly `target_bytes` goes. Without a target it goes into the reply.
  MutableBufferList target;
  std::uint64_t target_bytes = 0;
  // For the observer: whose value, and where in it the target lies.
  std::size_t key_index = 0;
  std::uint64_t target_offset = 0;

  std::uint16_t slot = 0;  // of its key
  bool repeatable = true;  // sending it twice does no harm
  bool asking = false;     // sent after ASKING, to a server that imports the slot

  // The answer. Of a bulk for `target` only `number`, its size, is filled in; the bytes are in the
  // target when that is `target_bytes`, and dropped otherwise.
  bool answered = false;
  Reply reply;
  Fault fault;  // why there is no answer
};

}  // namespace vitrove::redis
