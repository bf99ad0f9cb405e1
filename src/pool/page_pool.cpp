#include "vitrove/page_pool.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "pool/arena.h"
#include "pool/page_guard.h"
#include "pool/row_layout.h"
#include "pool/run_allocator.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(NDEBUG)
constexpr bool poison_by_default = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool poison_by_default = true;
#else
constexpr bool poison_by_default = false;
#endif
#else
constexpr bool poison_by_default = false;
#endif

[[noreturn]] void bad_option(const std::string& what) {
  throw Error(ErrorCode::invalid_argument, "pool: " + what);
}

PagePoolOptions checked(const PagePoolOptions& options) {
  constexpr std::uint64_t min_page = 4096;
  constexpr std::uint64_t max_page = std::uint64_t{1} << 30;
  constexpr std::uint64_t max_pool = std::uint64_t{1} << 60;
  if (!std::has_single_bit(options.page_bytes)) bad_option("page size must be a power of two");
  if (options.page_bytes < min_page || options.page_bytes > max_page) {
    bad_option("page size must be from 4 KiB to 1 GiB");
  }
  if (options.pool_bytes > max_pool ||
      options.pool_bytes / options.page_bytes > RunAllocator::max_pages) {
    bad_option("pool size needs more pages than there can be; use larger pages");
  }
  if (options.staging_pages > RunAllocator::max_pages) bad_option("too many staging pages");
  return options;
}

std::uint32_t data_pages(const PagePoolOptions& options) {
  return static_cast<std::uint32_t>(options.pool_bytes / options.page_bytes);
}

// No overflow: 2^60 of data, and at most 2^31 staging pages of at most 2^30 bytes.
std::uint64_t slots_offset(const PagePoolOptions& options) {
  return (std::uint64_t{data_pages(options)} + options.staging_pages) * options.page_bytes;
}

std::uint64_t arena_bytes(const PagePoolOptions& options) {
  return slots_offset(options) + std::uint64_t{options.header_slots} * PagePool::header_slot_bytes;
}

// The rule that `allocate` promises and `can_ever_fit` shares; 2^32 rows do not fit a segment.
bool is_sound(const PayloadShape& shape) {
  const auto bytes = shape.bytes();
  return shape.row_bytes > 0 && bytes && *bytes > 0 &&
         shape.rows <= std::numeric_limits<std::uint32_t>::max();
}

}  // namespace

