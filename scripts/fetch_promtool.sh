#!/usr/bin/env bash
# Brings promtool, Prometheus' own reader of what /metrics says, for the tests.
#
# Leaves: build/bin/promtool
#
# Why like this: it is part of Debian's package prometheus, which starts a service and brings the parts
# of a web page. The package is fetched and verified by apt, and only this program is taken out of it.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/setup_lib.sh"

PROGRAM=$BUILD/bin/promtool

is_ready() { [ -x "$PROGRAM" ] || [ -n "${VITROVE_SKIP_APT:-}" ]; }
if is_ready || { lock promtool && is_ready; }; then
    say "up to date"
    exit 0
fi
work=$(mktemp -d "$BUILD/.promtool.XXXXXX")
trap 'rm -rf "$work"' EXIT
say "taking promtool out of Debian's package prometheus"
# As the user who calls: apt's own one may not write here. An image may come without apt's lists.
download() { (cd "$work" && apt-get -qq -o APT::Sandbox::User=root download prometheus); }
as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo)
download 2>/dev/null || { "${as_root[@]}" env -u TMPDIR apt-get -qq update && download; } ||
    die "apt-get could not fetch the package prometheus (its own words are above)"
dpkg-deb --fsys-tarfile "$work"/prometheus_*.deb | tar -xf - -C "$work" ./usr/bin/promtool
"$work/usr/bin/promtool" --version >/dev/null 2>&1 || die "the promtool of Debian's package does not run"
mkdir -p "$(dirname "$PROGRAM")"
mv "$work/usr/bin/promtool" "$PROGRAM"
say "ready"
