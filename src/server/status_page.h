// The status page: one HTML file that loads nothing but /status.json, once every two seconds.
#pragma once

#include <string_view>

namespace vitrove {

std::string_view status_page_html();

}  // namespace vitrove
