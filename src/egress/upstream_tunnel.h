// A tunnel through an HTTP proxy that the host itself depends on (RFC 9110, section 9.3.6).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/stream.h"

namespace belljar::egress {

struct UpstreamProxy {
  std::string host;  // canonical
  uint16_t port = 0;
  std::string authorization;        // value of Proxy-Authorization, or empty
  std::vector<std::string> direct;  // names, which stand for their subdomains too, addresses, or `*`

  // False for what is reached without it: names of this host's own and those in `direct`.
  [[nodiscard]] bool leads_to(std::string_view to) const;
};

// `name:port`, or `[v6]:port`.
[[nodiscard]] std::string authority_of(std::string_view host, uint16_t port);

class UpstreamTunnelOwner {
 public:
  // Each is the last act: the tunnel may be destroyed from inside.
  virtual void on_tunnel(std::unique_ptr<net::Stream> stream) = 0;
  virtual void on_tunnel_refused(std::string detail) = 0;

 protected:
  ~UpstreamTunnelOwner() = default;
};

// Asks for the tunnel and reads the answer, to its last byte and not one further. No time limit of its own.
class UpstreamTunnel final : private net::StreamOwner {
 public:
  UpstreamTunnel(std::unique_ptr<net::Stream> stream, const UpstreamProxy& proxy, std::string_view host, uint16_t port,
                 UpstreamTunnelOwner& owner);
  UpstreamTunnel(const UpstreamTunnel&) = delete;
  UpstreamTunnel& operator=(const UpstreamTunnel&) = delete;
  void pump();

 private:
  static constexpr int kMostInterim = 8;
  static constexpr size_t kMostHead = size_t{16} << 10U;

  void on_stream(net::Stream& stream) override;
  bool send();
  void receive();
  void refused(std::string detail);

  std::unique_ptr<net::Stream> stream_;
  UpstreamTunnelOwner& owner_;
  std::string out_;
  int interim_ = 0;
};

}  // namespace belljar::egress
