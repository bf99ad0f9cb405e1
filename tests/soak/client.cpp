#include "soak/client.h"

#include <limits>
#include <thread>

namespace vitrove::soak {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t hot_items = 40;
constexpr std::size_t views_held = 3;

EncodedRows rows_of(const Item& item) {
  return {item.golden, item.picture.rows, item.picture.side(), 1000us};
}

std::vector<ValueExpectation> expectations(const World& world,
                                           std::span<const std::size_t> numbers) {
  std::vector<ValueExpectation> expected;
  for (const std::size_t number : numbers) {
    expected.push_back(world.item(number).picture.expectation());
  }
  return expected;
}

}  // namespace

Client::Duty::Duty(World& world, FillTicket ticket, std::size_t number, std::uint64_t asked)
    : world_(world), ticket_(std::move(ticket)), number_(number) {
  world_.leaders().begin(number_, asked);
}

void Client::Duty::end() {
  if (!std::exchange(ended_, true)) world_.leaders().end(number_);
}

EmbeddingView Client::Duty::publish(const Item& item) {
  ++world_.tally().encodes;
  end();
  return ticket_.publish(rows_of(item));
}

void Client::act() {
  ++world_.tally().operations;
  const unsigned choice = random_() % 64;
  if (choice < 30) {
    ask(patient());
  } else if (choice < 44) {
    hit_often();
  } else if (choice < 48) {
    ask(hasty());
  } else if (choice < 51) {
    leave();
  } else if (choice < 53) {
    fail();
  } else if (choice < 54) {
    spoil();
  } else if (choice < 57) {
    find();
  } else if (choice < 59) {
    remove();
  } else if (choice < 60) {
    if (one_in(8)) flush();
  } else if (choice < 62) {
    damage();
  } else {
    twin();
  }
  while (held_.size() > views_held) {
    world_.check(held_.front().first, *held_.front().second);
    held_.pop_front();
  }
}

// Two of three times one of a few, so that there are hits.
std::size_t Client::any() {
  if (one_in(500)) return 0;
  return 1 + random_() % (one_in(3) ? World::items - 1 : hot_items);
}

// Callers who give up at once, soon, or before they began.
RequestContext Client::hasty() {
  RequestContext context = patient();
  context.deadline = testing::Clock::now() + std::chrono::microseconds(random_() % 3000);
  if (one_in(4)) {
    std::stop_source source;
    source.request_stop();
    context.cancel = source.get_token();
  }
  return context;
}

void Client::hold(EmbeddingView view, const Item& item) {
  world_.check(view, item);
  if (one_in(16)) view.detach();
  held_.emplace_back(std::move(view), &item);
}

void Client::ask(const RequestContext& context) {
  std::vector<std::size_t> numbers;
  for (std::size_t n = 1 + random_() % 4; n > 0; --n) numbers.push_back(any());
  const auto expected = expectations(world_, numbers);
  std::vector<std::uint64_t> asked;
  for (const std::size_t number : numbers) asked.push_back(world_.leaders().moment(number));
  auto answers = world_.cache().acquire(expected, context);
  require(answers.size() == numbers.size(), "not one answer an item");
  for (std::size_t i = 0; i < numbers.size(); ++i) serve(answers[i], numbers[i], asked[i]);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (auto* join = std::get_if<JoinTicket>(&answers[i]))
      wait(*join, numbers[i], asked[i], context);
  }
}

void Client::serve(Acquired& answer, std::size_t number, std::uint64_t asked) {
  const Item& item = world_.item(number);
  if (auto* hit = std::get_if<Hit>(&answer)) return hold(std::move(hit->view), item);
  auto* fill = std::get_if<FillTicket>(&answer);
  if (fill == nullptr) return;
  Duty duty(world_, std::move(*fill), number, asked);
  if (one_in(3)) {
    if (auto view = claim(duty)) return hold(std::move(*view), item);
  }
  // Others come while it is encoded.
  if (one_in(4)) std::this_thread::sleep_for(std::chrono::microseconds(random_() % 1000));
  hold(duty.publish(item), item);
}

// As a server does before it encodes. Whoever is served that way is no leader any more by the time
// we hear of it, so that this duty is not looked at.
std::optional<EmbeddingView> Client::claim(Duty& duty) {
  duty.end();
  if (one_in(2)) {
    duty.ticket().begin_claim(patient());
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % 500));
  }
  auto claim = duty.ticket().claim(patient(), one_in(4));
  if (claim.outcome != FillTicket::Claim::served) return std::nullopt;
  return std::move(claim.view);
}

// `asked`: when the request began. The fill may have been taken from its leader since.
void Client::wait(JoinTicket& join, std::size_t number, std::uint64_t asked,
                  const RequestContext& context) {
  const Item& item = world_.item(number);
  try {
    auto outcome = join.wait(context);
    if (auto* view = std::get_if<EmbeddingView>(&outcome)) return hold(std::move(*view), item);
    Duty duty(world_, std::move(std::get<FillTicket>(outcome)), number, asked);
    hold(duty.publish(item), item);
  } catch (const Error& error) {
    const bool gave_up =
        error.code() == ErrorCode::deadline_exceeded || error.code() == ErrorCode::cancelled;
    require(gave_up, std::string("a joined fill failed: ") + error.what());
    ++world_.tally().left;
  }
}

