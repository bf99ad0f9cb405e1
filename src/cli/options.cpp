#include "cli/options.h"

#include <functional>

#include "vitrove/error.h"
#include "vitrove/units.h"

namespace vitrove::cli {
namespace {

CLI::Option* add_with_unit(CLI::App& app, const std::string& name, const std::string& help,
                           const std::string& kind, const std::string& shown_default,
                           std::function<void(const std::string&)> assign) {
  auto parse = [name, assign = std::move(assign)](const std::string& text) {
    try {
      assign(text);
    } catch (const Error& error) {
      throw CLI::ValidationError(name, error.what());
    }
  };
  return app.add_option_function<std::string>(name, parse, help)
      ->type_name(kind)
      ->default_str(shown_default);
}

}  // namespace

CLI::Option* add_bytes(CLI::App& app, const std::string& name, std::uint64_t& target,
                       const std::string& help) {
  return add_with_unit(app, name, help, "BYTES", format_bytes(target),
                       [&target](const std::string& text) { target = parse_bytes(text); });
}

CLI::Option* add_duration(CLI::App& app, const std::string& name, std::chrono::microseconds& target,
                          const std::string& help) {
  return add_with_unit(app, name, help, "TIME", format_duration(target),
                       [&target](const std::string& text) { target = parse_duration(text); });
}

CLI::Option* add_rate(CLI::App& app, const std::string& name, std::uint64_t& target,
                      const std::string& help) {
  return add_with_unit(app, name, help, "BYTES/s", format_bytes(target) + "/s",
                       [&target](const std::string& text) { target = parse_rate(text); });
}

}  // namespace vitrove::cli
