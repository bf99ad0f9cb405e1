// One client of the cache: asks, leaves, fails, removes, flushes, damages, and checks every view
// that it gets, for as long as it holds it.
#pragma once

#include <deque>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "soak/world.h"

namespace vitrove::soak {

class Client {
 public:
  Client(World& world, unsigned seed) : world_(world), random_(seed) {}

  // One operation. Throws Broken, or what should not have been thrown.
  void act();
  // Gives all pins back.
  void rest() { held_.clear(); }
  // A whole request for one item. True when this client encoded it.
  bool ask_for(const Item& item);

 private:
  // A fill that this client owes; letting it go means that the leader left.
  class Duty {
   public:
    Duty(World& world, FillTicket ticket, std::size_t number, std::uint64_t asked);
    ~Duty() { end(); }
    Duty(Duty&&) = delete;
    FillTicket& ticket() { return ticket_; }
    EmbeddingView publish(const Item& item);
    void end();

   private:
    World& world_;
    FillTicket ticket_;
    std::size_t number_;
    bool ended_ = false;
  };

  std::size_t any();
  bool one_in(unsigned n) { return random_() % n == 0; }
  RequestContext patient() const { return testing::request(); }
  RequestContext hasty();
  void hold(EmbeddingView view, const Item& item);

  void ask(const RequestContext& context);
  void serve(Acquired& answer, std::size_t number, std::uint64_t asked);
  // What the store has by now, if it has it.
  std::optional<EmbeddingView> claim(Duty& duty);
  void wait(JoinTicket& join, std::size_t number, std::uint64_t asked,
            const RequestContext& context);
  void hit_often();
  void leave();
  void fail();
  void spoil();
  void find();
  void remove();
  void flush();
  void damage();
  void twin();

  World& world_;
  std::minstd_rand random_;
  std::deque<std::pair<EmbeddingView, const Item*>> held_;
};

}  // namespace vitrove::soak