struct PagePool::Impl {
  explicit Impl(const PagePoolOptions& given)
      : options(checked(given)),
        arena({arena_bytes(options), options.huge_pages, options.pin_memory, options.numa_node,
               options.cuda_library}),
        warnings(arena.warnings()),
        poison_on_free(options.poison_on_free.value_or(poison_by_default)),
        pages(data_pages(options)),
        staging(options.staging_pages) {
    if (options.pool_bytes > 0 && pages.pages() == 0) {
      warnings.push_back("the pool is off: its size is less than one page");
    }
    free_slots.reserve(options.header_slots);
    for (std::uint32_t i = options.header_slots; i > 0; --i) free_slots.push_back(i - 1);
  }
  // Whoever maps this address next may use it.
  ~Impl() {
    if (ever_poisoned.count > 0) allow_access(run_bytes(ever_poisoned));
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::byte* page_address(std::uint64_t page) const {
    return arena.bytes().data() + page * options.page_bytes;
  }

  std::optional<PageRuns> allocate(const PayloadShape& shape, std::size_t max_runs) {
    if (!is_sound(shape)) return std::nullopt;
    const std::scoped_lock lock(mutex);
    auto runs = allocate_rows(pages, shape, options.page_bytes, max_runs);
    if (runs && poison_on_free) {
      for (const auto& segment : runs->segments) allow_access(run_bytes(segment.run));
    }
    return runs;
  }

  std::span<std::byte> run_bytes(const PageRun& run) const {
    return {page_address(run.first), run.count * options.page_bytes};
  }
  // Under the mutex.
  void fill_with_poison(const PageRun& run) {
    if (run.count == 0) return;
    fill_and_forbid(run_bytes(run), poison);
    const bool is_first = ever_poisoned.count == 0;
    const std::uint32_t end =
        std::max(run.first + run.count, is_first ? 0 : ever_poisoned.first + ever_poisoned.count);
    ever_poisoned.first = is_first ? run.first : std::min(run.first, ever_poisoned.first);
    ever_poisoned.count = end - ever_poisoned.first;
  }

  void give_back_staging(const PageRun& run) {
    const std::scoped_lock lock(mutex);
    staging.release(run);
  }

  void give_back_slot(std::uint32_t index) {
    const std::scoped_lock lock(mutex);
    free_slots.push_back(index);
  }

  const PagePoolOptions options;
  const Arena arena;
  std::vector<std::string> warnings;
  const bool poison_on_free;

  mutable std::mutex mutex;  // guards all below
  RunAllocator pages;
  RunAllocator staging;
  std::vector<std::uint32_t> free_slots;
  // From the first to the last page that was ever released: a whole arena may be far larger than
  // what was used of it.
  PageRun ever_poisoned{0, 0};
};

PagePool::PagePool(const PagePoolOptions& options) : impl_(std::make_unique<Impl>(options)) {}
PagePool::~PagePool() = default;

std::optional<PageRuns> PagePool::allocate(std::uint64_t rows, std::uint64_t row_bytes,
                                           std::uint64_t tail_bytes, std::size_t max_runs) {
  if (rows == 0) return std::nullopt;
  return impl_->allocate({rows, row_bytes, tail_bytes}, max_runs);
}

std::optional<PageRuns> PagePool::allocate_payload(std::uint64_t payload_bytes,
                                                   std::uint64_t row_bytes, std::size_t max_runs) {
  if (row_bytes == 0) return std::nullopt;
  return impl_->allocate({payload_bytes / row_bytes, row_bytes, payload_bytes % row_bytes},
                         max_runs);
}

void PagePool::release(const PageRuns& runs) {
  for (const auto& segment : runs.segments) impl_->pages.prefetch(segment.run);
  const std::scoped_lock lock(impl_->mutex);
  for (const auto& segment : runs.segments) {
    if (impl_->pages.is_taken(segment.run)) continue;
    throw std::logic_error("page pool: released a run that is not allocated");
  }
  // Under the lock: a page must not be somebody else's before it is poisoned.
  for (const auto& segment : runs.segments) {
    if (impl_->poison_on_free) impl_->fill_with_poison(segment.run);
    impl_->pages.release(segment.run);
  }
}

void PagePool::trim_to_rows(PageRuns& runs, std::uint64_t row_bytes) {
  const std::uint64_t page = page_bytes();
  PageRuns kept;
  const std::scoped_lock lock(impl_->mutex);
  for (auto segment : runs.segments) {
    segment.bytes = std::min(segment.bytes, segment.rows * row_bytes);
    const auto count = static_cast<std::uint32_t>((segment.bytes + page - 1) / page);
    const PageRun rest{segment.run.first + count, segment.run.count - count};
    if (impl_->poison_on_free) impl_->fill_with_poison(rest);
    if (count == 0) {
      impl_->pages.release(segment.run);
      continue;
    }
    impl_->pages.shrink(segment.run, count);
    segment.run.count = count;
    kept.segments.push_back(segment);
  }
  runs = std::move(kept);
}

bool PagePool::can_ever_fit(std::uint64_t rows, std::uint64_t row_bytes,
                            std::uint64_t tail_bytes) const {
  const PayloadShape shape{rows, row_bytes, tail_bytes};
  return rows > 0 && is_sound(shape) && *shape.bytes() <= total_pages() * page_bytes();
}

bool PagePool::would_fit(std::uint64_t rows, std::uint64_t row_bytes, std::uint64_t tail_bytes,
                         std::span<const PageRun> extra_free) {
  if (!can_ever_fit(rows, row_bytes, tail_bytes)) return false;
  const std::scoped_lock lock(impl_->mutex);
  RunAllocator& pages = impl_->pages;
  // Tried out for real and undone in reverse order: exact, and no second model to keep in step.
  struct Undo {
    PageRun merged;
    PageRun run;
    std::uint32_t owner;
  };
  std::vector<Undo> undo;
  undo.reserve(extra_free.size());
  const auto roll_back = [&] {
    for (auto step = undo.rbegin(); step != undo.rend(); ++step) {
      pages.carve(step->merged, step->run);
      pages.set_owner(step->run, step->owner);
    }
  };
  for (const PageRun& run : extra_free) {
    if (!pages.is_taken(run)) {
      roll_back();
      throw std::logic_error("page pool: asked about a run that is not allocated");
    }
    const std::uint32_t owner = pages.block_from(run.first).owner;
    undo.push_back({pages.release(run), run, owner});
  }
  const auto runs = allocate_rows(pages, {rows, row_bytes, tail_bytes}, page_bytes(), any_number);
  if (runs) {
    for (const auto& segment : runs->segments) pages.release(segment.run);
  }
  roll_back();
  return runs.has_value();
}

std::uint32_t PagePool::longest_free_run() const {
  const std::scoped_lock lock(impl_->mutex);
  const auto longest = impl_->pages.longest();
  return longest ? longest->count : 0;
}

void PagePool::set_owner(const PageRuns& runs, std::uint32_t owner) {
  const std::scoped_lock lock(impl_->mutex);
  for (const auto& segment : runs.segments) impl_->pages.set_owner(segment.run, owner);
}

std::vector<PageBlock> PagePool::blocks() const {
  const std::scoped_lock lock(impl_->mutex);
  std::vector<PageBlock> blocks;
  for (std::uint32_t page = 0; page < impl_->pages.pages();) {
    blocks.push_back(impl_->pages.block_from(page));
    page += blocks.back().run.count;
  }
  return blocks;
}

std::vector<PageBlock> PagePool::blocks_around(const PageRun& run, std::uint32_t reach) const {
  const std::uint64_t start = run.first > reach ? run.first - reach : 0;
  const std::uint64_t end = std::uint64_t{run.first} + run.count + reach;
  std::vector<PageBlock> near;
  const std::scoped_lock lock(impl_->mutex);
  const RunAllocator& pages = impl_->pages;
  // Blocks can be walked from an end of one; other pages do not know their block.
  std::uint32_t page = pages.is_taken(run) ? run.first : 0;
  while (page > start) page = pages.block_before(page).run.first;
  while (page < std::min<std::uint64_t>(end, pages.pages())) {
    const PageBlock block = pages.block_from(page);
    page += block.run.count;
    if (page > start) near.push_back(block);
  }
  return near;
}

std::optional<PagePool::Staging> PagePool::borrow_staging(std::uint64_t bytes) {
  const std::uint64_t page = page_bytes();
  const std::uint64_t need = bytes / page + (bytes % page != 0 ? 1 : 0);
  const std::scoped_lock lock(impl_->mutex);
  if (need == 0 || need > impl_->staging.free_pages()) return std::nullopt;
  const auto count = static_cast<std::uint32_t>(need);
  const auto fit = impl_->staging.best_fit(count);
  if (!fit) return std::nullopt;
  Staging staging;
  staging.run_ = impl_->staging.take(*fit, count);
  staging.pool_ = this;
  staging.bytes_ = {impl_->page_address(total_pages() + staging.run_.first), bytes};
  return staging;
}

std::optional<PagePool::HeaderSlot> PagePool::borrow_header_slot() {
  const std::scoped_lock lock(impl_->mutex);
  if (impl_->free_slots.empty()) return std::nullopt;
  HeaderSlot slot;
  slot.index_ = impl_->free_slots.back();
  impl_->free_slots.pop_back();
  slot.pool_ = this;
  slot.data_ = impl_->arena.bytes().data() + slots_offset(impl_->options) +
               std::uint64_t{slot.index_} * header_slot_bytes;
  return slot;
}

std::span<std::byte> PagePool::segment_bytes(const PageRuns::Segment& segment) {
  return {impl_->page_address(segment.run.first), segment.bytes};
}

std::span<const std::byte> PagePool::segment_bytes(const PageRuns::Segment& segment) const {
  return {impl_->page_address(segment.run.first), segment.bytes};
}

namespace {

// Calls `copy(segment, offset in it, offset in the flat buffer, bytes)` for each piece.
template <class Copy>
void for_each_piece(const PageRuns& runs, std::uint64_t offset, std::uint64_t bytes, Copy copy) {
  if (offset > runs.bytes() || bytes > runs.bytes() - offset) {
    throw std::out_of_range("page pool: copy past the end of a payload");
  }
  std::uint64_t done = 0;
  for (const auto& segment : runs.segments) {
    if (done == bytes) return;
    if (offset >= segment.bytes) {
      offset -= segment.bytes;
      continue;
    }
    const std::uint64_t here = std::min(segment.bytes - offset, bytes - done);
    copy(segment, offset, done, here);
    done += here;
    offset = 0;
  }
}

}  // namespace

void PagePool::copy_out(const PageRuns& runs, std::uint64_t offset,
                        std::span<std::byte> out) const {
  for_each_piece(runs, offset, out.size(),
                 [&](const auto& segment, auto from, auto to, auto bytes) {
                   std::memcpy(out.data() + to, segment_bytes(segment).data() + from, bytes);
                 });
}

void PagePool::copy_in(const PageRuns& runs, std::uint64_t offset, std::span<const std::byte> in) {
  for_each_piece(runs, offset, in.size(), [&](const auto& segment, auto to, auto from, auto bytes) {
    std::memcpy(segment_bytes(segment).data() + to, in.data() + from, bytes);
  });
}

std::span<std::byte> PagePool::arena() { return impl_->arena.bytes(); }
int PagePool::memfd() const { return impl_->arena.memfd(); }
std::uint64_t PagePool::page_bytes() const { return impl_->options.page_bytes; }
std::uint64_t PagePool::total_pages() const { return data_pages(impl_->options); }
const std::vector<std::string>& PagePool::warnings() const { return impl_->warnings; }
const std::vector<std::string>& PagePool::notes() const { return impl_->arena.notes(); }

std::uint64_t PagePool::free_pages() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->pages.free_pages();
}

