// The file store: one file a value in a directory that many processes and hosts may share.
//
//   file:///var/lib/vitrove?capacity=50GiB&fsync=false&strict=false&guest=false
//
//   <root>/v1/a/b/vt1-abcd…      a value, named by its key
//   <root>/v1/a/b/.vt1-tmp-…     a value being written; renamed when it is whole
//   <root>/v1/a/b/.vt1-claim-…   who encodes what belongs there, see "Claims"
//   <root>/v1/.vitrove-state       who writes here, with what capacity, and how much there is
//
// Whole or absent: a value is written to a temporary file beside its place, then renamed. A crash
// leaves a temporary file. The next count removes those of writers that are certainly dead (their
// process was on this host, and is gone), and those older than `temporary_age` of writers that have
// not shown themselves for five minutes; until then, what was really written of them counts.
// Without `fsync` a power cut may leave a file of the right length with wrong bytes: readers find
// that by the checksum. Anything but a regular file in a value's place is `conflict`; a put removes
// it when it can. Files whose names are not ours are never touched, and not counted.
//
// Capacity: counted is each file's size rounded up to 4 KiB, or what the file system has allocated
// for it if that is more, and the directories. It holds across restarts and writers. Of differing
// capacities of the writers alive the smallest wins. A writer reserves bytes in the state file
// before it writes them, a 64th of the capacity at a time and 64 MiB at most; when they run out,
// one evictor, elected by a lease in the state file, counts what is there and removes what was used
// longest ago until a 16th of the capacity is free. So disk use never exceeds the capacity by more
// than what the other writers have reserved and not yet written: 64 MiB each. What the
// dead had reserved is forgotten with the next count, and no reason to evict. Use is noted in the
// modification time, at most once a minute.
//
// A put waits within its deadline for the count and the eviction that it needs. It answers
// `no_space` when nothing can be removed for it and that stays so until the deadline, or for ten
// seconds; nothing is evicted for a put that would not fit even then.
//
// Claims: a claim is a small file that appears under its key's name only if there is none, whole at
// once, and says who holds it and for how long. It ends with its release, when its holder is
// certainly dead (as above), or when it was not renewed for its ttl; its modification time tells,
// against the clock of the file system. Then whoever claims next takes it away. It is never a
// value, counts as a file of its size, and the next count removes it once it is over. Two may hold
// one claim if a holder comes to life again in the moment in which another takes it away; both
// encode.
//
// Guests look at a store and have no say in it: they do not sign in, count or evict, whatever their
// capacity; they make neither the root nor the state file, and what they read is not thereby used.
// How many bytes there are and may be, they tell from the state file. They hold no claims. They put
// 1 MiB at most in all, and remove; no count knows of either before the next one. A directory
// without a store is an Error{unavailable}. The command line looks at stores in this way.
//
// What health() says of bytes and entries is what the last count found, what this writer did since,
// and of other writers what they have reserved, used or not. So of one directory they say different
// things until the next count: when it is full, when much was removed, when a writer starts.
//
// Errors never leave as anything but a StoreResult with its errno. Construction touches no disk
// (unless `strict`); whether the directory is usable is found out in the background, over and over
// until it is, and a directory that vanishes is made again. New directories have the permissions of
// the root, files the same without the x bits; the root itself is made with 0700.
//
// Clocks of hosts that share a directory should agree to within a minute.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "vitrove/embedding_store.h"

namespace vitrove {

struct FileStoreOptions {
  std::filesystem::path root;                        // absolute
  std::uint64_t capacity = std::uint64_t{50} << 30;  // at least 1 MiB
  bool fsync = false;                                // survive power cuts, at a price
  bool strict = false;                               // an unusable directory is an error
  bool guest = false;                                // see "Guests" above
  std::chrono::microseconds temporary_age = std::chrono::minutes(10);
  // How long an evictor on another host that gives no sign of life is believed to be at work.
  std::chrono::milliseconds lease = std::chrono::seconds(30);
};

// Throws Error{invalid_argument}, or what a guest is told.
std::unique_ptr<EmbeddingStore> make_file_store(const FileStoreOptions& options);

}  // namespace vitrove
