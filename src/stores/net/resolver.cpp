#include "stores/net/resolver.h"

#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include <netdb.h>

namespace vitrove::net {
namespace {

struct Answer {
  int error = 0;
  std::vector<Address> addresses;
};

Answer ask_system(const Endpoint& endpoint, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  Answer answer;
  answer.error =
      ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &list);
  if (answer.error != 0) return answer;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    Address address;
    std::memcpy(&address.storage, one->ai_addr, one->ai_addrlen);
    address.length = one->ai_addrlen;
    answer.addresses.push_back(address);
  }
  return answer;
}

// Shared with the thread that may outlive whoever asked.
struct Lookup {
  std::mutex mutex;
  std::condition_variable_any changed;
  bool done = false;
  Answer answer;
};

void look_up(const std::shared_ptr<Lookup>& lookup, const Endpoint& endpoint) noexcept {
  Answer answer;
  try {
    answer = ask_system(endpoint, 0);
  } catch (...) {
    answer.error = EAI_MEMORY;
  }
  {
    std::lock_guard lock(lookup->mutex);
    lookup->answer = std::move(answer);
    lookup->done = true;
  }
  lookup->changed.notify_all();
}

}  // namespace

std::vector<Address> resolve(const Endpoint& endpoint, Clock::time_point deadline,
                             const std::stop_token& cancel, Fault& fault) {
  Answer numeric = ask_system(endpoint, AI_NUMERICHOST);
  if (numeric.error == 0) return std::move(numeric.addresses);

  const auto lookup = std::make_shared<Lookup>();
  try {
    std::thread([lookup, endpoint] { look_up(lookup, endpoint); }).detach();
  } catch (const std::system_error& error) {
    fault = {StoreStatus::unavailable, error.code().value(), "no thread to resolve a name"};
    return {};
  }
  std::unique_lock lock(lookup->mutex);
  if (!lookup->changed.wait_until(lock, cancel, deadline, [&] { return lookup->done; })) {
    const bool left = cancel.stop_requested();
    fault = {left ? StoreStatus::cancelled : StoreStatus::timeout, 0,
             "the name of the host was not resolved in time"};
    return {};
  }
  if (lookup->answer.error != 0) {
    fault = {StoreStatus::unavailable, 0,
             std::string("cannot resolve the name of the host: ") +
                 ::gai_strerror(lookup->answer.error)};
  }
  return std::move(lookup->answer.addresses);
}

}  // namespace vitrove::net