std::uint64_t PagePool::staging_pages_free() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->staging.free_pages();
}

std::uint64_t PagePool::header_slots_free() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->free_slots.size();
}

void PagePool::check_invariants() const {
  const std::scoped_lock lock(impl_->mutex);
  impl_->pages.check_invariants();
  impl_->staging.check_invariants();
}

PagePool::Staging::Staging(Staging&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      bytes_(std::exchange(other.bytes_, {})),
      run_(other.run_) {}

PagePool::Staging& PagePool::Staging::operator=(Staging&& other) noexcept {
  Staging taken(std::move(other));  // its destructor gives back what this one held
  std::swap(pool_, taken.pool_);
  std::swap(bytes_, taken.bytes_);
  std::swap(run_, taken.run_);
  return *this;
}

PagePool::Staging::~Staging() {
  if (pool_ != nullptr) pool_->impl_->give_back_staging(run_);
}

PagePool::HeaderSlot::HeaderSlot(HeaderSlot&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)), data_(other.data_), index_(other.index_) {}

PagePool::HeaderSlot& PagePool::HeaderSlot::operator=(HeaderSlot&& other) noexcept {
  HeaderSlot taken(std::move(other));  // its destructor gives back what this one held
  std::swap(pool_, taken.pool_);
  std::swap(data_, taken.data_);
  std::swap(index_, taken.index_);
  return *this;
}

PagePool::HeaderSlot::~HeaderSlot() {
  if (pool_ != nullptr) pool_->impl_->give_back_slot(index_);
}

}  // namespace vitrove
