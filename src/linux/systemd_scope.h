// A cgroup of this process's own, asked of systemd (org.freedesktop.systemd1(5), StartTransientUnit) over D-Bus.
//
// A client of our own, of that one call: libsystemd is not there as a static library, and libdbus-1.a needs it. It
// speaks the D-Bus Specification 0.38: SASL EXTERNAL, little-endian messages, no file descriptors.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"

namespace belljar::linux {

// The socket by which this user reaches the systemd that manages their processes: root the system's bus, others their
// own (DBUS_SESSION_BUS_ADDRESS when it is a unix:path=, else $XDG_RUNTIME_DIR/bus). Empty when neither names one.
[[nodiscard]] std::string systemd_bus(bool root, std::string_view address, std::string_view runtime_folder);

// Has systemd move this process into a new scope `name` (without the ending), whose group is delegated to this user and
// goes with its last process. Waits for the end of that job. An error names what systemd or the bus said; then nothing
// has changed.
[[nodiscard]] base::Status enter_delegated_scope(const std::string& bus, const std::string& name,
                                                 const base::Deadline& deadline);

}  // namespace belljar::linux
