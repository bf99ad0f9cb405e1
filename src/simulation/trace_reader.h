// Reads traces of JSON lines: {"timestamp": ms, "hash_ids": [id, ...]}, as Mooncake publishes them.
// Each id is one media item; what it weighs and costs comes from a model. Lines are taken in order
// of their timestamps; what else stands in a line is left alone.
#pragma once

#include <istream>
#include <string>

#include "simulation/media_model.h"
#include "simulation/trace.h"

namespace vitrove::simulation {

// Throw Error{invalid_argument} naming the line, or that the file cannot be read.
Trace read_trace(std::istream& lines, const MediaModel& model);
Trace read_trace_file(const std::string& path, const MediaModel& model);

}  // namespace vitrove::simulation