bool Client::ask_for(const Item& item) {
  const auto expected = item.picture.expectation();
  auto answer = std::move(world_.cache().acquire({&expected, 1}, patient())[0]);
  if (auto* join = std::get_if<JoinTicket>(&answer)) {
    auto outcome = join->wait(patient());
    require(std::holds_alternative<EmbeddingView>(outcome), "a leader who published was followed");
    world_.check(std::get<EmbeddingView>(outcome), item);
    return false;
  }
  if (auto* hit = std::get_if<Hit>(&answer)) {
    world_.check(hit->view, item);
    return false;
  }
  std::this_thread::yield();
  world_.check(std::get<FillTicket>(answer).publish(rows_of(item)), item);
  return true;
}

void Client::hit_often() {
  for (int i = 0; i < 20; ++i) {
    const Item& item = world_.item(any());
    if (EmbeddingView view = world_.cache().try_get(item.picture.key())) world_.check(view, item);
  }
  std::vector<std::size_t> numbers(20);
  std::vector<EmbeddingKey> keys;
  for (std::size_t& number : numbers) {
    number = any();
    keys.push_back(world_.item(number).picture.key());
  }
  std::vector<EmbeddingView> views(numbers.size());
  world_.cache().try_get(keys, views);
  for (std::size_t i = 0; i < views.size(); ++i) {
    if (views[i]) world_.check(views[i], world_.item(numbers[i]));
  }
}

void Client::leave() {
  const std::vector<std::size_t> numbers{any(), any()};
  const auto expected = expectations(world_, numbers);
  const auto answers = world_.cache().acquire(expected, patient());
  ++world_.tally().left;
}

void Client::fail() {
  const std::size_t number = any();
  const auto expected = world_.item(number).picture.expectation();
  const std::uint64_t asked = world_.leaders().moment(number);
  auto answer = std::move(world_.cache().acquire({&expected, 1}, patient())[0]);
  auto* fill = std::get_if<FillTicket>(&answer);
  if (fill == nullptr) return;
  Duty duty(world_, std::move(*fill), number, asked);
  duty.end();
  duty.ticket().fail(Error(ErrorCode::internal, "the encoder had no luck"));
}

void Client::spoil() {
  const std::size_t number = any();
  const Item& item = world_.item(number);
  const auto expected = item.picture.expectation();
  const std::uint64_t asked = world_.leaders().moment(number);
  auto answer = std::move(world_.cache().acquire({&expected, 1}, patient())[0]);
  auto* fill = std::get_if<FillTicket>(&answer);
  if (fill == nullptr) return;
  Duty duty(world_, std::move(*fill), number, asked);
  auto rows = item.picture.golden();
  rows[random_() % rows.size()] = std::numeric_limits<float>::quiet_NaN();
  duty.end();
  bool refused = false;
  try {
    duty.ticket().publish({testing::bytes_of(rows), item.picture.rows, item.picture.side(), 1ms});
  } catch (const Error&) {
    refused = true;
  }
  require(refused, "rows that are no numbers were published");
}

void Client::find() {
  const Item& item = world_.item(any());
  auto hit = world_.cache().find(item.picture.key(), std::nullopt, patient());
  if (hit) world_.check(hit->view, item);
}

void Client::remove() {
  const std::size_t number = any();
  const Leaders::Disturbance disturbance(world_.leaders(), number);
  world_.cache().remove(world_.item(number).picture.key(), std::nullopt, patient());
}

void Client::flush() {
  const Leaders::Disturbance disturbance(world_.leaders());
  const auto model = one_in(2) ? std::optional(sha256("other")) : std::nullopt;
  RequestContext context = patient();
  context.deadline = testing::Clock::now() + 1s;  // a store may hang
  world_.cache().flush(static_cast<FlushScope>(random_() % 3), model, context);
}

// A bit is flipped in what a store holds.
void Client::damage() {
  const Item& item = world_.item(1 + any() % (World::items - 1));
  auto value = testing::stored_value(item.picture);
  value[random_() % value.size()] ^= std::byte{16};
  FaultyStore& store = one_in(2) ? world_.near() : world_.far();
  testing::put_one(store.inner(), item.picture.key(), value, PutMode::replace);
}

void Client::twin() {
  const Item& item = world_.twin(random_() % World::twins);
  Picture file = item.picture;
  if (one_in(2)) file.name += ", wrapped anew";
  auto answer = testing::acquire_one(world_.cache(), file);
  if (auto* hit = std::get_if<Hit>(&answer)) return world_.check(hit->view, item);
  auto* fill = std::get_if<FillTicket>(&answer);
  if (fill == nullptr) return;
  const EmbeddingKey features{sha256("features of " + item.picture.name)};
  if (auto found = fill->resolve_features(features, patient())) {
    return world_.check(found->first, item);
  }
  ++world_.tally().encodes;
  world_.check(fill->publish(rows_of(item)), item);
}

}  // namespace vitrove::soak
