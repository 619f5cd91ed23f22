#include "session/way_in.h"

#include <future>
#include <system_error>
#include <utility>

#include "session/launcher_seal.h"

namespace belljar::session {

base::Result<std::unique_ptr<egress::Exposure>> WayIn::listen(const std::vector<policy::ExposedPort>& ports) {
  if (ports.empty()) return nullptr;
  return egress::Exposure::create(ports);
}

base::Status WayIn::open(tiers::jail::Guest& guest, std::unique_ptr<egress::Exposure> exposure,
                         const std::vector<policy::ExposedPort>& ports) {
  if (!exposure) return {};
  exposure_ = std::move(exposure);
  std::promise<base::Status> sealed;
  // This thread connects the guest's sockets, to these ports of the guest's.
  DialPorts dialled;
  for (const policy::ExposedPort& port : ports) dialled.ports.push_back(port.guest);
  const auto ask = [&guest](int family) { return guest.ask_for_socket(family).has_value(); };
  try {
    thread_ = std::thread([exposure = exposure_.get(), ask, &sealed, dialled] {
      base::Status status = seal_thread(dialled);
      const bool good = status.has_value();
      sealed.set_value(std::move(status));  // the last use of what is the caller's
      if (good) (void)exposure->run(ask);
    });
  } catch (const std::system_error& error) {
    return base::system_error("start a thread", "", error.code().value());
  }
  return sealed.get_future().get();
}

void WayIn::give(base::Fd socket) {
  if (exposure_) exposure_->give(std::move(socket));
}

void WayIn::close() {
  if (!exposure_) return;
  exposure_->stop();
  if (thread_.joinable()) thread_.join();
  exposure_.reset();
}

}  // namespace belljar::session
